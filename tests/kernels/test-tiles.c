/*
 * The emulated tiles of kernels/cpu/tiles.h: each bit of a sum, and the bytes that they read and
 * write.  Sums are compared with exact ones (exact-sums.h), which a few sums that were computed by
 * hand check.
 */
#include "tests/kernels/small-model.h"

#include <pthread.h>

#include "kernels/cpu/tiles.h"
#include "tests/kernels/exact-sums.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define GUARD        64u
#define UNTOUCHED    0xa5

static void *memory(size_t bytes, int with)
{
        void *m = malloc(bytes);

        assert_non_null(m);
        memset(m, with, bytes);
        return m;
}

/*
 * Sums, x and weights as they lie in memory.  Each is exactly as large as its tile, so that a
 * sanitizer notices a load that reads more.
 */
struct work {
        uint32_t rows[2], depth;
        uint32_t *sums[4]; /* tiles 0 to 3 */
        uint16_t *x[2];
        uint16_t *w[2];
};

static uint32_t pairs_of(const struct work *k)
{
        return k->depth / 4;
}

static uint32_t sums_in(const struct work *k, uint32_t tile)
{
        return k->rows[tile / 2] * TILE_ROWS;
}

static void cancel_some(struct work *k)
{
        uint32_t pairs = pairs_of(k);

        for (uint32_t i = 1; i < pairs; i += 1 + random_below(3)) {
                for (uint32_t n = 0; n < 2; n++) {
                        memcpy(k->w[n] + i * 32, k->w[n] + (i - 1) * 32, 64);
                        for (uint32_t row = 0; row < k->rows[n]; row++) {
                                uint16_t *at = k->x[n] + (row * pairs + i) * 2;

                                at[0] = at[-2] ^ 0x8000;
                                at[1] = at[-1] ^ 0x8000 ^ (random_below(4) == 0);
                        }
                }
        }
}

static void make_some_special(struct work *k)
{
        for (uint32_t i = 0; i < 3; i++) {
                uint32_t n = random_below(2), tile = random_below(4);

                switch (random_below(3)) {
                case 0:
                        k->x[n][random_below(k->rows[n] * pairs_of(k) * 2)] = special_any();
                        break;
                case 1:
                        k->w[n][random_below(pairs_of(k) * 32)] = special_any();
                        break;
                default:
                        k->sums[tile][random_below(sums_in(k, tile))] =
                                (uint32_t)special_any() << 16 | random_below(2);
                }
        }
}

static void work_make(struct work *k, uint32_t rows, uint32_t more, uint32_t depth,
                      enum numbers kind)
{
        *k = (struct work){ .rows = { rows, more }, .depth = depth };
        for (uint32_t tile = 0; tile < 4; tile++) {
                k->sums[tile] = memory(sums_in(k, tile) * 4, 0);
                for (uint32_t i = 0; i < sums_in(k, tile); i++)
                        k->sums[tile][i] = float_any(kind);
        }
        for (uint32_t n = 0; n < 2; n++) {
                k->x[n] = memory((size_t)k->rows[n] * depth, 0);
                for (uint32_t i = 0; i < k->rows[n] * depth / 2; i++)
                        k->x[n][i] = bfloat_any(kind);
                k->w[n] = memory(pairs_of(k) * 64, 0);
                for (uint32_t i = 0; i < pairs_of(k) * 32; i++)
                        k->w[n][i] = bfloat_any(kind);
        }
        if (random_below(3) == 0)
                cancel_some(k);
        if (random_below(4) == 0)
                make_some_special(k);
}

static void work_free(struct work *k)
{
        for (uint32_t tile = 0; tile < 4; tile++)
                free(k->sums[tile]);
        for (uint32_t n = 0; n < 2; n++) {
                free(k->x[n]);
                free(k->w[n]);
        }
}

/* A store writes the rows of the tile, at any distance, and nothing before, between or after. */
static void store_is(uint32_t tile, uint32_t rows, uint32_t bytes, const void *should)
{
        size_t apart = bytes + random_below(3) * 16u, size = GUARD + rows * apart + GUARD;
        uint8_t *to = memory(size, UNTOUCHED), *expected = memory(size, UNTOUCHED);

        for (uint32_t row = 0; row < rows; row++)
                memcpy(expected + GUARD + row * apart, (const uint8_t *)should + row * bytes,
                       bytes);
        tile_emulated_store(tile, to + GUARD, apart);
        assert_memory_equal(to, expected, size);
        free(to);
        free(expected);
}

/* Sums of the tile after a dot, in place of those before. */
static void sums_check(struct work *k, uint32_t tile)
{
        const uint32_t n = tile / 2, pairs = pairs_of(k);
        uint32_t *is = memory(sums_in(k, tile) * 4, UNTOUCHED);

        tile_emulated_store(tile, is, TILE_BYTES);
        for (uint32_t i = 0; i < sums_in(k, tile); i++) {
                uint32_t row = i / TILE_ROWS, column = i % TILE_ROWS;
                uint32_t should = exact_dot_add(k->sums[tile][i], k->x[n] + row * pairs * 2,
                                                k->w[tile % 2] + column * 2, 32, pairs);

                if (!is_same(is[i], should))
                        fail_msg("%u and %u rows of %u bytes, tile %u: row %u, column %u is %#x, "
                                 "not %#x (the sum before was %#x)",
                                 k->rows[0], k->rows[1], k->depth, tile, row, column, is[i], should,
                                 k->sums[tile][i]);
        }
        store_is(tile, k->rows[n], TILE_BYTES, is);
        free(is);
}

/* One dot for each tile of sums, as a product does it. */
static void work_check(struct work *k)
{
        struct tile_shape shape = tile_shape_of(k->rows[0], k->rows[1], k->depth);

        tile_emulated_shape(&shape);
        for (uint32_t tile = 0; tile < 4; tile++)
                tile_emulated_load(tile, k->sums[tile], TILE_BYTES);
        for (uint32_t n = 0; n < 2; n++) {
                tile_emulated_load(4 + n, k->x[n], k->depth);
                tile_emulated_load(6 + n, k->w[n], TILE_BYTES);
        }
        for (uint32_t tile = 0; tile < 4; tile++)
                tile_emulated_dot_bf(tile, 4 + tile / 2, 6 + tile % 2);
        for (uint32_t tile = 0; tile < 4; tile++)
                sums_check(k, tile);
        for (uint32_t n = 0; n < 2; n++) {
                store_is(4 + n, k->rows[n], k->depth, k->x[n]);
                store_is(6 + n, pairs_of(k), TILE_BYTES, k->w[n]);
        }
}

static void sums_have_the_bits_of_exact_arithmetic(void **state)
{
        (void)state;
        memset(&seen, 0, sizeof(seen));
        for (uint32_t round = 0; round < 400; round++) {
                struct work k;

                work_make(&k, 1 + random_below(16), 1 + random_below(16), 4 + random_below(16) * 4,
                          round % NUMBERS);
                work_check(&k);
                work_free(&k);
        }
        /* all the cases were there */
        assert_true(seen.brinks > 500 && seen.flushed > 5000 && seen.overflowed > 500);
        assert_true(seen.minus_zeros > 500 && seen.nans > 500);
}

static void sums_are_right_in_every_shape(void **state)
{
        (void)state;
        for (uint32_t rows = 1; rows <= TILE_ROWS; rows++)
                for (uint32_t depth = 4; depth <= TILE_BYTES; depth += 4) {
                        struct work k;

                        work_make(&k, rows, 1 + (rows * 5 + depth / 4) % TILE_ROWS, depth,
                                  random_below(2) ? OF_A_MODEL : BRINK);
                        work_check(&k);
                        work_free(&k);
                }
}

/* ---- sums that were computed by hand ---- */

#define SMALLEST 0x1p-126f
#define LARGEST  0x1.fep127f /* of bfloats */
#define INF      INFINITY

struct example {
        uint32_t c;
        uint32_t columns; /* 2, 4 or 6 */
        float x[6], w[6]; /* bfloats */
        uint32_t should;
};

static const struct example examples[] = {
        /* c is added last: each of the two products alone would be lost beside it */
        { 0x3f800000, 2, { 0x1p-24f, 0x1p-24f }, { 1, 1 }, 0x3f800001 },
        /* even and odd columns are summed apart */
        { 0, 4, { 0x1p24f, 1, -0x1p24f, 1 }, { 1, 1, 1, 1 }, 0x40000000 },
        { 0, 4, { 1, 0x1p24f, 1, -0x1p24f }, { 1, 1, 1, 1 }, 0x40000000 },
        /* columns ascend: 2^24 + 1 is 2^24, but 1 + 1 + 2^24 is more */
        { 0xcb800000, 6, { 0x1p24f, 0, 1, 0, 1 }, { 1, 0, 1, 0, 1 }, 0 },
        { 0xcb800000, 6, { 1, 0, 1, 0, 0x1p24f }, { 1, 0, 1, 0, 1 }, 0x40000000 },
        /* a product is not rounded, even if it is too small or too large for a float */
        { 0, 4, { 0x1p-63f, 0, 0x1p-70f, 0 }, { 0x1p-63f, 0, 0x1p-70f, 0 }, 0x00800200 },
        { 0, 4, { -0x1p127f, 0, 0x1p127f, 0 }, { 1, 0, 2, 0 }, 0x7f000000 },
        { 0, 4, { 0x1p127f, 0, -0x1p127f, 0 }, { 2, 0, 1, 0 }, 0x7f800000 },
        /* 2^-126 - 2^-150 has 24 bits, and is below 2^-126 */
        { 0, 4, { 0x1p-63f, 0, 0x1p-75f, 0 }, { 0x1p-63f, 0, -0x1p-75f, 0 }, 0 },
        { 0, 4, { 0, 0x1p-63f, 0, 0x1p-75f }, { 0, -0x1p-63f, 0, 0x1p-75f }, 0 },
        /* 2^-126 - 2^-151 is a tie, and becomes 2^-126 */
        { 0, 4, { 0x1p-63f, 0, 0x1p-75f, 0 }, { 0x1p-63f, 0, -0x1p-76f, 0 }, 0x00800000 },
        { 0, 4, { 0x1p-63f, 0, 0x1p-75f, 0 }, { -0x1p-63f, 0, 0x1p-76f, 0 }, 0x80800000 },
        /* a little more is not */
        { 0, 4, { 0x1p-63f, 0, 0x1p-75f, 0 }, { 0x1p-63f, 0, -0x1.02p-76f, 0 }, 0 },
        /* 2^-127 is flushed in a chain, between chains, and beside c */
        { 0, 4, { 0x1p-64f, 0, 0x1p-63f, 0 }, { 0x1p-63f, 0, 0x1p-63f, 0 }, 0x00800000 },
        { 0x00800000, 2, { 1.5f, 1 }, { SMALLEST, -SMALLEST }, 0x00800000 },
        { 0x00c00000, 2, { 1, 0 }, { -SMALLEST, 0 }, 0 },
        { 0x80c00000, 2, { 1, 0 }, { SMALLEST, 0 }, SIGN },
        /* subnormal inputs are zeros of their signs */
        { 0, 2, { 0x1p-127f, 0 }, { 0x1p127f, 0 }, 0 },
        { 0, 2, { 0x1p127f, 0 }, { 0x1p-127f, 0 }, 0 },
        { 0x3f800000, 2, { 0, 0x1.fcp-127f }, { 0, LARGEST }, 0x3f800000 },
        { 0x00400000, 2, { 1, 0 }, { SMALLEST, 0 }, 0x00800000 },
        { 0x00000001, 2, { 0 }, { 0 }, 0 },
        { 0x807fffff, 2, { 0 }, { 0 }, 0 },
        /* -0 + 0 is 0, and a chain begins with 0 */
        { SIGN, 2, { -1, -1 }, { 0, 0 }, 0 },
        { SIGN, 2, { 0, 0 }, { 0, 0 }, 0 },
        /* a chain is -0 only if a negative number was flushed */
        { SIGN, 2, { 0x1p-64f, 0x1p-64f }, { -0x1p-63f, -0x1p-63f }, SIGN },
        { 0x807fffff, 2, { 0x1p-64f, 0x1p-64f }, { -0x1p-63f, -0x1p-63f }, SIGN },
        { SIGN, 2, { 0x1p-64f, 0x1p-64f }, { 0x1p-63f, -0x1p-63f }, 0 },
        { 0, 2, { 0x1p-64f, 0x1p-64f }, { -0x1p-63f, -0x1p-63f }, 0 },
        { SIGN, 2, { -1.5f, 1 }, { SMALLEST, SMALLEST }, SIGN },
        /* a tie above the largest float becomes infinite, and less does not */
        { 0x7f7fffff, 2, { 0x1p103f, 0 }, { 1, 0 }, INFINITE },
        { 0x7f7fffff, 2, { 0x1.fep102f, 0 }, { 1, 0 }, 0x7f7fffff },
        { 0xff7fffff, 2, { 0, 0x1p103f }, { 0, -1 }, SIGN | INFINITE },
        { 0, 2, { LARGEST, 0 }, { LARGEST, 0 }, INFINITE },
        { 0, 2, { 0x1p127f, 0x1p127f }, { -1, -1 }, SIGN | INFINITE },
        /* infinite and finite, and infinite with both signs */
        { 0xff7fffff, 2, { INF, 0 }, { 1, 0 }, INFINITE },
        { 0, 2, { INF, 1 }, { -INF, 1 }, SIGN | INFINITE },
        { 0, 2, { INF, INF }, { 1, -1 }, SOME_NAN },
        { 0, 4, { INF, 0, INF, 0 }, { 1, 0, -1, 0 }, SOME_NAN },
        { INFINITE, 2, { INF, 0 }, { -1, 0 }, SOME_NAN },
        { SIGN | INFINITE, 2, { 1, 1 }, { 1, 1 }, SIGN | INFINITE },
        { INFINITE, 2, { LARGEST, 0 }, { -LARGEST, 0 }, SOME_NAN },
        /* infinite times zero; a subnormal number is a zero */
        { 0, 2, { INF, 0 }, { 0, 0 }, SOME_NAN },
        { 0, 2, { 0, 0 }, { 0, -INF }, SOME_NAN },
        { 0, 2, { 0x1p-127f, 0 }, { INF, 0 }, SOME_NAN },
        { 0, 2, { NAN, 0 }, { 0, 0 }, SOME_NAN },
        { 0, 2, { 0, 0 }, { 0, NAN }, SOME_NAN },
        { SOME_NAN, 2, { 0, 0 }, { 0, 0 }, SOME_NAN },
        { 0xff800001, 2, { INF, 0 }, { 1, 0 }, SOME_NAN },
};

static void sums_are_those_computed_by_hand(void **state)
{
        struct tile_shape shape;

        (void)state;
        for (size_t n = 0; n < COUNT(examples); n++) {
                const struct example *e = &examples[n];
                uint16_t x[6], w[3][32] = { { 0 } };
                uint32_t c[TILE_ROWS] = { 0 }, column = random_below(TILE_ROWS), oracle;

                for (uint32_t k = 0; k < COUNT(x); k++) {
                        x[k] = (uint16_t)(float_bits(e->x[k]) >> 16);
                        w[k / 2][column * 2 + k % 2] = (uint16_t)(float_bits(e->w[k]) >> 16);
                }
                oracle = exact_dot_add(e->c, x, w[0] + column * 2, 32, e->columns / 2);
                if (!is_same(oracle, e->should))
                        fail_msg("example %zu: the oracle has %#x, not %#x", n, oracle, e->should);
                shape = tile_shape_of(1, 1, e->columns * 2);
                tile_emulated_shape(&shape);
                c[column] = e->c;
                tile_emulated_load(0, c, TILE_BYTES);
                tile_emulated_load(4, x, e->columns * 2);
                tile_emulated_load(6, w, TILE_BYTES);
                tile_emulated_dot_bf(0, 4, 6);
                tile_emulated_store(0, c, TILE_BYTES);
                if (!is_same(c[column], e->should))
                        fail_msg("example %zu: %#x, not %#x", n, c[column], e->should);
        }
}

/* Away from all limits a step of the oracle is an FMA, and an addition is one of floats. */
static void the_oracle_rounds_as_floats_do_away_from_limits(void **state)
{
        (void)state;
        for (uint32_t round = 0; round < 200000; round++) {
                uint16_t x = bfloat_any(OF_A_MODEL) & 0xff80, w = bfloat_any(OF_A_MODEL);
                uint32_t a = float_any(OF_A_MODEL) & 0x80ffffff, b = float_any(OF_A_MODEL);
                float fused, added;

                x |= (uint16_t)random_below(128);
                a |= (100 + random_below(40)) << 23;
                if (random_below(2))
                        b = (a ^ SIGN) + random_below(100000);
                if ((w & 0x7f80) == 0 || (b & INFINITE) == 0)
                        continue;
                fused = fmaf(bfloat_to_float(x), bfloat_to_float(w), bits_float(a));
                added = bits_float(a) + bits_float(b);
                assert_int_equal(exact_add_product(a, x, w), float_bits(fused));
                assert_int_equal(exact_add(a, b), float_bits(added));
        }
}

/* ---- state of tiles ---- */

static void shapes_are_as_ldtilecfg_reads_them(void **state)
{
        struct tile_shape shape = tile_shape_of(3, 11, 24);
        static const uint8_t rows[8] = { 3, 3, 11, 11, 3, 11, 6, 6 };
        static const uint8_t row_bytes[8] = { 64, 64, 64, 64, 24, 24, 64, 64 };
        uint8_t should[64] = { 1 };

        (void)state;
        for (uint32_t t = 0; t < 8; t++) {
                should[16 + 2 * t] = row_bytes[t];
                should[48 + t] = rows[t];
        }
        assert_memory_equal(&shape, should, sizeof(should));
}

static void a_shape_makes_all_tiles_zero(void **state)
{
        static const uint8_t nothing[TILE_ROWS * TILE_BYTES];
        struct tile_shape large = tile_shape_of(16, 16, 64), small = tile_shape_of(5, 9, 20);
        uint8_t *from = memory(TILE_ROWS * TILE_BYTES, 0x3f);

        (void)state;
        for (uint32_t round = 0; round < 3; round++) {
                const struct tile_shape *next = round == 1 ? &small : &large;

                tile_emulated_shape(&large);
                for (uint32_t t = 0; t < 8; t++)
                        tile_emulated_load(t, from, TILE_BYTES);
                tile_emulated_shape(next);
                for (uint32_t t = 0; t < 8; t++)
                        store_is(t, next->rows[t], next->row_bytes[t], nothing);
        }
        free(from);
}

static void only_the_named_tile_changes(void **state)
{
        static const uint8_t nothing[TILE_ROWS * TILE_BYTES];
        struct tile_shape shape = tile_shape_of(7, 12, 48);
        uint8_t *from[8];

        (void)state;
        for (uint32_t t = 0; t < 8; t++)
                from[t] = memory(TILE_ROWS * TILE_BYTES, (int)(0x11 * (t + 1)));
        for (uint32_t changed = 0; changed < 8; changed++) {
                tile_emulated_shape(&shape);
                for (uint32_t t = 0; t < 8; t++)
                        tile_emulated_load(t, from[t], shape.row_bytes[t]);
                tile_emulated_zero(changed);
                for (uint32_t t = 0; t < 8; t++)
                        store_is(t, shape.rows[t], shape.row_bytes[t],
                                 t == changed ? nothing : from[t]);
                tile_emulated_load(changed, from[(changed + 1) % 8], TILE_BYTES);
                for (uint32_t t = 0; t < 8; t++)
                        store_is(t, shape.rows[t], shape.row_bytes[t],
                                 from[t == changed ? (t + 1) % 8 : t]);
        }
        for (uint32_t t = 0; t < 8; t++)
                free(from[t]);
}

/* Every number of rows, and every depth; all bytes may be any, and sums wrap around. */
static void dots_of_bytes_are_added_to_whole_numbers(void **state)
{
        int32_t sums[TILE_ROWS][16], is[TILE_ROWS][16];
        int8_t x[TILE_ROWS][TILE_BYTES], w[TILE_ROWS][TILE_BYTES];

        (void)state;
        for (uint32_t round = 0; round < 16 * 16; round++) {
                uint32_t rows = 1 + round / 16, quads = 1 + round % 16;
                struct tile_shape shape = tile_shape_of(rows, 1, quads * 4);

                for (uint32_t i = 0; i < TILE_ROWS * TILE_BYTES; i++) {
                        x[i / TILE_BYTES][i % TILE_BYTES] = (int8_t)random_next();
                        w[i / TILE_BYTES][i % TILE_BYTES] = (int8_t)random_next();
                }
                for (uint32_t i = 0; i < TILE_ROWS * 16; i++)
                        sums[i / 16][i % 16] = (int32_t)random_next();
                tile_emulated_shape(&shape);
                tile_emulated_load(0, sums, TILE_BYTES);
                tile_emulated_load(4, x, TILE_BYTES);
                tile_emulated_load(6, w, TILE_BYTES);
                tile_emulated_dot_bytes(0, 4, 6);
                memcpy(is, sums, sizeof(is));
                tile_emulated_store(0, is, TILE_BYTES);
                for (uint32_t i = 0; i < rows * 16; i++) {
                        int64_t sum = sums[i / 16][i % 16];

                        for (uint32_t k = 0; k < quads * 4; k++)
                                sum += x[i / 16][k] * w[k / 4][i % 16 * 4 + k % 4];
                        assert_int_equal(is[i / 16][i % 16], (int32_t)(uint32_t)sum);
                }
                assert_memory_equal(is[rows], sums[rows], (TILE_ROWS - rows) * TILE_BYTES);
        }
}

static void *use_other_tiles(void *unused)
{
        struct tile_shape shape = tile_shape_of(2, 3, 8);
        uint8_t bytes[TILE_ROWS * TILE_BYTES];

        memset(bytes, 0x77, sizeof(bytes));
        tile_emulated_shape(&shape);
        for (uint32_t t = 0; t < 8; t++)
                tile_emulated_load(t, bytes, TILE_BYTES);
        return unused;
}

static void each_thread_has_tiles_of_its_own(void **state)
{
        struct tile_shape shape = tile_shape_of(16, 16, 64);
        uint8_t *from = memory(TILE_ROWS * TILE_BYTES, 0x3f);
        pthread_t thread;

        (void)state;
        tile_emulated_shape(&shape);
        for (uint32_t t = 0; t < 8; t++)
                tile_emulated_load(t, from, TILE_BYTES);
        assert_int_equal(pthread_create(&thread, NULL, use_other_tiles, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        for (uint32_t t = 0; t < 8; t++)
                store_is(t, TILE_ROWS, TILE_BYTES, from);
        free(from);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sums_have_the_bits_of_exact_arithmetic),
                cmocka_unit_test(sums_are_right_in_every_shape),
                cmocka_unit_test(sums_are_those_computed_by_hand),
                cmocka_unit_test(the_oracle_rounds_as_floats_do_away_from_limits),
                cmocka_unit_test(shapes_are_as_ldtilecfg_reads_them),
                cmocka_unit_test(a_shape_makes_all_tiles_zero),
                cmocka_unit_test(only_the_named_tile_changes),
                cmocka_unit_test(dots_of_bytes_are_added_to_whole_numbers),
                cmocka_unit_test(each_thread_has_tiles_of_its_own),
        };

        random_seed();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
