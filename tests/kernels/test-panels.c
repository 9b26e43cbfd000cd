/*
 * Panels (kernels/cpu/panel.h): the rows that are put come back, bit for bit, and lie where the
 * header says.
 *
 * Rows are random bytes, with NaN among the scales: repacking loses nothing.  The test finds
 * the place of a code from the header's description alone.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "kernels/blocks.h"
#include "kernels/convert.h"
#include "kernels/cpu/panel.h"
#include "tests/kernels/small-model.h"

#define GUARD   64u
#define THREADS 3u

static const uint32_t columns_of[] = { 1, 2, 3, 7, 31, 32, 33, 64, 96, 255, 256, 257, 512, 768 };
static const uint32_t rows_of[] = { 1, 2, 5, 31, 32, 33, 63, 70 };

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct weights { /* rows of a file, and panels of them */
        enum row_type type;
        uint32_t columns, rows, panels;
        size_t row_bytes, panel_bytes;
        uint8_t *file, *panel;
        uint32_t *order;
};

static uint8_t *bytes_new(size_t count, int fill)
{
        uint8_t *bytes = malloc(count + GUARD);

        assert_non_null(bytes);
        memset(bytes, fill, count);
        memset(bytes + count, 0xa5, GUARD);
        return bytes;
}

static void guard_check(const uint8_t *bytes, size_t count)
{
        for (uint32_t i = 0; i < GUARD; i++)
                assert_int_equal(bytes[count + i], 0xa5);
}

static void weights_make(struct weights *w, enum row_type type, uint32_t columns, uint32_t rows,
                         int fill)
{
        *w = (struct weights){ type, columns, rows, (rows + PANEL - 1) / PANEL };
        w->row_bytes = row_bytes(type, columns);
        w->panel_bytes = panel_bytes(type, columns);
        w->file = bytes_new(rows * w->row_bytes, 0);
        for (size_t i = 0; i < rows * w->row_bytes; i++)
                w->file[i] = (uint8_t)random_next();
        w->panel = bytes_new(w->panels * w->panel_bytes, fill);
        w->order = malloc(rows * sizeof(*w->order));
        assert_non_null(w->order);
        for (uint32_t i = 0; i < rows; i++) {
                uint32_t other = random_below(i + 1);

                w->order[i] = w->order[other];
                w->order[other] = i;
        }
}

static void weights_free(struct weights *w)
{
        free(w->file);
        free(w->panel);
        free(w->order);
}

/* Of one panel. */
static void put_rows(struct weights *w, uint32_t row, uint32_t rows)
{
        panel_put(w->type, w->panel + row / PANEL * w->panel_bytes, row % PANEL, rows, w->columns,
                  w->file + row * w->row_bytes);
}

static void put_row(struct weights *w, uint32_t row)
{
        put_rows(w, row, 1);
}

/* All of them, a few at a time and never those of two panels. */
static void put_in_runs(struct weights *w)
{
        for (uint32_t row = 0, rows; row < w->rows; row += rows) {
                uint32_t left = PANEL - row % PANEL;

                if (left > w->rows - row)
                        left = w->rows - row;
                rows = random_below(3) ? 1 + random_below(left) : left;
                put_rows(w, row, rows);
        }
}

static void rows_come_back(const struct weights *w)
{
        float *should = (float *)bytes_new(w->columns * sizeof(float), 0);
        float *is = (float *)bytes_new(w->columns * sizeof(float), 0xff);

        for (uint32_t row = 0; row < w->rows; row++) {
                row_to_floats(w->type, w->file + row * w->row_bytes, w->columns, should);
                panel_get(w->type, w->panel + row / PANEL * w->panel_bytes, row % PANEL, w->columns,
                          is);
                if (memcmp(is, should, w->columns * sizeof(float)))
                        fail_msg("%s, %u columns: row %u of %u does not come back",
                                 row_type_name(w->type), w->columns, row, w->rows);
        }
        guard_check((uint8_t *)is, w->columns * sizeof(float));
        guard_check(w->panel, w->panels * w->panel_bytes);
        free(should);
        free(is);
}

static void rows_read_back_bit_for_bit_in_every_type_and_shape(void **state)
{
        struct weights w;

        (void)state;
        for (enum row_type type = 0; type < ROW_TYPE_N; type++)
                for (size_t c = 0; c < COUNT(columns_of); c++)
                        for (size_t r = 0; r < COUNT(rows_of); r++) {
                                if (!row_bytes(type, columns_of[c]))
                                        continue;
                                weights_make(&w, type, columns_of[c], rows_of[r], 0);
                                for (uint32_t i = 0; i < w.rows; i++)
                                        put_row(&w, w.order[i]);
                                rows_come_back(&w);
                                memset(w.panel, 0, w.panels * w.panel_bytes);
                                put_in_runs(&w);
                                rows_come_back(&w);
                                weights_free(&w);
                        }
}

/* ---- several threads ---- */

struct putter {
        struct weights *w;
        uint32_t first;
};

static void *putter_work(void *arg)
{
        const struct putter *p = arg;

        for (uint32_t i = p->first; i < p->w->rows; i += THREADS)
                put_row(p->w, p->w->order[i]);
        return NULL;
}

/* A thread has the 5 rows after another one's, wherever panels end. */
static void *runner_work(void *arg)
{
        const struct putter *p = arg;

        for (uint32_t row = p->first * 5; row < p->w->rows; row += THREADS * 5)
                for (uint32_t i = row, rows; i < row + 5 && i < p->w->rows; i += rows) {
                        rows = row + 5 - i;
                        if (rows > PANEL - i % PANEL)
                                rows = PANEL - i % PANEL;
                        put_rows(p->w, i, rows);
                }
        return NULL;
}

static void threads_can_put_rows_of_one_panel_concurrently(void **state)
{
        (void)state;
        for (enum row_type type = 0; type < ROW_TYPE_N; type++)
                for (uint32_t round = 0; round < 4; round++) {
                        pthread_t threads[THREADS];
                        struct putter putters[THREADS];
                        struct weights w;

                        weights_make(&w, type, 512, 90, 0);
                        for (uint32_t t = 0; t < THREADS; t++) {
                                putters[t] = (struct putter){ &w, t };
                                assert_int_equal(
                                        pthread_create(&threads[t], NULL,
                                                       round % 2 ? runner_work : putter_work,
                                                       &putters[t]),
                                        0);
                        }
                        for (uint32_t t = 0; t < THREADS; t++)
                                pthread_join(threads[t], NULL);
                        rows_come_back(&w);
                        weights_free(&w);
                }
}

/* ---- where it lies ---- */

/*
 * A row has its own bits.  In panels of zeros and in panels of ones it leaves all other rows
 * unchanged.
 */
static void putting_a_row_changes_no_bit_of_another(void **state)
{
        struct weights w;
        uint8_t *before;

        (void)state;
        for (enum row_type type = 0; type < ROW_TYPE_N; type++)
                for (uint32_t row = 0; row < PANEL; row++) {
                        weights_make(&w, type, 512, PANEL, row % 2 ? 0xff : 0);
                        for (uint32_t i = 0; i < PANEL; i++)
                                if (w.order[i] != row)
                                        put_row(&w, w.order[i]);
                        before = bytes_new(w.panel_bytes, 0);
                        put_row(&w, row);
                        rows_come_back(&w);
                        memcpy(before, w.panel, w.panel_bytes);
                        put_row(&w, row); /* once more: the row is replaced, not added */
                        assert_memory_equal(before, w.panel, w.panel_bytes);
                        free(before);
                        weights_free(&w);
                }
}

static void a_panel_has_the_size_of_its_slabs(void **state)
{
        static const struct {
                enum row_type type;
                uint32_t columns, bytes;
        } slab[] = {
                { ROW_F32, 1, 32 * 4 },
                { ROW_F16, 1, 32 * 2 },
                { ROW_BF16, 2, 32 * 2 * 2 },
                { ROW_F8_E4M3, 128, 32 * 4 + 32 * 2 + 128 * 32 },
                { ROW_Q8_0, 32, 32 * 2 + 1024 },
                { ROW_Q4_0, 32, 32 * 2 + 512 },
                { ROW_Q4_1, 32, 32 * 2 * 2 + 512 },
                { ROW_Q5_0, 32, 32 * 2 + 128 + 512 },
                { ROW_Q5_1, 32, 32 * 2 * 2 + 128 + 512 },
                { ROW_IQ4_NL, 32, 32 * 2 + 512 },
                { ROW_MXFP4, 32, 32 * 2 + 512 },
                { ROW_Q4_K, 256, 32 * 2 * 2 + 3 * 32 * 4 + 8 * 512 },
                { ROW_Q5_K, 256, 32 * 2 * 2 + 3 * 32 * 4 + 8 * (128 + 512) },
                { ROW_Q6_K, 256, 32 * 2 + 8 * (2 * 32 + 128 + 512 + 128) },
                { ROW_Q3_K, 256, 32 * 2 + 8 * (2 * 32 + 128 + 256) },
                { ROW_Q2_K, 256, 32 * 2 * 2 + 8 * (2 * 32 + 256) },
                { ROW_IQ4_XS, 256, 32 * 2 + 8 * 32 + 8 * 512 },
                { ROW_IQ3_XXS, 256, 32 * 2 + 8 * 32 + 8 * 512 },
                { ROW_IQ3_S, 256, 32 * 2 + 8 * 32 + 8 * 512 },
                { ROW_IQ2_XXS, 256, 32 * 2 + 8 * 32 + 8 * (128 + 256) },
                { ROW_IQ2_XS, 256, 32 * 2 + 8 * (2 * 32 + 128 + 256) },
                { ROW_IQ2_S, 256, 32 * 2 + 8 * (2 * 32 + 128 + 256) },
                { ROW_IQ1_S, 256, 32 * 2 + 8 * 32 + 8 * (128 + 256) },
                { ROW_IQ1_M, 256, 32 * 2 + 8 * (2 * 32 + 128 + 256) },
                { ROW_TQ1_0, 256, 32 * 2 + 8 * 256 },
                { ROW_TQ2_0, 256, 32 * 2 + 8 * 256 },
                { ROW_NVFP4, 64, 32 * 4 + 2 * (2 * 32 + 512) },
        };

        (void)state;
        assert_int_equal(COUNT(slab), ROW_TYPE_N);
        for (size_t i = 0; i < COUNT(slab); i++)
                for (uint32_t columns = 1; columns <= 1024; columns++)
                        if (row_bytes(slab[i].type, columns))
                                assert_int_equal(panel_bytes(slab[i].type, columns),
                                                 (columns + slab[i].columns - 1) / slab[i].columns *
                                                         slab[i].bytes);
}

static uint32_t dword(const uint8_t *quads, uint32_t row)
{
        uint32_t u;

        memcpy(&u, quads + row * 4, 4);
        return u;
}

/* Codes of 32 columns: [quad][row][4], as the header describes them. */
static uint32_t bytes_code(const uint8_t *at, uint32_t row, uint32_t column)
{
        return at[column / 4 * 128 + row * 4 + column % 4];
}

static uint32_t nibbles_code(const uint8_t *at, uint32_t row, uint32_t column)
{
        uint8_t byte = at[column / 4 % 4 * 128 + row * 4 + column % 4];

        return column / 4 < 4 ? byte & 15 : byte >> 4;
}

/*
 * The second half holds the upper 16 columns.  It begins `second` bytes after the first half's
 * beginning.
 */
static uint32_t halves_code(const uint8_t *at, size_t second, uint32_t row, uint32_t column)
{
        uint32_t i = column % 4, j = column % 16 / 4;

        return dword(at + column / 16 * second, row) >> (8 * i + 2 * j) & 3;
}

static uint32_t pairs_code(const uint8_t *at, uint32_t row, uint32_t column)
{
        return halves_code(at, 128, row, column);
}

static uint32_t fifths_code(const uint8_t *at, uint32_t row, uint32_t column)
{
        uint32_t i = column % 4, j = column / 4;

        return dword(at, row) >> (8 * i + j) & 1;
}

static uint32_t code_at(enum row_type type, const uint8_t *at, uint32_t row, uint32_t column)
{
        switch (type) {
        case ROW_F8_E4M3:
                return at[column * 32 + row];
        case ROW_Q8_0:
                return bytes_code(at, row, column);
        case ROW_Q5_0:
        case ROW_Q5_1:
        case ROW_Q5_K:
                return fifths_code(at, row, column) << 4 | nibbles_code(at + 128, row, column);
        case ROW_Q6_K:
                return halves_code(at, 128 + 512, row, column) << 4 |
                       nibbles_code(at + 128, row, column);
        case ROW_Q3_K:
        case ROW_IQ2_XXS:
        case ROW_IQ2_XS:
        case ROW_IQ2_S:
        case ROW_IQ1_S:
        case ROW_IQ1_M:
                return fifths_code(at, row, column) << 2 | pairs_code(at + 128, row, column);
        case ROW_Q2_K:
        case ROW_TQ1_0:
        case ROW_TQ2_0:
                return pairs_code(at, row, column);
        default:
                return nibbles_code(at, row, column);
        }
}

/* Six bits: sixteen numbers of a row, scales first. */
static uint32_t run_at(const uint8_t *runs, uint32_t row, uint32_t i)
{
        if (i < 15)
                return dword(runs + i / 5 * 128, row) >> 6 * (i % 5) & 63;
        return dword(runs, row) >> 30 | dword(runs + 128, row) >> 30 << 2 |
               dword(runs + 256, row) >> 30 << 4;
}

static float number_at(enum row_type type, const uint8_t *scales, uint32_t row)
{
        /* Of the scale that belongs to the codes (kernels/blocks-iq.h); 0: none. */
        static const float factor[ROW_TYPE_N] = {
                [ROW_IQ3_XXS] = 0.5f, [ROW_IQ2_XXS] = 0.125f, [ROW_IQ2_XS] = 0.125f,
                [ROW_IQ2_S] = 0.125f, [ROW_IQ1_S] = 0.125f,   [ROW_IQ1_M] = 0.125f,
        };
        uint16_t u;

        memcpy(&u, scales + row * 2, 2);
        if (type == ROW_MXFP4)
                return bits_float((uint32_t)u << 16);
        return half_to_float(u) * (factor[type] != 0 ? factor[type] : 1);
}

static const uint8_t *e4m3_check(const uint8_t *slab, uint32_t row, const struct block *b)
{
        bool is_number = true;

        for (uint32_t i = 0; i < 128; i++)
                is_number &= b->codes[i] != 0x7f && b->codes[i] != 0xff;
        assert_int_equal(dword(slab, row), float_bits(b->scale));
        slab += 128;
        if (is_number)
                assert_int_equal(float_bits(number_at(ROW_F8_E4M3, slab, row)), 0);
        else
                assert_true(isnan(number_at(ROW_F8_E4M3, slab, row)));
        return slab + 64;
}

/* A scale for each 32 columns, one behind the other. */
static bool has_whole_runs(enum row_type type)
{
        return type == ROW_IQ4_XS || type == ROW_IQ3_XXS || type == ROW_IQ3_S ||
               type == ROW_IQ2_XXS || type == ROW_IQ1_S;
}

/* A scale for each 16 columns, before their codes. */
static bool has_half_runs(enum row_type type)
{
        return type == ROW_Q6_K || type == ROW_Q3_K || type == ROW_Q2_K || type == ROW_IQ2_XS ||
               type == ROW_IQ2_S || type == ROW_IQ1_M || type == ROW_NVFP4;
}

/* Returns where the blocks of 32 columns begin. */
static const uint8_t *scales_check(enum row_type type, const uint8_t *slab, uint32_t row,
                                   const struct block *b)
{
        bool has_mins = type == ROW_Q4_1 || type == ROW_Q5_1 || type == ROW_Q4_K ||
                        type == ROW_Q5_K || type == ROW_Q2_K;

        if (type == ROW_F8_E4M3)
                return e4m3_check(slab, row, b);
        if (type == ROW_NVFP4) {
                float scale = bits_float(dword(slab, row)) / 2;

                assert_int_equal(float_bits(scale), float_bits(b->scale));
                return slab + 128;
        }
        assert_int_equal(float_bits(number_at(type, slab, row)), float_bits(b->scale));
        slab += 64;
        if (has_mins) {
                assert_int_equal(float_bits(number_at(type, slab, row)), float_bits(b->min));
                slab += 64;
        }
        if (type == ROW_Q4_K || type == ROW_Q5_K) {
                for (uint32_t i = 0; i < 8; i++) {
                        assert_int_equal(run_at(slab, row, i), b->scales[i]);
                        assert_int_equal(run_at(slab, row, 8 + i), b->mins[i]);
                }
                return slab + 3 * 128;
        }
        if (has_whole_runs(type)) {
                for (uint32_t i = 0; i < 8; i++)
                        assert_int_equal((int8_t)slab[i * 32 + row], b->scales[i]);
                return slab + 8 * 32;
        }
        return slab;
}

/*
 * Checks the fields before the codes of 32 columns, which are two runs of 16.  Returns where
 * the codes begin.
 */
static const uint8_t *runs_check(enum row_type type, const uint8_t *at, uint32_t row,
                                 const struct block *b, uint32_t first)
{
        if (!has_half_runs(type))
                return at;
        for (uint32_t i = 0; i < 2; i++) {
                uint8_t run = at[i * 32 + row];

                if (type == ROW_Q2_K) {
                        assert_int_equal(run & 15, b->scales[first + i]);
                        assert_int_equal(run >> 4, b->mins[first + i]);
                } else {
                        assert_int_equal((int8_t)run, b->scales[first + i]);
                }
        }
        return at + 2 * 32;
}

static void columns_check(enum row_type type, const uint8_t *at, uint32_t row,
                          const struct block *b, uint32_t column)
{
        at = runs_check(type, at, row, b, column / 16);
        for (uint32_t i = 0; i < 32; i++)
                assert_int_equal(code_at(type, at, row, i), b->codes[column + i]);
}

static void slab_check(enum row_type type, const uint8_t *slab, size_t bytes, uint32_t row,
                       const struct block *b)
{
        const uint32_t blocks = block_format(type)->numbers / 32;
        const uint8_t *at = scales_check(type, slab, row, b);
        const size_t block_bytes = (bytes - (size_t)(at - slab)) / blocks;

        for (uint32_t i = 0; i < blocks; i++)
                columns_check(type, at + i * block_bytes, row, b, i * 32);
}

static void blocks_lie_where_the_header_says(void **state)
{
        (void)state;
        for (enum row_type type = 0; type < ROW_TYPE_N; type++) {
                const struct block_format *f = block_format(type);
                struct weights w;

                if (!f)
                        continue;
                weights_make(&w, type, f->numbers * 3, PANEL, 0);
                for (uint32_t row = 0; row < PANEL; row++)
                        put_row(&w, row);
                for (uint32_t at = 0; at < 3 * PANEL; at++) {
                        const size_t slab_bytes = w.panel_bytes / 3;
                        const uint32_t row = at % PANEL;
                        struct block b;

                        f->take(w.file + row * w.row_bytes + at / PANEL * f->bytes, &b);
                        slab_check(type, w.panel + at / PANEL * slab_bytes, slab_bytes, row, &b);
                }
                weights_free(&w);
        }
}

static void numbers_lie_where_the_header_says(void **state)
{
        struct weights w;

        (void)state;
        for (uint32_t columns = 1; columns < 8; columns++) {
                for (enum row_type type = ROW_F32; type <= ROW_BF16; type++) {
                        size_t bytes = type == ROW_F32 ? 4 : 2;

                        weights_make(&w, type, columns, PANEL, 0);
                        for (uint32_t row = 0; row < PANEL; row++)
                                put_row(&w, row);
                        for (uint32_t row = 0; row < PANEL; row++)
                                for (uint32_t k = 0; k < columns; k++) {
                                        size_t at = type == ROW_BF16 ? k / 2 * 64 + row * 2 + k % 2
                                                                     : k * 32 + row;

                                        assert_memory_equal(w.panel + at * bytes,
                                                            w.file + row * w.row_bytes + k * bytes,
                                                            bytes);
                                }
                        for (uint32_t row = 0; row < PANEL && type == ROW_BF16 && columns % 2;
                             row++) {
                                const uint8_t *beside =
                                        w.panel + (columns / 2 * 64 + row * 2 + 1) * 2;

                                assert_int_equal(beside[0] | beside[1], 0);
                        }
                        weights_free(&w);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_panel_has_the_size_of_its_slabs),
                cmocka_unit_test(blocks_lie_where_the_header_says),
                cmocka_unit_test(numbers_lie_where_the_header_says),
                cmocka_unit_test(rows_read_back_bit_for_bit_in_every_type_and_shape),
                cmocka_unit_test(putting_a_row_changes_no_bit_of_another),
                cmocka_unit_test(threads_can_put_rows_of_one_panel_concurrently),
        };

        random_seed();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
