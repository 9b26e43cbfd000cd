/*
 * Two free-running counters, and a word for sleepers.
 *
 * The sender writes `tail` and the taker writes `head`; the mails between them are in the box.
 * Each stores its own counter with release and loads the other's with acquire.  So a mail is read
 * after it was written, and its slot is written again only after it was read.
 *
 * `bell` is 1 while the taker may be asleep.  The taker sets it and then looks at tail once more.
 * The sender moves tail and then looks at the bell.  All four accesses are sequentially consistent,
 * so at least one thread sees the other's store.  A sender that changes the bell from 1 to 0 makes
 * the one system call.  While the taker is awake the bell is 0, and posting makes no system call.
 */
#include "daemon/ipc/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sys.h"

#define LINE         128 /* two cache lines: processors fetch them in pairs */
#define CAPACITY_MAX (1u << 24)

struct mailbox {
        _Alignas(LINE) _Atomic uint32_t tail;
        uint32_t head_seen; /* sender only: head when the box last looked full */
        _Alignas(LINE) _Atomic uint32_t head;
        _Alignas(LINE) _Atomic uint32_t bell;
        _Alignas(LINE) uint32_t mask; /* capacity - 1 */
        int fd;                       /* the eventfd of a taker that sleeps elsewhere, or -1 */
        struct mail mails[];
};

int mailbox_new(uint32_t capacity, int bell, struct mailbox **ret_mailbox)
{
        struct mailbox *mailbox;
        uint32_t places = 1;
        size_t bytes;

        assert(capacity && capacity <= CAPACITY_MAX);
        while (places < capacity)
                places *= 2;

        bytes = sizeof(*mailbox) + places * sizeof(struct mail);
        mailbox = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
        if (!mailbox)
                return error_raise(-ENOMEM);
        *mailbox = (struct mailbox){
                /* the loop may sleep before it has looked here for the first time */
                .bell = bell >= 0,
                .mask = places - 1,
                .fd = bell,
        };
        *ret_mailbox = mailbox;
        return 0;
}

struct mailbox *mailbox_free(struct mailbox *mailbox)
{
        free(mailbox);
        return NULL;
}

/*
 * These calls fail only because of a bug.  -EAGAIN: the eventfd's counter is at its maximum, so it
 * is readable anyway.
 */
static void ring_bell(struct mailbox *mailbox)
{
        uint64_t one = 1;
        int64_t r;

        if (mailbox->fd < 0) {
                r = sys_futex_wake((const uint32_t *)&mailbox->bell);
                assert(!r);
        } else {
                r = sys_write(mailbox->fd, &one, sizeof(one));
                assert(r == sizeof(one) || r == -EAGAIN);
        }
}

void mailbox_put(struct mailbox *mailbox, const struct mail *mail)
{
        uint32_t tail = atomic_load_explicit(&mailbox->tail, memory_order_relaxed);

        if (tail - mailbox->head_seen > mailbox->mask)
                mailbox->head_seen = atomic_load_explicit(&mailbox->head, memory_order_acquire);
        assert(tail - mailbox->head_seen <= mailbox->mask);

        mailbox->mails[tail & mailbox->mask] = *mail;
        atomic_store(&mailbox->tail, tail + 1);
}

void mailbox_ring(struct mailbox *mailbox)
{
        if (atomic_load(&mailbox->bell) && atomic_exchange(&mailbox->bell, 0))
                ring_bell(mailbox);
}

void mailbox_post(struct mailbox *mailbox, const struct mail *mail)
{
        mailbox_put(mailbox, mail);
        mailbox_ring(mailbox);
}

/*
 * The taker sets the bell after it has handled all that it took, and this load sees that store.  A
 * taker that wakes without a reason finds nothing and sets the bell again.
 */
bool mailbox_is_asleep(struct mailbox *mailbox)
{
        assert(mailbox->fd < 0);
        return atomic_load(&mailbox->bell) &&
               atomic_load_explicit(&mailbox->head, memory_order_acquire) ==
                       atomic_load_explicit(&mailbox->tail, memory_order_relaxed);
}

static uint32_t grab(struct mailbox *mailbox, struct mail *ret_mails, uint32_t most)
{
        uint32_t head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);
        uint32_t count = atomic_load_explicit(&mailbox->tail, memory_order_acquire) - head;

        if (count > most)
                count = most;
        for (uint32_t i = 0; i < count; i++)
                ret_mails[i] = mailbox->mails[(head + i) & mailbox->mask];
        atomic_store_explicit(&mailbox->head, head + count, memory_order_release);
        return count;
}

/* The taker's side of the protocol; true if the next mail will ring. */
static bool raise_bell(struct mailbox *mailbox)
{
        uint32_t head = atomic_load_explicit(&mailbox->head, memory_order_relaxed);

        atomic_store(&mailbox->bell, 1);
        if (atomic_load(&mailbox->tail) == head)
                return true;
        atomic_store_explicit(&mailbox->bell, 0, memory_order_relaxed);
        return false;
}

/*
 * This taker sleeps elsewhere, whenever it likes.  So after every return, either the next mail will
 * ring, or, if mails are left behind, the bell has rung again.
 */
static uint32_t take_for_bell(struct mailbox *mailbox, struct mail *ret_mails, uint32_t most)
{
        uint32_t count = 0;

        atomic_store_explicit(&mailbox->bell, 0, memory_order_relaxed);
        for (;;) {
                count += grab(mailbox, ret_mails + count, most - count);
                if (raise_bell(mailbox))
                        return count;
                if (count == most) {
                        ring_bell(mailbox);
                        return count;
                }
        }
}

uint32_t mailbox_take(struct mailbox *mailbox, struct mail *ret_mails, uint32_t most,
                      uint64_t deadline_ns)
{
        assert(most && (mailbox->fd < 0 || !deadline_ns));
        if (mailbox->fd >= 0)
                return take_for_bell(mailbox, ret_mails, most);

        for (;;) {
                uint32_t count = grab(mailbox, ret_mails, most);

                if (count || !deadline_ns)
                        return count;
                if (deadline_ns != UINT64_MAX && sys_clock_ns() >= deadline_ns)
                        return 0;
                if (raise_bell(mailbox)) {
                        int r = sys_futex_wait((const uint32_t *)&mailbox->bell, 1, deadline_ns);

                        assert(!r);
                        atomic_store_explicit(&mailbox->bell, 0, memory_order_relaxed);
                }
        }
}
