/*
 * Weights: reads a checkpoint's tensors into the matrices of backends.
 *
 * engine/model.c knows which tensor goes where; this module brings the bytes from the files to
 * weights_put().  Tensors are cut into pieces: whole rows, at most 8 MiB, in the order of the
 * files.  Each thread takes the next piece, reads it into a buffer and puts its rows.  So one large
 * tensor keeps all threads busy, and reading overlaps with repacking.  The place of a row does not
 * depend on the thread that brings it.  The matrices' bits are the same for every way, thread count
 * and order.
 *
 *      cached  the files are in the page cache: each thread copies a piece out of it
 *      uring   they are not: each thread keeps several reads in flight (io_uring)
 *      plain   they are not, and io_uring is not available: each thread reads one piece and
 *              announces the next
 *
 * `auto` checks for a sample of the pieces whether they are in the page cache, and chooses cached
 * or uring.  If uring is forbidden or was not built, `auto` uses plain and logs it.  If uring was
 * asked for by name, its absence is an error.
 *
 * The files are never mapped: a file that is truncated meanwhile causes an error, not a SIGBUS.  At
 * the end, each file must still be in the state in which its header was checked.
 *
 * Memory: at most WEIGHTS_BUFFERS_MAX buffers of at most 8 MiB, plus space for as many scales.
 * They are allocated before the first read and freed after the last.  Loading cannot be slowed down
 * or resumed.  A read that the kernel does not finish is waited for.
 */
#ifndef DAEMON_ENGINE_WEIGHTS_H
#define DAEMON_ENGINE_WEIGHTS_H

#include <stdbool.h>

#include "daemon/files/checkpoint.h"
#include "daemon/model/load-way.h"
#include "kernels/kernels.h"

#define WEIGHTS_BUFFERS_MAX 16u
#define WEIGHTS_PIECE_MAX   ((size_t)8 << 20)

/* A tensor that goes to two matrices is read once for each. */
struct weights_load {
        const struct tensor *tensor;
        struct kernels *kernels; /* the backend of the matrix */
        struct matrix *matrix;
        uint32_t part;
};

struct weights_progress {
        uint64_t bytes; /* bytes that are in their matrices */
        enum load_way way;
};

/*
 * The reading threads belong to the load.  The caller waits for them, and meanwhile calls go_on()
 * about every WEIGHTS_LOOK_NS.  If it returns false, the reads in flight are waited for, and the
 * load ends with -ECANCELED.
 */
#define WEIGHTS_LOOK_NS 20000000u

struct weights_conf {
        enum load_way way;
        uint32_t threads; /* number of reading threads; 0: one for each core that we may run on */
        bool (*go_on)(void *arg, const struct weights_progress *progress); /* or NULL */
        void *arg;
};

/*
 * Reads all loads; sorts them by their place in the files.  *ret_way is the way that was used.
 * Returns 0 or negative errno and *why; -EIO: a file became shorter, or changed; or the error of
 * weights_put().  If the backend was lost meanwhile, the backend knows more (kernels.h: lost).
 */
int weights_read(const struct checkpoint *checkpoint, struct weights_load *loads,
                 uint32_t load_count, const struct weights_conf *conf, enum load_way *ret_way,
                 char *why, size_t why_bytes);

/*
 * Returns 1 if both have the same type, shape and bytes.  Returns 0 if not, or if one has scales.
 * Otherwise returns a negative errno and *why.
 */
int weights_equal(const struct checkpoint *checkpoint, const struct tensor *a,
                  const struct tensor *b, const struct weights_conf *conf, char *why,
                  size_t why_bytes);

#endif
