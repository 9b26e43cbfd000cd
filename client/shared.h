/*
 * Shared: the ring as the library sees it.
 *
 * Two segments of the daemon's memory, mapped; a reader on them; and how this
 * client sleeps.  Records are lent: what shared_next() gave stays whole until
 * the next shared_release(), which the caller makes when no event points there.
 *
 * The daemon wrote all of it and may write it still.  So a segment is mapped
 * only if it cannot shrink, because touching what is not there any more would
 * kill the program; and a ring whose bytes have lied is not read any more.
 */
#ifndef CLIENT_SHARED_H
#define CLIENT_SHARED_H

#include <stdbool.h>

#include "client/public.h"
#include "client/record.h"
#include "shm/ring.h"

struct shared {
        struct ring_reader reader;
        void *ring; /* NULL: this connection has no ring */
        size_t ring_bytes;
        void *control;
        enum smv_doorbell doorbell;
        uint64_t batch;    /* bytes that may come before a sleeper is woken */
        uint64_t taken_at; /* where the last record began */
        uint64_t released; /* our head, as the daemon knows it */
        bool asleep;       /* the daemon may ring */
        bool stalled;      /* it waits for room that we have given: it is to be told */
        bool over;         /* the bytes have lied: nothing more is read */
};

struct shared_segment {
        int fd; /* not taken */
        uint64_t bytes;
};

/* 0; or a negative errno, and in *ret_why what is wrong, as the end of a sentence. */
int shared_open(struct shared *shared, const struct shared_segment *ring,
                const struct shared_segment *control, enum smv_doorbell doorbell,
                const char **ret_why);
void shared_close(struct shared *shared);

/* The next record: 1; 0: there is none; -EPROTO: the bytes lie.  Whoever reads is awake. */
int shared_next(struct shared *shared, struct record *ret_record);

/* The last record was not taken after all. */
void shared_put_back(struct shared *shared);

/* Gives back what was read: all of it, or only if that is a quarter of the ring. */
void shared_release(struct shared *shared, bool all);

/* All was read and released.  True: from now on the daemon rings.  False: there is more to read. */
bool shared_lie_down(struct shared *shared);
void shared_awake(struct shared *shared);

/* Doorbell futex, lying down: sleeps until the bell rings, `ns` have passed, or for no reason. */
void shared_sleep(const struct shared *shared, uint64_t ns);

/*
 * How long a sleep may be before we look for ourselves: as long as one likes if the
 * daemon rings for each record on the socket, which tells of its death, too.
 */
uint64_t shared_patience(const struct shared *shared);

#endif
