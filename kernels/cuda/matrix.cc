#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static int shape_check(const matrix_shape *shape, uint64_t *ret_rows)
{
        *ret_rows = 0;
        if (!shape->columns || !shape->parts || shape->parts > MATRIX_PARTS_MAX)
                return -EINVAL;
        for (uint32_t p = 0; p < shape->parts; p++) {
                if (!shape->rows[p] || !row_bytes(shape->type[p], shape->columns))
                        return -EINVAL;
                *ret_rows += shape->rows[p];
        }
        return *ret_rows > UINT32_MAX - 16 ? -EINVAL : 0;
}

/* Gate and up; or q and k, if there are as many KV heads as heads. */
static bool is_paired(const matrix_shape *shape)
{
        return shape->parts == 2 && shape->rows[0] == shape->rows[1];
}

/*
 * The format of a part is that of its type.  But parts that alternate must have one format; if
 * theirs differ, both become bfloats, which every type can become.
 */
static linear_format format_of(const matrix_shape *shape, uint32_t part)
{
        linear_format format = linear_format_of(shape->type[part]);

        if (is_paired(shape) && linear_format_of(shape->type[!part]) != format)
                return LINEAR_BFLOAT;
        return format;
}

/*
 * A run is a group of parts that one product multiplies: both parts if they alternate, otherwise
 * neighbours of one format.
 */
static void find_runs(matrix *matrix)
{
        const matrix_shape *shape = &matrix->shape;

        for (uint32_t p = 0, first = 0; p < shape->parts; first += shape->rows[p], p++) {
                linear_format format = format_of(shape, p);
                matrix_run *run = &matrix->runs[matrix->run_count];

                if (!matrix->run_count || run[-1].w.format != format) {
                        run->w.format = format;
                        run->w.columns = linear_columns(format, shape->columns);
                        run->row_bytes = linear_row_bytes(format, shape->columns);
                        run->scale_bytes =
                                linear_row_scales(format, shape->columns) * sizeof(uint16_t);
                        run->first = first;
                        matrix->run_count++;
                }
                matrix->run_of[p] = matrix->run_count - 1;
                matrix->runs[matrix->run_count - 1].n += shape->rows[p];
        }
}

static uint32_t whole_tiles(uint64_t rows)
{
        return (uint32_t)((rows + 15) / 16 * 16);
}

/* Computes everything about the matrix that is known before it has memory. */
static int lay_out(const matrix_shape *shape, matrix *ret_matrix)
{
        uint64_t rows;
        int r = shape_check(shape, &rows);

        if (r)
                return r;
        *ret_matrix = {};
        ret_matrix->shape = *shape;
        ret_matrix->paired = is_paired(shape);
        find_runs(ret_matrix);
        for (uint32_t i = 0; i < ret_matrix->run_count; i++) {
                matrix_run *run = &ret_matrix->runs[i];

                rows = ret_matrix->paired ? 2 * (((uint64_t)shape->rows[0] + 7) / 8 * 8) : run->n;
                run->w.rows = whole_tiles(rows);
        }
        return 0;
}

static size_t whole_chunks(uint32_t rows)
{
        return ((size_t)rows + 63) / 64 * 64;
}

static void add_blas_scratch_of(const struct cuda *cuda, const linear_matrix *w,
                                linear_epilogue epilogue, matrix_memory *memory_needed)
{
        const linear_blas_scratch *linear_blas = &cuda->linear_blas;
        size_t weights, sums;

        linear_blas_scratch_size(w, epilogue, cuda->conf.rows_max, linear_blas->bytes, &weights,
                                 &sums);
        memory_needed->blas_weights =
                larger(memory_needed->blas_weights, weights * sizeof(*linear_blas->weights));
        memory_needed->blas_sums =
                larger(memory_needed->blas_sums, sums * sizeof(*linear_blas->sums));
}

/* Adds the scratch for products of many rows with this matrix. */
static void add_blas_scratch(const struct cuda *cuda, const matrix *matrix,
                             matrix_memory *memory_needed)
{
        const matrix_shape *shape = &matrix->shape;
        linear_matrix before = {}; /* a gate whose results have this matrix's columns */

        for (uint32_t i = 0; i < matrix->run_count; i++)
                add_blas_scratch_of(cuda, &matrix->runs[i].w,
                                    matrix->paired ? LINEAR_GATE : LINEAR_STORE, memory_needed);
        if (shape->parts > 1)
                return;
        before.rows = whole_tiles(shape->columns);
        /* Its columns only tell whether it is large. */
        before.columns = (uint32_t)smaller(shape->rows[0], LINEAR_LARGE);
        add_blas_scratch_of(cuda, &before, LINEAR_ACT, memory_needed);
}

/*
 * Numbers of a row in `stacked`, for what surely is q, k and v, or q and k and space for v.  The
 * projection behind them may need it for its results.
 */
static size_t stacked_columns(const matrix *matrix)
{
        const matrix_shape *shape = &matrix->shape;
        size_t columns = 0;

        if (shape->parts == 1 || matrix->paired)
                return 0;
        for (uint32_t p = 0; p < shape->parts; p++)
                columns += shape->rows[p];
        if (shape->parts == 2)
                columns += shape->rows[1];
        return larger(columns, shape->columns);
}

static void matrix_memory_of(const struct cuda *cuda, const matrix *matrix,
                             matrix_memory *ret_memory_needed)
{
        size_t rows = whole_chunks(cuda->conf.rows_max);

        *ret_memory_needed = {};
        ret_memory_needed->bfloat_rows =
                rows * padded(matrix->shape.columns) * sizeof(*cuda->bfloat_rows);
        for (uint32_t i = 0; i < matrix->run_count; i++) {
                const matrix_run *run = &matrix->runs[i];
                size_t sums, arrived;

                ret_memory_needed->weights += device_memory_of(run->w.rows * run->row_bytes);
                if (run->scale_bytes)
                        ret_memory_needed->scales +=
                                device_memory_of(run->w.rows * run->scale_bytes);
                linear_scratch_size(cuda->device, &run->w, cuda->conf.rows_max, &sums, &arrived);
                ret_memory_needed->sums =
                        larger(ret_memory_needed->sums, sums * sizeof(*cuda->sums));
                ret_memory_needed->arrived =
                        larger(ret_memory_needed->arrived, arrived * sizeof(*cuda->arrived));
        }
        ret_memory_needed->stacked = rows * stacked_columns(matrix) * sizeof(*cuda->stacked);
        if (cuda->library)
                add_blas_scratch(cuda, matrix, ret_memory_needed);
}

int cuda_matrix_memory(const struct cuda *cuda, const matrix_shape *shape,
                       matrix_memory *ret_memory_needed)
{
        matrix matrix;
        int r = lay_out(shape, &matrix);

        if (!r)
                matrix_memory_of(cuda, &matrix, ret_memory_needed);
        return r;
}

/* Grows the scratch that operators need for its rows. */
static int grow_scratch(struct cuda *cuda, const matrix_memory *memory_needed)
{
        linear_blas_scratch *linear_blas = &cuda->linear_blas;
        int r;

        if ((r = cuda_grow(cuda, (void **)&cuda->bfloat_rows, &cuda->bfloat_rows_size,
                           memory_needed->bfloat_rows, 1)) ||
            (r = cuda_grow(cuda, (void **)&cuda->stacked, &cuda->stacked_size,
                           memory_needed->stacked, 1)) ||
            (r = cuda_grow(cuda, (void **)&cuda->sums, &cuda->sums_size, memory_needed->sums, 1)) ||
            (r = cuda_grow(cuda, (void **)&linear_blas->weights, &cuda->blas_weights_size,
                           memory_needed->blas_weights, 1)) ||
            (r = cuda_grow(cuda, (void **)&linear_blas->sums, &cuda->blas_sums_size,
                           memory_needed->blas_sums, 1)) ||
            memory_needed->arrived <= cuda->arrived_size)
                return r;
        r = cuda_grow(cuda, (void **)&cuda->arrived, &cuda->arrived_size, memory_needed->arrived,
                      1);
        return r ? r : cuda_clear(cuda, cuda->arrived, memory_needed->arrived);
}

int cuda_stacked_grow(struct cuda *cuda, uint32_t columns)
{
        return cuda_grow(cuda, (void **)&cuda->stacked, &cuda->stacked_size,
                         whole_chunks(cuda->conf.rows_max) * columns * sizeof(*cuda->stacked), 1);
}

int cuda_gate_grow(struct cuda *cuda, const matrix *w)
{
        matrix_memory memory_needed = {};

        if (!cuda->library || w->paired)
                return 0;
        add_blas_scratch_of(cuda, &w->runs[0].w, LINEAR_ACT, &memory_needed);
        return cuda_grow(cuda, (void **)&cuda->linear_blas.sums, &cuda->blas_sums_size,
                         memory_needed.blas_sums, 1);
}

/* Allocates zeros, aligned to 256 bytes. */
static int make_zeros(struct cuda *cuda, size_t bytes, void **ret_memory)
{
        int r = device_new(cuda->device, bytes, ret_memory);

        return r ? r : cuda_clear(cuda, *ret_memory, bytes);
}

static int run_new(struct cuda *cuda, matrix_run *run)
{
        int r = make_zeros(cuda, run->w.rows * run->row_bytes, (void **)&run->w.weights);

        if (r || !run->scale_bytes)
                return r;
        return make_zeros(cuda, run->w.rows * run->scale_bytes, (void **)&run->w.scales);
}

/* A row and its scales must fit in a piece, so a row of millions of columns is refused. */
static bool fits(const struct cuda *cuda, const matrix *matrix)
{
        for (uint32_t i = 0; i < matrix->run_count; i++)
                if (matrix->runs[i].row_bytes + matrix->runs[i].scale_bytes >
                    staging_bytes(cuda->staging))
                        return false;
        return true;
}

int cuda_matrix_new(struct kernels *k, const matrix_shape *shape, matrix **ret_matrix)
{
        struct cuda *cuda = cuda_of(k);
        matrix_memory memory_needed;
        matrix *matrix;
        int r;

        matrix = (struct matrix *)malloc(sizeof(*matrix));
        if (!matrix)
                return -ENOMEM;
        r = lay_out(shape, matrix);
        if (!r && !fits(cuda, matrix))
                r = -EINVAL;
        if (r) {
                free(matrix);
                return r;
        }
        matrix_memory_of(cuda, matrix, &memory_needed);
        for (uint32_t i = 0; i < matrix->run_count && !r; i++)
                r = run_new(cuda, &matrix->runs[i]);
        if (!r)
                r = grow_scratch(cuda, &memory_needed);
        if (r) {
                cuda_matrix_free(k, matrix);
                return cuda_check_object(cuda, r);
        }
        *ret_matrix = matrix;
        return 0;
}

void cuda_matrix_free(struct kernels *k, matrix *matrix)
{
        struct cuda *cuda = cuda_of(k);

        if (!matrix)
                return;
        for (uint32_t i = 0; i < matrix->run_count; i++) {
                device_delete(cuda->device, (void *)matrix->runs[i].w.weights);
                device_delete(cuda->device, (void *)matrix->runs[i].w.scales);
        }
        free(matrix);
}

/* The index of a part's row among the rows of its run. */
static uint32_t row_at(const matrix *matrix, uint32_t part, uint32_t row)
{
        if (matrix->paired)
                return linear_gate_row(part, row);
        for (uint32_t p = 0; p < part; p++)
                row += matrix->shape.rows[p];
        return row - matrix->runs[matrix->run_of[part]].first;
}

/*
 * Uploads the packed rows of a piece, which has first their weights, then their scales.
 * Contiguous rows go together: all rows, or up to eight where parts alternate.  All whole groups
 * of eight go in one upload.
 */
static int send_rows(struct cuda *cuda, const matrix *matrix, uint32_t part, uint32_t row,
                     uint32_t rows, piece *piece)
{
        const matrix_run *run = &matrix->runs[matrix->run_of[part]];
        size_t bytes = run->row_bytes, scales = run->scale_bytes;
        int r = 0;

        for (uint32_t i = 0, count, times; i < rows && !r; i += count * times) {
                size_t at = row_at(matrix, part, row + i);

                count = matrix->paired ? 8 - (row + i) % 8 : rows;
                count = count < rows - i ? count : rows - i;
                times = count == 8 && matrix->paired ? (rows - i) / 8 : 1;
                r = staging_upload(cuda->staging, STREAM_LOADS, piece,
                                   (uint8_t *)run->w.weights + at * bytes, 16 * bytes, i * bytes,
                                   count * bytes, times);
                if (!r && scales)
                        r = staging_upload(cuda->staging, STREAM_LOADS, piece,
                                           (uint8_t *)run->w.scales + at * scales, 16 * scales,
                                           rows * bytes + i * scales, count * scales, times);
        }
        return r;
}

static void pack_rows(const matrix *matrix, uint32_t part, uint32_t rows, const uint8_t *file_rows,
                      uint8_t *to)
{
        const matrix_run *run = &matrix->runs[matrix->run_of[part]];
        row_type type = matrix->shape.type[part];
        size_t bytes = row_bytes(type, matrix->shape.columns);
        uint8_t *scales = to + rows * run->row_bytes;

        for (uint32_t i = 0; i < rows; i++)
                linear_pack_row(run->w.format, type, file_rows + i * bytes, matrix->shape.columns,
                                to + i * run->row_bytes,
                                (uint16_t *)(scales + i * run->scale_bytes));
}

/*
 * Sends one piece after the other.  Only the last one is waited for, and with it all the others.
 */
int cuda_weights_put(struct kernels *k, matrix *matrix, uint32_t part, uint32_t row, uint32_t rows,
                     const void *file_rows)
{
        struct cuda *cuda = cuda_of(k);
        size_t file_bytes = row_bytes(matrix->shape.type[part], matrix->shape.columns);
        const matrix_run *run = &matrix->runs[matrix->run_of[part]];
        size_t fit = staging_bytes(cuda->staging) / (run->row_bytes + run->scale_bytes);
        int r = 0;

        assert(part < matrix->shape.parts && row <= matrix->shape.rows[part] &&
               rows <= matrix->shape.rows[part] - row);
        for (uint32_t i = 0, count; i < rows && !r; i += count) {
                piece *piece;

                count = rows - i < fit ? rows - i : (uint32_t)fit;
                r = staging_take(cuda->staging, &piece);
                if (r)
                        break;
                pack_rows(matrix, part, count, (const uint8_t *)file_rows + i * file_bytes,
                          piece->at);
                r = send_rows(cuda, matrix, part, row + i, count, piece);
                if (!r && i + count == rows)
                        r = staging_wait(cuda->staging, piece);
                staging_give(cuda->staging, piece);
        }
        return cuda_check_object(cuda, r);
}
