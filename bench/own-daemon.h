/*
 * A samovard of one's own: a process on a socket in a directory of its own.  One at a time; it
 * dies with the program that started it.
 */
#ifndef BENCH_OWN_DAEMON_H
#define BENCH_OWN_DAEMON_H

#include <stddef.h>

#include <samovar/client.h>

/* Flags end with NULL and have no --socket.  0 and a connection, or a negative errno and why. */
int own_daemon_start(const char *program, const char *const *flags, struct smv_client **ret_client,
                     char *why, size_t why_bytes);

/* Closes the connection, ends the process in order, removes the directory.  None: nothing. */
void own_daemon_stop(void);

/* Where it is found, for those who connect as well. */
const char *own_daemon_socket(void);

/* Its process; 0: there is none. */
int own_daemon_pid(void);

/* Does it take these flags?  Asked of `samovard FLAGS --version`. */
int own_daemon_knows(const char *program, const char *const *flags);

#endif
