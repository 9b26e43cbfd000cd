/*
 * Pieces of products: several panels and many rows of x at once, of every instruction set of this
 * machine.
 *
 * Tiles multiply codes from some number of rows on, and bfloats always. A product has the same bits
 * whatever panels and rows are beside it, so each piece is compared with its rows one by one, and
 * with one panel. Products of codes must also have the bits of plain C.
 */
#include "tests/kernels/panels-rig.h"

#include "kernels/blocks.h"

#define ROWS_MOST   512u
#define PANELS_MOST 8u

/* All panels, and all rows, one by one. */
static void alone_all(const struct isa *isa, const struct panels *p, const uint8_t *acts,
                      uint32_t rows, float *out)
{
        size_t stride = act_stride(act_kind_of(p->one.type), p->one.columns);
        float one[PANEL + PIECE_GUARD];

        for (uint32_t panel = 0; panel < p->count; panel++)
                for (uint32_t t = 0; t < rows; t++, out += PANEL) {
                        piece_multiply(isa, p, panel, 1, acts + t * stride, 1, one);
                        memcpy(out, one, PANEL * sizeof(*one));
                }
}

static void pieces_are(const struct isa *isa, const struct panels *p, const uint8_t *acts,
                       const float *should, uint32_t most, uint32_t rows)
{
        float *out = malloc(((size_t)p->count * rows * PANEL + PIECE_GUARD) * sizeof(*out));

        assert_non_null(out);
        piece_multiply(isa, p, 0, p->count, acts, rows, out);
        for (uint32_t panel = 0; panel < p->count; panel++)
                if (memcmp(out + (size_t)panel * rows * PANEL,
                           should + (size_t)panel * most * PANEL,
                           (size_t)rows * PANEL * sizeof(*out)))
                        fail_msg("%s, %s, %u columns: panel %u of %u has other bits with %u rows",
                                 isa->name, row_type_name(p->one.type), p->one.columns, panel,
                                 p->count, rows);
        free(out);
}

/* A piece of all panels and the first rows, so many as `rows` has, the most last. */
static void pieces_check(const struct panels *p, const float *x, const uint32_t *rows,
                         uint32_t count)
{
        uint32_t most = rows[count - 1];
        size_t bytes = (size_t)p->count * most * PANEL * sizeof(float);
        float *first = malloc(bytes), *should = malloc(bytes);

        assert_true(first && should);
        for (uint32_t i = 0; i < isa_count; i++) {
                uint8_t *acts = acts_make(isas[i], p->one.type, p->one.columns, x, most);

                alone_all(isas[i], p, acts, most, should);
                if (i == 0)
                        memcpy(first, should, bytes);
                if (!is_own_kind(isas[i], p->one.type) && memcmp(first, should, bytes))
                        fail_msg("%s, %s: other bits than plain C", isas[i]->name,
                                 row_type_name(p->one.type));
                for (uint32_t n = 0; n < count; n++)
                        pieces_are(isas[i], p, acts, should, most, rows[n]);
                free(acts);
        }
        free(first);
        free(should);
}

/* Around the numbers of rows from which tiles multiply, and of which a pass takes the most. */
static const uint32_t rows_of[] = { 2, 12, 14, 16, 17, 24, 25, 33, 48, 49, 65, 200, 201, 215 };

static void pieces_of_any_size_have_the_bits_of_their_rows_alone(void **state)
{
        static const struct {
                enum row_type type;
                uint32_t columns[4];
        } cases[] = {
                { ROW_BF16, { 1, 31, 257, 300 } },  { ROW_Q8_0, { 32, 96, 512, 544 } },
                { ROW_Q4_0, { 64, 480, 544, 0 } },  { ROW_Q4_K, { 256, 512, 768, 0 } },
                { ROW_Q6_K, { 256, 512, 768, 0 } }, { ROW_F16, { 33, 0, 0, 0 } },
                { ROW_Q5_K, { 256, 0, 0, 0 } },
        };

        (void)state;
        for (size_t n = 0; n < COUNT(cases) * 4; n++) {
                uint32_t columns = cases[n / 4].columns[n % 4];
                struct panels p;
                float *x;

                if (!columns)
                        continue;
                panels_make(&p, cases[n / 4].type, columns, 1 + random_below(3));
                x = rows_make(columns, ROWS_MOST);
                pieces_check(&p, x, rows_of, COUNT(rows_of));
                free(x);
                panels_free(&p);
        }
}

static void pieces_of_512_rows_and_8_panels_have_the_bits_of_their_rows_alone(void **state)
{
        static const enum row_type types[] = { ROW_BF16, ROW_Q8_0, ROW_Q4_0, ROW_Q4_K, ROW_Q6_K };
        const uint32_t rows = ROWS_MOST;

        (void)state;
        for (size_t n = 0; n < COUNT(types); n++) {
                struct panels p;
                float *x = rows_make(256, rows);

                panels_make(&p, types[n], 256, PANELS_MOST);
                pieces_check(&p, x, &rows, 1);
                free(x);
                panels_free(&p);
        }
}

/* Where the 16-bit scale of a block is; Q4_K has the scale of its least values behind it. */
static uint32_t scale_at(enum row_type type)
{
        return type == ROW_Q6_K ? block_format(type)->bytes - 2 : 0;
}

/*
 * Dots of tiles become floats in a way that an infinite scale would disturb. So a panel that has
 * one is multiplied without tiles, and the panels beside it are not disturbed.
 */
static void infinite_scales_and_nans_do_what_they_do_without_tiles(void **state)
{
        static const enum row_type types[] = { ROW_Q8_0, ROW_Q4_0, ROW_Q4_K, ROW_Q6_K };
        static const uint16_t scales[] = { 0x7c00, 0xfc00, 0x7e00, 0xfe01 };
        const uint32_t rows = 210;

        (void)state;
        for (size_t n = 0; n < COUNT(types) * COUNT(scales); n++) {
                enum row_type type = types[n / COUNT(scales)];
                uint32_t is_min = type == ROW_Q4_K && random_below(2);
                const struct block_format *f = block_format(type);
                float *x = rows_make(1024, rows);
                struct panels p;
                size_t row, block;

                panels_make(&p, type, 1024, 1);
                row = random_below(PANEL);
                block = n % 2 ? 0 : 1024 / f->numbers - 1; /* of the first or of the last slice */
                memcpy(p.one.file + row * p.one.row_bytes + block * f->bytes + scale_at(type) +
                               2 * is_min,
                       &scales[n % COUNT(scales)], sizeof(scales[0]));
                panels_fill(&p);
                pieces_check(&p, x, &rows, 1);
                free(x);
                panels_free(&p);
        }
}

/* The second of three panels has an infinite scale. */
static void a_panel_without_tiles_does_not_disturb_its_neighbours(void **state)
{
        const uint32_t rows = 60;
        const uint16_t infinity = 0x7c00;
        float *x = rows_make(1024, rows);
        struct panels p, healthy;

        (void)state;
        panels_make(&p, ROW_Q4_0, 1024, 3);
        healthy = p;
        healthy.bytes = aligned_alloc(64, round_up((uint32_t)(3 * p.stride), 64));
        assert_non_null(healthy.bytes);
        memcpy(healthy.bytes, p.bytes, 3 * p.stride);
        memcpy(p.bytes + p.stride + 700 / 32 * 576 + 6, &infinity, sizeof(infinity));
        pieces_check(&p, x, &rows, 1);
        for (uint32_t i = 0; i < isa_count; i++) {
                uint8_t *acts = acts_make(isas[i], ROW_Q4_0, 1024, x, rows);
                size_t each = (size_t)rows * PANEL;
                float *out = malloc((3 * each + PIECE_GUARD) * sizeof(*out));
                float *should = malloc((3 * each + PIECE_GUARD) * sizeof(*out));

                assert_true(out && should);
                piece_multiply(isas[i], &p, 0, 3, acts, rows, out);
                piece_multiply(isas[i], &healthy, 0, 3, acts, rows, should);
                assert_memory_equal(out, should, each * sizeof(*out));
                assert_memory_equal(out + 2 * each, should + 2 * each, each * sizeof(*out));
                assert_false(isfinite(out[each + 3]) && isfinite(out[2 * each - PANEL + 3]));
                free(acts);
                free(out);
                free(should);
        }
        free(healthy.bytes);
        free(x);
        panels_free(&p);
}

/* Scales of x that are not finite need no care: both ways multiply by them at the same place. */
static void rows_of_x_with_nan_or_infinity_do_what_they_do_without_tiles(void **state)
{
        static const enum row_type types[] = { ROW_BF16, ROW_Q8_0, ROW_Q4_0, ROW_Q4_K, ROW_Q6_K };
        const uint32_t rows = 210;

        (void)state;
        for (size_t n = 0; n < COUNT(types); n++) {
                float *x = rows_make(512, rows);
                struct panels p;

                x[3 * 512 + 70] = INFINITY;
                x[20 * 512 + 500] = -INFINITY;
                x[21 * 512 + 5] = NAN;
                panels_make(&p, types[n], 512, 2);
                pieces_check(&p, x, &rows, 1);
                free(x);
                panels_free(&p);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pieces_of_any_size_have_the_bits_of_their_rows_alone),
                cmocka_unit_test(pieces_of_512_rows_and_8_panels_have_the_bits_of_their_rows_alone),
                cmocka_unit_test(infinite_scales_and_nans_do_what_they_do_without_tiles),
                cmocka_unit_test(a_panel_without_tiles_does_not_disturb_its_neighbours),
                cmocka_unit_test(rows_of_x_with_nan_or_infinity_do_what_they_do_without_tiles),
        };

        random_seed();
        return cmocka_run_group_tests(tests, isas_find, variants_close);
}
