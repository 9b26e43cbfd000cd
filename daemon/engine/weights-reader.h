/*
 * A reader: pieces of files into buffers, one after another or several at a time.
 *
 * Started pieces are read in any order; reader_wait() gives one that is whole, or none after a
 * short while, so that who waits can look around.  A reader belongs to one thread at a time.
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
        struct piece *next; /* for whoever has it */
};

struct reader {
        /* Takes a piece; there is room for as many as it was opened for. */
        int (*start)(struct reader *reader, struct piece *piece);
        /* 0 and a whole piece, or NULL: not yet.  Negative errno, and the piece if one is to blame;
         * -ENODATA: its file ends before it does. */
        int (*wait)(struct reader *reader, struct piece **ret_piece);
        /* Begins to read what will be started soon, or does nothing. */
        void (*announce)(struct reader *reader, int fd, uint64_t offset, size_t bytes);
        /* When it returns, nothing is written to the buffers any more. */
        void (*close)(struct reader *reader);
};

/* One pread() at a time.  With `ahead`, what is announced is read ahead by the kernel. */
int reader_open_pread(bool ahead, struct reader **ret_reader);
/* So many at once by io_uring; -ENOSYS, -EPERM and others: it is not to be had. */
int reader_open_uring(uint32_t depth, struct reader **ret_reader);

/* What a read has brought: 0, or what wait() returns; a piece that is not whole is to be read on. */
static inline int piece_advance(struct piece *piece, ssize_t n)
{
        if (n < 0)
                return n == -EINTR ? 0 : (int)n;
        piece->done += (size_t)n;
        return n ? 0 : -ENODATA;
}

#endif
