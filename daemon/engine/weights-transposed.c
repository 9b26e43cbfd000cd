#include "daemon/engine/weights-transposed.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"

#define BLOCK 32u /* numbers: a block of rows and columns stays in the L1 cache */

/* Our row of the tensor is this number of each row of the file. */
static uint32_t number_of(const struct tensor *tensor, uint32_t row)
{
        if (tensor->group)
                row = row / tensor->group * tensor->stride + row % tensor->group;
        return tensor->transposed_first + row;
}

/* Rows [first, first + count) of one block of columns. */
static void transpose_block(const struct tensor *tensor, size_t bytes, const char *from, char *to,
                            uint32_t first, uint32_t count)
{
        uint32_t end = first + BLOCK < tensor->rows ? first + BLOCK : tensor->rows;

        for (uint32_t row = first; row < end; row++) {
                const char *number = from + number_of(tensor, row) * bytes;
                char *out = to + (size_t)row * tensor->columns * bytes;

                for (uint32_t i = 0; i < count; i++)
                        memcpy(out + i * bytes, number + (size_t)i * tensor->transposed * bytes,
                               bytes);
        }
}

static void transpose(const struct tensor *tensor, size_t bytes, const char *file, char *ret_rows)
{
        for (uint32_t column = 0; column < tensor->columns; column += BLOCK) {
                uint32_t left = tensor->columns - column;

                for (uint32_t row = 0; row < tensor->rows; row += BLOCK)
                        transpose_block(tensor, bytes,
                                        file + (size_t)column * tensor->transposed * bytes,
                                        ret_rows + (size_t)column * bytes, row,
                                        left < BLOCK ? left : BLOCK);
        }
}

static int read_one(const struct checkpoint *checkpoint, const struct weights_load *load, char *why,
                    size_t why_bytes)
{
        const struct tensor *tensor = load->tensor;
        size_t row = row_bytes(tensor->type, tensor->columns), bytes = row / tensor->columns;
        char *file = malloc((size_t)tensor->bytes), *rows = malloc(tensor->rows * row);
        int r = 0;

        assert(tensor->type <= ROW_BF16 && !tensor->scales);
        if (!file || !rows)
                r = error_raise(errtext_set(why, why_bytes, -ENOMEM,
                                            "no memory to transpose tensor '%s'",
                                            shown(tensor->name).text));
        if (!r)
                r = checkpoint_read(checkpoint, tensor, 0, file, (size_t)tensor->bytes, why,
                                    why_bytes);
        if (!r) {
                transpose(tensor, bytes, file, rows);
                r = load->kernels->weights_put(load->kernels, load->matrix, load->part, 0,
                                               tensor->rows, rows);
                if (r)
                        error_raise(errtext_set(why, why_bytes, r,
                                                "the backend did not take its rows: %s",
                                                strerror(-r)));
        }
        free(rows);
        free(file);
        return error_pass(r);
}

int weights_read_transposed(const struct checkpoint *checkpoint, struct weights_load *loads,
                            uint32_t *io_count, const struct weights_conf *conf, char *why,
                            size_t why_bytes)
{
        const struct weights_progress progress = { .way = conf->way };
        uint32_t kept = 0;

        for (uint32_t i = 0; i < *io_count; i++) {
                int r;

                if (!loads[i].tensor->transposed) {
                        loads[kept++] = loads[i];
                        continue;
                }
                if (conf->go_on && !conf->go_on(conf->arg, &progress))
                        return error_raise(
                                errtext_set(why, why_bytes, -ECANCELED, "loading was stopped"));
                r = read_one(checkpoint, &loads[i], why, why_bytes);
                if (r)
                        return error_pass(r);
        }
        *io_count = kept;
        return 0;
}
