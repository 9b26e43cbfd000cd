/*
 * A reader of a ring that is not a client.  It sleeps as the client library does, but works
 * without the library, for rings that were made without a daemon.  It runs in its own process,
 * forked after the channel was made.
 */
#ifndef BENCH_READER_H
#define BENCH_READER_H

#include "daemon/ipc/channel.h"

struct reader {
        struct ring_reader ring;
        enum channel_bell bell;
        int socket; /* the other end of the channel's; -1: none */
};

/* Maps the segments that a client would be given.  0, or a negative errno. */
int reader_open(struct reader *reader, const struct channel *channel, int socket);

/* The next record, valid until the next call.  Sleeps until it comes; NULL: the ring is corrupt. */
const struct smv_record *reader_next(struct reader *reader);

#endif
