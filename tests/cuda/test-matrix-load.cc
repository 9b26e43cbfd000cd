/*
 * Loading weights into a matrix.  Several threads put rows in pieces of any size, through a
 * staging buffer so small that it wraps around many times.  When a put has returned, each of
 * its rows lies where linear.h says, complete.
 *
 * test-linear.cc tests the contents of a packed row; here each row is packed once more, alone.
 */
#include "tests/cuda/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <vector>

#include "kernels/convert.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device-emu.h"
#include "kernels/library.h"

#define SEEDS  8u
#define CROWD  3u
#define PIECES 2u
#define SCALES 32u /* columns of a scale */

extern "C" library_open_fn samovar_backend_open;

static uint64_t dice;

static uint32_t below(uint32_t n)
{
        return (uint32_t)(next_random(&dice) % n);
}

static cuda *open_cuda(void)
{
        kernels_conf conf = {};
        struct kernels *k;
        char why[160];

        conf.rows_max = 4;
        conf.slots_max = conf.pages_max = conf.wants_max = 2;
        conf.vocab_max = 64;
        device_emu_seed(next_random(&dice));
        assert_int_equal(samovar_backend_open(LIBRARY_VERSION, &conf, &k, why, sizeof(why)), 0);
        return cuda_of(k);
}

/* So few rows to a piece. */
static void shrink_staging(cuda *cuda, const matrix *matrix, uint32_t rows)
{
        size_t bytes = 0;

        for (uint32_t i = 0; i < matrix->run_count; i++) {
                size_t row = matrix->runs[i].row_bytes + matrix->runs[i].scale_bytes;

                bytes = row > bytes ? row : bytes;
        }
        staging_free(cuda->staging);
        bytes = (rows * bytes + 15) / 16 * 16 + 16 * below(2);
        assert_int_equal(staging_new(cuda->device, PIECES, bytes, &cuda->staging), 0);
}

struct part { /* as the file has it */
        size_t row_bytes;
        std::vector<uint8_t> rows;
};

/* Random blocks would have scales that are no numbers. */
static part random_part(row_type type, uint32_t columns, uint32_t rows)
{
        part part = { row_bytes(type, columns), {} };
        size_t unit = type == ROW_Q8_0 ? 34 : type == ROW_Q4_0 ? 18 : 2;

        part.rows.resize(part.row_bytes * rows);
        for (size_t i = 0; i < part.rows.size(); i++) {
                part.rows[i] = (uint8_t)below(256);
                /* near one */
                if (i % unit == 1)
                        part.rows[i] = (uint8_t)(0x38 + below(4));
        }
        return part;
}

struct fixture {
        struct cuda *cuda;
        struct matrix *matrix;
        part parts[MATRIX_PARTS_MAX];
};

static void begin(fixture *w, struct cuda *cuda, const matrix_shape *shape, uint32_t rows)
{
        w->cuda = cuda;
        assert_int_equal(cuda_matrix_new(&w->cuda->table, shape, &w->matrix), 0);
        shrink_staging(w->cuda, w->matrix, rows);
        for (uint32_t p = 0; p < shape->parts; p++)
                w->parts[p] = random_part(shape->type[p], shape->columns, shape->rows[p]);
}

static void end(fixture *w)
{
        cuda_matrix_free(&w->cuda->table, w->matrix);
}

/* By the words of linear.h: among parts of one type that are neighbours. */
static uint32_t place_of(const matrix_shape *shape, uint32_t part, uint32_t row)
{
        if (shape->parts == 2)
                return row / 8 * 16 + part * 8 + row % 8;
        for (uint32_t p = part; p && shape->type[p - 1] == shape->type[part]; p--)
                row += shape->rows[p - 1];
        return row;
}

static const matrix_run *run_of(const matrix *matrix, uint32_t part)
{
        return &matrix->runs[matrix->run_of[part]];
}

static bool is_there(const fixture *w, uint32_t part, uint32_t row)
{
        const matrix_run *run = run_of(w->matrix, part);
        const matrix_shape *shape = &w->matrix->shape;
        uint32_t place = place_of(shape, part, row);
        std::vector<uint8_t> is(run->row_bytes), should(run->row_bytes);
        std::vector<uint16_t> scales(run->scale_bytes / 2 + 1), right(run->scale_bytes / 2 + 1);

        linear_pack_row(run->w.format, shape->type[part],
                        &w->parts[part].rows[row * w->parts[part].row_bytes], shape->columns,
                        should.data(), right.data());
        device_emu_peek(is.data(), (const uint8_t *)run->w.weights + place * run->row_bytes,
                        run->row_bytes);
        if (run->scale_bytes)
                device_emu_peek(scales.data(),
                                (const uint8_t *)run->w.scales + place * run->scale_bytes,
                                run->scale_bytes);
        return is == should && !memcmp(scales.data(), right.data(), run->scale_bytes);
}

static int put(const fixture *w, uint32_t part, uint32_t row, uint32_t rows)
{
        const struct part *from = &w->parts[part];

        return cuda_weights_put(&w->cuda->table, w->matrix, part, row, rows,
                                from->rows.data() + row * from->row_bytes);
}

static const matrix_shape shapes[] = {
        { 128, 3, { 24, 9, 11 }, { ROW_F8_E4M3, ROW_F8_E4M3, ROW_BF16 } },
        { 70, 1, { 37 }, { ROW_BF16 } },
        { 96, 3, { 40, 9, 11 }, { ROW_Q8_0, ROW_Q8_0, ROW_Q8_0 } },
        { 64, 3, { 21, 40, 9 }, { ROW_Q4_0, ROW_Q8_0, ROW_Q8_0 } },
        { 160, 2, { 61, 61 }, { ROW_Q4_0, ROW_Q4_0 } },
        { 64, 2, { 50, 50 }, { ROW_BF16, ROW_BF16 } },
        { 64, 2, { 24, 24 }, { ROW_Q8_0, ROW_Q8_0 } },
        { 64, 2, { 30, 30 }, { ROW_Q4_0, ROW_BF16 } }, /* becomes bfloats */
};

static void rows_are_in_place_when_the_put_returns(void **)
{
        struct cuda *cuda = open_cuda();

        for (const matrix_shape &shape : shapes)
                for (uint32_t seed = 0; seed < SEEDS; seed++) {
                        fixture w;

                        begin(&w, cuda, &shape, 1 + below(20));
                        for (uint32_t p = 0; p < shape.parts; p++)
                                for (uint32_t row = 0, rows; row < shape.rows[p]; row += rows) {
                                        rows = 1 + below(shape.rows[p] - row);
                                        assert_int_equal(put(&w, p, row, rows), 0);
                                        for (uint32_t i = 0; i < rows; i++)
                                                assert_true(is_there(&w, p, row + i));
                                }
                        assert_int_equal(put(&w, 0, shape.rows[0], 0), 0);
                        end(&w);
                }
        cuda->table.close(&cuda->table);
}

struct putter {
        const fixture *w;
        uint32_t number;
        int r;
        pthread_t thread;
};

/* Every third group of 13 rows. */
static void *put_some(void *arg)
{
        putter *putter = (struct putter *)arg;
        const fixture *w = putter->w;
        const matrix_shape *shape = &w->matrix->shape;
        uint32_t group = 0;

        for (uint32_t p = 0; p < shape->parts; p++)
                for (uint32_t row = 0, rows; row < shape->rows[p]; row += rows, group++) {
                        rows = shape->rows[p] - row < 13 ? shape->rows[p] - row : 13;
                        if (group % CROWD == putter->number && !putter->r)
                                putter->r = put(w, p, row, rows);
                }
        return nullptr;
}

static void run_crowd(const fixture *w, putter *crowd)
{
        for (uint32_t i = 0; i < CROWD; i++) {
                crowd[i] = { w, i, 0, {} };
                assert_int_equal(pthread_create(&crowd[i].thread, nullptr, put_some, &crowd[i]), 0);
        }
        for (uint32_t i = 0; i < CROWD; i++)
                assert_int_equal(pthread_join(crowd[i].thread, nullptr), 0);
}

static void several_threads_can_put_rows_at_the_same_time(void **)
{
        struct cuda *cuda = open_cuda();

        for (const matrix_shape &shape : shapes)
                for (uint32_t seed = 0; seed < SEEDS; seed++) {
                        putter crowd[CROWD];
                        fixture w;

                        begin(&w, cuda, &shape, 1 + below(5));
                        run_crowd(&w, crowd);
                        for (uint32_t i = 0; i < CROWD; i++)
                                assert_int_equal(crowd[i].r, 0);
                        for (uint32_t p = 0; p < shape.parts; p++)
                                for (uint32_t row = 0; row < shape.rows[p]; row++)
                                        assert_true(is_there(&w, p, row));
                        end(&w);
                }
        cuda->table.close(&cuda->table);
}

static void check_others(const matrix *matrix, uint32_t number)
{
        const matrix_run *run = &matrix->runs[number];
        const matrix_shape *shape = &matrix->shape;
        std::vector<bool> taken(run->w.rows);

        for (uint32_t p = 0; p < shape->parts; p++)
                for (uint32_t row = 0; matrix->run_of[p] == number && row < shape->rows[p]; row++)
                        taken[place_of(shape, p, row)] = true;
        for (uint32_t row = 0; row < run->w.rows; row++) {
                std::vector<uint8_t> is(run->row_bytes), zeros(run->row_bytes);

                device_emu_peek(is.data(), (const uint8_t *)run->w.weights + row * run->row_bytes,
                                run->row_bytes);
                assert_true(taken[row] || is == zeros);
        }
}

/* Rows between parts and after the last are zeros: they are never put, and products read them. */
static void padding_rows_are_zero(void **)
{
        struct cuda *cuda = open_cuda();

        for (const matrix_shape &shape : shapes) {
                putter crowd[CROWD];
                fixture w;

                begin(&w, cuda, &shape, 4);
                run_crowd(&w, crowd);
                for (uint32_t i = 0; i < w.matrix->run_count; i++)
                        check_others(w.matrix, i);
                end(&w);
        }
        cuda->table.close(&cuda->table);
}

/* The device is lost after some operation of the load: all later puts report it. */
static void puts_report_a_lost_device(void **)
{
        for (uint32_t operations = 0; operations < 21; operations += 3) {
                const matrix_shape *shape = &shapes[operations / 3];
                putter crowd[CROWD];
                bool told = false;
                fixture w;

                begin(&w, open_cuda(), shape, 2);
                device_emu_lose(operations);
                run_crowd(&w, crowd);
                for (uint32_t i = 0; i < CROWD; i++) {
                        assert_true(!crowd[i].r || crowd[i].r == -EIO);
                        told = told || crowd[i].r;
                }
                assert_true(told);
                assert_int_equal(put(&w, 0, 0, 1), -EIO);
                device_emu_lose(UINT64_MAX);
                end(&w);
                w.cuda->table.close(&w.cuda->table);
        }
}

static void refuses_a_row_longer_than_a_staging_piece(void **)
{
        const matrix_shape shape = { 640, 1, { 4 }, { ROW_BF16 } };
        struct cuda *cuda = open_cuda();
        struct matrix *matrix;

        assert_int_equal(cuda_matrix_new(&cuda->table, &shape, &matrix), 0);
        cuda_matrix_free(&cuda->table, matrix);
        staging_free(cuda->staging);
        assert_int_equal(staging_new(cuda->device, PIECES, 640 * 2 - 16, &cuda->staging), 0);
        assert_int_equal(cuda_matrix_new(&cuda->table, &shape, &matrix), -EINVAL);
        cuda->table.close(&cuda->table);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rows_are_in_place_when_the_put_returns),
                cmocka_unit_test(several_threads_can_put_rows_at_the_same_time),
                cmocka_unit_test(padding_rows_are_zero),
                cmocka_unit_test(puts_report_a_lost_device),
                cmocka_unit_test(refuses_a_row_longer_than_a_staging_piece),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
