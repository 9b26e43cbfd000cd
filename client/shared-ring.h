/*
 * The ring in shared memory, as the library sees it.
 *
 * It consists of two mapped segments of the daemon's memory, a reader for them, and the way
 * this client sleeps.  A record that shared_ring_next() returns stays valid until the next
 * shared_ring_release().  The caller calls that when no event points into the ring.  If the ring's
 * contents are impossible, the library stops reading it.
 */
#ifndef CLIENT_SHARED_RING_H
#define CLIENT_SHARED_RING_H

#include <stdbool.h>

#include "client/public.h"
#include "client/record-reader.h"
#include "client/shared-segment.h"
#include "shm/ring.h"

struct shared_ring {
        struct ring_reader reader;
        void *segment; /* of the records; NULL: this connection has no ring */
        size_t segment_bytes;
        void *control;
        enum smv_doorbell doorbell;
        uint64_t wake_bytes; /* bytes that may come before a sleeper is woken */
        uint64_t taken_at;   /* the position where the last record began */
        uint64_t released;   /* the reader's head, as the daemon knows it */
        bool asleep;         /* wake_position is set, so the daemon may ring */
        bool stalled;        /* the daemon waits for space that is free now, and must be told */
        /* The contents were impossible, or the connection is lost: read no more. */
        bool stopped;
};

/* 0; or a negative errno, and in *ret_why the reason, worded as the end of a sentence. */
int shared_ring_open(struct shared_ring *ring, const struct shared_segment *records,
                     const struct shared_segment *control, enum smv_doorbell doorbell,
                     const char **ret_why);
void shared_ring_close(struct shared_ring *ring);

/*
 * 1: *ret_record is the next record.  0: there is none.  -EPROTO: the contents are impossible.
 * This marks the client as awake.
 */
int shared_ring_next(struct shared_ring *ring, struct record *ret_record);

/* Puts the last record back: the next shared_ring_next() returns it again. */
void shared_ring_unread(struct shared_ring *ring);

/* Gives back the space of the records read.  Unless `all`: only if it is a quarter of the ring. */
void shared_ring_release(struct shared_ring *ring, bool all);

/*
 * Call it when all records are read and released.  True: from now on the daemon rings for new
 * records.  False: there is more to read.
 */
bool shared_ring_may_sleep(struct shared_ring *ring);
/*
 * After an answer, behind a full fence: whether the daemon sleeps and must be told.
 */
bool shared_ring_has_sleeper(const struct shared_ring *ring);
void shared_ring_set_awake(struct shared_ring *ring);

/*
 * Only with the doorbell futex, after shared_ring_may_sleep() has returned true.  Sleeps until the
 * bell rings or `ns` have passed; it may also return for no reason.
 */
void shared_ring_sleep(const struct shared_ring *ring, uint64_t ns);

/*
 * The longest sleep, in ns, before the client must look at the ring by itself.  UINT64_MAX if
 * the daemon rings on the socket for each record, because the socket also tells of its death.
 */
uint64_t shared_ring_sleep_max(const struct shared_ring *ring);

#endif
