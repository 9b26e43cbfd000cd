/*
 * How errors are reported.
 *
 * There are three kinds, and they are never mixed.
 *
 * Bugs are asserts, and asserts stay enabled in release builds.
 *
 * Failures of the environment are a negative errno.  error_raise() creates one, and error_pass()
 * passes it up.  Callers never compare it with a particular value.  The outer layer that can act on
 * it logs the trail and acts (closes the peer, ends the daemon).  Both macros cost a branch on
 * success and record one entry per stack frame on failure.
 *
 * Expected outcomes are small positive numbers, named by the module (RING_E_FULL).  The direct
 * caller handles them and does not forward them.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#define error_raise(r) error_mark((r), 1, __FILE__, __LINE__, __func__)
#define error_pass(r)  error_mark((r), 0, __FILE__, __LINE__, __func__)

/* Returns r.  A negative r is added to this thread's trail; `born` starts a new trail. */
int error_mark(int r, int born, const char *file, int line, const char *function);

/* The last trail of this thread, such as "wire.c:120 wire_next < peer.c:88 peer_fill". */
const char *error_trail(void);

#endif
