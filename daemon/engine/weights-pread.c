#include <assert.h>
#include <stdlib.h>

#include "daemon/engine/weights-reader.h"
#include "base/error.h"
#include "base/sys.h"

/* read per call, so that the caller gets control even on a slow disk */
#define ONCE ((size_t)1 << 20)

struct pread_reader {
        struct reader ops;
        struct piece *piece; /* the piece being read */
        bool ahead;
};

static int pread_start(struct reader *reader, struct piece *piece)
{
        struct pread_reader *p = (struct pread_reader *)reader;

        assert(!p->piece);
        p->piece = piece;
        return 0;
}

static int pread_wait(struct reader *reader, struct piece **ret_piece)
{
        struct pread_reader *p = (struct pread_reader *)reader;
        struct piece *piece = p->piece;
        size_t left = piece->bytes - piece->done;
        ssize_t n = sys_pread(piece->fd, piece->buffer + piece->done, left < ONCE ? left : ONCE,
                              piece->offset + piece->done);
        int r = piece_advance(piece, n);

        *ret_piece = r || piece->done == piece->bytes ? piece : NULL;
        if (*ret_piece)
                p->piece = NULL;
        return r;
}

/* Only advice: if the kernel ignores it, the reads work all the same. */
static void pread_announce(struct reader *reader, int fd, uint64_t offset, size_t bytes)
{
        if (((struct pread_reader *)reader)->ahead)
                (void)sys_read_ahead(fd, offset, bytes);
}

static void pread_close(struct reader *reader)
{
        free(reader);
}

int reader_open_pread(bool ahead, struct reader **ret_reader)
{
        struct pread_reader *p = calloc(1, sizeof(*p));

        if (!p)
                return error_raise(-ENOMEM);
        p->ahead = ahead;
        p->ops = (struct reader){ pread_start, pread_wait, pread_announce, pread_close };
        *ret_reader = &p->ops;
        return 0;
}
