/*
 * Requests and their replies.
 *
 * A call that waits sends one frame and reads ahead until the reply with its id has come.
 * Records and the replies to pending requests stay where they are, for smv_next().
 */
#include "client/request.h"

#include <errno.h>
#include <stdio.h>

/*
 * Looks at the next frame at connection->scan.  1: it is the reply to `id`.  0: it is not, or no
 * frame is complete.  Or -ENOMEM.  *ret_more: a frame was there and another may follow.
 */
static int read_ahead(struct smv_client *client, uint32_t id, struct codec_frame *ret_frame,
                      bool *ret_more)
{
        struct connection *connection = &client->connection;
        struct codec_frame frame;
        int r;

        r = client_read_frame(client, connection->scan, &frame, &connection->scan);
        *ret_more = r > 0;
        if (r <= 0)
                return r;

        if (!frame.records && frame.id == id) {
                *ret_frame = frame;
                return 1;
        }
        if (frame.records || client_pending_of(client, &frame))
                connection_keep_scanned(connection);
        else
                client_unexpected_reply(client, &frame);
        /*
         * Drop doorbells and replies that no request waits for, unless events are before them:
         * dropping would drop those events too.
         */
        connection_consume_scanned(connection);
        return 0;
}

static int wait_for_reply(struct smv_client *client, uint32_t id, uint64_t deadline,
                          struct codec_frame *ret_frame)
{
        bool more;
        int r;

        /*
         * The daemon need not ring while this call is awake, and the last event is no longer valid.
         * If there is no memory to tell the daemon of the free space, smv_next() does it later.
         */
        shared_ring_set_awake(&client->ring);
        client_release_ring(client, true);

        connection_flush(&client->connection);
        for (;;) {
                do
                        r = read_ahead(client, id, ret_frame, &more);
                while (!r && more);
                if (r)
                        return r < 0 ? client_fail(client, r, "out of memory") : 0;
                if (client->connection.lost)
                        return client_lost(client);

                r = connection_poll(&client->connection, deadline);
                if (r < 0)
                        return client_fail(client, r, "out of memory");
                if (!r) {
                        /*
                         * If the reply came later, it could begin a stream that the caller does not
                         * know.  So give up the connection.
                         */
                        connection_set_lost(&client->connection, -ETIMEDOUT,
                                            client->connection.scan);
                        return -ETIMEDOUT;
                }
        }
}

void client_request_begin(struct smv_client *client, struct client_request *request, const char *op)
{
        *request = (struct client_request){ .pending.id = client_new_ids(client, 1) };
        codec_begin(&request->writer, &client->connection.out, client->request_max, op,
                    request->pending.id);
}

static int end_request(struct smv_client *client, struct client_request *request)
{
        int r = codec_end(&request->writer);

        if (r == -EMSGSIZE)
                return client_fail(
                        client, r,
                        "the request is longer than the %zu bytes that the daemon accepts",
                        client->request_max);
        if (r)
                return client_fail(client, r, "out of memory");
        return 0;
}

int client_request_send(struct smv_client *client, struct client_request *request)
{
        int r = end_request(client, request);

        if (!r)
                connection_flush(&client->connection);
        return r;
}

int client_request_await(struct smv_client *client, uint32_t id, uint64_t deadline,
                         struct codec_frame *ret_frame)
{
        struct codec_frame frame;
        int r;

        r = wait_for_reply(client, id, deadline, &frame);
        if (r)
                return r;
        if (!frame.ok) {
                client_refused(client, &frame);
                return -EREMOTEIO;
        }
        *ret_frame = frame;
        return 0;
}

/* Takes an ok reply as an event.  0, -ENOMEM or -EPROTO. */
static int take(struct smv_client *client, const struct client_pending *pending,
                const struct codec_frame *frame, struct smv_event *ret_answer)
{
        *ret_answer = (struct smv_event){ .kind = SMV_EVENT_REPLY, .stream = pending->id };
        return pending->take ? pending->take(client, pending, frame, ret_answer) : 0;
}

int client_request_wait(struct smv_client *client, struct client_request *request,
                        struct smv_event *ret_answer)
{
        struct client_pending *pending = &request->pending;
        struct smv_event unused;
        struct codec_frame frame;
        int r;

        r = end_request(client, request);
        if (r)
                return r;
        r = client_request_await(client, pending->id, deadline_after(client->reply_ms), &frame);
        if (r == -ETIMEDOUT)
                return client_timed_out(client, client->reply_ms, "reply_timeout_ms");
        return r ? r : take(client, pending, &frame, ret_answer ? ret_answer : &unused);
}

int client_request_ask(struct smv_client *client, struct client_request *request, uint32_t *ret_id)
{
        int r = client_reserve_pending(client);

        if (r) {
                codec_abort(&request->writer);
                return r;
        }
        r = client_request_send(client, request);
        if (r)
                return r;
        client_add_pending(client, &request->pending);
        *ret_id = request->pending.id;
        return 0;
}

/* There is no errno in an event: a reply that cannot be taken is a failure of the daemon. */
static void blame_daemon(struct smv_client *client)
{
        struct client_failure *failure = &client->failure;

        failure->code = SMV_INTERNAL;
        snprintf(failure->name, sizeof(failure->name), "%s", smv_code_name(failure->code));
}

int client_request_finish(struct smv_client *client, struct client_pending *pending,
                          const struct codec_frame *frame, struct smv_event *ret_event)
{
        int r = 0;

        if (frame->ok)
                r = take(client, pending, frame, ret_event);
        if (r == -ENOMEM)
                return r;
        if (r)
                blame_daemon(client);
        else if (!frame->ok)
                client_refused(client, frame);
        if (r || !frame->ok)
                *ret_event = (struct smv_event){ .kind = SMV_EVENT_REPLY,
                                                 .stream = pending->id,
                                                 .code = client->failure.code };
        client_remove_pending(client, pending);
        return 0;
}

int client_bad_reply(struct smv_client *client, int error, const char *field)
{
        if (error != -EPROTO)
                return client_fail(client, error, "out of memory");
        return client_fail(client, error,
                           "the daemon's reply lacks the field %s, or it has another type", field);
}
