/*
 * Picking, with any backend: `test-pick ref`, `test-pick cpu`, `test-pick cpu c`.  Draws are
 * compared with kernels/draw.h, computed in long double (ref-sampler.h), and with results worked
 * out by hand.
 */
#include <stdio.h>

#include "tests/kernels/pick-fixture.h"

#define VOCAB 9000u
#define WANTS 4u

static int open_bench(void **state)
{
        static struct fixture b;

        fixture_open(&b, VOCAB, WANTS);
        *state = &b;
        return 0;
}

static int close_bench(void **state)
{
        fixture_close(*state);
        return 0;
}

static void fill(float *logits, uint32_t vocab, float logit)
{
        for (uint32_t i = 0; i < vocab; i++)
                logits[i] = logit;
}

/* ---- the largest ---- */

static void temperature_0_picks_the_lowest_id_of_the_largest_logit(void **state)
{
        const float logits[] = { -1, 3, -INFINITY, 7, 2, 7, 7 }, zeros[] = { -1, -0.0f, 0, -0.0f };

        assert_int_equal(pick_one(*state, logits, 7, pick_plain(0)), 3);
        assert_int_equal(pick_one(*state, logits, 2, pick_plain(0)), 1);
        assert_int_equal(pick_one(*state, logits + 2, 1, pick_plain(0)), PICK_NOT_FINITE);
        assert_int_equal(pick_one(*state, zeros, 4, pick_plain(0)), 1);
}

/* In any block, including the last and incomplete one.  Greedy picks ignore cuts. */
static void finds_the_largest_logit_at_any_position(void **state)
{
        static const uint32_t vocabs[] = { 1, 31, 32, 33, 63, 64, 65, 1000, 8999, VOCAB };
        static float logits[VOCAB];
        const struct pick picks[] = { { .top_p = 1 },
                                      { .top_p = 0.5f },
                                      { .top_p = 1, .top_k = 3 } };
        uint32_t tokens[3];

        for (size_t n = 0; n < sizeof(vocabs) / sizeof(vocabs[0]); n++) {
                uint32_t vocab = vocabs[n];
                const uint32_t places[] = {
                        0,          vocab / 3,  vocab / 2 & ~31u, vocab / 2 | 31,
                        vocab - 33, vocab - 32, vocab - 1
                };

                for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                        if (places[i] >= vocab)
                                continue;
                        fill(logits, vocab, i & 1 ? -INFINITY : -40.5f);
                        logits[vocab - 1] = -2;
                        logits[places[i]] = -2;
                        pick_all(*state, logits, vocab, picks, 3, tokens);
                        for (uint32_t w = 0; w < 3; w++)
                                assert_int_equal(tokens[w], places[i]);
                }
        }
}

/* ---- numbers that are not finite ---- */

static void logits_that_are_not_finite_fail_the_pick(void **state)
{
        const float bad[][3] = { { 1, NAN, 2 },
                                 { NAN, 1, 2 },
                                 { 1, 2, INFINITY },
                                 { -INFINITY, -INFINITY, -INFINITY } };
        const float masked[] = { -INFINITY, -2, -INFINITY };

        for (size_t i = 0; i < 4; i++) {
                for (int t = 0; t < 2; t++) {
                        struct pick pick = pick_plain((float)t);

                        assert_int_equal(pick_one(*state, bad[i], 3, pick), PICK_NOT_FINITE);
                        assert_int_equal(pick_one(*state, masked, 3, pick), 1);
                }
        }
}

/* Seen by every lane of the search, and behind whole blocks. */
static void finds_a_logit_that_is_not_finite_at_any_position(void **state)
{
        enum { COUNT = 203 };
        const float bad[] = { NAN, -NAN, INFINITY };
        const struct pick picks[WANTS] = { { .top_p = 1 },
                                           { .temperature = 1, .top_p = 1 },
                                           { .temperature = 1, .top_p = 1, .top_k = 3 },
                                           { .temperature = 2, .top_p = 0.5f, .min_p = 0.1f } };
        float logits[COUNT], alone[COUNT];
        uint32_t tokens[WANTS];

        for (uint32_t i = 0; i < COUNT; i++) {
                for (uint32_t j = 0; j < 3; j++) {
                        fill(logits, COUNT, j == 2 ? -INFINITY : 0.5f);
                        logits[i] = bad[j];
                        pick_all(*state, logits, COUNT, picks, WANTS, tokens);
                        for (uint32_t w = 0; w < WANTS; w++)
                                assert_int_equal(tokens[w], PICK_NOT_FINITE);
                }
                fill(alone, COUNT, -INFINITY);
                alone[i] = -3e38f;
                pick_all(*state, alone, COUNT, picks, WANTS, tokens);
                for (uint32_t w = 0; w < WANTS; w++)
                        assert_int_equal(tokens[w], i);
        }
}

/* ---- cuts ---- */

/* Which of eight tokens ever come, as bits. */
static uint32_t tokens_ever_picked(struct fixture *b, const float *logits, uint32_t vocab,
                                   struct pick pick)
{
        uint32_t seen = 0;

        for (pick.position = 0; pick.position < 400; pick.position++)
                seen |= UINT32_C(1) << pick_one(b, logits, vocab, pick);
        return seen;
}

static void top_k_top_p_and_min_p_keep_the_defined_tokens(void **state)
{
        /* chances 0.3, 0.5, 0.2, never */
        const float logits[] = { logf(0.3f), logf(0.5f), logf(0.2f), -INFINITY };
        struct pick all = { .temperature = 1, .top_p = 1, .seed = 5 }, pick = all;

        assert_int_equal(tokens_ever_picked(*state, logits, 4, all), 7);
        pick.top_k = 1;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 2);
        pick.top_k = 2;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 3);
        pick.top_k = 1000;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 7);

        pick = all;
        pick.top_p = 0;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 2);
        pick.top_p = 0.45f;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 2);
        pick.top_p = 0.55f;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 3);
        pick.top_p = 0.85f;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 7);

        pick = all;
        pick.min_p = 0.5f; /* of 0.5: 0.25 */
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 3);
        pick.min_p = 0.7f;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 2);
        pick.min_p = 0.3f;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 7);
        pick.min_p = 1.5f; /* no token is that likely */
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 2);
}

static void cuts_among_equal_logits_keep_the_lowest_ids(void **state)
{
        const float equal[] = { 1, 1, 1, 1, 1, 1, 1, 1 }, two[] = { 0, 2, 0, 2, 0, 2, 0, 2 };
        struct pick all = { .temperature = 1, .top_p = 1, .seed = 5 }, pick = all;

        pick.top_k = 2;
        assert_int_equal(tokens_ever_picked(*state, equal, 8, pick), 0x03);
        assert_int_equal(tokens_ever_picked(*state, two, 8, pick), 0x0a);
        pick.top_k = 6;
        assert_int_equal(tokens_ever_picked(*state, two, 8, pick), 0xaf);

        pick = all;
        pick.top_p = 0.5f; /* just reached by four of eight */
        assert_int_equal(tokens_ever_picked(*state, equal, 8, pick), 0x0f);
        pick.top_p = 0.3f;
        assert_int_equal(tokens_ever_picked(*state, equal, 8, pick), 0x07);
        pick.top_p = 0.4f; /* upper ones have 0.22 each, lower ones 0.03 */
        assert_int_equal(tokens_ever_picked(*state, two, 8, pick), 0x0a);
        pick.top_p = 0.92f;
        assert_int_equal(tokens_ever_picked(*state, two, 8, pick), 0xaf);

        pick = all;
        pick.min_p = 1;
        assert_int_equal(tokens_ever_picked(*state, two, 8, pick), 0xaa);
        pick.top_k = 3;
        assert_int_equal(tokens_ever_picked(*state, two, 8, pick), 0x2a);
}

static void a_tiny_temperature_picks_the_largest_and_a_huge_one_is_uniform(void **state)
{
        const float logits[] = { 1, 1.5f, -3e38f, 0 };
        struct pick pick = pick_plain(1e-38f);

        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 2);
        pick.temperature = 1e-45f; /* a quotient by it is infinite */
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 2);
        pick.temperature = 3e38f;
        assert_int_equal(tokens_ever_picked(*state, logits, 4, pick), 15);
}

/* ---- draws ---- */

/*
 * Pearson's sum: how far the counts are from the expected ones.  A token that was cut is never
 * drawn.
 */
static double chi_square(const struct ref_sampler *ref_sampler, uint32_t kept,
                         const uint32_t *counts, uint32_t draws)
{
        long double whole = 0, sum = 0;

        for (uint32_t i = 0; i < kept; i++)
                whole += ref_sampler->chances[i];
        for (uint32_t i = 0; i < ref_sampler->vocab; i++) {
                uint32_t count = counts[ref_sampler->all[i].id];
                long double wanted = i < kept ? draws * ref_sampler->chances[i] / whole : 0;

                assert_true(wanted > 5 || !count);
                if (wanted > 5)
                        sum += (count - wanted) * (count - wanted) / wanted;
        }
        return (double)sum;
}

/* What Pearson's sum exceeds once in a million times (by Wilson and Hilferty). */
static double chi_square_most(uint32_t freedoms)
{
        double part = 2 / (9.0 * freedoms);

        return freedoms * pow(1 - part + 4.7534 * sqrt(part), 3);
}

/* Draws that differ by position, by seed or by choice. */
static void expect_frequencies(struct fixture *b, const float *logits, uint32_t vocab,
                               struct pick pick)
{
        enum { DRAWS = 8000, MOST = 40 };
        uint32_t kept, tokens[WANTS];

        ref_sampler_load(&b->ref_sampler, logits, vocab);
        kept = ref_sampler_cut(&b->ref_sampler, &pick, ref_sampler_weigh(&b->ref_sampler, &pick), 0,
                               0);
        for (uint32_t by = 0; by < 3; by++) {
                uint32_t counts[MOST] = { 0 };

                for (uint32_t i = 0; i < DRAWS; i += WANTS) {
                        struct pick picks[WANTS] = { pick, pick, pick, pick };

                        for (uint32_t w = 0; w < WANTS; w++) {
                                picks[w].position = by == 0 ? i + w : 3;
                                picks[w].seed = by == 1 ? i + w : 42;
                                picks[w].sample_index = by == 2 ? i + w : 1;
                        }
                        pick_all(b, logits, vocab, picks, WANTS, tokens);
                        for (uint32_t w = 0; w < WANTS; w++)
                                counts[tokens[w]]++;
                }
                assert_true(chi_square(&b->ref_sampler, kept, counts, DRAWS) <
                            chi_square_most(kept - 1));
        }
}

static void tokens_are_drawn_as_often_as_their_probability(void **state)
{
        const float few[] = { logf(0.2f), logf(0.5f), -INFINITY, logf(0.3f) };
        float many[40];
        struct pick pick = pick_plain(1);

        for (uint32_t i = 0; i < 40; i++)
                many[i] = (float)(draw(9, 0, i) * 2);
        expect_frequencies(*state, few, 4, pick);
        expect_frequencies(*state, many, 40, pick);
        pick.temperature = 0.5f;
        pick.top_k = 20;
        expect_frequencies(*state, many, 40, pick);
        pick.top_p = 0.8f;
        expect_frequencies(*state, many, 40, pick);
        pick.min_p = 0.4f;
        expect_frequencies(*state, many, 40, pick);
}

/* Tokens of chances down to 10^-4, in spans that are masked, partly masked or incomplete. */
static void a_million_draws_have_the_law(void **state)
{
        enum { DRAWS = 1000000, COUNT = 100 };
        struct fixture *b = *state;
        uint32_t counts[COUNT] = { 0 }, kept = 0, tokens[WANTS];
        struct pick picks[WANTS] = { { 0 } };
        float logits[COUNT];

        for (uint32_t i = 0; i < COUNT; i++)
                logits[i] =
                        i / 32 == 1 || i % 7 == 2 ? -INFINITY : -(float)(i * 37 % COUNT) * 0.07f;
        ref_sampler_load(&b->ref_sampler, logits, COUNT);
        for (uint32_t i = 0; i < DRAWS; i += WANTS) {
                for (uint32_t w = 0; w < WANTS; w++) {
                        picks[w] = pick_drawn(0.9f, 7, i + w);
                        picks[w].seed = 20261127;
                }
                pick_all(b, logits, COUNT, picks, WANTS, tokens);
                for (uint32_t w = 0; w < WANTS; w++)
                        counts[tokens[w]]++;
        }
        ref_sampler_weigh(&b->ref_sampler, &picks[0]);
        while (kept < COUNT && b->ref_sampler.chances[kept] > 0)
                kept++;
        assert_true(chi_square(&b->ref_sampler, kept, counts, DRAWS) < chi_square_most(kept - 1));
}

/* Of draws by running sums it would: a token's time does not depend on other tokens. */
static void masking_a_token_that_did_not_win_changes_no_pick(void **state)
{
        enum { COUNT = 100 };
        float logits[COUNT];

        for (uint32_t i = 0; i < COUNT; i++)
                logits[i] = (float)draw(6, 0, i) * 3;
        for (uint32_t i = 0; i < COUNT; i++) {
                const struct pick pick = pick_drawn(1, 0, i);
                uint32_t token = pick_one(*state, logits, COUNT, pick);
                float spared = logits[i];

                logits[i] = -INFINITY;
                if (token != i)
                        assert_int_equal(pick_one(*state, logits, COUNT, pick), token);
                logits[i] = spared;
        }
}

/* ---- the definition ---- */

/* Every cut, of a few and of many. */
static void follow_all(struct fixture *b, const float *logits)
{
        static const uint32_t vocabs[] = { 1, 2, 31, 32, 33, 1000, 2050, VOCAB };
        static const uint32_t top_ks[] = { 0, 1, 7, 40, 1024 };
        static const float top_ps[] = { 1, 0.9f, 0.3f }, min_ps[] = { 0, 0.05f, 0.5f };
        struct pick picks[5 * 3 * 3 * 3];
        uint64_t position = 0;

        for (size_t n = 0; n < sizeof(vocabs) / sizeof(vocabs[0]); n++) {
                for (uint32_t i = 0; i < 5 * 3 * 3 * 3; i++)
                        picks[i] = (struct pick){ .temperature = 0.25f + (float)(i % 3),
                                                  .top_p = top_ps[i / 3 % 3],
                                                  .min_p = min_ps[i / 9 % 3],
                                                  .top_k = top_ks[i / 27],
                                                  .sample_index = i,
                                                  .seed = i * UINT64_C(0x100000001),
                                                  .position = position++ };
                follow(b, logits, vocabs[n], picks, 5 * 3 * 3 * 3);
        }
}

static void draws_match_the_definition(void **state)
{
        static float logits[VOCAB];

        for (uint32_t i = 0; i < VOCAB; i++) /* many equals, some masked */
                logits[i] = i % 11 == 5 ? -INFINITY : (float)(int)(draw(1, 0, i) * 64) / 8;
        follow_all(*state, logits);
}

/* As a model has them: hardly two are the same, and few are likely. */
static void draws_from_steep_logits_match_the_definition(void **state)
{
        static float logits[VOCAB];

        for (uint32_t i = 0; i < VOCAB; i++)
                logits[i] = (float)(-3 * log(1 - draw(2, 0, i)));
        follow_all(*state, logits);
}

/* ---- what else comes of a pick ---- */

static void put_token_numbers(struct fixture *b, struct matrix **ret_table)
{
        struct matrix_shape shape = { .columns = 2, .parts = 1, .rows = { VOCAB } };
        float *host = malloc(VOCAB * 2 * sizeof(*host));

        assert_non_null(host);
        /* a token's row says which token it is */
        for (uint32_t i = 0; i < VOCAB * 2; i++)
                host[i] = (float)(i / 2);
        assert_int_equal(b->k->matrix_new(b->k, &shape, ret_table), 0);
        b->k->weights_put(b->k, *ret_table, 0, 0, VOCAB, host);
        free(host);
}

/* The next step runs on the pick before the host has collected it. */
static void the_next_step_runs_on_picks_of_the_two_steps_before(void **state)
{
        struct fixture *b = *state;
        const float first[] = { 0, 0, 9, 0 }, second[] = { 0, 0, 0, 9 };
        struct step_row rows[] = { { .position = 0, .from_row = 0 },
                                   { .position = 1, .from_row = 0 },
                                   { .position = 2, .from_row = STEP_TOKEN, .token = VOCAB - 1 } };
        struct step_run run = { 0, 3 };
        struct step step = { .row_count = 3, .run_count = 1, .rows = rows, .runs = &run };
        struct matrix *table;
        float host[6], *x;

        put_token_numbers(b, &table);
        assert_int_equal(b->k->floats_new(b->k, 6, &x), 0);
        pick_one(b, first, 4, pick_plain(0));
        pick_one(b, second, 4, pick_plain(0));
        rows[0].from_step = b->number - 1;
        rows[1].from_step = b->number;
        step.number = ++b->number;
        assert_int_equal(b->k->step_begin(b->k, KV_ALONE(b->kv), &step), 0);
        assert_int_equal(b->k->embed(b->k, &(struct embed){ table, 1 }, x), 0);
        assert_int_equal(b->k->step_end(b->k), 0);
        b->k->get(b->k, host, x, 6);
        assert_true(host[0] == 2 && host[2] == 3 && host[4] == VOCAB - 1);
        b->k->floats_free(b->k, x);
        b->k->matrix_free(b->k, table);
}

/* Cuts and temperature change the pick, but not the reported log probabilities. */
static void logprobs_cover_all_tokens_for_any_pick(void **state)
{
        static float logits[VOCAB];

        srand(7);
        for (int round = 0; round < 300; round++) {
                uint32_t vocab = round < 40 ? 1u + (uint32_t)round : 1u + (uint32_t)rand() % VOCAB;
                struct pick picks[WANTS];

                for (uint32_t i = 0; i < vocab; i++)
                        logits[i] = rand() % 9 ? (float)(rand() % 4000) / 100 - 20 : -INFINITY;
                logits[(uint32_t)rand() % vocab] = 3;
                for (uint32_t w = 0; w < WANTS; w++)
                        picks[w] = (struct pick){ .temperature = w % 2 ? 1.7f : 0,
                                                  .top_p = w == 1 ? 0.5f : 1,
                                                  .top_k = w == 3 ? 5 : 0,
                                                  .position = (uint64_t)round,
                                                  .logprobs = (uint32_t)rand() %
                                                              (PICK_LOGPROBS_MAX + 1) };
                for (uint32_t w = 0; w < WANTS; w++)
                        if (picks[w].logprobs > vocab + 1)
                                picks[w].logprobs = vocab + 1;
                follow(*state, logits, vocab, picks, WANTS);
        }
}

/* Whatever is drawn beside it, and whatever cuts there are: they do not apply. */
static void a_given_token_has_the_logprobs_of_the_same_token_drawn(void **state)
{
        enum { COUNT = 300 };
        struct fixture *b = *state;
        float logits[COUNT];

        srand(5);
        for (int round = 0; round < 40; round++) {
                struct logprob drawn[PICK_LOGPROBS_MAX], given[PICK_LOGPROBS_MAX];
                struct pick pick = { .temperature = round % 2 ? 0.7f : 0,
                                     .top_p = 1,
                                     .position = (uint64_t)round,
                                     .logprobs = 1 + (uint32_t)round % PICK_LOGPROBS_MAX };
                uint32_t token;

                for (uint32_t i = 0; i < COUNT; i++)
                        logits[i] = (float)(rand() % 4000) / 100 - 20;
                token = pick_one(b, logits, COUNT, pick);
                b->k->logprobs(b->k, b->number, 0, drawn);
                pick.given = 1 + token;
                pick.position += 1000;
                assert_int_equal(pick_one(b, logits, COUNT, pick), token);
                b->k->logprobs(b->k, b->number, 0, given);
                assert_memory_equal(given, drawn, pick.logprobs * sizeof(*given));
                pick.given = 1 + (uint32_t)rand() % COUNT;
                pick.top_k = 1;
                pick.min_p = 2;
                follow(b, logits, COUNT, &pick, 1);
                logits[rand() % COUNT] = NAN;
                assert_int_equal(pick_one(b, logits, COUNT, pick), PICK_NOT_FINITE);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(temperature_0_picks_the_lowest_id_of_the_largest_logit),
                cmocka_unit_test(finds_the_largest_logit_at_any_position),
                cmocka_unit_test(logits_that_are_not_finite_fail_the_pick),
                cmocka_unit_test(finds_a_logit_that_is_not_finite_at_any_position),
                cmocka_unit_test(top_k_top_p_and_min_p_keep_the_defined_tokens),
                cmocka_unit_test(cuts_among_equal_logits_keep_the_lowest_ids),
                cmocka_unit_test(a_tiny_temperature_picks_the_largest_and_a_huge_one_is_uniform),
                cmocka_unit_test(tokens_are_drawn_as_often_as_their_probability),
                cmocka_unit_test(a_million_draws_have_the_law),
                cmocka_unit_test(masking_a_token_that_did_not_win_changes_no_pick),
                cmocka_unit_test(draws_match_the_definition),
                cmocka_unit_test(draws_from_steep_logits_match_the_definition),
                cmocka_unit_test(the_next_step_runs_on_picks_of_the_two_steps_before),
                cmocka_unit_test(logprobs_cover_all_tokens_for_any_pick),
                cmocka_unit_test(a_given_token_has_the_logprobs_of_the_same_token_drawn),
        };
        int r = fixture_choose(argc, argv);

        return r ? r : cmocka_run_group_tests(tests, open_bench, close_bench);
}
