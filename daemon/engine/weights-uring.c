/*
 * Reading by io_uring: the one door to liburing.
 *
 * A started piece is queued, and handed to the kernel with the next wait.  A read that brings a
 * part of a piece is begun again with the rest, as pread() would be.  Its system calls are the
 * library's own, so the fault hook is asked here, before them and for what each read has brought.
 */
#include "daemon/engine/weights-reader.h"
#include "daemon/error.h"

#ifdef WITH_URING

#include <assert.h>
#include <liburing.h>
#include <stdlib.h>

#include "daemon/sys.h"

#define LOOK_NS 50000000 /* waits so long, then its caller looks around */

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

        assert(sqe); /* one for each piece there is */
        io_uring_prep_read(sqe, piece->fd, piece->buffer + piece->done,
                           (unsigned)(piece->bytes - piece->done), piece->offset + piece->done);
        /* By a thread of the kernel's: else what is in memory would be copied by ours, now. */
        io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
        io_uring_sqe_set_data(sqe, piece);
        u->queued++;
        return 0;
}

static int submit(struct uring_reader *u)
{
        int r = 0;

        while (u->queued) {
                r = sys_asked("io_uring_enter");
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

/* What one read has brought; its piece, if that is whole or failed. */
static int take(struct uring_reader *u, struct io_uring_cqe *cqe, struct piece **ret_piece)
{
        struct piece *piece = io_uring_cqe_get_data(cqe);
        ssize_t n = sys_asked("io_uring_read");
        int r;

        if (!n)
                n = cqe->res;
        /* A file system that would not read for it reads for us. */
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
                r = sys_asked("io_uring_enter");
        if (!r)
                r = io_uring_wait_cqe_timeout(&u->ring, &cqe, &while_ns);
        if (r == -ETIME || r == -EINTR || r == -EAGAIN)
                return 0;
        return r ? error_raise(r) : take(u, cqe, ret_piece);
}

/* The kernel itself reads ahead of what is in flight. */
static void uring_announce(struct reader *reader, int fd, uint64_t offset, size_t bytes)
{
        (void)reader;
        (void)fd;
        (void)offset;
        (void)bytes;
}

/* What is in flight writes to buffers that its owner is about to free. */
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
        r = sys_asked("io_uring_setup");
        if (!r) /* one more, for the clock of older kernels */
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
