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

void body_begin(struct body *body, uint32_t pairs)
{
        buffer_init(&body->buffer, 16u << 20);
        wire_begin(&body->writer, &body->buffer);
        wire_put_map(&body->writer, pairs);
}

void put_raw(struct wire_writer *writer, const void *bytes, size_t count)
{
        if (!writer->result)
                writer->result = buffer_append(writer->to, bytes, count);
}

void put_int(struct wire_writer *writer, int64_t value)
{
        uint8_t bytes[9] = { 0xd3 };

        for (int i = 0; i < 8; i++)
                bytes[1 + i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
        put_raw(writer, bytes, sizeof(bytes));
}

void put_ids(struct wire_writer *writer, uint32_t count, uint32_t id)
{
        wire_put_array(writer, count);
        for (uint32_t i = 0; i < count; i++)
                wire_put_uint(writer, id);
}

void put_length(struct wire_writer *writer, size_t count)
{
        char *text = malloc(count + 1);

        memset(text, 'a', count);
        wire_put_bytes(writer, text, count);
        free(text);
}

const uint8_t *body_bytes(struct body *body, size_t *ret_count)
{
        assert_int_equal(wire_end(&body->writer), 0);
        *ret_count = buffer_count(&body->buffer) - 4;
        return body->buffer.bytes + body->buffer.start + 4;
}

/*
 * Decodes and frees the body.  A refusal must be complete; the request of an acceptance is
 * released.
 */
int judge(struct body *body, struct wire_request *ret_request, struct wire_problem *ret_problem)
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
                assert_true(ret_problem->code > SMV_OK && ret_problem->code != SMV_LOST);
                assert_true(ret_problem->message[0]);
        }
        buffer_deinit(&body->buffer);
        return r;
}

void put_message(struct wire_writer *writer, const char *role, const char *content)
{
        wire_put_map(writer, 2);
        wire_put_text(writer, "role");
        wire_put_text(writer, role);
        wire_put_text(writer, "content");
        wire_put_text(writer, content);
}

/* Any value that this field takes. */
void put_sample(struct wire_writer *writer, enum wire_field field)
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
        case WIRE_F_HANDLE:
        case WIRE_F_LENGTH:
        case WIRE_F_COUNT:
        case WIRE_F_PIN_MS:
        case WIRE_F_RESUME_ID:
        case WIRE_F_FROM:
        case WIRE_F_GROUP:
        case WIRE_F_NUMBER:
                wire_put_uint(writer, 75);
                break;
        case WIRE_F_TO:
                wire_put_text(writer, "all");
                break;
        case WIRE_F_TOOLS:
                wire_put_array(writer, 1);
                wire_put_map(writer, 1);
                wire_put_text(writer, "name");
                wire_put_text(writer, "sample");
                break;
        case WIRE_F_MESSAGES:
                wire_put_array(writer, 1);
                put_message(writer, "user", "hello");
                break;
        default:
                wire_put_text(writer, "sample");
        }
}

/* One of several that it may have must be there; unless the caller puts one. */
static bool is_start(enum wire_op op, enum wire_field field, enum wire_field without)
{
        bool starts = op == WIRE_GENERATE || op == WIRE_OPEN;

        if (op == WIRE_GENERATE && (without == WIRE_F_ALLOWED_TOOLS || without == WIRE_F_CALLS_MAX))
                return field == WIRE_F_MESSAGES || field == WIRE_F_TOOLS;
        if (without == WIRE_F_TOKENS || without == WIRE_F_MESSAGES)
                return false;
        if (without == WIRE_F_HANDLE && (op == WIRE_GENERATE || op == WIRE_FORK))
                return false;
        if (op == WIRE_PIECES && field == WIRE_F_TOKENS)
                return without != WIRE_F_FROM;
        if (op == WIRE_FORK && field == WIRE_F_STREAM)
                return without != WIRE_F_STREAM;
        return (starts && field == WIRE_F_PROMPT) || (op == WIRE_APPEND && field == WIRE_F_TEXT);
}

/*
 * A request of this operation with everything it must have except `field`, and
 * room for `more` pairs, which the caller puts.
 */
void begin_without(struct body *body, enum wire_op op, enum wire_field field, uint32_t more)
{
        const struct wire_row *row;
        uint32_t pairs = 0;

        for (int pass = 0; pass < 2; pass++) {
                if (pass)
                        body_begin(body, pairs + more);
                for (uint32_t i = 0; (row = wire_row(i)); i++) {
                        if (row->field == field ||
                            (!(row->required & 1u << op) && !is_start(op, row->field, field)))
                                continue;
                        if (!pass) {
                                pairs++;
                                continue;
                        }
                        wire_put_text(&body->writer, row->name);
                        if (row->field == WIRE_F_OP)
                                wire_put_text(&body->writer, wire_op_name(op));
                        else if (row->field == WIRE_F_TO && field == WIRE_F_GROUP)
                                wire_put_text(&body->writer, "group");
                        else
                                put_sample(&body->writer, row->field);
                }
        }
}

enum wire_op op_of(const struct wire_row *row)
{
        for (uint32_t op = 0; op < WIRE_OP_N; op++)
                if (row->ops & 1u << op && (op != WIRE_GENERATE || row->ops == 1u << op))
                        return (enum wire_op)op;
        return WIRE_GENERATE;
}

/* Fields that stand only beside another one, with a value of that one: a text, or else 1. */
static const struct {
        enum wire_field field;
        const char *name, *text;
} beside[] = {
        { WIRE_F_DOORBELL, "transport", "ring" },
        { WIRE_F_RING_BYTES, "transport", "ring" },
        { WIRE_F_ASK_SLOTS, "transport", "ring" },
        { WIRE_F_WHOLE_ROWS, "transport", "ring" },
        { WIRE_F_WHOLE_ROWS, "ask_slots", NULL },
        { WIRE_F_REASONING_END, "reasoning_max", NULL },
        { WIRE_F_MIROSTAT_ETA, "mirostat_tau", NULL },
        { WIRE_F_ASK_MS, "ask", "mask" },
        { WIRE_F_ASK_LATE, "ask", "mask" },
        { WIRE_F_WHOLE_ROW, "ask", "token" },
};

/* A whole request, except for the value of the row's field, which the caller puts. */
struct wire_writer *begin_value(struct body *body, const struct wire_row *row)
{
        const size_t count = sizeof(beside) / sizeof(*beside);
        uint32_t more = 1;

        for (size_t i = 0; i < count; i++)
                more += beside[i].field == row->field;
        begin_without(body, op_of(row), row->field, more);
        for (size_t i = 0; i < count; i++) {
                if (beside[i].field != row->field)
                        continue;
                wire_put_text(&body->writer, beside[i].name);
                if (beside[i].text)
                        wire_put_text(&body->writer, beside[i].text);
                else
                        wire_put_uint(&body->writer, 1);
        }
        wire_put_text(&body->writer, row->name);
        return &body->writer;
}

void expect_taken(struct body *body, struct wire_request *ret_request)
{
        struct wire_problem problem;

        if (judge(body, ret_request, &problem))
                fail_msg("%s", problem.message);
}

void expect_refused(struct body *body, enum smv_code code, const char *field)
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

void put_everything(struct body *body)
{
        struct wire_writer *writer = &body->writer;

        body_begin(body, 28);
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
        wire_put_text(writer, "n_sigma");
        wire_put_float(writer, 1.5);
        wire_put_text(writer, "typical");
        wire_put_float(writer, 0.875);
        wire_put_text(writer, "xtc_chance");
        wire_put_float(writer, 0.5);
        wire_put_text(writer, "xtc_least");
        wire_put_float(writer, 0.125);
        wire_put_text(writer, "temperature_range");
        wire_put_float(writer, 0.25);
        wire_put_text(writer, "temperature_exponent");
        wire_put_float(writer, 2);
        wire_put_text(writer, "order");
        wire_put_text(writer, "temperature_last");
        wire_put_text(writer, "stop");
        wire_put_array(writer, 2);
        wire_put_text(writer, "\n\n");
        wire_put_text(writer, "END");
        wire_put_text(writer, "stop_tokens");
        put_ids(writer, 2, 2);
        wire_put_text(writer, "ignore_eos");
        wire_put_bool(writer, true);
        wire_put_text(writer, "control_text");
        wire_put_bool(writer, true);
        wire_put_text(writer, "progress");
        wire_put_bool(writer, true);
        wire_put_text(writer, "prompt_logprobs");
        wire_put_uint(writer, 3);
        wire_put_text(writer, "parts");
        wire_put_bool(writer, true);
        wire_put_text(writer, "reasoning_max");
        wire_put_uint(writer, 100);
        wire_put_text(writer, "reasoning_end");
        wire_put_text(writer, "Time is up.");
        wire_put_text(writer, "prediction");
        wire_put_text(writer, "The end.");
        wire_put_text(writer, "draft_tokens");
        wire_put_uint(writer, 5);
        wire_put_text(writer, "op"); /* last: the order of pairs is free */
        wire_put_text(writer, "generate");
        wire_put_text(writer, "id");
        wire_put_uint(writer, UINT32_MAX);
}
