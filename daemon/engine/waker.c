#include "daemon/engine/waker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/channel.h"
#include "daemon/error.h"
#include "daemon/sys.h"

#define MAILS 64u

struct waker {
        struct mailbox *inbox, *outbox;
        struct stats *stats;
        pthread_t thread;
};

/*
 * The flag is lowered first: what the engine publishes from here on posts a WAKE
 * of its own.  Where the loop has been told and has not looked yet, that look
 * will see this, too.
 */
static void wake(struct waker *waker, const struct mail *mail)
{
        struct channel *channel = mail->what;

        channel_lower(&channel->waking);
        counter_add(&waker->stats->wakes, 1);
        if (channel_raise(&channel->draining))
                mailbox_post(waker->outbox, mail);
}

static void *waker_main(void *arg)
{
        struct waker *waker = arg;
        struct mail mails[MAILS];

        for (;;) {
                uint32_t count = mailbox_take(waker->inbox, mails, MAILS, UINT64_MAX);

                for (uint32_t i = 0; i < count; i++) {
                        if (mails[i].kind == MAIL_WAKE) {
                                wake(waker, &mails[i]);
                                continue;
                        }
                        mailbox_post(waker->outbox, &mails[i]);
                        if (mails[i].kind == MAIL_STOPPED)
                                return NULL;
                }
        }
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
