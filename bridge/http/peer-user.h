/*
 * The user at the other end of a connection.
 *
 * Of a Unix socket the kernel tells it.  Of a TCP connection on this machine the kernel is asked
 * for the one socket at the other end (sock_diag).  Where it does not say, the socket is looked for
 * in /proc/net/tcp, where each is a line with its owner; that takes longer, the more sockets there
 * are.  A socket that its process has closed has no owner any more and seems to be root's, so it is
 * not taken for an answer.
 */
#ifndef BRIDGE_HTTP_PEER_USER_H
#define BRIDGE_HTTP_PEER_USER_H

#include <stdbool.h>
#include <stdint.h>

/* 0; -ENOENT: the other end is no socket of this machine, or of another network namespace. */
int http_peer_user(int fd, bool is_unix, uint32_t *ret_uid);

#endif
