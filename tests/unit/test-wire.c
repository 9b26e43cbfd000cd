/*
 * Wire: what is taken, what is refused and how, and that both are what the
 * table of fields says.  Most tests walk that table, so a new field is tested
 * the day it gets its row.
 *
 * test-wire --seeds DIRECTORY writes the fuzzer's seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <msgpack.h>

#include "daemon/edge/wire.h"

/* ---- making bodies ---- */

struct body {
        struct buffer buffer;
        struct wire_writer writer;
};

static void body_begin(struct body *body, uint32_t pairs)
{
        buffer_init(&body->buffer, 16u << 20);
        wire_begin(&body->writer, &body->buffer);
        wire_put_map(&body->writer, pairs);
}

static void put_raw(struct wire_writer *writer, const void *bytes, size_t count)
{
        if (!writer->result)
                writer->result = buffer_append(writer->to, bytes, count);
}

#define PUT_RAW(writer, ...)                                                                       \
        put_raw(writer, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_int(struct wire_writer *writer, int64_t value)
{
        uint8_t bytes[9] = { 0xd3 };

        for (int i = 0; i < 8; i++)
                bytes[1 + i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
        put_raw(writer, bytes, sizeof(bytes));
}

static void put_ids(struct wire_writer *writer, uint32_t count, uint32_t id)
{
        wire_put_array(writer, count);
        for (uint32_t i = 0; i < count; i++)
                wire_put_uint(writer, id);
}

static void put_length(struct wire_writer *writer, size_t count)
{
        char *text = malloc(count + 1);

        memset(text, 'a', count);
        wire_put_bytes(writer, text, count);
        free(text);
}

static const uint8_t *body_bytes(struct body *body, size_t *ret_count)
{
        assert_int_equal(wire_end(&body->writer), 0);
        *ret_count = buffer_count(&body->buffer) - 4;
        return body->buffer.bytes + body->buffer.start + 4;
}

/* Decodes and frees the body; a refusal is a whole one, an acceptance is released. */
static int judge(struct body *body, struct wire_request *ret_request,
                 struct wire_problem *ret_problem)
{
        size_t count;
        const uint8_t *bytes = body_bytes(body, &count);
        int r;

        memset(ret_problem, 0, sizeof(*ret_problem));
        r = wire_decode(bytes, count, ret_request, ret_problem);
        if (r == 0)
                wire_release(ret_request);
        else {
                assert_int_equal(r, WIRE_E_REFUSED);
                assert_true(ret_problem->code > SMV_OK && ret_problem->code < SMV_LOST);
                assert_true(ret_problem->message[0]);
        }
        buffer_deinit(&body->buffer);
        return r;
}

/* Any value that this field takes. */
static void put_sample(struct wire_writer *writer, enum wire_field field)
{
        switch (field) {
        case WIRE_F_ID:
                wire_put_uint(writer, 77);
                break;
        case WIRE_F_VERSIONS:
                put_ids(writer, 2, 0);
                break;
        case WIRE_F_TOKENS:
                put_ids(writer, 3, 5);
                break;
        case WIRE_F_STREAM:
                wire_put_uint(writer, 76);
                break;
        default:
                wire_put_text(writer, "sample");
        }
}

/*
 * A request of this operation with everything it must have except `field`, and
 * room for `more` pairs, which the caller puts.
 */
static void begin_without(struct body *body, enum wire_op op, enum wire_field field, uint32_t more)
{
        const struct wire_row *row;
        uint32_t pairs = 0;

        for (int pass = 0; pass < 2; pass++) {
                if (pass)
                        body_begin(body, pairs + more);
                for (uint32_t i = 0; (row = wire_row(i)); i++) {
                        bool prompt = op == WIRE_GENERATE && row->field == WIRE_F_PROMPT &&
                                      field != WIRE_F_TOKENS;

                        if (row->field == field || (!prompt && !(row->required & 1u << op)))
                                continue;
                        if (!pass) {
                                pairs++;
                                continue;
                        }
                        wire_put_text(&body->writer, row->name);
                        if (row->field == WIRE_F_OP)
                                wire_put_text(&body->writer, wire_op_name(op));
                        else
                                put_sample(&body->writer, row->field);
                }
        }
}

static enum wire_op op_of(const struct wire_row *row)
{
        for (uint32_t op = 0; op < WIRE_OP_N; op++)
                if (row->ops & 1u << op && (op != WIRE_GENERATE || row->ops == 1u << op))
                        return (enum wire_op)op;
        return WIRE_GENERATE;
}

/* Fields that are taken only beside a transport that they describe. */
static bool is_of_ring(const struct wire_row *row)
{
        return row->field == WIRE_F_DOORBELL || row->field == WIRE_F_RING_BYTES;
}

/* A whole request, but for the value of the row's field, which the caller puts. */
static struct wire_writer *begin_value(struct body *body, const struct wire_row *row)
{
        begin_without(body, op_of(row), row->field, is_of_ring(row) ? 2 : 1);
        if (is_of_ring(row)) {
                wire_put_text(&body->writer, "transport");
                wire_put_text(&body->writer, "ring");
        }
        wire_put_text(&body->writer, row->name);
        return &body->writer;
}

static void expect_taken(struct body *body, struct wire_request *ret_request)
{
        struct wire_problem problem;

        if (judge(body, ret_request, &problem))
                fail_msg("%s", problem.message);
}

static void expect_refused(struct body *body, enum smv_code code, const char *field)
{
        struct wire_request request;
        struct wire_problem problem;

        if (judge(body, &request, &problem) != WIRE_E_REFUSED)
                fail_msg("taken, with a bad %s", field);
        assert_int_equal(problem.code, code);
        assert_string_equal(problem.field, field);
        assert_false(problem.fatal);
        if (strcmp(field, "id"))
                assert_int_equal(problem.id, 77);
}

/* ---- the table, walked ---- */

static void value_is(const struct wire_row *row, double value, bool taken)
{
        struct wire_request request;
        struct body body;
        struct wire_writer *writer = begin_value(&body, row);

        if (!strcmp(row->type, "float"))
                wire_put_float(writer, value);
        else if (value < 0)
                put_int(writer, (int64_t)value);
        else
                wire_put_uint(writer, (uint64_t)value);
        if (taken)
                expect_taken(&body, &request);
        else
                expect_refused(&body, SMV_BAD_VALUE, row->name);
}

static void every_number_is_held_to_its_range(void **state)
{
        const struct wire_row *row;
        uint32_t walked = 0;

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                if (!strcmp(row->type, "uint")) {
                        walked++;
                        value_is(row, row->low, true);
                        value_is(row, -1, false);
                        value_is(row, -9e18, false);
                        if (row->low > 0)
                                value_is(row, row->low - 1, false);
                        if (row->high >= 18446744073709551616.0) {
                                value_is(row, 18446744073709549568.0, true);
                                continue;
                        }
                        value_is(row, row->high, true);
                        value_is(row, row->high + 1, false);
                        value_is(row, 18446744073709549568.0, false);
                } else if (!strcmp(row->type, "float")) {
                        walked++;
                        value_is(row, row->low, !row->above);
                        value_is(row, row->high, true);
                        value_is(row, (row->low + row->high) / 2, true);
                        value_is(row, nextafter(row->high, INFINITY), false);
                        value_is(row, row->low - 1e-9, false);
                        value_is(row, 1e-300, !row->above); /* its float is 0 */
                        value_is(row, NAN, false);
                        value_is(row, INFINITY, false);
                        value_is(row, -INFINITY, false);
                        value_is(row, 1e308, false);
                }
        }
        assert_int_equal(walked, 9);
}

static void integer_is_a_float_but_no_float_is_an_integer(void **state)
{
        const struct wire_row *row;
        struct wire_request request;
        struct body body;

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                if (!strcmp(row->type, "float")) {
                        wire_put_uint(begin_value(&body, row), 1);
                        expect_taken(&body, &request);
                        wire_put_uint(begin_value(&body, row), 101);
                        expect_refused(&body, SMV_BAD_VALUE, row->name);
                        put_int(begin_value(&body, row), -1);
                        expect_refused(&body, SMV_BAD_VALUE, row->name);
                } else if (!strcmp(row->type, "uint")) {
                        wire_put_float(begin_value(&body, row), 1);
                        expect_refused(&body, SMV_BAD_VALUE, row->name);
                }
        }
}

/* What each type is called, and one value of it. */
static const struct {
        const char *types; /* of rows that take it */
        uint8_t bytes[4];
        size_t count;
} wrong[] = {
        { "", { 0xc0 }, 1 },                     /* nil */
        { "bool", { 0xc3 }, 1 },                 /* true */
        { "uint float", { 1 }, 1 },              /* 1 */
        { "", { 0xff }, 1 },                     /* -1 */
        { "float", { 0xca, 0, 0, 0 }, 4 },       /* completed below: 1 byte more */
        { "text texts", { 0xa2, 'h', 'i' }, 3 }, /* "hi" */
        { "", { 0xc4, 1, 'x' }, 3 },             /* binary */
        { "ids uints", { 0x92, 1, 1 }, 3 },      /* [1, 1] */
        { "texts", { 0x91, 0xa1, 'x' }, 3 },     /* ["x"] */
        { "", { 0x81, 0xa1, 'x', 1 }, 4 },       /* {"x": 1} */
        { "", { 0x91, 0x91, 1 }, 3 },            /* [[1]] */
        { "", { 0x91, 0xcb }, 2 },               /* [0.0], completed below */
};

static bool is_one_of(const char *words, const char *word)
{
        char spaced[64], wanted[32];

        snprintf(spaced, sizeof(spaced), " %s ", words);
        snprintf(wanted, sizeof(wanted), " %s ", word);
        return strstr(spaced, wanted);
}

static void every_field_refuses_what_is_not_its_type(void **state)
{
        const struct wire_row *row;
        uint32_t refused = 0;

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                for (size_t j = 0; j < sizeof(wrong) / sizeof(*wrong); j++) {
                        struct body body;
                        struct wire_writer *writer;

                        if (is_one_of(wrong[j].types, row->type))
                                continue;
                        writer = begin_value(&body, row);
                        put_raw(writer, wrong[j].bytes, wrong[j].count);
                        if (wrong[j].bytes[0] == 0xca)
                                PUT_RAW(writer, 0);
                        else if (wrong[j].bytes[1] == 0xcb)
                                PUT_RAW(writer, 0, 0, 0, 0, 0, 0, 0, 0);
                        expect_refused(&body, SMV_BAD_VALUE, row->name);
                        refused++;
                }
        }
        assert_true(refused > 190);
}

static void every_field_is_refused_where_it_does_not_belong(void **state)
{
        const struct wire_row *row;

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                for (uint32_t op = 0; op < WIRE_OP_N; op++) {
                        struct body body;

                        if (row->ops & 1u << op)
                                continue;
                        begin_without(&body, (enum wire_op)op, row->field, 1);
                        wire_put_text(&body.writer, row->name);
                        put_sample(&body.writer, row->field);
                        expect_refused(&body, SMV_BAD_FIELD, row->name);
                }
        }
}

static void every_required_field_is_missed_by_name(void **state)
{
        const struct wire_row *row;
        struct body body;

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++)
                for (uint32_t op = 0; op < WIRE_OP_N; op++)
                        if (row->required & 1u << op) {
                                begin_without(&body, (enum wire_op)op, row->field, 0);
                                expect_refused(&body, SMV_MISSING, row->name);
                        }
        begin_without(&body, WIRE_GENERATE, WIRE_F_PROMPT, 0);
        expect_refused(&body, SMV_MISSING, "prompt");
}

static void no_field_is_given_twice(void **state)
{
        const struct wire_row *row;
        struct body body;

        (void)state;
        for (uint32_t op = 0; op < WIRE_OP_N; op++)
                for (uint32_t i = 0; (row = wire_row(i)); i++) {
                        if (!(row->required & 1u << op))
                                continue;
                        begin_without(&body, (enum wire_op)op, WIRE_FIELD_N, 1);
                        wire_put_text(&body.writer, row->name);
                        if (row->field == WIRE_F_OP)
                                wire_put_text(&body.writer, wire_op_name((enum wire_op)op));
                        else
                                put_sample(&body.writer, row->field);
                        expect_refused(&body, SMV_BAD_FIELD, row->name);
                }
}

static void prompt_and_tokens_exclude_each_other(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_F_TOKENS, 1);
        wire_put_text(&body.writer, "tokens");
        put_ids(&body.writer, 3, 9);
        expect_taken(&body, &request);
        assert_true(request.given & 1u << WIRE_F_TOKENS);

        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "tokens");
        put_ids(&body.writer, 3, 9);
        expect_refused(&body, SMV_BAD_FIELD, "tokens");
}

static void reserved_and_unknown_names_are_refused(void **state)
{
        static const char *const reserved[] = { "messages",  "class",   "deadline",
                                                "principal", "adapter", "n",
                                                "logprobs",  "draft",   "snapshot" };
        struct body body;

        (void)state;
        for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
                begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
                wire_put_text(&body.writer, reserved[i]);
                wire_put_uint(&body.writer, 1);
                expect_refused(&body, SMV_RESERVED, reserved[i]);
        }
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "frequency_penalty");
        wire_put_uint(&body.writer, 0);
        expect_refused(&body, SMV_BAD_FIELD, "frequency_penalty");

        begin_without(&body, WIRE_STATUS, WIRE_FIELD_N, 1);
        wire_put_uint(&body.writer, 5); /* a key that is a number */
        wire_put_uint(&body.writer, 0);
        expect_refused(&body, SMV_BAD_FIELD, "");
}

static void clients_words_are_made_fit_to_be_shown(void **state)
{
        static const struct {
                const char *name, *shown;
        } names[] = {
                { "a\nb", "a\\x0ab" },
                { "\xff\xfe", "\\xff\\xfe" },
                { "\xc2\x9b", "\\xc2\\x9b" }, /* U+009B begins a terminal's commands */
                { "g\xc3\xb6", "g\xc3\xb6" },
                { "", "" },
                { "a name of more than thirty-one bytes", "a name of more than thirty-one " },
                { "thirty bytes and then two more\xc3\xb6", "thirty bytes and then two more" },
                { "thirty bytes and then an escap\x01", "thirty bytes and then an escap" },
        };
        struct body body;

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                begin_without(&body, WIRE_STATUS, WIRE_FIELD_N, 1);
                wire_put_text(&body.writer, names[i].name);
                wire_put_uint(&body.writer, 0);
                expect_refused(&body, SMV_BAD_FIELD, names[i].shown);
        }
}

static void texts_and_arrays_are_held_to_their_counts(void **state)
{
        const struct wire_row *row;
        struct wire_request request;
        struct body body;
        uint32_t walked = 0;

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                bool texts = !strcmp(row->type, "texts"), text = !strcmp(row->type, "text");
                bool words = row->field == WIRE_F_OP || row->field == WIRE_F_TRANSPORT ||
                             row->field == WIRE_F_DOORBELL;

                for (double n = row->low - 1; n <= fmin(row->high + 1, 100); n++) {
                        bool taken = n >= row->low && n <= row->high;

                        if (n < 0 || words || !(texts || text || is_one_of("ids uints", row->type)))
                                continue;
                        begin_value(&body, row);
                        if (text)
                                put_length(&body.writer, (size_t)n);
                        else
                                wire_put_array(&body.writer, (uint32_t)n);
                        for (double j = 0; !text && j < n; j++)
                                if (texts)
                                        put_length(&body.writer, row->member_max);
                                else
                                        wire_put_uint(&body.writer, 4);
                        if (taken)
                                expect_taken(&body, &request);
                        else
                                expect_refused(&body, SMV_BAD_VALUE, row->name);
                        walked++;
                }
                for (int over = 0; texts && over < 2; over++) {
                        begin_value(&body, row);
                        wire_put_array(&body.writer, 1);
                        put_length(&body.writer, over ? row->member_max + 1 : 0);
                        expect_refused(&body, SMV_BAD_VALUE, row->name);
                }
        }
        assert_true(walked > 100);
}

static void text_is_valid_utf8(void **state)
{
        static const char *const bad[] = {
                "\x80",
                "\xc0\x80",
                "\xc1\xbf",
                "\xc3",
                "\xe0\x9f\xbf",
                "\xed\xa0\x80",
                "\xe2\x82",
                "\xf0\x8f\xbf\xbf",
                "\xf4\x90\x80\x80",
                "\xf5\x80\x80\x80",
                "\xff",
                "12345678\xe2",
                "1234567\xe2\x82",
                "\xe2\x82\xac\xe2",
        };
        static const char *const good[] = {
                "",
                "\x7f",
                "\xc2\x80",
                "\xdf\xbf",
                "\xe0\xa0\x80",
                "\xed\x9f\xbf",
                "\xee\x80\x80",
                "\xef\xbf\xbf",
                "\xf0\x90\x80\x80",
                "\xf4\x8f\xbf\xbf",
                "12345678\xe2\x82\xac",
        };
        struct wire_request request;
        struct body body;

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                wire_put_text(begin_value(&body, wire_row(WIRE_F_PROMPT)), bad[i]);
                expect_refused(&body, SMV_BAD_VALUE, "prompt");
                wire_put_array(begin_value(&body, wire_row(WIRE_F_STOP)), 1);
                wire_put_text(&body.writer, bad[i]);
                expect_refused(&body, SMV_BAD_VALUE, "stop");
        }
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
                wire_put_text(begin_value(&body, wire_row(WIRE_F_PROMPT)), good[i]);
                expect_taken(&body, &request);
        }
        wire_put_bytes(begin_value(&body, wire_row(WIRE_F_PROMPT)), "a\0b", 3);
        expect_taken(&body, &request); /* NUL is a character as any other */
        assert_int_equal(request.prompt.count, 3);
}

static void ids_are_32_bits(void **state)
{
        static const enum wire_field fields[] = { WIRE_F_TOKENS, WIRE_F_STOP_TOKENS };
        struct wire_request request;
        struct wire_problem problem;
        struct body body;

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                put_ids(begin_value(&body, wire_row(fields[i])), 3, UINT32_MAX);
                assert_int_equal(judge(&body, &request, &problem), 0);
                wire_put_array(begin_value(&body, wire_row(fields[i])), 1);
                wire_put_uint(&body.writer, UINT64_C(1) << 32);
                assert_int_equal(judge(&body, &request, &problem), WIRE_E_REFUSED);
                assert_string_equal(problem.field, wire_row(fields[i])->name);
                assert_non_null(strstr(problem.message,
                                       "4294967296 at index 0; the largest is 4294967295"));
        }
}

static void put_hello(struct body *body, const char *transport, const char *doorbell,
                      uint64_t ring_bytes)
{
        begin_without(body, WIRE_HELLO, WIRE_FIELD_N,
                      0u + !!transport + !!doorbell + (ring_bytes > 0));
        if (transport) {
                wire_put_text(&body->writer, "transport");
                wire_put_text(&body->writer, transport);
        }
        if (doorbell) {
                wire_put_text(&body->writer, "doorbell");
                wire_put_text(&body->writer, doorbell);
        }
        if (ring_bytes) {
                wire_put_text(&body->writer, "ring_bytes");
                wire_put_uint(&body->writer, ring_bytes);
        }
}

static void a_ring_is_described_by_words_and_a_power_of_two(void **state)
{
        static const char *const transports[] = { "socket", "ring", "auto" };
        static const char *const doorbells[] = { "kick", "futex", "none" };
        struct wire_request request;
        struct body body;

        (void)state;
        put_hello(&body, NULL, NULL, 0);
        expect_taken(&body, &request);
        assert_true(request.transport == WIRE_SOCKET && !request.ring_bytes);
        for (unsigned i = 0; i < 9; i++) {
                put_hello(&body, transports[i / 3], i < 3 ? NULL : doorbells[i % 3], 0);
                expect_taken(&body, &request);
                assert_int_equal(request.transport, i / 3);
                assert_int_equal(request.doorbell, i < 3 ? WIRE_KICK : i % 3);
        }
        for (uint64_t bytes = 64 << 10; bytes <= 4 << 20; bytes += 4096) {
                put_hello(&body, "auto", NULL, bytes);
                if (bytes & (bytes - 1)) {
                        expect_refused(&body, SMV_BAD_VALUE, "ring_bytes");
                } else {
                        expect_taken(&body, &request);
                        assert_int_equal(request.ring_bytes, bytes);
                }
        }
}

static void what_describes_a_ring_is_refused_without_one(void **state)
{
        static const char *const sockets[] = { NULL, "socket" };
        struct body body;

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                put_hello(&body, sockets[i], "kick", 0);
                expect_refused(&body, SMV_BAD_FIELD, "doorbell");
                put_hello(&body, sockets[i], NULL, 64 << 10);
                expect_refused(&body, SMV_BAD_FIELD, "ring_bytes");
                put_hello(&body, sockets[i], "none", 64 << 10);
                expect_refused(&body, SMV_BAD_FIELD, "doorbell");
        }
}

static void versions_are_in_order(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        wire_put_array(begin_value(&body, wire_row(WIRE_F_VERSIONS)), 2);
        wire_put_uint(&body.writer, 0);
        wire_put_uint(&body.writer, 4);
        expect_taken(&body, &request);
        assert_int_equal(request.version_min, 0);
        assert_int_equal(request.version_max, 4);
        wire_put_array(begin_value(&body, wire_row(WIRE_F_VERSIONS)), 2);
        wire_put_uint(&body.writer, 4);
        wire_put_uint(&body.writer, 3);
        expect_refused(&body, SMV_BAD_VALUE, "versions");
}

/* ---- what comes out ---- */

static void what_is_not_given_has_its_default(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 0);
        expect_taken(&body, &request);
        assert_int_equal(request.op, WIRE_GENERATE);
        assert_int_equal(request.id, 77);
        assert_int_equal(request.given, 1u << WIRE_F_OP | 1u << WIRE_F_ID | 1u << WIRE_F_PROMPT);
        assert_true(request.temperature == 1 && request.top_p == 1 && request.min_p == 0);
        assert_int_equal(request.top_k, 0);
        assert_int_equal(request.max_tokens, 0);
        assert_int_equal(request.stop_count, 0);
        assert_int_equal(request.stop_token_count, 0);
        assert_false(request.ignore_eos);
        assert_null(request.memory);
}

static void put_everything(struct body *body)
{
        struct wire_writer *writer = &body->writer;

        body_begin(body, 13);
        wire_put_text(writer, "model");
        wire_put_text(writer, "tiny");
        wire_put_text(writer, "tokens");
        wire_put_array(writer, 3);
        wire_put_uint(writer, 1);
        wire_put_uint(writer, 300);
        wire_put_uint(writer, 70000);
        wire_put_text(writer, "max_tokens");
        wire_put_uint(writer, 16);
        wire_put_text(writer, "temperature");
        wire_put_float(writer, 0.75);
        wire_put_text(writer, "top_k");
        wire_put_uint(writer, 40);
        wire_put_text(writer, "top_p");
        wire_put_float(writer, 0.5);
        wire_put_text(writer, "min_p");
        wire_put_float(writer, 0.25);
        wire_put_text(writer, "seed");
        wire_put_uint(writer, UINT64_MAX);
        wire_put_text(writer, "stop");
        wire_put_array(writer, 2);
        wire_put_text(writer, "\n\n");
        wire_put_text(writer, "END");
        wire_put_text(writer, "stop_tokens");
        put_ids(writer, 2, 2);
        wire_put_text(writer, "ignore_eos");
        wire_put_bool(writer, true);
        wire_put_text(writer, "op"); /* last: the order of pairs is free */
        wire_put_text(writer, "generate");
        wire_put_text(writer, "id");
        wire_put_uint(writer, UINT32_MAX);
}

static void everything_arrives_as_it_was_sent(void **state)
{
        struct wire_problem problem;
        struct wire_request request;
        const uint8_t *bytes;
        struct body body;
        size_t count;

        (void)state;
        put_everything(&body);
        bytes = body_bytes(&body, &count);
        assert_int_equal(wire_decode(bytes, count, &request, &problem), 0);
        assert_int_equal(request.id, UINT32_MAX);
        assert_int_equal(request.model.count, 4);
        assert_memory_equal(request.model.bytes, "tiny", 4);
        assert_int_equal(request.token_count, 3);
        assert_int_equal(request.tokens[0], 1);
        assert_int_equal(request.tokens[1], 300);
        assert_int_equal(request.tokens[2], 70000);
        assert_int_equal(request.max_tokens, 16);
        assert_true(request.temperature == 0.75f && request.top_p == 0.5f &&
                    request.min_p == 0.25f);
        assert_int_equal(request.top_k, 40);
        assert_true(request.seed == UINT64_MAX);
        assert_int_equal(request.stop_count, 2);
        assert_memory_equal(request.stop[0].bytes, "\n\n", 2);
        assert_memory_equal(request.stop[1].bytes, "END", 3);
        assert_int_equal(request.stop_token_count, 2);
        assert_int_equal(request.stop_tokens[1], 2);
        assert_true(request.ignore_eos);
        wire_release(&request);
        wire_release(&request); /* a second time is nothing */

        /* Cut anywhere it is no frame, and nothing is read past its end. */
        for (size_t cut = 0; cut < count; cut++) {
                uint8_t *part = malloc(cut);

                if (cut)
                        memcpy(part, bytes, cut);
                assert_false(wire_scan(part, cut));
                assert_int_equal(wire_decode(part, cut, &request, &problem), WIRE_E_REFUSED);
                assert_int_equal(problem.code, SMV_BAD_FRAME);
                assert_true(problem.fatal);
                free(part);
        }
        buffer_deinit(&body.buffer);
}

static void one_stop_may_stand_alone(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        wire_put_text(begin_value(&body, wire_row(WIRE_F_STOP)), "END");
        expect_taken(&body, &request);
        assert_int_equal(request.stop_count, 1);
        assert_int_equal(request.stop[0].count, 3);
        put_length(begin_value(&body, wire_row(WIRE_F_STOP)), SMV_STOP_BYTES_MAX + 1);
        expect_refused(&body, SMV_BAD_VALUE, "stop");
}

static void messages_have_numbers_and_never_texts(void **state)
{
        struct wire_request request;
        struct wire_problem problem;
        struct body body;

        (void)state;
        wire_put_uint(begin_value(&body, wire_row(WIRE_F_TOP_K)), 2000);
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "top_k is 2000; it may be from 0 to 1024");
        put_int(begin_value(&body, wire_row(WIRE_F_SEED)), -3);
        judge(&body, &request, &problem);
        assert_string_equal(problem.message,
                            "seed is -3; it may be from 0 to 18446744073709551615");
        wire_put_float(begin_value(&body, wire_row(WIRE_F_TOP_P)), 0);
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "top_p is 0; it may be from 0 (not included) to 1");
        wire_put_text(begin_value(&body, wire_row(WIRE_F_TEMPERATURE)), "secret");
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "temperature is a text; it must be a number");
        wire_put_text(begin_value(&body, wire_row(WIRE_F_TRANSPORT)), "secret");
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "transport is none of socket, ring, auto");
        body_begin(&body, 2);
        wire_put_text(&body.writer, "id");
        wire_put_uint(&body.writer, 77);
        wire_put_text(&body.writer, "op");
        wire_put_text(&body.writer, "secret");
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "op is none of hello, generate, cancel, tokenize, "
                                             "detokenize, status");
}

/* ---- frames and the scan ---- */

static void frame_is_whole_or_partial_or_too_long(void **state)
{
        static const uint8_t bytes[] = { 3, 0, 0, 0, 1, 2, 3, 9 };
        struct wire_problem problem;
        const uint8_t *body = NULL;
        size_t need = 0;

        (void)state;
        for (size_t have = 0; have < 7; have++) {
                assert_int_equal(wire_frame(bytes, have, 3, &need, &body, &problem),
                                 WIRE_E_PARTIAL);
                assert_int_equal(need, have < 4 ? 4 : 7);
                assert_null(body);
        }
        assert_int_equal(wire_frame(bytes, 8, 3, &need, &body, &problem), 0);
        assert_int_equal(need, 7);
        assert_ptr_equal(body, bytes + 4);

        assert_int_equal(wire_frame(bytes, 4, 2, &need, &body, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_BAD_FRAME);
        assert_true(problem.fatal);
        assert_int_equal(wire_frame((const uint8_t[]){ 255, 255, 255, 255 }, 4, SMV_FRAME_BYTES_MAX,
                                    &need, &body, &problem),
                         WIRE_E_REFUSED);
        assert_non_null(strstr(problem.message, "4294967295"));

        assert_int_equal(wire_frame((const uint8_t[4]){ 0 }, 4, 3, &need, &body, &problem), 0);
        assert_int_equal(need, 4); /* a doorbell */
}

#define SCAN(...)                                                                                  \
        wire_scan((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void scan_takes_one_map_and_nothing_else(void **state)
{
        (void)state;
        assert_true(SCAN(0x80));
        assert_true(SCAN(0xde, 0, 0));
        assert_true(SCAN(0xdf, 0, 0, 0, 0));
        assert_true(SCAN(0x81, 0xa1, 'a', 0xc0));
        assert_false(wire_scan(NULL, 0));
        assert_false(SCAN(0x90));       /* an array */
        assert_false(SCAN(0xc0));       /* nil */
        assert_false(SCAN(0x80, 0x80)); /* two maps */
        assert_false(SCAN(0x81, 0xa1, 'a'));
        assert_false(SCAN(0x81, 0xa1, 'a', 0xc1));
        assert_false(SCAN(0x81, 0xa1, 'a', 0xd4, 0, 0));    /* fixext 1 */
        assert_false(SCAN(0x81, 0xa1, 'a', 0xc7, 1, 0, 0)); /* ext 8 */
        assert_false(SCAN(0x81, 0xa1, 'a', 0xdd, 255, 255, 255, 255, 0));
        assert_false(SCAN(0x81, 0xa1, 'a', 0xdf, 255, 255, 255, 255, 0));
        assert_false(SCAN(0x81, 0xa1, 'a', 0xdb, 255, 255, 255, 255, 0));
        assert_false(SCAN(0xdf, 0, 0, 0, 1, 0));
}

/* {"a": [[[ ... ]]]}, `depth` containers in all. */
static bool scan_nested(uint32_t depth)
{
        uint8_t bytes[100] = { 0x81, 0xa1, 'a' };

        memset(bytes + 3, 0x91, depth - 2);
        bytes[3 + depth - 2] = 0x90;
        return wire_scan(bytes, 3 + depth - 1);
}

static void scan_holds_depth_and_keys_to_their_limits(void **state)
{
        uint8_t bytes[400];

        (void)state;
        assert_true(scan_nested(SMV_DEPTH_MAX));
        assert_false(scan_nested(SMV_DEPTH_MAX + 1));
        assert_false(scan_nested(90));
        for (uint32_t keys = SMV_KEYS_MAX; keys <= SMV_KEYS_MAX + 1; keys++) {
                bytes[0] = 0xde;
                bytes[1] = 0;
                bytes[2] = (uint8_t)keys;
                memset(bytes + 3, 0xc0, 2 * keys);
                assert_int_equal(wire_scan(bytes, 3 + 2 * keys), keys == SMV_KEYS_MAX);
        }
}

static void deep_nest_needs_no_stack(void **state)
{
        size_t count = 8u << 20;
        uint8_t *bytes = malloc(count);

        (void)state;
        memset(bytes, 0x91, count);
        bytes[0] = 0x81;
        bytes[1] = 0xc0;
        assert_false(wire_scan(bytes, count));
        memset(bytes, 0x81, count);
        assert_false(wire_scan(bytes, count));
        free(bytes);
}

static void broken_frame_still_tells_its_id(void **state)
{
        static const uint8_t after[] = { 0x82, 0xa2, 'i', 'd', 0xcd, 1, 44, 0xa1, 'x', 0xc1 };
        static const uint8_t before[] = { 0x82, 0xa1, 'x', 0xc1, 0xa2, 'i', 'd', 5 };
        struct wire_request request;
        struct wire_problem problem;

        (void)state;
        assert_int_equal(wire_decode(after, sizeof(after), &request, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.id, 300);
        assert_true(problem.fatal);
        assert_int_equal(wire_decode(before, sizeof(before), &request, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.id, 0);
        assert_true(problem.fatal);
}

/* ---- writing ---- */

static void frame_that_does_not_fit_is_taken_back(void **state)
{
        struct wire_problem problem = { 0 };
        struct buffer buffer;
        size_t whole;

        (void)state;
        wire_refuse(&problem, SMV_QUOTA, 9, "prompt", "%d is over", 5);
        buffer_init(&buffer, 4096);
        assert_int_equal(wire_error(&buffer, &problem), 0);
        whole = buffer_count(&buffer);
        buffer_deinit(&buffer);

        for (size_t max = 0; max <= whole + 3; max++) {
                buffer_init(&buffer, max);
                if (max >= 3)
                        assert_int_equal(buffer_append(&buffer, "abc", 3), 0);
                assert_int_equal(wire_error(&buffer, &problem),
                                 max == whole + 3 ? 0 : BUFFER_E_FULL);
                assert_int_equal(buffer_count(&buffer), max == whole + 3 ? whole + 3
                                                        : max >= 3       ? 3
                                                                         : 0);
                buffer_deinit(&buffer);
        }
}

/* Read with msgpack-c, as a client would. */
static void error_reply_says_what_is_wrong(void **state)
{
        static const char *const keys[] = { "id", "error", "code", "message", "field" };
        struct wire_problem problem;
        msgpack_unpacked unpacked;
        struct buffer buffer;
        msgpack_object_map map;

        (void)state;
        buffer_init(&buffer, 4096);
        assert_int_equal(wire_refuse(&problem, SMV_BAD_VALUE, 9, "top_k", "top_k is %d", 2000),
                         WIRE_E_REFUSED);
        assert_int_equal(wire_error(&buffer, &problem), 0);
        assert_int_equal(buffer.bytes[0], buffer_count(&buffer) - 4);
        assert_true(wire_scan(buffer.bytes + 4, buffer_count(&buffer) - 4));

        msgpack_unpacked_init(&unpacked);
        assert_int_equal(msgpack_unpack_next(&unpacked, (char *)buffer.bytes + 4,
                                             buffer_count(&buffer) - 4, NULL),
                         MSGPACK_UNPACK_SUCCESS);
        map = unpacked.data.via.map;
        assert_int_equal(map.size, 5);
        for (uint32_t i = 0; i < 5; i++)
                assert_memory_equal(map.ptr[i].key.via.str.ptr, keys[i], strlen(keys[i]));
        assert_int_equal(map.ptr[0].val.via.u64, 9);
        assert_memory_equal(map.ptr[1].val.via.str.ptr, "bad_value", 9);
        assert_int_equal(map.ptr[2].val.via.u64, SMV_BAD_VALUE);
        assert_memory_equal(map.ptr[3].val.via.str.ptr, "top_k is 2000", 13);
        assert_memory_equal(map.ptr[4].val.via.str.ptr, "top_k", 5);
        msgpack_unpacked_destroy(&unpacked);
        buffer_deinit(&buffer);
}

/* ---- docs/protocol.md ---- */

static char *read_docs(void)
{
        const char *here = strstr(__FILE__, "tests/unit/");
        const char *root = getenv("SAMOVAR_ROOT");
        static char text[1u << 17];
        char path[4096];
        FILE *file;

        assert_non_null(here);
        if (root)
                snprintf(path, sizeof(path), "%s/docs/protocol.md", root);
        else
                snprintf(path, sizeof(path), "%.*sdocs/protocol.md", (int)(here - __FILE__),
                         __FILE__);
        file = fopen(path, "r");
        if (!file)
                fail_msg("%s: cannot be read", path);
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        return text;
}

/* The bytes of a line "> 05 00 ..."; 0 at its end. */
static size_t read_hex(const char *line, uint8_t *ret_bytes, size_t max)
{
        size_t count = 0;
        unsigned byte;
        int used;

        while (sscanf(line, " %2x%n", &byte, &used) == 1 && count < max) {
                ret_bytes[count++] = (uint8_t)byte;
                line += used;
                if (*line == '\n' || !*line)
                        break;
        }
        return count;
}

/* Lines that begin with "> " or "< " and two hex digits are frames: requests are
 * taken, replies are well-formed, and there is one for every operation. */
static void examples_in_the_documentation_are_true(void **state)
{
        uint32_t ops = 0, refused = 0, replies = 0;
        char *docs = read_docs();

        (void)state;
        for (char *line = docs; line; line = strchr(line, '\n')) {
                struct wire_request request;
                struct wire_problem problem;
                const uint8_t *body;
                uint8_t bytes[512];
                size_t count, need;
                int r;

                line += *line == '\n';
                if ((strncmp(line, "> ", 2) && strncmp(line, "< ", 2)) ||
                    strspn(line + 2, "0123456789abcdef") != 2)
                        continue;
                count = read_hex(line + 2, bytes, sizeof(bytes));
                if (count == 4)
                        continue;
                assert_int_equal(wire_frame(bytes, count, 512, &need, &body, &problem), 0);
                assert_int_equal(need, count);
                assert_true(wire_scan(body, count - 4));
                if (*line == '<') {
                        replies++;
                        continue;
                }
                r = wire_decode(body, count - 4, &request, &problem);
                if (r) {
                        struct buffer reply;
                        char hex[2048] = "< ";

                        buffer_init(&reply, sizeof(bytes));
                        assert_int_equal(wire_error(&reply, &problem), 0);
                        for (size_t i = 0; i < buffer_count(&reply); i++)
                                snprintf(hex + 2 + 3 * i, 4, "%02x ", reply.bytes[i]);
                        hex[strlen(hex) - 1] = '\n';
                        assert_non_null(strstr(line, hex)); /* the very reply stands below */
                        buffer_deinit(&reply);
                        refused++;
                        continue;
                }
                ops |= 1u << request.op;
                wire_release(&request);
        }
        assert_int_equal(ops, (1u << WIRE_OP_N) - 1);
        assert_int_equal(refused, 1);
        assert_true(replies > 5);
}

/* Each field and each error has its row in a table of the documentation. */
static void documentation_names_every_field_and_error(void **state)
{
        static const char *const errors[] = {
#define X(number, name, word, text) "| " #number " | `" word "` |",
                SMV_ERRORS(X)
#undef X
        };
        const struct wire_row *row;
        char *docs = read_docs();

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                char cell[64];

                snprintf(cell, sizeof(cell), "| `%s` | %s |", row->name, row->type);
                if (!strstr(docs, cell))
                        fail_msg("docs/protocol.md has no row %s", cell);
        }
        for (size_t i = 1; i < sizeof(errors) / sizeof(*errors); i++) /* 0 is none */
                if (!strstr(docs, errors[i]))
                        fail_msg("docs/protocol.md has no row %s", errors[i]);
}

/* ---- seeds ---- */

static void write_file(const char *directory, const char *name, const void *bytes, size_t count)
{
        char path[4096];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        file = fopen(path, "w");
        if (!file || fwrite(bytes, 1, count, file) != count || fclose(file))
                abort();
}

static void write_body(const char *directory, const char *name, struct body *body)
{
        size_t count;
        const uint8_t *bytes = body_bytes(body, &count);

        write_file(directory, name, bytes, count);
        buffer_deinit(&body->buffer);
}

static int write_seeds(const char *directory)
{
        const struct wire_row *row;
        struct body body;

        for (uint32_t op = 0; op < WIRE_OP_N; op++) {
                begin_without(&body, (enum wire_op)op, WIRE_FIELD_N, 0);
                write_body(directory, wire_op_name((enum wire_op)op), &body);
        }
        put_everything(&body);
        write_body(directory, "everything", &body);
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                bool good = true;

                /* For each field its own types, and the first that is not. */
                for (size_t j = 0; j < sizeof(wrong) / sizeof(*wrong); j++) {
                        bool own = is_one_of(wrong[j].types, row->type);
                        char name[64];

                        if ((!own && !good) || wrong[j].bytes[0] == 0xca)
                                continue;
                        good &= own;
                        put_raw(begin_value(&body, row), wrong[j].bytes, wrong[j].count);
                        snprintf(name, sizeof(name), "%s-%zu", row->name, j);
                        write_body(directory, name, &body);
                }
        }
        return 0;
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_number_is_held_to_its_range),
                cmocka_unit_test(integer_is_a_float_but_no_float_is_an_integer),
                cmocka_unit_test(every_field_refuses_what_is_not_its_type),
                cmocka_unit_test(every_field_is_refused_where_it_does_not_belong),
                cmocka_unit_test(every_required_field_is_missed_by_name),
                cmocka_unit_test(no_field_is_given_twice),
                cmocka_unit_test(prompt_and_tokens_exclude_each_other),
                cmocka_unit_test(reserved_and_unknown_names_are_refused),
                cmocka_unit_test(clients_words_are_made_fit_to_be_shown),
                cmocka_unit_test(texts_and_arrays_are_held_to_their_counts),
                cmocka_unit_test(text_is_valid_utf8),
                cmocka_unit_test(ids_are_32_bits),
                cmocka_unit_test(a_ring_is_described_by_words_and_a_power_of_two),
                cmocka_unit_test(what_describes_a_ring_is_refused_without_one),
                cmocka_unit_test(versions_are_in_order),
                cmocka_unit_test(what_is_not_given_has_its_default),
                cmocka_unit_test(everything_arrives_as_it_was_sent),
                cmocka_unit_test(one_stop_may_stand_alone),
                cmocka_unit_test(messages_have_numbers_and_never_texts),
                cmocka_unit_test(frame_is_whole_or_partial_or_too_long),
                cmocka_unit_test(scan_takes_one_map_and_nothing_else),
                cmocka_unit_test(scan_holds_depth_and_keys_to_their_limits),
                cmocka_unit_test(deep_nest_needs_no_stack),
                cmocka_unit_test(broken_frame_still_tells_its_id),
                cmocka_unit_test(frame_that_does_not_fit_is_taken_back),
                cmocka_unit_test(error_reply_says_what_is_wrong),
                cmocka_unit_test(examples_in_the_documentation_are_true),
                cmocka_unit_test(documentation_names_every_field_and_error),
        };

        if (argc == 3 && !strcmp(argv[1], "--seeds"))
                return write_seeds(argv[2]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
