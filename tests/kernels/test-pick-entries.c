/*
 * A pick reports more than its token: the likeliest tokens, the surprise, the log-sum, and a copy
 * of the row.  Any backend is tested: `test-pick-entries ref`, `test-pick-entries cpu c`.  Expected
 * values are computed in long double, from logits that the test has put (pick-fixture.h).
 */
#include <stdio.h>
#include <time.h>

#include "tests/kernels/pick-fixture.h"
#include "tests/kernels/pick-rows.h"

#define VOCAB  2000u
#define WANTS  12u
#define ROUNDS 30u
#define KEPT   (STEPS_BACK + 1) /* steps whose results can be read */

/* A step and its results, kept for later comparison. */
struct past {
        uint64_t number;
        uint32_t vocab, count, tokens[WANTS];
        struct pick picks[WANTS];
        float rows[WANTS][VOCAB];
        bool collected;
};

struct stage {
        struct fixture b;
        float *logits[KEPT]; /* (WANTS, VOCAB), so that a step need not wait for another one */
        struct past past[KEPT];
};

static int stage_open(void **state)
{
        static struct stage s;
        const char *seed = getenv("SEED");

        random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
        print_message("SEED=%llu\n", (unsigned long long)random_state);
        fixture_open(&s.b, VOCAB, WANTS);
        for (uint32_t i = 0; i < KEPT; i++)
                assert_int_equal(s.b.k->floats_new(s.b.k, WANTS * VOCAB, &s.logits[i]), 0);
        *state = &s;
        return 0;
}

static int stage_close(void **state)
{
        struct stage *s = *state;

        for (uint32_t i = 0; i < KEPT; i++)
                s->b.k->floats_free(s->b.k, s->logits[i]);
        fixture_close(&s->b);
        return 0;
}

/* ---- steps ---- */

/* Begins the step of `past`, whose rows and picks are set, and ends it without its results. */
static void launch(struct stage *s, struct past *past, float *logits)
{
        struct fixture *b = &s->b;
        uint32_t want[WANTS];

        for (uint32_t i = 0; i < past->count; i++) {
                want[i] = i;
                b->k->put(b->k, logits + (size_t)i * past->vocab, past->rows[i], past->vocab);
        }
        if (!fixture_begin(b, want, past->picks, past->count))
                assert_int_equal(b->k->pick(b->k, logits, past->vocab), 0);
        assert_int_equal(b->k->step_end(b->k), 0);
        past->number = b->number;
        past->collected = false;
}

/* A copy has the bits that were put. */
static void expect_row(struct fixture *b, const struct past *past, uint32_t want)
{
        const float *row = b->k->row(b->k, past->number, want);

        assert_memory_equal(row, past->rows[want], past->vocab * sizeof(*row));
}

/* The surprise of a token of all, at temperature 1. */
static void expect_surprise(struct fixture *b, const struct past *past, uint32_t want)
{
        const struct pick *pick = &past->picks[want];
        struct logprob told[PICK_ENTRIES_MAX];
        long double sum = 0, surprise;

        for (uint32_t i = 0; i < past->vocab; i++)
                sum += expl((long double)past->rows[want][i]);
        surprise = log2l(sum) - past->rows[want][past->tokens[want]] / logl(2);
        b->k->logprobs(b->k, past->number, want, told);
        assert_int_equal(told[pick->logprobs].token, past->tokens[want]);
        assert_true(fabsl(told[pick->logprobs].logprob - surprise) <= 1e-5L);
}

/* Checks everything that the step reports. */
static void check(struct stage *s, struct past *past)
{
        struct fixture *b = &s->b;

        assert_int_equal(b->k->collect(b->k, past->number, past->tokens), 0);
        past->collected = true;
        for (uint32_t i = 0; i < past->count; i++) {
                const struct pick *pick = &past->picks[i];

                ref_sampler_load(&b->ref_sampler, past->rows[i], past->vocab);
                assert_int_equal(past->tokens[i] == PICK_NOT_FINITE, !b->ref_sampler.finite);
                if (pick_failed(past->tokens[i]))
                        continue;
                expect_logprobs(b, past->number, i, pick, past->tokens[i]);
                if (pick->row)
                        expect_row(b, past, i);
        }
}

static void run(struct stage *s, struct past *past)
{
        launch(s, past, s->b.logits);
        check(s, past);
}

/* ---- lists ---- */

static const uint32_t lengths[] = { 1, 2, 3, 33, 34, 128, 129, 130, 255, 256, 257, 0 };

static void lists_of_every_length_name_the_likeliest_tokens(void **state)
{
        static const uint32_t vocabs[] = { 256, 257, 258, 1000, VOCAB };
        static const float temperatures[] = { 0, 1, 0.7f };
        struct stage *s = *state;
        struct past *past = &s->past[0];

        for (size_t n = 0; n < sizeof(vocabs) / sizeof(*vocabs); n++)
                for (uint32_t kind = PLAIN; kind < BAD; kind++) {
                        past->vocab = vocabs[n];
                        past->count = WANTS;
                        for (uint32_t i = 0; i < WANTS; i++) {
                                random_row(past->rows[i], past->vocab, (enum row_kind)kind);
                                past->picks[i] = pick_drawn(temperatures[(n + i) % 3], i, kind);
                                past->picks[i].logprobs = lengths[(kind + i) % WANTS];
                        }
                        run(s, past);
                }
}

/* `above` logits that differ, then `equal` ones, then lower ones; all at random places. */
static void put_ties(float *row, uint32_t above, uint32_t equal)
{
        for (uint32_t i = 0; i < VOCAB; i++)
                row[i] = i < above           ? 5 + (float)i * 0.01f
                         : i < above + equal ? 4
                                             : 3 - (float)random_below(100);
        for (uint32_t i = VOCAB - 1; i; i--) {
                uint32_t j = random_below(i + 1);
                float logit = row[i];

                row[i] = row[j];
                row[j] = logit;
        }
}

static void a_list_that_ends_among_equals_has_those_of_the_lowest_ids(void **state)
{
        static const uint32_t equals[] = { 1, 2, 31, 128, 255, 256, 257, 258, 600, 1000 };
        struct stage *s = *state;
        struct past *past = &s->past[0];

        past->vocab = VOCAB;
        past->count = WANTS;
        for (size_t e = 0; e < sizeof(equals) / sizeof(*equals); e++)
                for (uint32_t above = 0; above < 260; above += above % 128 < 2 ? 1 : 126) {
                        for (uint32_t i = 0; i < WANTS; i++) {
                                put_ties(past->rows[i], above, equals[e]);
                                past->picks[i] = pick_plain(0);
                                past->picks[i].logprobs = lengths[i];
                        }
                        run(s, past);
                }
}

static void a_small_vocabulary_is_listed_whole(void **state)
{
        static const uint32_t vocabs[] = { 1, 2, 3, 31, 32, 33, 128, 255, 256 };
        struct stage *s = *state;
        struct past *past = &s->past[0];

        for (size_t n = 0; n < sizeof(vocabs) / sizeof(*vocabs); n++) {
                past->vocab = vocabs[n];
                past->count = 3;
                for (uint32_t i = 0; i < past->count; i++) {
                        random_row(past->rows[i], past->vocab, i ? STEPS : MASKED);
                        past->rows[i][past->vocab - 1] = 1;
                        past->picks[i] = pick_drawn(1, i, n);
                        past->picks[i].logprobs = past->vocab + 1;
                        past->picks[i].log_sum = i > 0;
                        past->picks[i].row = 1 + i;
                }
                run(s, past);
        }
}

/* ---- the log-sum ---- */

/* Alone, and behind each of the other entries; by every way to a token. */
static void the_log_sum_is_the_last_entry_of_any_pick(void **state)
{
        static uint32_t mask[(VOCAB + 31) / 32];
        const struct pick_edit edit = { 7, 3, 1.5f, 0.5f };
        const struct pick kinds[] = {
                { .top_p = 1 },
                { .temperature = 1, .top_p = 1 },
                { .temperature = 0.7f, .top_p = 0.9f },
                { .temperature = 1.5f, .top_p = 1, .top_k = 40 },
                { .temperature = 1, .top_p = 1, .min_p = 0.1f },
                { .temperature = 1, .top_p = 1, .given = 12 },
                { .temperature = 1, .top_p = 1, .mask = mask },
                { .temperature = 0.8f, .top_p = 1, .edits = &edit, .edit_count = 1 },
                { .temperature = 1, .top_p = 1, .mirostat = true, .mu = 100 },
                { .temperature = 0, .top_p = 1, .typical = 0.5f, .mask = mask },
        };
        const uint32_t kind_count = sizeof(kinds) / sizeof(*kinds);
        struct stage *s = *state;
        struct past *past = &s->past[0];

        for (uint32_t i = 0; i < sizeof(mask) / sizeof(*mask); i++)
                mask[i] = random_next() | 1;
        for (uint32_t n = 0; n < 12; n++) {
                past->vocab = n % 2 ? VOCAB : 333;
                past->count = kind_count;
                for (uint32_t i = 0; i < kind_count; i++) {
                        random_row(past->rows[i], past->vocab, n % 3 ? PLAIN : STEEP);
                        past->picks[i] = kinds[i];
                        past->picks[i].position = n;
                        past->picks[i].logprobs = n < 4 ? 0 : lengths[(n + i) % WANTS];
                        past->picks[i].log_sum = true;
                }
                run(s, past);
                expect_surprise(&s->b, past, 8);
        }
}

/* As far from 0 as logits may be, and where a single token has all the weight. */
static void the_log_sum_is_near_for_any_size_of_logits(void **state)
{
        static const float sizes[] = { 0, 1e-30f, -1e4f, 1e4f, 3e37f, -3e37f };
        struct stage *s = *state;
        struct past *past = &s->past[0];

        past->vocab = VOCAB;
        past->count = sizeof(sizes) / sizeof(*sizes);
        for (uint32_t i = 0; i < past->count; i++) {
                for (uint32_t id = 0; id < VOCAB; id++)
                        past->rows[i][id] = sizes[i] + random_normal();
                past->picks[i] = pick_plain(0.5f * (float)(i % 3));
                past->picks[i].log_sum = true;
        }
        run(s, past);
        for (uint32_t i = 0; i < past->count; i++) {
                for (uint32_t id = 0; id < VOCAB; id++)
                        past->rows[i][id] = -INFINITY;
                past->rows[i][3] = sizes[i];
        }
        run(s, past);
}

/* ---- rows, failures, and steps ---- */

static void fill_random(struct past *past, uint32_t vocab)
{
        uint32_t copies[WANTS];

        past->vocab = vocab;
        past->count = 1 + random_below(WANTS);
        for (uint32_t i = 0; i < WANTS; i++) {
                uint32_t j = random_below(i + 1);

                copies[i] = copies[j];
                copies[j] = 1 + i;
        }
        for (uint32_t i = 0; i < past->count; i++) {
                random_row(past->rows[i], vocab, (enum row_kind)random_below(ROW_KINDS));
                past->picks[i] = random_pick(vocab);
                past->picks[i].row = random_below(2) ? copies[i] : 0;
        }
}

static void copies_of_rows_have_the_bits_of_their_logits(void **state)
{
        static const uint32_t none[(VOCAB + 31) / 32];
        const struct pick_edit edits[] = { { 0, 5, 1, 0 }, { 1, -5, 2, INFINITY } };
        struct stage *s = *state;
        struct past *past = &s->past[0];

        past->vocab = 50;
        past->count = 5;
        for (uint32_t i = 0; i < past->count; i++) {
                random_row(past->rows[i], past->vocab, i % 2 ? ZEROS : MASKED);
                past->rows[i][2] = 1;
                past->picks[i] = pick_drawn(1, i, 4);
                past->picks[i].row = i == 3 ? 0 : WANTS - i;
        }
        past->picks[1].edits = edits;
        past->picks[1].edit_count = 2;
        past->picks[2].mask = none;
        run(s, past);
        assert_int_equal(past->tokens[2], PICK_NONE_LEGAL);
        for (uint32_t n = 0; n < 40; n++) {
                fill_random(past, 1 + random_below(VOCAB));
                run(s, past);
        }
}

static void rows_that_are_not_finite_leave_those_beside_them_alone(void **state)
{
        static const float bad[] = { NAN, INFINITY };
        struct stage *s = *state;
        struct past *past = &s->past[0];

        past->vocab = 700;
        past->count = WANTS;
        for (uint32_t n = 0; n < 8; n++) {
                for (uint32_t i = 0; i < WANTS; i++) {
                        random_row(past->rows[i], past->vocab, PLAIN);
                        past->picks[i] = pick_drawn((float)(i % 2), i, n);
                        past->picks[i].logprobs = lengths[(n + i) % WANTS];
                        past->picks[i].log_sum = i % 3 == 0;
                        past->picks[i].row = 1 + (i + n) % WANTS;
                        if ((i + n) % 4 == 0)
                                past->rows[i][random_below(700)] = bad[i % 2];
                }
                run(s, past);
                for (uint32_t i = 0; i < WANTS; i++)
                        assert_int_equal(pick_failed(past->tokens[i]), (i + n) % 4 == 0);
        }
}

/* Each step is read again and again, as long as the contract allows. */
static void run_in_flight(struct stage *s, bool is_replayed)
{
        uint64_t first = s->b.number + 1;

        for (uint32_t n = 0; n < ROUNDS; n++) {
                struct past *past = &s->past[n % KEPT];

                fill_random(past, is_replayed ? VOCAB : 1 + random_below(VOCAB));
                launch(s, past, is_replayed ? s->b.logits : s->logits[n % KEPT]);
                for (uint32_t i = 0; i < KEPT; i++)
                        if (s->past[i].number >= first && random_below(3))
                                check(s, &s->past[i]);
        }
}

static void results_stay_while_two_more_steps_run(void **state)
{
        run_in_flight(*state, false);
}

static void results_of_replayed_steps_stay_too(void **state)
{
        struct stage *s = *state;

        fixture_warm_up(&s->b);
        run_in_flight(s, true);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_of_every_length_name_the_likeliest_tokens),
                cmocka_unit_test(a_list_that_ends_among_equals_has_those_of_the_lowest_ids),
                cmocka_unit_test(a_small_vocabulary_is_listed_whole),
                cmocka_unit_test(the_log_sum_is_the_last_entry_of_any_pick),
                cmocka_unit_test(the_log_sum_is_near_for_any_size_of_logits),
                cmocka_unit_test(copies_of_rows_have_the_bits_of_their_logits),
                cmocka_unit_test(rows_that_are_not_finite_leave_those_beside_them_alone),
                cmocka_unit_test(results_stay_while_two_more_steps_run),
                cmocka_unit_test(results_of_replayed_steps_stay_too),
        };
        int r = fixture_choose(argc, argv);

        return r ? r : cmocka_run_group_tests(tests, stage_open, stage_close);
}
