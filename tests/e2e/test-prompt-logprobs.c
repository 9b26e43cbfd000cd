/*
 * Log-probabilities of the tokens of a prompt.  They are those that the same tokens have as output,
 * bit by bit, and each comes exactly once, whatever happens to the request.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/honest-client.h"

#define PROMPT 300u
#define MADE   200u
#define TOP    5u

/* Less than the whole prompt in each step. */
#define FEW_ROWS MANY_CONNECTS, "--max-seqs", "8", "--step-tokens", "64"

static uint32_t tokens[2000];

static int fill_prompt(void **state)
{
        random_prompt(tokens, sizeof(tokens) / sizeof(*tokens));
        return fixture_set_up(state);
}

#define PROMPT_TEST(name) cmocka_unit_test_setup_teardown(name, fill_prompt, fixture_tear_down)

/* Fields of a request whose prompt is scored. */
struct ask {
        uint32_t max_tokens, top, n;
        const char *priority;
};

static uint32_t send_ask(struct raw_client *client, const uint32_t *prompt, size_t count,
                         const struct ask *ask)
{
        uint32_t n = ask->n ? ask->n : 1, id = client->last_id + 1;

        client->last_id += n;
        raw_client_send_frame(client,
                              "op=s id=u tokens=I max_tokens=u prompt_logprobs=u temperature=f "
                              "seed=u ignore_eos=y n=u priority=s",
                              "generate", id, prompt, count, ask->max_tokens, ask->top, 1.0, 7, 1,
                              n, ask->priority ? ask->priority : "normal");
        return id;
}

static struct stream *score(struct raw_client *client, const uint32_t *prompt, size_t count,
                            const struct ask *ask)
{
        struct stream *stream = raw_client_await_end(client, send_ask(client, prompt, count, ask));

        assert_int_equal(stream->end.code, SMV_OK);
        assert_int_equal(stream->token_count, ask->max_tokens);
        assert_int_equal(stream->score_count, count - 1);
        for (size_t i = 1; i < count; i++)
                assert_int_equal(stream->scores[(i - 1) * stream->scores_each].token, prompt[i]);
        return stream;
}

static void assert_same_scores(const struct stream *a, const struct stream *b)
{
        assert_int_equal(a->score_count, b->score_count);
        assert_int_equal(a->scores_each, b->scores_each);
        assert_memory_equal(a->scores, b->scores,
                            a->score_count * a->scores_each * sizeof(*a->scores));
}

/* ---- the numbers ---- */

static void check_against_output(const struct daemon_fixture *fixture)
{
        const struct ask only = { .top = TOP };
        struct raw_client *client = raw_client_greet(fixture);
        struct stream *made, *scored;
        uint32_t id = ++client->last_id;

        raw_client_send_frame(client,
                              "op=s id=u tokens=I max_tokens=u logprobs=u temperature=f seed=u "
                              "ignore_eos=y",
                              "generate", id, tokens, (size_t)PROMPT, MADE, TOP, 1.0, 7, 1);
        made = raw_client_await_end(client, id);
        assert_int_equal(made->token_count, MADE);
        memcpy(tokens + PROMPT, made->tokens, MADE * sizeof(*tokens));
        scored = score(client, tokens, PROMPT + MADE, &only);
        assert_int_equal(scored->end.reason, SMV_END_LENGTH);
        assert_int_equal(scored->end.cached_tokens, 0);
        assert_memory_equal(scored->scores + (PROMPT - 1) * scored->scores_each, made->logprobs,
                            MADE * (1 + TOP) * sizeof(*scored->scores));
        raw_client_close(client);
}

static void scores_of_a_prompt_are_those_of_the_same_tokens_as_output(void **state)
{
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, FEW_ROWS);
        check_against_output(fixture);
        fixture_stop(fixture);
        if (getenv("SMV_TEST_CUDA_LIBRARY"))
                return;
        START_DAEMON(fixture, FEW_ROWS, "--backend", "ref");
        check_against_output(fixture);
        fixture_stop(fixture);
}

static void output_after_scores_is_that_without(void **state)
{
        struct daemon_fixture *fixture = *state;
        const struct ask with = { .max_tokens = 30, .top = 0 };
        struct raw_client *client;
        struct stream *plain;
        uint32_t id;

        START_DAEMON(fixture, FEW_ROWS);
        client = raw_client_greet(fixture);
        id = ++client->last_id;
        raw_client_send_frame(client,
                              "op=s id=u tokens=I max_tokens=u temperature=f seed=u ignore_eos=y",
                              "generate", id, tokens, (size_t)PROMPT, 30, 1.0, 7, 1);
        plain = stream_copy(raw_client_await_end(client, id));
        assert_memory_equal(score(client, tokens, PROMPT, &with)->tokens, plain->tokens,
                            30 * sizeof(uint32_t));
        stream_free(plain);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Beside streams that decode, and other prompts that are scored, in steps cut in any way. */
static void scores_do_not_depend_on_other_streams(void **state)
{
        const struct ask asks[] = { { .top = 32 }, { .top = 0, .max_tokens = 40 }, { .top = 3 } };
        const struct want busy = { .prompt = "Once", .max_tokens = 300, .ignore_eos = true };
        struct stream *alone[3];
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t ids[9], others[6];

        START_DAEMON(fixture, FEW_ROWS);
        client = raw_client_greet(fixture);
        for (size_t i = 0; i < 3; i++)
                alone[i] = stream_copy(score(client, tokens + 40 * i, PROMPT, &asks[i]));
        for (size_t i = 0; i < 6; i++)
                others[i] = raw_client_generate(client, &busy);
        for (size_t i = 0; i < 9; i++)
                ids[i] = send_ask(client, tokens + 40 * (i % 3), PROMPT, &asks[i % 3]);
        for (size_t i = 0; i < 9; i++) {
                struct stream *stream = raw_client_await_end(client, ids[i]);

                assert_same_scores(stream, alone[i % 3]);
                assert_memory_equal(stream->tokens, alone[i % 3]->tokens,
                                    stream->token_count * sizeof(uint32_t));
        }
        for (size_t i = 0; i < 6; i++)
                assert_int_equal(raw_client_await_end(client, others[i])->token_count, 300);
        for (size_t i = 0; i < 3; i++)
                stream_free(alone[i]);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* ---- cached prompts, stalls, preemption ---- */

static void a_cached_prompt_is_computed_and_cached_again(void **state)
{
        const struct ask only = { .top = TOP };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct stream *first;
        uint32_t id;

        START_DAEMON(fixture, FEW_ROWS);
        client = raw_client_greet(fixture);
        first = score(client, tokens, PROMPT, &only);
        assert_same_scores(score(client, tokens, PROMPT, &only), first);
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u tokens=I max_tokens=u", "generate", id, tokens,
                              (size_t)PROMPT, 1);
        assert_int_equal(raw_client_await_end(client, id)->end.cached_tokens, PROMPT - 1);
        raw_client_close(client);
        fixture_stop(fixture);
}

/*
 * Its records are more than a ring and a socket take without a reader, so the request stops in the
 * middle of its prompt.  Another one takes its only slot.  It goes on where it was.
 */
static void a_preempted_prompt_has_each_score_once(void **state)
{
        enum { COUNT = 2000 };
        const struct ask all = { .top = 32, .priority = "background" };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        struct stream *stream, *again;
        uint32_t id;

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--max-seqs", "1", "--ring-bytes",
                     "65536", "--stall-preempt-ms", "0");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        id = send_ask(client, tokens, COUNT, &all);
        fixture_await_status(fixture, "requests.stalled", 1);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(raw_client_complete(other, &(struct want){ .prompt = "Tea",
                                                                            .max_tokens = 5,
                                                                            .ignore_eos = true })
                                         ->token_count,
                                 5);
        stream = raw_client_await_end(client, id);
        assert_int_equal(stream->end.code, SMV_OK);
        assert_true(stream->end.preemptions > 0);
        assert_int_equal(stream->score_count, COUNT - 1);
        again = score(other, tokens, COUNT, &all);
        assert_int_equal(again->end.preemptions, 0);
        assert_same_scores(stream, again);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/* ---- options ---- */

static void a_request_may_be_for_scores_only(void **state)
{
        const struct ask only = { .top = 1 }, several = { .top = 1, .n = 3 };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct reply *reply;
        uint32_t id;

        START_DAEMON(fixture, FEW_ROWS, "--threads", "1");
        client = raw_client_greet(fixture);
        /* One token has nothing before it. */
        assert_int_equal(score(client, tokens, 1, &only)->end.reason, SMV_END_LENGTH);
        assert_int_equal(score(client, tokens, 2, &only)->end.output_tokens, 0);
        /* As many as the context has. */
        assert_int_equal(score(client, tokens, 2000, &only)->end.code, SMV_OK);
        id = send_ask(client, tokens, 20, &several);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(raw_client_await_end(client, id + i)->score_count, 19);

        reply = raw_client_call(client, "op=s prompt=s max_tokens=u", "generate", "Once", 0);
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->message, "max_tokens is 0; it may be from 1 to 4294967295, or 0 "
                                            "with prompt_logprobs");
        reply = raw_client_call(client, "op=s stream=u count=u max_tokens=u", "fork", 1, 1, 0);
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_handle_is_scored_and_does_not_change(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct stream *stream;
        struct reply *reply;
        uint64_t handle;
        uint32_t id;

        START_DAEMON(fixture, FEW_ROWS, "--threads", "1");
        client = raw_client_greet(fixture);
        reply = raw_client_call(client, "op=s tokens=I", "open", tokens, (size_t)PROMPT);
        handle = reply_uint(reply, "handle");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u handle=q max_tokens=u prompt_logprobs=u",
                              "generate", id, handle, 0, 0);
        stream = raw_client_await_end(client, id);
        assert_int_equal(stream->score_count, PROMPT - 1);
        /* The next request on it may come at once. */
        reply = raw_client_call(client, "op=s handle=q tokens=I", "append", handle, tokens,
                                (size_t)1);
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "length"), PROMPT + 1);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Its records are paid for, stored, and sent again. */
static void a_resumable_stream_has_its_scores(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        struct stream *stream, *again;
        uint64_t resume_id;
        uint32_t id;

        START_DAEMON(fixture, FEW_ROWS, "--threads", "1");
        client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        other = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        id = ++client->last_id;
        raw_client_send_frame(client,
                              "op=s id=u tokens=I max_tokens=u prompt_logprobs=u ignore_eos=y "
                              "keep_ms=u",
                              "generate", id, tokens, (size_t)PROMPT, 10, 2, 1, 60000);
        resume_id = reply_uint(raw_client_await_reply(client, id), "resume_id");
        stream = raw_client_await_end(client, id);
        assert_int_equal(stream->score_count, PROMPT - 1);
        id = ++other->last_id;
        raw_client_send_frame(other, "op=s id=u resume_id=q", "attach", id, resume_id);
        again = raw_client_await_end(other, id);
        assert_same_scores(stream, again);
        assert_int_equal(again->token_count, 10);
        assert_true(raw_client_call(other, "op=s resume_id=q", "drop", resume_id)->ok);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

static void the_library_has_an_event_for_each_token(void **state)
{
        struct smv_connect where = { SMV_SIZE(smv_connect) };
        struct smv_generate options = { SMV_SIZE(smv_generate), .tokens = tokens,
                                        .token_count = PROMPT, .prompt_logprobs = 4,
                                        .set = SMV_SET_MAX_TOKENS };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client = NULL;
        uint32_t position = 1, stream;

        START_DAEMON(fixture, FEW_ROWS, "--threads", "1");
        where.socket = fixture->socket;
        assert_int_equal(smv_connect(&where, &client), 0);
        assert_int_equal(smv_generate(client, &options, &stream), 0);
        for (; smv_next(client, &event, TIMEOUT_MS) > 0 && event.kind != SMV_EVENT_END;
             position++) {
                assert_int_equal(event.kind, SMV_EVENT_PROMPT_LOGPROBS);
                assert_int_equal(event.position, position);
                assert_int_equal(event.token_count, 1);
                assert_int_equal(event.tokens[0], tokens[position]);
                assert_int_equal(event.top_count, 4);
                assert_int_equal(event.logprobs[0].token, tokens[position]);
                assert_true(event.logprobs[0].logprob <= event.logprobs[1].logprob);
                assert_int_equal(event.text_bytes, 0);
        }
        assert_int_equal(event.kind, SMV_EVENT_END);
        assert_int_equal(event.reason, SMV_END_LENGTH);
        assert_int_equal(position, PROMPT);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                PROMPT_TEST(scores_of_a_prompt_are_those_of_the_same_tokens_as_output),
                PROMPT_TEST(output_after_scores_is_that_without),
                PROMPT_TEST(scores_do_not_depend_on_other_streams),
                PROMPT_TEST(a_cached_prompt_is_computed_and_cached_again),
                PROMPT_TEST(a_preempted_prompt_has_each_score_once),
                PROMPT_TEST(a_request_may_be_for_scores_only),
                PROMPT_TEST(a_handle_is_scored_and_does_not_change),
                PROMPT_TEST(a_resumable_stream_has_its_scores),
                PROMPT_TEST(the_library_has_an_event_for_each_token),
        };

        const struct CMUnitTest numbers[] = {
                PROMPT_TEST(scores_of_a_prompt_are_those_of_the_same_tokens_as_output),
                PROMPT_TEST(scores_do_not_depend_on_other_streams),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        random_begin();
        /* The others do not depend on the backend, and an emulated GPU takes long for them. */
        if (getenv("SMV_TEST_CUDA_LIBRARY"))
                return cmocka_run_group_tests(numbers, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
