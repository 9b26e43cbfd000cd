/*
 * A private samovard: a process with a socket in its own directory.  There is one at a time,
 * and it dies with the program that started it.
 */
#ifndef BENCH_OWN_DAEMON_H
#define BENCH_OWN_DAEMON_H

#include <stddef.h>

#include <samovar/client.h>

/*
 * Flags end with NULL and must not contain --socket.  0 and a connection, or a negative errno
 * and the reason.
 */
int own_daemon_start(const char *program, const char *const *flags, struct smv_client **ret_client,
                     char *why, size_t why_bytes);

/*
 * Closes the connection, shuts the process down in order, removes the directory.  Does nothing
 * if there is no daemon.
 */
void own_daemon_stop(void);

/* The path of its socket, for further clients. */
const char *own_daemon_socket(void);

/* Its process id; 0: there is none. */
int own_daemon_pid(void);

/* Whether the program accepts these flags.  Runs `samovard FLAGS --version` to find out. */
int own_daemon_knows(const char *program, const char *const *flags);

#endif
