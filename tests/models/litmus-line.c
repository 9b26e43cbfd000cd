/*
 * The line (send lock) of daemon/line.h: loop and waker want to write at the same time.
 *
 * Each takes the line, writes, and lets go until it finds no word; or it finds the line taken and
 * leaves a word.  Forbidden: a word that neither side has found, a line that stays taken or keeps a
 * word, two writers at once.  The writes go to plain memory, so a model checker also sees a data
 * race if taking is not ordered behind letting go.
 *
 * WEAK makes taking and letting go relaxed, BLIND lets go without looking for a word.
 */
#include "tests/models/litmus.h"

#include <stdatomic.h>

#ifdef WEAK
#undef memory_order_acq_rel
#define memory_order_acq_rel memory_order_relaxed
#endif
#include "daemon/line.h"

static struct line line;
static volatile unsigned written; /* on the socket */
static unsigned loop_wrote, waker_wrote;
static bool ring_left, rang;   /* the waker left its word; the loop found it */
static bool call_left, called; /* the same for the loop's word */

static const char *const litmus_outcome[LITMUS_OUTCOMES] = {
        "a word was lost, or both wrote at once (forbidden)",
        "one after the other",
        "the loop rang for the waker",
        "the waker called the loop",
};

static void litmus_begin(void)
{
        atomic_store_explicit(&line.word, 0, memory_order_relaxed);
        written = loop_wrote = waker_wrote = 0;
        ring_left = rang = call_left = called = false;
}

static unsigned let_go(void)
{
#ifdef BLIND
        atomic_store_explicit(&line.word, 0, memory_order_release);
        return 0;
#else
        return line_let_go(&line);
#endif
}

static void loop(void)
{
        call_left = !line_take(&line, LINE_CALL);
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
        ring_left = !line_take(&line, LINE_RING);
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
            atomic_load_explicit(&line.word, memory_order_relaxed))
                return LITMUS_FORBIDDEN;
        return rang ? 2 : called ? 3 : 1;
}
