/*
 * Weights of eight bits whose scales lie beside them.
 *
 * Hugging Face's files keep the numbers of such a matrix, F8_E4M3, in one tensor and what they are
 * multiplied by in another, X.weight_scale_inv or X.weight_scale.  A backend takes rows of blocks: 128
 * numbers, in front of them their scale (kernels/blocks.h).  Here the two tensors become one, whose
 * rows are put together while they are read; nobody but who reads them knows that there are two.
 *
 * What a scale covers is told by the scales' shape, for a matrix of rows x columns:
 *
 *      none, 1 or 1 x 1                      all of it
 *      rows x 1                              a row
 *      ceil(rows / R) x ceil(columns / C)    R x C of it, as config.json says, or 128 x 128
 *
 * Where two of these are the same shape, they mean the same.  Columns of a matrix, and C, are whole
 * multiples of 128.  A scale is a number like any other weight: whether it is finite, nobody looks.
 */
#ifndef DAEMON_FILES_SCALES_H
#define DAEMON_FILES_SCALES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/files/tensor.h"

#define SCALES_ROWS    128u
#define SCALES_COLUMNS 128u

/* Why an F8_E4M3 tensor is not served as long as nobody has found its scales. */
extern const char scales_wanted[];

struct scale_block {
        uint32_t rows, columns; /* columns: a multiple of SCALES_COLUMNS */
};

struct scales {
        struct tensor tensor;      /* the numbers themselves, in the file */
        struct scale_block covers; /* of the weights, one of them */
        char misfit[192];          /* or why they do not fit, and then the weights are unserved */
};

/*
 * In a table by name, which it is afterwards: takes scales out of it and gives them to their tensors.
 * *ret_scales is what those then point at, to be freed after the table.  0 or -ENOMEM.
 */
int scales_join(struct tensor_table *table, const struct scale_block *block,
                struct scales **ret_scales);

/* How many scales these rows of the weights have, one behind another from *ret_from, a byte of theirs. */
uint32_t scales_of(const struct tensor *weights, uint32_t row, uint32_t rows, uint64_t *ret_from);

/* In place: the rows' numbers, at the end of where rows of blocks have room, become those rows. */
void scales_weave(const struct tensor *weights, uint32_t row, uint32_t rows, const float *scales,
                  void *io_rows);

#endif
