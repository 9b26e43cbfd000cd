/*
 * Pinned memory that numbers pass through on their way to the device and back: some pieces of one
 * size, that are taken, filled, sent and given back, again and again.
 *
 * Threads have a piece each and fill them at the same time, while others are on their way.  Whoever
 * gives one back that is still being uploaded need not wait: who takes it next does.  So there is
 * one thing that nobody may do, and that is to take a piece while he has one.
 *
 * What it puts on a stream it puts there under a lock, so streams may be shared by all who use this.
 * Any thread.  Functions return 0 or a negative errno of device.h.
 */
#ifndef KERNELS_CUDA_STAGING_H
#define KERNELS_CUDA_STAGING_H

#include "kernels/cuda/device.h"

struct staging;

struct piece {
        uint8_t *at; /* pinned */
        moment *last;
        piece *next;
};

/* Bytes of a piece are a multiple of 16. */
int staging_new(device *device, uint32_t pieces, size_t bytes, staging **ret_staging);
void staging_free(staging *staging);          /* takes NULL; when all were given back */
size_t staging_bytes(const staging *staging); /* of a piece */

/* Of those that were given back, the first; nothing is on its way from it any more. */
int staging_take(staging *staging, piece **ret_piece);
void staging_give(staging *staging, piece *piece);

/*
 * Put on the stream.  `count` runs of so many bytes, one behind the other from `from` on in the piece,
 * and `stride` bytes apart there.
 */
int staging_upload(staging *staging, stream stream, piece *piece, void *to, size_t stride,
                   size_t from, size_t bytes, uint32_t count);
int staging_download(staging *staging, stream stream, piece *piece, const void *from, size_t bytes);
int staging_clear(staging *staging, stream stream, piece *piece, void *to, size_t bytes);
/* For the last of these with that piece, and so for all that were put on its stream before. */
int staging_wait(staging *staging, piece *piece);

#endif
