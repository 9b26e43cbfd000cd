/*
 * Subuid: which user owns a uid of a container, from /etc/subuid.
 *
 * Each line of that file gives a user a range of uids, for the containers of that user
 * (`alice:100000:65536`).  The user is a name or a number.  Lines that cannot be read, or whose
 * user is not known, are skipped and counted in the log.  A missing file gives no ranges.  If
 * ranges overlap, the line that comes first in the file wins.
 *
 * Containers are trusted less than the user that starts them.  So a range of root, or of the user
 * that runs the daemon, does not belong to that privileged user: it is one ordinary account, named
 * by the first uid of the range.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_SUBUID_H
#define DAEMON_EDGE_SUBUID_H

#include <stdint.h>

#define SUBUID_PATH "/etc/subuid"

struct subuid;

/* No ranges.  `owner`: the user that runs the daemon.  `path` outlives it. */
int subuid_new(const char *path, uint32_t owner, struct subuid **ret_subuid);
struct subuid *subuid_free(struct subuid *subuid); /* takes NULL */

/* Reads the file anew.  If that fails (-ENOMEM, -EIO ...), the ranges stay as they were. */
int subuid_load(struct subuid *subuid);

/* The uid whose account is charged for what this uid holds: itself, if it is in no range. */
uint32_t subuid_account(const struct subuid *subuid, uint32_t uid);

#endif
