/*
 * Divides a tensor of a file that has q, k and v in it, or a gate and `up`.
 *
 * A part is a tensor of its own: it points into the file of the whole.  The traits tell how a file
 * orders the rows of the parts (enum qkv_order).  A part whose rows do not follow each other has a
 * group and a stride; the reader of weights picks its rows out.
 */
#ifndef DAEMON_ENGINE_TENSOR_PARTS_H
#define DAEMON_ENGINE_TENSOR_PARTS_H

#include "daemon/files/tensor.h"
#include "daemon/model/traits.h"

#define TENSOR_PARTS_MAX 3u

/*
 * Our rows and columns of `tensor`, which the file has transposed: rows for columns.  Only plain
 * numbers can be transposed.
 */
struct tensor tensor_transposed(const struct tensor *tensor);

/*
 * The tensor, which has no scales, with each row divided by its length.  A quantised type becomes
 * F16: its blocks cannot be divided without rounding their scales again.
 */
struct tensor tensor_unit_rows(const struct tensor *tensor);

/*
 * The tensor, which has no scales, with each row multiplied with a matrix of (its columns, columns)
 * floats, which has at least as many columns.
 */
struct tensor tensor_times(const struct tensor *tensor, const float *matrix, uint32_t columns);

/* Where a part lies among the rows (of a vector: the numbers) of the whole. */
struct tensor_part {
        uint32_t count, first;
        uint32_t group, stride; /* as in struct tensor */
};

/* The parts q, k, v of the numbers of heads, in this layer. */
void tensor_parts_qkv(const struct traits *traits, const struct layer_traits *layer,
                      struct tensor_part ret_parts[3]);
/* The gate, then `up`. */
void tensor_parts_gate(const struct layer_traits *layer, struct tensor_part ret_parts[2]);

/* `whole` has no scales.  A vector is one row, and its numbers are divided. */
struct tensor tensor_part_of(const struct tensor *whole, const struct tensor_part *part);

#endif
