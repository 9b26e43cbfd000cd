/*
 * Picking from logits that head() made in the same step, with any backend: `test-pick-head
 * ref`, `test-pick-head cpu`.  While a backend makes logits it may keep notes for the pick.
 * The tests cover all ways in which such notes could belong to other logits.  Picks are
 * compared with the definition (ref-sampler.h) for the logits that get() returns.
 *
 * Column c of the matrix holds the logits of row c: x has 4 there and 0 elsewhere.  A masked
 * logit is 4 times a number so large that the product overflows.
 */
#include <stdio.h>
#include <time.h>

#include "tests/kernels/pick-fixture.h"
#include "tests/kernels/pick-rows.h"

#define VOCAB   9001u
#define WANTS   64u
#define COLUMNS 64u
#define MASK    -3e38f

struct stage {
        struct fixture b;
        struct matrix *matrix;
        uint32_t vocab; /* of mat */
        float *weights; /* (vocab, COLUMNS), on the host */
        float *x, *other;
        float *row; /* of logits, on the host */
};

static int stage_open(void **state)
{
        static struct stage s;
        const char *seed = getenv("SEED");

        random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
        print_message("SEED=%llu\n", (unsigned long long)random_state);
        fixture_open(&s.b, VOCAB, WANTS);
        s.weights = malloc((size_t)VOCAB * COLUMNS * sizeof(*s.weights));
        s.row = malloc(VOCAB * sizeof(*s.row));
        assert_true(s.weights && s.row);
        assert_int_equal(s.b.k->floats_new(s.b.k, (size_t)WANTS * COLUMNS, &s.x), 0);
        assert_int_equal(s.b.k->floats_new(s.b.k, (size_t)WANTS * VOCAB, &s.other), 0);
        *state = &s;
        return 0;
}

static int stage_close(void **state)
{
        struct stage *s = *state;

        s->b.k->floats_free(s->b.k, s->x);
        s->b.k->floats_free(s->b.k, s->other);
        free(s->weights);
        free(s->row);
        fixture_close(&s->b);
        return 0;
}

/* ---- a matrix ---- */

static void matrix_make(struct stage *s, enum row_type type)
{
        struct matrix_shape shape = {
                .columns = COLUMNS, .parts = 1, .rows = { s->vocab }, .type = { type }
        };
        uint16_t *halves = malloc((size_t)s->vocab * COLUMNS * sizeof(*halves));

        assert_non_null(halves);
        for (size_t i = 0; i < (size_t)s->vocab * COLUMNS; i++) {
                uint32_t u;

                memcpy(&u, &s->weights[i], sizeof(u));
                halves[i] = (uint16_t)(u >> 16);
        }
        assert_int_equal(s->b.k->matrix_new(s->b.k, &shape, &s->matrix), 0);
        assert_int_equal(s->b.k->weights_put(s->b.k, s->matrix, 0, 0, s->vocab,
                                             type == ROW_F32 ? (void *)s->weights : halves),
                         0);
        free(halves);
}

/* Columns of all kinds that are finite. */
static void weights_make(struct stage *s, uint32_t vocab)
{
        static const enum row_kind kinds[] = { PLAIN, FLAT,  STEEP, PEAKED, STEPS,
                                               TWO,   EQUAL, CROWD, MASKED, BLOCKS };

        s->vocab = vocab;
        for (uint32_t c = 0; c < COLUMNS; c++) {
                random_row(s->row, vocab, kinds[c % 10]);
                for (uint32_t i = 0; i < vocab; i++)
                        s->weights[i * COLUMNS + c] = s->row[i] == -INFINITY ? MASK : s->row[i] / 4;
        }
}

static void stage_set(struct stage *s, uint32_t vocab)
{
        weights_make(s, vocab);
        matrix_make(s, ROW_F32);
}

static void stage_clear(struct stage *s)
{
        s->b.k->matrix_free(s->b.k, s->matrix);
}

/* ---- a step ---- */

static void begin(struct stage *s, const uint32_t *want, const struct pick *picks, uint32_t count)
{
        static float x[WANTS * COLUMNS];

        for (uint32_t i = 0; i < WANTS; i++)
                x[i * COLUMNS + i] = 4;
        s->b.k->put(s->b.k, s->x, x, WANTS * COLUMNS);
        fixture_begin(&s->b, want, picks, count);
}

static void run_head(struct stage *s, float *logits, float softcap)
{
        struct head op = { .w = s->matrix, .softcap = softcap };

        assert_int_equal(s->b.k->head(s->b.k, &op, logits, s->x), 0);
}

/* Picks, ends the step, and checks the picks and the reported numbers. */
static void expect_picks(struct stage *s, const float *logits, uint32_t vocab,
                         const struct pick *picks, uint32_t count)
{
        uint32_t tokens[WANTS];

        assert_int_equal(s->b.k->pick(s->b.k, logits, vocab), 0);
        fixture_end(&s->b, tokens);
        for (uint32_t i = 0; i < count; i++) {
                s->b.k->get(s->b.k, s->row, logits + (size_t)i * vocab, vocab);
                ref_sampler_load(&s->b.ref_sampler, s->row, vocab);
                expect_picked(&s->b, &picks[i], tokens[i]);
                if (tokens[i] != PICK_NOT_FINITE)
                        expect_logprobs(&s->b, s->b.number, i, &picks[i], tokens[i]);
        }
}

/* One of each kind first; of a sort that is the same in all, too. */
static void picks_make(struct pick *picks, uint32_t count, uint32_t vocab)
{
        const struct pick plain[] = {
                { .top_p = 1, .logprobs = 2 },
                { .temperature = 1, .top_p = 1, .logprobs = 2 },
                { .temperature = 0.7f, .top_p = 1, .top_k = 40, .logprobs = 1 },
                { .temperature = 0.7f, .top_p = 0.9f },
                { .temperature = 1, .top_p = 1, .min_p = 0.05f, .logprobs = 2 },
                { .temperature = 1.5f, .top_p = 0.95f, .min_p = 0.02f, .top_k = 500 },
        };

        for (uint32_t i = 0; i < count; i++) {
                picks[i] = i < 12 ? plain[i % 6] : random_pick(vocab);
                picks[i].seed = random_next();
                picks[i].position = i;
        }
}

static void run(struct stage *s, const uint32_t *want, uint32_t count, float softcap)
{
        struct pick picks[WANTS];

        picks_make(picks, count, s->vocab);
        begin(s, want, picks, count);
        run_head(s, s->b.logits, softcap);
        expect_picks(s, s->b.logits, s->vocab, picks, count);
}

/* ---- what head() made ---- */

static void expect_the_columns(struct stage *s)
{
        for (uint32_t i = 0; i < WANTS; i++) {
                s->b.k->get(s->b.k, s->row, s->b.logits + (size_t)i * s->vocab, s->vocab);
                for (uint32_t j = 0; j < s->vocab; j++)
                        assert_true(s->row[j] == 4 * s->weights[j * COLUMNS + i]);
        }
}

static void picks_follow_the_logits_that_head_computed(void **state)
{
        static const uint32_t vocabs[] = { 1, 2, 31, 32, 33, 63, 64, 65, 95, 1000, 1023, VOCAB };
        static const uint32_t some[] = { 1, 4, 5, 6, 27, 38, 59 }, one[] = { 8 };
        struct stage *s = *state;
        uint32_t all[WANTS];

        for (uint32_t i = 0; i < WANTS; i++)
                all[i] = i;
        for (size_t n = 0; n < sizeof(vocabs) / sizeof(vocabs[0]); n++) {
                stage_set(s, vocabs[n]);
                run(s, all, WANTS, 0);
                expect_the_columns(s);
                run(s, some, 7, 0);
                run(s, one, 1, 0);
                run(s, all, 13, 5);
                run(s, some, 7, 30);
                stage_clear(s);
        }
}

static void picks_follow_the_logits_of_bf16_weights(void **state)
{
        static const uint32_t want[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 };
        struct stage *s = *state;

        weights_make(s, 1001);
        matrix_make(s, ROW_BF16);
        run(s, want, 14, 0);
        run(s, want, 14, 20);
        stage_clear(s);
}

static void logprobs_follow_the_logits_that_head_computed(void **state)
{
        static const float temperatures[] = { 0, 1, 0.7f };
        static const uint32_t vocabs[] = { 33, 1000, VOCAB };
        struct stage *s = *state;
        struct pick picks[10];
        uint32_t want[10];

        for (size_t n = 0; n < 9; n++) {
                stage_set(s, vocabs[n / 3]);
                for (uint32_t i = 0; i < 10; i++) {
                        picks[i] = pick_drawn(temperatures[n % 3], i, random_next());
                        picks[i].logprobs = i % 3 == 0 ? logprobs_most(vocabs[n / 3]) : i;
                        want[i] = i;
                }
                begin(s, want, picks, 10);
                run_head(s, s->b.logits, n & 1 ? 8.0f : 0);
                expect_picks(s, s->b.logits, s->vocab, picks, 10);
                stage_clear(s);
        }
}

/* ---- numbers that are not finite ---- */

/* A weight that is no number makes the logit of its token none, in all rows. */
static void a_weight_that_is_not_finite_fails_the_pick_of_all_rows(void **state)
{
        static const uint32_t want[] = { 0, 1, 2, 3, 4, 5 }, vocab = 203;
        static const uint32_t places[] = { 0, 1, 31, 32, 64, 100, 191, 192, 201, 202 };
        const float bad[] = { NAN, INFINITY, -INFINITY }; /* times 0: NaN */
        struct stage *s = *state;

        for (uint32_t i = 0; i < 10; i++) {
                struct pick picks[6];
                uint32_t tokens[6];

                weights_make(s, vocab);
                s->weights[places[i] * COLUMNS + COLUMNS - 1] = bad[i % 3];
                matrix_make(s, ROW_F32);
                picks_make(picks, 6, vocab);
                begin(s, want, picks, 6);
                run_head(s, s->b.logits, i & 1 ? 10.0f : 0);
                assert_int_equal(s->b.k->pick(s->b.k, s->b.logits, vocab), 0);
                fixture_end(&s->b, tokens);
                for (uint32_t w = 0; w < 6; w++)
                        assert_int_equal(tokens[w], PICK_NOT_FINITE);
                stage_clear(s);
        }
}

/* One of x does so in its own row only; and a product may be too large for a float. */
static void a_row_that_is_not_finite_fails_only_its_own_pick(void **state)
{
        static const uint32_t want[] = { 0, 1, 2, 3, 4, 5, 6 }, vocab = 333;
        const float nan = NAN;
        struct stage *s = *state;
        struct pick picks[7];
        uint32_t tokens[7];

        weights_make(s, vocab);
        s->weights[330 * COLUMNS + 5] = 3e38f; /* times 4 */
        matrix_make(s, ROW_F32);
        picks_make(picks, 7, vocab);
        begin(s, want, picks, 7);
        s->b.k->put(s->b.k, s->x + 2 * COLUMNS, &nan, 1);
        run_head(s, s->b.logits, 0);
        assert_int_equal(s->b.k->pick(s->b.k, s->b.logits, vocab), 0);
        fixture_end(&s->b, tokens);
        for (uint32_t i = 0; i < 7; i++) {
                s->b.k->get(s->b.k, s->row, s->b.logits + i * vocab, vocab);
                ref_sampler_load(&s->b.ref_sampler, s->row, vocab);
                assert_true(s->b.ref_sampler.finite == (i != 2 && i != 5));
                expect_picked(&s->b, &picks[i], tokens[i]);
        }
        stage_clear(s);
}

/* ---- what head() did not make ---- */

static const uint32_t first_six[] = { 0, 1, 2, 3, 4, 5 };

static uint32_t largest_of(struct stage *s, uint32_t row)
{
        uint32_t best = 0;

        s->b.k->get(s->b.k, s->row, s->b.logits + (size_t)row * s->vocab, s->vocab);
        for (uint32_t i = 0; i < s->vocab; i++)
                if (s->row[i] > s->row[best])
                        best = i;
        return best;
}

static void a_logit_put_after_head_is_used(void **state)
{
        static const uint32_t vocab = 333, places[] = { 0, 31, 32, 200, 319, 320, 332 };
        const float values[] = { 40, -INFINITY, NAN, INFINITY };
        struct stage *s = *state;

        stage_set(s, vocab);
        for (uint32_t i = 0; i < 7 * 4; i++) {
                struct pick picks[6];
                uint32_t row = i % 6, at = places[i / 4];

                picks_make(picks, 6, vocab);
                begin(s, first_six, picks, 6);
                run_head(s, s->b.logits, 0);
                if (i % 4 == 1) /* the row's largest logit is no longer the largest */
                        at = largest_of(s, row);
                s->b.k->put(s->b.k, s->b.logits + row * vocab + at, &values[i % 4], 1);
                expect_picks(s, s->b.logits, vocab, picks, 6);
        }
        stage_clear(s);
}

static void rows_put_after_head_are_used(void **state)
{
        static const uint32_t vocab = 1000;
        static float rows[3 * 1000];
        struct stage *s = *state;
        struct pick picks[6];

        stage_set(s, vocab);
        for (uint32_t i = 0; i < 6; i++) {
                /* from the middle of one row to that of another */
                uint32_t from = i == 5 ? 500 : i * 500;

                picks_make(picks, 6, vocab);
                for (uint32_t r = 0; r < 3; r++)
                        random_row(rows + r * vocab, vocab, (enum row_kind)(i + r));
                begin(s, first_six, picks, 6);
                run_head(s, s->b.logits, 0);
                s->b.k->put(s->b.k, s->b.logits + from, rows, 3 * vocab);
                expect_picks(s, s->b.logits, vocab, picks, 6);
        }
        stage_clear(s);
}

/* Numbers put before head() are overwritten, and numbers put elsewhere have no effect. */
static void numbers_put_before_head_or_elsewhere_have_no_effect(void **state)
{
        static const uint32_t vocab = 1000;
        static float row[1000];
        struct stage *s = *state;
        struct pick picks[6];

        stage_set(s, vocab);
        picks_make(picks, 6, vocab);
        random_row(row, vocab, STEEP);
        begin(s, first_six, picks, 6);
        s->b.k->put(s->b.k, s->b.logits + vocab, row, vocab);
        run_head(s, s->b.logits, 0);
        s->b.k->put(s->b.k, s->other + vocab, row, vocab);
        s->b.k->put(s->b.k, s->x, row, COLUMNS);
        expect_picks(s, s->b.logits, vocab, picks, 6);
        stage_clear(s);
}

static void picks_from_another_buffer_than_the_last_head_wrote(void **state)
{
        static const uint32_t vocab = 1000;
        struct stage *s = *state;
        struct pick picks[6];

        stage_set(s, vocab);
        picks_make(picks, 6, vocab);
        for (uint32_t i = 0; i < 6; i++) {
                random_row(s->row, vocab, (enum row_kind)(PLAIN + i));
                s->b.k->put(s->b.k, s->other + i * vocab, s->row, vocab);
        }
        begin(s, first_six, picks, 6);
        run_head(s, s->b.logits, 0);
        expect_picks(s, s->other, vocab, picks, 6);
        /* and two heads in a step, of which either may be the one */
        for (uint32_t i = 0; i < 2; i++) {
                begin(s, first_six, picks, 6);
                run_head(s, s->b.logits, 0);
                run_head(s, s->other, 3);
                expect_picks(s, i ? s->other : s->b.logits, vocab, picks, 6);
        }
        stage_clear(s);
}

/*
 * Later steps pick from the same logits: the same rows for fewer picks, the second row as the
 * first, and shorter rows.  The backend no longer has notes of their weights at temperatures
 * that those rows did not use.
 */
static void later_steps_can_pick_from_the_logits_of_an_earlier_head(void **state)
{
        static const uint32_t vocab = 1000, others[] = { 3, 4, 7 }, shorter[] = { 1000, 501, 251 };
        struct stage *s = *state;
        struct pick picks[6];

        stage_set(s, vocab);
        for (uint32_t i = 0; i < 16; i++) {
                picks_make(picks, 6, vocab);
                begin(s, first_six, picks, 6);
                run_head(s, s->b.logits, 0);
                expect_picks(s, s->b.logits, vocab, picks, 6);
                for (uint32_t j = 0; j < 3; j++)
                        picks[j] = pick_drawn(j == 1 ? 0.3f : 4, j, random_next());
                fixture_begin(&s->b, others, picks, 3);
                expect_picks(s, s->b.logits + i % 2 * vocab, shorter[i % 3], picks, 3);
        }
        stage_clear(s);
}

static void picks_from_rows_shorter_than_those_of_head(void **state)
{
        static const uint32_t vocab = 1000, shorter[] = { 1, 31, 32, 500, 991, 999 };
        struct stage *s = *state;
        struct pick picks[6];

        stage_set(s, vocab);
        for (uint32_t i = 0; i < 6; i++) {
                picks_make(picks, 6, shorter[i] < 40 ? 1 : shorter[i]);
                begin(s, first_six, picks, 6);
                run_head(s, s->b.logits, 0);
                expect_picks(s, s->b.logits, shorter[i], picks, 6);
                begin(s, first_six, picks, 5);
                run_head(s, s->b.logits, 0);
                expect_picks(s, s->b.logits + vocab, vocab, picks, 5);
        }
        stage_clear(s);
}

/* Another buffer may lie where one was; and any operator may write where head() did. */
static void picks_from_logits_in_reused_or_overwritten_buffers(void **state)
{
        static const uint32_t vocab = 500;
        struct matrix_shape shape = { .columns = 500, .parts = 1, .rows = { 1 } };
        struct stage *s = *state;
        struct pick picks[6];
        struct matrix *table;
        float *logits;

        stage_set(s, vocab);
        picks_make(picks, 6, vocab);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(s->b.k->floats_new(s->b.k, 6 * vocab, &logits), 0);
                begin(s, first_six, picks, 6);
                if (!i) /* else they are zeros */
                        run_head(s, logits, 0);
                expect_picks(s, logits, vocab, picks, 6);
                s->b.k->floats_free(s->b.k, logits);
        }
        assert_int_equal(s->b.k->matrix_new(s->b.k, &shape, &table), 0);
        random_row(s->row, vocab, STEEP);
        assert_int_equal(s->b.k->weights_put(s->b.k, table, 0, 0, 1, s->row), 0);
        begin(s, first_six, picks, 6);
        run_head(s, s->b.logits, 0);
        assert_int_equal(s->b.k->embed(s->b.k, &(struct embed){ table, 1 }, s->b.logits), 0);
        expect_picks(s, s->b.logits, vocab, picks, 6);
        s->b.k->matrix_free(s->b.k, table);
        stage_clear(s);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(picks_follow_the_logits_that_head_computed),
                cmocka_unit_test(picks_follow_the_logits_of_bf16_weights),
                cmocka_unit_test(logprobs_follow_the_logits_that_head_computed),
                cmocka_unit_test(a_weight_that_is_not_finite_fails_the_pick_of_all_rows),
                cmocka_unit_test(a_row_that_is_not_finite_fails_only_its_own_pick),
                cmocka_unit_test(a_logit_put_after_head_is_used),
                cmocka_unit_test(rows_put_after_head_are_used),
                cmocka_unit_test(numbers_put_before_head_or_elsewhere_have_no_effect),
                cmocka_unit_test(picks_from_another_buffer_than_the_last_head_wrote),
                cmocka_unit_test(later_steps_can_pick_from_the_logits_of_an_earlier_head),
                cmocka_unit_test(picks_from_rows_shorter_than_those_of_head),
                cmocka_unit_test(picks_from_logits_in_reused_or_overwritten_buffers),
        };
        int r = fixture_choose(argc, argv);

        return r ? r : cmocka_run_group_tests(tests, stage_open, stage_close);
}
