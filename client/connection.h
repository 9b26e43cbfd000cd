/*
 * A connection: the socket to the daemon, and the bytes on their way in and out.
 *
 * Only connection_poll() blocks, and not longer than its deadline.  Bytes that cannot be
 * sent at once wait in `out`.  Received bytes stay in `in` until they are dropped:
 *
 *      in.at        start             kept             scan              in.count
 *        | dropped   | frames to read  | read            | never looked at  |
 *
 * Events are read at `start`, in the order in which they came.  While a call waits
 * for its reply, it looks ahead with `scan`.  This steps over records and over replies that
 * are events, and leaves them where they are: the last of them ends at `kept`.  Only then
 * does `in` grow beyond one frame, up to CONNECTION_IN_MAX.
 *
 * The connection accepts descriptors only while it waits for the reply to hello.  At any
 * other time the kernel drops the descriptors that the daemon sends.
 *
 * When the daemon is gone, or sends bytes that are not a frame, the connection is lost, and
 * it stays lost.  Complete frames that came before can still be read.
 */
#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "json/bytes.h"

#define CONNECTION_IN_MAX  ((size_t)64 << 20)
#define CONNECTION_FDS_MAX 8u

struct connection {
        int fd;
        int lost;  /* 0, or the negative errno that says why it was lost */
        bool mute; /* sending failed; the daemon may have sent the reason */
        struct bytes in, out;
        size_t start, kept, scan, sent;
        size_t frame_max; /* the longest body that is accepted */

        bool takes_fds;
        /* descriptors received, in order; connection_close_fds() closes them */
        int fds[CONNECTION_FDS_MAX];
        unsigned fd_count;
};

#define DEADLINE_NEVER UINT64_MAX

uint64_t monotonic_ns(void);             /* ns, monotonic */
uint64_t deadline_after(int timeout_ms); /* -1: DEADLINE_NEVER */

/* The connection owns `fd` from now on. */
void connection_init(struct connection *connection, int fd);
void connection_deinit(struct connection *connection);

/*
 * A connected socket, or a negative errno.  -EAGAIN: the daemon's queue of new connections is full.
 */
int connection_dial(const char *path);

/* True if `ms` from now are over before the deadline. */
bool is_before(uint32_t ms, uint64_t deadline);
void sleep_for(uint32_t ms);

/* The uid at the other end, or a negative errno. */
int64_t connection_peer_uid(const struct connection *connection);

/*
 * Sends and receives as much as is possible now; if there is nothing to receive, waits
 * for it.  1: there is more in `in`, or the connection is lost.  0: the deadline has passed.
 * Or -ENOMEM.
 */
int connection_poll(struct connection *connection, uint64_t deadline);

/* Sends as much of `out` as the socket accepts now. */
void connection_flush(struct connection *connection);
/* The bytes that wait in `out`. */
size_t connection_unsent(const struct connection *connection);

/* Appends an empty frame to `out`, and sends what it can.  0 or -ENOMEM. */
int connection_send_empty(struct connection *connection);

/* The first accepts descriptors from now on; the second closes them and accepts no more. */
void connection_accept_fds(struct connection *connection);
void connection_close_fds(struct connection *connection);

/* The frame at `at`.  1: it is complete.  0: it is not, or its length made the connection lost. */
int connection_frame(struct connection *connection, size_t at, const char **ret_body,
                     size_t *ret_bytes);

/* Drops everything before `at`. */
void connection_consume(struct connection *connection, size_t at);
/* Drops everything before `scan`, unless a frame before it was kept for events. */
void connection_consume_scanned(struct connection *connection);
/* The frame that ends at `scan` is an event, as yet unread. */
void connection_keep_scanned(struct connection *connection);
/* True if frames that were kept are still unread. */
bool connection_has_kept(const struct connection *connection);

/*
 * Marks the connection as lost: nothing more is received, and the bytes from `at` on are discarded.
 */
void connection_set_lost(struct connection *connection, int error, size_t at);

#endif
