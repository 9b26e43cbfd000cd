/* Requests about handles: histories that the daemon stores. */
#include <errno.h>
#include <samovar/protocol.h>
#include <string.h>

#include "client/options.h"
#include "client/streams.h"

/* ---- what the replies say ---- */

static int take_length(struct smv_client *client, const struct client_pending *pending,
                       const struct codec_frame *frame, struct smv_event *ret_answer)
{
        int r = codec_get_uint(frame, "length", &ret_answer->length);

        (void)pending;
        return r ? client_bad_reply(client, r, "length") : 0;
}

static int take_opened(struct smv_client *client, const struct client_pending *pending,
                       const struct codec_frame *frame, struct smv_event *ret_answer)
{
        int r = take_length(client, pending, frame, ret_answer);

        if (r)
                return r;
        r = codec_get_uint(frame, "handle", &ret_answer->number);
        return r ? client_bad_reply(client, r, "handle") : 0;
}

/*
 * All of the new handles are in client->ids, which begin_fork() has made large enough; the event
 * has the first one.
 */
static int take_handles(struct smv_client *client, const struct client_pending *pending,
                        const struct codec_frame *frame, struct smv_event *ret_answer)
{
        uint64_t *handles = (uint64_t *)(void *)client->ids.at;
        size_t count = pending->handle_count;
        int r = -EPROTO;

        if (count && count <= SMV_FORKS_MAX)
                r = codec_get_uints(frame, "handles", handles, count);
        if (r)
                return client_bad_reply(client, r, "handles");
        ret_answer->number = *handles;
        return 0;
}

/* ---- requests ---- */

/* client_begin(), then a request about this handle. */
static int begin(struct smv_client *client, struct client_request *request, const char *op,
                 uint64_t handle, client_take_fn *take)
{
        int r = client_begin(client);

        if (r)
                return r;
        client_request_begin(client, request, op);
        codec_put_uint(&request->writer, "handle", handle);
        request->pending.take = take;
        return 0;
}

/* Sends a request that was begun, and gets the length in its reply.  ret_length: may be NULL. */
static int wait_for_length(struct smv_client *client, struct client_request *request,
                           size_t *ret_length)
{
        struct smv_event answer;
        int r = client_request_wait(client, request, &answer);

        if (!r && ret_length)
                *ret_length = (size_t)answer.length;
        return r;
}

static int begin_open(struct smv_client *client, struct client_request *request,
                      const struct smv_generate *options)
{
        struct smv_generate o;
        int r;

        r = client_begin_generate(client, options, &o);
        if (r)
                return r;
        client_request_begin(client, request, "open");
        client_put_start(&request->writer, &o);
        if (o.keep_ms)
                codec_put_uint(&request->writer, "keep_ms", o.keep_ms);
        request->pending.take = take_opened;
        return 0;
}

int smv_handle_open(struct smv_client *client, const struct smv_generate *options,
                    uint64_t *ret_handle, size_t *ret_length)
{
        struct client_request request;
        struct smv_event answer;
        int r = begin_open(client, &request, options);

        if (!r)
                r = client_request_wait(client, &request, &answer);
        if (r)
                return r;
        *ret_handle = answer.number;
        if (ret_length)
                *ret_length = (size_t)answer.length;
        return 0;
}

int smv_ask_handle_open(struct smv_client *client, const struct smv_generate *options,
                        uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_open(client, &request, options);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_append(struct smv_client *client, struct client_request *request, uint64_t handle,
                        const uint32_t *tokens, size_t token_count)
{
        int r = begin(client, request, "append", handle, take_length);

        if (!r)
                codec_put_ids(&request->writer, "tokens", tokens, token_count);
        return r;
}

int smv_handle_append(struct smv_client *client, uint64_t handle, const uint32_t *tokens,
                      size_t token_count, size_t *ret_length)
{
        struct client_request request;
        int r = begin_append(client, &request, handle, tokens, token_count);

        return r ? r : wait_for_length(client, &request, ret_length);
}

int smv_ask_handle_append(struct smv_client *client, uint64_t handle, const uint32_t *tokens,
                          size_t token_count, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_append(client, &request, handle, tokens, token_count);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_append_text(struct smv_client *client, struct client_request *request,
                             uint64_t handle, const char *text, size_t text_bytes)
{
        int r = begin(client, request, "append", handle, take_length);

        if (!r)
                codec_put_given(&request->writer, "text", text, text_bytes);
        return r;
}

int smv_handle_append_text(struct smv_client *client, uint64_t handle, const char *text,
                           size_t text_bytes, size_t *ret_length)
{
        struct client_request request;
        int r = begin_append_text(client, &request, handle, text, text_bytes);

        return r ? r : wait_for_length(client, &request, ret_length);
}

int smv_ask_handle_append_text(struct smv_client *client, uint64_t handle, const char *text,
                               size_t text_bytes, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_append_text(client, &request, handle, text, text_bytes);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_append_messages(struct smv_client *client, struct client_request *request,
                                 uint64_t handle, const struct smv_generate *options)
{
        struct smv_generate o;
        int r;

        r = client_begin_generate(client, options, &o);
        if (r)
                return r;
        if (!o.messages && !o.packed_messages.bytes)
                return client_refuse(client, -EINVAL, "messages",
                                     "there are no messages to append");
        r = begin(client, request, "append", handle, take_length);
        if (!r)
                client_put_conversation(&request->writer, &o);
        return r;
}

int smv_handle_append_messages(struct smv_client *client, uint64_t handle,
                               const struct smv_generate *options, size_t *ret_length)
{
        struct client_request request;
        int r = begin_append_messages(client, &request, handle, options);

        return r ? r : wait_for_length(client, &request, ret_length);
}

int smv_ask_handle_append_messages(struct smv_client *client, uint64_t handle,
                                   const struct smv_generate *options, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_append_messages(client, &request, handle, options);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_truncate(struct smv_client *client, struct client_request *request,
                          uint64_t handle, size_t length)
{
        int r = begin(client, request, "truncate", handle, take_length);

        if (!r)
                codec_put_uint(&request->writer, "length", length);
        return r;
}

int smv_handle_truncate(struct smv_client *client, uint64_t handle, size_t length)
{
        struct client_request request;
        int r = begin_truncate(client, &request, handle, length);

        return r ? r : client_request_wait(client, &request, NULL);
}

int smv_ask_handle_truncate(struct smv_client *client, uint64_t handle, size_t length,
                            uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_truncate(client, &request, handle, length);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_fork(struct smv_client *client, struct client_request *request, uint64_t handle,
                      size_t count, uint32_t keep_ms)
{
        int r = client_begin(client);

        if (r)
                return r;
        client->ids.count = 0;
        if (bytes_reserve(&client->ids, SMV_FORKS_MAX * sizeof(uint64_t)))
                return client_fail(client, -ENOMEM, "out of memory");
        r = begin(client, request, "fork", handle, take_handles);
        if (r)
                return r;
        codec_put_uint(&request->writer, "count", count);
        if (keep_ms)
                codec_put_uint(&request->writer, "keep_ms", keep_ms);
        request->pending.handle_count = count;
        return 0;
}

int smv_handle_fork(struct smv_client *client, uint64_t handle, size_t count, uint64_t *ret_handles)
{
        return smv_handle_fork_keep(client, handle, count, 0, ret_handles);
}

int smv_handle_fork_keep(struct smv_client *client, uint64_t handle, size_t count, uint32_t keep_ms,
                         uint64_t *ret_handles)
{
        struct client_request request;
        int r = begin_fork(client, &request, handle, count, keep_ms);

        if (!r)
                r = client_request_wait(client, &request, NULL);
        if (!r)
                memcpy(ret_handles, client->ids.at, count * sizeof(*ret_handles));
        return r;
}

int smv_ask_handle_fork(struct smv_client *client, uint64_t handle, uint32_t keep_ms,
                        uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_fork(client, &request, handle, 1, keep_ms);

        return r ? r : client_request_ask(client, &request, ret_request);
}

/* With ms 0 it begins no stream. */
static int begin_pin(struct smv_client *client, struct client_request *request, uint64_t handle,
                     uint32_t ms, enum smv_priority priority)
{
        int r = client_check_priority(client, priority);

        if (!r)
                r = client_begin(client);
        if (r)
                return r;
        if (ms)
                r = client_streams_begin(client, request, "pin", 1);
        else
                client_request_begin(client, request, "pin");
        if (r)
                return r;
        codec_put_uint(&request->writer, "handle", handle);
        codec_put_uint(&request->writer, "pin_ms", ms);
        client_put_priority(&request->writer, priority);
        return 0;
}

int smv_handle_pin(struct smv_client *client, uint64_t handle, uint32_t ms,
                   enum smv_priority priority, uint32_t *ret_stream)
{
        struct client_request request;
        int r = begin_pin(client, &request, handle, ms, priority);

        if (!r)
                r = client_request_wait(client, &request, NULL);
        if (!r && ms)
                *ret_stream = request.pending.id;
        return r;
}

int smv_ask_handle_pin(struct smv_client *client, uint64_t handle, uint32_t ms,
                       enum smv_priority priority, uint32_t *ret_stream)
{
        struct client_request request;
        int r = begin_pin(client, &request, handle, ms, priority);

        return r ? r : client_request_ask(client, &request, ret_stream);
}

static int begin_publish(struct smv_client *client, struct client_request *request, uint64_t handle,
                         size_t length, const uint32_t *group)
{
        int r = client_begin(client);

        if (!r)
                r = client_streams_begin(client, request, "publish", 1);
        if (r)
                return r;
        codec_put_uint(&request->writer, "handle", handle);
        if (length)
                codec_put_uint(&request->writer, "length", length);
        if (group)
                codec_put_uint(&request->writer, "group", *group);
        codec_put_text(&request->writer, "to", group ? "group" : "all", group ? 5 : 3);
        return 0;
}

int smv_handle_publish(struct smv_client *client, uint64_t handle, size_t length,
                       const uint32_t *group, uint32_t *ret_stream)
{
        struct client_request request;
        int r = begin_publish(client, &request, handle, length, group);

        if (!r)
                r = client_request_wait(client, &request, NULL);
        if (!r)
                *ret_stream = request.pending.id;
        return r;
}

int smv_ask_handle_publish(struct smv_client *client, uint64_t handle, size_t length,
                           const uint32_t *group, uint32_t *ret_stream)
{
        struct client_request request;
        int r = begin_publish(client, &request, handle, length, group);

        return r ? r : client_request_ask(client, &request, ret_stream);
}

int smv_handle_revoke(struct smv_client *client, uint64_t handle)
{
        struct client_request request;
        int r = begin(client, &request, "revoke", handle, NULL);

        return r ? r : client_request_wait(client, &request, NULL);
}

int smv_ask_handle_revoke(struct smv_client *client, uint64_t handle, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin(client, &request, "revoke", handle, NULL);

        return r ? r : client_request_ask(client, &request, ret_request);
}

int smv_handle_close(struct smv_client *client, uint64_t handle)
{
        struct client_request request;
        int r = begin(client, &request, "close", handle, NULL);

        return r ? r : client_request_wait(client, &request, NULL);
}

int smv_ask_handle_close(struct smv_client *client, uint64_t handle, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin(client, &request, "close", handle, NULL);

        return r ? r : client_request_ask(client, &request, ret_request);
}
