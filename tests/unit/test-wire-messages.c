/*
 * Conversations on the wire: which msgpack types they may contain, and that each fault is
 * reported with the field's name and the place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/wire-rig.h"

static void expect_said(struct body *body, enum smv_code code, const char *field,
                        const char *message)
{
        struct wire_request request;
        struct wire_problem problem;

        assert_int_equal(judge(body, &request, &problem), WIRE_E_REFUSED);
        assert_string_equal(problem.message, message);
        assert_string_equal(problem.field, field);
        assert_int_equal(problem.code, code);
        assert_int_equal(problem.id, 77);
        assert_false(problem.fatal);
}

/* generate with messages, a user's and an assistant's, whose `extra` is still to be put. */
static struct wire_writer *begin_extra(struct body *body)
{
        struct wire_writer *writer = &body->writer;

        begin_without(body, WIRE_GENERATE, WIRE_F_MESSAGES, 1);
        wire_put_text(writer, "messages");
        wire_put_array(writer, 2);
        put_message(writer, "user", "hello");
        wire_put_map(writer, 2);
        wire_put_text(writer, "role");
        wire_put_text(writer, "assistant");
        wire_put_text(writer, "extra");
        return writer;
}

static void decodes_a_conversation_unchanged(void **state)
{
        static const uint8_t first[] = "\x82\xa4role\xa4user\xa7"
                                       "content\xa5hello";
        struct wire_request request;
        struct wire_problem problem;
        struct body body;
        const uint8_t *bytes;
        size_t count;

        (void)state;
        wire_put_bool(begin_extra(&body), true);
        bytes = body_bytes(&body, &count);
        assert_int_equal(wire_decode(bytes, count, &request, &problem), 0);
        assert_int_equal(request.chat.messages.count, 2);
        assert_memory_equal(request.chat.messages.bytes, first, sizeof(first) - 1);
        /* Two maps of two pairs each, eight keys and values. */
        assert_int_equal(request.chat.value_count, 2 + 8);
        assert_true(request.chat.messages.bytes >= bytes);
        assert_int_equal(request.chat.messages.bytes + request.chat.messages.size - bytes, count);
        assert_true(request.chat.add_generation_prompt);
        assert_false(request.chat.continue_final_message);
        assert_null(request.chat.tools.bytes);
        assert_null(request.chat.template_vars.bytes);
        wire_release(&request);
        buffer_deinit(&body.buffer);
}

static void accepts_every_value_that_a_template_can_use(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        PUT_RAW(begin_extra(&body), 0xc0); /* nil */
        expect_taken(&body, &request);
        PUT_RAW(begin_extra(&body), 0x93, 0xc2, 0xff, 0xcb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0);
        expect_taken(&body, &request);
        PUT_RAW(begin_extra(&body), 0x81, 0xa1, 'a', 0x91, 0x81, 0xa1, 'b', 0x80);
        expect_taken(&body, &request);
        PUT_RAW(begin_extra(&body), 0xcf, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
        expect_taken(&body, &request);
}

static void refuses_unsupported_values_with_their_index(void **state)
{
        static const struct {
                uint8_t bytes[12];
                size_t count;
                const char *message;
        } cases[] = {
                { { 0xc4, 1, 'x' }, 3, "messages has binary at index 1" },
                { { 0x91, 0xc4, 0 }, 3, "messages has binary at index 1" },
                { { 0x81, 5, 5 }, 3, "messages has a key that is not a text at index 1" },
                { { 0x82, 0xa1, 'a', 0x81, 0xc0, 1, 0xa1, 'b', 2 },
                  9,
                  "messages has a key that is not a text at index 1" },
                { { 0xa1, 0xff }, 2, "messages has a text that is not valid UTF-8 at index 1" },
                { { 0x81, 0xa1, 0x80, 1 },
                  4,
                  "messages has a text that is not valid UTF-8 at index 1" },
                { { 0xca, 0x7f, 0x80, 0, 0 },
                  5,
                  "messages has a number that is not finite at index 1" },
                { { 0xca, 0x7f, 0xc0, 0, 0 },
                  5,
                  "messages has a number that is not finite at index 1" },
                { { 0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0 },
                  9,
                  "messages has an integer above 9223372036854775807 at index 1" },
        };
        struct body body;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                put_raw(begin_extra(&body), cases[i].bytes, cases[i].count);
                expect_said(&body, SMV_BAD_VALUE, "messages", cases[i].message);
        }
}

static struct wire_writer *begin_messages(struct body *body, uint32_t count)
{
        begin_without(body, WIRE_GENERATE, WIRE_F_MESSAGES, 1);
        wire_put_text(&body->writer, "messages");
        wire_put_array(&body->writer, count);
        return &body->writer;
}

static void requires_a_role_in_every_message(void **state)
{
        struct wire_writer *writer;
        struct body body;

        (void)state;
        writer = begin_messages(&body, 3);
        put_message(writer, "user", "a");
        put_message(writer, "user", "b");
        wire_put_map(writer, 1);
        wire_put_text(writer, "content");
        wire_put_text(writer, "c");
        expect_said(&body, SMV_BAD_VALUE, "messages",
                    "messages has no role, which is a text, at index 2");

        writer = begin_messages(&body, 1);
        wire_put_map(writer, 1);
        wire_put_text(writer, "role");
        wire_put_uint(writer, 7);
        expect_said(&body, SMV_BAD_VALUE, "messages",
                    "messages has no role, which is a text, at index 0");

        writer = begin_messages(&body, 1); /* a role that is another key's value */
        wire_put_map(writer, 1);
        wire_put_text(writer, "content");
        wire_put_text(writer, "role");
        expect_said(&body, SMV_BAD_VALUE, "messages",
                    "messages has no role, which is a text, at index 0");

        writer = begin_messages(&body, 2);
        put_message(writer, "user", "a");
        wire_put_text(writer, "hello");
        expect_said(&body, SMV_BAD_VALUE, "messages",
                    "messages has a text at index 1; maps are wanted");

        begin_messages(&body, 0);
        expect_said(&body, SMV_BAD_VALUE, "messages",
                    "messages has 0 elements; it may have from 1 to 16384");
}

static void refuses_more_than_one_kind_of_prompt(void **state)
{
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
        wire_put_text(&body.writer, "messages");
        put_sample(&body.writer, WIRE_F_MESSAGES);
        expect_said(&body, SMV_BAD_FIELD, "messages",
                    "prompt and messages are given; give only one of them");

        begin_without(&body, WIRE_GENERATE, WIRE_F_MESSAGES, 2);
        wire_put_text(&body.writer, "messages");
        put_sample(&body.writer, WIRE_F_MESSAGES);
        wire_put_text(&body.writer, "tokens");
        put_ids(&body.writer, 2, 5);
        expect_said(&body, SMV_BAD_FIELD, "messages",
                    "tokens and messages are given; give only one of them");

        begin_without(&body, WIRE_GENERATE, WIRE_F_MESSAGES, 0);
        expect_said(&body, SMV_MISSING, "prompt",
                    "one of prompt, tokens, messages, handle is missing");
}

static void refuses_tools_and_template_settings_without_messages(void **state)
{
        static const char *const names[] = { "tools", "template_vars", "add_generation_prompt",
                                             "continue_final_message" };
        struct body body;

        (void)state;
        for (size_t i = 0; i < 4; i++) {
                char message[64];

                begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 1);
                wire_put_text(&body.writer, names[i]);
                if (i == 0)
                        wire_put_array(&body.writer, 0);
                else if (i == 1)
                        wire_put_map(&body.writer, 0);
                else
                        wire_put_bool(&body.writer, false);
                snprintf(message, sizeof(message), "%s is given without messages", names[i]);
                expect_said(&body, SMV_BAD_FIELD, names[i], message);
        }
}

static struct wire_writer *begin_var(struct body *body, const char *name)
{
        begin_without(body, WIRE_TEMPLATE, WIRE_FIELD_N, 1);
        wire_put_text(&body->writer, "template_vars");
        wire_put_map(&body->writer, 1);
        wire_put_text(&body->writer, name);
        return &body->writer;
}

static void refuses_template_vars_that_the_template_gets_elsewhere(void **state)
{
        static const char *const names[] = { "messages",  "tools",     "add_generation_prompt",
                                             "bos_token", "eos_token", "documents" };
        struct wire_request request;
        struct body body;

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                char message[64];

                wire_put_bool(begin_var(&body, names[i]), true);
                snprintf(message, sizeof(message), "template_vars may not set %s", names[i]);
                expect_said(&body, SMV_BAD_VALUE, "template_vars", message);
        }
        wire_put_bool(begin_var(&body, "enable_thinking"), false);
        expect_taken(&body, &request);
        assert_int_equal(request.chat.template_vars.count, 1);
        PUT_RAW(begin_var(&body, "deep"), 0x91, 0xc4, 0);
        expect_said(&body, SMV_BAD_VALUE, "template_vars", "template_vars has binary at index 0");
}

/* The frame's map, the array, a message's map: 29 more may lie in it. */
static void limits_the_nesting_of_a_conversation(void **state)
{
        struct wire_request request;
        struct wire_problem problem;
        struct body body;

        (void)state;
        for (int depth = 29; depth <= 30; depth++) {
                struct wire_writer *writer = begin_extra(&body);

                for (int i = 0; i < depth; i++)
                        wire_put_array(writer, 1);
                wire_put_uint(writer, 1);
                if (depth == 29) {
                        expect_taken(&body, &request);
                        continue;
                }
                assert_int_equal(judge(&body, &request, &problem), WIRE_E_REFUSED);
                assert_int_equal(problem.code, SMV_BAD_FRAME);
        }
}

static void limits_the_number_of_values_in_a_conversation(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        /* 10 values as in the first test, except that the last is an array: 11 with it. */
        for (uint32_t over = 0; over < 2; over++) {
                struct wire_writer *writer = begin_extra(&body);

                wire_put_array(writer, SMV_VALUES_MAX - 10 + over);
                for (uint32_t i = 0; i < SMV_VALUES_MAX - 10 + over; i++)
                        wire_put_uint(writer, 1);
                if (over)
                        expect_said(&body, SMV_BAD_VALUE, "messages",
                                    "messages has more than 65536 values");
                else
                        expect_taken(&body, &request);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decodes_a_conversation_unchanged),
                cmocka_unit_test(accepts_every_value_that_a_template_can_use),
                cmocka_unit_test(refuses_unsupported_values_with_their_index),
                cmocka_unit_test(requires_a_role_in_every_message),
                cmocka_unit_test(refuses_more_than_one_kind_of_prompt),
                cmocka_unit_test(refuses_tools_and_template_settings_without_messages),
                cmocka_unit_test(refuses_template_vars_that_the_template_gets_elsewhere),
                cmocka_unit_test(limits_the_nesting_of_a_conversation),
                cmocka_unit_test(limits_the_number_of_values_in_a_conversation),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
