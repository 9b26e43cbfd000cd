/*
 * A link: the socket to the daemon, and the bytes on their way in and out.
 *
 * Only link_turn() blocks, and not longer than its deadline.  Bytes that cannot be
 * sent at once wait in `out`.  Received bytes stay in `in` until they are dropped:
 *
 *      in.at        start               scan              in.count
 *        | dropped   | frames to read    | never looked at  |
 *
 * Events are read at `start`, in the order in which they came.  While a call waits
 * for its reply, it looks ahead with `scan`.  This steps over records and leaves them
 * where they are.  Only then does `in` grow beyond one frame, up to LINK_IN_MAX.
 *
 * The link accepts descriptors only while it waits for the reply to hello.  At any
 * other time the kernel drops the descriptors that the daemon sends.
 *
 * When the daemon is gone, or sends bytes that are not a frame, the link is lost, and
 * it stays lost.  Complete frames that came before can still be read.
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
        int lost;  /* 0, or the negative errno that says why it was lost */
        bool mute; /* sending failed; the daemon may have sent the reason */
        struct bytes in, out;
        size_t start, scan, sent;
        size_t frame_max; /* the longest body that is accepted */

        bool takes_fds;
        int fds[LINK_FDS_MAX]; /* descriptors received, in order; the link closes them */
        unsigned fd_count;
};

#define LINK_FOREVER UINT64_MAX

uint64_t link_now(void);                /* ns, monotonic */
uint64_t link_deadline(int timeout_ms); /* -1: LINK_FOREVER */

/* The link owns `fd` from now on. */
void link_init(struct link *link, int fd);
void link_deinit(struct link *link);

/* A connected socket, or a negative errno. */
int link_connect(const char *path, uint64_t deadline);

/* The uid at the other end, or a negative errno. */
int64_t link_peer_uid(const struct link *link);

/*
 * Sends and receives as much as is possible now; if there is nothing to receive, waits
 * for it.  1: there is more in `in`, or the link is lost.  0: the deadline has passed.
 * Or -ENOMEM.
 */
int link_turn(struct link *link, uint64_t deadline);

/* Sends as much of `out` as the socket accepts now. */
void link_flush(struct link *link);

/* Appends an empty frame to `out`, and sends what it can.  0 or -ENOMEM. */
int link_kick(struct link *link);

/* The first accepts descriptors from now on; the second closes them and accepts no more. */
void link_take_fds(struct link *link);
void link_drop_fds(struct link *link);

/* The frame at `at`.  1: it is complete.  0: it is not, or its length made the link lost. */
int link_frame(struct link *link, size_t at, const char **ret_body, size_t *ret_bytes);

/* Drops everything before `at`. */
void link_drop(struct link *link, size_t at);

/* Marks the link as lost: nothing more is received, and the bytes from `at` on are discarded. */
void link_lose(struct link *link, int error, size_t at);

#endif
