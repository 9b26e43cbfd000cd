/*
 * Channels: makes them, gives them numbers and charges them, and frees them when all threads have
 * let them go.
 *
 * A peer has one channel at most, and a connection counts for its user (quota.h) until its channel
 * is freed.  So there is always a number for the channel of a connection, and the private rings of
 * a user take uid_connections * ring_bytes at most.  Only shared rings are charged as bytes: a
 * client whose ring is refused can use the socket, which needs nothing that can be refused.
 *
 * The kernel needs time to take the pages of a ring back.  If several clients went at once, one
 * channel is freed in each turn of the loop.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_CHANNELS_H
#define DAEMON_EDGE_CHANNELS_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

/* 0 or -ENOMEM. */
int channels_begin(struct edge *edge);
void channels_end(struct edge *edge); /* asserts that none is open */

/*
 * A channel that belongs to no peer: 0, WIRE_E_REFUSED, or a negative errno.  HANGUP gives it back.
 */
int channels_make(struct edge *edge, enum channel_bell bell, uint64_t ring_bytes, uint32_t id,
                  struct wire_problem *ret_problem, struct channel **ret_channel);

/*
 * A ring for this peer; a shared one is charged to its uid.  0, WIRE_E_REFUSED, or a negative
 * errno.  HANGUP gives it back; or channels_take_back(), while the engine has not heard of it.
 */
int channels_make_for(struct peer *peer, enum channel_bell bell, uint64_t ring_bytes, uint32_t id,
                      struct wire_problem *ret_problem);
void channels_take_back(struct peer *peer);
/* Gives the ring of this peer slots for questions, and charges them with it.  Returns the same. */
int channels_add_slots(struct peer *peer, const struct wire_request *asked,
                       struct wire_problem *ret_problem);

/* The reader of this channel has read on: tells the engine, if it waits and was not told yet. */
void channels_resume(struct edge *edge, struct channel *channel);

/* CHANNEL_GONE has come: no other thread has the channel. */
void channels_gone(struct edge *edge, struct channel *channel);

#endif
