/*
 * Parts of the backend that can be left out, to find the one that is at fault:
 *
 *      SMV_CUDA_WITHOUT=early,graph,blas   in the environment, any of them
 *
 *      early   a kernel begins only after its predecessor in the stream has ended
 *      graph   the host launches every kernel of every step; no step is recorded
 *      blas    cuBLASLt is not opened; the backend's own kernels multiply all rows
 *
 * Each is slower and gives the same tokens, or with "blas" tokens that differ by rounding only.
 */
#ifndef KERNELS_CUDA_SWITCHES_H
#define KERNELS_CUDA_SWITCHES_H

#include <stddef.h>

enum part { PART_EARLY, PART_GRAPH, PART_BLAS, PARTS };

/* As the environment says now. */
bool is_left_out(part part);
/* The variable names only parts that exist; else false, and a sentence. */
bool switches_are_known(char *ret_why, size_t why_bytes);

#endif
