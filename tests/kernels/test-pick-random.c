/*
 * Picking among many, with any backend: `test-pick-random ref`, `test-pick-random cpu`,
 * `test-pick-random cpu c`.  Random rows and picks are compared with the definition
 * (ref-sampler.h). Where the kept ones end among equals, they are compared with results worked out
 * by hand. Random numbers come from a seed that is printed; SEED=... repeats a run.
 */
#include <stdio.h>
#include <time.h>

#include "tests/kernels/pick-fixture.h"
#include "tests/kernels/pick-rows.h"

#define VOCAB 128256u
#define WANTS 8u

static float logits[VOCAB];

static int open_bench(void **state)
{
        static struct fixture b;
        const char *seed = getenv("SEED");

        random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
        print_message("SEED=%llu\n", (unsigned long long)random_state);
        fixture_open(&b, VOCAB, WANTS);
        *state = &b;
        return 0;
}

static int close_bench(void **state)
{
        fixture_close(*state);
        return 0;
}

/* ---- random rows ---- */

/*
 * Avoids quotients that become 0 or infinite in floats: a logit difference, or 1, divided by
 * the temperature.
 */
static void keep_within_floats(enum row_kind kind, struct pick *pick)
{
        if (kind == WILD && pick->temperature > 1e30f)
                pick->temperature = 1e30f;
        if (kind == ZEROS && pick->temperature > 0 && pick->temperature < 1e-38f)
                pick->temperature = 1e-38f;
}

static void follow_random(struct fixture *b, uint32_t vocab, enum row_kind kind, uint32_t count)
{
        struct pick picks[4 * WANTS];

        random_row(logits, vocab, kind);
        for (uint32_t i = 0; i < count; i++) {
                picks[i] = random_pick(vocab);
                keep_within_floats(kind, &picks[i]);
        }
        follow(b, logits, vocab, picks, count);
}

static void picks_from_rows_of_all_kinds_match_the_definition(void **state)
{
        static const uint32_t vocabs[] = { 1,    2,    3,    31,   32,   33,   63,  64,
                                           65,   95,   127,  128,  129,  255,  999, 1000,
                                           1023, 1024, 1025, 2047, 4096, 8999, 9000 };

        for (size_t n = 0; n < sizeof(vocabs) / sizeof(vocabs[0]); n++)
                for (uint32_t kind = 0; kind < ROW_KINDS; kind++)
                        for (uint32_t times = vocabs[n] < 300 ? 4 : 1; times; times--)
                                follow_random(*state, vocabs[n], (enum row_kind)kind, 4 * WANTS);
}

static void picks_from_large_vocabularies_match_the_definition(void **state)
{
        for (uint32_t kind = 0; kind < ROW_KINDS; kind++)
                follow_random(*state, VOCAB - kind % 3 * 29, (enum row_kind)kind, WANTS);
}

/* ---- many that all count ---- */

/* Nearly even: thousands of candidates are kept, and no few of them decide. */
static void cuts_that_keep_thousands_match_the_definition(void **state)
{
        static const float top_ps[] = { 0.999f, 0.9f, 0.5f, 0.1f };
        static const float min_ps[] = { 0.02f, 0.2f, 0.6f, 0.9f };
        static const uint32_t vocabs[] = { 9000, VOCAB };
        struct pick picks[4 * WANTS];

        for (size_t n = 0; n < 2; n++) {
                uint32_t vocab = vocabs[n];

                for (uint32_t i = 0; i < vocab; i++)
                        logits[i] = random_normal();
                for (uint32_t i = 0; i < 4 * WANTS; i++) {
                        picks[i] = pick_drawn(i & 1 ? 1 : 4, i, random_next());
                        if (i & 2)
                                picks[i].top_k = i & 4 ? 5000 : vocab - 7;
                        if (i % 3 != 1)
                                picks[i].top_p = top_ps[random_below(4)];
                        if (i % 3 != 2)
                                picks[i].min_p = min_ps[random_below(4)];
                }
                follow(*state, logits, vocab, picks, 4 * WANTS);
        }
}

/* ---- ends among equals ---- */

/*
 * Makes a row with one token that is as likely as nine of the others, and with others that are
 * equal, with masked blocks between them.  Returns the number of equals and their ids in order.
 */
static uint32_t put_equals(uint32_t vocab, uint32_t above, uint32_t *ret_ids)
{
        uint32_t equals = 0;

        for (uint32_t i = 0; i < vocab; i++) {
                bool masked = i / BLOCK % 5 == 2 || i / SPAN % 7 == 3;

                logits[i] = masked ? -INFINITY : 0.75f;
                if (i == above)
                        logits[i] = 0.75f + logf(9);
                else if (!masked)
                        ret_ids[equals++] = i;
        }
        return equals;
}

/* Expects the token if it is kept, and another one otherwise. */
static void expect_aimed(struct fixture *b, uint32_t vocab, struct pick pick, uint32_t token,
                         bool kept)
{
        uint32_t drawn;

        ref_sampler_aim(&b->ref_sampler, &pick, token);
        drawn = pick_one(b, logits, vocab, pick);
        if ((drawn == token) != kept)
                fail_msg("vocab %u top_k %u top_p %.9g min_p %.9g: token %u when %u was aimed at",
                         vocab, pick.top_k, pick.top_p, pick.min_p, drawn, token);
}

/* The likelier token is kept, and `kept` of the equals. */
static void expect_kept(struct fixture *b, uint32_t vocab, struct pick pick, const uint32_t *ids,
                        uint32_t equals, uint32_t above, uint32_t kept)
{
        expect_aimed(b, vocab, pick, above, true);
        if (kept)
                expect_aimed(b, vocab, pick, ids[kept - 1], true);
        if (kept < equals)
                expect_aimed(b, vocab, pick, ids[kept], false);
}

static void a_cut_among_equal_logits_keeps_the_lowest_ids(void **state)
{
        static const uint32_t vocabs[] = { 40, 333, 9000, VOCAB };
        static uint32_t ids[VOCAB];
        struct fixture *b = *state;

        for (size_t n = 0; n < sizeof(vocabs) / sizeof(vocabs[0]); n++) {
                uint32_t vocab = vocabs[n], above = n & 1 ? vocab - 1 : 7;
                uint32_t equals = put_equals(vocab, above, ids);
                const uint32_t counts[] = { 1,          2,          31,         32,    33,
                                            equals / 3, equals / 2, equals - 1, equals };

                ref_sampler_load(&b->ref_sampler, logits, vocab);
                for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                        struct pick pick = pick_plain(1);
                        uint32_t kept = counts[i];

                        if (kept > equals)
                                continue;
                        /* in the middle of the last one that is kept */
                        pick.top_p = (float)((9 + kept - 0.5) / (9 + equals));
                        expect_kept(b, vocab, pick, ids, equals, above, kept);
                        pick.min_p = 0.11f;
                        expect_kept(b, vocab, pick, ids, equals, above, kept);
                        pick.min_p = 0.112f;
                        expect_kept(b, vocab, pick, ids, equals, above, 0);
                        pick = pick_plain(1);
                        pick.top_k = 1 + kept;
                        expect_kept(b, vocab, pick, ids, equals, above, kept);
                        pick.top_p = (float)((9 + kept / 2 + 0.5) / (9 + kept));
                        expect_kept(b, vocab, pick, ids, equals, above, kept / 2 + 1);
                }
        }
}

/* A row whose logits fall from id to id, so slowly that each one counts. */
static void cuts_keep_exactly_the_defined_number_of_tokens(void **state)
{
        /* the sum of the chances of the first tokens, by their number */
        static long double until[9001];
        struct fixture *b = *state;
        const uint32_t vocab = 9000;

        for (uint32_t i = 0; i < vocab; i++) {
                logits[i] = -1.2f * logf((float)(i + 1));
                until[i + 1] = until[i] + expl(logits[i]);
        }
        ref_sampler_load(&b->ref_sampler, logits, vocab);
        for (uint32_t kept = 1; kept < vocab; kept += kept < 70 ? 1 : 197) {
                long double half = expl(logits[kept - 1]) / 2;
                struct pick picks[4] = { pick_plain(1), pick_plain(1), pick_plain(1),
                                         pick_plain(1) };

                picks[0].top_k = kept;
                picks[1].top_p = (float)((until[kept] - half) / until[vocab]);
                picks[2].min_p = expf((logits[kept - 1] + logits[kept]) / 2);
                picks[3].top_k = kept * 2; /* and top_p of these */
                picks[3].top_p =
                        (float)((until[kept] - half) / until[kept * 2 < vocab ? kept * 2 : vocab]);
                for (uint32_t i = 0; i < 4; i++) {
                        expect_aimed(b, vocab, picks[i], kept - 1, true);
                        expect_aimed(b, vocab, picks[i], kept, false);
                }
        }
}

/* No token is that likely; of the likeliest ones the first is kept. */
static void min_p_above_1_keeps_only_the_first_of_the_largest(void **state)
{
        static const uint32_t vocabs[] = { 33, 1000, 9000, VOCAB };
        const struct pick picks[] = {
                { .temperature = 1, .top_p = 1, .min_p = 1.5f },
                { .temperature = 2, .top_p = 0.9f, .min_p = 1.001f },
                { .temperature = 1, .top_p = 1, .min_p = 2, .top_k = 5000 },
                { .temperature = 1, .top_p = 0.9f, .min_p = 1.5f, .top_k = 900 },
        };
        uint32_t tokens[4];

        for (size_t n = 0; n < sizeof(vocabs) / sizeof(vocabs[0]); n++) {
                for (uint32_t i = 0; i < vocabs[n]; i++)
                        logits[i] = i < 9 ? -1 : 0.5f;
                pick_all(*state, logits, vocabs[n], picks, 4, tokens);
                for (uint32_t i = 0; i < 4; i++)
                        assert_int_equal(tokens[i], 9);
        }
}

/*
 * The largest logit is in the last block, which is incomplete.  Its token is as likely as all
 * others together, which are far below it.  There, most of the error of sums comes from
 * rounding that distance to a float.
 */
static void a_peak_in_the_last_block_is_drawn_with_its_probability(void **state)
{
        static const uint32_t vocabs[] = { 33, 1001, 9000, VOCAB - 31 };
        static const float temperatures[] = { 1, 0.7f, 1.7f };

        for (uint32_t n = 0; n < 12; n++) {
                uint32_t vocab = vocabs[n / 3];
                float temperature = temperatures[n % 3];
                struct pick picks[WANTS];

                for (uint32_t i = 0; i < vocab; i++)
                        logits[i] = i % 5 ? -INFINITY : 0.1f * random_normal();
                logits[vocab - 1] = temperature * logf((float)vocab / 5);
                for (uint32_t i = 0; i < WANTS; i++) {
                        picks[i] = pick_drawn(temperature, i, random_next());
                        picks[i].top_p = i & 1 ? 0.999f : 1;
                }
                follow(*state, logits, vocab, picks, WANTS);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(picks_from_rows_of_all_kinds_match_the_definition),
                cmocka_unit_test(picks_from_large_vocabularies_match_the_definition),
                cmocka_unit_test(cuts_that_keep_thousands_match_the_definition),
                cmocka_unit_test(a_cut_among_equal_logits_keeps_the_lowest_ids),
                cmocka_unit_test(cuts_keep_exactly_the_defined_number_of_tokens),
                cmocka_unit_test(min_p_above_1_keeps_only_the_first_of_the_largest),
                cmocka_unit_test(a_peak_in_the_last_block_is_drawn_with_its_probability),
        };
        int r = fixture_choose(argc, argv);

        return r ? r : cmocka_run_group_tests(tests, open_bench, close_bench);
}
