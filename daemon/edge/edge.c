#include "daemon/edge/edge.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/edge/anchors.h"
#include "daemon/edge/holder.h"
#include "daemon/edge/keeper.h"
#include "daemon/edge/listener.h"
#include "daemon/edge/peer.h"
#include "daemon/edge/streams.h"
#include "daemon/error.h"
#include "daemon/log.h"
#include "daemon/sys.h"

#define MAILS       64u
#define FLUSH_NS    1000000000u
#define NS_PER_MS   1000000u
#define REFUSAL_MAX 1024u

/* ---- new connections ---- */

void edge_refuse(struct edge *edge, int fd, enum smv_code code, const char *message)
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
                *ret_why = "this user connects too often; wait a little";
                return r < 0 ? SMV_NO_MEMORY : SMV_QUOTA;
        }
        if (edge->peer_count >= edge->conf.config->connections) {
                *ret_why = "the daemon has as many connections as it may have";
                return SMV_BUSY;
        }
        r = quota_charge(edge->quota, uid, QUOTA_CONNECTIONS, 1);
        if (r) {
                *ret_why = "this user has as many connections as uid_connections allows";
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

static int arrive(struct edge *edge, int fd)
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
                edge_refuse(edge, fd, code, why);
                return -ECONNREFUSED;
        }
        r = peer_new(edge, fd, uid, pid, &peer);
        if (r)
                quota_uncharge(edge->quota, uid, QUOTA_CONNECTIONS, 1);
        else if (edge->conf.config->publish)
                note_groups(peer, gid);
        return error_pass(r);
}

void edge_arrive(struct edge *edge, int fd)
{
        int r;

        counter_add(&edge->conf.stats->connections_seen, 1);
        r = arrive(edge, fd);
        if (!r)
                return;
        if (r != -ECONNREFUSED)
                log_warn("peer_lost error=%s at=%s", strerror(-r), error_trail());
        if (edge->alone) {
                edge->result = r;
                edge_drain(edge);
                edge_drain(edge);
        }
}

struct served *edge_model(struct edge *edge, const char *name, uint32_t bytes)
{
        struct served *served = edge->conf.served;

        if (!bytes || (strlen(served->name) == bytes && !memcmp(served->name, name, bytes)))
                return served;
        return NULL;
}

/* ---- channels ---- */

static int find_number(struct edge *edge, uint32_t id, uint32_t *ret_number,
                       struct wire_problem *ret_problem)
{
        uint32_t number = 0;

        while (number < edge->channel_count && edge->channels[number])
                number++;
        if (number == edge->channel_count)
                return wire_refuse(ret_problem, SMV_BUSY, id, NULL,
                                   "all %u rings of the daemon are taken", edge->channel_count);
        *ret_number = number;
        return 0;
}

int edge_new_channel(struct edge *edge, enum channel_bell bell, uint64_t ring_bytes, uint32_t id,
                     struct wire_problem *ret_problem, struct channel **ret_channel)
{
        struct channel *channel = NULL;
        uint32_t number = 0;
        int r;

        r = find_number(edge, id, &number, ret_problem);
        if (r)
                return error_pass(r);
        if (bell == CHANNEL_LOOP)
                r = channel_new(number, ring_bytes, &channel);
        else
                r = channel_new_shared(number, ring_bytes, bell, &channel);
        if (r)
                return error_pass(r);
        edge->channels[number] = channel;
        edge->channels_open++;
        *ret_channel = channel;
        return 0;
}

int edge_open_channel(struct edge *edge, struct peer *peer, enum channel_bell bell,
                      uint64_t ring_bytes, uint32_t id, struct wire_problem *ret_problem)
{
        struct channel *channel = NULL;
        int r;

        r = admit_charge(edge->quota, peer->uid, QUOTA_RING_BYTES, ring_bytes, id, ret_problem);
        if (r)
                return error_pass(r);
        r = edge_new_channel(edge, bell, ring_bytes, id, ret_problem, &channel);
        if (r) {
                quota_uncharge(edge->quota, peer->uid, QUOTA_RING_BYTES, ring_bytes);
                return error_pass(r);
        }
        channel->peer = peer;
        channel->uid = peer->uid;
        channel->charged = ring_bytes;
        peer->channel = channel;
        return 0;
}

/*
 * A client that has left, or was hung up, keeps no page of ours.  If the daemon itself ends, the
 * client may still read its last records.
 */
static void free_channel(struct edge *edge, struct channel *channel)
{
        assert(edge->channels[channel->number] == channel && !channel->peer);
        assert(edge->channels_open);
        quota_uncharge(edge->quota, channel->uid, QUOTA_RING_BYTES, channel->charged);
        edge->channels[channel->number] = NULL;
        edge->channels_open--;
        channel_free(channel, edge->phase >= EDGE_FLUSHING);
}

static void free_one(struct edge *edge)
{
        struct channel *channel = edge->gone;

        edge->gone = channel->gone_next;
        free_channel(edge, channel);
}

/*
 * The kernel needs time to take pages back.  If several clients went at once, one channel is freed
 * in each turn.
 */
static void free_next_turn(struct edge *edge)
{
        if (edge->gone && !loop_timer_set(edge->gone_timer, 0))
                return;
        while (edge->gone)
                free_one(edge);
}

static void on_gone_timer(void *arg)
{
        struct edge *edge = arg;

        free_one(edge);
        free_next_turn(edge);
        edge_go_on(edge);
}

static void channel_is_gone(struct edge *edge, struct channel *channel)
{
        channel->gone_next = edge->gone;
        edge->gone = channel;
        free_next_turn(edge);
}

void edge_close_channel(struct edge *edge, struct peer *peer)
{
        struct channel *channel = peer->channel;

        assert(channel->socket < 0);
        peer->channel = NULL;
        channel->peer = NULL;
        free_channel(edge, channel);
}

/* ---- mail ---- */

/*
 * The order matters: lower the flag, take RETIRED, then settle.  While the flag was up, the engine
 * may have left out a WAKE, which was for a RETIRED that we have to see.
 */
static void on_wake(struct edge *edge, struct channel *channel)
{
        channel_lower(&channel->draining);
        edge_catch_up(edge);
        if (!keeper_hear(edge->keeper, channel) && channel->peer)
                peer_settle(channel->peer);
}

static void on_failed(struct edge *edge, const struct mail *mail)
{
        log_error("engine_failed error=%s why=%s", strerror(-mail->result),
                  mail->why ? mail->why : "unknown");
        edge->result = mail->result;
        if (mail->why)
                edge->late = mail->why;
        edge_drain(edge);
        edge_drain(edge);
}

static void on_mail(struct edge *edge, const struct mail *mail)
{
        switch (mail->kind) {
        case MAIL_JOB_DONE:
                peer_job_done(edge, mail->what);
                break;
        case MAIL_WAKE:
                on_wake(edge, mail->what);
                break;
        case MAIL_CHANNEL_GONE:
                channel_is_gone(edge, mail->what);
                break;
        case MAIL_FAILED:
                on_failed(edge, mail);
                break;
        case MAIL_STOPPED:
                loop_stop(edge->loop);
                break;
        default:
                assert(!"mail that does not come here");
        }
}

void edge_catch_up(struct edge *edge)
{
        struct mail mails[MAILS];
        uint32_t count;

        do {
                count = mailbox_take(edge->conf.from_engine, mails, MAILS, 0);
                for (uint32_t i = 0; i < count; i++) {
                        assert(mails[i].kind == MAIL_RETIRED);
                        stream_retired(edge, mails[i].what);
                }
        } while (count == MAILS);
}

/* The engine's mail to us is taken first: it was sent before this mail. */
static uint32_t take_mail(struct edge *edge, struct mailbox *mailbox)
{
        struct mail mails[MAILS];
        uint32_t count = mailbox_take(mailbox, mails, MAILS, 0);

        edge_catch_up(edge);
        for (uint32_t i = 0; i < count; i++)
                on_mail(edge, &mails[i]);
        return count;
}

/* The bell is read first: mail that comes while we take rings it again. */
static void on_bell(void *arg, unsigned mask)
{
        struct edge *edge = arg;
        uint64_t rung;

        (void)mask;
        (void)sys_read(edge->conf.bell, &rung, sizeof(rung));
        while (take_mail(edge, edge->conf.from_waker) + take_mail(edge, edge->conf.from_scribe))
                ;
        edge_go_on(edge);
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
        log_info("ending requests=%u jobs=%u", admit_alive(edge->admit), edge->jobs_out);
        for (struct peer *peer = edge->peers; peer; peer = peer->next)
                peer_cancel_all(peer, SMV_END_ERROR, SMV_SHUTTING_DOWN);
        keeper_end_all(edge->keeper, SMV_END_ERROR, SMV_SHUTTING_DOWN);
}

/* From now on a peer that has been sent everything is hung up; after a second, all of them are. */
static void begin_flushing(struct edge *edge)
{
        struct peer *next;

        edge->phase = EDGE_FLUSHING;
        set_flush_timer(edge);
        keeper_close(edge->keeper);
        holder_close_shelves(edge);
        for (struct peer *peer = edge->peers; peer; peer = next) {
                next = peer->next;
                peer_settle(peer);
        }
}

static void post_stop(struct edge *edge)
{
        const struct mail stop = { .kind = MAIL_STOP };

        assert(!edge->live_count && !edge->jobs_out && !admit_alive(edge->admit));
        edge->phase = EDGE_STOPPING;
        loop_timer_clear(edge->drain_timer);
        mailbox_post(edge->conf.to_scribe, &stop);
        mailbox_post(edge->conf.to_engine, &stop);
}

void edge_go_on(struct edge *edge)
{
        if (edge->phase == EDGE_DRAINING && !admit_alive(edge->admit) && !edge->jobs_out)
                end_streams(edge);
        if (edge->phase == EDGE_ENDING && !edge->live_count && !edge->jobs_out)
                begin_flushing(edge);
        if (edge->phase == EDGE_FLUSHING && !edge->peers && !edge->channels_open)
                post_stop(edge);
}

void edge_drain(struct edge *edge)
{
        if (edge->phase == EDGE_SERVING) {
                edge->phase = EDGE_DRAINING;
                log_info("draining connections=%u requests=%u", edge->peer_count,
                         admit_alive(edge->admit));
                if (edge->listener)
                        listener_stop(edge->listener);
                if (loop_timer_set(edge->drain_timer,
                                   (uint64_t)edge->conf.config->drain_ms * NS_PER_MS))
                        end_streams(edge);
        } else if (edge->phase == EDGE_DRAINING) {
                end_streams(edge);
        }
        edge_go_on(edge);
}

/*
 * While ENDs wait for room, the streams of clients that do not read would never end.  The engine
 * says which clients these are.  A client that has read but does not say so is one of them.
 */
static bool is_waited_for(const struct edge *edge, const struct peer *peer)
{
        if (edge->phase == EDGE_ENDING)
                return peer->requests && channel_is_up(&peer->requests->channel->crowded);
        return true;
}

static void on_drain_timer(void *arg)
{
        struct edge *edge = arg;
        struct peer *next;

        if (edge->phase == EDGE_DRAINING) {
                edge_drain(edge);
                return;
        }
        set_flush_timer(edge);
        for (struct peer *peer = edge->peers; peer; peer = next) {
                next = peer->next;
                if (!is_waited_for(edge, peer))
                        continue;
                peer_hang_up(peer, "the daemon stops, and the client does not read");
                peer_settle(peer);
        }
}

/* ---- life ---- */

/*
 * Clients may note the numbers of handles and streams, and use them after the connection or the
 * daemon has ended.  With a random first number they name nothing then.
 */
static uint64_t first_number(const struct edge *edge)
{
        return edge->conf.admit.seed() >> 24;
}

static int begin(struct edge *edge)
{
        const struct config *config = edge->conf.config;
        const struct sched_conf *sched = &edge->conf.admit.sched;
        const struct quota_conf quota = {
                .max = { [QUOTA_CONNECTIONS] = config->uid_connections,
                         [QUOTA_REQUESTS] = config->uid_requests,
                         [QUOTA_PROMPT_BYTES] = config->uid_prompt_bytes,
                         [QUOTA_RING_BYTES] = config->uid_ring_bytes,
                         [QUOTA_HANDLES] = config->uid_handles,
                         [QUOTA_HELD_BLOCKS] =
                                 (uint64_t)sched->blocks * config->uid_held_percent / 100,
                         [QUOTA_KEPT] = config->uid_kept,
                         [QUOTA_KEPT_BYTES] = config->uid_kept_bytes },
                .connects_burst = config->uid_connects_burst,
                .connects_per_s = config->uid_connects_per_s,
        };
        int r;

        edge->channel_count = edge->conf.admit.sched.channels;
        edge->channels = calloc(edge->channel_count, sizeof(struct channel *));
        if (!edge->channels)
                return error_raise(-ENOMEM);
        r = quota_new(&quota, &edge->quota);
        if (!r)
                r = admit_new(&edge->conf.admit, edge->quota, &edge->admit);
        if (!r)
                r = handles_new(edge->quota, first_number(edge), &edge->handles);
        if (!r)
                r = keeper_new(edge, first_number(edge), &edge->keeper);
        if (!r)
                r = anchors_new(&(struct anchors_conf){ .loop = edge->loop,
                                                        .quota = edge->quota,
                                                        .to_engine = edge->conf.to_engine,
                                                        .max = sched->prefix.anchors },
                                &edge->anchors);
        if (!r)
                r = loop_timer_new(edge->loop, on_drain_timer, edge, &edge->drain_timer);
        if (!r)
                r = loop_timer_new(edge->loop, on_gone_timer, edge, &edge->gone_timer);
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
        edge->uid = (uint64_t)getuid();
        edge->loop = conf->loop;
        edge->late = "the daemon is stopping";
        edge->alone = conf->config->fd >= 0;
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
        edge->alone = false;
        while (edge->peers)
                peer_free(edge->peers);
        assert(!edge->channels_open);
        free(edge->channels);
        loop_watch_free(edge->bell_watch);
        loop_timer_free(edge->drain_timer);
        loop_timer_free(edge->gone_timer);
        holder_close_shelves(edge);
        anchors_free(edge->anchors);
        handles_free(edge->handles);
        keeper_free(edge->keeper);
        admit_free(edge->admit);
        quota_free(edge->quota);
        free(edge);
        return NULL;
}

int edge_run(struct edge *edge)
{
        int r = loop_run(edge->loop);

        if (r)
                return error_pass(r);
        log_info("stopped");
        return edge->result;
}
