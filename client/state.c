/*
 * The last failure, the ids, and the tables of streams and of pending requests of a client.
 *
 * A lost connection is not an error of one call but a state.  Complete records that came
 * before are still read.  Then each living stream gets its END, and from then on every
 * call returns -ENOTCONN at once.
 */
#include "client/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/names.h"

int client_copy_in(void *ours, size_t our_bytes, const void *theirs)
{
        size_t size;

        memcpy(&size, theirs, sizeof(size));
        if (size < sizeof(size))
                return -EINVAL;
        for (size_t i = our_bytes; i < size; i++)
                if (((const char *)theirs)[i])
                        return -E2BIG;

        memset(ours, 0, our_bytes);
        memcpy(ours, theirs, size < our_bytes ? size : our_bytes);
        return 0;
}

void client_copy_out(void *theirs, void *ours, size_t our_bytes)
{
        size_t size;

        memcpy(&size, theirs, sizeof(size));
        memcpy(ours, &size, sizeof(size));
        memcpy(theirs, ours, size < our_bytes ? size : our_bytes);
        if (size > our_bytes)
                memset((char *)theirs + our_bytes, 0, size - our_bytes);
}

static int fail(struct smv_client *client, int error, const char *member, const char *format,
                va_list args)
{
        struct client_failure *failure;

        if (!client)
                return error;
        failure = &client->failure;
        vsnprintf(failure->message, sizeof(failure->message), format, args);
        snprintf(failure->name, sizeof(failure->name), "%s", client_errno_name(error));
        snprintf(failure->field, sizeof(failure->field), "%s", member);
        failure->code = SMV_OK;
        failure->retry_ms = 0;
        return error;
}

int client_fail(struct smv_client *client, int error, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        fail(client, error, "", format, args);
        va_end(args);
        return error;
}

int client_refuse(struct smv_client *client, int error, const char *member, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        fail(client, error, member, format, args);
        va_end(args);
        return error;
}

int client_refuse_struct(struct smv_client *client, int error, const char *what)
{
        if (error == -EINVAL)
                return client_refuse(client, error, "size", "struct %s has no size", what);
        return client_fail(client, error, "struct %s has fields that this library does not know",
                           what);
}

static void copy_text(char *to, size_t size, const struct codec_frame *frame, const char *name,
                      const char *otherwise)
{
        struct codec_text text = { otherwise, strlen(otherwise) };

        codec_get_text(frame, name, &text);
        snprintf(to, size, "%.*s", (int)(text.count < size ? text.count : size), text.bytes);
}

void client_refused(struct smv_client *client, const struct codec_frame *frame)
{
        enum smv_code code =
                frame->code && frame->code <= INT32_MAX ? (enum smv_code)frame->code : SMV_INTERNAL;
        uint64_t retry_ms = 0;

        client->failure.code = code;
        (void)codec_get_uint(frame, "retry_ms", &retry_ms);
        client->failure.retry_ms = retry_ms < UINT32_MAX ? (uint32_t)retry_ms : UINT32_MAX;
        copy_text(client->failure.name, sizeof(client->failure.name), frame, "error",
                  smv_code_name(code));
        copy_text(client->failure.field, sizeof(client->failure.field), frame, "field", "");
        copy_text(client->failure.message, sizeof(client->failure.message), frame, "message",
                  smv_code_text(code));
}

void client_unexpected_reply(struct smv_client *client, const struct codec_frame *frame)
{
        if (frame->ok || frame->id)
                return;
        client_refused(client, frame);
        client->connection_refused = true;
        client->parting = client->failure;
}

static void set_lost(struct smv_client *client)
{
        client->failure.code = SMV_LOST;
        snprintf(client->failure.name, sizeof(client->failure.name), "%s", smv_code_name(SMV_LOST));
        client->parting = client->failure;
}

int client_timed_out(struct smv_client *client, int ms, const char *setting)
{
        client_fail(client, -ETIMEDOUT, "the daemon did not answer within %d ms (%s)", ms, setting);
        set_lost(client);
        return -ETIMEDOUT;
}

int client_lost(struct smv_client *client)
{
        const char *why = "the daemon closed the connection";

        /* If the daemon gave a reason before it hung up, that reason is better. */
        client->failure = client->parting;
        if (client->parting.code == SMV_OK) {
                if (client->connection.lost == -EPROTO)
                        why = "the daemon sent bytes that are not a frame of the protocol";
                else if (client->connection.lost == -ENOBUFS)
                        why = "the daemon sent too much before its reply";
                client_fail(client, -ENOTCONN, "%s", why);
                set_lost(client);
        }
        return -ENOTCONN;
}

/* Every smv_next() calls it, so it formats nothing. */
void client_clear_failure(struct smv_client *client)
{
        struct client_failure *failure = &client->failure;

        if (client->parting.code != SMV_OK) {
                *failure = client->parting;
                return;
        }
        failure->code = SMV_OK;
        failure->retry_ms = 0;
        failure->name[0] = failure->field[0] = '\0';
        memccpy(failure->message, smv_code_text(SMV_OK), '\0', sizeof(failure->message));
}

int client_begin(struct smv_client *client)
{
        if (!client)
                return -EINVAL;
        if (client->connection.lost)
                return client_lost(client);

        client_clear_failure(client);
        connection_consume_scanned(&client->connection);
        return 0;
}

static bool is_taken(struct smv_client *client, uint32_t id)
{
        return !id || client_stream(client, id) || client_pending_stream(client, id) ||
               client_pending_of(client, &(struct codec_frame){ .id = id });
}

uint32_t client_new_ids(struct smv_client *client, uint32_t count)
{
        uint32_t run = 0;

        while (run < count) {
                client->last_id++;
                run = is_taken(client, client->last_id) ? 0 : run + 1;
        }
        return client->last_id - count + 1;
}

struct client_stream *client_stream(const struct smv_client *client, uint32_t id)
{
        return stream_table_find(&client->streams, id);
}

/* Reserves memory before the request: once the daemon has begun a stream, nothing may fail. */
int client_reserve_streams(struct smv_client *client, uint32_t count)
{
        if (stream_table_reserve(&client->streams, count + client->pending_streams))
                return client_fail(client, -ENOMEM, "out of memory");
        return 0;
}

int client_reserve_pending(struct smv_client *client)
{
        size_t size = client->pending_size ? 2 * client->pending_size : 8;
        struct client_pending *pending;

        if (client->pending_count == CLIENT_PENDING_MAX)
                return client_fail(client, -EBUSY, "%u replies are outstanding; no more may be",
                                   CLIENT_PENDING_MAX);
        if (connection_unsent(&client->connection) > CLIENT_UNSENT_MAX)
                return client_fail(client, -EBUSY,
                                   "the daemon has not taken %zu bytes of requests; that is more "
                                   "than %zu",
                                   connection_unsent(&client->connection), CLIENT_UNSENT_MAX);
        if (client->pending_count < client->pending_size)
                return 0;
        pending = reallocarray(client->pending, size, sizeof(*pending));
        if (!pending)
                return client_fail(client, -ENOMEM, "out of memory");
        client->pending = pending;
        client->pending_size = size;
        return 0;
}

void client_add_pending(struct smv_client *client, const struct client_pending *pending)
{
        client->pending[client->pending_count++] = *pending;
        client->pending_streams += pending->streams;
}

struct client_pending *client_pending_of(const struct smv_client *client,
                                         const struct codec_frame *reply)
{
        for (size_t i = 0; i < client->pending_count; i++)
                if (client->pending[i].id == reply->id)
                        return &client->pending[i];
        return NULL;
}

struct client_pending *client_pending_stream(const struct smv_client *client, uint32_t stream)
{
        for (size_t i = 0; i < client->pending_count; i++)
                if (stream - client->pending[i].id < client->pending[i].streams)
                        return &client->pending[i];
        return NULL;
}

/* Replies mostly come in the order of the requests, so the first one is found and moved soonest. */
void client_remove_pending(struct smv_client *client, struct client_pending *pending)
{
        size_t after = client->pending_count - (size_t)(pending - client->pending) - 1;

        client->pending_count--;
        client->pending_streams -= pending->streams;
        memmove(pending, pending + 1, after * sizeof(*pending));
}

void client_remove_stream(struct smv_client *client, struct client_stream *stream)
{
        client->resumable_count -= stream->resume_id != 0;
        client->detached_count -= stream->detached;
        client->asks_first_count -= stream->asks_first;
        stream_table_remove(&client->streams, stream);
}

/*
 * The reply to a detach comes after all records that were sent of the stream.  So the remaining
 * records of the stream have been received; they are in frames that were not read yet.
 */
void client_remove_detached(struct smv_client *client)
{
        struct stream_table *streams = &client->streams;

        if (!client->detached_count || connection_has_kept(&client->connection))
                return;
        for (size_t i = streams->count; i-- > 0;)
                if (streams->at[i].detached)
                        client_remove_stream(client, &streams->at[i]);
}

static bool expects_frames_of_records(const struct smv_client *client)
{
        if (!client->ring.segment || client->resumable_count)
                return true;
        for (size_t i = 0; i < client->pending_count; i++)
                if (client->pending[i].keeps)
                        return true;
        return false;
}

int client_read_frame(struct smv_client *client, size_t at, struct codec_frame *ret_frame,
                      size_t *ret_end)
{
        const char *body;
        size_t bytes;
        int r = 0;

        if (!connection_frame(&client->connection, at, &body, &bytes))
                return 0;
        *ret_frame = (struct codec_frame){ .ok = true };
        if (bytes)
                r = codec_decode(&client->codec, body, bytes, ret_frame);
        if (!r && ret_frame->records && !expects_frames_of_records(client))
                r = -EPROTO;
        if (r == -EPROTO)
                connection_set_lost(&client->connection, r, at);
        if (r)
                return r == -EPROTO ? 0 : r;
        *ret_end = at + 4 + bytes;
        return 1;
}

int client_release_ring(struct smv_client *client, bool all)
{
        struct shared_ring *ring = &client->ring;
        int r;

        shared_ring_release(ring, all);
        if (!ring->stalled || client->connection.lost)
                return 0;
        r = connection_send_empty(&client->connection);
        if (!r)
                ring->stalled = false;
        return r;
}

void smv_error(const struct smv_client *client, struct smv_problem *ret_problem)
{
        static const struct client_failure no_client = {
                .name = "EINVAL",
                .field = "client",
                .message = "there is no client: smv_connect() has failed, or was not called",
        };
        const struct client_failure *failure = client ? &client->failure : &no_client;
        struct smv_problem problem = {
                .code = failure->code,
                .name = failure->name,
                .field = failure->field,
                .message = failure->message,
                .retry_ms = failure->retry_ms,
        };

        client_copy_out(ret_problem, &problem, sizeof(problem));
}
