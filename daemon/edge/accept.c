#include "daemon/edge/accept.h"

#include <errno.h>
#include <string.h>

#include "daemon/edge/peer.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/wire.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"

#define REFUSAL_MAX 1024u

void accept_refuse(struct edge *edge, int fd, enum smv_code code, const char *message)
{
        struct wire_problem problem;
        struct buffer frame;

        counter_add(&edge->conf.stats->connections_refused, 1);
        log_info("peer_refused code=%u why=%s", (unsigned)code, message);
        buffer_init(&frame, REFUSAL_MAX);
        wire_refuse(&problem, code, 0, NULL, "%s", message);
        if (!wire_error(&frame, &problem))
                sys_send(fd, frame.bytes + frame.start, buffer_count(&frame));
        buffer_deinit(&frame);
        sys_close(fd);
}

/* 0: the connection is charged; else why the client is refused. */
static enum smv_code let_in(struct edge *edge, uint32_t uid, const char **ret_why)
{
        int r;

        if (edge->phase != EDGE_SERVING) {
                *ret_why = edge->late;
                return SMV_SHUTTING_DOWN;
        }
        r = quota_connect(edge->quota, uid, sys_clock_ns());
        if (r) {
                *ret_why = "this user opens connections faster than uid_connects_per_s allows; try "
                           "again later";
                return r < 0 ? SMV_NO_MEMORY : SMV_QUOTA;
        }
        if (edge->peer_count >= edge->conf.config->connections) {
                *ret_why = "the daemon has all the connections that the setting connections allows";
                return SMV_BUSY;
        }
        r = quota_charge(edge->quota, uid, QUOTA_CONNECTIONS, 1);
        if (r) {
                *ret_why =
                        "this user has all the connections that uid_connections allows; close one";
                return r < 0 ? SMV_NO_MEMORY : SMV_QUOTA;
        }
        return SMV_OK;
}

/* The primary group first, then as many others as a request can name. */
static void note_groups(struct peer *peer, uint32_t gid)
{
        int others = sys_peer_groups(peer->fd, peer->groups + 1, REQUEST_GROUPS_MAX - 1);

        peer->groups[0] = gid;
        peer->group_count = 1 + (others > 0 ? (uint32_t)others : 0);
}

static int make_peer(struct edge *edge, int fd)
{
        const char *why = NULL;
        uint32_t uid, gid;
        struct peer *peer;
        enum smv_code code;
        int32_t pid;
        int r;

        r = sys_peer_cred(fd, &uid, &gid, &pid);
        if (r >= 0 && edge->alone)
                r = sys_set_nonblocking(fd);
        if (r < 0) {
                sys_close(fd);
                return error_raise(r);
        }
        code = let_in(edge, uid, &why);
        if (code) {
                accept_refuse(edge, fd, code, why);
                return -ECONNREFUSED;
        }
        r = peer_new(edge, fd, uid, pid, &peer);
        if (r)
                quota_uncharge(edge->quota, uid, QUOTA_CONNECTIONS, 1);
        else if (edge->conf.config->publish)
                note_groups(peer, gid);
        return error_pass(r);
}

void accept_peer(struct edge *edge, int fd)
{
        int r;

        counter_add(&edge->conf.stats->connections_received, 1);
        r = make_peer(edge, fd);
        if (!r)
                return;
        if (r != -ECONNREFUSED)
                log_warn("peer_lost error=%s at=%s", strerror(-r), error_trail());
        if (edge->alone) {
                edge->result = r;
                edge->drains_pending = 2;
        }
}
