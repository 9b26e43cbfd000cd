/*
 * The send lock: the right to write on a socket, shared by two threads that never wait for each
 * other.
 *
 * The loop writes replies and the waker rings doorbells on the same descriptor.  A ring in the
 * middle of a reply would be read as part of the reply.  A thread that finds the lock taken sets
 * its flag, RING or CALL, in the lock's word instead.  (tests/models calls a flag a note.)  The
 * thread that releases the lock finds that flag and acts on it:
 *
 *      loop   holds the lock while any of its output is unsent, over several turns if the socket is
 *             full.  When it releases the lock, it rings for the waker if the waker asked.
 *      waker  holds the lock for one ring.  When it releases the lock, it calls the loop if asked.
 *
 * Each successful exchange has memory_order_acq_rel, because it may be either half of two pairs:
 *
 *      lock   Releasing it publishes what the holder did; taking it makes that visible.  So the
 *             pieces of two frames cannot mix, and the holder may use plain variables.
 *      flag   Leaving one publishes what the thread did before; the release that finds it makes
 *             that visible.  So the holder acts on what the flag was left for.
 *
 * The first load and a failed exchange are relaxed: their value only goes into the next exchange.
 * tests/models/doorbell.pml and litmus-send-lock.c check this.
 */
#ifndef DAEMON_IPC_SEND_LOCK_H
#define DAEMON_IPC_SEND_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

enum send_lock_word {
        SEND_LOCK_TAKEN = 1,
        SEND_LOCK_RING = 2, /* set by the waker: ring when you release the lock */
        SEND_LOCK_CALL = 4, /* set by the loop: call me when you release the lock */
};

struct send_lock {
        atomic_uint word;
};

/* True: the caller has the lock.  False: the other thread has it, and `word` was left for it. */
static inline bool send_lock_take(struct send_lock *lock, enum send_lock_word word)
{
        unsigned is = atomic_load_explicit(&lock->word, memory_order_relaxed);

        for (;;) {
                unsigned next = is & SEND_LOCK_TAKEN ? is | (unsigned)word : SEND_LOCK_TAKEN;

                if (atomic_compare_exchange_weak_explicit(
                            &lock->word, &is, next, memory_order_acq_rel, memory_order_relaxed))
                        return !(is & SEND_LOCK_TAKEN);
        }
}

/*
 * Returns 0: the lock is free.  Otherwise returns the other thread's word, which the caller must
 * act on; the caller still has the lock.
 */
static inline unsigned send_lock_release(struct send_lock *lock)
{
        unsigned is = SEND_LOCK_TAKEN;

        while (!atomic_compare_exchange_weak_explicit(&lock->word, &is,
                                                      is == SEND_LOCK_TAKEN ? 0 : SEND_LOCK_TAKEN,
                                                      memory_order_acq_rel, memory_order_relaxed))
                ;
        return is & ~(unsigned)SEND_LOCK_TAKEN;
}

#endif
