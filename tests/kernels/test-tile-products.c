/*
 * Products of bfloats by tiles (kernels/cpu/product-tiles.h), emulated and of the processor: each
 * bit, whatever rows are multiplied together, and whatever calls were before.  Also the conversion
 * of rows of x for them.
 */
#include "tests/kernels/small-model.h"

#include <pthread.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/tiles.h"
#include "tests/kernels/exact-sums.h"
#include "tests/skip.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define GUARD        64u
#define UNTOUCHED    0xa5
#define TOKENS       67u
#define MANY         512u

static void *memory(size_t bytes, int with)
{
        void *m = malloc(bytes);

        assert_non_null(m);
        memset(m, with, bytes);
        return m;
}

/* A panel, rows of x, and the bits of their products. */
struct problem {
        uint32_t columns;
        uint16_t *file; /* 32 rows */
        uint8_t *panel;
        uint16_t *x; /* TOKENS rows, each with a zero behind it if `columns` is odd */
        uint32_t *should;
};

static uint32_t even_columns(const struct problem *p)
{
        return p->columns + p->columns % 2;
}

/* The sum begins with 0.  Each 32 columns are one dot, in the order of columns. */
static uint32_t product_bits(const uint16_t *x, const uint16_t *w, uint32_t columns)
{
        uint32_t sum = 0;

        for (uint32_t at = 0; at < columns; at += 32) {
                uint32_t left = columns - at < 32 ? columns - at : 32;

                sum = exact_dot_add(sum, x + at, w + at, 2, left / 2);
        }
        return sum;
}

static void problem_fill(struct problem *p)
{
        static const enum numbers kinds[4] = { OF_A_MODEL, OF_A_MODEL, OF_A_MODEL, BRINK };

        for (uint32_t row = 0; row < PANEL; row++)
                for (uint32_t k = 0; k < p->columns; k++)
                        p->file[row * p->columns + k] = bfloat_any(kinds[row % 4]);
        for (uint32_t t = 0; t < TOKENS; t++) {
                uint16_t *row = p->x + (size_t)t * even_columns(p);
                enum numbers kind = t % 8 == 5 ? ANY_SIZE : kinds[t % 4];

                for (uint32_t k = 0; k < p->columns; k++)
                        row[k] = bfloat_any(kind);
                if (t % 8 == 6)
                        row[random_below(p->columns)] = special_any();
        }
        if (random_below(2))
                p->file[random_below(PANEL * p->columns)] = special_any();
}

static void problem_make(struct problem *p, uint32_t columns)
{
        uint16_t *w;

        *p = (struct problem){ .columns = columns };
        p->file = memory(PANEL * (size_t)columns * 2, 0);
        p->x = memory(TOKENS * (size_t)even_columns(p) * 2, 0);
        p->should = memory((size_t)TOKENS * PANEL * 4, 0);
        problem_fill(p);
        p->panel = aligned_alloc(64, panel_bytes(ROW_BF16, columns));
        assert_non_null(p->panel);
        memset(p->panel, 0xff, panel_bytes(ROW_BF16, columns));
        panel_put(ROW_BF16, p->panel, 0, PANEL, columns, (const uint8_t *)p->file);
        w = memory(even_columns(p) * 2, 0);
        for (uint32_t row = 0; row < PANEL; row++) {
                memcpy(w, p->file + row * columns, columns * 2);
                for (uint32_t t = 0; t < TOKENS; t++)
                        p->should[t * PANEL + row] = product_bits(
                                p->x + (size_t)t * even_columns(p), w, even_columns(p));
        }
        free(w);
}

static void problem_free(struct problem *p)
{
        free(p->file);
        free(p->panel);
        free(p->x);
        free(p->should);
}

/*
 * Row t of the call is row (first + t * step) % TOKENS of the problem.  Behind the zero that ends
 * a row are NaNs.  Returns whether all is as it should be: threads cannot fail a test.
 */
static bool product_is_right(const struct isa *isa, const struct problem *p, uint32_t first,
                             uint32_t step, uint32_t tokens, uint32_t more)
{
        const size_t stride = act_stride(ACT_BFLOATS, p->columns) + more;
        const size_t bytes = tokens * PANEL * sizeof(float);
        uint8_t *x = aligned_alloc(64, tokens * stride);
        uint8_t *out = aligned_alloc(64, GUARD + bytes + GUARD);
        bool is_right = x && out;

        memset(x, 0xff, tokens * stride);
        memset(out, UNTOUCHED, GUARD + bytes + GUARD);
        for (uint32_t t = 0; t < tokens; t++) {
                uint16_t *row = (uint16_t *)(x + t * stride);

                memcpy(row, p->x + (first + t * step) % TOKENS * (size_t)even_columns(p),
                       p->columns * 2);
                row[p->columns] = 0;
        }
        isa->product(&(struct piece){ .type = ROW_BF16,
                                      .columns = p->columns,
                                      .panels = p->panel,
                                      .panel_count = 1,
                                      .acts = x,
                                      .act_stride = stride,
                                      .rows = tokens,
                                      .lone_ahead = more ? 2048 : 0 },
                     (float *)(out + GUARD));
        for (uint32_t n = 0; n < tokens * PANEL; n++) {
                uint32_t is, token = (first + n / PANEL * step) % TOKENS;

                memcpy(&is, out + GUARD + n * sizeof(is), sizeof(is));
                is_right = is_right && is_same(is, p->should[token * PANEL + n % PANEL]);
        }
        for (uint32_t i = 0; i < GUARD; i++)
                is_right = is_right && out[i] == UNTOUCHED && out[GUARD + bytes + i] == UNTOUCHED;
        free(x);
        free(out);
        return is_right;
}

static void product_check(const struct isa *isa, const struct problem *p, uint32_t first,
                          uint32_t step, uint32_t tokens)
{
        if (!product_is_right(isa, p, first, step, tokens, random_below(2) * 64))
                fail_msg("%s, %u columns: %u tokens from %u on, each %u further, have other bits",
                         isa->name, p->columns, tokens, first, step);
}

/*
 * Each row alone; then, of each number of rows, some that follow each other, and one row at every
 * place.
 */
static void all_sizes_check(const struct isa *isa, const struct problem *p)
{
        for (uint32_t t = 0; t < TOKENS; t++)
                product_check(isa, p, t, 1, 1);
        for (uint32_t tokens = 2; tokens <= TOKENS; tokens++) {
                if (p->columns > 130 && tokens % 16 > 1 && tokens != TOKENS)
                        continue;
                product_check(isa, p, random_below(TOKENS), 1, tokens);
                product_check(isa, p, random_below(TOKENS), 0, tokens);
        }
        if (p->columns <= 100)
                product_check(isa, p, random_below(TOKENS), 3, MANY);
}

static void all_columns_check(const struct isa *isa)
{
        static const uint32_t columns[] = { 1,   2,   3,   4,   15,  16,  17,  30,   31,   32,
                                            33,  34,  62,  63,  64,  65,  66,  95,   96,   97,
                                            100, 127, 128, 129, 255, 256, 257, 1001, 2048, 2049 };

        for (size_t i = 0; i < COUNT(columns); i++) {
                struct problem p;

                problem_make(&p, columns[i]);
                all_sizes_check(isa, &p);
                problem_free(&p);
        }
}

static void products_have_the_bits_of_exact_arithmetic_in_every_batch(void **state)
{
        (void)state;
        memset(&seen, 0, sizeof(seen));
        all_columns_check(&isa_amx_emulated);
        assert_true(seen.brinks > 500 && seen.flushed > 5000);
        assert_true(seen.minus_zeros > 500 && seen.nans > 500);
}

#define PROBLEMS 24u

/* Most have one tile or two, and any number of columns in the last one. */
static struct problem *problems_make(void)
{
        struct problem *all = memory(PROBLEMS * sizeof(*all), 0);

        for (uint32_t i = 0; i < PROBLEMS; i++)
                problem_make(&all[i], i < 8 ? 1 + random_below(32) : 1 + random_below(130));
        return all;
}

static void problems_free(struct problem *all)
{
        for (uint32_t i = 0; i < PROBLEMS; i++)
                problem_free(&all[i]);
        free(all);
}

/* A product of another type. */
static void other_product(const struct isa *isa)
{
        static const float x[64] = { 0.1f }, w[64 * PANEL] = { 0.3f };
        float out[PANEL] = { 0 };

        isa->product(&(struct piece){ .type = ROW_F32,
                                      .columns = 64,
                                      .panels = (const uint8_t *)w,
                                      .panel_count = 1,
                                      .acts = (const uint8_t *)x,
                                      .act_stride = sizeof(x),
                                      .rows = 1 },
                     out);
        assert_true(out[0] == 0.1f * 0.3f && out[1] == 0);
}

/* After TILERELEASE a tile has no size. */
static void sleep_between(const struct isa *isa)
{
        isa->rest();
}

static void mixed_calls_check(const struct isa *isa)
{
        struct problem *all = problems_make();

        for (uint32_t call = 0; call < 2000; call++) {
                const struct problem *p = &all[random_below(PROBLEMS)];
                uint32_t tokens = 1 + random_below(random_below(2) ? 20 : TOKENS);

                product_check(isa, p, random_below(TOKENS), random_below(3), tokens);
                if (random_below(8) == 0)
                        other_product(isa);
                if (random_below(8) == 0) {
                        sleep_between(isa);
                        product_check(isa, p, random_below(TOKENS), 1, tokens);
                }
        }
        problems_free(all);
}

static void products_do_not_depend_on_the_calls_before(void **state)
{
        (void)state;
        mixed_calls_check(&isa_amx_emulated);
}

struct caller {
        pthread_t thread;
        const struct isa *isa;
        const struct problem *all;
        uint32_t first, wrong;
};

static void *caller_main(void *argument)
{
        struct caller *c = argument;

        for (uint32_t i = 0; i < 300; i++)
                c->wrong += !product_is_right(c->isa, &c->all[(c->first + i) % PROBLEMS], i, 1,
                                              1 + (c->first + i * 7) % TOKENS, 0);
        c->isa->rest();
        return NULL;
}

static void threads_check(const struct isa *isa)
{
        struct problem *all = problems_make();
        struct caller callers[3];
        uint32_t wrong = 0;

        for (uint32_t i = 0; i < COUNT(callers); i++) {
                callers[i] = (struct caller){ .isa = isa, .all = all, .first = i * 5 };
                assert_int_equal(pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]),
                                 0);
        }
        for (uint32_t i = 0; i < COUNT(callers); i++) {
                assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
                wrong += callers[i].wrong;
        }
        problems_free(all);
        assert_int_equal(wrong, 0);
}

static void products_of_several_threads_are_right(void **state)
{
        (void)state;
        threads_check(&isa_amx_emulated);
}

/* ---- tiles of the processor ---- */

/* isa_amx, or NULL. */
static const struct isa *of_processor;

static int tiles_find(void **state)
{
        (void)state;
#if defined(__x86_64__)
        if (tiles_ask() && __builtin_cpu_supports("avx512vnni") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"))
                of_processor = &isa_amx;
#endif
        return 0;
}

static void products_by_the_processor_have_the_same_bits(void **state)
{
        (void)state;
        if (!of_processor)
                skip_because("the processor has no tiles, or the kernel keeps them back");
        all_columns_check(of_processor);
        mixed_calls_check(of_processor);
        threads_check(of_processor);
}

/* ---- x becomes bfloats ---- */

/*
 * Between two neighbouring bfloats, floats are as far apart as their bits.  This holds for 2^128
 * and infinity, too.
 */
static bool is_nearest(uint16_t bfloat, uint32_t bits)
{
        uint32_t is = (uint32_t)bfloat << 16;
        uint32_t apart = is > bits ? is - bits : bits - is;

        if (is_nan(bits))
                return is_nan(is) && bfloat & 0x40; /* a quiet one */
        return apart < 0x8000 || (apart == 0x8000 && bfloat % 2 == 0);
}

static void bfloats_check(const struct isa *isa)
{
        static const uint32_t lower[] = { 0,      1,      0x7ffe, 0x7fff, 0x8000, 0x8001,
                                          0xffff, 0x4000, 0xc000, 0x0100, 0xff00 };
        enum { ALL = 0x10000 };
        float *x = memory((ALL + 1) * sizeof(*x), 0);
        uint16_t *is = memory((ALL + 3) * sizeof(*is), 0);

        for (uint32_t n = 0; n < COUNT(lower) + 5; n++) {
                uint32_t columns = ALL + n % 2;

                for (uint32_t i = 0; i < columns; i++)
                        x[i] = bits_float(i << 16 |
                                          (n < COUNT(lower) ? lower[n] : random_below(0x10000)));
                memset(is, UNTOUCHED, (ALL + 3) * sizeof(*is));
                isa->act_quantise(ACT_BFLOATS, is, x, columns);
                for (uint32_t i = 0; i < columns; i++)
                        if (!is_nearest(is[i], float_bits(x[i])))
                                fail_msg("%s: %#x becomes %#x", isa->name, float_bits(x[i]), is[i]);
                assert_int_equal(is[columns], 0);
                assert_int_equal(is[columns + 1], 0x0101 * UNTOUCHED);
        }
        free(x);
        free(is);
}

/* Any number of columns: a vectorised loop has a remainder. */
static void few_bfloats_check(const struct isa *isa)
{
        for (uint32_t columns = 1; columns <= 200; columns++) {
                float *x = random_floats(columns);
                uint16_t *is = memory((columns + 2) * sizeof(*is), UNTOUCHED);

                isa->act_quantise(ACT_BFLOATS, is, x, columns);
                for (uint32_t i = 0; i < columns; i++)
                        assert_true(is_nearest(is[i], float_bits(x[i])));
                assert_int_equal(is[columns], 0);
                assert_int_equal(is[columns + 1], 0x0101 * UNTOUCHED);
                free(x);
                free(is);
        }
}

static void rows_of_x_become_the_nearest_bfloats_and_a_zero(void **state)
{
        (void)state;
        bfloats_check(&isa_amx_emulated);
        few_bfloats_check(&isa_amx_emulated);
}

static void rows_of_x_become_the_nearest_bfloats_for_tiles_of_the_processor(void **state)
{
        (void)state;
        if (!of_processor)
                skip_because("the processor has no tiles, or the kernel keeps them back");
        bfloats_check(of_processor);
        few_bfloats_check(of_processor);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(products_have_the_bits_of_exact_arithmetic_in_every_batch),
                cmocka_unit_test(products_do_not_depend_on_the_calls_before),
                cmocka_unit_test(products_of_several_threads_are_right),
                cmocka_unit_test(products_by_the_processor_have_the_same_bits),
                cmocka_unit_test(rows_of_x_become_the_nearest_bfloats_and_a_zero),
                cmocka_unit_test(rows_of_x_become_the_nearest_bfloats_for_tiles_of_the_processor),
        };

        random_seed();
        return cmocka_run_group_tests(tests, tiles_find, NULL);
}
