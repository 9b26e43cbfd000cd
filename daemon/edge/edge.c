#include "daemon/edge/edge.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/edge/admission.h"
#include "daemon/edge/channels.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/constraints.h"
#include "daemon/edge/handles.h"
#include "daemon/edge/mail.h"
#include "daemon/edge/peer.h"
#include "daemon/edge/op-pool.h"
#include "daemon/edge/pins.h"
#include "daemon/edge/principals.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/stream.h"
#include "daemon/edge/subuid.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"

#define FLUSH_NS  1000000000u
#define NS_PER_MS 1000000u

static struct peer *peer_of(struct list_head *link)
{
        return LIST_ENTRY(link, struct peer, peers_link);
}

/* ---- the end ---- */

static void set_flush_timer(struct edge *edge)
{
        (void)loop_timer_set(edge->drain_timer, FLUSH_NS);
}

static void end_streams(struct edge *edge)
{
        edge->phase = EDGE_ENDING;
        set_flush_timer(edge);
        log_info("ending requests=%u jobs=%u", admission_alive(edge->admission), edge->jobs_out);
        list_each(at, &edge->peers)
                peer_cancel_all(peer_of(at), SMV_END_ERROR, SMV_SHUTTING_DOWN);
        resumables_end_all(edge->resumables, SMV_END_ERROR, SMV_SHUTTING_DOWN);
}

/* From now on a peer that has been sent everything is hung up; after a second, all of them are. */
static void begin_flushing(struct edge *edge)
{
        edge->phase = EDGE_FLUSHING;
        set_flush_timer(edge);
        resumables_close(edge->resumables);
        handles_close_all(edge->handles);
        list_each(at, &edge->peers)
                connection_mark(peer_of(at));
}

static void post_stop(struct edge *edge)
{
        const struct mail stop = { .kind = MAIL_STOP };

        assert(!edge->live_count && !edge->jobs_out && !admission_alive(edge->admission));
        edge->phase = EDGE_STOPPING;
        loop_timer_clear(edge->drain_timer);
        mailbox_post(edge->conf.to_text_worker, &stop);
        mailbox_post(edge->conf.to_engine, &stop);
}

static void drain(struct edge *edge)
{
        uint64_t drain_ns;

        if (edge->phase == EDGE_SERVING) {
                edge->phase = EDGE_DRAINING;
                log_info("draining connections=%u requests=%u", edge->peer_count,
                         admission_alive(edge->admission));
                if (edge->conf.on_drain)
                        edge->conf.on_drain(edge->conf.on_drain_arg);
                drain_ns = (uint64_t)edge->conf.config->drain_timeout_ms * NS_PER_MS;
                edge->drain_end_ns = sys_clock_ns() + drain_ns;
                if (loop_timer_set(edge->drain_timer, drain_ns))
                        end_streams(edge);
        } else if (edge->phase == EDGE_DRAINING) {
                end_streams(edge);
        }
}

/* Begins the next phases if it is time. */
static void go_on(struct edge *edge)
{
        if (edge->phase == EDGE_DRAINING && !admission_alive(edge->admission) && !edge->jobs_out)
                end_streams(edge);
        if (edge->phase == EDGE_ENDING && !edge->live_count && !edge->jobs_out)
                begin_flushing(edge);
        if (edge->phase == EDGE_FLUSHING && !edge->peer_count && !edge->channels_open)
                post_stop(edge);
}

/* The end of a turn of the loop: what the handlers of this turn have left to do. */
static void on_turn_over(void *arg)
{
        struct edge *edge = arg;

        peers_settle(edge);
        for (; edge->drains_pending; edge->drains_pending--)
                drain(edge);
        go_on(edge);
        /* The phases may have marked peers. */
        while (!list_is_empty(&edge->marked)) {
                peers_settle(edge);
                go_on(edge);
        }
}

void edge_drain(struct edge *edge)
{
        edge->drains_pending++;
}

uint32_t edge_requests(const struct edge *edge)
{
        return admission_alive(edge->admission);
}

/*
 * While ENDs wait for room, the streams of clients that do not read would never end.  The engine
 * says which clients these are.  A client that has read but does not say so is one of them.
 */
static bool is_waited_for(const struct edge *edge, const struct peer *peer)
{
        if (edge->phase == EDGE_ENDING)
                return !list_is_empty(&peer->streams) && channel_is_up(&peer->channel->end_blocked);
        return true;
}

static void on_drain_timer(void *arg)
{
        struct edge *edge = arg;

        if (edge->phase == EDGE_DRAINING) {
                edge_drain(edge);
                return;
        }
        set_flush_timer(edge);
        list_each(at, &edge->peers)
                if (is_waited_for(edge, peer_of(at)))
                        connection_hang_up(peer_of(at),
                                           "the daemon stops, and the client does not read");
}

/* The bell is read first: mail that comes while we take rings it again. */
static void on_bell(void *arg, unsigned mask)
{
        struct edge *edge = arg;
        uint64_t rung;

        (void)mask;
        (void)sys_read(edge->conf.bell, &rung, sizeof(rung));
        mail_take(edge);
}

/* ---- life ---- */

/* Without the ranges each uid has its own account. */
static void load_subuid(struct edge *edge)
{
        int r = subuid_load(edge->subuid);

        if (r)
                log_warn("subuid_unreadable file=%s error=%s", edge->conf.subuid_path,
                         strerror(-r));
}

static int begin_subuid(struct edge *edge)
{
        int r;

        if (!edge->conf.subuid_path)
                return 0;
        r = subuid_new(edge->conf.subuid_path, (uint32_t)edge->uid, &edge->subuid);
        if (!r)
                load_subuid(edge);
        return error_pass(r);
}

static struct quota_conf quota_conf(const struct edge *edge)
{
        const struct config *config = edge->conf.config;
        const struct sched_conf *sched = &edge->conf.admission.sched;

        return (struct quota_conf){
                .max = { [QUOTA_CONNECTIONS] = config->uid_connections,
                         [QUOTA_REQUESTS] = config->uid_requests,
                         [QUOTA_PROMPT_BYTES] = config->uid_prompt_bytes,
                         [QUOTA_RING_BYTES] = config->uid_ring_bytes,
                         [QUOTA_HANDLES] = config->uid_handles,
                         [QUOTA_PINS] = UINT64_MAX,
                         [QUOTA_PINNED_BLOCKS] =
                                 (uint64_t)sched->blocks * config->uid_pinned_percent / 100,
                         [QUOTA_RESUMABLE] = config->uid_resumable,
                         [QUOTA_RESUMABLE_BYTES] = config->uid_resumable_bytes,
                         [QUOTA_CONSTRAINT_BYTES] = config->uid_constraint_bytes },
                .connects_burst = config->uid_connects_burst,
                .total = { [QUOTA_CONNECTIONS] = config->connections,
                           [QUOTA_REQUESTS] = config->requests,
                           [QUOTA_RESUMABLE] = config->resumable,
                           [QUOTA_PINS] = sched->prefix.pins },
                .connects_per_s = config->uid_connects_per_s,
                .owner = (uint32_t)edge->uid,
                .subuid = edge->subuid,
        };
}

void edge_reload(struct edge *edge)
{
        struct quota_conf quota;

        if (edge->subuid)
                load_subuid(edge);
        quota = quota_conf(edge);
        quota_reload(edge->quota, &quota);
        if (edge->subuid && quota_remap(edge->quota))
                log_warn("accounts_unchanged error=%s", strerror(ENOMEM));
        principals_reload(edge->principals);
        admission_reload(edge->admission, edge->conf.config->max_tokens);
}

static int begin_quota(struct edge *edge)
{
        const struct quota_conf quota = quota_conf(edge);

        return error_pass(quota_new(&quota, &edge->quota));
}

static int begin(struct edge *edge)
{
        int r;

        r = channels_begin(edge);
        if (!r)
                r = begin_subuid(edge);
        if (!r)
                r = begin_quota(edge);
        if (!r)
                r = principals_new(edge->conf.config->gateway, edge->quota, &edge->principals);
        if (!r)
                r = admission_new(&edge->conf.admission, edge->quota, &edge->admission);
        if (!r)
                r = constraints_new(edge->quota, edge->conf.config->constraints_kept,
                                    &edge->constraints);
        if (!r)
                r = handles_new(edge, &edge->handles);
        if (!r)
                r = resumables_new(edge, &edge->resumables);
        if (!r)
                r = pins_new(&(struct pins_conf){ .loop = edge->loop,
                                                  .quota = edge->quota,
                                                  .to_engine = edge->conf.to_engine,
                                                  .max = edge->conf.admission.sched.prefix.pins },
                             &edge->pins);
        if (!r)
                r = pool_view_new(edge, &edge->pool_view);
        if (!r)
                r = loop_timer_new(edge->loop, on_drain_timer, edge, &edge->drain_timer);
        if (!r)
                r = loop_watch_new(edge->loop, edge->conf.bell, LOOP_READ, on_bell, edge,
                                   &edge->bell_watch);
        return error_pass(r);
}

int edge_new(const struct edge_conf *conf, struct edge **ret_edge)
{
        struct edge *edge = calloc(1, sizeof(*edge));
        int r;

        if (!edge)
                return error_raise(-ENOMEM);
        edge->conf = *conf;
        edge->pid = (uint64_t)getpid();
        edge->uid = (uint64_t)geteuid();
        edge->overflow_uid = sys_overflow_uid();
        edge->loop = conf->loop;
        edge->alone = conf->config->fd >= 0;
        list_init(&edge->peers);
        list_init(&edge->marked);
        loop_after_turns(edge->loop, on_turn_over, edge);
        r = begin(edge);
        if (r) {
                edge_free(edge);
                return error_pass(r);
        }
        *ret_edge = edge;
        return 0;
}

/* Before the threads ran there may be peers, but they have no work under way. */
struct edge *edge_free(struct edge *edge)
{
        if (!edge)
                return NULL;
        edge->phase = EDGE_STOPPING;
        loop_after_turns(edge->loop, NULL, NULL);
        while (!list_is_empty(&edge->peers))
                peer_free(peer_of(edge->peers.next));
        channels_end(edge);
        loop_watch_free(edge->bell_watch);
        loop_timer_free(edge->drain_timer);
        if (edge->handles)
                handles_close_all(edge->handles);
        pool_view_free(edge->pool_view);
        pins_free(edge->pins);
        handles_free(edge->handles);
        resumables_free(edge->resumables);
        admission_free(edge->admission);
        constraints_free(edge->constraints);
        principals_free(edge->principals);
        quota_free(edge->quota);
        subuid_free(edge->subuid);
        free(edge);
        return NULL;
}

/* Before the first turn there may be something to do already: the only connection was refused. */
int edge_run(struct edge *edge)
{
        int r;

        on_turn_over(edge);
        r = loop_run(edge->loop);
        if (r)
                return error_pass(r);
        log_info("stopped");
        return edge->result;
}
