#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/weights.h"
#include "daemon/why.h"
#include "daemon/error.h"
#include "kernels/rows.h"

#define BUFFER_BYTES ((size_t)8 << 20)

static int load_read(const struct checkpoint *checkpoint, struct kernels *kernels,
                     const struct weights_load *load, void *buffer, char *why, size_t why_bytes)
{
        const struct tensor *tensor = load->tensor;
        size_t bytes = row_bytes(tensor->type, tensor->columns);
        uint32_t group, rows;
        int r;

        assert(!tensor->unserved && bytes && bytes <= BUFFER_BYTES);
        group = (uint32_t)(BUFFER_BYTES / bytes);
        for (uint32_t row = 0; row < tensor->rows; row += rows) {
                rows = tensor->rows - row < group ? tensor->rows - row : group;
                r = checkpoint_read(checkpoint, tensor, (uint64_t)row * bytes, buffer, rows * bytes,
                                    why, why_bytes);
                if (r)
                        return error_pass(r);
                kernels->weights_put(kernels, load->mat, load->part, row, rows, buffer);
        }
        return 0;
}

static int load_compare(const void *a, const void *b)
{
        const struct tensor *s = ((const struct weights_load *)a)->tensor;
        const struct tensor *t = ((const struct weights_load *)b)->tensor;

        if (s->file != t->file)
                return s->file < t->file ? -1 : 1;
        return (s->offset > t->offset) - (s->offset < t->offset);
}

int weights_read(const struct checkpoint *checkpoint, struct kernels *kernels,
                 struct weights_load *loads, uint32_t load_count, char *why, size_t why_bytes)
{
        void *buffer = malloc(BUFFER_BYTES);
        int r = 0;

        if (!buffer)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory to read it with"));
        qsort(loads, load_count, sizeof(*loads), load_compare);
        for (uint32_t i = 0; i < load_count && !r; i++)
                r = load_read(checkpoint, kernels, &loads[i], buffer, why, why_bytes);
        free(buffer);
        return error_pass(r);
}

int weights_read_floats(const struct checkpoint *checkpoint, const struct tensor *tensor,
                        float *ret_floats, char *why, size_t why_bytes)
{
        void *row;
        int r;

        assert(!tensor->unserved && tensor->rows == 1);
        row = malloc(tensor->bytes);
        if (!row)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory to read it with"));
        r = checkpoint_read(checkpoint, tensor, 0, row, tensor->bytes, why, why_bytes);
        if (!r)
                row_to_floats(tensor->type, row, tensor->columns, ret_floats);
        free(row);
        return error_pass(r);
}

int weights_equal(const struct checkpoint *checkpoint, const struct tensor *a,
                  const struct tensor *b, char *why, size_t why_bytes)
{
        const size_t half = BUFFER_BYTES / 2;
        char *buffer;
        int r = 1;

        if (a->type != b->type || a->rows != b->rows || a->columns != b->columns)
                return 0;
        assert(!a->unserved && !b->unserved && a->bytes == b->bytes);
        buffer = malloc(BUFFER_BYTES);
        if (!buffer)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory to read it with"));
        for (uint64_t at = 0; r == 1 && at < a->bytes; at += half) {
                size_t n = a->bytes - at < half ? a->bytes - at : half;
                int k;

                if ((k = checkpoint_read(checkpoint, a, at, buffer, n, why, why_bytes)) ||
                    (k = checkpoint_read(checkpoint, b, at, buffer + half, n, why, why_bytes)))
                        r = error_pass(k);
                else
                        r = !memcmp(buffer, buffer + half, n);
        }
        free(buffer);
        return r;
}
