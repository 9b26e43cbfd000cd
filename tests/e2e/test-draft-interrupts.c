/*
 * Streams with drafts that are cut: cancelled or forked in the middle, or stalled because their
 * client does not read.  Afterwards a daemon without drafts computes each of them again, and the
 * answers must be the same.  The streams that are cut do not end by themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/draft-requests.h"
#include "tests/e2e/raw-client.h"

#define STREAMS  12u
#define TOGETHER 4u

/* The prompts of the quick model, whose tokens are bytes. */
static const struct draft_model letters = { .least = 97, .tokens = 26 };
static const struct draft_stop no_stop = { .token = UINT32_MAX };

/* A request that does not end by itself: nothing in it ends it, and some token is always legal. */
static struct smv_generate endless(uint32_t number)
{
        struct smv_generate ask = draft_request(&letters, number, &no_stop);

        ask.max_tokens = ENDLESS;
        ask.clamp = 0;
        ask.ignore_eos = 1;
        ask.constraint = NULL;
        ask.no_repeat_ngram = 0;
        ask.banned_text_count = 0;
        ask.n = 1;
        return ask;
}

static void start(struct daemon_fixture *fixture, const char *draft, const char *depth)
{
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--max-seqs", "8", "--draft", draft,
                             "--pipeline-depth", depth);
}

static void begin_cuts(struct smv_client *client, struct cut *cuts, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                struct smv_generate ask;

                cuts[i] = (struct cut){ .number = random_below(1u << 30),
                                        .most = random_below(4) ? random_below(150)
                                                                : random_below(4) };
                ask = endless(cuts[i].number);
                assert_int_equal(smv_generate(client, &ask, &cuts[i].stream), 0);
        }
}

/* The same up to as many tokens. */
static void assert_as_computed(struct smv_client *client, const struct cut *cut)
{
        struct smv_generate ask = endless(cut->number);
        struct answer whole;

        ask.max_tokens = cut->answer.count + 1;
        whole = answer_alone(client, &ask, ask.sample_index);
        assert_int_equal(whole.end.reason, SMV_END_LENGTH);
        assert_int_equal(whole.end.prompt_tokens, cut->answer.end.prompt_tokens);
        assert_begins_answer(&cut->answer, &whole, "cut", cut->number);
        assert_int_equal(cut->answer.end.output_tokens, cut->answer.count);
        answer_clear(&whole);
}

static uint64_t tell(const struct daemon_fixture *fixture, const char *what)
{
        uint64_t drafted = fixture_status(fixture, "drafted");

        print_message("# %s: %llu tokens guessed, %llu of them rightly, %llu drawn\n", what,
                      (unsigned long long)drafted,
                      (unsigned long long)fixture_status(fixture, "drafts_right"),
                      (unsigned long long)fixture_status(fixture, "tokens_out"));
        return drafted;
}

static void cancel_some(struct daemon_fixture *fixture, const char *depth)
{
        struct cut cuts[STREAMS];
        struct smv_client *client;
        uint64_t drafted;

        start(fixture, "auto", depth);
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        for (uint32_t i = 0; i < STREAMS; i += TOGETHER) {
                begin_cuts(client, cuts + i, TOGETHER);
                run_cuts(client, cuts + i, TOGETHER);
        }
        smv_close(client);
        drafted = tell(fixture, "cancelled");
        assert_true(drafted || depth[0] == '2');
        fixture_stop(fixture);
        start(fixture, "off", "1");
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t i = 0; i < STREAMS; i++) {
                assert_as_computed(client, &cuts[i]);
                answer_clear(&cuts[i].answer);
        }
        smv_close(client);
        fixture_stop(fixture);
}

static void cancelled_streams_are_the_beginning_of_whole_ones(void **state)
{
        cancel_some(*state, "1");
}

static void cancelled_streams_are_the_same_with_two_plans_in_flight(void **state)
{
        cancel_some(*state, "2");
}

/* ---- forks ---- */

struct family {
        struct cut of[3]; /* the parent, a fork that draws as it does, and one with another seed */
};

/* Begins the parent, forks it after some tokens, and cancels all. */
static void run_family(struct smv_client *client, struct family *family)
{
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 1 };
        struct cut *parent = &family->of[0];
        struct smv_generate ask;

        /* The penalty for tokens of the answer does not find those before the fork. */
        do {
                parent->number = random_below(1u << 30);
                ask = endless(parent->number);
        } while (ask.frequency_penalty > 0);
        ask.min_tokens = 0;
        *parent = (struct cut){ .number = parent->number, .most = 100 + random_below(100) };
        assert_int_equal(smv_generate(client, &ask, &parent->stream), 0);
        answer_read(client, &parent->answer, 1 + random_below(90));
        for (uint32_t i = 1; i < 3; i++) {
                family->of[i] =
                        (struct cut){ .number = parent->number, .most = 1 + random_below(100) };
                fork.sample_index = ask.sample_index;
                fork.seed = i == 2 ? 77 : 0; /* 0: that of the parent */
                assert_int_equal(smv_fork(client, parent->stream, &fork, &family->of[i].stream), 0);
        }
        run_cuts(client, family->of, 3);
}

/* The tokens of prompt and parent before the fork are the prompt now. */
static void check_fork(struct smv_client *client, const struct cut *parent, const struct cut *fork,
                       bool has_seed)
{
        struct smv_generate ask = endless(parent->number);
        uint32_t own = fork->answer.end.prompt_tokens, given = (uint32_t)ask.token_count;
        uint32_t *tokens = calloc(own, sizeof(*tokens));
        struct answer whole;

        assert_non_null(tokens);
        assert_true(own >= given && own - given <= parent->answer.count);
        memcpy(tokens, ask.tokens, given * sizeof(*tokens));
        if (own > given)
                memcpy(tokens + given, parent->answer.tokens, (own - given) * sizeof(*tokens));
        ask.tokens = tokens;
        ask.token_count = own;
        ask.max_tokens = fork->answer.count + 1;
        ask.min_tokens = 0;
        ask.seed = has_seed ? 77 : ask.seed;
        whole = answer_alone(client, &ask, ask.sample_index);
        assert_int_equal(whole.count, fork->answer.count + 1);
        for (uint32_t i = 0; i < fork->answer.count; i++)
                if (fork->answer.tokens[i] != whole.tokens[i])
                        fail_msg("a fork of request %u%s, after %u tokens and %u: another token",
                                 parent->number, has_seed ? " with a seed" : "", own - given, i);
        answer_clear(&whole);
        free(tokens);
}

static void check_family(struct smv_client *client, const struct family *family)
{
        const struct answer *parent = &family->of[0].answer, *same = &family->of[1].answer;
        uint32_t before = same->end.prompt_tokens - parent->end.prompt_tokens;

        assert_as_computed(client, &family->of[0]);
        for (uint32_t i = 0; i < same->count && before + i < parent->count; i++)
                assert_int_equal(same->tokens[i], parent->tokens[before + i]);
        /* A fork goes on with its parent's state of mirostat, which a prompt does not have. */
        if (endless(family->of[0].number).mirostat_tau > 0)
                return;
        check_fork(client, &family->of[0], &family->of[1], false);
        check_fork(client, &family->of[0], &family->of[2], true);
}

static void forks_in_the_middle_are_as_without_drafts(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct family families[STREAMS];
        struct smv_client *client;

        start(fixture, "auto", "1");
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        for (uint32_t i = 0; i < STREAMS; i++)
                run_family(client, &families[i]);
        smv_close(client);
        assert_true(tell(fixture, "forked"));
        fixture_stop(fixture);
        start(fixture, "off", "1");
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t i = 0; i < STREAMS; i++) {
                check_family(client, &families[i]);
                for (uint32_t j = 0; j < 3; j++)
                        answer_clear(&families[i].of[j].answer);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- readers that stop ---- */

/* More than a ring of 64 KiB and a socket hold. */
static struct smv_generate lengthy(uint32_t number)
{
        struct smv_generate ask = endless(number);

        ask.max_tokens = LONG_LOGPROBS;
        ask.set |= SMV_SET_LOGPROBS;
        ask.logprobs = LOGPROBS_MOST - 1;
        return ask;
}

/* Stalls at the beginning, and again after some tokens were read, which make space for a few. */
static struct answer read_slowly(const struct daemon_fixture *fixture, uint32_t number)
{
        struct smv_client *client = draft_connect(fixture, SMV_TRANSPORT_RING, 65536);
        struct smv_generate ask = lengthy(number);
        struct answer answer = { 0 };
        uint32_t stream;

        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        for (uint32_t i = 0; i < 12; i++) {
                fixture_await_status(fixture, "requests.stalled", 1);
                answer_read(client, &answer, answer.count + 1 + random_below(i % 2 ? 8 : 100));
        }
        answer_read(client, &answer, UINT32_MAX);
        smv_close(client);
        return answer;
}

static void stalled_streams_are_as_without_drafts(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct answer answers[3], whole;
        uint32_t numbers[3];
        struct smv_client *client;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--draft", "auto", "--ring-bytes", "64K");
        for (uint32_t i = 0; i < 3; i++) {
                numbers[i] = random_below(1u << 30);
                answers[i] = read_slowly(fixture, numbers[i]);
        }
        assert_true(tell(fixture, "stalled"));
        fixture_stop(fixture);
        START_QUICK_DAEMON(fixture, "--threads", "1", "--draft", "off");
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t i = 0; i < 3; i++) {
                struct smv_generate ask = lengthy(numbers[i]);

                whole = answer_alone(client, &ask, ask.sample_index);
                assert_same_answer(&answers[i], &whole, "stalled", numbers[i]);
                answer_clear(&whole);
                answer_clear(&answers[i]);
        }
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(cancelled_streams_are_the_beginning_of_whole_ones),
                DAEMON_TEST(cancelled_streams_are_the_same_with_two_plans_in_flight),
                DAEMON_TEST(forks_in_the_middle_are_as_without_drafts),
                DAEMON_TEST(stalled_streams_are_as_without_drafts),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
