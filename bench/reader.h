/*
 * A reader of a ring that is no client: the library's sleep without the library, for
 * rings that were made without a daemon.  In a process of its own, forked after the
 * channel was made.
 */
#ifndef BENCH_READER_H
#define BENCH_READER_H

#include "daemon/channel.h"

struct reader {
        struct ring_reader ring;
        enum channel_bell bell;
        int socket; /* the other end of the channel's; -1: none */
};

/* Maps what a client would be given.  0, or a negative errno. */
int reader_open(struct reader *reader, const struct channel *channel, int socket);

/* The next record, lent until the next call.  Sleeps for it; NULL: the ring is no good. */
const struct smv_record *reader_next(struct reader *reader);

#endif
