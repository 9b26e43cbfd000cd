/*
 * Conversations as the library sends them: two texts a message, or the bytes that its caller
 * has packed.
 */
#include "tests/unit/client-rig.h"

#define PACKED(literal)                                                                            \
        {                                                                                          \
                .bytes = (literal), .count = sizeof(literal) - 1                                   \
        }

static void expect_sent(struct wire *w, const char *body, size_t count)
{
        uint8_t sent[4096];
        uint32_t length;
        size_t n = sent_so_far(w, sent, sizeof(sent));

        assert_int_equal(n, 4 + count);
        memcpy(&length, sent, 4);
        assert_int_equal(le32toh(length), count);
        assert_memory_equal(sent + 4, body, count);
}
#define EXPECT_SENT(w, literal) expect_sent(w, literal, sizeof(literal) - 1)

static void open_quietly(struct wire *w)
{
        uint8_t sent[4096];

        open_wire(w);
        sent_so_far(w, sent, sizeof(sent));
}

static void sends_messages_instead_of_a_prompt(void **state)
{
        const struct smv_message messages[] = { { "system", "Be brief.", 2 }, { "user", "Tea?" } };
        struct smv_generate g = { SMV_SIZE(smv_generate), .messages = messages,
                                  .message_count = 2 };
        struct wire w;
        uint32_t stream;

        (void)state;
        begin();
        ok(&script, 2);
        open_quietly(&w);
        assert_int_equal(smv_generate(w.client, &g, &stream), 0);
        EXPECT_SENT(&w, "\xde\0\x03\xa2op\xa8generate\xa2id\x02\xa8messages\x92"
                        "\x82\xa4role\xa6system\xa7"
                        "content\xa2"
                        "Be\x82\xa4role\xa4user\xa7"
                        "content\xa4Tea?");
        close_wire(&w);
}

static void sends_packed_values_unchanged(void **state)
{
        struct smv_generate g = { SMV_SIZE(smv_generate),
                                  .packed_messages = PACKED("\x91\x81\xa4role\xa4user"),
                                  .packed_tools = PACKED("\x90"),
                                  .packed_vars = PACKED("\x81\xa1x\xc3") };
        struct wire w;
        uint32_t stream;

        (void)state;
        begin();
        ok(&script, 2);
        open_quietly(&w);
        assert_int_equal(smv_generate(w.client, &g, &stream), 0);
        EXPECT_SENT(&w, "\xde\0\x05\xa2op\xa8generate\xa2id\x02\xa8messages\x91\x81\xa4role\xa4user"
                        "\xa5tools\x90\xadtemplate_vars\x81\xa1x\xc3");
        close_wire(&w);
}

static void refuses_options_that_it_does_not_know(void **state)
{
        const struct smv_message message = { "user", "Tea?" };
        struct smv_generate g = { SMV_SIZE(smv_generate), .messages = &message,
                                  .message_count = 1 };
        struct smv_fork f = { SMV_SIZE(smv_fork), .count = 1, .set = SMV_SET_DRAFT_TOKENS << 1 };
        uint8_t sent[64];
        struct wire w;
        uint32_t stream;

        (void)state;
        begin();
        open_quietly(&w);
        g.stop_count = 1;
        assert_int_equal(smv_generate(w.client, &g, &stream), -EINVAL);
        assert_string_equal(problem(w.client).message, "stop_count is 1, but stops is NULL");
        g.stop_count = 0;
        g.priority = (enum smv_priority)(SMV_PRIORITY_BACKGROUND + 1);
        assert_int_equal(smv_generate(w.client, &g, &stream), -EINVAL);
        assert_string_equal(problem(w.client).message, "priority is 3; it may be 0 to 2");
        g.priority = SMV_PRIORITY_NORMAL;
        g.set = SMV_SET_DRAFT_TOKENS << 1;
        assert_int_equal(smv_generate(w.client, &g, &stream), -EINVAL);
        assert_string_equal(problem(w.client).message,
                            "set has the bits 0x20000, which this library has not");
        assert_int_equal(smv_fork(w.client, 0, &f, &stream), -EINVAL);
        assert_string_equal(problem(w.client).message,
                            "set has the bits 0x20000, which this library has not");
        assert_int_equal(sent_so_far(&w, sent, sizeof(sent)), 0);
        close_wire(&w);
}

static void expect_member(struct smv_client *client, int r, const char *name, const char *member)
{
        assert_true(r < 0);
        assert_int_equal(problem(client).code, SMV_OK);
        assert_string_equal(problem(client).name, name);
        assert_string_equal(problem(client).field, member);
        assert_true(strlen(problem(client).message) > 0);
}

static void expect_generate(struct smv_client *client, struct smv_generate options,
                            const char *member)
{
        uint32_t stream;

        options.size = sizeof(options);
        expect_member(client, smv_generate(client, &options, &stream), "EINVAL", member);
}

static void names_the_member_that_it_refuses(void **state)
{
        static const char *const stops[] = { "a", NULL };
        const struct smv_message none = { "user", NULL };
        struct smv_generate empty = { SMV_SIZE(smv_generate) };
        struct smv_beam beam = { SMV_SIZE(smv_beam) };
        struct smv_fork fork = { SMV_SIZE(smv_fork) };
        const struct smv_beam_result *results;
        struct smv_event event = { 0 };
        uint8_t sent[64];
        uint32_t stream;
        struct wire w;
        size_t count;

        (void)state;
        begin();
        ok(&script, 2);
        open_wire(&w);
        generate(w.client);
        sent_so_far(&w, (uint8_t[4096]){ 0 }, 4096);

        expect_generate(w.client, (struct smv_generate){ .token_count = 1 }, "tokens");
        expect_generate(w.client, (struct smv_generate){ .stop_count = 1 }, "stops");
        expect_generate(w.client, (struct smv_generate){ .stops = stops, .stop_count = 2 },
                        "stops");
        expect_generate(w.client, (struct smv_generate){ .stop_token_count = 1 }, "stop_tokens");
        expect_generate(w.client, (struct smv_generate){ .message_count = 1 }, "messages");
        expect_generate(w.client, (struct smv_generate){ .messages = &none, .message_count = 1 },
                        "messages");
        expect_generate(
                w.client,
                (struct smv_generate){ .messages = &none, .packed_messages = PACKED("\x90") },
                "packed_messages");
        expect_generate(w.client, (struct smv_generate){ .packed_tools = PACKED("\x91") },
                        "packed_tools");
        expect_generate(w.client, (struct smv_generate){ .packed_vars = PACKED("\x81") },
                        "packed_vars");
        expect_generate(w.client, (struct smv_generate){ .priority = (enum smv_priority)7 },
                        "priority");
        expect_generate(w.client, (struct smv_generate){ .set = 1u << 20 }, "set");
        expect_generate(w.client, (struct smv_generate){ .n = 65 }, "n");

        expect_member(w.client, smv_handle_append_messages(w.client, 1, &empty, NULL), "EINVAL",
                      "messages");
        expect_member(w.client, smv_handle_pin(w.client, 1, 1, (enum smv_priority)7, &stream),
                      "EINVAL", "priority");
        expect_member(w.client, smv_fork(w.client, 2, &fork, &stream), "EINVAL", "count");
        fork.size = 0;
        expect_member(w.client, smv_fork(w.client, 2, &fork, &stream), "EINVAL", "size");
        expect_member(w.client, smv_detach(w.client, 2), "EINVAL", "stream");
        expect_member(w.client, smv_next(w.client, &event, 0), "EINVAL", "size");
        expect_member(w.client, smv_beam(w.client, &beam, &results, &count), "EINVAL", "start");
        beam.start = &empty;
        expect_member(w.client, smv_beam(w.client, &beam, &results, &count), "EBUSY", "");
        beam.size = 0;
        expect_member(w.client, smv_beam(w.client, &beam, &results, &count), "EINVAL", "size");
        assert_int_equal(sent_so_far(&w, sent, sizeof(sent)), 0);
        close_wire(&w);
}

/* It would break the frame around it, and with it the connection. */
static void does_not_send_an_invalid_packed_value(void **state)
{
        static const struct smv_packed bad[] = {
                PACKED(""),
                PACKED("\x91"),
                PACKED("\x90\x90"),
                PACKED("\xa5tea"),
                PACKED("\xc1"),
                PACKED("\x81"),
                PACKED("\xdd\xff\xff\xff\xff"),
        };
        const struct smv_message message = { "user", "Tea?" };
        struct smv_generate g = { SMV_SIZE(smv_generate) };
        uint8_t sent[64];
        struct wire w;
        uint32_t stream;

        (void)state;
        begin();
        open_quietly(&w);
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                g.packed_messages = bad[i];
                assert_int_equal(smv_generate(w.client, &g, &stream), -EINVAL);
                assert_string_equal(problem(w.client).message,
                                    "packed_messages is not exactly one msgpack value");
        }
        g.messages = &message;
        g.message_count = 1;
        assert_int_equal(smv_generate(w.client, &g, &stream), -EINVAL);
        assert_string_equal(problem(w.client).message, "messages are given twice, once packed");
        g.packed_messages.bytes = NULL;
        g.messages = &(struct smv_message){ "user", NULL };
        assert_int_equal(smv_generate(w.client, &g, &stream), -EINVAL);
        assert_string_equal(problem(w.client).message, "the content of message 0 is NULL");
        assert_int_equal(sent_so_far(&w, sent, sizeof(sent)), 0);
        close_wire(&w);
}

static void smv_template_returns_text_and_on_request_ids(void **state)
{
        const struct smv_message message = { "user", "Tea?" };
        struct smv_generate g = { SMV_SIZE(smv_generate), .model = "m", .messages = &message,
                                  .message_count = 1, .max_tokens = 9 };
        const uint32_t *ids = NULL;
        const char *said;
        size_t bytes, count = 0;
        struct wire w;

        (void)state;
        begin();
        ok_begin(&script, 2, 1);
        text(&script, "text");
        text(&script, "user: Tea?");
        frame_end(&script);
        ok_begin(&script, 3, 2);
        text(&script, "text");
        text(&script, "T");
        text(&script, "tokens");
        byte(&script, 0x92);
        number(&script, 7);
        number(&script, 8);
        frame_end(&script);
        ok(&script, 4);
        open_quietly(&w);
        assert_int_equal(smv_template(w.client, &g, &said, &bytes, NULL, NULL), 0);
        assert_int_equal(bytes, 10);
        assert_memory_equal(said, "user: Tea?", 10);
        EXPECT_SENT(&w, "\xde\0\x04\xa2op\xa8template\xa2id\x02\xa5model\xa1m\xa8messages\x91"
                        "\x82\xa4role\xa4user\xa7"
                        "content\xa4Tea?");
        assert_int_equal(smv_template(w.client, &g, &said, &bytes, &ids, &count), 0);
        assert_int_equal(bytes, 1);
        assert_int_equal(count, 2);
        assert_int_equal(ids[0], 7);
        assert_int_equal(ids[1], 8);
        assert_int_equal(smv_template(w.client, &g, &said, &bytes, NULL, NULL), -EPROTO);
        close_wire(&w);
}

/* A member that is 0 is sent only if `set` says that 0 is meant. */
static void sends_where_the_prompt_ends(void **state)
{
        const struct smv_message message = { "assistant", "T" };
        struct smv_generate g = { SMV_SIZE(smv_generate), .messages = &message,
                                  .message_count = 1 };
        struct wire w;
        uint32_t request;

        (void)state;
        begin();
        ok(&script, 2);
        open_quietly(&w);
        g.set = SMV_SET_ADD_GENERATION_PROMPT;
        assert_int_equal(smv_ask_template(w.client, &g, 0, &request), 0);
        EXPECT_SENT(&w, "\xde\0\x04\xa2op\xa8template\xa2id\x02\xa8messages\x91\x82\xa4role\xa9"
                        "assistant\xa7"
                        "content\xa1T\xb5"
                        "add_generation_prompt\xc2");
        g.set = 0;
        g.add_generation_prompt = g.continue_final_message = 2;
        assert_int_equal(smv_ask_handle_append_messages(w.client, 9, &g, &request), 0);
        EXPECT_SENT(&w, "\xde\0\x06\xa2op\xa6"
                        "append\xa2id\x03\xa6handle\x09\xa8messages\x91\x82"
                        "\xa4role\xa9"
                        "assistant\xa7"
                        "content\xa1T\xb5"
                        "add_generation_prompt\xc3\xb6"
                        "continue_final_message\xc3");
        close_wire(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sends_messages_instead_of_a_prompt),
                cmocka_unit_test(sends_packed_values_unchanged),
                cmocka_unit_test(refuses_options_that_it_does_not_know),
                cmocka_unit_test(names_the_member_that_it_refuses),
                cmocka_unit_test(does_not_send_an_invalid_packed_value),
                cmocka_unit_test(sends_where_the_prompt_ends),
                cmocka_unit_test(smv_template_returns_text_and_on_request_ids),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
