/* Matrices: parts of panels (panel.h). */
#include "kernels/cpu/cpu.h"

#include <errno.h>

#include "kernels/memory.h"

void cpu_matrix_free(struct kernels *k, struct matrix *matrix)
{
        (void)k;
        if (!matrix)
                return;
        memory_free(matrix->memory);
        memory_free(matrix);
}

/*
 * Parts lie in the order in which products read them, so that memory sees one stream: one part
 * after the other, or, for two parts of equal height that are multiplied together, alternating
 * panel by panel.
 */
static int parts_init(struct matrix *matrix)
{
        const struct matrix_shape *shape = &matrix->shape;
        size_t bytes = 0, at = 0;
        bool are_side_by_side;

        for (uint32_t p = 0; p < shape->parts; p++) {
                struct part *part = &matrix->parts[p];

                part->panel_count = round_up(shape->rows[p], PANEL) / PANEL;
                part->stride = panel_bytes(shape->type[p], shape->columns);
                bytes += part->panel_count * part->stride;
        }
        matrix->memory = memory_new(1, bytes);
        if (!matrix->memory)
                return -ENOMEM;
        are_side_by_side =
                shape->parts == 2 && matrix->parts[0].panel_count == matrix->parts[1].panel_count;
        for (uint32_t p = 0; p < shape->parts; p++) {
                struct part *part = &matrix->parts[p];

                part->panels = matrix->memory + at;
                at += are_side_by_side ? part->stride : part->panel_count * part->stride;
                if (are_side_by_side)
                        part->stride = bytes / part->panel_count;
        }
        return 0;
}

static int shape_check(const struct matrix_shape *shape)
{
        uint64_t rows = 0;

        if (!shape->columns || !shape->parts || shape->parts > MATRIX_PARTS_MAX)
                return -EINVAL;
        for (uint32_t p = 0; p < shape->parts; p++) {
                if (!shape->rows[p] || !row_bytes(shape->type[p], shape->columns))
                        return -EINVAL;
                rows += shape->rows[p];
        }
        return rows > INT32_MAX ? -EINVAL : 0;
}

/* Scratch memory for the rows of x, in every form that a product with this matrix needs. */
static int act_scratch_grow(struct cpu *cpu, const struct matrix *matrix)
{
        uint32_t columns = matrix->shape.columns, rows_max = cpu->steps.rows_max;
        size_t normed = (size_t)thread_pool_threads(cpu->thread_pool) * round_up(columns, 16);
        int r = cpu_scratch_grow(&cpu->normed, &cpu->normed_max, normed, sizeof(float));

        for (uint32_t kind = 0; kind < ACT_KINDS && !r; kind++)
                if (matrix->kinds >> kind & 1)
                        r = cpu_scratch_grow(&cpu->acts[kind], &cpu->acts_max[kind],
                                             rows_max * act_stride(kind, columns), 1);
        return r;
}

/*
 * Scratch memory for results of whole rows. Only q, k and v surely need it. A projection may; its
 * results are as many as the columns of q, k and v. Another matrix might be a head, which is tall,
 * or gate and up, so it gets room for one row, or for one of q, k and the v that is k.
 */
static int outs_grow(struct cpu *cpu, const struct matrix *matrix)
{
        const struct matrix_shape *shape = &matrix->shape;
        size_t count = shape->parts == 2 ? matrix->rows + shape->rows[1] : matrix->rows;

        if (shape->parts == 3) {
                count = matrix->rows > shape->columns ? matrix->rows : shape->columns;
                count *= cpu->steps.rows_max;
        }
        return cpu_scratch_grow(&cpu->outs, &cpu->outs_max, count, sizeof(float));
}

int cpu_matrix_new(struct kernels *k, const struct matrix_shape *shape, struct matrix **ret_matrix)
{
        struct cpu *cpu = cpu_of(k);
        struct matrix *matrix;
        int r;

        r = shape_check(shape);
        if (r < 0)
                return r;
        matrix = memory_new(1, sizeof(*matrix));
        if (!matrix)
                return -ENOMEM;
        matrix->shape = *shape;
        r = parts_init(matrix);
        for (uint32_t p = 0; p < shape->parts && !r; p++) {
                matrix->rows += shape->rows[p];
                matrix->panels += matrix->parts[p].panel_count;
                matrix->kinds |= 1u << act_kind_of(shape->type[p]);
        }
        if (!r)
                r = act_scratch_grow(cpu, matrix);
        if (!r)
                r = outs_grow(cpu, matrix);
        if (r < 0) {
                cpu_matrix_free(k, matrix);
                return r;
        }

        *ret_matrix = matrix;
        return 0;
}

int cpu_weights_put(struct kernels *k, struct matrix *matrix, uint32_t part, uint32_t row,
                    uint32_t rows, const void *file_rows)
{
        const struct part *p = &matrix->parts[part];
        enum row_type type = matrix->shape.type[part];
        uint32_t columns = matrix->shape.columns;
        const uint8_t *from = file_rows;

        (void)k;
        assert(part < matrix->shape.parts && row <= matrix->shape.rows[part] &&
               rows <= matrix->shape.rows[part] - row);
        while (rows > 0) {
                uint32_t count = PANEL - row % PANEL < rows ? PANEL - row % PANEL : rows;

                panel_put(type, p->panels + row / PANEL * p->stride, row % PANEL, count, columns,
                          from);
                from += count * row_bytes(type, columns);
                row += count;
                rows -= count;
        }
        return 0;
}

void cpu_matrix_row(const struct matrix *matrix, uint32_t part, uint32_t row, float *ret_floats)
{
        const struct part *p = &matrix->parts[part];

        assert(part < matrix->shape.parts && row < matrix->shape.rows[part]);
        panel_get(matrix->shape.type[part], p->panels + row / PANEL * p->stride, row % PANEL,
                  matrix->shape.columns, ret_floats);
}
