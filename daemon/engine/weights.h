/*
 * Weights: a model file's tensors on their way into a backend's matrices.
 *
 * Which tensor goes where is engine/model.c's knowledge; how bytes get from the
 * file to weights_put() is this module's: large reads, in order, through one
 * buffer.  Later ways of reading (io_uring, the crew from the page cache) go
 * behind the same call.  Runs before the threads start.
 */
#ifndef DAEMON_ENGINE_WEIGHTS_H
#define DAEMON_ENGINE_WEIGHTS_H

#include "daemon/files/checkpoint.h"
#include "kernels/kernels.h"

struct weights_load {
        const struct tensor *tensor;
        struct mat *mat;
        uint32_t part;
};

/* All of them, sorted by their place in the files.  -EIO: the file became shorter meanwhile. */
int weights_read(const struct checkpoint *checkpoint, struct kernels *kernels,
                 struct weights_load *loads, uint32_t load_count, char *why, size_t why_bytes);

/* A small tensor of one row (a norm, a bias) as floats on the host, at ret_floats[0 .. columns). */
int weights_read_floats(const struct checkpoint *checkpoint, const struct tensor *tensor,
                        float *ret_floats, char *why, size_t why_bytes);

/* 1: of one type and shape, and the same bytes.  0, or negative errno and *why. */
int weights_equal(const struct checkpoint *checkpoint, const struct tensor *a,
                  const struct tensor *b, char *why, size_t why_bytes);

#endif
