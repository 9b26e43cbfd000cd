/*
 * What the door to another of NVIDIA's libraries needs of the real device.
 */
#ifndef KERNELS_CUDA_DEVICE_CUDA_H
#define KERNELS_CUDA_DEVICE_CUDA_H

#include "kernels/cuda/device.h"

/* A cudaStream_t; and this thread's calls are for that device from now on. */
int device_cuda_stream(device *device, stream stream, void **ret_stream);
/* Such a library failed, which is the end of the device: -EIO, and device_why() says it. */
int device_cuda_lose(device *device, const char *doing, const char *what);

#endif
