/*
 * The send lock of daemon/ipc/send-lock.h: loop and waker want to write at the same time.
 *
 * Each thread takes the lock, writes, and releases it until it finds no note; or it finds the
 * lock taken and leaves a note.  Forbidden: a note that neither thread has found, a lock that
 * stays taken or keeps a note, two writers at once.  The writes go to plain memory, so a model
 * checker also sees a data race if taking is not ordered behind releasing.
 *
 * WEAK makes taking and releasing relaxed, BLIND releases without looking for a note.
 */
#include "tests/models/litmus.h"

#include <stdatomic.h>

#ifdef WEAK
#undef memory_order_acq_rel
#define memory_order_acq_rel memory_order_relaxed
#endif
#include "daemon/ipc/send-lock.h"

static struct send_lock send_lock;
static volatile unsigned written; /* on the socket */
static unsigned loop_wrote, waker_wrote;
static bool ring_left, rang;   /* the waker left its note; the loop found it */
static bool call_left, called; /* the same for the loop's note */

static const char *const litmus_outcome[LITMUS_OUTCOMES] = {
        "a word was lost, or both wrote at once (forbidden)",
        "one after the other",
        "the loop rang for the waker",
        "the waker called the loop",
};

static void litmus_begin(void)
{
        atomic_store_explicit(&send_lock.word, 0, memory_order_relaxed);
        written = loop_wrote = waker_wrote = 0;
        ring_left = rang = call_left = called = false;
}

static unsigned let_go(void)
{
#ifdef BLIND
        atomic_store_explicit(&send_lock.word, 0, memory_order_release);
        return 0;
#else
        return send_lock_release(&send_lock);
#endif
}

static void loop(void)
{
        call_left = !send_lock_take(&send_lock, SEND_LOCK_CALL);
        if (call_left)
                return;
        written = written + 1;
        loop_wrote++;
        if (!let_go())
                return;
        rang = true;
        written = written + 1;
        loop_wrote++;
        let_go(); /* the waker asks once */
}

static void waker(void)
{
        ring_left = !send_lock_take(&send_lock, SEND_LOCK_RING);
        if (ring_left)
                return;
        written = written + 1;
        waker_wrote++;
        if (!let_go())
                return;
        called = true;
        let_go();
}

static void (*const litmus_thread[3])(void) = { loop, waker };

static int litmus_end(void)
{
        if (ring_left != rang || call_left != called || written != loop_wrote + waker_wrote ||
            atomic_load_explicit(&send_lock.word, memory_order_relaxed))
                return LITMUS_FORBIDDEN;
        return rang ? 2 : called ? 3 : 1;
}
