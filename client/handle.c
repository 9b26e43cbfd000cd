/* Requests about handles: histories that the daemon stores. */
#include <errno.h>
#include <string.h>

#include "client/options.h"
#include "client/request.h"
#include "client/streams.h"

/*
 * Sends a request that was begun, and gets the field `length` of its reply.  ret_length: may be
 * NULL.
 */
static int ask_length(struct smv_client *client, struct codec_writer *writer, uint32_t id,
                      struct codec_frame *ret_frame, size_t *ret_length)
{
        uint64_t length;
        int r;

        r = client_request_call(client, writer, id, ret_frame);
        if (r)
                return r;
        r = codec_get_uint(ret_frame, "length", &length);
        if (r)
                return client_bad_reply(client, r, "length");
        if (ret_length)
                *ret_length = (size_t)length;
        return 0;
}

/* Begins a request about this handle: 0, or what client_begin() returns. */
static int begin(struct smv_client *client, struct codec_writer *writer, const char *op,
                 uint64_t handle, uint32_t *ret_id)
{
        int r = client_begin(client);

        if (r)
                return r;
        client_request_begin(client, writer, op, ret_id);
        codec_put_uint(writer, "handle", handle);
        return 0;
}

int smv_handle_open(struct smv_client *client, const struct smv_generate *options,
                    uint64_t *ret_handle, size_t *ret_length)
{
        struct codec_writer writer;
        struct codec_frame frame;
        struct smv_generate o;
        size_t length = 0;
        uint32_t id;
        int r;

        r = client_begin_generate(client, options, &o);
        if (r)
                return r;
        client_request_begin(client, &writer, "open", &id);
        client_put_start(&writer, &o);
        if (o.keep_ms)
                codec_put_uint(&writer, "keep_ms", o.keep_ms);
        r = ask_length(client, &writer, id, &frame, &length);
        if (r)
                return r;
        r = codec_get_uint(&frame, "handle", ret_handle);
        if (r)
                return client_bad_reply(client, r, "handle");
        if (ret_length)
                *ret_length = length;
        return 0;
}

int smv_handle_append(struct smv_client *client, uint64_t handle, const uint32_t *tokens,
                      size_t token_count, size_t *ret_length)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = begin(client, &writer, "append", handle, &id);
        if (r)
                return r;
        codec_put_ids(&writer, "tokens", tokens, token_count);
        return ask_length(client, &writer, id, &frame, ret_length);
}

int smv_handle_append_text(struct smv_client *client, uint64_t handle, const char *text,
                           size_t text_bytes, size_t *ret_length)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = begin(client, &writer, "append", handle, &id);
        if (r)
                return r;
        codec_put_given(&writer, "text", text, text_bytes);
        return ask_length(client, &writer, id, &frame, ret_length);
}

int smv_handle_append_messages(struct smv_client *client, uint64_t handle,
                               const struct smv_generate *options, size_t *ret_length)
{
        struct codec_writer writer;
        struct codec_frame frame;
        struct smv_generate o;
        uint32_t id;
        int r;

        r = client_begin_generate(client, options, &o);
        if (r)
                return r;
        if (!o.messages && !o.packed_messages.bytes)
                return client_refuse(client, -EINVAL, "messages",
                                     "there are no messages to append");
        r = begin(client, &writer, "append", handle, &id);
        if (r)
                return r;
        client_put_conversation(&writer, &o);
        return ask_length(client, &writer, id, &frame, ret_length);
}

int smv_handle_truncate(struct smv_client *client, uint64_t handle, size_t length)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = begin(client, &writer, "truncate", handle, &id);
        if (r)
                return r;
        codec_put_uint(&writer, "length", length);
        return ask_length(client, &writer, id, &frame, NULL);
}

int smv_handle_fork(struct smv_client *client, uint64_t handle, size_t count, uint64_t *ret_handles)
{
        return smv_handle_fork_keep(client, handle, count, 0, ret_handles);
}

int smv_handle_fork_keep(struct smv_client *client, uint64_t handle, size_t count, uint32_t keep_ms,
                         uint64_t *ret_handles)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = begin(client, &writer, "fork", handle, &id);
        if (r)
                return r;
        codec_put_uint(&writer, "count", count);
        if (keep_ms)
                codec_put_uint(&writer, "keep_ms", keep_ms);
        r = client_request_call(client, &writer, id, &frame);
        if (r)
                return r;
        r = codec_get_uints(&frame, "handles", ret_handles, count);
        return r ? client_bad_reply(client, r, "handles") : 0;
}

int smv_handle_pin(struct smv_client *client, uint64_t handle, uint32_t ms,
                   enum smv_priority priority, uint32_t *ret_stream)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r = client_check_priority(client, priority);

        if (!r)
                r = client_begin(client);
        if (!r)
                r = client_streams_begin(client, &writer, "pin", 1, &id);
        if (r)
                return r;
        codec_put_uint(&writer, "handle", handle);
        codec_put_uint(&writer, "pin_ms", ms);
        client_put_priority(&writer, priority);
        if (!ms)
                return client_request_call(client, &writer, id, &frame); /* begins no stream */
        r = client_streams_call(client, &writer, id, 1, &frame);
        if (!r)
                *ret_stream = id;
        return r;
}

int smv_handle_publish(struct smv_client *client, uint64_t handle, size_t length,
                       const uint32_t *group, uint32_t *ret_stream)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (!r)
                r = client_streams_begin(client, &writer, "publish", 1, &id);
        if (r)
                return r;
        codec_put_uint(&writer, "handle", handle);
        if (length)
                codec_put_uint(&writer, "length", length);
        if (group)
                codec_put_uint(&writer, "group", *group);
        codec_put_text(&writer, "to", group ? "group" : "all", group ? 5 : 3);
        r = client_streams_call(client, &writer, id, 1, &frame);
        if (!r)
                *ret_stream = id;
        return r;
}

int smv_handle_revoke(struct smv_client *client, uint64_t handle)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = begin(client, &writer, "revoke", handle, &id);
        return r ? r : client_request_call(client, &writer, id, &frame);
}

int smv_handle_close(struct smv_client *client, uint64_t handle)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = begin(client, &writer, "close", handle, &id);
        return r ? r : client_request_call(client, &writer, id, &frame);
}
