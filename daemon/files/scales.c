#include "daemon/files/scales.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/tensor-names.h"
#include "kernels/blocks.h"

#define NUMBERS SCALES_COLUMNS /* in a block */

const char scales_wanted[] = "its type F8_E4M3 needs scales, and it has none";

static uint32_t parts(uint32_t whole, uint32_t part)
{
        return whole / part + (whole % part != 0);
}

static const struct tensor *find_scales(const struct tensor_table *table,
                                        const struct tensor *weights)
{
        static const char *const endings[] = { "_scale_inv", "_scale" };
        char name[TENSOR_NAME_MAX + TENSOR_NAME_GROWTH_MAX + 16];
        const struct tensor *found = NULL;

        for (size_t i = 0; !found && i < sizeof(endings) / sizeof(*endings); i++) {
                snprintf(name, sizeof(name), "%s%s", weights->name, endings[i]);
                found = tensor_table_find(table, name);
        }
        return found;
}

/* Tries one scale for all, for each row, for each block. */
static bool measure(struct scales *s, const struct tensor *weights, const struct scale_block *block)
{
        const struct scale_block shares[] = { { weights->rows, weights->columns },
                                              { 1, weights->columns },
                                              *block };

        for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
                s->covers = shares[i];
                if (s->tensor.rows == parts(weights->rows, s->covers.rows) &&
                    s->tensor.columns == parts(weights->columns, s->covers.columns))
                        return true;
        }
        return false;
}

static bool is_of_floats(const struct tensor *t)
{
        return !t->unserved && (t->type == ROW_F32 || t->type == ROW_F16 || t->type == ROW_BF16);
}

/* Returns NULL, or why the scales do not fit. */
static const char *fit(struct scales *s, const struct tensor *weights,
                       const struct scale_block *block)
{
        const struct tensor *t = &s->tensor;

        if (weights->columns % NUMBERS)
                snprintf(s->misfit, sizeof(s->misfit),
                         "its rows of %" PRIu32 " 8-bit numbers are not a multiple of %u",
                         weights->columns, NUMBERS);
        else if (!is_of_floats(t))
                snprintf(s->misfit, sizeof(s->misfit), "its scales are not floats: %s",
                         t->unserved ? t->unserved : row_type_name(t->type));
        else if (!measure(s, weights, block))
                snprintf(s->misfit, sizeof(s->misfit),
                         "it is %" PRIu32 " x %" PRIu32 " and its scales are %" PRIu32 " x %" PRIu32
                         ", not 1 x 1, %" PRIu32 " x 1 or %" PRIu32 " x %" PRIu32,
                         weights->rows, weights->columns, t->rows, t->columns, weights->rows,
                         parts(weights->rows, block->rows),
                         parts(weights->columns, block->columns));
        return s->misfit[0] ? s->misfit : NULL;
}

static uint32_t count_wanting(const struct tensor_table *table)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < table->count; i++)
                count += table->tensors[i].unserved == scales_wanted;
        return count;
}

/* Removes the taken tensors from the table. */
static void close_ranks(struct tensor_table *table, const bool *taken)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < table->count; i++)
                if (!taken[i])
                        table->tensors[count++] = table->tensors[i];
        table->count = count;
        (void)tensor_table_by_name(table);
}

int scales_join(struct tensor_table *table, const struct scale_block *block,
                struct scales **ret_scales)
{
        uint32_t wanting = count_wanting(table);
        struct scales *scales = calloc((size_t)wanting + 1, sizeof(*scales)), *s = scales;
        bool *taken = calloc((size_t)table->count + 1, sizeof(*taken));

        if (!scales || !taken) {
                free(scales);
                free(taken);
                return error_raise(-ENOMEM);
        }
        for (uint32_t i = 0; i < table->count; i++) {
                struct tensor *weights = &table->tensors[i];
                const struct tensor *found =
                        weights->unserved == scales_wanted ? find_scales(table, weights) : NULL;

                if (!found)
                        continue;
                taken[found - table->tensors] = true;
                s->tensor = *found;
                weights->unserved = fit(s, weights, block);
                weights->scales = s++;
        }
        close_ranks(table, taken);
        free(taken);
        *ret_scales = scales;
        return 0;
}

static uint32_t count_nvfp4(const struct tensor_table *table)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < table->count; i++)
                count += !table->tensors[i].unserved && table->tensors[i].type == ROW_NVFP4;
        return count;
}

/* Finds X.ending, if the weights are X.weight. */
static const struct tensor *find_beside(const struct tensor_table *table,
                                        const struct tensor *weights, const char *ending)
{
        char name[TENSOR_NAME_MAX + 16];
        const char *dot = strrchr(weights->name, '.');

        if (!dot || strcmp(dot, ".weight"))
                return NULL;
        snprintf(name, sizeof(name), "%.*s.%s", (int)(dot - weights->name), weights->name, ending);
        return tensor_table_find(table, name);
}

static void join_nvfp4(struct tensor *weights, struct scales *s, const struct tensor *found)
{
        s->covers = (struct scale_block){ weights->rows, weights->columns };
        weights->scales = s;
        if (!found)
                return;
        s->tensor = *found;
        if (is_of_floats(found) && found->rows == 1 && found->columns == 1)
                return;
        snprintf(s->misfit, sizeof(s->misfit),
                 "its scale '%s' is not one float, but %" PRIu32 " x %" PRIu32 " of type %s",
                 shown(found->name).text, found->rows, found->columns,
                 found->unserved ? "unknown" : row_type_name(found->type));
        weights->unserved = s->misfit;
}

int scales_join_nvfp4(struct tensor_table *table, struct scales **ret_scales)
{
        uint32_t count = count_nvfp4(table);
        struct scales *scales, *s;
        bool *taken;

        *ret_scales = NULL;
        if (!count)
                return 0;
        scales = s = calloc(count, sizeof(*scales));
        taken = calloc(table->count, sizeof(*taken));
        if (!scales || !taken) {
                free(scales);
                free(taken);
                return error_raise(-ENOMEM);
        }
        for (uint32_t i = 0; i < table->count; i++) {
                struct tensor *weights = &table->tensors[i];
                const struct tensor *found, *ignored;

                if (weights->unserved || weights->type != ROW_NVFP4)
                        continue;
                found = find_beside(table, weights, "scale");
                ignored = find_beside(table, weights, "input_scale");
                if (found)
                        taken[found - table->tensors] = true;
                if (ignored)
                        taken[ignored - table->tensors] = true;
                join_nvfp4(weights, s++, found);
        }
        close_ranks(table, taken);
        free(taken);
        *ret_scales = scales;
        return 0;
}

uint32_t scales_of(const struct tensor *weights, uint32_t row, uint32_t rows, uint64_t *ret_from)
{
        const struct scales *s = weights->scales;
        uint32_t first = row / s->covers.rows, last = (row + rows - 1) / s->covers.rows;

        *ret_from = 0;
        if (!s->tensor.rows)
                return 0;
        assert(rows && last < s->tensor.rows);
        *ret_from = (uint64_t)first * row_bytes(s->tensor.type, s->tensor.columns);
        return (last - first + 1) * s->tensor.columns;
}

/*
 * Writing never overtakes reading.  With each block, `to` comes nearer to `from`, and they meet
 * after the last block.
 */
void scales_interleave(const struct tensor *weights, uint32_t row, uint32_t rows,
                       const float *scales, void *io_rows)
{
        const struct scales *s = weights->scales;
        const struct block_format *format = block_format(weights->type);
        const uint32_t across = weights->columns / format->numbers, first = row / s->covers.rows;
        const size_t stored = format->bytes - sizeof(float);
        uint8_t *to = io_rows;
        const uint8_t *from = to + (size_t)rows * across * sizeof(float);

        for (uint32_t i = row; i < row + rows; i++) {
                const size_t line = (size_t)(i / s->covers.rows - first) * s->tensor.columns;

                for (uint32_t b = 0; b < across; b++) {
                        const float one = 1;
                        const uint32_t column = b * format->numbers;

                        memmove(to + sizeof(float), from, stored);
                        memcpy(to, scales ? &scales[line + column / s->covers.columns] : &one,
                               sizeof(float));
                        from += stored;
                        to += format->bytes;
                }
        }
}
