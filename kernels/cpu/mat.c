/*
 * Weights in panels.
 *
 *      file     row 0: k0 k1 k2 ...      panel    k0: row 0, row 1, ... row 31
 *               row 1: k0 k1 k2 ...               k1: row 0, row 1, ... row 31
 *
 * Numbers keep the file's type, so repacking is a permutation and loses nothing.
 * Blocks become the floats that they mean, and lose nothing either; it takes their
 * room, though.
 */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/memory.h"
#include "kernels/rows.h"

#define STRIPE 64u /* numbers of each row moved at a time: their lines stay in the first cache */

void cpu_mat_free(struct kernels *k, struct mat *mat)
{
        (void)k;
        if (!mat)
                return;
        for (uint32_t p = 0; p < mat->shape.parts; p++)
                memory_free(mat->parts[p].panels);
        memory_free(mat);
}

static int part_init(struct part *part, struct mat_shape *shape, uint32_t p)
{
        part->file_type = shape->type[p];
        if (block_format(shape->type[p]))
                shape->type[p] = ROW_F32;
        part->panel_count = round_up(shape->rows[p], PANEL) / PANEL;
        part->panel_bytes = PANEL * row_bytes(shape->type[p], shape->columns);
        part->panels = memory_new(part->panel_count, part->panel_bytes);
        return part->panels ? 0 : -ENOMEM;
}

static int shape_check(const struct mat_shape *shape)
{
        uint64_t rows = 0;

        if (!shape->columns || !shape->parts || shape->parts > MAT_PARTS_MAX)
                return -EINVAL;
        for (uint32_t p = 0; p < shape->parts; p++) {
                if (!shape->rows[p] || !row_bytes(shape->type[p], shape->columns))
                        return -EINVAL;
                rows += shape->rows[p];
        }
        return rows > INT32_MAX ? -EINVAL : 0;
}

int cpu_mat_new(struct kernels *k, const struct mat_shape *shape, struct mat **ret_mat)
{
        struct cpu *cpu = cpu_of(k);
        size_t rows_max = cpu->steps.rows_max;
        struct mat *mat;
        int r;

        r = shape_check(shape);
        if (r < 0)
                return r;
        r = cpu_scratch_grow(&cpu->normed, &cpu->normed_max, rows_max * shape->columns);
        if (r < 0)
                return r;
        mat = memory_new(1, sizeof(*mat));
        if (!mat)
                return -ENOMEM;
        mat->shape = *shape;
        for (uint32_t p = 0; p < shape->parts && !r; p++) {
                r = part_init(&mat->parts[p], &mat->shape, p);
                mat->rows += shape->rows[p];
                mat->panels += mat->parts[p].panel_count;
        }
        if (!r && shape->parts == 3)
                r = cpu_scratch_grow(&cpu->outs, &cpu->outs_max, rows_max * mat->rows);
        if (r < 0) {
                cpu_mat_free(k, mat);
                return r;
        }

        *ret_mat = mat;
        return 0;
}

/* Rows of one panel; `number` is the bytes of one number, a constant where this is inlined. */
static inline __attribute__((always_inline)) void panel_put(uint8_t *panel, uint32_t row,
                                                            uint32_t rows, const uint8_t *from,
                                                            uint32_t columns, const size_t number)
{
        for (uint32_t k = 0; k < columns; k += STRIPE) {
                uint32_t end = columns - k < STRIPE ? columns : k + STRIPE;

                for (uint32_t r = 0; r < rows; r++) {
                        const uint8_t *line = from + (size_t)r * columns * number;
                        uint8_t *to = panel + (row + r) * number;

                        for (size_t i = k; i < end; i++)
                                memcpy(to + i * PANEL * number, line + i * number, number);
                }
        }
}

/* A row of blocks, as the floats that it means: block by block on the stack, for several threads
 * put rows at a time and have nothing to share. */
static void blocks_put(uint8_t *panel, uint32_t row, const uint8_t *from, uint32_t columns,
                       const struct block_format *format)
{
        float *to = (float *)panel + row;
        float floats[BLOCK_NUMBERS_MAX];

        for (uint32_t k = 0; k < columns; k += format->numbers, from += format->bytes) {
                format->to_floats(from, floats);
                for (uint32_t i = 0; i < format->numbers; i++)
                        to[(size_t)(k + i) * PANEL] = floats[i];
        }
}

int cpu_weights_put(struct kernels *k, struct mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                    const void *file_rows)
{
        const uint8_t *from = file_rows;
        uint32_t columns = mat->shape.columns;
        const struct block_format *format;
        size_t bytes;

        (void)k;
        assert(part < mat->shape.parts && row <= mat->shape.rows[part] &&
               rows <= mat->shape.rows[part] - row);
        bytes = row_bytes(mat->parts[part].file_type, columns);
        format = block_format(mat->parts[part].file_type);
        while (rows > 0) {
                const struct part *p = &mat->parts[part];
                uint8_t *panel = p->panels + row / PANEL * p->panel_bytes;
                uint32_t n = PANEL - row % PANEL;

                if (n > rows)
                        n = rows;
                if (format)
                        n = 1;
                if (format)
                        blocks_put(panel, row % PANEL, from, columns, format);
                else if (mat->shape.type[part] == ROW_F32)
                        panel_put(panel, row % PANEL, n, from, columns, 4);
                else
                        panel_put(panel, row % PANEL, n, from, columns, 2);
                from += n * bytes;
                row += n;
                rows -= n;
        }
        return 0;
}

void cpu_mat_row(const struct mat *mat, uint32_t part, uint32_t row, float *ret_floats)
{
        const struct part *p = &mat->parts[part];
        const uint8_t *panel;
        size_t at = row % PANEL;

        assert(part < mat->shape.parts && row < mat->shape.rows[part]);
        panel = p->panels + row / PANEL * p->panel_bytes;
        for (uint32_t k = 0; k < mat->shape.columns; k++, at += PANEL) {
                if (mat->shape.type[part] == ROW_F32)
                        ret_floats[k] = ((const float *)panel)[at];
                else if (mat->shape.type[part] == ROW_F16)
                        ret_floats[k] = half_to_float(((const uint16_t *)panel)[at]);
                else
                        ret_floats[k] = bfloat_to_float(((const uint16_t *)panel)[at]);
        }
}
