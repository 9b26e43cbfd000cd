/*
 * The address of the daemon, and whether to trust the process that answers there.
 *
 * If the caller names no path, $SAMOVAR_SOCKET does.  Otherwise the user's own daemon comes first,
 * at samovar/sock in $XDG_RUNTIME_DIR, then the machine's, at SMV_SYSTEM_SOCKET.
 *
 * The process that binds a path sees every prompt.  So the daemon must run as our user or as root,
 * or as a user that root has named: as the owner of the folder of SMV_SYSTEM_SOCKET, which only
 * root can make, or in SMV_CLIENT_CONF.  That file has lines `trust = USER`, with a name or a
 * number, blank lines, and lines that begin with #.
 */
#ifndef CLIENT_DAEMON_ADDRESS_H
#define CLIENT_DAEMON_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DAEMON_PATH_BYTES 512u

/* The paths to try, in order.  `count` is 0 if they are too long. */
struct daemon_paths {
        char at[2][DAEMON_PATH_BYTES];
        size_t count;
};

/* `named`: the caller's path, or NULL. */
void daemon_paths_find(const char *named, struct daemon_paths *ret_paths);

/* Whether a daemon of this uid, at this path, may see our prompts. */
bool daemon_is_trusted(const char *path, uint32_t uid);

/*
 * Its parts, for tests.  A folder counts if it belongs to `uid`, the folder above it to root, and
 * no other user may write to either.  A file counts if only root may write it.
 */
bool trust_by_folder(const char *folder, const char *above, uint32_t uid);
bool trust_by_file(const char *file, uint32_t uid);

#endif
