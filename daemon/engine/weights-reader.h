/*
 * A reader: reads pieces of files into buffers, one after another or several at a time.
 *
 * Pieces that were started complete in any order.  reader->wait() returns a complete piece, or NULL
 * after a short while, so that the caller can do other checks.  A reader belongs to one thread at a
 * time.
 */
#ifndef DAEMON_ENGINE_WEIGHTS_READER_H
#define DAEMON_ENGINE_WEIGHTS_READER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct piece {
        int fd;
        uint64_t offset;
        size_t bytes, done;
        char *buffer;
};

struct reader {
        /* Takes a piece.  There is space for as many pieces as the reader was opened for. */
        int (*start)(struct reader *reader, struct piece *piece);
        /*
         * Returns 0 and a complete piece, or NULL: not yet.  Or returns a negative errno, and the
         * piece if one piece caused it; -ENODATA: the file ends before the piece does.
         */
        int (*wait)(struct reader *reader, struct piece **ret_piece);
        /* A hint that this range will be started soon; may do nothing. */
        void (*announce)(struct reader *reader, int fd, uint64_t offset, size_t bytes);
        /* After it returns, nothing is written to the buffers any more. */
        void (*close)(struct reader *reader);
};

/* One pread() at a time.  With `ahead`, the kernel reads announced ranges ahead. */
int reader_open_pread(bool ahead, struct reader **ret_reader);
/* Up to `depth` reads at once by io_uring; -ENOSYS, -EPERM and others: not available. */
int reader_open_uring(uint32_t depth, struct reader **ret_reader);

/*
 * Adds the result of a read.  Returns 0, or the error for wait().  Read on if the piece is not
 * complete.
 */
static inline int piece_advance(struct piece *piece, ssize_t n)
{
        if (n < 0)
                return n == -EINTR ? 0 : (int)n;
        piece->done += (size_t)n;
        return n ? 0 : -ENODATA;
}

#endif
