#include "daemon/edge/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/edge/handlers.h"
#include "daemon/edge/holder.h"
#include "daemon/edge/keeper.h"
#include "daemon/edge/streams.h"
#include "daemon/edge/task.h"
#include "daemon/error.h"
#include "daemon/log.h"
#include "daemon/sys.h"

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
#define RECORDS_LOW   (32u << 10)
#define LAST_WORDS_NS 1000000000u
#define NS_PER_MS     1000000u

void peer_hang_up(struct peer *peer, const char *why)
{
        if (peer->doomed)
                return;
        peer->doomed = true;
        log_debug("peer_hang_up uid=%u pid=%d why=%s", peer->uid, peer->pid, why);
}

void peer_cancel_all(struct peer *peer, enum smv_reason reason, enum smv_code code)
{
        for (struct request *r = peer->requests; r; r = r->peer_next)
                stream_cancel(peer->edge, r, reason, code);
        for (struct peer_task *task = peer->tasks; task; task = task->next)
                task_call_off(task, code ? code : SMV_CANCELLED);
}

/* Cancels the streams.  The peer ends when its last reply is sent, or after a second. */
static void begin_closing(struct peer *peer)
{
        peer->state = PEER_CLOSING;
        peer_cancel_all(peer, SMV_END_CANCELLED, SMV_OK);
        if (loop_timer_set(peer->deadline, LAST_WORDS_NS))
                peer_hang_up(peer, "no memory for a timer");
}

void peer_refuse(struct peer *peer, const struct wire_problem *problem)
{
        if (!peer_may_reply(peer))
                return;
        if (wire_error(&peer->out, problem))
                peer_hang_up(peer, "no room for a reply");
        else if (problem->fatal)
                begin_closing(peer);
}

void peer_answer_failure(struct peer *peer, uint32_t id, int r, struct wire_problem *problem)
{
        if (r < 0) {
                log_warn("request_failed error=%s at=%s", strerror(-r), error_trail());
                wire_refuse(problem, SMV_NO_MEMORY, id, NULL, "the daemon is out of memory");
        }
        peer_refuse(peer, problem);
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
                                   (uint64_t)edge->conf.config->frame_ms * NS_PER_MS);
                if (r)
                        peer_hang_up(peer, "no memory for a timer");
        }
        if (bytes <= FRAME_FREE || peer->frame_charged)
                return;
        r = admit_charge(edge->quota, peer->uid, QUOTA_PROMPT_BYTES, bytes - FRAME_FREE, 0,
                         &problem);
        if (r == WIRE_E_REFUSED) {
                problem.fatal = true;
                peer_refuse(peer, &problem);
        } else if (r) {
                peer_hang_up(peer, "no memory for an account");
        } else {
                peer->frame_charged = bytes - FRAME_FREE;
                /* Reserves all of its memory at once: a buffer that grows is copied. */
                if (buffer_reserve(&peer->in, bytes - buffer_count(&peer->in)))
                        peer_hang_up(peer, "no memory for a frame");
        }
}

/*
 * A frame is whole.  It is no longer timed, nor charged here; the task that reads it charges it
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
                r = task_read(peer, bytes, &problem);
                peer->reading = !r;
                if (r)
                        peer_answer_failure(peer, wire_peek_id(body, bytes - 4), r, &problem);
        } else {
                edge_catch_up(peer->edge);
                handle_frame(peer, body, bytes - 4);
        }
        if (!peer->reading)
                buffer_take(&peer->in, bytes);
}

void peer_frame_is_read(struct peer *peer, struct wire_request *asked, int r,
                        struct wire_problem *problem)
{
        peer->reading = false;
        peer->more = buffer_count(&peer->in);
        edge_catch_up(peer->edge);
        if (!peer->doomed && peer->state != PEER_CLOSING)
                handle_request(peer, asked, r, problem);
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
                        peer_refuse(peer, &problem);
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
                peer_hang_up(peer, "the client went without hello");
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
                        peer_hang_up(peer, "no memory for a frame");
                        break;
                }
                n = sys_read(peer->fd, in->bytes + in->end, room);
                if (n == -EAGAIN)
                        break;
                if (n < 0) {
                        peer_hang_up(peer, "the client is gone");
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

        return kept_take(peer) || some;
}

/*
 * Sends records while the socket takes them.  Beyond a small amount they wait in the ring, and long
 * replies wait with their tasks.  A turn sends one long reply, after the records, so neither delays
 * the other for long.
 */
static void pump(struct peer *peer)
{
        do {
                peer_send(peer);
        } while (!peer->doomed && peer->state == PEER_OPEN &&
                 buffer_count(&peer->out) < RECORDS_LOW && take_records(peer));
        if (tasks_may_pass_reply(peer)) {
                tasks_pass_reply(peer);
                peer_send(peer);
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
                peer->lingers = !loop_timer_set(peer->deadline, peer->edge->conf.config->stall_ms *
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
        return (peer->read_shut || peer->edge->phase >= EDGE_FLUSHING) && !peer->requests &&
               !peer->tasks && !peer->made && !peer->kept && !may_linger(peer);
}

static void watch(struct peer *peer)
{
        unsigned mask = buffer_count(&peer->out) && peer_is_full(peer) ? LOOP_WRITE : 0;
        bool more = peer->more && peer->state != PEER_CLOSING;
        bool again = more || tasks_may_pass_reply(peer);

        if (peer->state != PEER_CLOSING && !more)
                mask |= peer->read_shut || peer->reading ? LOOP_HUP : LOOP_READ;
        if (loop_watch_set(peer->watch, mask) || (again && loop_timer_set(peer->again, 0)))
                peer_hang_up(peer, "no memory for a watch");
}

void peer_settle(struct peer *peer)
{
        struct edge *edge = peer->edge;

        if (!peer->doomed && is_gone(peer))
                peer_hang_up(peer, "the client is gone");
        if (peer->channel && channel_is_up(&peer->channel->broken))
                peer_hang_up(peer, "the head of its ring is impossible");
        if (!peer->doomed)
                pump(peer);
        if (!peer->doomed && is_over(peer))
                peer_hang_up(peer, "all is said");
        if (!peer->doomed)
                watch(peer);
        if (peer->doomed)
                peer_free(peer);
        edge_go_on(edge);
}

static void on_peer(void *arg, unsigned mask)
{
        struct peer *peer = arg;

        peer->edge->turn++;
        if (mask & LOOP_READ && !peer->read_shut && !peer->more && !peer->reading)
                read_in(peer);
        peer_settle(peer);
}

static void on_again(void *arg)
{
        struct peer *peer = arg;

        peer->edge->turn++;
        if (peer->more)
                read_in(peer);
        peer_settle(peer);
}

/* Without memory for the timer, the turn comes with the next event of the peer. */
void peer_call(struct peer *peer)
{
        (void)loop_timer_set(peer->again, 0);
}

static void on_deadline(void *arg)
{
        const struct config *config;
        struct peer *peer = arg;
        struct wire_problem problem;

        config = peer->edge->conf.config;
        if (peer->state == PEER_CLOSING) {
                peer_hang_up(peer, "the client does not read its last reply");
        } else if (peer->lingers) {
                peer_hang_up(peer, "the client does not read its last records");
        } else {
                if (peer->state == PEER_NEW)
                        wire_refuse(&problem, SMV_TIMEOUT, 0, NULL,
                                    "no hello has come within %u ms", config->hello_ms);
                else
                        wire_refuse(&problem, SMV_TIMEOUT, 0, NULL,
                                    "a frame was not whole within %u ms", config->frame_ms);
                problem.fatal = true;
                peer_refuse(peer, &problem);
        }
        peer_settle(peer);
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
                r = loop_timer_set(peer->deadline, (uint64_t)config->hello_ms * NS_PER_MS);
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
        *peer = (struct peer){ .edge = edge, .fd = fd, .uid = uid, .pid = pid };
        buffer_init(&peer->in, config->frame_bytes + 4);
        /*
         * Room for one reply as long as a frame may be, on top of all that may wait when it begins.
         */
        buffer_init(&peer->out,
                    2 * peer_unsent_max(peer) + config->ring_bytes + config->frame_bytes + 4);
        r = begin(peer);
        if (r) {
                release(peer);
                return error_pass(r);
        }
        peer->next = edge->peers;
        if (peer->next)
                peer->next->prev = peer;
        edge->peers = peer;
        edge->peer_count++;
        log_debug("peer_in uid=%u pid=%d fd=%d", uid, pid, fd);
        *ret_peer = peer;
        return 0;
}

struct peer *peer_free(struct peer *peer)
{
        struct edge *edge;
        uint32_t uid;

        if (!peer)
                return NULL;
        edge = peer->edge;
        uid = peer->uid;
        log_debug("peer_out uid=%u pid=%d fd=%d", uid, peer->pid, peer->fd);
        holder_leave(peer);
        tasks_leave(peer);
        streams_leave(peer);
        kept_leave(peer);
        quota_uncharge(edge->quota, uid, QUOTA_PROMPT_BYTES, peer->frame_charged);
        if (peer->prev)
                peer->prev->next = peer->next;
        else
                edge->peers = peer->next;
        if (peer->next)
                peer->next->prev = peer->prev;
        edge->peer_count--;
        release(peer);
        quota_uncharge(edge->quota, uid, QUOTA_CONNECTIONS, 1);
        if (edge->alone) {
                edge_drain(edge);
                edge_drain(edge);
        }
        return NULL;
}
