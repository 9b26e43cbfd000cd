/*
 * The listener: the socket in the file system, and who may come in.
 *
 * The path is guarded by a lock file beside it, held for life and never
 * unlinked, so that two daemons cannot both believe a stale socket to be
 * theirs: who has the lock may unlink and bind, who has not says who holds it.
 * What stands at the path and is no socket is left alone.  When descriptors run out
 * it closes the reserve it keeps, accepts, refuses, and opens the reserve again: it
 * never spins.
 *
 * The socket is bound 0600 and nobody listens at it while it is given its group and
 * then its mode, so it is never more open than asked, for no moment.  The directory
 * is made if its parent is there, as open as the socket needs (0700, 0750, 0755) and
 * in the same order; one that was there stays as it is, and if it bars the way the
 * log says so.  The lock file is 0600 always: who cannot open it cannot hold it.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_LISTENER_H
#define DAEMON_EDGE_LISTENER_H

#include <stddef.h>

#include "daemon/edge/edge.h"

struct listener;

enum listener_outcome { LISTENER_E_HELD = 1 }; /* *why says by whom */

struct listener_conf {
        const char *path;
        uint32_t mode;     /* 0600, 0660 or 0666 */
        const char *group; /* a name or a number; NULL: whichever the kernel gives it */
};

/* Before any thread starts. */
int listener_open(struct edge *edge, const struct listener_conf *conf,
                  struct listener **ret_listener, char *why, size_t why_bytes);
/* Accepts no more, removes the socket; the lock goes with the process.  Twice is once. */
void listener_stop(struct listener *listener);
struct listener *listener_close(struct listener *listener); /* stops and frees it; takes NULL */

/* $XDG_RUNTIME_DIR/samovar/sock, else /run/samovar/sock. */
int listener_default_path(char *ret_path, size_t path_bytes);

#endif
