/*
 * Streams that ask beside others, and under settings by which daemons step differently.  A stream
 * does not wait for the clients of others, and its tokens are the same as alone.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"

#define OTHERS 20u
#define MANY   64u
#define TOKENS 60u

static struct smv_generate plain(uint64_t seed, uint32_t tokens)
{
        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .prompt = "The samovar",
                                      .max_tokens = tokens,
                                      .temperature = 1,
                                      .seed = seed,
                                      .ignore_eos = 1,
                                      .set = SMV_SET_SEED | SMV_SET_TEMPERATURE };
}

static struct smv_generate asking(uint64_t seed, uint32_t tokens, enum smv_ask ask)
{
        struct smv_generate how = plain(seed, tokens);

        how.ask = ask;
        how.ask_ms = 600000;
        return how;
}

/* Keeps the last question open while `arg` is true. */
static void answer_unless_held(struct smv_client *client, struct asked *asked,
                               const struct smv_event *event)
{
        const bool *held = asked->arg;

        if (*held && asked->token_count >= 5)
                return;
        if (event->ask == SMV_ASK_MASK)
                assert_int_equal(smv_answer_mask(client, asked->stream, NULL, 0), 0);
        else
                assert_int_equal(smv_answer_token(client, asked->stream, SMV_TOKEN_AS_DRAWN), 0);
}

static void answer_now(struct smv_client *client, const struct asked *asked)
{
        if (asked->ask == SMV_ASK_MASK)
                assert_int_equal(smv_answer_mask(client, asked->stream, NULL, 0), 0);
        else
                assert_int_equal(smv_answer_token(client, asked->stream, SMV_TOKEN_AS_DRAWN), 0);
}

static void run_others(const struct daemon_fixture *fixture, const struct asked *alone)
{
        struct smv_client *clients[4];
        struct asked others[OTHERS] = { { 0 } };

        for (size_t i = 0; i < 4; i++)
                clients[i] = question_connect(fixture, 0, false);
        for (uint32_t i = 0; i < OTHERS; i++) {
                const struct smv_generate how = plain(i, TOKENS);

                asked_begin(clients[i % 4], &how, &others[i]);
        }
        for (uint32_t i = 0; i < 4; i++) {
                struct asked own[OTHERS / 4] = { { 0 } };

                for (uint32_t j = 0; j < OTHERS / 4; j++)
                        own[j] = others[i + 4 * j];
                asked_hear(clients[i], own, OTHERS / 4);
                for (uint32_t j = 0; j < OTHERS / 4; j++) {
                        assert_same_answer(&alone[i + 4 * j], &own[j]);
                        asked_free(&own[j]);
                }
                smv_close(clients[i]);
        }
}

static void no_other_stream_waits_for_an_open_question(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct asked alone[OTHERS] = { { 0 } }, open[2] = { { 0 } };
        struct smv_client *client;
        bool held = true;

        START_DAEMON(fixture, "--threads", "1", MANY_CONNECTS);
        client = question_connect(fixture, 2, false);
        for (uint32_t i = 0; i < OTHERS; i++) {
                const struct smv_generate how = plain(i, TOKENS);

                asked_run(client, &how, &alone[i]);
        }
        for (uint32_t i = 0; i < 2; i++) {
                const struct smv_generate how = asking(i, TOKENS, question_kinds[i]);

                open[i].answer = answer_unless_held;
                open[i].arg = &held;
                asked_begin(client, &how, &open[i]);
        }
        while (!open[0].is_open || !open[1].is_open ||
               open[0].token_count + open[1].token_count < 10)
                assert_non_null(asked_hear_one(client, open, 2, TIMEOUT_MS));
        run_others(fixture, alone);
        /* Nothing has happened to them. */
        assert_null(asked_hear_one(client, open, 2, 0));
        held = false;
        for (uint32_t i = 0; i < 2; i++)
                answer_now(client, &open[i]);
        asked_hear(client, open, 2);
        for (uint32_t i = 0; i < 2; i++) {
                assert_same_answer(&alone[i], &open[i]);
                asked_free(&open[i]);
        }
        for (uint32_t i = 0; i < OTHERS; i++)
                asked_free(&alone[i]);
        smv_close(client);
        fixture_stop(fixture);
}

/* Answers one open question, any of them; false: there is none. */
static bool answer_any(struct smv_client *client, struct asked *asked, bool *waits, uint32_t count)
{
        uint32_t from = random_below(count);

        for (uint32_t i = 0; i < count; i++) {
                uint32_t at = (from + i) % count;

                if (!waits[at])
                        continue;
                waits[at] = false;
                answer_now(client, &asked[at]);
                return true;
        }
        return false;
}

/* Reads all of them, and answers their questions in any order, some of them much later. */
static void hear_in_any_order(struct smv_client *client, struct asked *asked, uint32_t count)
{
        bool waits[MANY] = { false };
        uint32_t left = count;

        while (left) {
                bool later = random_below(3) > 0;
                struct asked *one = asked_hear_one(client, asked, count, 0);

                if (!one && !answer_any(client, asked, waits, count))
                        one = asked_hear_one(client, asked, count, TIMEOUT_MS);
                if (!one)
                        continue;
                if (one->is_open)
                        waits[one - asked] = true;
                if (one->ended)
                        left--;
                if (!later)
                        answer_any(client, asked, waits, count);
        }
}

/* Begins and compares `count` streams; every fourth one asks nothing. */
static void compare_many(struct smv_client *client, uint32_t count, uint32_t tokens,
                         const struct asked *alone, struct asked *asked)
{
        for (uint32_t i = 0; i < count; i++) {
                struct smv_generate how =
                        i % 4 == 3 ? plain(i, tokens) : asking(i, tokens, question_kinds[i % 2]);

                how.row_top = i % 3 ? 0 : 7;
                asked[i] = (struct asked){ .answer = answer_nothing };
                asked_begin(client, &how, &asked[i]);
        }
        hear_in_any_order(client, asked, count);
        for (uint32_t i = 0; i < count; i++)
                assert_same_answer(&alone[i], &asked[i]);
}

static void run_alone(struct smv_client *client, uint32_t count, uint32_t tokens,
                      struct asked *alone)
{
        for (uint32_t i = 0; i < count; i++) {
                const struct smv_generate how = plain(i, tokens);

                asked_run(client, &how, &alone[i]);
        }
}

static void free_all(struct asked *asked, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                asked_free(&asked[i]);
}

static void many_streams_may_ask_at_once(void **state)
{
        static struct asked alone[MANY], asked[MANY];
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = question_connect(fixture, MANY, false);
        run_alone(client, MANY, TOKENS, alone);
        for (uint32_t round = 0; round < 2; round++) {
                compare_many(client, MANY, TOKENS, alone, asked);
                free_all(asked, MANY);
        }
        free_all(alone, MANY);
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- preemption ---- */

/* Streams of three priorities need several times the pool. */
static void preempted_streams_that_ask_have_the_same_tokens(void **state)
{
        static struct asked alone[24], asked[24];
        struct daemon_fixture *fixture = *state;
        uint32_t preemptions = 0, of_asking = 0;
        struct smv_client *client;

        /* The quick model has blocks of 512 bytes: 128 of them. */
        START_DAEMON(fixture, "--model", make_quick_model(fixture, "2048"), "--kv-bytes", "64K",
                     "--max-seqs", "16", "--threads", "1", "--preempt-target", "50");
        client = question_connect(fixture, 24, false);
        run_alone(client, 24, 500, alone);
        for (uint32_t i = 0; i < 24; i++) {
                struct smv_generate how =
                        i % 4 == 3 ? plain(i, 500) : asking(i, 500, question_kinds[i % 2]);

                how.priority = i % 3;
                asked[i] = (struct asked){ .answer = answer_nothing };
                asked_begin(client, &how, &asked[i]);
        }
        hear_in_any_order(client, asked, 24);
        for (uint32_t i = 0; i < 24; i++) {
                assert_same_answer(&alone[i], &asked[i]);
                preemptions += asked[i].end.preemptions;
                of_asking += asked[i].ask ? asked[i].end.preemptions : 0;
        }
        printf("# %u preemptions, %u of streams that ask\n", preemptions, of_asking);
        assert_true(of_asking > 0);
        free_all(asked, 24);
        free_all(alone, 24);
        smv_close(client);
        fixture_stop(fixture);
}

/*
 * A pool of 128 blocks.  Three streams of 39 blocks each wait for their client; then another stream
 * outgrows the rest.
 */
struct full_pool {
        struct daemon_fixture *fixture;
        struct smv_client *client;
        uint32_t prompt[39 * 16 - 8];
        struct asked alone[4], all[4]; /* the last one is the other stream */
};

static struct smv_generate of_full_pool(struct full_pool *pool, uint32_t number, bool asks)
{
        struct smv_generate how = plain(number, number < 3 ? 20 : 400);

        if (number == 3)
                return how;
        pool->prompt[0] = number;
        how.prompt = NULL;
        how.tokens = pool->prompt;
        how.token_count = sizeof(pool->prompt) / sizeof(*pool->prompt);
        how.priority = SMV_PRIORITY_BACKGROUND;
        how.ask = asks ? SMV_ASK_TOKEN : SMV_ASK_NOTHING;
        how.ask_ms = asks ? 600000 : 0;
        return how;
}

static void fill_pool(struct full_pool *pool, struct daemon_fixture *fixture)
{
        *pool = (struct full_pool){ .fixture = fixture };
        for (size_t i = 0; i < sizeof(pool->prompt) / sizeof(*pool->prompt); i++)
                pool->prompt[i] = 'a' + (uint32_t)(i * i % 26);
        START_DAEMON(fixture, "--model", make_quick_model(fixture, "2048"), "--kv-bytes", "64K",
                     "--max-seqs", "16", "--threads", "1");
        pool->client = question_connect(fixture, 3, false);
        for (uint32_t i = 0; i < 4; i++) {
                const struct smv_generate how = of_full_pool(pool, i, false);

                asked_run(pool->client, &how, &pool->alone[i]);
        }
        for (uint32_t i = 0; i < 3; i++) {
                const struct smv_generate how = of_full_pool(pool, i, true);

                pool->all[i].answer = answer_nothing;
                asked_begin(pool->client, &how, &pool->all[i]);
                while (!pool->all[i].is_open)
                        assert_non_null(asked_hear_one(pool->client, pool->all, 3, TIMEOUT_MS));
        }
}

/* The questions are answered, and all streams end as alone. */
static void empty_pool(struct full_pool *pool)
{
        for (uint32_t i = 0; i < 3; i++) {
                pool->all[i].answer = NULL;
                answer_now(pool->client, &pool->all[i]);
        }
        asked_hear(pool->client, pool->all, 4);
        for (uint32_t i = 0; i < 4; i++)
                assert_same_answer(&pool->alone[i], &pool->all[i]);
        free_all(pool->alone, 4);
        free_all(pool->all, 4);
        smv_close(pool->client);
        fixture_stop(pool->fixture);
}

/* The other stream ends while all questions are open: one of these streams loses its blocks. */
static void a_stream_whose_token_is_with_its_client_gives_blocks_to_others(void **state)
{
        struct full_pool pool;
        struct smv_generate how;

        fill_pool(&pool, *state);
        how = of_full_pool(&pool, 3, false);
        how.priority = SMV_PRIORITY_INTERACTIVE;
        asked_begin(pool.client, &how, &pool.all[3]);
        while (!pool.all[3].ended)
                assert_non_null(asked_hear_one(pool.client, pool.all, 4, TIMEOUT_MS));
        for (uint32_t i = 0; i < 3; i++)
                assert_true(pool.all[i].is_open && !pool.all[i].token_count);
        assert_true(fixture_status(pool.fixture, "requests.blocks_lost") > 0);
        empty_pool(&pool);
}

/* It comes after the streams that ask, so it may have to wait for their answers. */
static void a_stream_that_comes_after_open_questions_ends_when_they_are_answered(void **state)
{
        struct full_pool pool;
        struct smv_generate how;

        fill_pool(&pool, *state);
        how = of_full_pool(&pool, 3, false);
        how.priority = SMV_PRIORITY_BACKGROUND;
        asked_begin(pool.client, &how, &pool.all[3]);
        while (!pool.all[3].ended && asked_hear_one(pool.client, pool.all, 4, 200))
                ;
        printf("# it has %u tokens\n", pool.all[3].token_count);
        empty_pool(&pool);
}

/* With one slot of the scheduler, an interactive request has to preempt the stream that asks. */
static void a_stream_that_asks_is_preempted_by_a_more_urgent_one(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1", "--max-seqs", "1");
        client = question_connect(fixture, 1, false);
        for (size_t i = 0; i < 2; i++) {
                struct asked alone[2] = { { 0 } }, both[2] = { { 0 } };
                struct smv_generate slow = plain(1, TOKENS), urgent = plain(2, 5);

                urgent.priority = SMV_PRIORITY_INTERACTIVE;
                asked_run(client, &slow, &alone[0]);
                asked_run(client, &urgent, &alone[1]);
                slow = asking(1, TOKENS, question_kinds[i]);
                slow.priority = SMV_PRIORITY_BACKGROUND;
                both[0].answer = answer_nothing;
                asked_begin(client, &slow, &both[0]);
                while (both[0].token_count < 10) {
                        if (asked_hear_one(client, both, 1, TIMEOUT_MS)->is_open)
                                answer_now(client, &both[0]);
                }
                while (!both[0].is_open)
                        assert_non_null(asked_hear_one(client, both, 1, TIMEOUT_MS));
                answer_now(client, &both[0]);
                asked_begin(client, &urgent, &both[1]);
                both[0].answer = NULL;
                asked_hear(client, both, 2);
                for (size_t j = 0; j < 2; j++) {
                        assert_same_answer(&alone[j], &both[j]);
                        asked_free(&alone[j]);
                        asked_free(&both[j]);
                }
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- daemons that step differently ---- */

/* What must be the same in each of them: masks, tokens, lists, rows. */
static void check_questions(struct daemon_fixture *fixture)
{
        static const uint32_t allowed[] = { 'a', 'e', 'n', 't', ' ' };
        static struct asked alone[16], asked[16];
        uint32_t mask[MASK_WORDS_MOST] = { 0 };
        struct smv_client *client = question_connect(fixture, 16, true);
        struct asked greedy = { 0 }, chosen = { .answer = answer_likeliest };
        struct smv_generate how;

        run_alone(client, 16, 40, alone);
        compare_many(client, 16, 40, alone, asked);
        free_all(asked, 16);
        for (size_t i = 0; i < 5; i++)
                mask_set(mask, allowed[i]);
        how = plain(1, 40);
        how.allowed_tokens = allowed;
        how.allowed_token_count = 5;
        asked_run(client, &how, &alone[0]);
        how = asking(1, 40, SMV_ASK_MASK);
        asked[0] = (struct asked){ .answer = answer_fixed, .arg = mask };
        asked_run(client, &how, &asked[0]);
        assert_same_answer(&alone[0], &asked[0]);
        how = plain(1, 40);
        how.temperature = 0;
        asked_run(client, &how, &greedy);
        how = asking(1, 40, SMV_ASK_TOKEN);
        how.whole_row = 1;
        asked_run(client, &how, &chosen);
        assert_same_answer(&greedy, &chosen);
        asked_free(&greedy);
        asked_free(&chosen);
        free_all(asked, 16);
        free_all(alone, 16);
        smv_close(client);
}

static void questions_are_the_same_however_the_daemon_steps(void **state)
{
        static const char *const settings[][8] = {
                { "--pipeline-depth", "2" },
                { "--max-seqs", "1" },
                { "--max-seqs", "1", "--pipeline-depth", "2", "--step-tokens", "1" },
                { "--max-seqs", "4", "--step-tokens", "4", "--pipeline-depth", "2" },
                { "--max-seqs", "4", "--kv-bytes", "512K", "--preempt-target", "50" },
                { "--backend", "ref" },
                { "--backend", "ref", "--pipeline-depth", "2", "--max-seqs", "3" },
                { "--batching", "dynamic", "--batch-size", "3", "--batch-window-ms", "1" },
        };
        struct daemon_fixture *fixture = *state;

        for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
                const char *const *more = settings[i];

                printf("# %s %s %s %s\n", more[0], more[1], more[2] ? more[2] : "",
                       more[3] ? more[3] : "");
                START_DAEMON(fixture, "--threads", "1", more[0], more[1], more[2], more[3], more[4],
                             more[5]);
                check_questions(fixture);
                fixture_stop(fixture);
        }
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(no_other_stream_waits_for_an_open_question),
                DAEMON_TEST(many_streams_may_ask_at_once),
                DAEMON_TEST(preempted_streams_that_ask_have_the_same_tokens),
                DAEMON_TEST(a_stream_whose_token_is_with_its_client_gives_blocks_to_others),
                DAEMON_TEST(a_stream_that_comes_after_open_questions_ends_when_they_are_answered),
                DAEMON_TEST(a_stream_that_asks_is_preempted_by_a_more_urgent_one),
                DAEMON_TEST(questions_are_the_same_however_the_daemon_steps),
        };

        require_env_paths(needed);
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
