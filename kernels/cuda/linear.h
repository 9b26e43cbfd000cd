/*
 * Rows of a step times a matrix of weights:
 *
 *      sum(r, n) = sum over k of x[r][k] * w[n][k]
 *
 *      LINEAR_STORE    y[r][n] = sum + bias[n]
 *      LINEAR_ADD      y[r][n] += sum + bias[n]
 *      LINEAR_GATE     out[r][n] = bfloat(act(sum of gate + its bias) * (sum of up + its bias))
 *
 *      x       (rows_max, x_columns) bfloats; y (rows_max, n) floats; out (rows_max, out_columns)
 *              bfloats, of which columns past n are never written: who makes it clears it
 *      w       (rows, columns), see below
 *      grid    (chunks of 64 rows of x, tiles of 16 rows of w, parts of k), 4 or 8 warps
 *      moves   all of w once; rows of x once a tile, out of the cache
 *      order   k goes in steps of 64 or 128 (below); step i is added by warp i % warps of part
 *              i / warps % parts, in order of i; then warps are added in order, then parts.  Warps and
 *              parts depend on the matrix and the GPU alone, so a row's sums are the same bits
 *              however many rows there are and wherever it is among them.
 *
 * Made for few rows, where all that counts is to keep reading weights: rows of w are the 16 rows of
 * the tensor cores' product, rows of x its 8 columns, and there is no staging.  A product does
 * not mind in which order k is visited if both sides agree, so the 16 bytes that a lane reads in one
 * go, eight k in a row of w and the same eight of x, are taken as its share of two
 * products.  The first steps of w are on their way before the kernel waits for the one
 * before it.
 *
 * Rows of x at or past *count, up to rows_max, are not read, and nothing is stored for them.
 *
 * It can not: read rows of x in another order than they lie in (who wants some of them gathers
 * them), and be quick for hundreds of rows: each chunk fetches w again, and multiplies 64 rows
 * even if it has one.
 */
#ifndef KERNELS_CUDA_LINEAR_H
#define KERNELS_CUDA_LINEAR_H

#include "kernels/cuda/device.h"
#include "kernels/kernels.h"

/*
 * How weights are kept: as numbers, or as the integers of their file (or what it has instead), each exact as a
 * bfloat, with what multiplies them.  A weight itself is never rounded, nor is it ever made: of a group of 32
 * columns the tensor cores add up integer * x, and that sum is multiplied by the scale.
 *
 *      LINEAR_BFLOAT   bfloat(weight): exact for ROW_BF16, for others rounded once.  Steps of 64
 *      LINEAR_INT8     weight = scale * integer of 8 bits (Q8_0).  Steps of 64
 *      LINEAR_INT4     weight = scale * (integer of 4 bits - 8) (Q4_0).  Steps of 128
 *      LINEAR_E4M3     weight = scale * number of 8 bits (kernels/rows.h), rounded once by who makes it (F8_E4M3).
 *                      Steps of 64
 *      LINEAR_K4, K5   weight = scale * integer of 4, 5 bits - least (Q4_K, Q5_K).  scale is a half times
 *                      six bits, least another half times six bits: exact floats.  Steps of 128
 *      LINEAR_K6       weight = scale * (integer of 6 bits - 32) (Q6_K), of 16 columns.  scale is a half times a
 *                      signed byte, an exact float.  Steps of 128
 *
 * To a row's sum s a group adds, all in floats, each fma rounded once:
 *
 *      LINEAR_BFLOAT   the products, without a scale
 *      LINEAR_INT8, INT4, E4M3 s = fma(scale, sum of integer * x, s)
 *      LINEAR_K4, K5           that; then s = fma(-least, sum of x, s), which the tensor cores add up with
 *                              weights of 1
 *      LINEAR_K6               that, of the first 16 columns, then of the others
 *
 * Group after group.  Within a group it is the tensor cores' order, of columns 8t .. 8t+3 of all t = 0 .. 3,
 * then of 8t+4 .. 8t+7; LINEAR_K6: of the first 16, and apart from them of the others.
 *
 * A packed row is its weights, and apart from them its scales, which together are as many bytes as in the
 * file (LINEAR_K6: up to 14 more a row).  Columns are padded with zeros.  Where a group's 32 columns lie,
 * t = 0 .. 3 being the lane of those at 8t .. 8t+7:
 *
 *      LINEAR_BFLOAT   in order
 *      LINEAR_INT8     signed bytes.  Of each 64 columns, lane t has bytes 16t ..: 8 of the first
 *                      group, then 8 of the second; of each four, in order 0 2 1 3
 *      LINEAR_E4M3     the same, of codes
 *      LINEAR_INT4     number + 8 in four bits.  Of each 128 columns, lane t has bytes 16t ..: four
 *                      words, one of each group, where column i is in bits 2i .. (i even) or
 *                      2i + 14 .. (i odd)
 *      LINEAR_K4       the same, without the 8
 *      LINEAR_K5       80 bytes of each 128 columns: lower four bits as LINEAR_K4, then lane t has bytes
 *                      64 + 4t ..: the fifth bits of four groups, group j's from bit 4j on, column i of them in
 *                      bit i/2 (i even) or i/2 + 16 (i odd)
 *      LINEAR_K6       96 bytes of each 128 columns, number + 32.  Here lane t has columns 4t .. 4t+3 and
 *                      16 + 4t .. 16 + 4t+3 of a group.  Lower four bits as LINEAR_K4, then lane t has bytes
 *                      64 + 8t ..: two words of two groups each, the second one's bits from bit 8 on, the upper
 *                      two bits of column i in bits i .. (i even) or i + 15 .. (i odd)
 *
 * And scales:
 *
 *      LINEAR_INT8, INT4       a half for each group, in order
 *      LINEAR_E4M3             a float for each 128 columns, in order.  Where one of their codes is NaN, the scale is:
 *                              of any sum that has one of them that makes what the code would make, and products
 *                              need not look for that code, which they take for 480
 *      LINEAR_K4, K5           16 bytes of each 256 columns: two halves, of scales and of least values, then
 *                              sixteen times six bits from the lowest bit up: four scales and four least
 *                              values of the first 128 columns, then of the others
 *      LINEAR_K6               scale + 128 in a byte for each 16 columns, in order; behind them all a half for
 *                              each 256; then zeros up to a multiple of 16 bytes
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

/* The closest one; all can become LINEAR_BFLOAT. */
linear_format linear_format_of(row_type type);
uint32_t linear_columns(linear_format format, uint32_t columns); /* padded */
/* Of a packed row of so many columns, padded or not. */
size_t linear_row_bytes(linear_format format, uint32_t columns);
size_t linear_row_scales(linear_format format, uint32_t columns); /* in pieces of two bytes */

/* Any thread.  What is not a file row of that format becomes LINEAR_BFLOAT, rounded once, only. */
void linear_pack_row(linear_format format, row_type type, const void *file_row, uint32_t columns,
                     void *ret_weights, uint16_t *ret_scales);

/*
 * Packed rows, one after the other; at a multiple of 16 bytes.  For LINEAR_GATE, rows of gate (part 0)
 * and of up (part 1) alternate in groups of 8.
 */
struct linear_matrix {
        linear_format format;
        uint32_t rows, columns; /* padded: rows to a multiple of 16, with zeros */
        const void *weights;
        const uint16_t *scales; /* likewise; LINEAR_BFLOAT: NULL */
};

/*
 * A GPU is long busy with it: what it gains from overlapping with its neighbours is less than what it
 * loses by sharing multiprocessors with them.  The smallest matrix of Llama-3.1-8B is one, those of
 * Llama-3.2-1B's attention are none (bf16; measured on an H200).
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

enum linear_epilogue { LINEAR_STORE, LINEAR_ADD, LINEAR_GATE };

struct linear_args {
        linear_matrix w;
        const uint16_t *x;
        uint32_t x_columns;    /* w's columns padded to 64, zeros there */
        uint32_t rows_max;     /* what launches are made for: the bucket */
        const uint32_t *count; /* of rows, on the device */

        linear_epilogue epilogue;
        uint32_t n;        /* of w, not padded; LINEAR_GATE: of each part */
        const float *bias; /* (n), LINEAR_GATE: gate's, then up's; or NULL */
        float *y;
        uint32_t y_columns; /* of which n are written */
        uint16_t *out;      /* instead of y: LINEAR_GATE */
        uint32_t out_columns;
        activation act;

        float *sums;       /* scratch; may be NULL where linear_room() says 0 */
        unsigned *arrived; /* zeros, and left so */
};

/*
 * How much scratch it takes, on that device: where a matrix has too few rows to keep a GPU busy, k is
 * in parts, and whoever ends last adds them up.  Two that run one after the other can have the same.
 */
void linear_room(const device *device, const linear_matrix *w, uint32_t rows_max, size_t *ret_sums,
                 size_t *ret_arrived);

/* Not a struct linear, which an operator of kernels.h is: that goes by its full name. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
int linear(device *device, const linear_args *args);
#pragma GCC diagnostic pop

#endif
