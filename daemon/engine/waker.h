/*
 * The waker: the thread that wakes readers.
 *
 * Writing a record costs tens of nanoseconds; waking a sleeping thread costs microseconds.  So the
 * engine writes and the waker wakes.  It wakes once for all records that a step wrote to a
 * connection, and not at all if the reader asked to be woken later.  The records are visible before
 * the wake.
 *
 * If a step has news for one connection only and the waker sleeps, the engine does the waker's work
 * inline.  Waking the waker would cost the engine as much as waking the reader, and the reader
 * would wait for one more thread to wake.  With several connections it pays to use the waker.  The
 * waker avoids the processor that the engine runs on, if there is another.  On the engine's
 * processor it would not wait, but would displace the engine.
 *
 * The waker also forwards CHANNEL_GONE, in order.  So only the loop sees the channel after the
 * waker, and no doorbell is rung on a descriptor that already belongs to another socket.
 */
#ifndef DAEMON_ENGINE_WAKER_H
#define DAEMON_ENGINE_WAKER_H

#include "daemon/ipc/mailbox.h"
#include "daemon/ipc/stats.h"

struct channel;
struct waker;

int waker_start(struct mailbox *inbox, struct mailbox *outbox, struct stats *stats,
                struct waker **ret_waker);

/* Engine: if the waker sleeps, does the work of a WAKE for this channel.  False: post the WAKE. */
bool waker_wake_inline(struct waker *waker, struct channel *channel);
/* Engine, before it wakes the waker: records the processor that the engine runs on. */
void waker_avoid_cpu(struct waker *waker);

/* Waits for the thread; call it after MAIL_STOPPED has passed through the waker.  Takes NULL. */
struct waker *waker_join(struct waker *waker);

#endif
