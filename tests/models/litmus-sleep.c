/*
 * Sleep and wake: a reader goes to sleep while the engine publishes and the waker looks.  Both
 * halves are the product's own: ring_publish(), channel_show() and channel_is_due(), and the
 * reader's doorbell_may_sleep().
 *
 *      engine   store tail; show end, wake level, tail; raise `waking`; if it was down, mail
 *      waker    lower `waking`; load tail, end, wake level; fence; load wake_position; ring?
 *      reader   store wake_position; fence; load tail; sleep if it is its head
 *
 * Forbidden: the reader sleeps, there is news, and no bell rang.  News is a record or, with FAR,
 * for a reader that wishes for more than ever comes, the END.
 *
 * The waker's fence also serves the engine, which has none: the engine's store of tail happens
 * before the waker's load of the values that the engine shows, and that load comes before the
 * fence.  A tail that was loaded behind the fence is not covered: the waker has seen it, but the
 * reader may not have seen it.  x86 permits that, and also the absence of the waker's fence, since
 * on x86 a store that one thread has seen is seen by all; C11 does not guarantee this, nor does
 * every machine.
 *
 * Under a model checker these are three threads, and the engine publishes twice, END last.  As a
 * stress program the engine does the waker's part itself, once: two processors are enough.
 *
 *      WEAK_FENCE         both fences are acquire and release
 *      WEAK_SHOW          the values that the engine shows are stored and loaded relaxed
 *      FENCE_FIRST        the waker's fence stands before its loads
 *      FLAG_LOWERED_LAST  the waker looks, then lowers
 */
#include "tests/models/litmus.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "shm/ring.c"

#ifdef WEAK_FENCE
#undef __ATOMIC_SEQ_CST
#define __ATOMIC_SEQ_CST __ATOMIC_ACQ_REL
#endif
#include "shm/doorbell.c"

/* The flags are in the header, and keep their orders. */
#include "daemon/ipc/channel.h"
#ifdef WEAK_SHOW
#define memory_order_release memory_order_relaxed
#define memory_order_acquire memory_order_relaxed
#endif
#ifdef FENCE_FIRST
static bool look_again(struct doorbell *bell, const struct doorbell_news *news)
{
        uint64_t from = bell->seen;
        uint64_t wish = __atomic_load_n(&bell->control->wake_position, __ATOMIC_RELAXED);

        bell->seen = news->tail;
        return wish != SMV_WAKE_NEVER && ((from <= wish && wish < news->tail) || from < news->end);
}
#define doorbell_is_due look_again
#endif
#ifdef LITMUS_CHECK
#define calloc(count, bytes) NULL /* GenMC has none, and nothing calls it */
#endif
#include "daemon/ipc/channel.c"
#undef memory_order_release
#undef memory_order_acquire

#ifdef FAR
#define WISH 1024u
#else
#define WISH 0u
#endif

/* Functions that channel.c needs; these programs never call them. */
int segment_new(const char *name, size_t bytes, enum segment_writer writer,
                struct segment *ret_segment)
{
        (void)name, (void)bytes, (void)writer, (void)ret_segment;
        return 0;
}

int segment_new_private(size_t bytes, struct segment *ret_segment)
{
        (void)bytes, (void)ret_segment;
        return 0;
}

void segment_free(struct segment *segment, bool keep)
{
        (void)segment, (void)keep;
}

int sys_close(int fd)
{
        return fd;
}

ssize_t sys_send(int fd, const void *bytes, size_t count)
{
        (void)fd, (void)bytes;
        return (ssize_t)count;
}

int sys_futex_wake_shared(const uint32_t *word)
{
        (void)word;
        return 0;
}

int error_mark(int r, int born, const char *file, int line, const char *function)
{
        (void)born, (void)file, (void)line, (void)function;
        return r;
}

static _Alignas(4096) struct smv_ring page;
static _Alignas(4096) struct smv_ring_control control;
static struct channel channel = {
        .writer = { .page = &page, .control = &control, .data_bytes = 65536 },
        .doorbell = { .control = &control },
};
static struct ring_reader reader = { .page = &page, .control = &control };
static _Atomic uint32_t mails; /* the mailbox: mails posted */
static uint32_t taken;         /* ... and taken by the waker, as is the next */
static bool rang, sleeps;

static const char *const litmus_outcome[LITMUS_OUTCOMES] = {
        "asleep and nobody rang (forbidden)",
        "asleep and rung for",
        "the reader saw it, nobody rang",
        "the reader saw it and was rung for",
};

static void litmus_begin(void)
{
        __atomic_store_n(&page.tail, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&control.wake_position, SMV_WAKE_NEVER, __ATOMIC_RELAXED);
        atomic_store_explicit(&mails, 0, memory_order_relaxed);
        atomic_store_explicit(&channel.waking, false, memory_order_relaxed);
        atomic_store_explicit(&channel.shown_tail, 0, memory_order_relaxed);
        atomic_store_explicit(&channel.shown_end, 0, memory_order_relaxed);
        atomic_store_explicit(&channel.shown_wake_level, 0, memory_order_relaxed);
#ifndef LITMUS_CHECK /* GenMC begins with zeros, and cannot follow a memset() */
        channel.writer.tail = channel.writer.published = 0;
#endif
        channel.doorbell.seen = 0;
        channel.end = 0;
        taken = 0;
        rang = sleeps = false;
}

static void publish(uint64_t position, bool end)
{
        channel.writer.tail = position;
        if (end)
                channel.end = position;
        ring_publish(&channel.writer);
        channel_show(&channel);
        if (channel_raise(&channel.waking))
                atomic_fetch_add_explicit(&mails, 1, memory_order_release);
}

static void look(void)
{
#ifndef FLAG_LOWERED_LAST
        channel_lower(&channel.waking);
#endif
#ifdef FENCE_FIRST
        fence();
#endif
        if (channel_is_due(&channel))
                rang = true;
#ifdef FLAG_LOWERED_LAST
        channel_lower(&channel.waking);
#endif
}

static void take_mail(void)
{
        if (atomic_load_explicit(&mails, memory_order_acquire) != taken) {
                taken++;
                look();
        }
}

/* The reader goes to sleep before it has read anything, or once more after the first record. */
static void go_to_sleep(void)
{
        reader.head = __atomic_load_n(&page.tail, __ATOMIC_ACQUIRE);
        sleeps = doorbell_may_sleep(&reader, WISH);
}

#ifdef LITMUS_CHECK

#define PUBLISHES 2

static void engine(void)
{
        publish(8, false);
        publish(16, true);
}

static void waker(void)
{
        take_mail();
}

static void (*const litmus_thread[3])(void) = { engine, waker, go_to_sleep };

#else

#define PUBLISHES 1

static void engine_and_waker(void)
{
        publish(8, true);
        take_mail();
}

static void (*const litmus_thread[3])(void) = { engine_and_waker, go_to_sleep };

#endif

/* The waker takes the mail that is left; then all threads are at rest. */
static int litmus_end(void)
{
        for (int i = 0; i < PUBLISHES; i++)
                take_mail();
        if (!sleeps || reader.head == PUBLISHES * 8)
                return 2 + rang;
        return rang;
}
