/* The data that a resumable stream has besides its tokens, and streams forked from it while it
 * runs. */
#include <errno.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define CHILD_TOKENS 300u
#define EACH         33u /* logprobs of a token, the chosen one included */
#define CHILDREN     2u

struct received {
        uint32_t stream, from, count; /* from: the position of the first */
        uint32_t *tokens;
        struct smv_logprob *logprobs;
        size_t logprob_count;
        struct smv_event end;
};

static void free_received(struct received *streams_read, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                free(streams_read[i].tokens);
                free(streams_read[i].logprobs);
        }
}

static struct smv_client *connect_library(const struct daemon_fixture *fixture)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                  .transport = raw_client_transport() == RAW_CLIENT_SOCKET
                                                       ? SMV_TRANSPORT_SOCKET
                                                       : SMV_TRANSPORT_RING };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

/* Appends these to those that are there. */
static void *join(void *to, size_t count, const void *more, size_t more_count, size_t size)
{
        uint8_t *at = realloc(to, (count + more_count) * size + 1);

        assert_non_null(at);
        if (more_count)
                memcpy(at + count * size, more, more_count * size);
        return at;
}

static void note(struct received *streams_read, const struct smv_event *event)
{
        size_t entries = event->logprobs ? event->token_count * (1 + event->top_count) : 0;

        if (event->kind == SMV_EVENT_END) {
                streams_read->end = *event;
                return;
        }
        if (!streams_read->count)
                streams_read->from = event->position;
        streams_read->tokens = join(streams_read->tokens, streams_read->count, event->tokens,
                                    event->token_count, sizeof(*streams_read->tokens));
        streams_read->count += (uint32_t)event->token_count;
        streams_read->logprobs = join(streams_read->logprobs, streams_read->logprob_count,
                                      event->logprobs, entries, sizeof(*streams_read->logprobs));
        streams_read->logprob_count += entries;
}

/* Reads one event of any of these streams. */
static void receive_one(struct smv_client *client, struct received *streams_read, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t which = 0;

        assert_int_equal(smv_next(client, &event, 60000), 1);
        while (which < count && streams_read[which].stream != event.stream)
                which++;
        assert_true(which < count);
        note(&streams_read[which], &event);
}

static void receive_all(struct smv_client *client, struct received *streams_read, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                while (streams_read[i].end.kind != SMV_EVENT_END)
                        receive_one(client, streams_read, count);
}

static void assert_same(const struct received *a, const struct received *b)
{
        assert_int_equal(a->end.reason, b->end.reason);
        assert_int_equal(a->from, b->from);
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->tokens, b->tokens, a->count * sizeof(uint32_t));
        assert_int_equal(a->logprob_count, b->logprob_count);
        assert_memory_equal(a->logprobs, b->logprobs, a->logprob_count * sizeof(*a->logprobs));
}

static void attach_repeats_tokens_and_logprobs_unchanged(void **state)
{
        struct received first = { 0 }, again = { 0 }, plain = { 0 };
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once upon a time",
                                    .max_tokens = 100,      .set = SMV_SET_TEMPERATURE,
                                    .ignore_eos = 1,        .logprobs = EACH - 1,
                                    .keep_ms = 60000 };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client, *other;
        uint64_t resume_id;

        START_DAEMON(fixture, NULL);
        client = connect_library(fixture);
        assert_int_equal(smv_generate(client, &ask, &first.stream), 0);
        resume_id = smv_resume_id(client, first.stream);
        receive_all(client, &first, 1);
        assert_int_equal(first.count, 100);
        assert_int_equal(first.logprob_count, 100 * EACH);

        other = connect_library(fixture);
        assert_int_equal(smv_attach(other, resume_id, 0, &again.stream), 0);
        receive_all(other, &again, 1);
        assert_same(&first, &again);
        assert_int_equal(smv_drop(other, resume_id), 0);

        ask.keep_ms = 0;
        assert_int_equal(smv_generate(client, &ask, &plain.stream), 0);
        receive_all(client, &plain, 1);
        assert_same(&first, &plain);
        free_received(&first, 1);
        free_received(&again, 1);
        free_received(&plain, 1);
        smv_close(other);
        smv_close(client);
        fixture_stop(fixture);
}

/* Sends the same tokens up to there as a whole, with the same sample index. */
static void replay(struct smv_client *client, const struct smv_generate *ask,
                   const struct received *parent, const struct received *child,
                   uint32_t sample_index)
{
        uint32_t shared = child->from - (uint32_t)ask->token_count, *tokens;
        struct smv_generate again = *ask;
        struct received whole = { 0 };

        assert_true(shared <= parent->count);
        tokens = join(NULL, 0, ask->tokens, ask->token_count, sizeof(*tokens));
        tokens = join(tokens, ask->token_count, parent->tokens, shared, sizeof(*tokens));
        again.tokens = tokens;
        again.token_count = child->from;
        again.max_tokens = CHILD_TOKENS;
        again.sample_index = sample_index;
        again.keep_ms = 0;
        assert_int_equal(smv_generate(client, &again, &whole.stream), 0);
        receive_all(client, &whole, 1);
        assert_int_equal(whole.count, CHILD_TOKENS);
        assert_same(&whole, child);
        free_received(&whole, 1);
        free(tokens);
}

static void forks_of_a_resumable_stream_are_not_resumable(void **state)
{
        static const uint32_t ids[] = { 'O', 'n', 'c', 'e', ' ', 'u', 'p', 'o', 'n' };
        struct smv_generate ask = { SMV_SIZE(smv_generate),
                                    .tokens = ids,
                                    .token_count = 9,
                                    .max_tokens = ENDLESS,
                                    .temperature = 1,
                                    .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                                    .seed = 7,
                                    .ignore_eos = 1,
                                    .keep_ms = 60000 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = CHILDREN,
                                 .max_tokens = CHILD_TOKENS };
        struct received streams_read[1 + CHILDREN] = { 0 }, again = { 0 };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint32_t streams[CHILDREN];
        uint64_t resume_id;

        START_ENDLESS_DAEMON(fixture, "--uid-resumable-bytes", "1G");
        client = connect_library(fixture);
        assert_int_equal(smv_generate(client, &ask, &streams_read[0].stream), 0);
        resume_id = smv_resume_id(client, streams_read[0].stream);
        while (streams_read[0].count < 5)
                receive_one(client, streams_read, 1);
        assert_int_equal(smv_fork(client, streams_read[0].stream, &fork, streams), 0);
        for (uint32_t i = 0; i < CHILDREN; i++) {
                streams_read[1 + i].stream = streams[i];
                assert_true(!smv_resume_id(client, streams[i]));
        }
        assert_int_equal(smv_cancel(client, streams_read[0].stream), 0);
        receive_all(client, streams_read, 1 + CHILDREN);
        assert_int_equal(streams_read[0].end.reason, SMV_END_CANCELLED);
        for (uint32_t i = 0; i < CHILDREN; i++)
                replay(client, &ask, &streams_read[0], &streams_read[1 + i], 1 + i);
        assert_int_equal(smv_fork(client, streams_read[0].stream, &fork, streams), -EREMOTEIO);
        smv_close(client);

        client = connect_library(fixture);
        assert_int_equal(smv_attach(client, resume_id, 0, &again.stream), 0);
        receive_all(client, &again, 1);
        assert_same(&streams_read[0], &again);
        free_received(streams_read, 1 + CHILDREN);
        free_received(&again, 1);
        assert_int_equal(smv_drop(client, resume_id), 0);
        smv_close(client);
        fixture_stop(fixture);
}

static void frees_a_resumable_stream_and_its_forks_after_a_disconnect(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once", .max_tokens = ENDLESS,
                                    .ignore_eos = 1, .keep_ms = 1 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = CHILDREN };
        struct daemon_fixture *fixture = *state;
        uint32_t stream, streams[CHILDREN];
        struct smv_client *client;

        START_ENDLESS_DAEMON(fixture, "--uid-resumable-bytes", "1G");
        client = connect_library(fixture);
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        assert_int_equal(smv_fork(client, stream, &fork, streams), 0);
        smv_close(client);     /* a hang-up, as the kernel does it for a killed process */
        fixture_stop(fixture); /* nothing is left of any stream */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(attach_repeats_tokens_and_logprobs_unchanged),
                DAEMON_TEST(forks_of_a_resumable_stream_are_not_resumable),
                DAEMON_TEST(frees_a_resumable_stream_and_its_forks_after_a_disconnect),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
