/*
 * A channel: the ring into which the records of one connection are written.
 *
 * The engine writes records into the ring; the waker wakes the reader.  The reader of a shared
 * channel is the client, which maps the ring.  The reader of a private channel is the loop, which
 * copies the ring's records to the socket.  The engine does not know which kind a channel is.
 *
 * Three threads use a channel, each its own fields.  A channel is retired through the same threads
 * in the same order: the loop posts HANGUP; the engine releases the channel when its last request
 * has retired; the waker passes CHANNEL_GONE on; the loop frees the channel.  Only then is the
 * channel's number used again.  The same holds for the number of the socket's descriptor, which a
 * shared channel closes: the waker writes to this descriptor, and must not write to a stranger's
 * socket that was given the same number.
 *
 * A flag lets at most one message of a kind be under way.  The thread that raises a flag that was
 * down posts the message.  The thread that takes the message first lowers the flag and then looks.
 * Raising is a release and lowering is an acquire: all writes before raising are seen after
 * lowering.
 */
#ifndef DAEMON_IPC_CHANNEL_H
#define DAEMON_IPC_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/ring.h>

#include "daemon/ipc/segment.h"
#include "daemon/ipc/send-lock.h"
#include "shm/doorbell.h"
#include "shm/ring.h"

typedef atomic_bool channel_flag;

enum channel_bell {
        CHANNEL_LOOP, /* private: the waker calls the loop, which drains the ring */
        /* shared, as are the next two: the waker sends an empty frame on the socket */
        CHANNEL_KICK,
        CHANNEL_FUTEX, /* shared: the waker wakes a futex on the ring's tail */
        CHANNEL_NONE,  /* shared: the reader polls */
};

struct channel {
        uint32_t number;
        enum channel_bell bell;
        struct segment segment_d, segment_c;
        struct segment segment_answers, segment_rows; /* of slots; at NULL: there are none */
        int socket;                                   /* -1: the peer closes it */

        channel_flag waking;      /* a WAKE is on its way to the waker */
        channel_flag calling;     /* the waker must call the loop, whatever the bell is */
        channel_flag draining;    /* a WAKE is on its way to the loop */
        channel_flag resume_sent; /* a SPACE is on its way to the engine */
        /* the engine waits for a SPACE; raised before the reader can know that it should send it */
        channel_flag stalled;
        /* an END waits for free space in the ring, as last seen by the engine */
        channel_flag end_blocked;
        channel_flag broken; /* the reader's head was impossible: the channel must be hung up */

        /* The engine publishes these for the waker; it stores them before it raises `waking`. */
        _Atomic uint64_t shown_tail, shown_end, shown_wake_level;
        _Atomic uint64_t shown_retired; /* for the loop */

        struct send_lock send_lock; /* shared by the loop and the waker */

        /* Engine thread only. */
        struct ring_writer writer;
        uint64_t end;        /* the tail behind the last END or ASK, which wake the reader */
        uint64_t ends_bytes; /* sum of end_bytes_max over all requests whose END is not written */
        uint32_t live_count; /* requests submitted and not retired */
        uint64_t retired;    /* requests that have retired since the channel was made */
        bool asking;         /* `stalled` is up for an answer only */
        bool shut;           /* nothing more is written to this channel */
        bool hung_up;        /* HANGUP was received */
        bool dirty;          /* the waker must be told about this channel */
        bool call;           /* the waker must call the loop */

        /* Waker thread only. */
        struct doorbell doorbell;

        /* Loop thread only. */
        struct ring_reader reader; /* of a private channel */
        void *owner;           /* the peer whose records it has; NULL: none, or the peer is gone */
        uint64_t uid;          /* the user charged for it, with or without an owner */
        uint64_t charged;      /* bytes charged to that user; 0 for a private channel */
        bool holds_connection; /* the peer is gone, and its connection is charged until now */
        uint64_t retired_received; /* requests of that peer whose RETIRED was received */
        bool has_send_lock;
        uint32_t ask_slots;        /* slots for questions ... */
        uint64_t ask_slots_used;   /* ... and a bit for each that a stream has */
        uint32_t ask_tickets;      /* how many were given */
        struct channel *gone_next; /* the next in the list of channels to be freed */
};

/*
 * ring_bytes must be a power of two.  Returns 0 or -ENOMEM.  A shared channel may also fail with
 * any other reason why its memory cannot be made.
 */
int channel_new(uint32_t number, uint64_t ring_bytes, struct channel **ret_channel);
int channel_new_shared(uint32_t number, uint64_t ring_bytes, enum channel_bell bell,
                       struct channel **ret_channel);

/*
 * Gives a shared channel slots for questions, with space for whole rows or without.  0 or a
 * negative errno, and the channel has none.
 */
int channel_add_slots(struct channel *channel, uint32_t slots, uint32_t vocab, bool rows);
/* The bytes that they take. */
size_t channel_slots_bytes(uint32_t slots, uint32_t vocab, bool rows);

const struct smv_answer *channel_answer(const struct channel *channel, uint32_t slot,
                                        uint32_t vocab);
struct smv_shown_row *channel_row(const struct channel *channel, uint32_t slot, uint32_t vocab);

/*
 * Closes the socket.  `keep`: the records that the client has not read stay mapped at the client.
 */
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

/*
 * Engine: tells the reader that the engine waits for free space.  False: the reader has just read
 * on.
 */
bool channel_stall(struct channel *channel);
/* ... that the engine sleeps until an answer comes, unless it waits for free space already. */
void channel_ask(struct channel *channel);
void channel_resume(struct channel *channel);

/* Engine: after ring_publish(), before `waking` is raised. */
void channel_show(struct channel *channel);

/* Waker: after `waking` was lowered. */
bool channel_is_due(struct channel *channel);

/* Waker: wakes the reader, if it has a bell of its own.  True: the loop wants to be called. */
bool channel_ring(struct channel *channel);

/*
 * Loop: the loop receives RETIRED before the END of that request is visible in the ring.  True if
 * the ENDs of all requests whose RETIRED was received are visible.
 */
bool channel_is_shown(const struct channel *channel);

/* Loop: the ring has unread records, if the reader's head is truthful. */
bool channel_is_unread(const struct channel *channel);

#endif
