/*
 * Forks that are refused, and the state after a client goes: refusals by name, all of several or
 * none, streams that stall or end meanwhile, handles whose stream is forked, and the library.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <samovar/client.h>

#include "tests/e2e/raw-client.h"

static const struct want endless = { .prompt = "Once upon a time",
                                     .max_tokens = ENDLESS,
                                     .temperature = 1,
                                     .seed = 3,
                                     .ignore_eos = true };

static void assert_refused(const struct reply *reply, enum smv_code code, const char *field)
{
        assert_false(reply->ok);
        if (reply->code != code)
                fail_msg("%s, not %u", reply->message, code);
        assert_string_equal(reply->field, field);
}

/* Begins a stream and waits until its first token has come. */
static uint32_t begin_endless(struct raw_client *client)
{
        uint32_t id = raw_client_generate(client, &endless);

        assert_true(raw_client_await_reply(client, id)->ok);
        while (!raw_client_stream(client, id))
                raw_client_poll(client, 100);
        return id;
}

/* Forks with ids from `id` on, and waits for the reply. */
static struct reply *fork_stream(struct raw_client *client, uint32_t stream, uint32_t count,
                                 uint32_t max_tokens)
{
        uint32_t id = client->last_id + 1;

        client->last_id += count;
        raw_client_send_frame(client, "op=s id=u stream=u count=u max_tokens=u", "fork", id, stream,
                              count, max_tokens);
        return raw_client_await_reply(client, id);
}

static void cancel(struct raw_client *client, uint32_t id)
{
        assert_true(raw_client_call(client, "op=s stream=u", "cancel", id)->ok);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
}

static void refuses_invalid_forks_and_names_the_field(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        struct reply *reply;
        uint32_t id, first;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--uid-requests", "6");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        id = begin_endless(client);
        assert_refused(raw_client_call(client, "op=s stream=u count=u", "fork", id + 1, 1u),
                       SMV_NO_STREAM, "stream");
        assert_refused(raw_client_call(other, "op=s stream=u count=u", "fork", id, 1u),
                       SMV_NO_STREAM, "stream");
        assert_refused(raw_client_call(client, "op=s stream=u count=u", "fork", id, 0u),
                       SMV_BAD_VALUE, "count");
        assert_refused(raw_client_call(client, "op=s stream=u count=u handle=q", "fork", id, 1u,
                                       UINT64_C(1)),
                       SMV_BAD_FIELD, "stream");
        assert_refused(raw_client_call(client, "op=s count=u", "fork", 1u), SMV_MISSING, "handle");
        assert_refused(
                raw_client_call(client, "op=s stream=u count=u prompt=s", "fork", id, 1u, "x"),
                SMV_BAD_FIELD, "prompt");
        reply = raw_client_call(client, "op=s stream=u count=u sample_index=u", "fork", id, 2u,
                                UINT32_MAX);
        assert_refused(reply, SMV_BAD_VALUE, "sample_index");
        reply = fork_stream(client, id, 1, 48561);
        assert_refused(reply, SMV_TOO_LONG, "max_tokens");
        assert_string_equal(reply->message,
                            "the stream may have 1000016 tokens by then and max_tokens "
                            "is 48561; together they may be " CONTEXT_LONG);

        /* All or none.  A refused fork uses up no sample index, and the reply has the id of the
         * request. */
        assert_refused(fork_stream(client, id, 6, 10), SMV_QUOTA, "");
        assert_int_equal(raw_client_status(client, "requests.open"), 1);
        reply = fork_stream(client, id, 5, 48560);
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "sample_index"), 1);
        first = (uint32_t)reply->id;
        raw_client_send_frame(client, "op=s id=u stream=u count=u", "fork", first + 4, id, 1u);
        assert_refused(raw_client_await_reply(client, first + 4), SMV_DUP_ID, "id");
        raw_client_send_frame(client, "op=s id=u prompt=s n=u", "generate", id - 1, "x", 2u);
        assert_refused(raw_client_await_reply(client, id - 1), SMV_DUP_ID, "id");
        cancel(client, id);
        assert_refused(raw_client_call(client, "op=s stream=u count=u", "fork", id, 1u),
                       SMV_NO_STREAM, "stream");
        for (uint32_t i = 0; i < 5; i++)
                cancel(client, first + i);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/* The stream had its tokens before the fork; a fork with the same sample index has the rest. */
static void assert_goes_on(const struct stream *whole, const struct stream *fork, uint32_t prompt)
{
        uint32_t at = fork->end.prompt_tokens - prompt;

        assert_true(fork->end.prompt_tokens >= prompt);
        assert_int_equal(at + fork->token_count, whole->token_count);
        assert_memory_equal(fork->tokens, whole->tokens + at, fork->token_count * sizeof(uint32_t));
        assert_int_equal(fork->end.reason, whole->end.reason);
}

/* With its parent's sample index a fork repeats its parent's tokens, so a test can compare them. */
static uint32_t fork_with_same_draws(struct raw_client *client, uint32_t stream)
{
        uint32_t id = ++client->last_id;

        raw_client_send_frame(client, "op=s id=u stream=u count=u sample_index=u", "fork", id,
                              stream, 1u, 0u);
        return id;
}

/* With their log-probabilities each stream alone is more than a ring and a socket hold without a
 * reader. */
static void a_stalled_stream_is_forked_at_its_position(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct want want = endless;
        uint32_t ids[2], forks[2];
        struct stream *whole;
        struct raw_client *client, *other;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--ring-bytes", "65536");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        want.max_tokens = LONG_LOGPROBS;
        want.logprobs = LOGPROBS_MOST;
        whole = raw_client_complete(other, &want);
        for (uint32_t i = 0; i < 2; i++)
                ids[i] = raw_client_generate(client, &want);
        while (raw_client_status(other, "requests.stalled") < 2)
                sleep_ms(10);
        for (uint32_t i = 0; i < 2; i++)
                forks[i] = fork_with_same_draws(client, ids[i]);
        for (uint32_t i = 0; i < 2; i++) {
                assert_true(raw_client_await_reply(client, ids[i])->ok);
                assert_true(raw_client_await_reply(client, forks[i])->ok);
                assert_same_stream(raw_client_await_end(client, ids[i]), whole);
                assert_goes_on(whole, raw_client_await_end(client, forks[i]), 17);
        }
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/* There is one place: the first stream runs, and the second waits.  The third one's prompt is read
 * when it gets the place. */
static void a_waiting_request_is_forked_at_the_end_of_its_prompt(void **state)
{
        struct want waits = { .prompt = "Tea is", .max_tokens = 40, .seed = 4, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        uint32_t first, id, fork, deeper;
        struct raw_client *client, *other;
        struct stream *whole;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--max-seqs", "1");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        whole = raw_client_complete(other, &waits);
        first = begin_endless(client);
        id = raw_client_generate(client, &waits);
        fork = fork_with_same_draws(client, id);
        deeper = fork_with_same_draws(client, fork);
        assert_true(raw_client_await_reply(client, id)->ok);
        if (!raw_client_await_reply(client, fork)->ok) /* its prompt was still with the tokenizer */
                fork = fork_with_same_draws(client, id),
                deeper = fork_with_same_draws(client, fork);
        assert_true(raw_client_await_reply(client, deeper)->ok);
        cancel(client, first);
        assert_same_stream(raw_client_await_end(client, id), whole);
        assert_same_stream(raw_client_await_end(client, fork), whole);
        assert_same_stream(raw_client_await_end(client, deeper), whole);
        assert_int_equal(raw_client_await_end(client, fork)->end.prompt_tokens, 7);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/*
 * The tokenizer needs a while for this prompt: one of four streams is cancelled, then all four.
 * Another stream has the only place, so that none of them is done before.
 */
static void each_of_several_streams_is_cancelled_by_its_own_id(void **state)
{
        struct daemon_fixture *fixture = *state;
        char *text = calloc(1, 1700);
        struct raw_client *client, *other;
        struct reply *reply;
        uint32_t id, first;

        memset(text, 'a', 1699);
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--max-seqs", "1", "--stall-preempt-ms",
                             "3600000");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        for (uint32_t all = 0; all < 2; all++) {
                first = begin_endless(other);
                id = client->last_id + 1;
                client->last_id += 4;
                raw_client_send_frame(client,
                                      "op=s id=u prompt=s n=u max_tokens=u seed=u ignore_eos=y",
                                      "generate", id, text, 4u, 20u, 1u, 1);
                for (uint32_t i = 0; i < 4; i++)
                        if (all || i == 2)
                                raw_client_send_frame(client, "op=s id=u stream=u", "cancel",
                                                      ++client->last_id, id + i);
                reply = raw_client_await_reply(client, id);
                for (uint32_t i = 0; reply->ok && i < 4; i++)
                        if (all || i == 2)
                                assert_int_equal(raw_client_await_end(client, id + i)->end.reason,
                                                 SMV_END_CANCELLED);
                cancel(other, first);
                if (!reply->ok) {
                        assert_int_equal(reply->code, SMV_CANCELLED);
                        assert_true(all);
                }
                for (uint32_t i = 0; !all && i < 4; i++)
                        if (i != 2)
                                assert_int_equal(raw_client_await_end(client, id + i)->end.reason,
                                                 SMV_END_LENGTH);
        }
        free(text);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/* Forks on their way, forks of forks, parents just cancelled: a hang-up ends them in every
 * state. */
static void frees_everything_when_a_client_with_forks_disconnects(void **state)
{
        struct daemon_fixture *fixture = *state;

        struct want lengthy = endless;

        lengthy.max_tokens = 1500;
        START_DAEMON(fixture, "--threads", "1", "--uid-requests", "512");
        for (uint32_t i = 0; i < scaled(20, 2000); i++) {
                struct raw_client *client = raw_client_greet(fixture);
                uint32_t id = raw_client_generate(client, &lengthy);

                assert_true(raw_client_await_reply(client, id)->ok);
                if (random_below(2))
                        raw_client_poll(client, 5);
                for (uint32_t j = 0; j < random_below(6); j++) {
                        uint32_t fork = client->last_id + 1;

                        client->last_id += 3;
                        raw_client_send_frame(client, "op=s id=u stream=u count=u max_tokens=u",
                                              "fork", fork, id, 3u, 1 + random_below(20));
                        if (!random_below(3))
                                raw_client_send_frame(client, "op=s id=u stream=u", "cancel",
                                                      ++client->last_id, id);
                        id = fork + random_below(3);
                }
                if (random_below(2))
                        raw_client_poll(client, 3);
                raw_client_close(client);
        }
        fixture_await_rest(fixture);
        fixture_stop(fixture);
}

static void a_stream_of_a_handle_can_be_forked_and_its_busy_handle_cannot(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct stream *parent, *fork;
        uint32_t id, forked, at;
        struct raw_client *client;
        uint64_t handle;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        handle = reply_uint(raw_client_call(client, "op=s prompt=s", "open", "Tea"), "handle");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u handle=q max_tokens=u ignore_eos=y", "generate",
                              id, handle, ENDLESS, 1);
        while (!raw_client_stream(client, id))
                raw_client_poll(client, 100);
        assert_refused(raw_client_call(client, "op=s handle=q count=u", "fork", handle, 1u),
                       SMV_HANDLE_BUSY, "handle");
        forked = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u stream=u count=u sample_index=u max_tokens=u",
                              "fork", forked, id, 1u, 0u, 50u);
        assert_true(raw_client_await_reply(client, forked)->ok);
        fork = raw_client_await_end(client, forked);
        assert_int_equal(fork->token_count, 50);
        at = fork->end.prompt_tokens - 4;
        while (raw_client_stream(client, id)->token_count < at + 50)
                raw_client_poll(client, 100);
        cancel(client, id);
        parent = raw_client_stream(client, id);
        assert_memory_equal(fork->tokens, parent->tokens + at, 50 * sizeof(uint32_t));
        assert_int_equal(reply_uint(raw_client_call(client, "op=s handle=q tokens=I", "append",
                                                    handle, (uint32_t[]){ 65 }, (size_t)1),
                                    "length"),
                         4 + parent->token_count + 1);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* ---- the library ---- */

struct received {
        uint32_t stream, tokens[512], branched;
        size_t count;
        bool ended;
};

/* Reads one event, and adds it to the stream among these that it belongs to. */
static void receive_one(struct smv_client *client, struct received *received, size_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        size_t i = 0;

        assert_int_equal(smv_next(client, &event, -1), 1);
        while (i < count && received[i].stream != event.stream)
                i++;
        assert_true(i < count && received[i].count + event.token_count <= 512);
        if (event.kind == SMV_EVENT_TOKENS)
                memcpy(received[i].tokens + received[i].count, event.tokens,
                       event.token_count * sizeof(uint32_t));
        else
                received[i].branched = event.prompt_tokens;
        received[i].ended = event.kind == SMV_EVENT_END;
        received[i].count += event.kind == SMV_EVENT_TOKENS ? event.token_count : 0;
}

static void receive_all(struct smv_client *client, struct received *received, size_t count)
{
        for (size_t i = 0; i < count; i++)
                while (!received[i].ended)
                        receive_one(client, received, count);
}

static void receive_alone(struct smv_client *client, const struct smv_generate *options,
                          struct received *ret_heard)
{
        *ret_heard = (struct received){ .count = 0 };
        assert_int_equal(smv_generate(client, options, &ret_heard->stream), 0);
        receive_all(client, ret_heard, 1);
}

static void assert_same_tokens(const struct received *a, const struct received *b)
{
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->tokens, b->tokens, a->count * sizeof(uint32_t));
}

static struct smv_client *connect_library(const struct daemon_fixture *fixture)
{
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                     .transport = raw_client_transport() == RAW_CLIENT_SOCKET
                                                          ? SMV_TRANSPORT_SOCKET
                                                          : SMV_TRANSPORT_RING };
        struct smv_client *client;

        assert_int_equal(smv_connect(&where, &client), 0);
        return client;
}

static void the_library_generates_several_samples(void **state)
{
        struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Tea",
                                        .max_tokens = 30,       .seed = 5,
                                        .ignore_eos = 1,        .n = 3,
                                        .sample_index = 7 };
        struct received received[3] = { 0 }, alone;
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        assert_int_equal(smv_generate(client, &options, &received[0].stream), 0);
        received[1].stream = received[0].stream + 1;
        received[2].stream = received[0].stream + 2;
        receive_all(client, received, 3);
        options.n = 0;
        for (uint32_t i = 0; i < 3; i++, options.sample_index++) {
                receive_alone(client, &options, &alone);
                assert_same_tokens(&received[i], &alone);
        }
        assert_true(memcmp(received[0].tokens, received[1].tokens, sizeof(uint32_t) * 30));
        options.n = 65;
        assert_int_equal(smv_generate(client, &options, &received[0].stream), -EINVAL);
        smv_close(client);
        fixture_stop(fixture);
}

static void the_library_forks_a_stream(void **state)
{
        struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 500,
                                        .seed = 5, .ignore_eos = 1 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 2, .max_tokens = 20 };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct received received[3] = { 0 }, again;
        uint32_t streams[2], tokens[600] = { 256, 'T', 'e', 'a' };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        assert_int_equal(smv_generate(client, &options, &received[0].stream), 0);
        while (!received[0].count)
                receive_one(client, received, 1);
        assert_int_equal(smv_fork(client, received[0].stream, &fork, streams), 0);
        received[1].stream = streams[0];
        received[2].stream = streams[1];
        receive_all(client, received, 3);
        assert_int_equal(received[0].count, 500);
        assert_int_equal(received[1].branched, received[2].branched);

        /* The tokens up to the fork, sent as a whole, with the same draws. */
        memcpy(tokens + 4, received[0].tokens, sizeof(uint32_t) * 500);
        options = (struct smv_generate){
                SMV_SIZE(smv_generate), .tokens = tokens, .token_count = received[1].branched,
                .max_tokens = 20,       .seed = 5,        .ignore_eos = 1
        };
        for (uint32_t i = 1; i < 3; i++) {
                options.sample_index = i;
                receive_alone(client, &options, &again);
                assert_same_tokens(&received[i], &again);
        }

        assert_int_equal(smv_fork(client, received[0].stream, &fork, streams), -EREMOTEIO);
        smv_error(client, &problem);
        assert_int_equal(problem.code, SMV_NO_STREAM);
        assert_memory_equal(problem.message, "there is no running stream ", 27);
        fork.count = 0;
        assert_int_equal(smv_fork(client, received[0].stream, &fork, streams), -EINVAL);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(refuses_invalid_forks_and_names_the_field),
                DAEMON_TEST(a_stalled_stream_is_forked_at_its_position),
                DAEMON_TEST(a_waiting_request_is_forked_at_the_end_of_its_prompt),
                DAEMON_TEST(each_of_several_streams_is_cancelled_by_its_own_id),
                DAEMON_TEST(frees_everything_when_a_client_with_forks_disconnects),
                DAEMON_TEST(a_stream_of_a_handle_can_be_forked_and_its_busy_handle_cannot),
                DAEMON_TEST(the_library_generates_several_samples),
                DAEMON_TEST(the_library_forks_a_stream),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
