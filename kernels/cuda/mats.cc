#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

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

/*
 * The format of a part is that of its type.  But parts that alternate must have one format; if
 * theirs differ, both become bfloats, which every type can become.
 */
static linear_format format_of(const mat_shape *shape, uint32_t part)
{
        linear_format format = linear_format_of(shape->type[part]);

        if (shape->parts == 2 && linear_format_of(shape->type[!part]) != format)
                return LINEAR_BFLOAT;
        return format;
}

/*
 * A run is a group of parts that one product multiplies: both parts if they alternate, otherwise
 * neighbours of one format.
 */
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

/* Computes everything about the matrix that is known before it has memory. */
static int lay_out(const mat_shape *shape, mat *ret_mat)
{
        uint64_t rows;
        int r = shape_check(shape, &rows);

        if (r)
                return r;
        *ret_mat = {};
        ret_mat->shape = *shape;
        ret_mat->paired = shape->parts == 2;
        find_runs(ret_mat);
        for (uint32_t i = 0; i < ret_mat->run_count; i++) {
                mat_run *run = &ret_mat->runs[i];

                rows = ret_mat->paired ? 2 * (((uint64_t)shape->rows[0] + 7) / 8 * 8) : run->n;
                run->w.rows = (uint32_t)((rows + 15) / 16 * 16);
        }
        return 0;
}

/* Adds the scratch for products of many rows with this matrix. */
static void add_wide_room(const struct cuda *cuda, const mat *mat, const mat_run *run,
                          mat_room *room)
{
        const wide_scratch *wide = &cuda->wide;
        size_t weights, sums;

        wide_room(&run->w, mat->paired ? LINEAR_GATE : LINEAR_STORE, cuda->conf.rows_max,
                  wide->bytes, &weights, &sums);
        room->wide_weights = larger(room->wide_weights, weights * sizeof(*wide->weights));
        room->wide_sums = larger(room->wide_sums, sums * sizeof(*wide->sums));
}

static void room_of(const struct cuda *cuda, const mat *mat, mat_room *ret_room)
{
        size_t rows = (cuda->conf.rows_max + 63) / 64 * 64;

        *ret_room = {};
        ret_room->narrow = rows * padded(mat->shape.columns) * sizeof(*cuda->narrow);
        for (uint32_t i = 0; i < mat->run_count; i++) {
                const mat_run *run = &mat->runs[i];
                size_t sums, arrived;

                ret_room->weights += device_memory_of(run->w.rows * run->row_bytes);
                if (run->scale_bytes)
                        ret_room->scales += device_memory_of(run->w.rows * run->scale_bytes);
                if (mat->shape.parts == 3)
                        ret_room->stacked += rows * run->n * sizeof(*cuda->stacked);
                linear_room(cuda->device, &run->w, cuda->conf.rows_max, &sums, &arrived);
                ret_room->sums = larger(ret_room->sums, sums * sizeof(*cuda->sums));
                ret_room->arrived = larger(ret_room->arrived, arrived * sizeof(*cuda->arrived));
                if (cuda->library)
                        add_wide_room(cuda, mat, run, ret_room);
        }
}

int cuda_mat_room(const struct cuda *cuda, const mat_shape *shape, mat_room *ret_room)
{
        mat mat;
        int r = lay_out(shape, &mat);

        if (!r)
                room_of(cuda, &mat, ret_room);
        return r;
}

/* Makes room for the scratch that operators need for its rows. */
static int make_room(struct cuda *cuda, const mat_room *room)
{
        wide_scratch *wide = &cuda->wide;
        int r;

        if ((r = cuda_grow(cuda, (void **)&cuda->narrow, &cuda->narrow_room, room->narrow, 1)) ||
            (r = cuda_grow(cuda, (void **)&cuda->stacked, &cuda->stacked_room, room->stacked, 1)) ||
            (r = cuda_grow(cuda, (void **)&cuda->sums, &cuda->sums_room, room->sums, 1)) ||
            (r = cuda_grow(cuda, (void **)&wide->weights, &cuda->wide_weights_room,
                           room->wide_weights, 1)) ||
            (r = cuda_grow(cuda, (void **)&wide->sums, &cuda->wide_sums_room, room->wide_sums,
                           1)) ||
            room->arrived <= cuda->arrived_room)
                return r;
        r = cuda_grow(cuda, (void **)&cuda->arrived, &cuda->arrived_room, room->arrived, 1);
        return r ? r : cuda_clear(cuda, cuda->arrived, room->arrived);
}

/* Allocates zeros, aligned to 256 bytes. */
static int make_zeros(struct cuda *cuda, size_t bytes, void **ret_memory)
{
        int r = device_new(cuda->device, bytes, ret_memory);

        return r ? r : cuda_clear(cuda, *ret_memory, bytes);
}

static int run_new(struct cuda *cuda, mat_run *run)
{
        int r = make_zeros(cuda, run->w.rows * run->row_bytes, (void **)&run->w.weights);

        if (r || !run->scale_bytes)
                return r;
        return make_zeros(cuda, run->w.rows * run->scale_bytes, (void **)&run->w.scales);
}

/* A row and its scales must fit in a piece, so a row of millions of columns is refused. */
static bool fits(const struct cuda *cuda, const mat *mat)
{
        for (uint32_t i = 0; i < mat->run_count; i++)
                if (mat->runs[i].row_bytes + mat->runs[i].scale_bytes >
                    staging_bytes(cuda->staging))
                        return false;
        return true;
}

int cuda_mat_new(struct kernels *k, const mat_shape *shape, mat **ret_mat)
{
        struct cuda *cuda = cuda_of(k);
        mat_room room;
        mat *mat;
        int r;

        mat = (struct mat *)malloc(sizeof(*mat));
        if (!mat)
                return -ENOMEM;
        r = lay_out(shape, mat);
        if (!r && !fits(cuda, mat))
                r = -EINVAL;
        if (r) {
                free(mat);
                return r;
        }
        room_of(cuda, mat, &room);
        for (uint32_t i = 0; i < mat->run_count && !r; i++)
                r = run_new(cuda, &mat->runs[i]);
        if (!r)
                r = make_room(cuda, &room);
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

/* The index of a part's row among the rows of its run. */
static uint32_t row_at(const mat *mat, uint32_t part, uint32_t row)
{
        if (mat->paired)
                return linear_gate_row(part, row);
        for (uint32_t p = 0; p < part; p++)
                row += mat->shape.rows[p];
        return row - mat->runs[mat->run_of[part]].first;
}

/*
 * Uploads the packed rows of a piece, which has first their weights, then their scales.
 * Contiguous rows go together: all rows, or up to eight where parts alternate.  All whole groups
 * of eight go in one upload.
 */
static int send_rows(struct cuda *cuda, const mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                     piece *piece)
{
        const mat_run *run = &mat->runs[mat->run_of[part]];
        size_t bytes = run->row_bytes, scales = run->scale_bytes;
        int r = 0;

        for (uint32_t i = 0, count, times; i < rows && !r; i += count * times) {
                size_t at = row_at(mat, part, row + i);

                count = mat->paired ? 8 - (row + i) % 8 : rows;
                count = count < rows - i ? count : rows - i;
                times = count == 8 && mat->paired ? (rows - i) / 8 : 1;
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

static void pack_rows(const mat *mat, uint32_t part, uint32_t rows, const uint8_t *file_rows,
                      uint8_t *to)
{
        const mat_run *run = &mat->runs[mat->run_of[part]];
        row_type type = mat->shape.type[part];
        size_t bytes = row_bytes(type, mat->shape.columns);
        uint8_t *scales = to + rows * run->row_bytes;

        for (uint32_t i = 0; i < rows; i++)
                linear_pack_row(run->w.format, type, file_rows + i * bytes, mat->shape.columns,
                                to + i * run->row_bytes,
                                (uint16_t *)(scales + i * run->scale_bytes));
}

/*
 * Sends one piece after the other.  Only the last one is waited for, and with it all the others.
 */
int cuda_weights_put(struct kernels *k, mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                     const void *file_rows)
{
        struct cuda *cuda = cuda_of(k);
        size_t file_bytes = row_bytes(mat->shape.type[part], mat->shape.columns);
        const mat_run *run = &mat->runs[mat->run_of[part]];
        size_t fit = staging_bytes(cuda->staging) / (run->row_bytes + run->scale_bytes);
        int r = 0;

        assert(part < mat->shape.parts && row <= mat->shape.rows[part] &&
               rows <= mat->shape.rows[part] - row);
        for (uint32_t i = 0, count; i < rows && !r; i += count) {
                piece *piece;

                count = rows - i < fit ? rows - i : (uint32_t)fit;
                r = staging_take(cuda->staging, &piece);
                if (r)
                        break;
                pack_rows(mat, part, count, (const uint8_t *)file_rows + i * file_bytes, piece->at);
                r = send_rows(cuda, mat, part, row + i, count, piece);
                if (!r && i + count == rows)
                        r = staging_wait(cuda->staging, piece);
                staging_give(cuda->staging, piece);
        }
        return cuda_made(cuda, r);
}
