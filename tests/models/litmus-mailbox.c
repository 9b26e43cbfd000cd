/*
 * The mailbox's bell: mailbox_post() and the taker's grab() and raise_bell(), the product's.
 *
 * The taker found nothing, raises its bell and looks once more, while a mail is posted.  Forbidden:
 * it may go to sleep and the sender did not ring.  raise_bell() tells whether the taker would
 * sleep, and the futex call shows whether the sender rang.  So a lost wake-up is seen at once, and
 * no thread has to wait for it.
 *
 * WEAK makes every sequentially consistent access release, acquire or both.
 */
#include "tests/models/litmus.h"

#include <stdatomic.h>

#ifdef WEAK
#undef atomic_store
#undef atomic_load
#undef atomic_exchange
#define atomic_store(word, value)    atomic_store_explicit(word, value, memory_order_release)
#define atomic_load(word)            atomic_load_explicit(word, memory_order_acquire)
#define atomic_exchange(word, value) atomic_exchange_explicit(word, value, memory_order_acq_rel)
#endif
#include "daemon/ipc/mailbox.c"

static bool rang, sleeps;

/* Functions that mailbox.c needs. */
int sys_futex_wake(const uint32_t *word)
{
        (void)word;
        rang = true;
        return 0;
}

int sys_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
        (void)word, (void)value, (void)deadline_ns;
        return 0;
}

ssize_t sys_write(int fd, const void *bytes, size_t count)
{
        (void)fd, (void)bytes;
        return (ssize_t)count;
}

uint64_t sys_clock_ns(void)
{
        return 0;
}

int error_mark(int r, int born, const char *file, int line, const char *function)
{
        (void)born, (void)file, (void)line, (void)function;
        return r;
}

static struct mailbox box = { .fd = -1, .mails = { { 0 } } };
static uint32_t count;

static const char *const litmus_outcome[LITMUS_OUTCOMES] = {
        "asleep and nobody rang (forbidden)",
        "asleep and rung for",
        "the taker saw the mail, nobody rang",
        "both saw",
};

static void litmus_begin(void)
{
        atomic_store_explicit(&box.tail, 0, memory_order_relaxed);
        atomic_store_explicit(&box.head, 0, memory_order_relaxed);
        atomic_store_explicit(&box.bell, 0, memory_order_relaxed);
        box.head_seen = 0;
        rang = sleeps = false;
}

static void post_one(void)
{
        const struct mail mail = { .kind = MAIL_WAKE };

        mailbox_post(&box, &mail);
}

static void take_or_sleep(void)
{
        struct mail mail;

        count = grab(&box, &mail, 1);
        if (!count)
                sleeps = raise_bell(&box);
}

static void (*const litmus_thread[3])(void) = { post_one, take_or_sleep };

static int litmus_end(void)
{
        return (sleeps ? 0 : 2) + rang;
}
