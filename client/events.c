/*
 * Events: converts records from the ring or from frames, one at a time.
 *
 * The ring is read before the socket.  If a connection has a ring, the socket brings replies and
 * kicks; a kick only means "look at the ring".  The socket also tells of the daemon's death.  When
 * it is lost, the complete records in the ring are read first.
 */
#include "client/state.h"

#include <errno.h>

#include "client/record-reader.h"

/* The longest futex sleep while some streams send their records through the socket. */
#define BOTH_TRANSPORTS_NS 1000000u

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
 * True if the stream's records may come this way.  If there is a ring, streams that outlive the
 * connection send frames, and all others use the ring.
 */
static bool is_its_transport(const struct smv_client *client, const struct client_stream *stream,
                             bool framed)
{
        return !client->ring.segment || framed == (stream->resume_id != 0);
}

/* Converts one record to at most one event.  1: an event; 0: none; -EPROTO or -ENOMEM. */
static int read_record(struct smv_client *client, const struct record *record, bool framed,
                       struct smv_event *ret_event)
{
        struct client_stream *stream;
        int r;

        if (record->head.type == SMV_RECORD_PAD)
                return 0;
        stream = client_stream(client, record->head.stream);
        if (!stream || record->head.sequence != stream->sequence ||
            !is_its_transport(client, stream, framed))
                return -EPROTO;
        if (stream->detached) {
                client->logprobs[framed].stream = 0;
                stream->sequence++;
                return 0;
        }

        switch (record->head.type) {
        case SMV_RECORD_TOKENS:
                r = record_tokens(record, &client->ids, ret_event);
                if (!r)
                        r = add_logprobs(&client->logprobs[framed], ret_event);
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

/*
 * Reads the frame of records at the front.  1: an event; 0: it has no more; -ENOMEM.
 *
 * The frame is dropped together with its last record and not one call later, because
 * there may be no later smv_next().  Its bytes stay readable until something new is
 * received.
 */
static int read_frame(struct smv_client *client, struct smv_event *ret_event)
{
        struct connection *connection = &client->connection;
        const char *frame = connection->in.at + connection->start;
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
        if (r == -ENOMEM || (r > 0 && client->record_at < client->record_end))
                return r;

        if (r < 0) {
                connection_set_lost(connection, r, connection->start);
                r = 0;
        } else {
                if (connection->start < connection->scan)
                        client->records_ahead--;
                connection_consume(connection, connection->start + client->frame_bytes);
        }
        client->frame_bytes = 0;
        client_remove_detached(client);
        return r;
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
 * Reads the ring.  1: an event; 0: it has no more, and all space was given back; -ENOMEM.
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

        if (!r)
                return client_release_ring(client, true);
        if (r == -ENOMEM)
                shared_ring_unread(ring);
        if (r != -EPROTO)
                return r;
        stop_reading_ring(client);
        return 0;
}

/*
 * Takes the frame at the front: a frame of records is prepared for read_frame(), any other
 * frame is dropped.  1: it was complete; 0: it was not, or the connection is lost; or -ENOMEM.
 *
 * The replies seen here are those that no call waits for (to a cancel), or those already
 * read by looking ahead.  Only a refusal of the connection itself, which has no id,
 * matters.
 */
static int take_frame(struct smv_client *client)
{
        struct connection *connection = &client->connection;
        struct codec_frame frame = { 0 };
        const char *body;
        size_t bytes;
        int r;

        if (!connection_frame(connection, connection->start, &body, &bytes))
                return 0;

        if (bytes) {
                r = client_decode(client, body, bytes, &frame);
                if (r == -EPROTO)
                        connection_set_lost(connection, r, connection->start);
                if (r)
                        return r == -EPROTO ? 0 : r;
        }
        if (frame.records) {
                client->frame_bytes = 4 + bytes;
                client->record_at =
                        (size_t)(frame.records - (connection->in.at + connection->start));
                client->record_end = client->record_at + frame.records_bytes;
                return 1;
        }
        if (bytes)
                client_unexpected_reply(client, &frame);
        connection_consume(connection, connection->start + 4 + bytes);
        return 1;
}

/* The next event among the data that has come, the ring before the socket: 1, 0 or -ENOMEM. */
static int next_event(struct smv_client *client, struct smv_event *ret_event)
{
        int r;

        r = read_ring(client, ret_event);
        if (r)
                return r;
        do {
                if (client->frame_bytes) {
                        r = read_frame(client, ret_event);
                        if (r)
                                return r;
                }
                r = take_frame(client);
        } while (r > 0);

        return r;
}

/*
 * The daemon is gone: makes the END of the next living stream: 1; or -ENOTCONN if no stream is
 * alive.
 */
static int end_lost(struct smv_client *client, struct smv_event *ret_event)
{
        client->records_ahead = 0;
        client_remove_detached(client);
        if (!client->stream_count)
                return client_lost(client);

        /*
         * Perhaps the client gave up the connection and the daemon is still alive.  It must not add
         * records behind these ENDs, so read no more from the ring.
         */
        client->ring.stopped = true;
        *ret_event = (struct smv_event){
                .kind = SMV_EVENT_END,
                .stream = client->streams[0].id,
                .reason = SMV_END_ERROR,
                .code = SMV_LOST,
                .output_tokens = client->streams[0].tokens,
                .sequence = client->streams[0].sequence,
        };
        client_remove_stream(client, &client->streams[0]);
        return 1;
}

/* True while the client should poll before it sleeps: polling costs much less than a wake-up. */
static bool is_spinning(const struct smv_client *client, uint64_t deadline, uint64_t *until)
{
        uint64_t now;

        if (!client->ring.segment || !client->spin_ns)
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
        size_t resumable = client_resumable_count(client);
        bool futex = ring->doorbell == SMV_DOORBELL_FUTEX && resumable < client->stream_count;
        uint64_t now = monotonic_ns(), until = deadline;
        int r;

        if (until > now && until - now > shared_ring_sleep_max(ring))
                until = now + shared_ring_sleep_max(ring);
        /* The futex does not wake us for data on the socket. */
        if (resumable && until > now && until - now > BOTH_TRANSPORTS_NS && futex)
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
        int r;

        for (;;) {
                r = next_event(client, ret_event);
                if (r)
                        return r;
                if (client->connection.lost)
                        return end_lost(client, ret_event);
                /* Without a stream there is nothing to wait for, but there may be data to read. */
                if (!client->stream_count)
                        deadline = 0;
                if (is_spinning(client, deadline, &spin_until))
                        continue;

                r = client->ring.segment ? sleep_on_ring(client, deadline)
                                         : connection_poll(&client->connection, deadline);
                if (r < 0)
                        return r;
                if (!r && !waits)
                        return client->stream_count ? 0 : -ENODATA;
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

        r = wait_event(client, &event, deadline_after(timeout_ms), timeout_ms != 0);
        if (r == -ENOMEM)
                client_fail(client, r, "out of memory");
        else if (r == -ENODATA)
                client_fail(client, r, "no stream is alive");
        else if (r > 0)
                client_copy_out(ret_event, &event, sizeof(event));
        return r;
}

int smv_fd(const struct smv_client *client)
{
        return client ? client->connection.fd : -EINVAL;
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
