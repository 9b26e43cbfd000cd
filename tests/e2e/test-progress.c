/*
 * Progress: records that say how much of a prompt is read.  They tell the truth, they change no
 * token, and they take no space that tokens need.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/honest-client.h"

#define PROMPT 1000u
#define STEP   64u

/* An idle daemon reads STEP tokens in each step. */
#define FEW_ROWS MANY_CONNECTS, "--threads", "1", "--max-seqs", "8", "--step-tokens", "64"

static uint32_t tokens[PROMPT];

static int fill_prompt(void **state)
{
        random_prompt(tokens, PROMPT);
        return fixture_set_up(state);
}

#define PROGRESS_TEST(name) cmocka_unit_test_setup_teardown(name, fill_prompt, fixture_tear_down)

static uint32_t ask(struct raw_client *client, const uint32_t *prompt, size_t count, bool progress,
                    uint32_t n)
{
        uint32_t id = client->last_id + 1;

        client->last_id += n;
        raw_client_send_frame(client,
                              "op=s id=u tokens=I max_tokens=u ignore_eos=y n=u seed=u progress=y",
                              "generate", id, prompt, count, 20, 1, n, 7, progress);
        return id;
}

static void says_how_much_of_the_prompt_is_read_in_each_step(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct stream *stream;

        START_QUICK_DAEMON(fixture, FEW_ROWS);
        client = raw_client_greet(fixture);
        stream = raw_client_await_end(client, ask(client, tokens, PROMPT, true, 1));
        assert_int_equal(stream->progress_count, (PROMPT + STEP - 1) / STEP);
        assert_int_equal(stream->progress.prompt_tokens, PROMPT);
        assert_int_equal(stream->progress.cached_tokens, 0);
        assert_int_equal(stream->progress.prefilled, PROMPT);

        /* The beginning is cached now, and counts from the first record on. */
        tokens[PROMPT - 100] ^= 1;
        stream = raw_client_await_end(client, ask(client, tokens, PROMPT, true, 1));
        assert_int_equal(stream->progress_count, 2);
        assert_int_equal(stream->progress.cached_tokens, stream->end.cached_tokens);
        assert_int_equal(stream->progress.prefilled, PROMPT);

        stream = raw_client_await_end(client, ask(client, tokens, PROMPT, false, 1));
        assert_int_equal(stream->progress_count, 0);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void changes_no_token(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct stream *plain;
        uint32_t id;

        START_DAEMON(fixture, FEW_ROWS);
        client = raw_client_greet(fixture);
        plain = stream_copy(raw_client_await_end(client, ask(client, tokens, PROMPT, false, 1)));
        /* Read anew, beside others that read, too. */
        tokens[0] ^= 1;
        (void)ask(client, tokens, PROMPT, true, 3);
        tokens[0] ^= 1;
        id = ask(client, tokens, PROMPT, true, 2);
        for (uint32_t i = 0; i < 2; i++) {
                struct stream *stream = raw_client_await_end(client, id + i);

                assert_true(stream->progress_count > 0);
                assert_int_equal(stream->progress.prefilled, PROMPT);
                if (!i)
                        assert_memory_equal(stream->tokens, plain->tokens,
                                            plain->token_count * sizeof(uint32_t));
        }
        for (uint32_t i = 1; i <= 3; i++)
                assert_int_equal(raw_client_await_end(client, id - i)->end.code, SMV_OK);
        stream_free(plain);
        raw_client_close(client);
        fixture_stop(fixture);
}

/*
 * A step a token makes more records than the ring takes.  Those beyond three quarters of it are
 * left out, so that tokens find room when nobody reads.
 */
static void leaves_space_for_tokens_in_a_ring_that_nobody_reads(void **state)
{
        const size_t ring_bytes = SMV_RING_BYTES_MIN, record_bytes = 32, prompt = 3000;
        uint32_t *lengthy = malloc(prompt * sizeof(*lengthy)), id = 9;
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct stream *stream;

        random_prompt(lengthy, prompt);
        START_ENDLESS_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--max-seqs", "1",
                             "--step-tokens", "1", "--ring-bytes", "65536");
        client = raw_client_greet_over(fixture, RAW_CLIENT_KICK);
        raw_client_send_frame(client, "op=s id=u tokens=I max_tokens=u ignore_eos=y progress=y",
                              "generate", id, lengthy, prompt, 5000, 1, 1);
        fixture_await_status(fixture, "requests.stalled", 1);
        stream = raw_client_await_end(client, id);
        assert_int_equal(stream->token_count, 5000);
        assert_true(stream->progress_count > 0);
        assert_true(stream->progress_count * record_bytes <= ring_bytes * 3 / 4);
        assert_true(stream->progress.prefilled < prompt);
        free(lengthy);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void is_refused_for_a_stream_that_is_stored(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct reply *reply;

        START_QUICK_DAEMON(fixture, FEW_ROWS);
        client = raw_client_greet(fixture);
        reply = raw_client_call(client, "op=s prompt=s keep_ms=u progress=y", "generate", "Once",
                                1000, 1);
        assert_int_equal(reply->code, SMV_BAD_FIELD);
        assert_string_equal(reply->field, "progress");
        raw_client_close(client);
        fixture_stop(fixture);
}

static void the_library_has_an_event_for_each_record(void **state)
{
        struct smv_connect where = { SMV_SIZE(smv_connect) };
        struct smv_generate options = { SMV_SIZE(smv_generate), .tokens = tokens,
                                        .token_count = PROMPT,  .max_tokens = 3,
                                        .ignore_eos = 1,        .progress = 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        uint32_t count = 0, made = 0, last = 0, stream;
        struct smv_client *client = NULL;

        START_QUICK_DAEMON(fixture, FEW_ROWS);
        where.socket = fixture->socket;
        assert_int_equal(smv_connect(&where, &client), 0);
        assert_int_equal(smv_generate(client, &options, &stream), 0);
        while (smv_next(client, &event, TIMEOUT_MS) > 0 && event.kind != SMV_EVENT_END) {
                assert_int_equal(event.stream, stream);
                assert_int_equal(event.sequence, count + made);
                if (event.kind == SMV_EVENT_TOKENS) {
                        made++;
                        continue;
                }
                assert_int_equal(event.kind, SMV_EVENT_PROGRESS);
                assert_int_equal(made, 0);
                assert_int_equal(event.prompt_tokens, PROMPT);
                assert_int_equal(event.cached_tokens, 0);
                assert_true(event.prefilled > last);
                last = event.prefilled;
                count++;
        }
        assert_int_equal(event.kind, SMV_EVENT_END);
        assert_int_equal(count, (PROMPT + STEP - 1) / STEP);
        assert_int_equal(last, PROMPT);
        assert_int_equal(made, 3);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                PROGRESS_TEST(says_how_much_of_the_prompt_is_read_in_each_step),
                PROGRESS_TEST(changes_no_token),
                PROGRESS_TEST(leaves_space_for_tokens_in_a_ring_that_nobody_reads),
                PROGRESS_TEST(is_refused_for_a_stream_that_is_stored),
                PROGRESS_TEST(the_library_has_an_event_for_each_record),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
