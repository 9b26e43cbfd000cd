#include "daemon/engine/weights-rows.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/files/scales.h"
#include "base/errtext.h"
#include "kernels/convert.h"

static size_t row_stored(const struct tensor *tensor)
{
        assert(!tensor->unserved && tensor->bytes % tensor->rows == 0);
        return (size_t)(tensor->bytes / tensor->rows);
}

size_t rows_stored(const struct rows *rows)
{
        return rows->count * row_stored(rows->tensor);
}

size_t rows_taken(const struct rows *rows)
{
        assert(!rows->tensor->unserved);
        return rows->count * row_bytes(rows->tensor->type, rows->tensor->columns);
}

/* Which row of the file, counted from the tensor's first one, is our row. */
static uint64_t row_in_file(const struct tensor *tensor, uint32_t row)
{
        if (!tensor->group)
                return row;
        return (uint64_t)(row / tensor->group) * tensor->stride + row % tensor->group;
}

uint64_t rows_offset(const struct rows *rows)
{
        return rows->tensor->offset +
               row_in_file(rows->tensor, rows->first) * row_stored(rows->tensor);
}

size_t rows_span(const struct rows *rows)
{
        uint64_t first = row_in_file(rows->tensor, rows->first);
        uint64_t last = row_in_file(rows->tensor, rows->first + rows->count - 1);

        return (size_t)(last - first + 1) * row_stored(rows->tensor);
}

size_t rows_buffer(const struct rows *rows)
{
        size_t span = rows_span(rows), taken = rows_taken(rows);

        return span > taken ? span : taken;
}

/* Moves rows with other rows between them to the beginning of the buffer. */
static void move_together(const struct rows *rows, char *io_rows)
{
        const struct tensor *tensor = rows->tensor;
        size_t bytes = row_stored(tensor);
        uint64_t first = row_in_file(tensor, rows->first);

        for (uint32_t i = 0; i < rows->count; i++)
                memmove(io_rows + i * bytes,
                        io_rows + (size_t)(row_in_file(tensor, rows->first + i) - first) * bytes,
                        bytes);
}

static void number_put(enum row_type type, char *row, uint32_t column, float number)
{
        if (type == ROW_F32)
                ((float *)row)[column] = number;
        else
                ((uint16_t *)row)[column] =
                        type == ROW_F16 ? float_to_half(number) : float_to_bfloat(number);
}

/* Divides the row by its length, unless it is of zeros. */
static void put_unit_row(const struct tensor *tensor, const float *numbers, char *ret_row)
{
        double square = 0, length;

        for (uint32_t i = 0; i < tensor->columns; i++)
                square += (double)numbers[i] * numbers[i];
        length = fmax(sqrt(square), 1e-12);
        for (uint32_t i = 0; i < tensor->columns; i++)
                number_put(tensor->type, ret_row, i, (float)(numbers[i] / length));
}

static void put_product(const struct tensor *tensor, const float *numbers, char *ret_row)
{
        float *to = (float *)ret_row;

        memset(to, 0, tensor->columns * sizeof(*to));
        for (uint32_t j = 0; j < tensor->inner; j++) {
                const float *row = tensor->times + (size_t)j * tensor->columns;

                for (uint32_t i = 0; i < tensor->columns; i++)
                        to[i] += numbers[j] * row[i];
        }
}

static bool is_computed(const struct tensor *tensor)
{
        return tensor->unit_rows || tensor->times;
}

static uint32_t columns_stored(const struct tensor *tensor)
{
        return tensor->times ? tensor->inner : tensor->columns;
}

/*
 * Computes our rows.  The rows of the file are at the end of the buffer, and never longer than
 * ours, so a row of ours overwrites no row that is still to be read.
 */
static void compute_rows(const struct rows *rows, char *io_rows, float *scratch)
{
        const struct tensor *tensor = rows->tensor;
        const char *from = io_rows + rows_taken(rows) - rows_stored(rows);
        char *to = io_rows;

        for (uint32_t row = 0; row < rows->count; row++) {
                row_to_floats(tensor->stored, from, columns_stored(tensor), scratch);
                if (tensor->times)
                        put_product(tensor, scratch, to);
                else
                        put_unit_row(tensor, scratch, to);
                from += row_stored(tensor);
                to += row_bytes(tensor->type, tensor->columns);
        }
}

/*
 * Space for the scales as floats, and after them as in the file, where they are not longer; or for
 * the numbers of one row.
 */
size_t rows_scratch(const struct rows *rows)
{
        uint64_t from;

        if (is_computed(rows->tensor))
                return columns_stored(rows->tensor) * sizeof(float);
        if (!rows->tensor->scales)
                return 0;
        return 2 * sizeof(float) * scales_of(rows->tensor, rows->first, rows->count, &from);
}

int rows_finish(const struct checkpoint *checkpoint, const struct rows *rows, void *io_rows,
                void *scratch, char *why, size_t why_bytes)
{
        const struct scales *scales = rows->tensor->scales;
        float *floats = scratch;
        uint32_t count;
        uint64_t from;
        int r;

        if (rows->tensor->group)
                move_together(rows, io_rows);
        if (is_computed(rows->tensor))
                compute_rows(rows, io_rows, scratch);
        if (!scales)
                return 0;
        count = scales_of(rows->tensor, rows->first, rows->count, &from);
        if (count) {
                r = checkpoint_read(checkpoint, &scales->tensor, from, floats + count,
                                    row_bytes(scales->tensor.type, count), why, why_bytes);
                if (r)
                        return error_pass(r);
                row_to_floats(scales->tensor.type, floats + count, count, floats);
        }
        scales_interleave(rows->tensor, rows->first, rows->count, count ? floats : NULL, io_rows);
        return 0;
}

/* The numbers of a vector that do not follow each other are read one group after the other. */
static int read_groups(const struct checkpoint *checkpoint, const struct tensor *tensor,
                       float *ret_floats, char *why, size_t why_bytes)
{
        struct tensor group = *tensor;
        int r = 0;

        group.group = 0;
        group.columns = tensor->group;
        group.bytes = tensor->bytes / tensor->columns * tensor->group;
        for (uint32_t at = 0; !r && at < tensor->columns; at += tensor->group) {
                r = rows_read_floats(checkpoint, &group, ret_floats + at, why, why_bytes);
                group.offset += tensor->bytes / tensor->columns * tensor->stride;
        }
        return error_pass(r);
}

static int read_pieces(const struct checkpoint *checkpoint, const struct tensor *tensor,
                       float *ret_floats, char *why, size_t why_bytes)
{
        int r = 0;

        for (uint32_t i = 0; !r && i < tensor->piece_count; i++)
                r = rows_read_floats(checkpoint, &tensor->pieces[i],
                                     ret_floats + (size_t)i * tensor->pieces[i].columns, why,
                                     why_bytes);
        return error_pass(r);
}

int rows_read_floats(const struct checkpoint *checkpoint, const struct tensor *tensor,
                     float *ret_floats, char *why, size_t why_bytes)
{
        const struct rows rows = { tensor, 0, 1 };
        size_t stored, taken;
        char *row;
        int r;

        assert(!tensor->unserved && tensor->rows == 1);
        if (tensor->group)
                return error_pass(read_groups(checkpoint, tensor, ret_floats, why, why_bytes));
        if (tensor->pieces)
                return error_pass(read_pieces(checkpoint, tensor, ret_floats, why, why_bytes));
        stored = rows_stored(&rows);
        taken = rows_taken(&rows);
        row = malloc(taken + rows_scratch(&rows));
        if (!row)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM,
                                               "no memory for the buffer to read it"));
        r = checkpoint_read(checkpoint, tensor, 0, row + taken - stored, stored, why, why_bytes);
        if (!r)
                r = rows_finish(checkpoint, &rows, row, row + taken, why, why_bytes);
        if (!r)
                row_to_floats(tensor->type, row, tensor->columns, ret_floats);
        free(row);
        return error_pass(r);
}
