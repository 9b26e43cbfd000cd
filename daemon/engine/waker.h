/*
 * The waker: the thread that tells readers.
 *
 * Writing a record costs tens of nanoseconds, waking a sleeper microseconds;
 * so the engine writes and the waker wakes: once for all that a step brought to
 * a connection, and not at all whoever has asked to be woken later.  What it
 * wakes for is visible already.
 *
 * Where a step has news for one connection and the waker sleeps, the engine stands in
 * for it: to wake the waker would cost it as much as to wake the reader, and the reader
 * another thread's wake-up on top.  With more of them the waker pays.  It keeps off the
 * processor that the engine is on, where there is another: it would not wait there, but
 * take the engine's place.
 *
 * It also forwards, in order, that a channel is gone, which makes it the last but
 * one to see it: no doorbell is rung on a descriptor that is another's by now.
 */
#ifndef DAEMON_ENGINE_WAKER_H
#define DAEMON_ENGINE_WAKER_H

#include "daemon/mailbox.h"
#include "daemon/stats.h"

struct channel;
struct waker;

int waker_start(struct mailbox *inbox, struct mailbox *outbox, struct stats *stats,
                struct waker **ret_waker);

/* Engine: does what a WAKE for this channel would have done, if the waker sleeps.  False: post it. */
bool waker_stand_in(struct waker *waker, struct channel *channel);
/* Engine, before it wakes the waker: this is where it runs. */
void waker_keep_off(struct waker *waker);

/* After MAIL_STOPPED has passed through it: waits for the thread.  Takes NULL. */
struct waker *waker_join(struct waker *waker);

#endif
