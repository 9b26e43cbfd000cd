/*
 * A channel: where one connection's records go.
 *
 * The engine writes records into its ring; the waker tells the reader.  The
 * reader is the client, who maps the ring, or, of a private channel, the loop,
 * which drains the ring onto the socket; the engine does not know which.  So
 * three threads see a channel, each its own fields, and it retires by walking
 * the same road: the loop posts HANGUP, the engine lets it go when its last
 * request has retired, the waker passes CHANNEL_GONE on, the loop frees it.  Its
 * number is used again only after that, and so is the number of its socket's
 * descriptor, which a shared channel closes: the waker rings on it, and must not
 * ring at a stranger's who was given the same one.
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

#include "daemon/line.h"
#include "daemon/segment.h"
#include "shm/doorbell.h"
#include "shm/ring.h"

struct peer;

typedef atomic_bool channel_flag;

enum channel_bell {
        CHANNEL_LOOP,  /* private: the loop is called, and drains */
        CHANNEL_KICK,  /* shared, and so are the others: an empty frame on the socket */
        CHANNEL_FUTEX, /* ... the ring's tail */
        CHANNEL_NONE,  /* ... the reader polls */
};

struct channel {
        uint32_t number;
        enum channel_bell bell;
        struct segment segment_d, segment_c;
        int socket; /* -1: the peer's to close */

        channel_flag waking;   /* a WAKE is on its way to the waker */
        channel_flag calling;  /* ... which has to call the loop whatever the bell is */
        channel_flag draining; /* a WAKE is on its way to the loop */
        channel_flag nudging;  /* a ROOM is on its way to the engine */
        channel_flag stalled;  /* the engine waits for one; up before the reader can know */
        channel_flag crowded;  /* an END waits for room in it, as the engine last saw it */
        channel_flag broken;   /* its reader's head was impossible: to be hung up */

        /* What the engine has shown, for the waker: stored before `waking` is raised. */
        _Atomic uint64_t shown_tail, shown_end, shown_brim;
        _Atomic uint64_t shown_retired; /* for the loop */

        struct line line; /* the loop's and the waker's */

        /* Engine only. */
        struct ring_writer writer;
        uint64_t end;        /* the tail behind the last END */
        uint64_t ends_bytes; /* end_bytes_max of all whose END is not written */
        uint32_t live_count; /* requests submitted and not retired */
        uint64_t retired;    /* ... and those that are, ever */
        bool shut;           /* nothing more is written */
        bool hung_up;        /* ... and HANGUP has come */
        bool dirty;          /* the waker has to hear of it */
        bool call;           /* ... and to call the loop */

        /* Waker only. */
        struct doorbell doorbell;

        /* Loop only. */
        struct ring_reader reader; /* of a private one */
        struct peer *peer;
        uint32_t uid;           /* who is charged for it, peer or no peer ... */
        uint64_t charged;       /* ... and how much: nothing for one of our own */
        uint64_t retired_heard; /* requests of that peer whose RETIRED has come */
        bool line_held;
        struct channel *gone_next; /* of those that are to be freed */
};

/* ring_bytes: a power of two.  0 or -ENOMEM; of a shared one, any reason why it cannot be made. */
int channel_new(uint32_t number, uint64_t ring_bytes, struct channel **ret_channel);
int channel_new_shared(uint32_t number, uint64_t ring_bytes, enum channel_bell bell,
                       struct channel **ret_channel);

/* Closes its socket.  `keep`: what its client has not read stays with it. */
struct channel *channel_free(struct channel *channel, bool keep);

static inline bool channel_is_shared(const struct channel *channel)
{
        return channel->bell != CHANNEL_LOOP;
}

static inline bool channel_raise(channel_flag *flag) /* true: it was down, so post */
{
        return !atomic_exchange_explicit(flag, true, memory_order_acq_rel);
}

static inline bool channel_lower(channel_flag *flag) /* true: it was up */
{
        return atomic_exchange_explicit(flag, false, memory_order_acq_rel);
}

static inline bool channel_is_up(const channel_flag *flag)
{
        return atomic_load_explicit(flag, memory_order_acquire);
}

/* Engine: its reader is told that we wait for it.  False: it has read on just now. */
bool channel_stall(struct channel *channel);
void channel_resume(struct channel *channel);

/* Engine: after ring_publish(), before `waking` is raised. */
void channel_show(struct channel *channel);

/* Waker: after `waking` was lowered. */
bool channel_is_due(struct channel *channel);

/* Waker: wakes its reader, if it has a bell of its own.  True: the loop wants to be called. */
bool channel_ring(struct channel *channel);

/* Loop: RETIRED is heard before its END is shown; is all shown of which it was heard? */
bool channel_is_shown(const struct channel *channel);

/* Loop: as far as its reader tells the truth. */
bool channel_is_unread(const struct channel *channel);

#endif
