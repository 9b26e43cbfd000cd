/*
 * Functions of the real device for the code that calls another NVIDIA library (blas-cuda.cc).
 */
#ifndef KERNELS_CUDA_DEVICE_CUDA_H
#define KERNELS_CUDA_DEVICE_CUDA_H

#include "kernels/cuda/device.h"

/* Returns a cudaStream_t.  From now on, this thread's CUDA calls go to that device. */
int device_cuda_stream(device *device, stream stream, void **ret_stream);
/*
 * Reports that such a library failed, which makes the device lost.  Returns -EIO, and
 * device_errtext() describes the failure.
 */
int device_cuda_lose(device *device, const char *doing, const char *what);

#endif
