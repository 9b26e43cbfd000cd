/* Matrices: parts of panels (panel.h). */
#include "kernels/cpu/cpu.h"

#include <errno.h>

#include "kernels/memory.h"

void cpu_mat_free(struct kernels *k, struct mat *mat)
{
        (void)k;
        if (!mat)
                return;
        memory_free(mat->memory);
        memory_free(mat);
}

/*
 * Parts lie in the order in which products read them, so that memory sees one stream: one part
 * after the other, or, for two parts of equal height that are multiplied together, alternating
 * panel by panel.
 */
static int parts_init(struct mat *mat)
{
        const struct mat_shape *shape = &mat->shape;
        size_t bytes = 0, at = 0;
        bool are_side_by_side;

        for (uint32_t p = 0; p < shape->parts; p++) {
                struct part *part = &mat->parts[p];

                part->panel_count = round_up(shape->rows[p], PANEL) / PANEL;
                part->stride = panel_bytes(shape->type[p], shape->columns);
                bytes += part->panel_count * part->stride;
        }
        mat->memory = memory_new(1, bytes);
        if (!mat->memory)
                return -ENOMEM;
        are_side_by_side =
                shape->parts == 2 && mat->parts[0].panel_count == mat->parts[1].panel_count;
        for (uint32_t p = 0; p < shape->parts; p++) {
                struct part *part = &mat->parts[p];

                part->panels = mat->memory + at;
                at += are_side_by_side ? part->stride : part->panel_count * part->stride;
                if (are_side_by_side)
                        part->stride = bytes / part->panel_count;
        }
        return 0;
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

/* Scratch memory for the rows of x, in every form that a product with this matrix needs. */
static int acts_grow(struct cpu *cpu, const struct mat *mat)
{
        uint32_t columns = mat->shape.columns, rows_max = cpu->steps.rows_max;
        size_t normed = (size_t)crew_threads(cpu->crew) * round_up(columns, 16);
        int r = cpu_scratch_grow(&cpu->normed, &cpu->normed_max, normed, sizeof(float));

        for (uint32_t kind = 0; kind < ACT_KINDS && !r; kind++)
                if (mat->kinds >> kind & 1)
                        r = cpu_scratch_grow(&cpu->acts[kind], &cpu->acts_max[kind],
                                             rows_max * act_stride(kind, columns), 1);
        return r;
}

int cpu_mat_new(struct kernels *k, const struct mat_shape *shape, struct mat **ret_mat)
{
        struct cpu *cpu = cpu_of(k);
        struct mat *mat;
        int r;

        r = shape_check(shape);
        if (r < 0)
                return r;
        mat = memory_new(1, sizeof(*mat));
        if (!mat)
                return -ENOMEM;
        mat->shape = *shape;
        r = parts_init(mat);
        for (uint32_t p = 0; p < shape->parts && !r; p++) {
                mat->rows += shape->rows[p];
                mat->panels += mat->parts[p].panel_count;
                mat->kinds |= 1u << act_kind_of(shape->type[p]);
        }
        if (!r)
                r = acts_grow(cpu, mat);
        if (!r && shape->parts == 3)
                r = cpu_scratch_grow(&cpu->outs, &cpu->outs_max,
                                     (size_t)cpu->steps.rows_max * mat->rows, sizeof(float));
        if (r < 0) {
                cpu_mat_free(k, mat);
                return r;
        }

        *ret_mat = mat;
        return 0;
}

int cpu_weights_put(struct kernels *k, struct mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                    const void *file_rows)
{
        const struct part *p = &mat->parts[part];
        enum row_type type = mat->shape.type[part];
        uint32_t columns = mat->shape.columns;
        const uint8_t *from = file_rows;

        (void)k;
        assert(part < mat->shape.parts && row <= mat->shape.rows[part] &&
               rows <= mat->shape.rows[part] - row);
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

void cpu_mat_row(const struct mat *mat, uint32_t part, uint32_t row, float *ret_floats)
{
        const struct part *p = &mat->parts[part];

        assert(part < mat->shape.parts && row < mat->shape.rows[part]);
        panel_get(mat->shape.type[part], p->panels + row / PANEL * p->stride, row % PANEL,
                  mat->shape.columns, ret_floats);
}
