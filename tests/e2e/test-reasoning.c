/*
 * The limit of reasoning.  The model writes letters by chance, and never ends its reasoning itself:
 * only letters are allowed.  The same request without a limit says which letters these are.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/chat-model.h"
#include "tests/e2e/honest-client.h"
#include "tests/e2e/told.h"

#define THINKING CHATML "{{ '<think>\\n' }}"
#define LETTERS  26u
#define TOKENS   60u

static uint32_t letters[LETTERS];

static struct smv_client *connect_over(const struct daemon_fixture *fixture,
                                       enum smv_transport transport)
{
        const struct smv_connect where = {
                SMV_SIZE(smv_connect), .socket = fixture->socket, .transport = transport,
                .ring_bytes = transport == SMV_TRANSPORT_RING ? SMV_RING_BYTES_MIN : 0
        };
        struct smv_client *client;

        for (uint32_t i = 0; i < LETTERS; i++)
                letters[i] = 'a' + i;
        assert_int_equal(smv_connect(&where, &client), 0);
        return client;
}

static struct smv_generate make_ask(void)
{
        static const struct smv_message message = { .role = "user", .content = "Hm?" };

        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .messages = &message,
                                      .message_count = 1,
                                      .max_tokens = TOKENS,
                                      .seed = 7,
                                      .temperature = 1,
                                      .set = SMV_SET_SEED | SMV_SET_TEMPERATURE,
                                      .allowed_tokens = letters,
                                      .allowed_token_count = LETTERS };
}

static struct told ask(struct smv_client *client, const struct smv_generate *options)
{
        struct told told = { 0 };
        uint32_t stream;

        assert_int_equal(smv_generate(client, options, &stream), 0);
        read_all(client, stream, &told, 1);
        return told;
}

/* ---- tests ---- */

static void reasoning_ends_at_its_limit_over_each_transport(void **state)
{
        static const enum smv_transport transports[] = { SMV_TRANSPORT_SOCKET, SMV_TRANSPORT_RING };
        struct daemon_fixture *fixture = *state;

        start_chat_model(fixture, THINKING);
        for (size_t i = 0; i < 2; i++) {
                struct smv_client *client = connect_over(fixture, transports[i]);
                struct smv_generate options = make_ask();
                struct told free_one = ask(client, &options), plain, parted;
                char wanted[4096];

                assert_int_equal(free_one.end.parts_flags, 0);
                options.reasoning_max = 5;
                options.reasoning_end = "Enough. ";
                plain = ask(client, &options);
                snprintf(wanted, sizeof(wanted), "%.5sEnough. </think>", free_one.text);
                assert_memory_equal(plain.text, wanted, strlen(wanted));
                assert_int_equal(plain.token_count, TOKENS);
                assert_int_equal(plain.text_bytes, TOKENS);
                assert_int_equal(plain.end.parts_flags, SMV_PARTS_LIMIT);
                options.parts = 1;
                parted = ask(client, &options);
                snprintf(wanted, sizeof(wanted), "R\"%.5sEnough. \"T\"%s\"", free_one.text,
                         plain.text + 5 + strlen("Enough. </think>"));
                assert_string_equal(parted.rig.shown, wanted);
                assert_int_equal(parted.end.parts_flags, SMV_PARTS_LIMIT);
                assert_int_equal(parted.end.reasoning_tokens, 5 + strlen("Enough. </think>"));
                free_told(&free_one);
                free_told(&plain);
                free_told(&parted);
                smv_close(client);
        }
        fixture_stop(fixture);
}

static void a_limit_of_0_ends_reasoning_at_once(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask();
        struct smv_client *client;
        struct told told;

        start_chat_model(fixture, THINKING);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        options.set |= SMV_SET_REASONING_MAX;
        told = ask(client, &options);
        assert_memory_equal(told.text, "</think>", 8);
        assert_int_equal(strcspn(told.text + 8, "<"), TOKENS - 8);
        free_told(&told);
        options.reasoning_max = TOKENS;
        told = ask(client, &options);
        assert_null(strchr(told.text, '<'));
        assert_int_equal(told.end.parts_flags, 0);
        free_told(&told);
        /* the last token is the first of the end */
        options.reasoning_max = TOKENS - 1;
        told = ask(client, &options);
        assert_int_equal(strcspn(told.text, "<"), TOKENS - 1);
        assert_int_equal(told.end.parts_flags, SMV_PARTS_LIMIT);
        free_told(&told);
        smv_close(client);
        fixture_stop(fixture);
}

/* Guesses on both sides of the limit: the limit sees each of them, and forgets wrong ones. */
static void guesses_along_the_limit_change_nothing(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask();
        struct smv_client *client;

        start_chat_model(fixture, THINKING);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        options.reasoning_end = "Enough. ";
        for (uint32_t limit = 1; limit < 20; limit++) {
                struct told plain, guessed;
                uint32_t wrong = 3 * limit % 17;

                options.reasoning_max = limit;
                options.prediction = NULL;
                plain = ask(client, &options);
                for (uint32_t i = 0; i < 2; i++) {
                        char *text = strdup(plain.text);

                        text[wrong] = i ? 'A' : text[wrong]; /* an upper case letter never comes */
                        options.prediction = text;
                        guessed = ask(client, &options);
                        assert_string_equal(guessed.text, plain.text);
                        assert_int_equal(guessed.end.parts_flags, SMV_PARTS_LIMIT);
                        assert_true(guessed.end.predictions_right > 20);
                        assert_true(i || guessed.end.predictions_right == guessed.end.predicted);
                        free_told(&guessed);
                        free(text);
                }
                free_told(&plain);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* Each of several answers is the one that its sample index has alone. */
static void each_of_several_answers_has_the_limit(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask();
        struct told several[4] = { 0 };
        struct smv_client *client;
        uint32_t first;

        start_chat_model(fixture, THINKING);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        options.reasoning_max = 7;
        options.reasoning_end = ".";
        options.n = 4;
        assert_int_equal(smv_generate(client, &options, &first), 0);
        read_all(client, first, several, 4);
        options.n = 0;
        for (uint32_t i = 0; i < 4; i++) {
                struct told alone;

                options.sample_index = i;
                alone = ask(client, &options);
                assert_string_equal(several[i].text, alone.text);
                assert_memory_equal(alone.text + 7, ".</think>", 9);
                free_told(&alone);
                free_told(&several[i]);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* A fork goes on from where its parent is: before the limit, in what is written, or behind it. */
static void a_fork_keeps_the_limit_of_its_parent(void **state)
{
        const struct smv_fork how = { SMV_SIZE(smv_fork), .count = 1 };
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask();
        struct smv_client *client;

        start_chat_model(fixture, THINKING);
        client = connect_over(fixture, SMV_TRANSPORT_RING);
        options.temperature = 0;
        options.reasoning_end = "It is time to say what I think of this. ";
        /* More than the ring has space for: it cannot end before it is read. */
        options.max_tokens = 1500;
        options.parts = 1;
        for (uint32_t most = 1; most < 1400; most *= 3) {
                struct smv_event event = { SMV_SIZE(smv_event) };
                struct told *told = calloc(2, sizeof(*told));
                uint32_t parent, fork;

                assert_non_null(told);
                options.reasoning_max = most;
                assert_int_equal(smv_generate(client, &options, &parent), 0);
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                tell(&told[0], &event);
                assert_int_equal(smv_fork(client, parent, &how, &fork), 0);
                assert_int_equal(fork, parent + 1);
                read_all(client, parent, told, 2);
                printf("# forked at token %u\n", told[1].first - told[0].first);
                assert_int_equal(told[1].first + told[1].token_count,
                                 told[0].first + told[0].token_count);
                assert_memory_equal(told[1].tokens, told[0].tokens + told[1].first - told[0].first,
                                    told[1].token_count * sizeof(uint32_t));
                assert_int_equal(told[0].end.parts_flags, SMV_PARTS_LIMIT);
                assert_int_equal(told[1].end.parts_flags, SMV_PARTS_LIMIT);
                free_told(&told[0]);
                free_told(&told[1]);
                free(told);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* The stream has the only slot, and cannot end while nobody reads its ring. */
static void a_preempted_stream_keeps_its_limit(void **state)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask(), other = make_ask();
        struct smv_client *slow, *client;
        struct told plain, told = { 0 }, quick;
        uint32_t stream;

        start_chat_model_with(fixture, THINKING, "1");
        slow = connect_over(fixture, SMV_TRANSPORT_RING);
        client = connect_over(fixture, SMV_TRANSPORT_RING);
        options.max_tokens = 1500;
        options.priority = SMV_PRIORITY_BACKGROUND;
        options.reasoning_max = 1200;
        options.parts = 1;
        plain = ask(client, &options);
        assert_int_equal(smv_generate(slow, &options, &stream), 0);
        assert_int_equal(smv_next(slow, &event, TIMEOUT_MS), 1);
        tell(&told, &event);
        other.priority = SMV_PRIORITY_INTERACTIVE;
        quick = ask(client, &other);
        read_all(slow, stream, &told, 1);
        assert_true(told.end.preemptions > 0);
        assert_int_equal(told.token_count, plain.token_count);
        assert_memory_equal(told.tokens, plain.tokens, told.token_count * sizeof(*told.tokens));
        assert_int_equal(told.tokens[1200], '<');
        assert_int_equal(told.end.parts_flags, SMV_PARTS_LIMIT);
        free_told(&plain);
        free_told(&told);
        free_told(&quick);
        smv_close(slow);
        smv_close(client);
        fixture_stop(fixture);
}

/* Reasoning is free text, and the constraint holds behind the end that was written. */
static void a_constraint_holds_behind_reasoning_that_was_ended(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask();
        struct smv_client *client;
        struct told told;

        start_chat_model(fixture, THINKING);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        options.allowed_tokens = NULL;
        options.allowed_token_count = 0;
        options.parts = 1;
        options.constraint = "{\"choices\": [\"left\", \"right\"]}";
        options.reasoning_max = 6;
        options.reasoning_end = "Well: ";
        told = ask(client, &options);
        assert_int_equal(told.end.reason, SMV_END_EOS);
        assert_int_equal(told.end.parts_flags, SMV_PARTS_LIMIT);
        assert_non_null(strstr(told.rig.shown, "Well: \""));
        assert_non_null(strstr(told.rig.shown, "left") ? strstr(told.rig.shown, "left")
                                                       : strstr(told.rig.shown, "right"));
        free_told(&told);
        smv_close(client);
        fixture_stop(fixture);
}

static void the_command_limits_reasoning(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        start_chat_model(fixture, THINKING);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "ask", "Hm?", "--max-tokens", "40", "--stats",
                  "--reasoning-max", "0", "--reasoning-end", "No more.");
        assert_int_equal(ran.status, 0);
        assert_memory_equal(ran.out, "No more.</think>", 16);
        assert_non_null(strstr(ran.err, "reasoning: ended by --reasoning-max"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void refuses_a_limit_for_a_model_that_has_no_reasoning(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct daemon_fixture *fixture = *state;
        struct smv_generate options = make_ask();
        struct smv_client *client;
        uint32_t stream;

        start_chat_model(fixture, CHATML);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        options.reasoning_max = 10;
        assert_int_not_equal(smv_generate(client, &options, &stream), 0);
        smv_error(client, &problem);
        assert_int_equal(problem.code, SMV_BAD_VALUE);
        assert_string_equal(problem.field, "reasoning_max");
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "SAMOVAR", "TOY_MODEL_MAKER", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(reasoning_ends_at_its_limit_over_each_transport),
                DAEMON_TEST(a_limit_of_0_ends_reasoning_at_once),
                DAEMON_TEST(guesses_along_the_limit_change_nothing),
                DAEMON_TEST(each_of_several_answers_has_the_limit),
                DAEMON_TEST(a_fork_keeps_the_limit_of_its_parent),
                DAEMON_TEST(a_preempted_stream_keeps_its_limit),
                DAEMON_TEST(a_constraint_holds_behind_reasoning_that_was_ended),
                DAEMON_TEST(the_command_limits_reasoning),
                DAEMON_TEST(refuses_a_limit_for_a_model_that_has_no_reasoning),
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
