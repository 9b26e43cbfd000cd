/*
 * A connection: from the accepted socket to its end.
 *
 * IDLE -> HEAD_IN -> BODY_IN -> RUNNING -> IDLE, and at last LINGERING.  In the first three the
 * socket is read.  While a request runs it is not: what the client sends then stays in the kernel,
 * but for the rest of the last read.  Only its leaving is watched for.  Each state has a deadline
 * (http_conf): for the head and the body as a whole, so that a byte now and then does not help, and
 * for progress while something is to be sent.
 *
 * The server ends a connection behind its last answer in two steps: it ends its own half, and drops
 * what comes until the client closes or the deadline passes.  If it closed at once while bytes are
 * unread, the kernel would reset the connection, and the client might lose the answer.
 */
#ifndef BRIDGE_HTTP_CONNECTION_H
#define BRIDGE_HTTP_CONNECTION_H

#include "bridge/http/context.h"

/*
 * Takes fd.  If all places are taken, the connection that is idle for the longest time makes place;
 * if none is idle, the client is told so.  -ENOMEM and the like: fd is closed.
 */
int http_connection_new(struct http_server *server, int fd, bool is_unix);
/* Of the marked ones: sends, watches, frees.  The server calls it when a turn ends. */
void http_connection_settle_all(struct http_server *server);
/* Frees it; on_gone() is called if the program has its exchange. */
void http_connection_free(struct http_connection *connection);

#endif
