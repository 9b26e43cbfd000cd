/*
 * Parts of the backend that can be switched off, to find the part that causes a fault:
 *
 *      SMV_CUDA_WITHOUT=early,graph,blas   in the environment, any of them
 *
 *      early   a kernel begins only after its predecessor in the stream has ended
 *      graph   the host launches every kernel of every step; no step is recorded
 *      blas    cuBLASLt is not opened; the backend's own kernels multiply all rows
 *
 * Each is slower.  The tokens are the same, or with "blas" they differ by rounding only.
 */
#ifndef KERNELS_CUDA_SWITCHES_H
#define KERNELS_CUDA_SWITCHES_H

#include <stddef.h>

enum part { PART_EARLY, PART_GRAPH, PART_BLAS, PARTS };

/* Reads the environment at the time of the call. */
bool is_left_out(part part);
/*
 * True if the variable names only parts that exist; otherwise false, with a sentence in ret_why.
 */
bool switches_are_known(char *ret_why, size_t why_bytes);

#endif
