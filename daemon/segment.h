/*
 * A segment: memory that the daemon makes and one client maps.
 *
 * One side writes it and the other reads, and each has that right only: of a
 * segment that the daemon writes the client gets a descriptor opened for reading
 * anew, and the file's mode keeps other users from opening it for more.  (One of
 * our own uid may, and then spoils what only it reads: nothing that the daemon
 * has written there is ever read back.)  The daemon maps what the client writes
 * for reading.
 *
 * Size and pages are there from the start and sealed: no truncation can make
 * reading fault, and memory that is not there is refused here and not met later.
 * The seals leave one right to the daemon, which is why writing is not sealed:
 * segment_free() gives the pages back at once, whoever still maps them.
 * A segment is made for one connection and never used for another.
 */
#ifndef DAEMON_SEGMENT_H
#define DAEMON_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>

enum segment_writer { SEGMENT_DAEMON_WRITES, SEGMENT_CLIENT_WRITES };

struct segment {
        void *at;
        size_t bytes;
        int fd; /* -1: memory of our own, shared with nobody */
        enum segment_writer writer;
};

/* 0 or a negative errno. */
int segment_new(const char *name, size_t bytes, enum segment_writer writer,
                struct segment *ret_segment);
int segment_new_private(size_t bytes, struct segment *ret_segment);

/* A descriptor for the client, with its rights and a description of its own; or a negative errno. */
int segment_lend(const struct segment *segment);

/* `keep`: its pages stay with those who map them. */
void segment_free(struct segment *segment, bool keep);

#endif
