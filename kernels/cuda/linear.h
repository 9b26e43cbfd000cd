/*
 * Multiplies the rows of a step with a matrix of weights:
 *
 *      sum(r, n) = sum over k of x[r][k] * w[n][k]
 *
 *      LINEAR_STORE    y[r][n] = sum + bias[n]
 *      LINEAR_ADD      y[r][n] += scale * (sum + bias[n])
 *      LINEAR_GATE     out[r][n] = bfloat(act(sum of gate + its bias) * (sum of up + its bias))
 *      LINEAR_ACT      out[r][n] = bfloat(act(sum + bias[n])), or
 *                      bfloat(act(sum + bias[n]) * factor[r][n])
 *
 *      x       (rows_max, x_columns) bfloats; y (rows_max, n) floats; out (rows_max, out_columns)
 *              bfloats.  Columns of out past n are never written: the code that allocates out
 *              clears it
 *      w       (rows, columns), see below
 *      grid    (chunks of 64 rows of x, tiles of 16 rows of w, parts of k), 4 or 8 warps
 *      moves   all of w once; rows of x once a tile, out of the cache
 *      order   k goes in steps of 64 or 128 (below).  Step i is added by warp i % warps of part
 *              i / warps % parts, in order of i; then warps are added in order, then parts.  The
 *              numbers of warps and parts depend on the matrix and the GPU alone.  So a row's sums
 *              have the same bits for any number of rows, and at any place among them.
 *
 * This is made for few rows, where only one thing counts: to keep reading weights.  Rows of w are
 * the 16 rows of the tensor cores' product, rows of x are its 8 columns, and there is no staging
 * in shared memory.  A product allows any order of k if both operands use the same.  So a lane
 * reads 16 bytes of a row of w, which are eight k, and the same eight of x, and uses these as its
 * share of two products.  The first steps of w are requested before the kernel waits for its
 * predecessor.
 *
 * Rows of x at or past *count, up to rows_max, are not read, and nothing is stored for them.
 *
 * Limits: it reads rows of x only in the order in which they lie; a caller that wants a selection
 * gathers them first.  And it is not quick for hundreds of rows: each chunk fetches w again, and
 * multiplies 64 rows even if it has only one.
 */
#ifndef KERNELS_CUDA_LINEAR_H
#define KERNELS_CUDA_LINEAR_H

#include "kernels/cuda/device.h"
#include "kernels/kernels.h"

/*
 * How weights are kept: as numbers, or as the integers of their file (or the codes that the file
 * has instead), each exact as a bfloat, together with the scales that multiply them.  A packed
 * weight itself is never rounded, and never computed: for a group of 32 columns the tensor cores
 * add up integer * x, and that sum is multiplied by the scale.
 *
 *      LINEAR_BFLOAT   bfloat(weight): exact for ROW_BF16, rounded once for others.  Steps of 64
 *      LINEAR_INT8     weight = scale * integer of 8 bits (Q8_0).  Steps of 64
 *      LINEAR_INT4     weight = scale * (integer of 4 bits - 8) (Q4_0).  Steps of 128
 *      LINEAR_E4M3     weight = scale * number of 8 bits (kernels/convert.h); code that computes
 *                      this product rounds it once (F8_E4M3).  Steps of 64
 *      LINEAR_K4, K5   weight = scale * integer of 4 or 5 bits - least (Q4_K, Q5_K).  scale is a
 *                      half times a 6-bit integer, least is another half times another 6-bit
 *                      integer: exact floats.  Steps of 128
 *      LINEAR_K6       weight = scale * (integer of 6 bits - 32) (Q6_K), with a scale for each 16
 *                      columns.  scale is a half times a signed byte, an exact float.  Steps of 128
 *
 * A group adds to a row's sum s as follows, all in floats, each fma rounded once:
 *
 *      LINEAR_BFLOAT           the products, without a scale
 *      LINEAR_INT8, INT4, E4M3 s = fma(scale, sum of integer * x, s)
 *      LINEAR_K4, K5           the same; then s = fma(-least, sum of x, s), where the tensor cores
 *                              compute the sum of x with weights of 1
 *      LINEAR_K6               as INT8, for the first 16 columns, then for the other 16
 *
 * Groups are added one after the other.  Within a group the order is that of the tensor cores:
 * columns 8t .. 8t+3 of all t = 0 .. 3, then 8t+4 .. 8t+7.  LINEAR_K6: the first 16 columns, and
 * separately the other 16.
 *
 * A packed row has its weights in one place and its scales in another.  Together they take as
 * many bytes as in the file (LINEAR_K6: up to 14 more a row).  Columns are padded with zeros.
 * The 32 columns of a group lie as follows, where lane t = 0 .. 3 has columns 8t .. 8t+7:
 *
 *      LINEAR_BFLOAT   in order
 *      LINEAR_INT8     signed bytes.  Of each 64 columns, lane t has bytes 16t ..: 8 of the first
 *                      group, then 8 of the second; of each four, in order 0 2 1 3
 *      LINEAR_E4M3     the same, with codes
 *      LINEAR_INT4     number + 8 in four bits.  Of each 128 columns, lane t has bytes 16t ..: four
 *                      words, one of each group, where column i is in bits 2i .. (i even) or
 *                      2i + 14 .. (i odd)
 *      LINEAR_K4       the same, without adding 8
 *      LINEAR_K5       80 bytes for each 128 columns.  The lower four bits are as in LINEAR_K4.
 *                      Then lane t has bytes 64 + 4t ..: the fifth bits of four groups.  Those of
 *                      group j begin at bit 4j; counted from there, column i is in bit i/2 (i even)
 *                      or i/2 + 16 (i odd)
 *      LINEAR_K6       96 bytes for each 128 columns, number + 32.  Here lane t has columns
 *                      4t .. 4t+3 and 16 + 4t .. 16 + 4t+3 of a group.  The lower four bits are as
 *                      in LINEAR_K4.  Then lane t has bytes 64 + 8t ..: two words of two groups
 *                      each; the bits of the second group begin at bit 8.  The upper two bits of
 *                      column i are in bits i .. (i even) or i + 15 .. (i odd)
 *
 * The scales:
 *
 *      LINEAR_INT8, INT4       a half for each group, in order
 *      LINEAR_E4M3             a float for each 128 columns, in order.  Where one of their codes is
 *                              NaN, the scale is NaN.  Any sum that includes one of them then
 *                              becomes NaN, as that code would make it.  So products need not check
 *                              for that code, which they read as 480
 *      LINEAR_K4, K5           16 bytes for each 256 columns: two halves, for scales and for least
 *                              values, then sixteen 6-bit integers from the lowest bit up: four
 *                              scales and four least values of the first 128 columns, then those of
 *                              the others
 *      LINEAR_K6               scale + 128 in a byte for each 16 columns, in order; after all of
 *                              these a half for each 256 columns; then zeros up to a multiple of 16
 *                              bytes
 */
enum linear_format {
        LINEAR_BFLOAT,
        LINEAR_INT8,
        LINEAR_INT4,
        LINEAR_E4M3,
        LINEAR_K4,
        LINEAR_K5,
        LINEAR_K6,
};

/* The format closest to a row type.  All row types can be packed as LINEAR_BFLOAT. */
linear_format linear_format_of(row_type type);
uint32_t linear_columns(linear_format format, uint32_t columns); /* padded */
/* Of a packed row with `columns` columns, padded or not. */
size_t linear_row_bytes(linear_format format, uint32_t columns);
size_t linear_row_scales(linear_format format, uint32_t columns); /* in units of two bytes */

/*
 * Any thread may call this.  A file row of a type that does not match `format` can only be packed
 * as LINEAR_BFLOAT, rounded once.
 */
void linear_pack_row(linear_format format, row_type type, const void *file_row, uint32_t columns,
                     void *ret_weights, uint16_t *ret_scales);

/*
 * Packed rows, one after the other, aligned to 16 bytes.  For LINEAR_GATE, rows of gate (part 0)
 * and of up (part 1) alternate in groups of 8.
 */
struct linear_matrix {
        linear_format format;
        uint32_t rows, columns; /* padded; rows to a multiple of 16, with zeros */
        const void *weights;
        const uint16_t *scales; /* aligned likewise; LINEAR_BFLOAT: NULL */
};

/*
 * A matrix is large if it keeps a GPU busy for long: then overlapping with neighbouring kernels
 * gains less than sharing multiprocessors with them costs.  The smallest matrix of Llama-3.1-8B
 * is large; the attention matrices of Llama-3.2-1B are not (bf16; measured on an H200).
 */
#define LINEAR_LARGE ((size_t)32 << 20) /* bytes of weights */

static inline bool linear_is_large(const linear_matrix *w)
{
        return w->rows * linear_row_bytes(w->format, w->columns) >= LINEAR_LARGE;
}

static inline uint32_t linear_gate_row(uint32_t part, uint32_t row)
{
        return row / 8 * 16 + part * 8 + row % 8;
}

enum linear_epilogue { LINEAR_STORE, LINEAR_ADD, LINEAR_GATE, LINEAR_ACT };

/* Whether results are bfloats in `out`, which a kernel of ours makes from the sums. */
static inline bool linear_is_activated(linear_epilogue epilogue)
{
        return epilogue == LINEAR_GATE || epilogue == LINEAR_ACT;
}

struct linear_args {
        linear_matrix w;
        const uint16_t *x;
        uint32_t x_columns;    /* w's columns padded to 64, with zeros */
        uint32_t rows_max;     /* the bucket: launches are made for this number */
        const uint32_t *count; /* number of rows, on the device */

        linear_epilogue epilogue;
        uint32_t n;        /* rows of w, not padded; LINEAR_GATE: of each part */
        const float *bias; /* (n); LINEAR_GATE: of gate, then of up; or NULL */
        float scale;       /* LINEAR_ADD; 0: none, like 1 */
        union {
                float *y;
                const float *factor; /* LINEAR_ACT; or NULL */
        };
        union {
                uint32_t y_columns; /* n of them are written */
                uint32_t factor_columns;
        };
        uint16_t *out; /* LINEAR_GATE and LINEAR_ACT write here, not to y */
        uint32_t out_columns;
        activation act;

        float *sums;       /* scratch; may be NULL where linear_scratch_size() returns 0 */
        unsigned *arrived; /* zeros before and after each call */
};

/*
 * Tells how much scratch a product needs on that device.  If a matrix has too few rows to keep a
 * GPU busy, k is divided into parts, and the block that ends last adds them up.  Products that
 * run one after the other can share the same scratch.
 */
void linear_scratch_size(const device *device, const linear_matrix *w, uint32_t rows_max,
                         size_t *ret_sums, size_t *ret_arrived);

/* This is not `struct linear`, an operator of kernels.h, which therefore needs its full name. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
int linear(device *device, const linear_args *args);
#pragma GCC diagnostic pop

#endif
