/*
 * Tensors: where each one's bytes are, whatever the format of the file.
 *
 * A reader of a format fills a table and checks it; then it is never written again.
 * Nobody computes a size from a file a second time: later code takes `offset` and
 * `bytes` from here.
 *
 * A tensor that no backend takes (a block format, a third dimension) stands in the
 * table too: a file is refused for it only by who needs it.
 */
#ifndef DAEMON_FILES_TENSOR_H
#define DAEMON_FILES_TENSOR_H

#include <stdint.h>

#include "kernels/kernels.h"

#define TENSORS_MAX     65536u
#define TENSOR_NAME_MAX 256u

struct scales;

struct tensor {
        const char *name;
        const char
                *unserved; /* NULL, or why no backend takes it; then what follows is not for use */
        enum row_type type;
        uint32_t file; /* of those that make up the model */
        uint32_t rows; /* of `columns` numbers each; a vector is one row */
        uint32_t columns;
        uint64_t offset; /* in its file */
        uint64_t bytes; /* there: rows as they are taken, or their numbers alone if they have ... */
        const struct scales *scales; /* ... these, beside them (files/scales.h); else NULL */
};

/* Of rows as a backend takes them. */
static inline uint64_t tensor_taken_bytes(const struct tensor *t)
{
        return t->scales && !t->unserved ? (uint64_t)t->rows * row_bytes(t->type, t->columns)
                                         : t->bytes;
}

struct tensor_table {
        struct tensor *tensors; /* in the order that they were found in */
        struct tensor **sorted;
        uint32_t count;
};

int tensor_table_init(struct tensor_table *table, uint32_t count); /* all zero; 0 or -ENOMEM */
void tensor_table_deinit(struct tensor_table *table);              /* takes a zeroed one */

/* Sorts by file, offset and bytes: so that what overlaps is next to each other. */
void tensor_table_by_place(struct tensor_table *table);

/* Sorts by name, as tensor_table_find() wants it.  Returns a tensor whose name is there twice, or NULL. */
const struct tensor *tensor_table_by_name(struct tensor_table *table);
const struct tensor *tensor_table_find(const struct tensor_table *table, const char *name);

#endif
