#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCALES_ALIGN 256u

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

/* What all parts can be kept as. */
static linear_format format_of(const mat_shape *shape)
{
        linear_format format = linear_format_of(shape->type[0]);

        for (uint32_t p = 1; p < shape->parts; p++)
                if (linear_format_of(shape->type[p]) != format)
                        return LINEAR_BFLOAT;
        return format;
}

/* Room for what operators make of its rows. */
static int make_room(struct cuda *cuda, const mat *mat)
{
        size_t rows = (cuda->conf.rows_max + 63) / 64 * 64, sums, arrived;
        int r;

        r = cuda_grow(cuda, (void **)&cuda->narrow, &cuda->narrow_room, rows * mat->columns,
                      sizeof(*cuda->narrow));
        if (!r && mat->shape.parts == 3)
                r = cuda_grow(cuda, (void **)&cuda->stacked, &cuda->stacked_room,
                              rows * mat->w.rows, sizeof(*cuda->stacked));
        if (r)
                return r;
        linear_room(cuda->device, &mat->w, cuda->conf.rows_max, &sums, &arrived);
        r = cuda_grow(cuda, (void **)&cuda->sums, &cuda->sums_room, sums, sizeof(*cuda->sums));
        if (!r && arrived > cuda->arrived_room) {
                r = cuda_grow(cuda, (void **)&cuda->arrived, &cuda->arrived_room, arrived,
                              sizeof(*cuda->arrived));
                if (!r)
                        r = cuda_clear(cuda, cuda->arrived, arrived * sizeof(*cuda->arrived));
        }
        return r;
}

int cuda_mat_new(struct kernels *k, const mat_shape *shape, mat **ret_mat)
{
        struct cuda *cuda = cuda_of(k);
        linear_format format;
        void *weights = nullptr, *scales = nullptr;
        uint64_t rows;
        mat *mat;
        int r;

        r = shape_check(shape, &rows);
        if (r)
                return r;
        mat = (struct mat *)calloc(1, sizeof(*mat));
        if (!mat)
                return -ENOMEM;
        format = format_of(shape);
        mat->shape = *shape;
        mat->paired = shape->parts == 2;
        mat->columns = linear_columns(format, shape->columns);
        mat->row_bytes = linear_row_bytes(format, mat->columns);
        mat->row_scales = linear_row_scales(format, mat->columns) * sizeof(uint16_t);
        if (mat->paired)
                rows = 2 * (((uint64_t)shape->rows[0] + 7) / 8 * 8);
        rows = (rows + 15) / 16 * 16;
        r = device_new(cuda->device, rows * mat->row_bytes, &weights);
        if (!r)
                r = cuda_clear(cuda, weights, rows * mat->row_bytes);
        if (!r && mat->row_scales)
                r = device_new(cuda->device, rows * mat->row_scales, &scales);
        if (!r && mat->row_scales)
                r = cuda_clear(cuda, scales, rows * mat->row_scales);
        mat->w = { format, (uint32_t)rows, mat->columns, weights, (const uint16_t *)scales };
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
        device_delete(cuda->device, (void *)mat->w.weights);
        device_delete(cuda->device, (void *)mat->w.scales);
        free(mat);
}

/* Where a row of a part lies among all. */
static uint32_t row_at(const mat *mat, uint32_t part, uint32_t row)
{
        if (mat->paired)
                return linear_gate_row(part, row);
        for (uint32_t p = 0; p < part; p++)
                row += mat->shape.rows[p];
        return row;
}

/* Rows that lie one after the other are sent together: all, or eight where parts alternate. */
static int send_rows(struct cuda *cuda, const mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                     const uint8_t *packed)
{
        const uint8_t *scales = packed + mat->row_bytes * rows;
        int r = 0;

        for (uint32_t i = 0, count; i < rows && !r; i += count) {
                size_t at = row_at(mat, part, row + i);

                count = mat->paired ? 8 - (row + i) % 8 : rows;
                count = count < rows - i ? count : rows - i;
                r = cuda_send(cuda, STREAM_LOADS, (uint8_t *)mat->w.weights + at * mat->row_bytes,
                              packed + i * mat->row_bytes, count * mat->row_bytes);
                if (!r && mat->row_scales)
                        r = cuda_send(cuda, STREAM_LOADS,
                                      (uint8_t *)mat->w.scales + at * mat->row_scales,
                                      scales + i * mat->row_scales, count * mat->row_scales);
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
        row_type type = mat->shape.type[part];
        size_t bytes = row_bytes(type, mat->shape.columns);
        uint8_t *packed, *scales;
        int r;

        assert(part < mat->shape.parts && row <= mat->shape.rows[part] &&
               rows <= mat->shape.rows[part] - row);
        if (!rows)
                return 0;
        packed = (uint8_t *)malloc((mat->row_bytes + mat->row_scales) * rows);
        if (!packed)
                return no_memory(cuda);
        scales = packed + mat->row_bytes * rows;
        for (uint32_t i = 0; i < rows; i++)
                linear_pack_row(mat->w.format, type, (const uint8_t *)file_rows + i * bytes,
                                mat->shape.columns, packed + i * mat->row_bytes,
                                (uint16_t *)(scales + i * mat->row_scales));
        r = send_rows(cuda, mat, part, row, rows, packed);
        free(packed);
        return r;
}
