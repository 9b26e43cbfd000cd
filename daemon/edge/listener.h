/*
 * The listener: the socket in the file system, and the check of who may connect.
 *
 * A lock file beside the path guards it.  The lock is held for life and the file is never unlinked.
 * So two daemons cannot both believe that a stale socket is theirs: the daemon with the lock may
 * unlink and bind, and the other one says which process has the lock.  If there is something else
 * than a socket at the path, it is left alone.  When descriptors run out, the listener closes a
 * spare descriptor, accepts, refuses, and opens the spare again: it never spins.
 *
 * The socket is bound 0600, and it does not listen while it gets its group and then its mode.  So
 * it is never more open than was asked, not even for a moment.  The directory is made if its parent
 * is there, as open as the socket needs (0700, 0750, 0755) and in the same order.  A directory that
 * was there stays as it is; if it keeps clients out, the log says so.  The lock file is always
 * 0600: a user that cannot open it cannot hold it.
 *
 * The service manager may pass a socket that listens already.  Then none of this is needed: who
 * may connect is the manager's to say, and the socket outlives the daemon.
 *
 * The listener is made in two steps: listener_new() makes sure that the path is ours, which may
 * wait for another daemon to end, and listener_start() listens.  Between them the daemon measures
 * memory and opens its model.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_LISTENER_H
#define DAEMON_EDGE_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/edge/context.h"

struct listener;

enum listener_outcome { LISTENER_E_HELD = 1 }; /* listener_new(): *why says which process has it */

struct listener_conf {
        const char *path;
        uint32_t mode; /* 0600, 0660 or 0666 */
        /* A name or a number; NULL: the group that the kernel gives the socket. */
        const char *group;
        int passed_fd; /* a listening socket from the service manager, now ours; -1: none */
        /* Asks the daemon that has the socket to stop, and waits this long; 0: refuses instead. */
        uint32_t replace_ms;
};

/* Both are called before any thread starts.  On an error there is nothing to close. */
int listener_new(const struct listener_conf *conf, struct listener **ret_listener, char *why,
                 size_t why_bytes);
/* Listens.  On an error the caller still closes the listener. */
int listener_start(struct listener *listener, struct edge *edge, char *why, size_t why_bytes);

/* The path that it listens on.  With a passed socket, the path of that. */
const char *listener_path(const struct listener *listener);

/*
 * Whether this is the control socket that belongs to `other`: at its path with SMV_CONTROL_SUFFIX.
 * The service manager may pass both.  They differ while the daemon drains.
 */
bool listener_is_control_of(const struct listener *listener, const struct listener *other);

/*
 * The daemon drains.  Its own socket stays, so that new clients are told, or let in (late.h).
 * Connections to a passed socket are left there, for the next daemon that the service manager
 * starts.  So a passed control socket is not drained: clients that want to be let in come there.
 */
void listener_drain(struct listener *listener);
/*
 * Stops accepting and removes the socket; the lock is freed when the process ends.  A second call
 * does nothing.
 */
void listener_stop(struct listener *listener);
/* Stops and frees it; takes NULL. */
struct listener *listener_close(struct listener *listener);

/* $XDG_RUNTIME_DIR/samovar/sock, else /run/samovar/sock. */
int listener_default_path(char *ret_path, size_t path_bytes);

#endif
