/*
 * Reading by io_uring; the only file that uses liburing.
 *
 * A started piece is queued, and submitted to the kernel with the next wait.  A read that returns
 * part of a piece is started again for the rest, as with pread().  The library makes the system
 * calls itself.  So this file asks the fault hook before them, and for the result of each read.
 */
#include "daemon/engine/weights-reader.h"
#include "base/error.h"

#ifdef WITH_URING

#include <assert.h>
#include <liburing.h>
#include <stdlib.h>

#include "base/sys.h"

#define LOOK_NS 50000000 /* the longest wait, so that the caller can do other checks */

struct uring_reader {
        struct reader ops;
        struct io_uring ring;
        uint32_t queued, in_flight;
};

static struct uring_reader *uring_of(struct reader *reader)
{
        return (struct uring_reader *)reader;
}

static int uring_start(struct reader *reader, struct piece *piece)
{
        struct uring_reader *u = uring_of(reader);
        struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

        assert(sqe); /* there is an entry for each piece */
        io_uring_prep_read(sqe, piece->fd, piece->buffer + piece->done,
                           (unsigned)(piece->bytes - piece->done), piece->offset + piece->done);
        /* A kernel thread reads it; otherwise this thread would copy cached data here and now. */
        io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
        io_uring_sqe_set_data(sqe, piece);
        u->queued++;
        return 0;
}

static int submit(struct uring_reader *u)
{
        int r = 0;

        while (u->queued) {
                r = sys_injected_fault("io_uring_enter");
                if (!r)
                        r = io_uring_submit(&u->ring);
                if (r == -EINTR)
                        continue;
                if (r < 0)
                        return r == -EAGAIN || r == -EBUSY ? 0 : error_raise(r);
                u->queued -= (uint32_t)r;
                u->in_flight += (uint32_t)r;
        }
        return 0;
}

/* Handles the result of one read; returns its piece if it is complete or has failed. */
static int take(struct uring_reader *u, struct io_uring_cqe *cqe, struct piece **ret_piece)
{
        struct piece *piece = io_uring_cqe_get_data(cqe);
        ssize_t n = sys_injected_fault("io_uring_read");
        int r;

        if (!n)
                n = cqe->res;
        /* If the file system does not support it, read with pread(). */
        if (n == -EAGAIN || n == -EOPNOTSUPP)
                n = sys_pread(piece->fd, piece->buffer + piece->done, piece->bytes - piece->done,
                              piece->offset + piece->done);
        r = piece_advance(piece, n);
        io_uring_cqe_seen(&u->ring, cqe);
        u->in_flight--;
        if (!r && piece->done < piece->bytes)
                return uring_start(&u->ops, piece);
        *ret_piece = piece;
        return r;
}

static int uring_wait(struct reader *reader, struct piece **ret_piece)
{
        struct uring_reader *u = uring_of(reader);
        struct __kernel_timespec while_ns = { .tv_nsec = LOOK_NS };
        struct io_uring_cqe *cqe;
        int r;

        *ret_piece = NULL;
        r = submit(u);
        if (!r)
                r = sys_injected_fault("io_uring_enter");
        if (!r)
                r = io_uring_wait_cqe_timeout(&u->ring, &cqe, &while_ns);
        if (r == -ETIME || r == -EINTR || r == -EAGAIN)
                return 0;
        return r ? error_raise(r) : take(u, cqe, ret_piece);
}

/* Nothing to do: the pieces in flight already read ahead. */
static void uring_announce(struct reader *reader, int fd, uint64_t offset, size_t bytes)
{
        (void)reader;
        (void)fd;
        (void)offset;
        (void)bytes;
}

/* Wait for reads in flight: they write to buffers that the owner is about to free. */
static void uring_close(struct reader *reader)
{
        struct uring_reader *u = uring_of(reader);
        struct io_uring_cqe *cqe;

        while (u->in_flight) {
                if (io_uring_wait_cqe(&u->ring, &cqe))
                        continue;
                io_uring_cqe_seen(&u->ring, cqe);
                u->in_flight--;
        }
        io_uring_queue_exit(&u->ring);
        free(u);
}

int reader_open_uring(uint32_t depth, struct reader **ret_reader)
{
        struct uring_reader *u = calloc(1, sizeof(*u));
        int r;

        if (!u)
                return error_raise(-ENOMEM);
        r = sys_injected_fault("io_uring_setup");
        if (!r) /* one more entry, for the timeout on older kernels */
                r = io_uring_queue_init(depth + 1, &u->ring, 0);
        if (r) {
                free(u);
                return error_raise(r);
        }
        u->ops = (struct reader){ uring_start, uring_wait, uring_announce, uring_close };
        *ret_reader = &u->ops;
        return 0;
}

#else

int reader_open_uring(uint32_t depth, struct reader **ret_reader)
{
        (void)depth;
        (void)ret_reader;
        return error_raise(-ENOSYS);
}

#endif
