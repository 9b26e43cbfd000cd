#include "daemon/engine/weights-rows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

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

uint64_t rows_offset(const struct rows *rows)
{
        return rows->tensor->offset + (uint64_t)rows->first * row_stored(rows->tensor);
}

size_t rows_taken(const struct rows *rows)
{
        assert(!rows->tensor->unserved);
        return rows->count * row_bytes(rows->tensor->type, rows->tensor->columns);
}

/* Space for the scales as floats, and after them as in the file, where they are not longer. */
size_t rows_scratch(const struct rows *rows)
{
        uint64_t from;

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

        if (!scales)
                return 0;
        count = scales_of(rows->tensor, rows->first, rows->count, &from);
        r = checkpoint_read(checkpoint, &scales->tensor, from, floats + count,
                            row_bytes(scales->tensor.type, count), why, why_bytes);
        if (r)
                return error_pass(r);
        row_to_floats(scales->tensor.type, floats + count, count, floats);
        scales_interleave(rows->tensor, rows->first, rows->count, floats, io_rows);
        return 0;
}

int rows_read_floats(const struct checkpoint *checkpoint, const struct tensor *tensor,
                     float *ret_floats, char *why, size_t why_bytes)
{
        const struct rows rows = { tensor, 0, 1 };
        size_t stored = rows_stored(&rows), taken = rows_taken(&rows);
        char *row;
        int r;

        assert(!tensor->unserved && tensor->rows == 1);
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
