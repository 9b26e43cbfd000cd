#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int shape_check(const mat_shape *shape, uint64_t *ret_rows)
{
        *ret_rows = 0;
        if (!shape->columns || !shape->parts || shape->parts > MAT_PARTS_MAX)
                return -EINVAL;
        for (uint32_t p = 0; p < shape->parts; p++) {
                if (!shape->rows[p] || !row_bytes(shape->type[p], shape->columns))
                        return -EINVAL;
                *ret_rows += shape->rows[p];
        }
        if (shape->parts == 2 && shape->rows[0] != shape->rows[1])
                return -EINVAL;
        return *ret_rows > UINT32_MAX - 16 ? -EINVAL : 0;
}

/* As they are; but parts that alternate are of one format, and what all can become is bfloats. */
static linear_format format_of(const mat_shape *shape, uint32_t part)
{
        linear_format format = linear_format_of(shape->type[part]);

        if (shape->parts == 2 && linear_format_of(shape->type[!part]) != format)
                return LINEAR_BFLOAT;
        return format;
}

/* Parts that are multiplied in one go: all that alternate, or neighbours of one format. */
static void find_runs(mat *mat)
{
        const mat_shape *shape = &mat->shape;

        for (uint32_t p = 0, first = 0; p < shape->parts; first += shape->rows[p], p++) {
                linear_format format = format_of(shape, p);
                mat_run *run = &mat->runs[mat->run_count];

                if (!mat->run_count || run[-1].w.format != format) {
                        run->w.format = format;
                        run->w.columns = linear_columns(format, shape->columns);
                        run->row_bytes = linear_row_bytes(format, shape->columns);
                        run->scale_bytes =
                                linear_row_scales(format, shape->columns) * sizeof(uint16_t);
                        run->first = first;
                        mat->run_count++;
                }
                mat->run_of[p] = mat->run_count - 1;
                mat->runs[mat->run_count - 1].n += shape->rows[p];
        }
}

static int run_new(struct cuda *cuda, mat_run *run, uint64_t rows)
{
        void *weights = nullptr, *scales = nullptr;
        int r;

        r = device_new(cuda->device, rows * run->row_bytes, &weights);
        if (!r)
                r = cuda_clear(cuda, weights, rows * run->row_bytes);
        if (!r && run->scale_bytes)
                r = device_new(cuda->device, rows * run->scale_bytes, &scales);
        if (!r && run->scale_bytes)
                r = cuda_clear(cuda, scales, rows * run->scale_bytes);
        run->w.rows = (uint32_t)rows;
        run->w.weights = weights;
        run->w.scales = (const uint16_t *)scales;
        return r;
}

static int make_sums(struct cuda *cuda, const linear_matrix *w)
{
        size_t sums, arrived;
        int r;

        linear_room(cuda->device, w, cuda->conf.rows_max, &sums, &arrived);
        r = cuda_grow(cuda, (void **)&cuda->sums, &cuda->sums_room, sums, sizeof(*cuda->sums));
        if (!r && arrived > cuda->arrived_room) {
                r = cuda_grow(cuda, (void **)&cuda->arrived, &cuda->arrived_room, arrived,
                              sizeof(*cuda->arrived));
                if (!r)
                        r = cuda_clear(cuda, cuda->arrived, arrived * sizeof(*cuda->arrived));
        }
        return r;
}

/* Room for what operators make of its rows. */
static int make_room(struct cuda *cuda, const mat *mat)
{
        size_t rows = (cuda->conf.rows_max + 63) / 64 * 64;
        uint32_t n = 0;
        int r;

        for (uint32_t i = 0; i < mat->run_count; i++)
                n += mat->runs[i].n;
        r = cuda_grow(cuda, (void **)&cuda->narrow, &cuda->narrow_room,
                      rows * padded(mat->shape.columns), sizeof(*cuda->narrow));
        if (!r && mat->shape.parts == 3)
                r = cuda_grow(cuda, (void **)&cuda->stacked, &cuda->stacked_room, rows * n,
                              sizeof(*cuda->stacked));
        for (uint32_t i = 0; i < mat->run_count && !r; i++)
                r = make_sums(cuda, &mat->runs[i].w);
        return r;
}
int cuda_mat_new(struct kernels *k, const mat_shape *shape, mat **ret_mat)
{
        struct cuda *cuda = cuda_of(k);
        uint64_t rows;
        mat *mat;
        int r;

        r = shape_check(shape, &rows);
        if (r)
                return r;
        mat = (struct mat *)calloc(1, sizeof(*mat));
        if (!mat)
                return -ENOMEM;
        mat->shape = *shape;
        mat->paired = shape->parts == 2;
        find_runs(mat);
        for (uint32_t i = 0; i < mat->run_count && !r; i++) {
                rows = mat->paired ? 2 * (((uint64_t)shape->rows[0] + 7) / 8 * 8) : mat->runs[i].n;
                r = run_new(cuda, &mat->runs[i], (rows + 15) / 16 * 16);
        }
        if (!r)
                r = make_room(cuda, mat);
        if (r) {
                cuda_mat_free(k, mat);
                return cuda_made(cuda, r);
        }
        *ret_mat = mat;
        return 0;
}

void cuda_mat_free(struct kernels *k, mat *mat)
{
        struct cuda *cuda = cuda_of(k);

        if (!mat)
                return;
        for (uint32_t i = 0; i < mat->run_count; i++) {
                device_delete(cuda->device, (void *)mat->runs[i].w.weights);
                device_delete(cuda->device, (void *)mat->runs[i].w.scales);
        }
        free(mat);
}

/* Where a row of a part lies among those of its run. */
static uint32_t row_at(const mat *mat, uint32_t part, uint32_t row)
{
        if (mat->paired)
                return linear_gate_row(part, row);
        for (uint32_t p = 0; p < part; p++)
                row += mat->shape.rows[p];
        return row - mat->runs[mat->run_of[part]].first;
}

/* Rows that lie one after the other are sent together: all, or eight where parts alternate. */
static int send_rows(struct cuda *cuda, const mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                     const uint8_t *packed)
{
        const mat_run *run = &mat->runs[mat->run_of[part]];
        const uint8_t *scales = packed + run->row_bytes * rows;
        int r = 0;

        for (uint32_t i = 0, count; i < rows && !r; i += count) {
                size_t at = row_at(mat, part, row + i);

                count = mat->paired ? 8 - (row + i) % 8 : rows;
                count = count < rows - i ? count : rows - i;
                r = cuda_send(cuda, STREAM_LOADS, (uint8_t *)run->w.weights + at * run->row_bytes,
                              packed + i * run->row_bytes, count * run->row_bytes);
                if (!r && run->scale_bytes)
                        r = cuda_send(cuda, STREAM_LOADS,
                                      (uint8_t *)run->w.scales + at * run->scale_bytes,
                                      scales + i * run->scale_bytes, count * run->scale_bytes);
        }
        return r;
}

static int no_memory(struct cuda *cuda)
{
        pthread_mutex_lock(&cuda->staging_lock);
        cuda_outcome(cuda, -ENOMEM);
        pthread_mutex_unlock(&cuda->staging_lock);
        return -ENOMEM;
}

int cuda_weights_put(struct kernels *k, mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                     const void *file_rows)
{
        struct cuda *cuda = cuda_of(k);
        const mat_run *run = &mat->runs[mat->run_of[part]];
        row_type type = mat->shape.type[part];
        size_t bytes = row_bytes(type, mat->shape.columns);
        uint8_t *packed;
        int r;

        assert(part < mat->shape.parts && row <= mat->shape.rows[part] &&
               rows <= mat->shape.rows[part] - row);
        if (!rows)
                return 0;
        packed = (uint8_t *)malloc((run->row_bytes + run->scale_bytes) * rows);
        if (!packed)
                return no_memory(cuda);
        for (uint32_t i = 0; i < rows; i++)
                linear_pack_row(run->w.format, type, (const uint8_t *)file_rows + i * bytes,
                                mat->shape.columns, packed + i * run->row_bytes,
                                (uint16_t *)(packed + rows * run->row_bytes +
                                             i * run->scale_bytes));
        r = send_rows(cuda, mat, part, row, rows, packed);
        free(packed);
        return r;
}
