/*
 * Features of the backend that can be disabled, to find the one that causes a fault:
 *
 *      SMV_CUDA_WITHOUT=early,graph,blas   in the environment, any of them
 *
 *      early   a kernel begins only after its predecessor in the stream has ended
 *      graph   the host launches every kernel of every step; no graph is captured
 *      blas    cuBLASLt is not opened; the backend's own kernels multiply all rows
 *
 * Each is slower.  The tokens are the same, or with "blas" they differ by rounding only.
 */
#ifndef KERNELS_CUDA_FEATURES_H
#define KERNELS_CUDA_FEATURES_H

#include <stddef.h>

enum feature { FEATURE_EARLY, FEATURE_GRAPH, FEATURE_BLAS, FEATURES };

/* Reads the environment at the time of the call. */
bool feature_is_disabled(feature feature);
/*
 * True if the variable names only features that exist; otherwise false, with a sentence in
 * ret_errtext.
 */
bool features_are_known(char *ret_errtext, size_t errtext_bytes);

#endif
