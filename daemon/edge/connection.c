#include "daemon/edge/connection.h"
#include "daemon/edge/principals.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"

/* To one peer in a turn; then the others have theirs. */
#define WRITE_TURN  (256u << 10)
#define RECORDS_MAX (64u << 10) /* the most bytes of records that may wait */
/* How long a connection that is closing may take to send its last reply. */
#define LAST_WORDS_NS 1000000000u

void connection_mark(struct peer *peer)
{
        if (list_is_empty(&peer->marked_link))
                list_push_back(&peer->edge->marked, &peer->marked_link);
}

void connection_hang_up(struct peer *peer, const char *why)
{
        if (peer->doomed)
                return;
        peer->doomed = true;
        connection_mark(peer);
        log_limited(LOG_DEBUG, "peer_hang_up uid=%u principal=%s pid=%d why=%s", peer->process_uid,
                    principal_name(peer->principal), peer->pid, why);
}

/* 1: all is sent.  0: the socket is full, or the limit of the turn is reached. */
static int write_out(struct peer *peer)
{
        struct buffer *out = &peer->out;
        size_t sent = 0;

        while (buffer_count(out)) {
                size_t most = WRITE_TURN - sent;
                ssize_t n;

                if (!most)
                        return 0;
                if (most > buffer_count(out))
                        most = buffer_count(out);
                /*
                 * Not all at once: such a send would go on for as long as a quick reader makes
                 * room.
                 */
                n = sys_send(peer->fd, out->bytes + out->start, most);
                if (n == -EAGAIN)
                        return 0;
                if (n < 0) {
                        connection_hang_up(peer, "the client is gone");
                        return 0;
                }
                buffer_take(out, (size_t)n);
                sent += (size_t)n;
                peer->long_left -= (size_t)n < peer->long_left ? (size_t)n : peer->long_left;
        }
        return 1;
}

/* The waker shares the socket with us only for the doorbell `kick`. */
static bool takes_turns(const struct peer *peer)
{
        return peer->channel && peer->channel->bell == CHANNEL_KICK;
}

/* The side that holds the send lock rings for the other side, too.  A full socket needs no ring. */
static void let_line_go(struct peer *peer)
{
        static const uint8_t frame[4];

        while (send_lock_release(&peer->channel->send_lock))
                (void)sys_send(peer->fd, frame, sizeof(frame));
        peer->channel->has_send_lock = false;
}

/* If the waker has the send lock, it calls us when it is done. */
void connection_send(struct peer *peer)
{
        struct channel *channel = peer->channel;

        if (!buffer_count(&peer->out))
                return;
        if (!takes_turns(peer)) {
                write_out(peer);
                return;
        }
        if (!channel->has_send_lock)
                channel->has_send_lock = send_lock_take(&channel->send_lock, SEND_LOCK_CALL);
        if (channel->has_send_lock && write_out(peer))
                let_line_go(peer);
}

bool connection_is_full(const struct peer *peer)
{
        return !takes_turns(peer) || peer->channel->has_send_lock;
}

int connection_pass(struct peer *peer, const int *fds, unsigned count)
{
        struct buffer *out = &peer->out;
        ssize_t n = sys_send_fds(peer->fd, out->bytes + out->start, buffer_count(out), fds, count);

        if (n < 0)
                return error_raise((int)n);
        buffer_take(out, (size_t)n);
        return 0;
}

size_t connection_unsent_max(const struct peer *peer)
{
        return peer->edge->conf.config->reply_bytes + RECORDS_MAX;
}

/*
 * A client may send many requests before it reads, so replies that wait are bounded, but not
 * refused earlier.  A long reply is not counted: the next long one waits for it, and stays charged.
 */
bool connection_may_reply(struct peer *peer)
{
        size_t most = connection_unsent_max(peer) + peer->long_left;

        if (!peer->doomed && buffer_count(&peer->out) > most)
                connection_send(peer);
        most = connection_unsent_max(peer) + peer->long_left;
        if (!peer->doomed && buffer_count(&peer->out) > most && connection_is_full(peer))
                connection_hang_up(peer, "the client does not read its replies");
        return !peer->doomed;
}

bool connection_reply(struct peer *peer, struct wire_writer *writer)
{
        if (!connection_may_reply(peer))
                return false;
        wire_begin(writer, &peer->out);
        return true;
}

void connection_replied(struct peer *peer, struct wire_writer *writer)
{
        if (wire_end(writer))
                connection_hang_up(peer, "no room for a reply");
}

void connection_reply_ok(struct peer *peer, uint32_t id)
{
        struct wire_writer writer;

        if (!connection_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, 0);
        connection_replied(peer, &writer);
}

/*
 * Puts the bytes that wait in front of the reply, if it has room for them.  Else the reply is
 * copied.  A short reply has no such room.  And more than that room may wait, if the waker kept us
 * from sending.
 */
void connection_reply_made(struct peer *peer, struct buffer *reply)
{
        struct buffer *out = &peer->out;

        if (!connection_may_reply(peer))
                return;
        if (!buffer_count(out) ||
            buffer_prepend(reply, out->bytes + out->start, buffer_count(out))) {
                buffer_deinit(out);
                reply->max = out->max;
                *out = *reply;
                buffer_init(reply, 0);
        } else if (buffer_append(out, reply->bytes + reply->start, buffer_count(reply))) {
                connection_hang_up(peer, "no room for a reply");
        }
        peer->long_left = buffer_count(out);
}

/* The peer's streams are cancelled when it is settled (peer.c). */
static void begin_closing(struct peer *peer)
{
        peer->state = PEER_CLOSING;
        peer->cancels = true;
        connection_mark(peer);
        if (loop_timer_set(peer->deadline, LAST_WORDS_NS))
                connection_hang_up(peer, "no memory for a timer");
}

void connection_refuse(struct peer *peer, const struct wire_problem *problem)
{
        if (!connection_may_reply(peer))
                return;
        if (wire_error(&peer->out, problem))
                connection_hang_up(peer, "no room for a reply");
        else if (problem->fatal)
                begin_closing(peer);
}

void connection_count_refusal(struct edge *edge, int r, const struct wire_problem *problem)
{
        enum smv_code code = r < 0 ? SMV_NO_MEMORY : problem->code;

        counter_add(&edge->conf.stats->requests_refused, 1);
        counter_add(&edge->conf.stats->refusals[code], 1);
}

void connection_answer_failure(struct peer *peer, uint32_t id, int r, struct wire_problem *problem)
{
        if (r < 0) {
                log_limited(LOG_WARN, "request_failed uid=%u principal=%s pid=%d error=%s at=%s",
                            peer->process_uid, principal_name(peer->principal), peer->pid,
                            strerror(-r), error_trail());
                wire_refuse(problem, SMV_NO_MEMORY, id, NULL, "the daemon is out of memory");
        }
        connection_refuse(peer, problem);
}
