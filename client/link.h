/*
 * A link: the socket to the daemon and what is on its way in and out.
 *
 * Nothing here blocks but link_turn(), and that for no longer than its deadline.
 * What cannot be sent at once waits in `out`.  What came in stays in `in` until
 * it is dropped:
 *
 *      in.at        start               scan              in.count
 *        | dropped   | frames to read    | never looked at  |
 *
 * Events are read at `start`, in the order in which they came.  While a call
 * waits for its reply it looks ahead with `scan`, which steps over records and
 * leaves them where they are; that is the only time when `in` grows beyond one
 * frame, up to LINK_IN_MAX.
 *
 * Descriptors come with bytes only while the link is told to take them, which is
 * while hello's reply is awaited; whoever sends more is wasting his own.
 *
 * When the daemon is gone, or sends what is no frame, the link is lost, once and
 * for good.  What came whole before that can still be read.
 */
#ifndef CLIENT_LINK_H
#define CLIENT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "client/bytes.h"

#define LINK_IN_MAX  ((size_t)64 << 20)
#define LINK_FDS_MAX 8u

struct link {
        int fd;
        int lost;  /* 0, or the negative errno that it was lost with */
        bool mute; /* the daemon reads no more; it may have said why */
        struct bytes in, out;
        size_t start, scan, sent;
        size_t frame_max; /* longest body that is taken */

        bool takes_fds;
        int fds[LINK_FDS_MAX]; /* what came, in order; ours to close */
        unsigned fd_count;
};

#define LINK_FOREVER UINT64_MAX

uint64_t link_now(void);                /* ns, monotonic */
uint64_t link_deadline(int timeout_ms); /* -1: LINK_FOREVER */

/* Takes fd. */
void link_init(struct link *link, int fd);
void link_deinit(struct link *link);

/* A connected socket, or a negative errno. */
int link_connect(const char *path, uint64_t deadline);

/* The uid at the other end, or a negative errno. */
int64_t link_peer_uid(const struct link *link);

/*
 * Sends and reads what can be; if there was nothing to read, waits for it.
 * 1: there is more in `in`, or the link is lost.  0: the deadline has passed.
 * Or -ENOMEM.
 */
int link_turn(struct link *link, uint64_t deadline);

/* What of `out` the socket takes now. */
void link_flush(struct link *link);

/* An empty frame for the daemon, behind what waits in `out`.  0 or -ENOMEM. */
int link_kick(struct link *link);

/* From now on descriptors are taken / those that came are closed, and no more are taken. */
void link_take_fds(struct link *link);
void link_drop_fds(struct link *link);

/* The frame that begins at `at`.  1: it is whole.  0: it is not, or it made the link lost. */
int link_frame(struct link *link, size_t at, const char **ret_body, size_t *ret_bytes);

/* Drops everything before `at`. */
void link_drop(struct link *link, size_t at);

/* Nothing more is read, and nothing from `at` on is believed. */
void link_lose(struct link *link, int error, size_t at);

#endif
