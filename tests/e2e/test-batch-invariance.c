/*
 * A stream's tokens depend on the stream alone: not on the other streams, nor on how its prompt was
 * cut into steps, on the number of threads, or on the number of plans in flight.  Fourteen requests
 * are sent one by one to an idle daemon.  Then they come in fifty random mixes, at random moments,
 * over several connections, some cancelled half-way.  Each answer is compared with the first one,
 * bit by bit.  Then the same with daemons that step differently.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define WANTS        14
#define CONNECTIONS  3
#define REQUESTS_MAX 8 /* requests of one mix, at most */

static char prompts[WANTS][320];
static struct want wants[WANTS];
static struct stream *reference[WANTS]; /* from the first daemon, one at a time */

static const struct want shapes[WANTS] = {
        { .prompt_bytes = 1, .max_tokens = 40, .ignore_eos = true },
        { .prompt_bytes = 15, .max_tokens = 1 },
        { .prompt_bytes = 16, .max_tokens = 33, .ignore_eos = true, .logprobs = 6 },
        { .prompt_bytes = 17, .max_tokens = 80, .temperature = 0.8, .seed = 11 },
        { .prompt_bytes = 300, .max_tokens = 50, .ignore_eos = true },
        { .prompt_bytes = 299, .max_tokens = 5, .temperature = 1.5, .seed = 12, .logprobs = 1 },
        { .prompt_bytes = 64,
          .max_tokens = 120,
          .temperature = 1,
          .seed = 13,
          .top_k = 5,
          .logprobs = 33 },
        { .prompt_bytes = 130, .max_tokens = 60, .temperature = 1, .seed = 14, .top_p = 0.7 },
        { .prompt_bytes = 31, .max_tokens = 90, .temperature = 2, .seed = 15, .min_p = 0.1 },
        { .prompt_bytes = 200,
          .max_tokens = 100,
          .temperature = 1,
          .seed = 13,
          .stop = "a",
          .logprobs = 2 },
        { .prompt_bytes = 48, .max_tokens = 100, .temperature = 1.1, .seed = 16, .stop = ". " },
        { .prompt_bytes = 255, .max_tokens = 70, .as_ids = true, .ignore_eos = true },
        { .prompt_bytes = 140, .max_tokens = 90, .ignore_eos = true, .penalised = true },
        { .prompt_bytes = 40,
          .max_tokens = 80,
          .temperature = 1.2,
          .seed = 17,
          .logprobs = 4,
          .penalised = true },
};

static void write_prompts(void)
{
        static const char words[] = "once upon a time there was a samovar and all the guests ";

        for (size_t i = 0; i < WANTS; i++) {
                wants[i] = shapes[i];
                for (size_t j = 0; j < shapes[i].prompt_bytes; j++)
                        prompts[i][j] = words[(j + 7 * i) % (sizeof(words) - 1)];
                wants[i].prompt = prompts[i];
        }
}

struct mixed_request {
        size_t want, client;
        const char *priority;
        /* relative to the start of the mix; cancel_ms 0: never cancelled */
        uint64_t start_ms, cancel_ms;
        uint32_t id; /* 0: not sent yet */
        bool cancelled, over;
};

static void draw_request(struct mixed_request *mixed)
{
        static const char *const priorities[] = { NULL, "interactive", "normal", "background" };

        *mixed = (struct mixed_request){ .want = random_below(WANTS),
                                         .client = random_below(CONNECTIONS),
                                         .priority = priorities[random_below(4)] };
        if (random_below(2))
                mixed->start_ms = random_below(30);
        if (!random_below(4))
                mixed->cancel_ms = mixed->start_ms + 1 + random_below(40);
}

static void advance(struct mixed_request *mixed, struct raw_client *client, uint64_t passed_ms,
                    struct stream *const *alone)
{
        const struct reply *reply;
        struct stream *stream;

        if (!mixed->id) {
                struct want want = wants[mixed->want];

                want.priority = mixed->priority;
                if (passed_ms >= mixed->start_ms)
                        mixed->id = raw_client_generate(client, &want);
                return;
        }
        if (mixed->cancel_ms && !mixed->cancelled && passed_ms >= mixed->cancel_ms) {
                mixed->cancelled = true;
                raw_client_send_frame(client, "op=s id=u stream=u", "cancel", ++client->last_id,
                                      mixed->id);
        }
        reply = raw_client_find_reply(client, mixed->id);
        if (reply && !reply->ok) {
                if (reply->code != SMV_CANCELLED || !mixed->cancelled)
                        fail_msg("refused: %s", reply->message);
                mixed->over = true;
                return;
        }
        stream = raw_client_stream(client, mixed->id);
        if (!stream || !stream->ended)
                return;
        mixed->over = true;
        if (mixed->cancelled && stream->end.reason == SMV_END_CANCELLED)
                assert_prefix_stream(stream, alone[mixed->want]);
        else
                assert_same_stream(stream, alone[mixed->want]);
}

static void mix(struct raw_client **clients, struct stream *const *alone)
{
        struct mixed_request mixed_requests[REQUESTS_MAX];
        uint32_t count = 2 + random_below(REQUESTS_MAX - 1), over = 0;
        uint64_t start = now_ms();

        for (uint32_t i = 0; i < count; i++)
                draw_request(&mixed_requests[i]);
        while (over < count) {
                if (now_ms() - start > 60000)
                        fail_msg("%s", "a stream does not end");
                for (uint32_t i = 0; i < count; i++) {
                        if (mixed_requests[i].over)
                                continue;
                        advance(&mixed_requests[i], clients[mixed_requests[i].client],
                                now_ms() - start, alone);
                        over += mixed_requests[i].over;
                }
                raw_clients_poll(clients, CONNECTIONS, over < count ? 1 : 0);
        }
}

/* Over a ring the same is mixed, so fewer mixes are enough; under a sanitizer rows are
 * expensive. */
static uint32_t mixes_of(const struct daemon_fixture *fixture)
{
        uint32_t count = raw_client_transport() == RAW_CLIENT_SOCKET ? scaled(50, 200) : 25;

        return fixture->sanitized ? (count + 3) / 4 : count;
}

static void tell(struct daemon_fixture *fixture, struct raw_client **clients, uint32_t count)
{
        printf("# %u mixes: %u steps, %u rows, %u streams, %u preempted\n", count,
               (unsigned)fixture_status(fixture, "steps"),
               (unsigned)fixture_status(fixture, "rows"),
               (unsigned)fixture_status(fixture, "streams_ended"),
               (unsigned)fixture_status(fixture, "requests.preemptions"));
        for (size_t i = 0; i < CONNECTIONS; i++)
                raw_client_close(clients[i]);
}

/*
 * `crowded`: the count of status that must not be 0 at the end, or NULL.  Chance decides which
 * requests meet, so it may take more mixes until it is not 0.
 */
static void mixes(struct daemon_fixture *fixture, const char *crowded)
{
        uint32_t count = mixes_of(fixture), most = 20 * count, done = 0;
        struct stream *alone[WANTS];
        struct raw_client *clients[CONNECTIONS];

        for (size_t i = 0; i < CONNECTIONS; i++)
                clients[i] = raw_client_greet(fixture);
        for (size_t i = 0; i < WANTS; i++) {
                alone[i] = raw_client_complete(clients[i % CONNECTIONS], &wants[i]);
                assert_true(alone[i]->token_count > 0);
                if (!reference[i])
                        reference[i] = stream_copy(alone[i]);
                assert_same_stream(alone[i], reference[i]);
        }
        for (; done < count || (done < most && crowded && !fixture_status(fixture, crowded));
             done++)
                mix(clients, alone);
        if (crowded)
                assert_true(fixture_status(fixture, crowded) > 0);
        tell(fixture, clients, done);
        fixture_stop(fixture);
}

static void batched_streams_are_as_when_alone(void **state)
{
        START_DAEMON(*state, "--log-level", "warn");
        mixes(*state, NULL);
}

static void batched_streams_are_as_when_alone_with_two_plans_in_flight(void **state)
{
        START_DAEMON(*state, "--pipeline-depth", "2");
        mixes(*state, NULL);
}

static void batched_streams_are_as_when_alone_in_small_steps_on_one_thread(void **state)
{
        START_DAEMON(*state, "--step-tokens", "16", "--max-seqs", "4", "--threads", "1");
        mixes(*state, NULL);
}

static void batched_streams_are_as_when_alone_in_small_steps_with_two_plans(void **state)
{
        START_DAEMON(*state, "--step-tokens", "7", "--max-seqs", "7", "--threads", "2",
                     "--pipeline-depth", "2");
        mixes(*state, NULL);
}

static void batched_streams_are_as_when_alone_with_preemption(void **state)
{
        START_DAEMON(*state, "--max-seqs", "1", "--step-tokens", "16");
        mixes(*state, "requests.preemptions");
}

static void batched_streams_are_as_when_alone_with_preemption_and_two_plans(void **state)
{
        START_DAEMON(*state, "--max-seqs", "1", "--step-tokens", "16", "--pipeline-depth", "2");
        mixes(*state, "requests.preemptions");
}

/* The pool has 25 blocks, and the longest requests need 22; so most mixes do not fit. */
#define SMALL_POOL "--kv-bytes", "409600", "--preempt-target", "50"

static void batched_streams_are_as_when_alone_in_a_pool_that_runs_full(void **state)
{
        START_DAEMON(*state, SMALL_POOL, "--threads", "1");
        mixes(*state, "requests.blocks_lost");
}

static void batched_streams_are_as_when_alone_in_a_full_pool_with_two_plans(void **state)
{
        START_DAEMON(*state, SMALL_POOL, "--threads", "1", "--pipeline-depth", "2");
        mixes(*state, "requests.blocks_lost");
}

static int forget(void **state)
{
        (void)state;
        for (size_t i = 0; i < WANTS; i++)
                stream_free(reference[i]);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(batched_streams_are_as_when_alone),
                DAEMON_TEST(batched_streams_are_as_when_alone_with_two_plans_in_flight),
                DAEMON_TEST(batched_streams_are_as_when_alone_in_small_steps_on_one_thread),
                DAEMON_TEST(batched_streams_are_as_when_alone_in_small_steps_with_two_plans),
                DAEMON_TEST(batched_streams_are_as_when_alone_with_preemption),
                DAEMON_TEST(batched_streams_are_as_when_alone_with_preemption_and_two_plans),
                DAEMON_TEST(batched_streams_are_as_when_alone_in_a_pool_that_runs_full),
                DAEMON_TEST(batched_streams_are_as_when_alone_in_a_full_pool_with_two_plans),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        random_begin();
        write_prompts();
        return cmocka_run_group_tests(tests, NULL, forget);
}
