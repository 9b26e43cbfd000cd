/*
 * Events: converts records from the ring or from frames, and replies to pending requests, one at a
 * time.
 *
 * The ring is read before the socket.  If a connection has a ring, the socket brings replies and
 * kicks; a kick only means "look at the ring".  The socket also tells of the daemon's death.  When
 * it is lost, the complete records in the ring are read first.
 *
 * The ring may have records of a stream whose reply is still on the socket.  The reply must come
 * first, so nothing more is read from the ring until then, and the client waits for the socket
 * only.  If a frame has such a record, replies behind that frame are looked for and taken first.
 */
#include "client/state.h"

#include <errno.h>

#include "client/record-reader.h"
#include "client/request.h"

/* The longest futex sleep while some streams send their records through the socket. */
#define BOTH_TRANSPORTS_NS 1000000u
/* If replies are outstanding: how many calls may find an event in the ring, and read no socket. */
#define SOCKET_UNREAD_MAX 32u

enum outcome {
        NOTHING = 0, /* nothing more can be read now */
        EVENT = 1,
        AGAIN = 2, /* something was read that is no event */
};

/*
 * Adds the last LOGPROBS record to the event, if there is one.  0, or -EPROTO: it does not belong
 * to these tokens.
 */
static int add_logprobs(struct client_logprobs *logprobs, struct smv_event *event)
{
        size_t count = logprobs->at.count / sizeof(struct smv_logprob);

        if (!logprobs->stream)
                return 0;
        if (logprobs->stream != event->stream ||
            count != event->token_count * (1 + logprobs->top_count))
                return -EPROTO;
        logprobs->stream = 0;
        event->logprobs = (const struct smv_logprob *)(const void *)logprobs->at.at;
        event->top_count = logprobs->top_count;
        return 0;
}

/*
 * Adds the last ROW record to the event, if there is one.  0, or -EPROTO: it does not belong to
 * this stream.
 */
static int add_row(const struct smv_client *client, struct client_row *last,
                   const struct client_stream *stream, struct smv_event *event)
{
        struct smv_row *row = &last->row;

        if (!last->stream)
                return 0;
        if (last->stream != event->stream || row->position != event->position)
                return -EPROTO;
        last->stream = 0;
        row->logits = NULL;
        if (last->is_whole)
                row->logits = slots_row(&client->slots, stream->ask_slot, stream->ask_ticket,
                                        row->position);
        row->logit_count = row->logits ? client->slots.vocab : 0;
        event->row = row;
        return 0;
}

/* A question of the stream: what kind it is was asked for. */
static int take_ask(struct client_stream *stream, const struct smv_event *event)
{
        if (!stream->ask || event->ask != stream->ask)
                return -EPROTO;
        stream->is_asking = true;
        stream->ask_position = event->position;
        return 0;
}

/* Adds the last PARTS record to the event, if there is one.  0, or -EPROTO: it is not this text. */
static int add_parts(struct client_parts *parts, struct smv_event *event)
{
        const struct smv_part *at = (const struct smv_part *)(const void *)parts->at.at;
        size_t count = parts->at.count / sizeof(*at), bytes = 0;

        if (!parts->stream)
                return 0;
        for (size_t i = 0; i < count; i++)
                bytes += at[i].bytes;
        if (parts->stream != event->stream || bytes != event->text_bytes)
                return -EPROTO;
        parts->stream = 0;
        event->parts = at;
        event->part_count = count;
        return 0;
}

/*
 * True if the stream's records may come this way.  If there is a ring, streams that outlive the
 * connection send frames, and all others use the ring.
 */
static bool is_its_transport(const struct smv_client *client, const struct client_stream *stream,
                             bool framed)
{
        return !client->ring.segment || framed == (stream->resume_id != 0);
}

/*
 * A record of a stream that is not in the table.  -EAGAIN: its request is pending, so it must wait.
 * 0: the connection was lost before the reply, so nobody wants it.  -EPROTO: there is none.
 */
static int judge_early(const struct smv_client *client, uint32_t id)
{
        const struct client_pending *pending = client_pending_stream(client, id);

        if (!pending)
                return -EPROTO;
        return pending->lost ? 0 : -EAGAIN;
}

/*
 * Converts one record to at most one event.  1: an event; 0: none; -EPROTO; -ENOMEM, or -EAGAIN:
 * it must be read again later.
 */
static int read_record(struct smv_client *client, const struct record *record, bool framed,
                       struct smv_event *ret_event)
{
        struct client_stream *stream;
        int r;

        if (record->head.type == SMV_RECORD_PAD)
                return 0;
        stream = client_stream(client, record->head.stream);
        if (!stream)
                return judge_early(client, record->head.stream);
        if (record->head.sequence != stream->sequence || !is_its_transport(client, stream, framed))
                return -EPROTO;
        if (stream->detached) {
                client->logprobs[framed].stream = client->parts[framed].stream = 0;
                client->rows[framed].stream = 0;
                stream->sequence++;
                return 0;
        }

        switch (record->head.type) {
        case SMV_RECORD_TOKENS:
                r = record_tokens(record, &client->ids, ret_event);
                if (!r)
                        r = add_logprobs(&client->logprobs[framed], ret_event);
                if (!r)
                        r = add_parts(&client->parts[framed], ret_event);
                if (!r && ret_event->token_count)
                        r = add_row(client, &client->rows[framed], stream, ret_event);
                if (!r)
                        stream->tokens += (uint32_t)ret_event->token_count;
                break;
        case SMV_RECORD_LOGPROBS:
                r = record_logprobs(record, &client->logprobs[framed].at,
                                    &client->logprobs[framed].top_count);
                if (r)
                        return r;
                client->logprobs[framed].stream = record->head.stream;
                stream->sequence++;
                return 0;
        case SMV_RECORD_PROMPT_LOGPROBS:
                client->logprobs[framed].stream = 0;
                r = record_prompt_logprobs(record, &client->logprobs[framed].at, &client->ids,
                                           ret_event);
                break;
        case SMV_RECORD_PARTS:
                r = record_parts(record, &client->parts[framed].at);
                if (r)
                        return r;
                client->parts[framed].stream = record->head.stream;
                stream->sequence++;
                return 0;
        case SMV_RECORD_ROW:
                r = record_row(record, &client->rows[framed].at, &client->rows[framed].row,
                               &client->rows[framed].is_whole);
                if (r)
                        return r;
                client->rows[framed].stream = record->head.stream;
                stream->sequence++;
                return 0;
        case SMV_RECORD_ASK:
                r = record_ask(record, ret_event);
                if (!r)
                        r = add_row(client, &client->rows[framed], stream, ret_event);
                if (!r)
                        r = take_ask(stream, ret_event);
                break;
        case SMV_RECORD_PROGRESS:
                r = record_progress(record, ret_event);
                break;
        case SMV_RECORD_END:
                r = record_end(record, ret_event);
                break;
        default:
                if (record->head.flags & SMV_RECORD_CRITICAL)
                        return -EPROTO;
                stream->sequence++;
                return 0;
        }
        if (r)
                return r;

        stream->sequence++;
        if (ret_event->kind == SMV_EVENT_END)
                client_remove_stream(client, stream);
        return 1;
}

/* Looks for the reply to a request among the frames behind the front one.  1, 0 or -ENOMEM. */
static int find_reply(struct smv_client *client, const struct client_pending *pending,
                      struct codec_frame *ret_frame)
{
        size_t start = client->connection.start, end;
        int r;

        while ((r = client_read_frame(client, start + client->searched, ret_frame, &end)) > 0) {
                if (!ret_frame->records && client_pending_of(client, ret_frame) == pending)
                        return 1;
                client->searched = end - start;
        }
        return r;
}

/*
 * The next record of the front frame waits for a reply, which may be behind the frame.  EVENT: it
 * was; its own frame is dropped later, as one that nothing waits for.  Or NOTHING, or -ENOMEM.
 */
static int read_early_reply(struct smv_client *client, struct smv_event *ret_event)
{
        struct client_pending *pending = client_pending_stream(client, client->frame_waits);
        struct codec_frame frame;
        int r = find_reply(client, pending, &frame);

        if (r <= 0)
                return r;
        r = client_request_finish(client, pending, &frame, ret_event);
        client->searched = r ? client->searched : client->frame_bytes;
        return r ? r : EVENT;
}

/*
 * Drops the frame at the front with its last record, and not one call later, because there may be
 * no later smv_next().  Its bytes stay readable until something new is received.
 */
static void drop_frame(struct smv_client *client, size_t bytes)
{
        connection_consume(&client->connection, client->connection.start + bytes);
        client_remove_detached(client);
}

/* Reads the frame of records at the front: an outcome, or -ENOMEM. */
static int read_frame(struct smv_client *client, struct smv_event *ret_event)
{
        struct connection *connection = &client->connection;
        const char *frame = connection->in.at + connection->start;
        size_t bytes = client->frame_bytes;
        struct record record;
        int r = 0;

        while (!r && client->record_at < client->record_end) {
                r = record_read(frame + client->record_at, client->record_end - client->record_at,
                                &record);
                if (!r)
                        r = read_record(client, &record, true, ret_event);
                if (r >= 0)
                        client->record_at += record.step;
        }
        client->frame_waits = r == -EAGAIN ? record.head.stream : 0;
        if (r == -EAGAIN)
                return read_early_reply(client, ret_event);
        if (r == -ENOMEM || (r > 0 && client->record_at < client->record_end))
                return r;

        client->frame_bytes = 0;
        if (r < 0)
                connection_set_lost(connection, r, connection->start);
        else
                drop_frame(client, bytes);
        return r > 0 ? EVENT : AGAIN;
}

/*
 * The contents of the ring are impossible.  The daemon may have hung up and released the
 * memory.  Then the socket shows it, and maybe the daemon has sent a reason, so read the
 * socket first.
 */
static void stop_reading_ring(struct smv_client *client)
{
        struct connection *connection = &client->connection;

        client->ring.stopped = true;
        while (!connection->lost && connection_poll(connection, 0) > 0)
                ;
        connection_set_lost(connection, -EPROTO, connection->in.count);
}

/*
 * Reads the ring.  1: an event; 0: it has no more that may be read now, and all space was given
 * back; -ENOMEM.
 * Space is given back before a record is taken.  So the event that this returns is never
 * in space that was given back.
 */
static int read_ring(struct smv_client *client, struct smv_event *ret_event)
{
        struct shared_ring *ring = &client->ring;
        struct record record;
        int r;

        r = client_release_ring(client, false);
        if (r)
                return r;
        while ((r = shared_ring_next(ring, &record)) > 0) {
                r = read_record(client, &record, false, ret_event);
                if (r)
                        break;
        }

        client->ring_waits = r == -EAGAIN ? record.head.stream : 0;
        if (r == -ENOMEM || r == -EAGAIN)
                shared_ring_unread(ring);
        if (!r || r == -EAGAIN)
                return client_release_ring(client, true);
        if (r != -EPROTO)
                return r;
        stop_reading_ring(client);
        return 0;
}

/*
 * Reads the frame at the front: a frame of records is prepared for read_frame(), the reply to a
 * pending request is an event, any other frame is dropped.  An outcome, or -ENOMEM.
 *
 * The replies that are dropped are those that nothing waits for (to a cancel), or those already
 * read by looking ahead.  Only a refusal of the connection itself, which has no id, matters.
 */
static int take_frame(struct smv_client *client, struct smv_event *ret_event)
{
        size_t start = client->connection.start, end;
        struct client_pending *pending;
        struct codec_frame frame;
        int r;

        r = client_read_frame(client, start, &frame, &end);
        if (r <= 0)
                return r;
        if (frame.records) {
                client->frame_bytes = client->searched = end - start;
                client->record_at = (size_t)(frame.records - (client->connection.in.at + start));
                client->record_end = client->record_at + frame.records_bytes;
                return AGAIN;
        }
        pending = client_pending_of(client, &frame);
        if (!pending)
                client_unexpected_reply(client, &frame);
        else if ((r = client_request_finish(client, pending, &frame, ret_event)))
                return r;
        drop_frame(client, end - start);
        return pending ? EVENT : AGAIN;
}

/* The next event among the frames that have come: EVENT, NOTHING or -ENOMEM. */
static int read_socket(struct smv_client *client, struct smv_event *ret_event)
{
        int r;

        client->socket_unread = 0;
        do
                r = client->frame_bytes ? read_frame(client, ret_event)
                                        : take_frame(client, ret_event);
        while (r == AGAIN);
        return r;
}

/* The reply to a stream that asks for masks asks for the first one. */
static int ask_first(struct smv_client *client, struct smv_event *ret_event)
{
        struct client_stream *stream = client->streams.at;

        while (!stream->asks_first)
                stream++;
        stream->asks_first = false;
        client->asks_first_count--;
        *ret_event = (struct smv_event){ .kind = SMV_EVENT_ASK,
                                         .stream = stream->id,
                                         .ask = SMV_ASK_MASK,
                                         .position = stream->ask_position };
        return 1;
}

/*
 * The next event among the data that has come, the ring before the socket: 1, 0 or -ENOMEM.  But a
 * ring that is never empty must not hide the replies.
 */
static int next_event(struct smv_client *client, struct smv_event *ret_event)
{
        int r = 0;

        if (client->asks_first_count)
                return ask_first(client, ret_event);
        if (client->pending_count && ++client->socket_unread > SOCKET_UNREAD_MAX) {
                r = connection_poll(&client->connection, 0);
                if (r >= 0)
                        r = read_socket(client, ret_event);
        }
        if (!r)
                r = read_ring(client, ret_event);
        return r ? r : read_socket(client, ret_event);
}

/*
 * The next pending request that will have no reply.  Those for which records wait come first: the
 * replies to others may be behind these records.
 */
static struct client_pending *next_lost(const struct smv_client *client)
{
        uint32_t waits = client->frame_waits ? client->frame_waits : client->ring_waits;

        if (waits)
                return client_pending_stream(client, waits);
        for (size_t i = 0; i < client->pending_count; i++)
                if (!client->pending[i].lost)
                        return &client->pending[i];
        return NULL;
}

/*
 * The daemon is gone, and all that came was read: answers the next pending request, or makes the
 * END of the next living stream: 1; or -ENOTCONN if there is neither.
 */
static int end_lost(struct smv_client *client, struct smv_event *ret_event)
{
        struct client_pending *pending = next_lost(client);

        if (pending) {
                /* It stays in the table: records that came before its reply are skipped. */
                pending->lost = true;
                client->searched = client->frame_bytes;
                client_lost(client);
                *ret_event = (struct smv_event){ .kind = SMV_EVENT_REPLY,
                                                 .stream = pending->id,
                                                 .code = SMV_LOST };
                return 1;
        }
        client_remove_detached(client);
        if (!client->streams.count)
                return client_lost(client);

        /*
         * Perhaps the client gave up the connection and the daemon is still alive.  It must not add
         * records behind these ENDs, so read no more from the ring.
         */
        client->ring.stopped = true;
        *ret_event = (struct smv_event){
                .kind = SMV_EVENT_END,
                .stream = client->streams.at[0].id,
                .reason = SMV_END_ERROR,
                .code = SMV_LOST,
                .output_tokens = client->streams.at[0].tokens,
                .sequence = client->streams.at[0].sequence,
        };
        client_remove_stream(client, &client->streams.at[0]);
        return 1;
}

/* True while the client should poll before it sleeps: polling costs much less than a wake-up. */
static bool is_spinning(const struct smv_client *client, uint64_t deadline, uint64_t *until)
{
        uint64_t now;

        if (!client->ring.segment || !client->spin_ns || client->ring_waits)
                return false;
        now = monotonic_ns();
        if (!*until)
                *until = now + client->spin_ns;
        return now < *until && now < deadline;
}

/* Sleeps in the way of the doorbell.  1: look again; 0: the deadline has passed; or -ENOMEM. */
static int sleep_on_ring(struct smv_client *client, uint64_t deadline)
{
        struct shared_ring *ring = &client->ring;
        size_t resumable = client->resumable_count;
        bool futex = ring->doorbell == SMV_DOORBELL_FUTEX && resumable < client->streams.count;
        uint64_t now = monotonic_ns(), until = deadline;
        int r;

        if (until > now && until - now > shared_ring_sleep_max(ring))
                until = now + shared_ring_sleep_max(ring);
        /* The futex does not wake us for data on the socket. */
        if ((resumable || client->pending_count) && until > now &&
            until - now > BOTH_TRANSPORTS_NS && futex)
                until = now + BOTH_TRANSPORTS_NS;

        if (futex) {
                r = connection_poll(&client->connection, 0);
                if (!r && now < until && shared_ring_may_sleep(ring))
                        shared_ring_sleep(ring, until - now);
        } else {
                /* After this, the caller may safely sleep on smv_fd(). */
                if (ring->doorbell == SMV_DOORBELL_KICK && !shared_ring_may_sleep(ring))
                        return 1;
                r = connection_poll(&client->connection, until);
        }
        return r ? r : monotonic_ns() < deadline;
}

/* Polls or sleeps until there may be news.  1: look again; 0: the deadline has passed; -ENOMEM. */
static int wait_for_news(struct smv_client *client, uint64_t deadline, uint64_t *spin_until)
{
        if (is_spinning(client, deadline, spin_until)) {
                int r = client->pending_count ? connection_poll(&client->connection, 0) : 1;

                return r < 0 ? r : 1;
        }
        /* While the ring waits for a reply, only the socket has news. */
        if (client->ring.segment && !client->ring_waits)
                return sleep_on_ring(client, deadline);
        return connection_poll(&client->connection, deadline);
}

/*
 * After each sleep, the loop looks at everything once more.  It must do so after a lost connection,
 * because the daemon may die between publishing a record and ringing.  It must do so after the
 * timeout, because a client that sleeps in batches is not woken for a few records that may be
 * there by then.
 */
static int wait_event(struct smv_client *client, struct smv_event *ret_event, uint64_t deadline,
                      bool waits)
{
        uint64_t spin_until = 0;
        bool expects;
        int r;

        for (;;) {
                r = next_event(client, ret_event);
                if (r)
                        return r;
                if (client->connection.lost)
                        return end_lost(client, ret_event);
                /* With nothing to wait for, there may still be data to read. */
                expects = client->streams.count || client->pending_count;
                r = wait_for_news(client, expects ? deadline : 0, &spin_until);
                if (r < 0)
                        return r;
                if (!r && !waits)
                        return expects ? 0 : -ENODATA;
                if (!r)
                        waits = false;
        }
}

int smv_next(struct smv_client *client, struct smv_event *ret_event, int timeout_ms)
{
        struct smv_event event = { 0 };
        int r;

        /* Check this before taking an event, so that no event is lost. */
        if (ret_event->size < sizeof(ret_event->size))
                return client_refuse_struct(client, -EINVAL, "smv_event");
        if (!client)
                return -EINVAL;
        client_clear_failure(client);
        connection_flush(&client->connection);

        r = wait_event(client, &event, deadline_after(timeout_ms), timeout_ms != 0);
        if (r == -ENOMEM)
                client_fail(client, r, "out of memory");
        else if (r == -ENODATA)
                client_fail(client, r, "no stream is alive, and no reply is outstanding");
        else if (r > 0)
                client_copy_out(ret_event, &event, sizeof(event));
        return r;
}

int smv_fd(const struct smv_client *client)
{
        return client ? client->connection.fd : -EINVAL;
}

int smv_wants_write(const struct smv_client *client)
{
        return client && connection_unsent(&client->connection);
}

void smv_wake_after(struct smv_client *client, size_t bytes)
{
        struct shared_ring *ring;

        if (!client)
                return;
        ring = &client->ring;
        /* More bytes than the ring's size can never wait in it. */
        ring->wake_bytes = bytes < ring->reader.data_bytes ? bytes : ring->reader.data_bytes;
}
