#include "daemon/edge/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/edge/channels.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/encode-job.h"
#include "daemon/edge/encode-work.h"
#include "daemon/edge/handles.h"
#include "daemon/edge/op-attach.h"
#include "daemon/edge/op-fork.h"
#include "daemon/edge/op-generate.h"
#include "daemon/edge/op-handle.h"
#include "daemon/edge/op-hello.h"
#include "daemon/edge/op-list.h"
#include "daemon/edge/op-pin.h"
#include "daemon/edge/op-pool.h"
#include "daemon/edge/op-status.h"
#include "daemon/edge/op-tokenize.h"
#include "daemon/edge/principals.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/streams.h"
#include "daemon/edge/wire.h"
#include "base/error.h"
#include "base/log.h"

/* The first read of a turn; clients mostly send less than this ... */
#define READ_FIRST (8u << 10)
/* ... or much more, so further reads are larger. */
#define READ_BYTES (64u << 10)
/* Read from one peer in a turn; then the others have theirs. */
#define READ_TURN (256u << 10)
/* The loop decodes frames up to this size itself ... */
#define FRAME_SMALL (8u << 10)
/* ... each costs this many bytes in addition to its size ... */
#define FRAME_COSTS (2u << 10)
/* ... and this is the budget of one peer in a turn. */
#define FRAMES_TURN (32u << 10)
/* The largest frame of a client that has not said hello. */
#define HELLO_MAX (8u << 10)
/* This much of a frame under way is not charged. */
#define FRAME_FREE (64u << 10)
/* Records are added only while less than this waits. */
#define RECORDS_LOW (32u << 10)
#define NS_PER_MS   1000000u

void peer_cancel_all(struct peer *peer, enum smv_reason reason, enum smv_code code)
{
        streams_cancel(peer, reason, code);
        encode_jobs_cancel(peer, code ? code : SMV_CANCELLED);
}

/* ---- operations ---- */

/*
 * Every request gets one reply: at once, or where its job or its stream goes on.  A handler returns
 * 0 if the reply is sent or will be.  Otherwise it returns WIRE_E_REFUSED with the problem, or a
 * negative errno; then nothing has changed.  It takes what it keeps of `asked`.
 */
static int (*const handlers[WIRE_OP_N])(struct peer *peer, struct wire_request *asked,
                                        struct wire_problem *ret_problem) = {
        [WIRE_HELLO] = op_hello,
        [WIRE_GENERATE] = op_generate,
        [WIRE_CANCEL] = op_cancel,
        [WIRE_TOKENIZE] = op_tokenize,
        [WIRE_DETOKENIZE] = op_detokenize,
        [WIRE_STATUS] = op_status,
        [WIRE_TEMPLATE] = op_template,
        [WIRE_OPEN] = op_open,
        [WIRE_APPEND] = op_append,
        [WIRE_TRUNCATE] = op_truncate,
        [WIRE_FORK] = op_fork,
        [WIRE_CLOSE] = op_close,
        [WIRE_PIN] = op_pin,
        [WIRE_ATTACH] = op_attach,
        [WIRE_DETACH] = op_detach,
        [WIRE_DROP] = op_drop,
        [WIRE_PUBLISH] = op_publish,
        [WIRE_REVOKE] = op_revoke,
        [WIRE_LIST] = op_list,
        [WIRE_END] = op_end,
        [WIRE_PIECES] = op_pieces,
        [WIRE_POOL] = op_pool,
};

static int handle(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        int r;

        if (peer->state == PEER_NEW && asked->op != WIRE_HELLO) {
                wire_refuse(ret_problem, SMV_NO_HELLO, asked->id, "op",
                            "the first request must be hello");
                ret_problem->fatal = true;
                return WIRE_E_REFUSED;
        }
        r = handlers[asked->op](peer, asked, ret_problem);
        if (r && wire_streams(asked))
                connection_count_refusal(peer->edge, r, ret_problem);
        return error_pass(r);
}

/* `r` is the result of wire_decode(). */
static void handle_request(struct peer *peer, struct wire_request *asked, int r,
                           struct wire_problem *problem)
{
        if (!r) {
                problem->id = asked->id;
                r = handle(peer, asked, problem);
        }
        if (r)
                connection_answer_failure(peer, problem->id, r, problem);
}

/* The body of a whole frame.  An empty one is a client's doorbell: the client has read on. */
static void handle_frame(struct peer *peer, const uint8_t *body, size_t count)
{
        struct wire_problem problem = { .id = 0 };
        struct wire_request asked;
        int r;

        if (!count && peer->state == PEER_OPEN) {
                if (peer->channel)
                        channels_resume(peer->edge, peer->channel);
                return;
        }
        r = wire_decode(body, count, &asked, &problem);
        handle_request(peer, &asked, r, &problem);
        if (!r)
                wire_release(&asked);
}

/* ---- in ---- */

/* A frame has begun that is not whole.  It will have `bytes`; 4 if even its length is not known. */
static void frame_is_under_way(struct peer *peer, size_t bytes)
{
        struct edge *edge = peer->edge;
        struct wire_problem problem;
        int r;

        if (!peer->frame_timed && peer->state == PEER_OPEN) {
                peer->frame_timed = true;
                r = loop_timer_set(peer->deadline,
                                   (uint64_t)edge->conf.config->frame_timeout_ms * NS_PER_MS);
                if (r)
                        connection_hang_up(peer, "no memory for a timer");
        }
        if (bytes <= FRAME_FREE || peer->frame_charged)
                return;
        r = quota_ask(edge->quota, peer->uid, QUOTA_PROMPT_BYTES, bytes - FRAME_FREE, 0, &problem);
        if (r == WIRE_E_REFUSED) {
                problem.fatal = true;
                connection_refuse(peer, &problem);
        } else if (r) {
                connection_hang_up(peer, "no memory for an account");
        } else {
                peer->frame_charged = bytes - FRAME_FREE;
                /* Reserves all of its memory at once: a buffer that grows is copied. */
                if (buffer_reserve(&peer->in, bytes - buffer_count(&peer->in)))
                        connection_hang_up(peer, "no memory for a frame");
        }
}

/* The text worker has decoded the frame that the peer waits for. */
static void on_decoded(struct peer *peer, struct wire_request *asked, int r,
                       struct wire_problem *problem)
{
        peer->reading = false;
        peer->more = buffer_count(&peer->in);
        streams_catch_up(peer->edge);
        if (!peer->doomed && peer->state != PEER_CLOSING)
                handle_request(peer, asked, r, problem);
}

/*
 * A frame is whole.  It is no longer timed, nor charged here; the job that decodes it charges it
 * again.
 */
static void frame_is_here(struct peer *peer, const uint8_t *body, size_t bytes)
{
        struct wire_problem problem;
        int r = 0;

        if (peer->frame_timed)
                loop_timer_clear(peer->deadline);
        peer->frame_timed = false;
        quota_uncharge(peer->edge->quota, peer->uid, QUOTA_PROMPT_BYTES, peer->frame_charged);
        peer->frame_charged = 0;
        if (bytes - 4 > FRAME_SMALL) {
                r = encode_job_decode(peer, bytes, work_decode, on_decoded, &problem);
                peer->reading = !r;
                if (r)
                        connection_answer_failure(peer, wire_peek_id(body, bytes - 4), r, &problem);
        } else {
                streams_catch_up(peer->edge);
                handle_frame(peer, body, bytes - 4);
        }
        if (!peer->reading)
                buffer_take(&peer->in, bytes);
}

static bool is_listened_to(const struct peer *peer)
{
        return !peer->doomed && !peer->reading && peer->state != PEER_CLOSING;
}

static void take_frames(struct peer *peer, size_t *left)
{
        struct buffer *in = &peer->in;
        struct wire_problem problem;

        while (buffer_count(in) && is_listened_to(peer)) {
                size_t bytes, most = peer->edge->conf.config->frame_bytes;
                const uint8_t *body;
                int r;

                if (peer->state == PEER_NEW && most > HELLO_MAX)
                        most = HELLO_MAX;
                r = wire_frame(in->bytes + in->start, buffer_count(in), most, &bytes, &body,
                               &problem);
                if (r == WIRE_E_PARTIAL) {
                        frame_is_under_way(peer, bytes);
                        return;
                }
                if (r) {
                        connection_refuse(peer, &problem);
                        return;
                }
                if (!*left) {
                        peer->more = true;
                        return;
                }
                /* Hello may make a ring.  That takes time, whether or not the client gets it. */
                if (peer->state == PEER_NEW)
                        *left = 0;
                *left -= *left < bytes + FRAME_COSTS ? *left : bytes + FRAME_COSTS;
                frame_is_here(peer, body, bytes);
        }
}

/* Half a frame will never be whole; requests that came before it go on. */
static void read_is_over(struct peer *peer)
{
        peer->read_shut = true;
        if (peer->state == PEER_NEW)
                connection_hang_up(peer, "the client left before hello");
        else if (peer->frame_timed)
                loop_timer_clear(peer->deadline);
        peer->frame_timed = false;
}

/*
 * How many bytes to read.  For a large frame, at most the memory that it already has, so that it is
 * never moved.
 */
static size_t read_room(const struct peer *peer, size_t taken)
{
        const struct buffer *in = &peer->in;
        size_t left = peer->frame_charged ? in->room - in->end : in->max - buffer_count(in);
        size_t most = taken || peer->frame_charged ? READ_BYTES : READ_FIRST;

        return left < most ? left : most;
}

static void read_in(struct peer *peer)
{
        struct buffer *in = &peer->in;
        size_t frames = FRAMES_TURN;
        size_t taken = 0;

        peer->more = false;
        take_frames(peer, &frames);
        while (taken < READ_TURN && !peer->more && is_listened_to(peer)) {
                size_t room = read_room(peer, taken);
                ssize_t n;

                if (buffer_reserve(in, room)) {
                        connection_hang_up(peer, "no memory for a frame");
                        break;
                }
                n = sys_read(peer->fd, in->bytes + in->end, room);
                if (n == -EAGAIN)
                        break;
                if (n < 0) {
                        connection_hang_up(peer, "the client is gone");
                        break;
                }
                if (n == 0) {
                        read_is_over(peer);
                        break;
                }
                in->end += (size_t)n;
                taken += (size_t)n;
                take_frames(peer, &frames);
                if ((size_t)n < room)
                        /* That was all; if more has come since, the loop calls again. */
                        break;
        }
        if (!buffer_count(in))
                buffer_deinit(in);
}

/* ---- turns ---- */

/*
 * A socket that was read to its end looks the same whether the client shut one direction or is
 * gone.  Sending nothing tells which it is (tests/facts/test-hangup.c).
 */
static bool is_gone(const struct peer *peer)
{
        return (peer->read_shut || peer->reading) && sys_send(peer->fd, "", 0) < 0;
}

static bool take_records(struct peer *peer)
{
        bool some = streams_take(peer);

        return resumables_take(peer) || some;
}

/*
 * Sends records while the socket takes them.  Beyond a small amount they wait in the ring, and long
 * replies wait with their jobs.  A turn sends one long reply, after the records, so neither delays
 * the other for long.
 */
static void pump(struct peer *peer)
{
        do {
                connection_send(peer);
        } while (!peer->doomed && peer->state == PEER_OPEN &&
                 buffer_count(&peer->out) < RECORDS_LOW && take_records(peer));
        if (encode_jobs_may_pass_reply(peer)) {
                encode_jobs_pass_reply(peer);
                connection_send(peer);
        }
}

/*
 * A client that is hung up loses what it has not read of its ring.  It does not tell us when it has
 * read all, but then it will close.
 */
static bool may_linger(struct peer *peer)
{
        if (peer->edge->phase >= EDGE_FLUSHING || !peer->channel ||
            !channel_is_shared(peer->channel) || !channel_is_unread(peer->channel))
                return false;
        if (!peer->lingers)
                peer->lingers =
                        !loop_timer_set(peer->deadline, peer->edge->conf.config->stall_timeout_ms *
                                                                (uint64_t)NS_PER_MS);
        return peer->lingers;
}

static bool is_over(struct peer *peer)
{
        if (buffer_count(&peer->out))
                return false;
        if (peer->channel && !channel_is_shown(peer->channel))
                /* The engine will send a WAKE. */
                return false;
        if (peer->state == PEER_CLOSING)
                return true;
        return (peer->read_shut || peer->edge->phase >= EDGE_FLUSHING) &&
               list_is_empty(&peer->streams) && list_is_empty(&peer->jobs) &&
               list_is_empty(&peer->replies) && list_is_empty(&peer->resumables) &&
               !may_linger(peer);
}

static void watch(struct peer *peer)
{
        unsigned mask = buffer_count(&peer->out) && connection_is_full(peer) ? LOOP_WRITE : 0;
        bool more = peer->more && peer->state != PEER_CLOSING;
        bool again = more || encode_jobs_may_pass_reply(peer);

        if (peer->state != PEER_CLOSING && !more)
                mask |= peer->read_shut || peer->reading ? LOOP_HUP : LOOP_READ;
        if (loop_watch_set(peer->watch, mask) || (again && loop_timer_set(peer->again, 0)))
                connection_hang_up(peer, "no memory for a watch");
}

static void settle(struct peer *peer)
{
        list_remove(&peer->marked_link);
        if (peer->cancels)
                peer_cancel_all(peer, SMV_END_CANCELLED, SMV_OK);
        peer->cancels = false;
        if (!peer->doomed && is_gone(peer))
                connection_hang_up(peer, "the client is gone");
        if (peer->channel && channel_is_up(&peer->channel->broken))
                connection_hang_up(peer, "its ring has an impossible head");
        if (!peer->doomed)
                pump(peer);
        if (!peer->doomed && is_over(peer))
                connection_hang_up(peer, "everything was sent");
        if (!peer->doomed)
                watch(peer);
        if (peer->doomed)
                peer_free(peer);
}

void peers_settle(struct edge *edge)
{
        struct list_head *first;

        while ((first = list_first(&edge->marked)))
                settle(LIST_ENTRY(first, struct peer, marked_link));
}

static void on_peer(void *arg, unsigned mask)
{
        struct peer *peer = arg;

        peer->edge->turn++;
        if (mask & LOOP_READ && !peer->read_shut && !peer->more && !peer->reading)
                read_in(peer);
        settle(peer);
}

static void on_again(void *arg)
{
        struct peer *peer = arg;

        peer->edge->turn++;
        if (peer->more)
                read_in(peer);
        settle(peer);
}

static void on_deadline(void *arg)
{
        const struct config *config;
        struct peer *peer = arg;
        struct wire_problem problem;

        config = peer->edge->conf.config;
        if (peer->state == PEER_CLOSING) {
                connection_hang_up(peer, "the client does not read its last reply");
        } else if (peer->lingers) {
                connection_hang_up(peer, "the client does not read its last records");
        } else {
                if (peer->state == PEER_NEW)
                        wire_refuse(&problem, SMV_TIMEOUT, 0, NULL,
                                    "no hello came within %u ms (hello_timeout_ms)",
                                    config->hello_timeout_ms);
                else
                        wire_refuse(&problem, SMV_TIMEOUT, 0, NULL,
                                    "a frame was not complete within %u ms (frame_timeout_ms)",
                                    config->frame_timeout_ms);
                problem.fatal = true;
                connection_refuse(peer, &problem);
        }
        settle(peer);
}

/* ---- life ---- */

static int begin(struct peer *peer)
{
        const struct config *config = peer->edge->conf.config;
        struct loop *loop = peer->edge->loop;
        int r;

        r = loop_watch_new(loop, peer->fd, LOOP_READ, on_peer, peer, &peer->watch);
        if (!r)
                r = loop_timer_new(loop, on_again, peer, &peer->again);
        if (!r)
                r = loop_timer_new(loop, on_deadline, peer, &peer->deadline);
        if (!r)
                r = loop_timer_set(peer->deadline, (uint64_t)config->hello_timeout_ms * NS_PER_MS);
        return error_pass(r);
}

static struct peer *release(struct peer *peer)
{
        loop_watch_free(peer->watch);
        loop_timer_free(peer->again);
        loop_timer_free(peer->deadline);
        buffer_deinit(&peer->in);
        buffer_deinit(&peer->out);
        if (peer->channel && peer->channel->socket >= 0)
                /* The number of the descriptor stays taken until the channel is gone. */
                (void)sys_shutdown(peer->fd);
        else
                sys_close(peer->fd);
        free(peer);
        return NULL;
}

int peer_new(struct edge *edge, int fd, uint32_t uid, int32_t pid, struct peer **ret_peer)
{
        const struct config *config = edge->conf.config;
        struct peer *peer = calloc(1, sizeof(*peer));
        int r;

        if (!peer) {
                sys_close(fd);
                return error_raise(-ENOMEM);
        }
        *peer = (struct peer){ .edge = edge, .fd = fd, .uid = uid, .process_uid = uid, .pid = pid };
        list_init(&peer->streams);
        list_init(&peer->jobs);
        list_init(&peer->replies);
        list_init(&peer->resumables);
        list_init(&peer->handles);
        buffer_init(&peer->in, config->frame_bytes + 4);
        /*
         * Room for one reply as long as a frame may be, on top of all that may wait when it begins.
         */
        buffer_init(&peer->out,
                    2 * connection_unsent_max(peer) + config->ring_bytes + config->frame_bytes + 4);
        r = begin(peer);
        if (r) {
                release(peer);
                return error_pass(r);
        }
        list_push_front(&edge->peers, &peer->peers_link);
        edge->peer_count++;
        log_limited(LOG_DEBUG, "peer_in uid=%u pid=%d fd=%d", uid, pid, fd);
        *ret_peer = peer;
        return 0;
}

struct peer *peer_free(struct peer *peer)
{
        struct edge *edge;
        uint64_t uid;

        if (!peer)
                return NULL;
        edge = peer->edge;
        uid = peer->uid;
        log_limited(LOG_DEBUG, "peer_out uid=%u principal=%s pid=%d fd=%d", peer->process_uid,
                    principal_name(peer->principal), peer->pid, peer->fd);
        handles_leave(peer);
        encode_jobs_leave(peer);
        streams_leave(peer);
        resumables_leave(peer);
        pool_view_leave(peer);
        quota_uncharge(edge->quota, uid, QUOTA_PROMPT_BYTES, peer->frame_charged);
        list_remove(&peer->peers_link);
        list_remove(&peer->marked_link);
        edge->peer_count--;
        if (peer->channel)
                peer->channel->holds_connection = true;
        else
                quota_uncharge(edge->quota, uid, QUOTA_CONNECTIONS, 1);
        principal_leave(peer->principal);
        release(peer);
        if (edge->alone)
                edge->drains_pending = 2;
        return NULL;
}
