#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/weights.h"
#include "daemon/why.h"
#include "daemon/error.h"
#include "daemon/sys.h"
#include "kernels/rows.h"

#define BUFFER_BYTES ((size_t)8 << 20)

static int read_all(const struct gguf *gguf, const struct tensor *tensor, uint64_t from,
                    void *bytes, size_t count, char *why, size_t why_bytes)
{
        ssize_t n;

        assert(from <= tensor->bytes && count <= tensor->bytes - from);
        for (size_t at = 0; at < count; at += (size_t)n) {
                n = sys_pread(gguf_fd(gguf), (char *)bytes + at, count - at,
                              tensor->offset + from + at);
                if (n < 0)
                        return error_raise(why_say(why, why_bytes, (int)n, "tensor '%s': %s",
                                                   shown(tensor->name).text, strerror((int)-n)));
                if (!n)
                        return error_raise(
                                why_say(why, why_bytes, -EIO,
                                        "tensor '%s': the file became shorter while it was read",
                                        shown(tensor->name).text));
        }
        return 0;
}

static int load_read(const struct gguf *gguf, struct kernels *kernels,
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
                r = read_all(gguf, tensor, (uint64_t)row * bytes, buffer, rows * bytes, why,
                             why_bytes);
                if (r)
                        return error_pass(r);
                kernels->weights_put(kernels, load->mat, load->part, row, rows, buffer);
        }
        return 0;
}

static int load_compare(const void *a, const void *b)
{
        uint64_t x = ((const struct weights_load *)a)->tensor->offset;
        uint64_t y = ((const struct weights_load *)b)->tensor->offset;

        return (x > y) - (x < y);
}

int weights_read(const struct gguf *gguf, struct kernels *kernels, struct weights_load *loads,
                 uint32_t load_count, char *why, size_t why_bytes)
{
        void *buffer = malloc(BUFFER_BYTES);
        int r = 0;

        if (!buffer)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory to read it with"));
        qsort(loads, load_count, sizeof(*loads), load_compare);
        for (uint32_t i = 0; i < load_count && !r; i++)
                r = load_read(gguf, kernels, &loads[i], buffer, why, why_bytes);
        free(buffer);
        return error_pass(r);
}

int weights_read_floats(const struct gguf *gguf, const struct tensor *tensor, float *ret_floats,
                        char *why, size_t why_bytes)
{
        void *row;
        int r;

        assert(!tensor->unserved && tensor->rows == 1);
        row = malloc(tensor->bytes);
        if (!row)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory to read it with"));
        r = read_all(gguf, tensor, 0, row, tensor->bytes, why, why_bytes);
        if (!r)
                row_to_floats(tensor->type, row, tensor->columns, ret_floats);
        free(row);
        return error_pass(r);
}
