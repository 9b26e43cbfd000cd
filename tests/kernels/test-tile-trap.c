/*
 * Products by tiles, in the machine code that the compiler made for processors with AMX: on those,
 * and with the trap of tile-trap.h on all that have AVX-512.
 *
 * They must have the bits of the same products by emulated tiles; those of codes must have the bits
 * of plain C, too.
 */
#include "tests/kernels/panels-rig.h"

#include "kernels/blocks.h"
#include "tests/skip.h"

#if defined(__x86_64__)

#include <pthread.h>

#include "kernels/cpu/tiles.h"
#include "tests/kernels/tile-trap.h"

#define WITH_TILES __attribute__((target("amx-tile,amx-int8,amx-bf16"), noinline))

static bool is_trapped;

/* What each case does first. */
static void begin(void)
{
        if (tiles_ask())
                return;
        if (!tile_trap_can())
                skip_because("the processor has neither AMX nor AVX-512");
        is_trapped = true;
        tile_trap_install();
        isa_amx.rest(); /* the case before may have failed */
}

static void complaint_check(void)
{
        struct tile_complaint c = tile_trap_complaint();

        if (c.what)
                fail_msg("%s (%td bytes behind the beginning of product())", c.what,
                         (ptrdiff_t)(c.at - (uintptr_t)isa_amx.product));
}

static void end(void)
{
        isa_amx.rest();
        complaint_check();
        if (is_trapped)
                tile_trap_remove();
}

/* ---- products ---- */

/* Some panels, and rows of x, whose product by emulated tiles is known. */
struct known {
        struct panels p;
        uint32_t rows;
        uint8_t *acts;
        float *should;
};

static float *floats_make(const struct known *k)
{
        float *out = malloc(((size_t)k->p.count * k->rows * PANEL + PIECE_GUARD) * sizeof(*out));

        assert_non_null(out);
        return out;
}

static bool is_nan(uint32_t bits)
{
        return (bits & 0x7fffffff) > 0x7f800000;
}

/*
 * A sum of two NaNs is either of them: of which sign it is depends on the order of operands that
 * the compiler has chosen.
 */
static bool are_same(const float *is, const float *should, size_t count)
{
        if (!memcmp(is, should, count * sizeof(*is)))
                return true;
        for (size_t i = 0; i < count; i++) {
                uint32_t a, b;

                memcpy(&a, is + i, sizeof(a));
                memcpy(&b, should + i, sizeof(b));
                if (a != b && !(is_nan(a) && is_nan(b)))
                        return false;
        }
        return true;
}

static void known_compute(struct known *k, const float *x)
{
        const enum row_type type = k->p.one.type;
        const uint32_t columns = k->p.one.columns;
        uint8_t *acts = acts_make(&isa_amx_emulated, type, columns, x, k->rows);
        float *plain = floats_make(k);

        k->acts = acts_make(&isa_amx, type, columns, x, k->rows);
        k->should = floats_make(k);
        piece_multiply(&isa_amx_emulated, &k->p, 0, k->p.count, acts, k->rows, k->should);
        if (type != ROW_BF16) {
                piece_multiply(&isa_portable, &k->p, 0, k->p.count, acts, k->rows, plain);
                assert_true(are_same(plain, k->should, (size_t)k->p.count * k->rows * PANEL));
        }
        free(acts);
        free(plain);
}

static void known_make(struct known *k, enum row_type type, uint32_t columns, uint32_t panels,
                       uint32_t rows)
{
        float *x = rows_make(columns, rows);

        *k = (struct known){ .rows = rows };
        panels_make(&k->p, type, columns, panels);
        known_compute(k, x);
        free(x);
}

static void known_free(struct known *k)
{
        panels_free(&k->p);
        free(k->acts);
        free(k->should);
}

/* The product of the first rows has the bits that it has among all rows. */
static bool is_product_right(const struct known *k, uint32_t rows)
{
        float *out = floats_make(k);
        bool is_right = true;

        piece_multiply(&isa_amx, &k->p, 0, k->p.count, k->acts, rows, out);
        for (uint32_t panel = 0; panel < k->p.count; panel++)
                is_right = is_right && are_same(out + (size_t)panel * rows * PANEL,
                                                k->should + (size_t)panel * k->rows * PANEL,
                                                (size_t)rows * PANEL);
        free(out);
        return is_right;
}

static void product_check(const struct known *k, uint32_t rows)
{
        bool is_right = is_product_right(k, rows);

        complaint_check();
        if (!is_right)
                fail_msg("%s, %u columns, %u panels: other bits with %u rows",
                         row_type_name(k->p.one.type), k->p.one.columns, k->p.count, rows);
}

static uint32_t block_numbers(enum row_type type)
{
        return type == ROW_BF16 ? 1 : block_format(type)->numbers;
}

/* Where a block has its 16-bit scale; a bfloat is all of its block. */
static size_t block_at(enum row_type type, uint32_t block)
{
        const uint32_t bytes = type == ROW_BF16 ? 2 : block_format(type)->bytes;

        return (size_t)block * bytes + (type == ROW_Q6_K ? bytes - 2 : 0);
}

static const enum row_type tiled_types[] = { ROW_BF16, ROW_Q8_0, ROW_Q4_0, ROW_Q4_K, ROW_Q6_K };

/* A trap may take 12 us, so only the first columns of each type have all numbers of rows. */
static void products_of_any_number_of_rows_have_the_bits_of_emulated_tiles(void **state)
{
        static const uint32_t most[] = { 128, 200, 201, 202, 209, 215 };
        static const struct {
                enum row_type type;
                uint32_t columns[6];
        } cases[] = {
                { ROW_BF16, { 65, 1, 31, 64, 257, 300 } },
                { ROW_Q8_0, { 96, 32, 512, 544 } },
                { ROW_Q4_0, { 64, 480, 544 } },
                { ROW_Q4_K, { 256, 768 } },
                { ROW_Q6_K, { 256, 768 } },
        };

        (void)state;
        begin();
        for (size_t n = 0; n < COUNT(cases) * 6; n++) {
                uint32_t columns = cases[n / 6].columns[n % 6];
                struct known k;

                if (!columns)
                        continue;
                known_make(&k, cases[n / 6].type, columns, 1, 215);
                for (uint32_t rows = 1; rows <= 67; rows += n % 6 ? 1 + random_below(30) : 1)
                        product_check(&k, rows);
                for (size_t i = 0; i < COUNT(most); i += n % 6 ? 1 + random_below(6) : 1)
                        product_check(&k, most[i]);
                known_free(&k);
        }
        end();
}

static void products_of_several_slices_have_the_bits_of_emulated_tiles(void **state)
{
        static const struct {
                enum row_type type;
                uint32_t columns[4], rows[4];
        } cases[] = {
                { ROW_BF16, { 257, 544, 768, 2081 }, { 32, 64, 65, 201 } },
                { ROW_Q8_0, { 544, 768, 2080 }, { 49, 66 } },
                { ROW_Q4_0, { 544, 768, 2080 }, { 50, 67 } },
                { ROW_Q4_K, { 768, 2304 }, { 51, 68 } },
                { ROW_Q6_K, { 768, 1280 }, { 201 } },
        };

        (void)state;
        begin();
        for (size_t n = 0; n < COUNT(cases) * 4; n++) {
                uint32_t columns = cases[n / 4].columns[n % 4];
                const uint32_t *rows = cases[n / 4].rows;
                struct known k;

                if (!columns)
                        continue;
                known_make(&k, cases[n / 4].type, columns, 1 + random_below(2), 201);
                for (size_t i = 0; i < 4 && rows[i]; i++)
                        product_check(&k, rows[i]);
                known_free(&k);
        }
        end();
}

/*
 * The shape of tiles stays from one panel to the next one, so nothing but the code makes sums 0.
 */
static void products_of_several_panels_have_the_bits_of_emulated_tiles(void **state)
{
        static const uint32_t bfloat_rows[9] = { 0, 1, 16, 7, 17, 33, 48, 27, 512 };

        (void)state;
        begin();
        for (size_t n = 0; n < COUNT(tiled_types); n++)
                for (uint32_t panels = 1; panels <= 8; panels++) {
                        const enum row_type type = tiled_types[n];
                        const uint32_t few = type == ROW_Q6_K ? 201 : 49;
                        uint32_t rows = panels == 8 ? 512 : few + random_below(15);
                        struct known k;

                        if (type == ROW_BF16)
                                rows = bfloat_rows[panels];
                        known_make(&k, type, 256, panels, rows);
                        product_check(&k, rows);
                        if (panels < 3)
                                product_check(&k, rows);
                        known_free(&k);
                }
        end();
}

/* Bfloats whose products, and sums of them, are near 2^-126 or near the largest float. */
static void sums_of_bfloats_near_the_limits_have_the_bits_of_emulated_tiles(void **state)
{
        (void)state;
        begin();
        for (uint32_t round = 0; round < 24; round++) {
                const uint32_t columns = 96 + round, rows = 40;
                const uint32_t middle = round % 3 == 0 ? 0 : round % 3 == 1 ? 64 : 190;
                struct known k = { .rows = rows };
                float *x = random_floats((size_t)rows * columns);

                panels_make(&k.p, ROW_BF16, columns, 2);
                for (uint32_t i = 0; i < PANEL * columns; i++) {
                        uint16_t bits =
                                (uint16_t)(random_below(2) << 15 | (middle + random_below(9)) << 7 |
                                           (random_below(2) ? random_below(128) : 0));

                        memcpy(k.p.one.file + i * sizeof(bits), &bits, sizeof(bits));
                }
                for (uint32_t i = 0; i < rows * columns; i++)
                        x[i] = ldexpf(random_below(3) ? 1 : x[i],
                                      (int)(middle + random_below(6)) - 131);
                panels_fill(&k.p);
                known_compute(&k, x);
                product_check(&k, rows);
                product_check(&k, 5);
                free(x);
                known_free(&k);
        }
        end();
}

static void infinities_and_nans_do_what_they_do_with_emulated_tiles(void **state)
{
        static const uint16_t halves[] = { 0x7c00, 0xfc00, 0x7e00 };
        static const uint16_t bfloats[] = { 0x7f80, 0xff80, 0x7fc0 };

        (void)state;
        begin();
        for (size_t n = 0; n < COUNT(tiled_types) * COUNT(halves); n++) {
                enum row_type type = tiled_types[n / COUNT(halves)];
                struct known k = { .rows = 210 };
                float *x = rows_make(1024, k.rows);
                size_t at = block_at(type, n % 2 ? 0 : 1024 / block_numbers(type) - 1);

                panels_make(&k.p, type, 1024, 2);
                memcpy(k.p.one.file + random_below(PANEL) * k.p.one.row_bytes + at,
                       type == ROW_BF16 ? &bfloats[n % 3] : &halves[n % 3], sizeof(halves[0]));
                panels_fill(&k.p);
                if (n % 3 == 0)
                        x[20 * 1024 + random_below(1024)] = n % 2 ? INFINITY : NAN;
                known_compute(&k, x);
                product_check(&k, type == ROW_Q6_K ? k.rows : 60);
                free(x);
                known_free(&k);
        }
        end();
}

/* ---- shapes and threads ---- */

WITH_TILES static struct tile_shape shape_now(void)
{
        struct tile_shape shape;

        __asm__ volatile("sttilecfg %0" : "=m"(shape));
        return shape;
}

static bool is_configured(void)
{
        static const struct tile_shape none;
        const struct tile_shape now = shape_now();

        return memcmp(&now, &none, sizeof(now)) != 0;
}

#define KNOWN 10u

static void some_make(struct known *some)
{
        for (uint32_t i = 0; i < KNOWN; i++) {
                enum row_type type = tiled_types[i % COUNT(tiled_types)];
                uint32_t columns = type == ROW_BF16 ? 1 + random_below(100) : 256;

                known_make(&some[i], type, columns, 1, 210);
        }
}

static void some_free(struct known *some)
{
        for (uint32_t i = 0; i < KNOWN; i++)
                known_free(&some[i]);
}

static void products_follow_each_other_and_rests_in_any_order(void **state)
{
        struct known some[KNOWN];

        (void)state;
        begin();
        some_make(some);
        for (uint32_t i = 0; i < 100; i++) {
                const struct known *k = &some[random_below(KNOWN)];

                product_check(k, random_below(2) ? 210 - random_below(20) : 1 + random_below(70));
                if (random_below(4) == 0) {
                        isa_amx.rest();
                        assert_false(is_configured());
                }
        }
        some_free(some);
        end();
}

static void a_rest_leaves_no_configuration(void **state)
{
        struct known k;

        (void)state;
        begin();
        isa_amx.rest();
        assert_false(is_configured());
        known_make(&k, ROW_BF16, 64, 1, 20);
        product_check(&k, 20);
        assert_true(is_configured());
        isa_amx.rest();
        assert_false(is_configured());
        isa_amx.rest();
        product_check(&k, 20);
        assert_true(is_configured());
        known_free(&k);
        end();
}

#define THREADS 4u

struct worker {
        const struct known *some;
        uint32_t first;
        bool is_right;
        pthread_t thread;
};

static void *work(void *worker)
{
        struct worker *w = worker;

        w->is_right = true;
        for (uint32_t i = 0; i < 25; i++) {
                const struct known *k = &w->some[(w->first + i * 3) % KNOWN];

                w->is_right = w->is_right && is_product_right(k, 1 + (i * 41 + w->first) % 210);
                if (i % 8 == 0)
                        isa_amx.rest();
        }
        isa_amx.rest();
        return NULL;
}

static void each_thread_has_tiles_of_its_own(void **state)
{
        struct worker workers[THREADS];
        struct known some[KNOWN];

        (void)state;
        begin();
        some_make(some);
        for (uint32_t i = 0; i < THREADS; i++) {
                workers[i] = (struct worker){ .some = some, .first = i * 7 };
                assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        complaint_check();
        for (uint32_t i = 0; i < THREADS; i++)
                assert_true(workers[i].is_right);
        some_free(some);
        end();
}

/* ---- the trap itself ---- */

/* The number of instructions that a product must have, by its shape. */
static void products_use_the_tiles_that_their_shape_needs(void **state)
{
        struct known k;

        (void)state;
        begin();
        if (!is_trapped)
                skip_because("the processor has AMX, and does not count its instructions");
        known_make(&k, ROW_BF16, 64, 3, 40);
        product_check(&k, 40); /* 32 rows with 4 dots, and 8 with 2; two tiles of columns */
        assert_int_equal(tile_trap_count(TILE_DOT_BFLOATS), 3 * 2 * (4 + 2));
        assert_int_equal(tile_trap_count(TILE_LOAD), 3 * 2 * (4 + 3));
        assert_int_equal(tile_trap_count(TILE_STORE), 3 * (4 + 2));
        assert_int_equal(tile_trap_count(TILE_DOT_BYTES), 0);
        known_free(&k);

        known_make(&k, ROW_Q8_0, 96, 2, 49);
        product_check(&k, 49);
        /* 3 blocks of 2 panels, with 2 dots each for up to 14 rows; or 2, with a sanitizer */
        assert_true(tile_trap_count(TILE_DOT_BYTES) == 3 * 2 * 2 * 4 ||
                    tile_trap_count(TILE_DOT_BYTES) == 3 * 2 * 2 * 25);
        assert_int_equal(tile_trap_count(TILE_DOT_BFLOATS), 3 * 2 * (4 + 2));
        known_free(&k);
        end();
}

/* The complaint must have this in it. */
static void expect_complaint(const char *part)
{
        struct tile_complaint c = tile_trap_complaint();

        assert_non_null(c.what);
        if (!strstr(c.what, part))
                fail_msg("\"%s\" has no \"%s\"", c.what, part);
}

WITH_TILES static void configure(const struct tile_shape *shape)
{
        __asm__ volatile("ldtilecfg %0" ::"m"(*shape));
}

static void expect_refused(struct tile_shape shape, const char *part)
{
        configure(&shape);
        expect_complaint(part);
}

WITH_TILES static void the_trap_refuses_what_a_processor_refuses(void **state)
{
        struct tile_shape good = tile_shape_of(3, 4, 32), bad;

        (void)state;
        begin();
        if (!is_trapped)
                skip_because("the processor has AMX, and would end the test");
        __asm__ volatile("tilezero %tmm0");
        expect_complaint("not configured");
        bad = good, bad.rows[2] = 17;
        expect_refused(bad, "16 rows");
        bad = good, bad.row_bytes[7] = 68;
        expect_refused(bad, "64 bytes");
        bad = good, bad.rows[8] = 1;
        expect_refused(bad, "8 tiles");
        bad = good, bad.rows[1] = 0;
        expect_refused(bad, "without rows");
        bad = good, bad.unused[13] = 1;
        expect_refused(bad, "2 to 15");
        bad = good, bad.palette = 2;
        expect_refused(bad, "palette");

        configure(&good);
        assert_null(tile_trap_complaint().what);
        __asm__ volatile(".byte 0xc4, 0xe2, 0x73, 0x5e, 0xc0"); /* tdpbssd tmm0, tmm0, tmm1 */
        expect_complaint("same tile");
        __asm__ volatile("tdpbssd %tmm6, %tmm5, %tmm0");
        expect_complaint("other rows");
        __asm__ volatile("tdpbssd %tmm4, %tmm2, %tmm5");
        expect_complaint("a dot");
        bad = good, bad.row_bytes[4] = 28;
        configure(&bad);
        __asm__ volatile("tdpbf16ps %tmm6, %tmm4, %tmm0");
        expect_complaint("depth");
        bad = good, bad.row_bytes[6] = 60;
        configure(&bad);
        __asm__ volatile("tdpbf16ps %tmm6, %tmm4, %tmm0");
        expect_complaint("other columns");
        bad = good, bad.row_bytes[6] = bad.rows[6] = 0;
        configure(&bad);
        __asm__ volatile("tdpbssd %tmm6, %tmm4, %tmm0");
        expect_complaint("no rows");
        __asm__ volatile("tilerelease");
        assert_false(is_configured());
        end();
}

/*
 * Moves a tile by a base and an index register, with a scale, and `by` bytes from the base. Some
 * registers have encodings of their own.
 */
#define MOVE(BASE, INDEX, SCALE, BY)                                                               \
        do {                                                                                       \
                memset(to, 0, sizeof(to));                                                         \
                MOVE_BY("tileloadd " #BY "(%0, %1, " #SCALE "), %%tmm1", BASE, INDEX,              \
                        (uintptr_t)from + 64 - (BY), APART / (SCALE));                             \
                MOVE_BY("tilestored %%tmm1, " #BY "(%0, %1, " #SCALE ")", BASE, INDEX,             \
                        (uintptr_t)to + 64 - (BY), APART / (SCALE));                               \
                rows_are(to + 64, from + 64);                                                      \
        } while (0)
#define MOVE_BY(CODE, BASE, INDEX, AT, APART_BY)                                                   \
        do {                                                                                       \
                register uintptr_t base __asm__(BASE) = (AT);                                      \
                register size_t apart __asm__(INDEX) = (APART_BY);                                 \
                                                                                                   \
                __asm__ volatile(CODE ::"r"(base), "r"(apart) : "memory");                         \
        } while (0)

#define APART 24u

/* Three rows of 8 bytes, and zeros between them. */
static void rows_are(const uint8_t *to, const uint8_t *from)
{
        uint8_t should[3 * APART] = { 0 };

        for (uint32_t row = 0; row < 3; row++)
                memcpy(should + row * APART, from + row * APART, 8);
        assert_memory_equal(to, should, sizeof(should));
}

WITH_TILES static void operands_in_memory_are_found_however_they_are_encoded(void **state)
{
        static const struct tile_shape shape = { .palette = 1,
                                                 .row_bytes = { 64, 8 },
                                                 .rows = { 16, 3 } };
        uint8_t from[256], to[256];

        (void)state;
        begin();
        for (size_t i = 0; i < sizeof(from); i++)
                from[i] = (uint8_t)random_next();
        __asm__ volatile("ldtilecfg -0x40(%0, %1, 8)" ::"r"(&shape), "r"((size_t)8), "m"(shape));
        assert_true(is_configured());
        __asm__ volatile("tilerelease\n\tldtilecfg 0x1000(%0)" ::"r"((uintptr_t)&shape - 0x1000),
                         "m"(shape));
        assert_true(is_configured());
        __asm__ volatile("tilerelease\n\tldtilecfg %0" ::"m"(shape)); /* of the code's address */
        assert_true(is_configured());
        MOVE("rbx", "rcx", 1, 0);
        MOVE("r13", "r12", 1, 0);
        MOVE("r12", "r13", 2, 0);
        MOVE("r12", "rdi", 8, 16);
        MOVE("r9", "r14", 4, -32);
        MOVE("rsi", "r15", 8, 0x12345);
        MOVE("r13", "rdx", 1, -0x23456);
        end();
}

WITH_TILES static void dots_of_bytes_have_the_signs_of_their_operands(void **state)
{
        static const struct tile_shape shape = { .palette = 1,
                                                 .row_bytes = { 8, 12, 8, 8, 8, 8 },
                                                 .rows = { 5, 5, 3, 5, 5, 5 } };
        uint8_t x[5][12], w[3][8];
        uint32_t sums[4][5][2];

        (void)state;
        begin();
        for (uint32_t i = 0; i < sizeof(x); i++)
                x[i / 12][i % 12] = (uint8_t)random_next();
        for (uint32_t i = 0; i < sizeof(w); i++)
                w[i / 8][i % 8] = (uint8_t)random_next();
        __asm__ volatile("ldtilecfg %0\n\t"
                         "tileloadd (%1, %2), %%tmm1\n\t"
                         "tileloaddt1 (%3, %4), %%tmm2\n\t"
                         "tilezero %%tmm5\n\t"
                         "tdpbssd %%tmm2, %%tmm1, %%tmm0\n\t"
                         "tdpbsud %%tmm2, %%tmm1, %%tmm3\n\t"
                         "tdpbusd %%tmm2, %%tmm1, %%tmm4\n\t"
                         "tdpbuud %%tmm2, %%tmm1, %%tmm5\n\t"
                         "tilestored %%tmm0, (%5, %4)\n\t"
                         "tilestored %%tmm3, 40(%5, %4)\n\t"
                         "tilestored %%tmm4, 80(%5, %4)\n\t"
                         "tilestored %%tmm5, 120(%5, %4)" ::"m"(shape),
                         "r"(x), "r"((size_t)12), "r"(w), "r"((size_t)8), "r"(sums)
                         : "memory");
        complaint_check();
        for (uint32_t i = 0; i < 4 * 5 * 2; i++) {
                uint32_t kind = i / 10, row = i / 2 % 5, column = i % 2;
                int32_t sum = 0;

                for (uint32_t k = 0; k < 12; k++) {
                        uint8_t a = x[row][k], b = w[k / 4][column * 4 + k % 4];

                        sum += (kind < 2 ? (int8_t)a : a) * (kind % 2 ? b : (int8_t)b);
                }
                assert_int_equal(sums[kind][row][column], (uint32_t)sum);
        }
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(products_of_any_number_of_rows_have_the_bits_of_emulated_tiles),
                cmocka_unit_test(products_of_several_slices_have_the_bits_of_emulated_tiles),
                cmocka_unit_test(products_of_several_panels_have_the_bits_of_emulated_tiles),
                cmocka_unit_test(sums_of_bfloats_near_the_limits_have_the_bits_of_emulated_tiles),
                cmocka_unit_test(infinities_and_nans_do_what_they_do_with_emulated_tiles),
                cmocka_unit_test(products_follow_each_other_and_rests_in_any_order),
                cmocka_unit_test(a_rest_leaves_no_configuration),
                cmocka_unit_test(each_thread_has_tiles_of_its_own),
                cmocka_unit_test(products_use_the_tiles_that_their_shape_needs),
                cmocka_unit_test(the_trap_refuses_what_a_processor_refuses),
                cmocka_unit_test(operands_in_memory_are_found_however_they_are_encoded),
                cmocka_unit_test(dots_of_bytes_have_the_signs_of_their_operands),
        };

        random_seed();
        return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void tiles_are_of_other_processors(void **state)
{
        (void)state;
        skip_because("the processor is no x86-64");
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(tiles_are_of_other_processors) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
