/*
 * Weights: a checkpoint's tensors on their way into the matrices of backends.
 *
 * Which tensor goes where is engine/model.c's knowledge; how bytes get from the files to
 * weights_put() is this module's.  Tensors are cut into pieces, whole rows of at most 8 MiB, in
 * the order of the files.  Threads take the next piece, read it into a buffer and put its rows; so
 * one large tensor keeps all of them busy, and reading and repacking overlap.  Where rows go does
 * not depend on who brings them: the matrices' bits are the same whatever the way, the threads or
 * the order.
 *
 *      cached  the files are in the page cache: each thread copies a piece out of it
 *      uring   they are not: each thread keeps several reads in flight (io_uring)
 *      plain   the same where io_uring is not to be had: each thread reads, the next is announced
 *
 * `auto` asks about a sample of the pieces whether they are in memory, and takes cached or uring;
 * uring that is forbidden or was not built becomes plain, with a word in the log, unless it was
 * asked for by name.
 *
 * The files are never mapped: one that is cut short meanwhile is an error and not a SIGBUS.  When
 * all was read each must still be what it was when its header was checked.
 *
 * Memory: WEIGHTS_BUFFERS_MAX buffers of 8 MiB or less, with room for as many scales, taken before the first read and given back
 * after the last.  Cannot be slowed down or resumed, and a read that the kernel does not finish is
 * waited for.
 */
#ifndef DAEMON_ENGINE_WEIGHTS_H
#define DAEMON_ENGINE_WEIGHTS_H

#include <stdbool.h>

#include "daemon/files/checkpoint.h"
#include "daemon/load-way.h"
#include "kernels/kernels.h"

#define WEIGHTS_BUFFERS_MAX 16u
#define WEIGHTS_PIECE_MAX   ((size_t)8 << 20)

/* A tensor that two want is read for each of them. */
struct weights_load {
        const struct tensor *tensor;
        struct kernels *kernels; /* whose matrix it is */
        struct mat *mat;
        uint32_t part;
};

struct weights_progress {
        uint64_t bytes; /* that are in their matrices */
        enum load_way way;
};

/*
 * The threads that read are the load's own.  The caller waits for them, and meanwhile asks
 * go_on() about every WEIGHTS_LOOK_NS; false: what is being read is waited for, and then it ends
 * with -ECANCELED.
 */
#define WEIGHTS_LOOK_NS 20000000u

struct weights_conf {
        enum load_way way;
        uint32_t threads; /* that read; 0: one for each core we may run on */
        bool (*go_on)(void *arg, const struct weights_progress *progress); /* or NULL */
        void *arg;
};

/*
 * All of them; sorts them by their place in the files.  *ret_way: which it was.  0 or negative
 * errno and *why; -EIO: a file became shorter, or changed; or what weights_put() said.  Where
 * the backend was lost over it, it knows more (kernels.h: lost).
 */
int weights_read(const struct checkpoint *checkpoint, struct weights_load *loads,
                 uint32_t load_count, const struct weights_conf *conf, enum load_way *ret_way,
                 char *why, size_t why_bytes);

/* 1: of one type and shape, and the same bytes; not asked of those with scales.  0, or negative errno and *why. */
int weights_equal(const struct checkpoint *checkpoint, const struct tensor *a,
                  const struct tensor *b, const struct weights_conf *conf, char *why,
                  size_t why_bytes);

#endif
