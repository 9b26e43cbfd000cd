/*
 * Attention over long contexts: a row's bits do not depend on the other rows of its step, on
 * where its pages are, or on memory that it must not read.
 *
 * Each row is computed alone, with the fastest instruction set and one thread.  All other ways
 * must give the same bits: every instruction set and number of threads, rows in runs that are
 * cut in any way, beside other sequences, from pages in another order, and with missing pages.
 * All NaNs count as equal.
 */
#include "tests/kernels/context.h"

static int open_seats(void **state)
{
        const uint32_t threads[] = { 1, 2, 3, 8 };

        (void)state;
        test_backends_open(threads, 4);
        return 0;
}

static int close_seats(void **state)
{
        (void)state;
        test_backends_close();
        return 0;
}

static float *answers[SLOTS][CONTEXT_LENGTH];

/*
 * The result of the row at a position of a slot alone.  It is computed at the first call and
 * kept, so the pages must be valid at that time.
 */
static const float *alone(const struct context *c, uint32_t slot, uint32_t position)
{
        struct chunk chunk = { slot, position, 1 };
        float **answer = &answers[slot][position];

        if (!*answer) {
                *answer = malloc(context_width(c) * sizeof(**answer));
                assert_non_null(*answer);
                test_backend_attend(&test_backends[1], c, &chunk, 1, *answer);
                for (size_t i = 0; i < context_width(c); i++)
                        assert_true(isfinite((*answer)[i]));
        }
        return *answer;
}

/* A context in the pages of all backends but ref's. */
static void begin(struct context *c)
{
        context_make(c);
        for (uint32_t i = 1; i < test_backend_count; i++) {
                test_backend_use_context(&test_backends[i], c);
                if (i == 1)
                        test_backend_write(&test_backends[i], c, 0, CONTEXT_LENGTH);
                else
                        test_backend_copy(&test_backends[i], &test_backends[1]);
        }
}

static void end(struct context *c)
{
        for (uint32_t i = 1; i < test_backend_count; i++)
                test_backend_end_step(&test_backends[i]);
        for (uint32_t i = 0; i < SLOTS * CONTEXT_LENGTH; i++) {
                free(answers[i / CONTEXT_LENGTH][i % CONTEXT_LENGTH]);
                answers[i / CONTEXT_LENGTH][i % CONTEXT_LENGTH] = NULL;
        }
        context_free(c);
}

struct poisoned { /* numbers written at places where they must make rows differ */
        uint32_t position;
        bool is_v;
        uint32_t kv_head, d;
};

/* Whether a number of the row at `own` has seen it. */
static bool sees(const struct context *c, const struct poisoned *poisoned, uint32_t own,
                 uint32_t head, uint32_t d)
{
        return poisoned && poisoned->position <= own &&
               poisoned->position >= context_first(c, own) &&
               poisoned->kv_head == head / (c->heads / c->kv_heads) &&
               (!poisoned->is_v || poisoned->d == d || KV_HAS_SCALES(c->type));
}

/*
 * Rows must be as they are alone, except for those that see `poisoned`, which are not
 * finite.
 */
static void are_as_alone(struct test_backend *s, const struct context *c,
                         const struct chunk *chunks, uint32_t count,
                         const struct poisoned *poisoned)
{
        float *out = malloc(CONTEXT_ROWS * context_width(c) * sizeof(*out)), *is = out;

        assert_non_null(out);
        test_backend_attend(s, c, chunks, count, out);
        for (uint32_t i = 0; i < count; i++)
                for (uint32_t own = chunks[i].position; own < chunks[i].position + chunks[i].count;
                     own++) {
                        const float *should = alone(c, chunks[i].slot, own);

                        for (uint32_t n = 0; n < context_width(c); n++, is++) {
                                uint32_t head = n / c->head_dim, d = n % c->head_dim;

                                if (sees(c, poisoned, own, head, d)
                                            ? !isfinite(*is)
                                            : float_bits(*is) == float_bits(should[n]))
                                        continue;
                                fail_msg("%s, %u threads, type %d, %u heads of %u, window %u: "
                                         "slot %u, position %u of %u rows from %u on, head %u, "
                                         "number %u is %.9g, alone %.9g; spoilt %d",
                                         s->k->name, s->threads, (int)c->type, c->heads,
                                         c->head_dim, c->window, chunks[i].slot, own,
                                         chunks[i].count, chunks[i].position, head, d, *is,
                                         should[n], poisoned ? (int)poisoned->position : -1);
                        }
                }
        free(out);
}

/* clang-format off */
static const struct context scenes[] = {
        { .type = KV_F16,  .head_dim = 24, .kv_heads = 2, .heads = 6 },
        { .type = KV_BF16, .head_dim = 64, .kv_heads = 1, .heads = 8, .softcap = 3 },
        { .type = KV_INT8, .head_dim = 80, .kv_heads = 3, .heads = 3, .window = 1030,
          .has_slopes = true },
        { .type = KV_F32,  .head_dim = 2,  .kv_heads = 1, .heads = 40, .has_sinks = true },
        { .type = KV_INT8, .head_dim = 20, .kv_heads = 1, .heads = 4 },
        { .type = KV_FP8,  .head_dim = 36, .kv_heads = 2, .heads = 6, .softcap = 2,
          .has_sinks = true },
        { .type = KV_F16,  .head_dim = 7,  .kv_heads = 1, .heads = 2, .window = 70,
          .has_sinks = true, .has_slopes = true },
};
/* clang-format on */
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

static const uint32_t owns[] = { 0,   1,    15,   16,   17,   62,   63,   64,   65,   127,
                                 128, 1022, 1023, 1024, 1025, 2047, 2048, 2049, 2050, 3100 };

static void a_row_alone_has_the_same_bits_for_all_isas_and_thread_counts(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < SCENES; i++) {
                struct context c = scenes[i];

                begin(&c);
                for (uint32_t s = 2; s < test_backend_count; s++)
                        for (uint32_t o = 0; o < sizeof(owns) / sizeof(owns[0]); o++)
                                are_as_alone(&test_backends[s], &c,
                                             &(struct chunk){ 0, owns[o], 1 }, 1, NULL);
                end(&c);
        }
}

/* A part of a prompt in runs of `most` rows, or of random length when `most` is 0. */
static void stretch_as_alone(struct test_backend *s, const struct context *c, uint32_t from,
                             uint32_t to, uint32_t most)
{
        for (uint32_t at = from, n; at < to; at += n) {
                n = most ? most : 1 + random_below(40);
                n = n < to - at ? n : to - at;
                are_as_alone(s, c, &(struct chunk){ 0, at, n }, 1, NULL);
        }
}

static void a_row_has_the_same_bits_in_every_run(void **state)
{
        static const uint32_t stretches[][2] = {
                { 0, 145 }, { 1000, 1040 }, { 2030, 2067 }, { 3060, 3101 }
        };
        static const uint32_t cuts[] = { CONTEXT_ROWS, 0, 2, 5, 16, 33, 64, 7 };

        (void)state;
        for (uint32_t i = 0; i < SCENES; i++) {
                struct context c = scenes[i];

                begin(&c);
                for (uint32_t s = 1; s < test_backend_count; s++)
                        for (uint32_t n = 0; n < 4; n++)
                                for (uint32_t cut = 0; cut < 3; cut++)
                                        stretch_as_alone(&test_backends[s], &c, stretches[n][0],
                                                         stretches[n][1],
                                                         cuts[cut ? 1 + (s * 2 + cut) % 7 : 0]);
                end(&c);
        }
}

static void a_row_has_the_same_bits_beside_others_and_with_any_page_order(void **state)
{
        static const struct chunk companies[][SLOTS] = {
                { { 0, 3100, 1 }, { 1, 500, 20 }, { 2, 1025, 1 } },
                { { 2, 2040, 30 }, { 0, 0, 1 }, { 1, 3151, 1 } },
                { { 1, 1000, 40 }, { 2, 3, 70 }, { 0, 2048, 1 } },
                { { 0, 2049, 1 }, { 1, 2049, 1 }, { 2, 2049, 1 } },
        };
        static const uint32_t strides[] = { 1, 196, 100, 14 };

        (void)state;
        for (uint32_t i = 0; i < SCENES; i++) {
                struct context c = scenes[i];

                begin(&c);
                for (uint32_t n = 0; n < 4; n++)
                        for (uint32_t s = 1; s < test_backend_count; s++) {
                                are_as_alone(&test_backends[s], &c, companies[n], SLOTS, NULL);
                                test_backend_order_pages(&test_backends[s], strides[n]);
                                are_as_alone(&test_backends[s], &c, companies[n], SLOTS, NULL);
                        }
                end(&c);
        }
}

/* ---- positions that a row must not see ---- */

static const float bads[] = { NAN, INFINITY, -INFINITY, 3e38f };
#define BADS 4u

/* All that is at positions [from, to), K and V. */
static void spoil_all(struct test_backend *s, const struct context *c, uint32_t from, uint32_t to,
                      float bad)
{
        struct context spoilt = *c;
        size_t count = (size_t)c->kv_heads * c->head_dim;

        spoilt.k = malloc(CONTEXT_LENGTH * count * sizeof(float));
        assert_non_null(spoilt.k);
        spoilt.v = spoilt.k;
        for (size_t i = from * count; i < to * count; i++)
                spoilt.k[i] = i % 3 ? bad : -bad;
        test_backend_write(s, &spoilt, from, to);
        free(spoilt.k);
}

/*
 * A run up to `own` while all positions behind it hold `bad`.  Then its last row alone, without
 * the pages behind it.
 */
static void nothing_later_is_seen(struct test_backend *s, const struct context *c, uint32_t own,
                                  float bad)
{
        uint32_t to = own + 100, page = own / PAGE_POSITIONS + 1;
        struct chunk run = { 0, own > 20 ? own - 20 : 0, 1 + (own > 20 ? 20 : own) };

        for (uint32_t i = 0; i < run.count; i++)
                alone(c, 0, run.position + i);
        to = to < CONTEXT_LENGTH ? to : CONTEXT_LENGTH;
        spoil_all(s, c, own + 1, to, bad);
        are_as_alone(s, c, &run, 1, NULL);
        test_backend_pages(s, 0, page, CONTEXT_PAGES, false);
        are_as_alone(s, c, &run, 1, NULL);
        are_as_alone(s, c, &(struct chunk){ 0, own, 1 }, 1, NULL);
        test_backend_pages(s, 0, page, CONTEXT_PAGES, true);
        test_backend_write(s, c, own + 1, to);
}

static void later_positions_change_no_bit_of_a_row(void **state)
{
        static const uint32_t places[] = { 0, 14, 15, 40, 62, 63, 64, 1000, 1023, 2047, 3100 };
        const uint32_t count = sizeof(places) / sizeof(places[0]);

        (void)state;
        for (uint32_t i = 0; i < SCENES; i++) {
                struct context c = scenes[i];

                begin(&c);
                for (uint32_t s = 1; s < test_backend_count; s++)
                        for (uint32_t n = s % 2; n < count; n += 2)
                                nothing_later_is_seen(&test_backends[s], &c, places[n],
                                                      bads[(s + n / 2) % BADS]);
                end(&c);
        }
}

/* Two rows, of which the first sees from `first` on: all before is poisoned, then not there. */
static void nothing_before_is_seen(struct test_backend *s, const struct context *c, uint32_t first,
                                   float bad)
{
        struct chunk run = { 0, first + c->window - 1, 2 }, one = { 0, run.position, 1 };
        uint32_t from = first > 100 ? first - 100 : 0, pages = first / PAGE_POSITIONS;

        alone(c, 0, run.position);
        alone(c, 0, run.position + 1);
        spoil_all(s, c, from, first, bad);
        are_as_alone(s, c, &run, 1, NULL);
        test_backend_pages(s, 0, 0, pages, false);
        are_as_alone(s, c, &run, 1, NULL);
        are_as_alone(s, c, &one, 1, NULL);
        test_backend_pages(s, 0, 0, pages, true);
        test_backend_write(s, c, from, first);
}

static void positions_before_the_window_change_no_bit_and_may_be_missing(void **state)
{
        static const uint32_t firsts[] = { 1, 15, 16, 17, 63, 64, 65, 90, 1000, 1023, 1024, 2049 };
        static const uint32_t windows[] = { 1, 5, 16, 50, 64, 65, 1000, 1030 };
        const uint32_t count = sizeof(firsts) / sizeof(firsts[0]);

        (void)state;
        for (uint32_t i = 0; i < 8; i++) {
                struct context c = scenes[i % SCENES];

                c.window = windows[i];
                begin(&c);
                for (uint32_t s = 1; s < test_backend_count; s++)
                        for (uint32_t n = s % 3; n < count; n += s == 1 ? 1 : 3)
                                nothing_before_is_seen(&test_backends[s], &c, firsts[n],
                                                       bads[(s + n) % BADS]);
                end(&c);
        }
}

/* One number of K or V, within a run or before it. */
static void spoil_one(struct test_backend *s, const struct context *c, struct poisoned poisoned,
                      uint32_t from, float bad)
{
        struct chunk run = { 0, from, 30 };
        float *at = context_at(c, poisoned.is_v ? c->v : c->k, poisoned.position), was;

        for (uint32_t i = 0; i < run.count; i++)
                alone(c, 0, run.position + i);
        at += poisoned.kv_head * c->head_dim + poisoned.d;
        was = *at;
        *at = bad;
        test_backend_write(s, c, poisoned.position, poisoned.position + 1);
        are_as_alone(s, c, &run, 1, &poisoned);
        are_as_alone(s, c, &(struct chunk){ 0, from + 7, 1 }, 1, &poisoned);
        *at = was;
        test_backend_write(s, c, poisoned.position, poisoned.position + 1);
}

/* A NaN in K or V, or an infinity in V. */
static void a_nan_or_infinity_affects_only_rows_that_see_it(void **state)
{
        static const uint32_t places[][2] = {
                /* of it, and of a run */
                { 0, 0 },       { 15, 0 },      { 16, 10 },     { 63, 40 },     { 64, 40 },
                { 64, 110 },    { 47, 117 },    { 1023, 1010 }, { 1024, 1010 }, { 1024, 2045 },
                { 1000, 1060 }, { 1000, 2010 }, { 2047, 2040 }, { 2048, 2040 }, { 2050, 3080 },
                { 3079, 3080 }, { 3109, 3080 }, { 5, 3080 }
        };
        const uint32_t count = sizeof(places) / sizeof(places[0]);

        (void)state;
        for (uint32_t i = 0; i < SCENES; i++) {
                struct context c = scenes[i];

                begin(&c);
                for (uint32_t s = 1; s < test_backend_count; s++)
                        for (uint32_t n = s % 3; n < count; n += s == 1 ? 1 : 3) {
                                struct poisoned poisoned = { .position = places[n][0],
                                                             .is_v = (s + n + i) % 2,
                                                             .kv_head = random_below(c.kv_heads),
                                                             .d = random_below(c.head_dim) };

                                spoil_one(&test_backends[s], &c, poisoned, places[n][1],
                                          bads[poisoned.is_v ? n % 3 : 0]);
                        }
                end(&c);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_row_alone_has_the_same_bits_for_all_isas_and_thread_counts),
                cmocka_unit_test(a_row_has_the_same_bits_in_every_run),
                cmocka_unit_test(a_row_has_the_same_bits_beside_others_and_with_any_page_order),
                cmocka_unit_test(later_positions_change_no_bit_of_a_row),
                cmocka_unit_test(positions_before_the_window_change_no_bit_and_may_be_missing),
                cmocka_unit_test(a_nan_or_infinity_affects_only_rows_that_see_it),
        };

        random_seed();
        return cmocka_run_group_tests(tests, open_seats, close_seats);
}
