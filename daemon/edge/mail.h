/*
 * Mail: what the engine, the waker and the text worker tell the loop.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_MAIL_H
#define DAEMON_EDGE_MAIL_H

#include "daemon/edge/context.h"

/* Takes all mail; called when the bell has rung. */
void mail_take(struct edge *edge);

#endif
