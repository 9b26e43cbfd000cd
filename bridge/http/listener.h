/*
 * Listeners: sockets that accept connections for the server.
 *
 * TCP at a loopback address, or at another one if there are keys; a Unix socket at a path, with a
 * lock file beside it that keeps a second server off; or a socket of the service manager, which
 * keeps it.  When descriptors run out, the listener closes a spare one, accepts, tells the client
 * to come again, and opens the spare again.  If accept fails for another reason, it pauses.  So it
 * never spins.
 */
#ifndef BRIDGE_HTTP_LISTENER_H
#define BRIDGE_HTTP_LISTENER_H

#include "bridge/http/context.h"

/* They join server->listeners.  On an error: a negative errno, and *why. */
int http_listener_tcp(struct http_server *server, const char *address, uint16_t *ret_port,
                      char *why, size_t why_bytes);
int http_listener_unix(struct http_server *server, const char *path, unsigned mode, char *why,
                       size_t why_bytes);
int http_listener_fd(struct http_server *server, int fd, char *why, size_t why_bytes);
/* Closes all of them, and removes the sockets that they made. */
void http_listeners_close(struct http_server *server);

#endif
