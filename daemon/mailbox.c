/*
 * Two free-running counts, and a word for sleepers.
 *
 * `tail` is the sender's, `head` the taker's; what lies between is in the box.
 * Storing one's own count is a release and loading the other's an acquire, so a
 * mail is read after it was written and its place written again after it was read.
 *
 * `bell` is 1 while the taker may be asleep.  The taker raises it and then looks
 * at tail once more; the sender moves tail and then looks at the bell.  All four
 * are sequentially consistent, so at least one sees the other.  Whoever lowers
 * the bell from 1 as a sender makes the one system call; for a taker that is
 * awake the bell is down and posting makes none.
 */
#include "daemon/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/error.h"
#include "daemon/sys.h"

#define LINE         128 /* two cache lines: they are fetched in pairs */
#define CAPACITY_MAX (1u << 24)

struct mailbox {
        _Alignas(LINE) _Atomic uint32_t tail;
        uint32_t head_seen; /* sender's: where head was when it last looked full */
        _Alignas(LINE) _Atomic uint32_t head;
        _Alignas(LINE) _Atomic uint32_t bell;
        _Alignas(LINE) uint32_t mask; /* capacity - 1 */
        int fd;                       /* the bell of a taker that sleeps elsewhere, or -1 */
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
                .bell = bell >= 0, /* a loop may go to sleep before it has looked here once */
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

/* Neither call can fail but by a bug; -EAGAIN is a bell that has rung for ever already. */
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
 * The taker raised the bell after it had handled what it took, and this load meets that
 * store.  A taker that wakes for no reason finds nothing and raises it again.
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

/* The taker's half of the agreement; true if the next mail will ring. */
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
 * The taker sleeps elsewhere, when it likes; so whatever this returns, either the
 * next mail will ring or, with mails left behind, the bell has rung again.
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
