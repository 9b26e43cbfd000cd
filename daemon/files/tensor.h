/*
 * Tensors: where the bytes of each one are, in any file format.
 *
 * The reader of a format fills a table and checks it; after that it is never written again.  Sizes
 * are computed only once: later code takes `offset` and `bytes` from here.
 *
 * A tensor that no backend takes (a block format, a third dimension) is in the table too.  Only
 * code that needs this tensor refuses the file because of it.
 */
#ifndef DAEMON_FILES_TENSOR_H
#define DAEMON_FILES_TENSOR_H

#include <stdint.h>

#include "kernels/kernels.h"

#define TENSORS_MAX     65536u
#define TENSOR_NAME_MAX 256u

struct tensor {
        const char *name;
        const char *unserved; /* NULL, or why no backend takes it; then ignore the fields below */
        enum row_type type;
        uint32_t file; /* index of the file in the model */
        uint32_t rows; /* rows of `columns` numbers each; a vector is one row */
        uint32_t columns;
        uint64_t offset; /* in its file */
        uint64_t bytes; /* in its file: complete rows; or only their numbers, if there are scales */
        /* NULL: its numbers have no scales in another tensor */
        const struct scales *scales;
        /*
         * A part of a tensor may consist of groups of `group` rows (of a vector: numbers), whose
         * first ones are `stride` apart in the file.  group 0: all follow each other.
         */
        uint32_t group, stride;
        /*
         * Not 0: the file has a row for each of our columns, and it has this many numbers.  Number
         * `transposed_first` of it belongs to our row 0; `offset` and `bytes` are those of the
         * whole.
         */
        uint32_t transposed, transposed_first;
        /*
         * Each row is divided by its length when it is read.  Then `type` is F32, F16 or BF16, and
         * `stored` is the type in the file.
         */
        bool unit_rows;
        /*
         * Not NULL: each row has `inner` numbers of type `stored` in the file.  When it is read, it
         * is multiplied with this matrix of (inner, columns) floats; `type` is F32.
         */
        const float *times;
        uint32_t inner;
        enum row_type stored;
        /* Not NULL: a vector whose numbers are those of these vectors, all of the same length. */
        const struct tensor *pieces;
        uint32_t piece_count;
};

/* A part of a matrix; files/scales.h explains it.  columns: a multiple of SCALES_COLUMNS. */
struct scale_block {
        uint32_t rows, columns;
};

/* The scales of a tensor, which are in another tensor of the file. */
struct scales {
        struct tensor tensor;      /* the tensor of the scales, as in the file */
        struct scale_block covers; /* the part of the weights that one scale covers */
        char misfit[192];          /* why the scales do not fit; then the weights are unserved */
};

/* Bytes of all rows as a backend takes them. */
static inline uint64_t tensor_taken_bytes(const struct tensor *t)
{
        bool differs = (t->scales && !t->unserved) || t->unit_rows || t->times;

        return differs ? (uint64_t)t->rows * row_bytes(t->type, t->columns) : t->bytes;
}

/* Bytes of all rows in the memory of the backend "cpu". */
static inline uint64_t tensor_kept_bytes(const struct tensor *t)
{
        return t->unserved ? t->bytes : (uint64_t)t->rows * row_kept_bytes(t->type, t->columns);
}

struct tensor_table {
        struct tensor *tensors; /* in the order in which they were found */
        struct tensor **sorted;
        uint32_t count;
};

/* all entries zero; 0 or -ENOMEM */
int tensor_table_init(struct tensor_table *table, uint32_t count);
void tensor_table_deinit(struct tensor_table *table); /* takes a zeroed one */

/* Sorts by file, offset and bytes, so that overlapping tensors are neighbours. */
void tensor_table_by_place(struct tensor_table *table);

/*
 * Sorts by name, as tensor_table_find() requires.  Returns a tensor whose name occurs twice, or
 * NULL.
 */
const struct tensor *tensor_table_by_name(struct tensor_table *table);
const struct tensor *tensor_table_find(const struct tensor_table *table, const char *name);

/* Bytes of all tensors as a backend takes them. */
uint64_t tensor_table_taken_bytes(const struct tensor_table *table);
uint64_t tensor_table_kept_bytes(const struct tensor_table *table);
/* The type that most numbers of the table have, of those that a backend takes. */
enum row_type tensor_table_main_type(const struct tensor_table *table);

#endif
