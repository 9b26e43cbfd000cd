/*
 * Pinned memory through which numbers pass on their way to the device and back.  There are some
 * pieces of one size, which are taken, filled, sent and given back, again and again.
 *
 * Each thread has a piece, and threads fill their pieces while other pieces are being copied.  A
 * thread that gives a piece back during its upload does not wait; the thread that takes it next
 * does.  There is one restriction: a thread must not take a second piece while it has one.
 *
 * Work is put on a stream under a lock, so all users of this module may share streams.  Any
 * thread may call these functions.  They return 0 or a negative errno of device.h.
 */
#ifndef KERNELS_CUDA_STAGING_H
#define KERNELS_CUDA_STAGING_H

#include "kernels/cuda/device.h"

struct staging;

struct piece {
        uint8_t *at; /* pinned */
        event *last;
        piece *next;
};

/* The bytes of a piece must be a multiple of 16. */
int staging_new(device *device, uint32_t pieces, size_t bytes, staging **ret_staging);
/* NULL is fine.  All pieces must have been given back. */
void staging_free(staging *staging);
size_t staging_bytes(const staging *staging); /* of a piece */

/* Takes the piece that was given back first, and waits until no copy from it is in progress. */
int staging_take(staging *staging, piece **ret_piece);
void staging_give(staging *staging, piece *piece);

/*
 * These put work on the stream.  staging_upload() uploads `count` runs of `bytes` bytes.  In the
 * piece they are contiguous, beginning at `from`; at `to` they are `stride` bytes apart.
 */
int staging_upload(staging *staging, stream stream, piece *piece, void *to, size_t stride,
                   size_t from, size_t bytes, uint32_t count);
int staging_download(staging *staging, stream stream, piece *piece, const void *from, size_t bytes);
int staging_clear(staging *staging, stream stream, piece *piece, void *to, size_t bytes);
/* Waits for the last of these with that piece, and so for all earlier work on its stream. */
int staging_wait(staging *staging, piece *piece);

#endif
