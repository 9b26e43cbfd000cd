/*
 * How failures travel.
 *
 * Three kinds, never mixed.
 *
 *   Bugs are asserts, and asserts stay on in release.
 *
 *   The world failed: a negative errno.  It is born with error_raise(), passes
 *   up through error_pass() and is never matched on; the border that can act
 *   logs the trail (closes the peer, ends the daemon).  Both macros cost a
 *   branch when all is well and leave one line per frame when it is not.
 *
 *   Things that happen: small positive outcomes, named by the module
 *   (RING_E_FULL).  The direct caller handles them and does not forward them.
 */
#ifndef DAEMON_ERROR_H
#define DAEMON_ERROR_H

#define error_raise(r) error_mark((r), 1, __FILE__, __LINE__, __func__)
#define error_pass(r)  error_mark((r), 0, __FILE__, __LINE__, __func__)

/* Returns r.  A negative one is added to this thread's trail; born starts it anew. */
int error_mark(int r, int born, const char *file, int line, const char *function);

/* "wire.c:120 wire_next < peer.c:88 peer_fill", of the last trail of this thread. */
const char *error_trail(void);

#endif
