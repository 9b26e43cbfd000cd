/*
 * The waker: the thread that tells readers.
 *
 * Writing a record costs tens of nanoseconds, waking a sleeper microseconds;
 * so the engine writes and the waker wakes: once for all that a step brought to
 * a connection, and not at all whoever has asked to be woken later.  What it
 * wakes for is visible already.
 *
 * It also forwards, in order, that a channel is gone, which makes it the last but
 * one to see it: no doorbell is rung on a descriptor that is another's by now.
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
