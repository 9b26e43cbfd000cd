/*
 * The waker: the thread that tells readers.
 *
 * Writing a record costs tens of nanoseconds, waking a sleeper microseconds;
 * so the engine writes and the waker wakes.  It also forwards what retires, in
 * order, which makes it the last but one to see a channel.
 */
#ifndef DAEMON_ENGINE_WAKER_H
#define DAEMON_ENGINE_WAKER_H

#include "daemon/mailbox.h"
#include "daemon/stats.h"

struct waker;

int waker_start(struct mailbox *inbox, struct mailbox *outbox, struct stats *stats,
                struct waker **ret_waker);
/* After MAIL_STOPPED has passed through it: waits for the thread.  Takes NULL. */
struct waker *waker_join(struct waker *waker);

#endif
