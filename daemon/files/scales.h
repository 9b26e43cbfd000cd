/*
 * Weights whose scales are stored in separate tensors: F8_E4M3 of Hugging Face's files, and NVFP4
 * of GGUF.
 *
 * Hugging Face's files keep the numbers of such a matrix, F8_E4M3, in one tensor and the scales in
 * another, X.weight_scale_inv or X.weight_scale.  A backend takes rows of blocks: a scale followed
 * by 128 numbers (kernels/blocks.h).  Here the two tensors become one, whose rows are combined
 * while they are read.  Only the code that reads rows knows that there are two.
 *
 * The shape of the scales tells what one scale covers, for a matrix of rows x columns:
 *
 *      none, 1 or 1 x 1                      the whole matrix
 *      rows x 1                              one row
 *      ceil(rows / R) x ceil(columns / C)    R x C of it, as config.json says, or 128 x 128
 *
 * If two of these have the same shape, they have the same meaning.  The columns of a matrix, and C,
 * must be multiples of 128.  A scale is a number like any other weight: it is not checked for being
 * finite.
 *
 * GGUF's NVFP4 has the scales of its runs in the rows.  X.scale is one number for the whole matrix
 * X.weight; without it, that scale is 1.  X.input_scale concerns rows of x and is ignored.
 */
#ifndef DAEMON_FILES_SCALES_H
#define DAEMON_FILES_SCALES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/files/tensor.h"

#define SCALES_ROWS    128u
#define SCALES_COLUMNS 128u

/* Why an F8_E4M3 tensor is not served unless its scales are found. */
extern const char scales_wanted[];

/*
 * `table` is sorted by name, before and after.  Removes the scales from it and attaches them to
 * their tensors, which point into *ret_scales; free that after the table.  0 or -ENOMEM.
 */
int scales_join(struct tensor_table *table, const struct scale_block *block,
                struct scales **ret_scales);

/* The same for NVFP4.  *ret_scales may be NULL. */
int scales_join_nvfp4(struct tensor_table *table, struct scales **ret_scales);

/*
 * The number of scales of these rows of the weights.  They are contiguous in the scales' tensor,
 * from its byte *ret_from on.  0: there is no such tensor, and all scales are 1.
 */
uint32_t scales_of(const struct tensor *weights, uint32_t row, uint32_t rows, uint64_t *ret_from);

/*
 * In place: on entry, the rows' numbers are at the end of the space for rows of blocks.  On return,
 * the space has the rows of blocks.  `scales` is NULL if there are none.
 */
void scales_interleave(const struct tensor *weights, uint32_t row, uint32_t rows,
                       const float *scales, void *io_rows);

#endif
