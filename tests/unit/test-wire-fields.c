/*
 * Which requests are accepted, which are refused and how, and that both match the table of
 * fields.  Most tests walk that table, so a new field is tested as soon as it has its row.
 *
 * test-wire-fields --seeds DIRECTORY writes the fuzzer's seeds.
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

#include "tests/unit/wire-rig.h"

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

/* Otherwise an error would name another field. */
static void each_row_is_at_the_number_of_its_field(void **state)
{
        const struct wire_row *row;
        uint32_t i = 0;

        (void)state;
        for (; (row = wire_row(i)); i++)
                assert_int_equal(row->field, i);
        assert_int_equal(i, WIRE_FIELD_N);
}

static void enforces_the_range_of_every_number(void **state)
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
        assert_int_equal(walked, 47);
}

static void accepts_no_tokens_only_with_the_scores_of_a_prompt(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 2);
        wire_put_text(&body.writer, "max_tokens");
        wire_put_uint(&body.writer, 0);
        wire_put_text(&body.writer, "prompt_logprobs");
        wire_put_uint(&body.writer, 0);
        expect_taken(&body, &request);
        assert_true(wire_has(&request, WIRE_F_MAX_TOKENS) && !request.max_tokens);
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "max_tokens");
        wire_put_uint(&body.writer, 0);
        expect_refused(&body, SMV_BAD_VALUE, "max_tokens");
}

static void a_text_behind_reasoning_needs_a_limit(void **state)
{
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "reasoning_end");
        wire_put_text(&body.writer, "Enough.");
        expect_refused(&body, SMV_BAD_FIELD, "reasoning_end");
}

static void mirostat_makes_the_only_cut(void **state)
{
        static const struct {
                const char *name;
                double keeps_all, cuts;
        } cuts[] = {
                { "top_p", 1, 0.5 },   { "min_p", 0, 0.5 },      { "n_sigma", 0, 1 },
                { "typical", 1, 0.5 }, { "xtc_chance", 0, 0.5 },
        };
        struct wire_request request;
        struct body body;

        (void)state;
        for (size_t i = 0; i < 2 * sizeof(cuts) / sizeof(*cuts); i++) {
                begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 2);
                wire_put_text(&body.writer, "mirostat_tau");
                wire_put_float(&body.writer, 5);
                wire_put_text(&body.writer, cuts[i / 2].name);
                wire_put_float(&body.writer, i % 2 ? cuts[i / 2].cuts : cuts[i / 2].keeps_all);
                if (i % 2)
                        expect_refused(&body, SMV_BAD_FIELD, cuts[i / 2].name);
                else
                        expect_taken(&body, &request);
        }
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 2);
        wire_put_text(&body.writer, "mirostat_tau");
        wire_put_float(&body.writer, 5);
        wire_put_text(&body.writer, "order");
        wire_put_text(&body.writer, "temperature_last");
        expect_refused(&body, SMV_BAD_FIELD, "order");
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "mirostat_eta");
        wire_put_float(&body.writer, 0.5);
        expect_refused(&body, SMV_BAD_FIELD, "mirostat_eta");
}

static void put_pair(struct body *body, const char *name, const char *text, uint32_t number)
{
        wire_put_text(&body->writer, name);
        if (text)
                wire_put_text(&body->writer, text);
        else
                wire_put_uint(&body->writer, number);
}

static void questions_are_about_one_stream_of_this_connection(void **state)
{
        static const struct {
                const char *kind, *name; /* of `ask`, and the field beside it */
                uint32_t number;
                const char *refused; /* NULL: it is taken */
        } beside[] = {
                { "mask", "n", 1, NULL },
                { "mask", "n", 2, "n" },
                { "mask", "keep_ms", 1000, "keep_ms" },
                { "mask", "logprobs", 3, NULL },
                { "token", "logprobs", 3, "logprobs" },
                { "token", "row_top", 256, NULL },
                { "token", "row_top", 257, "row_top" },
                { "mask", "mirostat_tau", 5, NULL },
                { "token", "mirostat_tau", 5, "mirostat_tau" },
                { "mask", "reasoning_max", 5, NULL },
                { "token", "reasoning_max", 5, "reasoning_max" },
        };
        struct wire_request request;
        struct body body;

        (void)state;
        for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
                enum smv_code code = beside[i].number == 257 ? SMV_BAD_VALUE : SMV_BAD_FIELD;

                begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 2);
                put_pair(&body, "ask", beside[i].kind, 0);
                put_pair(&body, beside[i].name, NULL, beside[i].number);
                if (beside[i].refused)
                        expect_refused(&body, code, beside[i].refused);
                else
                        expect_taken(&body, &request);
        }
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 3);
        put_pair(&body, "ask", "mask", 0);
        put_pair(&body, "max_tokens", NULL, 0);
        put_pair(&body, "prompt_logprobs", NULL, 1);
        expect_refused(&body, SMV_BAD_FIELD, "ask");
}

static void answers_need_a_question(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        put_pair(&body, "ask_ms", NULL, 100);
        expect_refused(&body, SMV_BAD_FIELD, "ask_ms");
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        put_pair(&body, "ask_late", "draw", 0);
        expect_refused(&body, SMV_BAD_FIELD, "ask_late");
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        put_pair(&body, "ask", "logits", 0);
        expect_refused(&body, SMV_BAD_VALUE, "ask");
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "whole_row");
        wire_put_bool(&body.writer, true);
        expect_refused(&body, SMV_BAD_FIELD, "whole_row");
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        put_pair(&body, "row_top", NULL, 5);
        expect_taken(&body, &request);
        begin_without(&body, WIRE_HELLO, WIRE_FIELD_N, 1);
        put_pair(&body, "ask_slots", NULL, 5);
        expect_refused(&body, SMV_BAD_FIELD, "ask_slots");
        begin_without(&body, WIRE_HELLO, WIRE_FIELD_N, 2);
        put_pair(&body, "transport", "auto", 0);
        wire_put_text(&body.writer, "whole_rows");
        wire_put_bool(&body.writer, true);
        expect_refused(&body, SMV_BAD_FIELD, "whole_rows");
}

static void progress_is_not_for_streams_that_are_stored(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "progress");
        wire_put_bool(&body.writer, true);
        expect_taken(&body, &request);
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 2);
        wire_put_text(&body.writer, "progress");
        wire_put_bool(&body.writer, true);
        wire_put_text(&body.writer, "keep_ms");
        wire_put_uint(&body.writer, 1000);
        expect_refused(&body, SMV_BAD_FIELD, "progress");
}

static void accepts_an_integer_for_a_float_but_not_the_reverse(void **state)
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
                        put_int(begin_value(&body, row), row->low < 0 ? -101 : -1);
                        expect_refused(&body, SMV_BAD_VALUE, row->name);
                } else if (!strcmp(row->type, "uint")) {
                        wire_put_float(begin_value(&body, row), 1);
                        expect_refused(&body, SMV_BAD_VALUE, row->name);
                }
        }
}

/* The name of each type, and one value of it. */
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
        { "map", { 0x81, 0xa1, 'x', 1 }, 4 },    /* {"x": 1} */
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

static void refuses_a_value_of_the_wrong_type_in_every_field(void **state)
{
        const struct wire_row *row;
        uint32_t refused = 0;

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                for (size_t j = 0; j < sizeof(wrong) / sizeof(*wrong); j++) {
                        struct body body;
                        struct wire_writer *writer;

                        if (is_one_of(wrong[j].types, row->type) ||
                            (wrong[j].bytes[0] == 0xff && row->low < 0))
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

static void biases_are_pairs_of_an_id_and_a_number(void **state)
{
        static const uint8_t half[] = { 0x91, 0x92, 5, 0xcb, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0 };
        static const uint8_t less[] = { 0x92, 0x92, 5, 1, 0x92, 6, 0xff };
        static const uint8_t no_number[] = { 0x91, 0x92, 5, 0xa1, 'x' };
        static const uint8_t no_id[] = { 0x91, 0x92, 0xff, 5 };
        static const uint8_t three[] = { 0x91, 0x93, 5, 5, 5 };
        static const uint8_t large[] = { 0x91, 0x92, 5, 0xcd, 0x03, 0xe9 }; /* 1001 */
        static const uint8_t nan[] = { 0x91, 0x92, 5, 0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0 };
        const struct wire_row *row = wire_row(WIRE_F_LOGIT_BIAS);
        struct wire_request request;
        struct body body;

        (void)state;
        put_raw(begin_value(&body, row), half, sizeof(half));
        expect_taken(&body, &request);
        assert_int_equal(request.logit_bias.count, 1);
        put_raw(begin_value(&body, row), less, sizeof(less));
        expect_taken(&body, &request);
        assert_int_equal(request.logit_bias.count, 2);
        put_raw(begin_value(&body, row), no_number, sizeof(no_number));
        expect_refused(&body, SMV_BAD_VALUE, "logit_bias");
        put_raw(begin_value(&body, row), no_id, sizeof(no_id));
        expect_refused(&body, SMV_BAD_VALUE, "logit_bias");
        put_raw(begin_value(&body, row), three, sizeof(three));
        expect_refused(&body, SMV_BAD_VALUE, "logit_bias");
        put_raw(begin_value(&body, row), large, sizeof(large));
        expect_refused(&body, SMV_BAD_VALUE, "logit_bias");
        put_raw(begin_value(&body, row), nan, sizeof(nan));
        expect_refused(&body, SMV_BAD_VALUE, "logit_bias");
}

static void refuses_every_field_in_operations_without_it(void **state)
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

static void refuses_a_missing_required_field_by_name(void **state)
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

static void refuses_a_duplicate_field(void **state)
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
        assert_true(wire_has(&request, WIRE_F_TOKENS));

        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "tokens");
        put_ids(&body.writer, 3, 9);
        expect_refused(&body, SMV_BAD_FIELD, "tokens");
}

/* Pieces of a list of ids, or of successive ids. */
static void pieces_take_tokens_or_from_and_length_needs_from(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_PIECES, WIRE_FIELD_N, 0);
        expect_taken(&body, &request);
        begin_without(&body, WIRE_PIECES, WIRE_F_FROM, 2);
        wire_put_text(&body.writer, "from");
        wire_put_uint(&body.writer, 7);
        wire_put_text(&body.writer, "length");
        wire_put_uint(&body.writer, 9);
        expect_taken(&body, &request);
        assert_int_equal(request.from, 7);
        assert_int_equal(request.length, 9);

        begin_without(&body, WIRE_PIECES, WIRE_F_TOKENS, 0);
        expect_refused(&body, SMV_MISSING, "tokens");
        begin_without(&body, WIRE_PIECES, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "from");
        wire_put_uint(&body.writer, 7);
        expect_refused(&body, SMV_BAD_FIELD, "from");
        begin_without(&body, WIRE_PIECES, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "length");
        wire_put_uint(&body.writer, 7);
        expect_refused(&body, SMV_BAD_FIELD, "length");
}

static void begin_fork(struct body *body, enum wire_field of, enum wire_field more)
{
        body_begin(body, more == WIRE_FIELD_N ? 4 : 5);
        wire_put_text(&body->writer, "op");
        wire_put_text(&body->writer, "fork");
        wire_put_text(&body->writer, "id");
        wire_put_uint(&body->writer, 77);
        wire_put_text(&body->writer, wire_row(of)->name);
        wire_put_uint(&body->writer, 9);
        wire_put_text(&body->writer, "count");
        wire_put_uint(&body->writer, 3);
        if (more != WIRE_FIELD_N)
                wire_put_text(&body->writer, wire_row(more)->name);
}

/* Only a stream's forks are streams, and can be told how to draw. */
static void accepts_forks_of_a_handle_or_of_a_stream_but_not_both(void **state)
{
        static const enum wire_field of_streams[] = {
                WIRE_F_MAX_TOKENS, WIRE_F_TEMPERATURE, WIRE_F_TOP_K,
                WIRE_F_TOP_P,      WIRE_F_MIN_P,       WIRE_F_SEED,
                WIRE_F_PRIORITY,   WIRE_F_DEADLINE_MS, WIRE_F_SAMPLE_INDEX,
        };
        struct wire_request request;
        struct body body;

        (void)state;
        begin_fork(&body, WIRE_F_HANDLE, WIRE_FIELD_N);
        expect_taken(&body, &request);
        assert_int_equal(wire_streams(&request), 0);
        begin_fork(&body, WIRE_F_STREAM, WIRE_FIELD_N);
        expect_taken(&body, &request);
        assert_int_equal(wire_streams(&request), 3);
        begin_fork(&body, WIRE_F_STREAM, WIRE_F_HANDLE);
        wire_put_uint(&body.writer, 1);
        expect_refused(&body, SMV_BAD_FIELD, "stream");
        begin_without(&body, WIRE_FORK, WIRE_F_STREAM, 0);
        expect_refused(&body, SMV_MISSING, "handle");
        for (size_t i = 0; i < sizeof(of_streams) / sizeof(*of_streams); i++) {
                const struct wire_row *row = wire_row(of_streams[i]);

                for (size_t stream = 0; stream < 2; stream++) {
                        begin_fork(&body, stream ? WIRE_F_STREAM : WIRE_F_HANDLE, of_streams[i]);
                        if (!strcmp(row->type, "text"))
                                wire_put_text(&body.writer, "background");
                        else
                                wire_put_uint(&body.writer, 1);
                        if (stream)
                                expect_taken(&body, &request);
                        else
                                expect_refused(&body, SMV_BAD_FIELD, row->name);
                }
        }
}

static void refuses_stream_ids_that_would_overflow(void **state)
{
        static const struct {
                uint32_t id, n;
                bool taken;
        } asked[] = {
                { UINT32_MAX, 1, true },        { UINT32_MAX, 2, false },
                { UINT32_MAX - 1, 2, true },    { UINT32_MAX - 63, 64, true },
                { UINT32_MAX - 62, 64, false },
        };
        struct wire_request request;
        struct wire_problem problem;
        struct body body;

        (void)state;
        for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
                begin_without(&body, WIRE_GENERATE, WIRE_F_ID, 2);
                wire_put_text(&body.writer, "id");
                wire_put_uint(&body.writer, asked[i].id);
                wire_put_text(&body.writer, "n");
                wire_put_uint(&body.writer, asked[i].n);
                assert_int_equal(judge(&body, &request, &problem),
                                 asked[i].taken ? 0 : WIRE_E_REFUSED);
                if (asked[i].taken)
                        assert_int_equal(wire_streams(&request), asked[i].n);
                else
                        assert_string_equal(problem.field, "n");
        }

        /* 75 forks, as the sample has it. */
        begin_without(&body, WIRE_FORK, WIRE_F_ID, 1);
        wire_put_text(&body.writer, "id");
        wire_put_uint(&body.writer, UINT32_MAX - 73);
        assert_int_equal(judge(&body, &request, &problem), WIRE_E_REFUSED);
        assert_string_equal(problem.field, "count");

        begin_without(&body, WIRE_GENERATE, WIRE_F_HANDLE, 2);
        wire_put_text(&body.writer, "handle");
        wire_put_uint(&body.writer, 4);
        wire_put_text(&body.writer, "n");
        wire_put_uint(&body.writer, 2);
        expect_refused(&body, SMV_BAD_FIELD, "n");
}

static void refuses_reserved_and_unknown_names(void **state)
{
        static const char *const reserved[] = { "adapter", "draft", "snapshot" };
        struct body body;

        (void)state;
        for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
                begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
                wire_put_text(&body.writer, reserved[i]);
                wire_put_uint(&body.writer, 1);
                expect_refused(&body, SMV_RESERVED, reserved[i]);
        }
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "surprise_penalty");
        wire_put_uint(&body.writer, 0);
        expect_refused(&body, SMV_BAD_FIELD, "surprise_penalty");

        begin_without(&body, WIRE_STATUS, WIRE_FIELD_N, 1);
        wire_put_uint(&body.writer, 5); /* a key that is a number */
        wire_put_uint(&body.writer, 0);
        expect_refused(&body, SMV_BAD_FIELD, "");
}

static void escapes_client_text_in_error_messages(void **state)
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

static void enforces_the_length_limits_of_texts_and_arrays(void **state)
{
        const struct wire_row *row;
        struct wire_request request;
        struct body body;
        uint32_t walked = 0;

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                bool texts = !strcmp(row->type, "texts"), text = !strcmp(row->type, "text");
                bool words = row->field == WIRE_F_OP || row->field == WIRE_F_TRANSPORT ||
                             row->field == WIRE_F_DOORBELL || row->field == WIRE_F_PRIORITY ||
                             row->field == WIRE_F_TO || row->field == WIRE_F_ORDER ||
                             row->field == WIRE_F_TOOL_CHOICE || row->field == WIRE_F_ASK ||
                             row->field == WIRE_F_ASK_LATE;

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

static void refuses_invalid_utf8(void **state)
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

static void refuses_ids_of_more_than_32_bits(void **state)
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

static void accepts_known_transports_doorbells_and_powers_of_two(void **state)
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
        for (uint64_t bytes = 64 << 10; bytes <= 1 << 20; bytes += 4096) {
                put_hello(&body, "auto", NULL, bytes);
                if (bytes & (bytes - 1)) {
                        expect_refused(&body, SMV_BAD_VALUE, "ring_bytes");
                } else {
                        expect_taken(&body, &request);
                        assert_int_equal(request.ring_bytes, bytes);
                }
        }
}

static void accepts_known_priorities_and_defaults_to_normal(void **state)
{
        static const char *const priorities[] = { "interactive", "normal", "background" };
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_F_PRIORITY, 0);
        expect_taken(&body, &request);
        assert_int_equal(request.priority, WIRE_NORMAL);
        begin_without(&body, WIRE_PIN, WIRE_F_PRIORITY, 0);
        expect_taken(&body, &request);
        assert_int_equal(request.priority, WIRE_BACKGROUND); /* no client waits for its tokens */
        for (unsigned i = 0; i < 3; i++) {
                wire_put_text(begin_value(&body, wire_row(WIRE_F_PRIORITY)), priorities[i]);
                expect_taken(&body, &request);
                assert_int_equal(request.priority, i);
        }
        wire_put_text(begin_value(&body, wire_row(WIRE_F_PRIORITY)), "interactivE");
        expect_refused(&body, SMV_BAD_VALUE, "priority");
}

static void publish_accepts_only_a_valid_audience(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_PUBLISH, WIRE_FIELD_N, 0);
        expect_taken(&body, &request);
        assert_int_equal(request.to, WIRE_TO_ALL);
        assert_int_equal(request.priority, WIRE_BACKGROUND);
        wire_put_uint(begin_value(&body, wire_row(WIRE_F_GROUP)), 1000);
        expect_taken(&body, &request);
        assert_int_equal(request.to, WIRE_TO_GROUP);
        assert_int_equal(request.group, 1000);

        wire_put_text(begin_value(&body, wire_row(WIRE_F_TO)), "group");
        expect_refused(&body, SMV_MISSING, "group");
        wire_put_text(begin_value(&body, wire_row(WIRE_F_TO)), "alL");
        expect_refused(&body, SMV_BAD_VALUE, "to");
        begin_without(&body, WIRE_PUBLISH, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "group");
        wire_put_uint(&body.writer, 1000);
        expect_refused(&body, SMV_BAD_FIELD, "group");
}

static void refuses_ring_fields_without_a_ring(void **state)
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

static void refuses_a_version_range_in_the_wrong_order(void **state)
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
                cmocka_unit_test(each_row_is_at_the_number_of_its_field),
                cmocka_unit_test(enforces_the_range_of_every_number),
                cmocka_unit_test(accepts_no_tokens_only_with_the_scores_of_a_prompt),
                cmocka_unit_test(a_text_behind_reasoning_needs_a_limit),
                cmocka_unit_test(mirostat_makes_the_only_cut),
                cmocka_unit_test(questions_are_about_one_stream_of_this_connection),
                cmocka_unit_test(answers_need_a_question),
                cmocka_unit_test(progress_is_not_for_streams_that_are_stored),
                cmocka_unit_test(accepts_an_integer_for_a_float_but_not_the_reverse),
                cmocka_unit_test(refuses_a_value_of_the_wrong_type_in_every_field),
                cmocka_unit_test(biases_are_pairs_of_an_id_and_a_number),
                cmocka_unit_test(refuses_every_field_in_operations_without_it),
                cmocka_unit_test(refuses_a_missing_required_field_by_name),
                cmocka_unit_test(refuses_a_duplicate_field),
                cmocka_unit_test(prompt_and_tokens_exclude_each_other),
                cmocka_unit_test(pieces_take_tokens_or_from_and_length_needs_from),
                cmocka_unit_test(accepts_forks_of_a_handle_or_of_a_stream_but_not_both),
                cmocka_unit_test(refuses_stream_ids_that_would_overflow),
                cmocka_unit_test(refuses_reserved_and_unknown_names),
                cmocka_unit_test(escapes_client_text_in_error_messages),
                cmocka_unit_test(enforces_the_length_limits_of_texts_and_arrays),
                cmocka_unit_test(refuses_invalid_utf8),
                cmocka_unit_test(refuses_ids_of_more_than_32_bits),
                cmocka_unit_test(accepts_known_transports_doorbells_and_powers_of_two),
                cmocka_unit_test(accepts_known_priorities_and_defaults_to_normal),
                cmocka_unit_test(publish_accepts_only_a_valid_audience),
                cmocka_unit_test(refuses_ring_fields_without_a_ring),
                cmocka_unit_test(refuses_a_version_range_in_the_wrong_order),
        };

        if (argc == 3 && !strcmp(argv[1], "--seeds"))
                return write_seeds(argv[2]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
