/*
 * Norms of rows (struct row_norm of kernels.h), and NORM_NONE, which changes nothing:
 *
 *      norm            out[r] = bfloat(norm(x[r])), for a product with weights.  The padding of out
 *                      is zero
 *      norm_floats     to[r] = scale * norm(clip(x[r])), or after * (to[r] + that), for each piece
 *                      of a row
 *
 *      x       (rows, columns) floats; out (rows, width) bfloats; to floats, may be x
 *      grid    a block of 256 for each row of the bucket, and for each piece of it
 *      moves   4 bytes a number in, twice or three times, the first time from memory; 2 bytes a
 *              number out, or 4, or 4 in and out
 *      order   for the sum of a row and then for that of its squares, thread i adds those at i,
 *              i + 256, ...; then lanes are added, then warps
 *
 * A LayerNorm subtracts the mean before it squares: the squares of numbers that are far from 0 and
 * close to each other would lose what they differ by.
 */
#ifndef KERNELS_CUDA_NORM_H
#define KERNELS_CUDA_NORM_H

#include "kernels/cuda/device.h"
#include "kernels/kernels.h"

struct norm_args {
        const float *x;
        row_norm norm;
        uint32_t columns, width;
        uint16_t *out;
        /* Number of rows of out. */
        const uint32_t *count;
        /*
         * For each row of out, the row of x that it is computed from; NULL: the row of the same
         * number.
         */
        const uint32_t *rows;
        uint32_t rows_max;
};

int norm(device *device, const norm_args *args);

#define NORM_PIECES 2u
struct norm_piece { /* consecutive numbers of a row that are normalised together */
        uint32_t first, columns;
        uint32_t to; /* where its results begin; may differ from `first` */
        row_norm norm;
};

struct norm_floats_args {
        const float *x;
        float *to;
        uint32_t x_columns, to_columns; /* from one row to the next */
        norm_piece pieces[NORM_PIECES];
        uint32_t piece_count;
        /* Not 0: the row has so many pieces like the first one, one after the other. */
        uint32_t repeats;
        float clip;  /* 0: none */
        float scale; /* 0: none */
        bool add;
        float after;           /* with `add`; 0: none */
        const uint32_t *count; /* number of rows, on the device */
        uint32_t rows_max;
};

int norm_floats(device *device, const norm_floats_args *args);

#endif
