/*
 * The edge: everything the loop thread owns.
 *
 * Peers come in through the listener.  Their texts go through the text worker, their requests go
 * down to the engine, and retired requests come back up.  The edge ends in order: edge_drain()
 * refuses new work and lets running requests finish, for drain_timeout_ms at most.  Then every
 * stream is ended.  The ENDs are flushed to clients that read; clients that do not read have a
 * second.  Every channel retires, and edge_run() returns.  A second edge_drain() skips the waiting
 * for running requests.
 *
 * The modules, from the bottom up; each may use those above it in this list:
 *
 *     buffer, msgpack-reader, wire-request, values, field-readers, fields, wire   the protocol
 *     loop, subuid, quota, principals, record-log
 *     context, stream              what all share
 *     channels, pins               rings; pinned histories
 *     connection, record-frames    what is sent
 *     admission, fork              who may run, and with which parameters
 *     handles, resumable           what outlives a request, or a connection
 *     encode-job, encode-work      text, on the text worker's thread
 *     streams                      what is with the engine
 *     op-*                         an operation each
 *     peer                         bytes that come in, and turns
 *     accept, listener, mail       what happens to a connection from outside
 *     edge                         life and end
 */
#ifndef DAEMON_EDGE_EDGE_H
#define DAEMON_EDGE_EDGE_H

#include "daemon/edge/context.h"

int edge_new(const struct edge_conf *conf, struct edge **ret_edge);
struct edge *edge_free(struct edge *edge); /* takes NULL */

/*
 * Runs until everything has ended in order.  Returns 0, or the error that the engine failed with.
 */
int edge_run(struct edge *edge);

/*
 * Called on SIGTERM or SIGINT.  It takes effect at the end of the turn of the loop.  Modules below
 * set drains_pending (context.h) instead.
 */
void edge_drain(struct edge *edge);

/* Requests that were accepted and are not over.  Loop thread only. */
uint32_t edge_requests(const struct edge *edge);

/*
 * Called on SIGHUP: the settings that may change while the daemon serves have changed in the
 * config.  Reads the ranges of /etc/subuid anew, too (subuid.h).
 */
void edge_reload(struct edge *edge);

#endif
