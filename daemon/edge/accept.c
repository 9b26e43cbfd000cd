#include "daemon/edge/accept.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/edge/late.h"
#include "daemon/edge/peer.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/wire.h"
#include "base/error.h"
#include "base/errtext.h"
#include "base/log.h"

#define REFUSAL_MAX 1024u
/* A guess: connections that ask for little have ended by then. */
#define RETRY_MS 50u
/* The uid that the kernel reports if the other end of a socket has no user. */
#define NO_UID UINT32_MAX

/* The process at the other end. */
struct caller {
        uint32_t uid, gid;
        int32_t pid;
};

int accept_check(int fd, char *ret_why, size_t why_bytes)
{
        int r = sys_is_stream_unix(fd);

        if (!r)
                return 0;
        return error_raise(errtext_set(ret_why, why_bytes, r,
                                       "--fd is %d, which is no connected Unix stream socket: %s",
                                       fd, strerror(-r)));
}

static void refuse(struct edge *edge, int fd, const struct caller *caller,
                   const struct wire_problem *problem)
{
        struct buffer frame;

        counter_add(&edge->conf.stats->connections_refused, 1);
        log_limited_by((uint64_t)caller->uid << 32 | (uint32_t)problem->code, LOG_INFO,
                       "peer_refused uid=%u pid=%d code=%u why=%s", caller->uid, caller->pid,
                       (unsigned)problem->code, problem->message);
        buffer_init(&frame, REFUSAL_MAX);
        if (!wire_error(&frame, problem))
                sys_send(fd, frame.bytes + frame.start, buffer_count(&frame));
        buffer_deinit(&frame);
        sys_close(fd);
}

void accept_refuse_for_descriptors(struct edge *edge, int fd)
{
        struct caller caller = { .uid = NO_UID };
        struct wire_problem problem;

        (void)sys_peer_cred(fd, &caller.uid, &caller.gid, &caller.pid);
        wire_refuse(&problem, SMV_BUSY, 0, NULL, "the daemon has no descriptor left");
        problem.retry_ms = RETRY_MS;
        refuse(edge, fd, &caller, &problem);
}

/* 0: the connection is charged.  Or WIRE_E_REFUSED or -ENOMEM. */
static int let_in(struct edge *edge, uint32_t uid, struct wire_problem *ret_problem)
{
        int r;

        /* While the daemon drains, hello says whether the client wants to be let in. */
        if (edge->phase > EDGE_DRAINING)
                return late_refuse(edge, 0, ret_problem);
        /* The only client of an own socket was chosen by the process that made the daemon. */
        if (!edge->alone && (uid == edge->overflow_uid || uid == NO_UID))
                return wire_refuse(ret_problem, SMV_DENIED, 0, NULL,
                                   "your uid is %u, which the kernel reports for all users without "
                                   "a uid in the daemon's user namespace; connect as a user that "
                                   "has one (overflowuid)",
                                   uid);
        r = quota_connect(edge->quota, uid, sys_clock_ns(), ret_problem);
        if (r)
                return error_pass(r);
        r = quota_ask(edge->quota, uid, QUOTA_CONNECTIONS, 1, 0, ret_problem);
        if (r == WIRE_E_REFUSED)
                ret_problem->retry_ms = RETRY_MS;
        return error_pass(r);
}

/* The primary group first, then as many others as a request can name. */
static void note_groups(struct peer *peer, uint32_t gid)
{
        int others = sys_peer_groups(peer->fd, peer->groups + 1, REQUEST_GROUPS_MAX - 1);

        peer->groups[0] = gid;
        peer->group_count = 1 + (others > 0 ? (uint32_t)others : 0);
}

/* As peer_new(); WIRE_E_REFUSED: the client was told why. */
static int make_peer(struct edge *edge, int fd, const struct caller *caller)
{
        struct wire_problem problem;
        struct peer *peer;
        int r;

        r = let_in(edge, caller->uid, &problem);
        if (r < 0)
                wire_refuse(&problem, SMV_NO_MEMORY, 0, NULL, "the daemon is out of memory");
        if (r) {
                refuse(edge, fd, caller, &problem);
                return WIRE_E_REFUSED;
        }
        r = peer_new(edge, fd, caller->uid, caller->pid, &peer);
        if (r)
                quota_uncharge(edge->quota, caller->uid, QUOTA_CONNECTIONS, 1);
        else if (edge->conf.config->publish)
                note_groups(peer, caller->gid);
        return error_pass(r);
}

void accept_peer(struct edge *edge, int fd)
{
        struct caller caller = { .uid = NO_UID };
        int r;

        counter_add(&edge->conf.stats->connections_received, 1);
        r = sys_peer_cred(fd, &caller.uid, &caller.gid, &caller.pid);
        if (r >= 0 && edge->alone)
                r = sys_set_nonblocking(fd);
        if (r < 0) {
                sys_close(fd);
                error_raise(r);
        } else {
                r = make_peer(edge, fd, &caller);
        }
        if (r < 0)
                log_limited(LOG_WARN, "peer_lost uid=%u pid=%d error=%s at=%s", caller.uid,
                            caller.pid, strerror(-r), error_trail());
        if (r && edge->alone) {
                edge->result = r < 0 ? r : -ECONNREFUSED;
                edge->drains_pending = 2;
        }
}
