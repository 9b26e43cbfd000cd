#include "daemon/engine/waker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/ipc/channel.h"
#include "base/error.h"
#include "base/sys.h"

#define MAILS 64u

struct waker {
        struct mailbox *inbox, *outbox;
        struct stats *stats;
        pthread_t thread;
        _Atomic int engine_cpu; /* as of the engine's last wake-up of the waker */
        int off_cpu;            /* the processor that the waker avoids; -1: none */
};

static void call_loop(struct waker *waker, struct channel *channel)
{
        if (channel_raise(&channel->draining))
                mailbox_post(waker->outbox, &(struct mail){ .kind = MAIL_WAKE, .what = channel });
}

/*
 * The flag is lowered first: whatever the engine publishes from here on posts its own WAKE.  If the
 * loop was called and has not looked yet, its look will see these records too.
 */
static void wake(struct waker *waker, struct channel *channel)
{
        channel_lower(&channel->waking);
        counter_add(&waker->stats->wakes, 1);
        if (channel_lower(&channel->calling) || channel->bell == CHANNEL_LOOP)
                call_loop(waker, channel);
        if (channel->bell == CHANNEL_LOOP || channel->bell == CHANNEL_NONE ||
            !channel_is_due(channel))
                return;
        counter_add(&waker->stats->doorbells, 1);
        if (channel_ring(channel))
                call_loop(waker, channel);
}

bool waker_wake_inline(struct waker *waker, struct channel *channel)
{
        if (!mailbox_is_asleep(waker->inbox))
                return false;
        wake(waker, channel);
        return true;
}

void waker_avoid_cpu(struct waker *waker)
{
        atomic_store_explicit(&waker->engine_cpu, sys_cpu(), memory_order_relaxed);
}

/* Errors are ignored: it may be forbidden, or there may be no other processor. */
static void keep_off(struct waker *waker)
{
        int cpu = atomic_load_explicit(&waker->engine_cpu, memory_order_relaxed);

        if (cpu == waker->off_cpu)
                return;
        waker->off_cpu = cpu;
        (void)sys_avoid_cpu(cpu);
}

/* Returns true after the last mail. */
static bool handle(struct waker *waker, const struct mail *mail)
{
        if (mail->kind == MAIL_WAKE)
                wake(waker, mail->what);
        else
                mailbox_put(waker->outbox, mail);
        return mail->kind == MAIL_STOPPED;
}

static void *waker_main(void *arg)
{
        struct waker *waker = arg;
        struct mail mails[MAILS];
        bool last = false;

        while (!last) {
                uint32_t count = mailbox_take(waker->inbox, mails, MAILS, UINT64_MAX);

                keep_off(waker);
                for (uint32_t i = 0; i < count; i++)
                        last |= handle(waker, &mails[i]);
                mailbox_ring(waker->outbox);
        }
        return NULL;
}

int waker_start(struct mailbox *inbox, struct mailbox *outbox, struct stats *stats,
                struct waker **ret_waker)
{
        struct waker *waker = malloc(sizeof(*waker));
        int r;

        if (!waker)
                return error_raise(-ENOMEM);
        waker->inbox = inbox;
        waker->outbox = outbox;
        waker->stats = stats;
        waker->engine_cpu = waker->off_cpu = -1;
        r = sys_thread(&waker->thread, "waker", waker_main, waker);
        if (r < 0) {
                free(waker);
                return error_raise(r);
        }
        *ret_waker = waker;
        return 0;
}

struct waker *waker_join(struct waker *waker)
{
        if (waker)
                pthread_join(waker->thread, NULL);
        free(waker);
        return NULL;
}
