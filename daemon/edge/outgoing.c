/*
 * Sending to a peer: a turn sends a limited number of bytes, and a limited number of bytes may
 * wait.  The socket is shared with the waker.
 */
#include <errno.h>

#include "daemon/edge/peer.h"
#include "daemon/error.h"
#include "daemon/sys.h"

/* To one peer in a turn; then the others have theirs. */
#define WRITE_TURN  (256u << 10)
#define RECORDS_MAX (64u << 10) /* the most bytes of records that may wait */

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
                        peer_hang_up(peer, "the client is gone");
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

/* The side that holds the line rings for the other side, too.  A full socket needs no ring. */
static void let_line_go(struct peer *peer)
{
        static const uint8_t frame[4];

        while (line_let_go(&peer->channel->line))
                (void)sys_send(peer->fd, frame, sizeof(frame));
        peer->channel->line_held = false;
}

/* If the waker has the line, it calls us when it is done. */
void peer_send(struct peer *peer)
{
        struct channel *channel = peer->channel;

        if (!buffer_count(&peer->out))
                return;
        if (!takes_turns(peer)) {
                write_out(peer);
                return;
        }
        if (!channel->line_held)
                channel->line_held = line_take(&channel->line, LINE_CALL);
        if (channel->line_held && write_out(peer))
                let_line_go(peer);
}

/* True if the bytes wait for the client, false if only for the waker, which is ringing just now. */
bool peer_is_full(const struct peer *peer)
{
        return !takes_turns(peer) || peer->channel->line_held;
}

int peer_pass(struct peer *peer, const int *fds, unsigned count)
{
        struct buffer *out = &peer->out;
        ssize_t n = sys_send_fds(peer->fd, out->bytes + out->start, buffer_count(out), fds, count);

        if (n < 0)
                return error_raise((int)n);
        buffer_take(out, (size_t)n);
        return 0;
}

size_t peer_unsent_max(const struct peer *peer)
{
        return peer->edge->conf.config->reply_bytes + RECORDS_MAX;
}

/*
 * A client may send many requests before it reads, so replies that wait are bounded, but not
 * refused earlier.  A long reply is not counted: the next long one waits for it, and stays charged.
 */
bool peer_may_reply(struct peer *peer)
{
        size_t most = peer_unsent_max(peer) + peer->long_left;

        if (!peer->doomed && buffer_count(&peer->out) > most)
                peer_send(peer);
        most = peer_unsent_max(peer) + peer->long_left;
        if (!peer->doomed && buffer_count(&peer->out) > most && peer_is_full(peer))
                peer_hang_up(peer, "the client does not read its replies");
        return !peer->doomed;
}

bool peer_reply(struct peer *peer, struct wire_writer *writer)
{
        if (!peer_may_reply(peer))
                return false;
        wire_begin(writer, &peer->out);
        return true;
}

void peer_replied(struct peer *peer, struct wire_writer *writer)
{
        if (wire_end(writer))
                peer_hang_up(peer, "no room for a reply");
}

void peer_reply_ok(struct peer *peer, uint32_t id)
{
        struct wire_writer writer;

        if (!peer_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, 0);
        peer_replied(peer, &writer);
}

/*
 * Puts the bytes that wait in front of the reply, if it has room for them.  Else the reply is
 * copied.  A short reply has no such room.  And more than that room may wait, if the waker kept us
 * from sending.
 */
void peer_reply_made(struct peer *peer, struct buffer *reply)
{
        struct buffer *out = &peer->out;

        if (!peer_may_reply(peer))
                return;
        if (!buffer_count(out) ||
            buffer_prepend(reply, out->bytes + out->start, buffer_count(out))) {
                buffer_deinit(out);
                reply->max = out->max;
                *out = *reply;
                buffer_init(reply, 0);
        } else if (buffer_append(out, reply->bytes + reply->start, buffer_count(reply))) {
                peer_hang_up(peer, "no room for a reply");
        }
        peer->long_left = buffer_count(out);
}
