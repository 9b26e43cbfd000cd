/*
 * The service manager: what systemd passes to a daemon that it starts, and what it is told.
 *
 * These are the protocols of sd_listen_fds(3), sd_notify(3) and sd_watchdog_enabled(3).  All of
 * them begin with variables in the environment; without those, nothing is passed and nothing is
 * told.  The variables are removed, so that no child takes them for its own.
 */
#ifndef BASE_SERVICE_MANAGER_H
#define BASE_SERVICE_MANAGER_H

#include <stddef.h>
#include <stdint.h>

#define SERVICE_SOCKETS_MAX 8u

struct service_manager {
        char address[112]; /* where it listens; "": nobody does */
        int fd;            /* a datagram socket, or -1 */
        /* The listening sockets that it passed; those from passed_count on are not set. */
        int passed_fds[SERVICE_SOCKETS_MAX];
        uint32_t passed_count;
        /* It kills the daemon when it was not told WATCHDOG=1 for so long; 0: it does not. */
        uint64_t watchdog_ns;
};

/*
 * -EINVAL and *why: it passes more than sockets_max sockets (SERVICE_SOCKETS_MAX at most), or the
 * variables are damaged.  `takes` says for people which sockets the program takes.
 */
int service_manager_open(struct service_manager *manager, uint32_t sockets_max, const char *takes,
                         char *why, size_t why_bytes);
void service_manager_close(struct service_manager *manager); /* not of passed_fds */

/*
 * The folder that the sandbox of the daemon's unit hides, if `path` is in one: "/home".  NULL: no
 * service manager has started the daemon, or the path is in none of the folders of ProtectHome=, or
 * the next folder of the path can be seen.
 */
const char *service_manager_hides(const struct service_manager *manager, const char *path);

/* Lines of NAME=VALUE.  If it does not listen any more, the message is lost. */
void service_manager_tell(const struct service_manager *manager, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#endif
