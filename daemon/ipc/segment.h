/*
 * A segment: memory that the daemon makes and one client maps.
 *
 * One side writes it and the other side reads it, and each side has only that right.  For a segment
 * that the daemon writes, the client gets a descriptor that was opened again for reading only.  The
 * file's mode keeps other users from opening it for writing.  (A process of the daemon's own uid
 * can do so.  It then corrupts only data that it reads itself: the daemon never reads back what it
 * wrote there.)  A segment that the client writes is mapped by the daemon for reading only.
 *
 * Size and pages exist from the start and are sealed.  So no truncation can make a read fault, and
 * missing memory is refused here instead of being noticed later.  Writing is not sealed, because
 * segment_free() must be able to give the pages back at once, even if a client still maps them.  A
 * segment is made for one connection and never used for another.
 */
#ifndef DAEMON_IPC_SEGMENT_H
#define DAEMON_IPC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

enum segment_writer { SEGMENT_DAEMON_WRITES, SEGMENT_CLIENT_WRITES };

struct segment {
        void *at;
        size_t bytes;
        int fd; /* -1: private memory, not shared */
        enum segment_writer writer;
};

/* 0 or a negative errno. */
int segment_new(const char *name, size_t bytes, enum segment_writer writer,
                struct segment *ret_segment);
int segment_new_private(size_t bytes, struct segment *ret_segment);

/*
 * Returns a new descriptor for the client, with the client's rights and its own file description;
 * or a negative errno.
 */
int segment_lend(const struct segment *segment);

/* `keep`: the pages stay with the processes that map them. */
void segment_free(struct segment *segment, bool keep);

#endif
