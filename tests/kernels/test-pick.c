/*
 * Picking, of any backend: `test-pick ref`, `test-pick cpu`.  What is drawn is held
 * against kernels/draw.h, worked out here in long double with the C library's sort.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/draw.h"
#include "kernels/kernels.h"

#define VOCAB 9000u
#define WANTS 4u

struct bench {
        struct kernels *k;
        struct kv *kv;
        float *logits, *x;
        struct mat *mat;
        uint64_t number;
};

static const char *backend = "ref";

static int bench_open(void **state)
{
        static struct bench b;
        struct kernels_conf conf = { .threads = 2,
                                     .isa = "auto",
                                     .rows_max = WANTS,
                                     .slots_max = 1,
                                     .pages_max = 1,
                                     .vocab_max = VOCAB,
                                     .wants_max = WANTS };
        struct kv_shape shape = { 1, 1, 64, 1, KV_F32 };
        struct mat_shape table = { .columns = 2, .parts = 1, .rows = { VOCAB } };
        struct step_page page = { 0, 0, 0 };
        float *host = malloc(VOCAB * 2 * sizeof(*host));

        b = (struct bench){ .number = 1 };
        assert_non_null(host);
        for (uint32_t i = 0; i < VOCAB * 2; i++)
                host[i] = (float)(i / 2); /* a token's row says which token it is */
        assert_int_equal(kernels_open(backend, &conf, &b.k), 0);
        assert_int_equal(b.k->kv_new(b.k, &shape, &b.kv), 0);
        assert_int_equal(b.k->floats_new(b.k, (size_t)WANTS * VOCAB, &b.logits), 0);
        assert_int_equal(b.k->floats_new(b.k, WANTS * 2, &b.x), 0);
        assert_int_equal(b.k->mat_new(b.k, &table, &b.mat), 0);
        b.k->weights_put(b.k, b.mat, 0, 0, VOCAB, host);
        free(host);
        b.k->step_begin(b.k, b.kv, &(struct step){ .number = 1, .page_count = 1, .pages = &page });
        b.k->step_end(b.k);
        *state = &b;
        return 0;
}

static int bench_close(void **state)
{
        struct bench *b = *state;

        b->k->floats_free(b->k, b->logits);
        b->k->floats_free(b->k, b->x);
        b->k->mat_free(b->k, b->mat);
        b->k->kv_free(b->k, b->kv);
        b->k->close(b->k);
        return 0;
}

/* One step: the same logits for `count` picks. */
static void pick_all(struct bench *b, const float *logits, uint32_t vocab, const struct pick *picks,
                     uint32_t count, uint32_t *ret_tokens)
{
        struct step_row rows[WANTS] = { { 0 } };
        struct step_run run = { 0, count };
        uint32_t want[WANTS];

        for (uint32_t i = 0; i < count; i++) {
                want[i] = i;
                rows[i].position = i;
                rows[i].from_row = STEP_TOKEN;
                b->k->put(b->k, b->logits + (size_t)i * vocab, logits, vocab);
        }
        assert_int_equal(b->k->step_begin(b->k, b->kv,
                                          &(struct step){ .number = ++b->number,
                                                          .row_count = count,
                                                          .run_count = 1,
                                                          .want_count = count,
                                                          .rows = rows,
                                                          .runs = &run,
                                                          .want = want,
                                                          .picks = picks }),
                         0);
        assert_int_equal(b->k->pick(b->k, b->logits, vocab), 0);
        assert_int_equal(b->k->step_end(b->k), 0);
        assert_int_equal(b->k->collect(b->k, b->number, ret_tokens), 0);
}

static uint32_t pick_one(struct bench *b, const float *logits, uint32_t vocab, struct pick pick)
{
        uint32_t token;

        pick_all(b, logits, vocab, &pick, 1, &token);
        return token;
}

static void temperature_zero_takes_the_lowest_id_of_the_largest(void **state)
{
        const float logits[] = { -1, 3, -INFINITY, 7, 2, 7, 7 };

        assert_int_equal(pick_one(*state, logits, 7, (struct pick){ .top_p = 1 }), 3);
        assert_int_equal(pick_one(*state, logits, 2, (struct pick){ .top_p = 1 }), 1);
        assert_int_equal(pick_one(*state, logits + 2, 1, (struct pick){ .top_p = 1 }),
                         PICK_NOT_FINITE);
}

static void logits_that_are_not_finite_are_never_picked_from(void **state)
{
        const float bad[][3] = { { 1, NAN, 2 },
                                 { NAN, 1, 2 },
                                 { 1, 2, INFINITY },
                                 { -INFINITY, -INFINITY, -INFINITY } };
        const float masked[] = { -INFINITY, -2, -INFINITY };

        for (size_t i = 0; i < 4; i++) {
                for (int t = 0; t < 2; t++) {
                        struct pick pick = { .temperature = (float)t, .top_p = 1 };

                        assert_int_equal(pick_one(*state, bad[i], 3, pick), PICK_NOT_FINITE);
                        assert_int_equal(pick_one(*state, masked, 3, pick), 1);
                }
        }
}

/* Which of eight tokens ever come, as bits. */
static uint32_t ever(struct bench *b, const float *logits, uint32_t vocab, struct pick pick)
{
        uint32_t seen = 0;

        for (pick.position = 0; pick.position < 400; pick.position++)
                seen |= UINT32_C(1) << pick_one(b, logits, vocab, pick);
        return seen;
}

static void each_cut_keeps_what_it_should(void **state)
{
        /* chances 0.3, 0.5, 0.2, never */
        const float logits[] = { logf(0.3f), logf(0.5f), logf(0.2f), -INFINITY };
        const float equal[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
        struct pick all = { .temperature = 1, .top_p = 1, .seed = 5 }, pick = all;

        assert_int_equal(ever(*state, logits, 4, all), 7);
        pick.top_k = 1;
        assert_int_equal(ever(*state, logits, 4, pick), 2);
        pick.top_k = 2;
        assert_int_equal(ever(*state, logits, 4, pick), 3);
        assert_int_equal(ever(*state, equal, 8, pick), 3); /* ties: the lowest ids */
        pick.top_k = 1000;
        assert_int_equal(ever(*state, logits, 4, pick), 7);

        pick = all;
        pick.top_p = 0;
        assert_int_equal(ever(*state, logits, 4, pick), 2);
        pick.top_p = 0.45f;
        assert_int_equal(ever(*state, logits, 4, pick), 2);
        pick.top_p = 0.55f;
        assert_int_equal(ever(*state, logits, 4, pick), 3);
        pick.top_p = 0.85f;
        assert_int_equal(ever(*state, logits, 4, pick), 7);

        pick = all;
        pick.min_p = 0.5f; /* of 0.5: 0.25 */
        assert_int_equal(ever(*state, logits, 4, pick), 3);
        pick.min_p = 0.7f;
        assert_int_equal(ever(*state, logits, 4, pick), 2);
        pick.min_p = 0.3f;
        assert_int_equal(ever(*state, logits, 4, pick), 7);
}

static void tokens_come_as_often_as_their_chances_say(void **state)
{
        const float logits[] = { logf(0.2f), logf(0.5f), logf(0.3f) };
        const double chances[] = { 0.2, 0.5, 0.3 };
        int counts[3] = { 0 };
        const int n = 8000;

        for (int i = 0; i < n; i += WANTS) {
                struct pick picks[WANTS];
                uint32_t tokens[WANTS];

                for (uint32_t j = 0; j < WANTS; j++)
                        picks[j] = (struct pick){ .temperature = 1,
                                                  .top_p = 1,
                                                  .seed = 42,
                                                  .choice = j,
                                                  .position = (uint64_t)i };
                pick_all(*state, logits, 3, picks, WANTS, tokens);
                for (uint32_t j = 0; j < WANTS; j++) {
                        assert_true(tokens[j] < 3);
                        counts[tokens[j]]++;
                }
        }
        for (int i = 0; i < 3; i++)
                assert_true(fabs(counts[i] - n * chances[i]) <
                            4 * sqrt(n * chances[i] * (1 - chances[i])));
}

struct candidate {
        float logit;
        uint32_t id;
};

static int candidate_compare(const void *a, const void *b)
{
        const struct candidate *x = a, *y = b;

        if (x->logit != y->logit)
                return x->logit > y->logit ? -1 : 1;
        return x->id < y->id ? -1 : 1;
}

/* draw.h's six lines */
static uint32_t pick_expect(const float *logits, uint32_t vocab, const struct pick *pick)
{
        static struct candidate c[VOCAB];
        static long double p[VOCAB];
        uint32_t kept = pick->top_k && pick->top_k < vocab ? pick->top_k : vocab, run = 0;
        long double sum = 0, mark;

        for (uint32_t i = 0; i < vocab; i++)
                c[i] = (struct candidate){ logits[i], i };
        qsort(c, vocab, sizeof(c[0]), candidate_compare);
        for (uint32_t i = 0; i < kept; i++)
                sum += p[i] = expl(((long double)c[i].logit - c[0].logit) / pick->temperature);
        for (uint32_t i = 0; i < kept; i++)
                p[i] /= sum;
        for (sum = 0; run < kept && (pick->top_p >= 1 || !run || sum < pick->top_p); run++)
                sum += p[run];
        for (kept = 0, sum = 0; kept < run && p[kept] >= pick->min_p * p[0]; kept++)
                sum += p[kept];
        mark = draw(pick->seed, pick->choice, pick->position) * sum;
        for (run = 0, sum = 0; (sum += p[run]) <= mark;)
                run++;
        return c[run].id;
}

/* Every cut, of a few and of many. */
static void follow(struct bench *b, const float *logits)
{
        static const uint32_t vocabs[] = { 1, 2, 31, 32, 33, 1000, 2050, VOCAB };
        static const uint32_t top_ks[] = { 0, 1, 7, 40, 1024 };
        static const float top_ps[] = { 1, 0.9f, 0.3f }, min_ps[] = { 0, 0.05f, 0.5f };
        uint64_t position = 0;

        for (size_t n = 0; n < sizeof(vocabs) / sizeof(vocabs[0]); n++) {
                for (uint32_t i = 0; i < 5 * 3 * 3 * 3; i++) {
                        struct pick pick = { .temperature = 0.25f + (float)(i % 3),
                                             .top_p = top_ps[i / 3 % 3],
                                             .min_p = min_ps[i / 9 % 3],
                                             .top_k = top_ks[i / 27],
                                             .choice = i,
                                             .seed = i * UINT64_C(0x100000001),
                                             .position = position++ };

                        assert_int_equal(pick_one(b, logits, vocabs[n], pick),
                                         pick_expect(logits, vocabs[n], &pick));
                }
        }
}

static void draws_follow_the_definition(void **state)
{
        static float logits[VOCAB];

        for (uint32_t i = 0; i < VOCAB; i++) /* many equals, some masked */
                logits[i] = i % 11 == 5 ? -INFINITY : (float)(int)(draw(1, 0, i) * 64) / 8;
        follow(*state, logits);
}

/* As a model has them: hardly two are the same, and few are likely. */
static void draws_from_steep_logits_follow_the_definition(void **state)
{
        static float logits[VOCAB];

        for (uint32_t i = 0; i < VOCAB; i++)
                logits[i] = (float)(-3 * log(1 - draw(2, 0, i)));
        follow(*state, logits);
}

/* "Exceeds": a running sum that just meets the draw is passed over. */
static void a_draw_on_the_border_goes_to_the_next(void **state)
{
        const float equal[] = { 1, 1 };
        struct pick pick = { .temperature = 1, .top_p = 1, .position = 9297664 };

        assert_true(draw(0, 0, pick.position) == 0.5);
        assert_int_equal(pick_one(*state, equal, 2, pick), 1);
}

static void a_tiny_temperature_is_the_largest_and_a_huge_one_is_even(void **state)
{
        const float logits[] = { 1, 1.5f, -3e38f, 0 };
        struct pick pick = { .temperature = 1e-38f, .top_p = 1 };

        assert_int_equal(ever(*state, logits, 4, pick), 2);
        pick.temperature = 1e-45f; /* what divides by it is infinite */
        assert_int_equal(ever(*state, logits, 4, pick), 2);
        pick.temperature = 3e38f;
        assert_int_equal(ever(*state, logits, 4, pick), 15);
}

/* The next step runs on the pick before the host has collected it. */
static void the_next_step_runs_on_picks_of_the_two_before(void **state)
{
        struct bench *b = *state;
        const float first[] = { 0, 0, 9, 0 }, second[] = { 0, 0, 0, 9 };
        struct step_row rows[] = { { .position = 0, .from_row = 0 },
                                   { .position = 1, .from_row = 0 },
                                   { .position = 2, .from_row = STEP_TOKEN, .token = VOCAB - 1 } };
        struct step_run run = { 0, 3 };
        struct step step = { .row_count = 3, .run_count = 1, .rows = rows, .runs = &run };
        float host[6];

        pick_one(b, first, 4, (struct pick){ .top_p = 1 });
        pick_one(b, second, 4, (struct pick){ .top_p = 1 });
        rows[0].from_step = b->number - 1;
        rows[1].from_step = b->number;
        step.number = ++b->number;
        assert_int_equal(b->k->step_begin(b->k, b->kv, &step), 0);
        assert_int_equal(b->k->embed(b->k, b->mat, 1, b->x), 0);
        assert_int_equal(b->k->step_end(b->k), 0);
        b->k->get(b->k, host, b->x, 6);
        assert_true(host[0] == 2 && host[2] == 3 && host[4] == VOCAB - 1);
}

static int by_logit(const void *a, const void *b)
{
        const struct logprob *x = a, *y = b;

        if (x->logprob != y->logprob)
                return x->logprob > y->logprob ? -1 : 1;
        return x->token < y->token ? -1 : 1;
}

/* Worked out in long double, sorted by the C library. */
static void expect_logprobs(const float *logits, uint32_t vocab, uint32_t picked,
                            const struct logprob *found, uint32_t count)
{
        static struct logprob sorted[VOCAB];
        long double sum = 0, largest = -INFINITY;

        for (uint32_t i = 0; i < vocab; i++) {
                sorted[i] = (struct logprob){ i, logits[i] };
                largest = fmaxl(largest, logits[i]);
        }
        for (uint32_t i = 0; i < vocab; i++)
                sum += expl(logits[i] - largest);
        qsort(sorted, vocab, sizeof(*sorted), by_logit);
        for (uint32_t i = 0; i < count; i++) {
                uint32_t token = i ? sorted[i - 1].token : picked;
                double wanted = (double)(logits[token] - largest - logl(sum));

                assert_int_equal(found[i].token, token);
                if (wanted == -INFINITY)
                        assert_true(found[i].logprob == -INFINITY);
                else
                        assert_true(fabs(found[i].logprob - wanted) <= 1e-6 * fmax(1, -wanted));
        }
}

/* Cuts and temperature move what is picked, and nothing of what is told. */
static void logprobs_are_of_all_tokens_whatever_is_picked(void **state)
{
        static float logits[VOCAB];
        struct logprob found[PICK_LOGPROBS_MAX];
        struct bench *b = *state;
        uint32_t picked[WANTS];

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
                pick_all(b, logits, vocab, picks, WANTS, picked);
                for (uint32_t w = 0; w < WANTS; w++) {
                        b->k->logprobs(b->k, b->number, w, found);
                        expect_logprobs(logits, vocab, picked[w], found, picks[w].logprobs);
                }
        }
}

static int can_run(void)
{
        struct kernels_conf conf = { .threads = 1,
                                     .isa = "auto",
                                     .rows_max = 1,
                                     .slots_max = 1,
                                     .pages_max = 1,
                                     .vocab_max = 1,
                                     .wants_max = 1 };
        struct kernels *k;
        int r = kernels_open(backend, &conf, &k);

        if (!r)
                k->close(k);
        return r;
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(temperature_zero_takes_the_lowest_id_of_the_largest),
                cmocka_unit_test(logits_that_are_not_finite_are_never_picked_from),
                cmocka_unit_test(each_cut_keeps_what_it_should),
                cmocka_unit_test(tokens_come_as_often_as_their_chances_say),
                cmocka_unit_test(draws_follow_the_definition),
                cmocka_unit_test(draws_from_steep_logits_follow_the_definition),
                cmocka_unit_test(a_draw_on_the_border_goes_to_the_next),
                cmocka_unit_test(a_tiny_temperature_is_the_largest_and_a_huge_one_is_even),
                cmocka_unit_test(the_next_step_runs_on_picks_of_the_two_before),
                cmocka_unit_test(logprobs_are_of_all_tokens_whatever_is_picked),
        };

        if (argc > 1)
                backend = argv[1];
        if (can_run() == -ENOTSUP) {
                printf("skipped: backend %s does not run on this machine\n", backend);
                return 77;
        }
        return cmocka_run_group_tests(tests, bench_open, bench_close);
}
