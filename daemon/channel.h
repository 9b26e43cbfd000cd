/*
 * A channel: where one connection's records go.
 *
 * The engine writes records into its ring; the waker tells the reader; today
 * the reader is the loop, which drains the ring onto the socket.  So three
 * threads see a channel, each its own fields, and it retires by walking the
 * same road: the loop posts HANGUP, the engine lets it go when its last request
 * has retired, the waker passes CHANNEL_GONE on, the loop frees it.  Its number
 * is used again only after that.
 *
 * Half of a ring belongs to ENDs.  A TOKENS record is written only while more
 * than half of the ring is free; the loop admits to a channel no more requests
 * than the other half has room for, counting each until its END was read.  So
 * an END always fits, and a client that never reads fills its own ring only.
 *
 * A flag lets one message of a kind be under way: who raises it first posts,
 * who takes the message lowers it and then looks.  Raising is a release and
 * lowering an acquire, so what was written before raising is seen after.
 */
#ifndef DAEMON_CHANNEL_H
#define DAEMON_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/ring.h"

struct peer;

typedef atomic_bool channel_flag;

struct channel {
        uint32_t number;
        struct smv_ring *segment_d;
        struct smv_ring_control *segment_c;

        channel_flag waking;   /* a WAKE is on its way to the waker */
        channel_flag draining; /* ... to the loop */
        channel_flag nudging;  /* a ROOM is on its way to the engine */

        /* Engine only. */
        struct ring_writer writer;
        uint32_t live_count; /* requests submitted and not retired */
        bool stalled;
        bool shut;    /* nothing more is written */
        bool hung_up; /* ... and HANGUP has come */
        bool dirty;   /* written to and not yet published */

        /* Loop only. */
        struct ring_reader reader;
        uint64_t ends_bytes; /* end_bytes_max of all its requests whose END was not read */
        struct peer *peer;
};

/* What ENDs may take of a ring in all, PADs allowed for. */
static inline uint64_t channel_ends_max(uint64_t ring_bytes)
{
        return ring_bytes / 2 - 4096;
}

/* ring_bytes: a power of two.  0 or -ENOMEM. */
int channel_new(uint32_t number, uint64_t ring_bytes, struct channel **ret_channel);
struct channel *channel_free(struct channel *channel);

static inline bool channel_raise(channel_flag *flag) /* true: it was down, so post */
{
        return !atomic_exchange_explicit(flag, true, memory_order_acq_rel);
}

static inline void channel_lower(channel_flag *flag)
{
        atomic_exchange_explicit(flag, false, memory_order_acq_rel);
}

#endif
