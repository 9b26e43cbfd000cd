/*
 * The stall: both halves are the product's own, ring_stall() and ring_release().
 *
 * The writer has found no room and declares a stall while the reader gives a record back.
 * Forbidden: the writer waits and the reader does not notify it, because then it would wait for
 * ever.
 *
 * WEAK makes the four sequentially consistent accesses relaxed.
 */
#include "tests/models/litmus.h"

#include "shm/ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#ifdef WEAK
#undef __ATOMIC_SEQ_CST
#define __ATOMIC_SEQ_CST __ATOMIC_RELAXED
#endif
#include "shm/ring.c"

static struct smv_ring page;
static struct smv_ring_control control;
static struct ring_writer writer = { .page = &page, .control = &control };
static struct ring_reader reader = { .page = &page, .control = &control };
static bool waits, says;

static const char *const litmus_outcome[LITMUS_OUTCOMES] = {
        "neither saw the other (forbidden)",
        "the writer waits and was told",
        "the writer saw the reader move",
        "both saw",
};

static void litmus_begin(void)
{
        __atomic_store_n(&page.state, SMV_RING_RUN, __ATOMIC_RELAXED);
        __atomic_store_n(&control.head, 0, __ATOMIC_RELAXED);
        writer.head_seen = 0;
        reader.head = 24;
}

static void declare(void)
{
        waits = !ring_stall(&writer);
}

static void give_back(void)
{
        says = ring_release(&reader);
}

static void (*const litmus_thread[3])(void) = { declare, give_back };

static int litmus_end(void)
{
        return (waits ? 0 : 2) + (says ? 1 : 0);
}
