/* Requests about streams that outlive the connection, and the records they leave behind. */
#include "client/private.h"

#include <errno.h>

size_t client_kept_count(const struct smv_client *client)
{
        size_t count = 0;

        for (size_t i = 0; i < client->stream_count; i++)
                count += client->streams[i].kept != 0;
        return count;
}

/*
 * The reply to a detach comes after all records that were sent of the stream.  So the remaining
 * records of the stream have been received; they are in frames that were not read yet.
 */
void client_forget_left(struct smv_client *client)
{
        if (client->records_ahead)
                return;
        for (size_t i = client->stream_count; i-- > 0;)
                if (client->streams[i].left)
                        client->streams[i] = client->streams[--client->stream_count];
}

uint64_t smv_kept(const struct smv_client *client, uint32_t stream)
{
        for (size_t i = 0; i < client->stream_count; i++)
                if (client->streams[i].id == stream)
                        return client->streams[i].kept;
        return 0;
}

int smv_attach(struct smv_client *client, uint64_t kept, uint32_t from, uint32_t *ret_stream)
{
        struct client_stream *stream;
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (!r)
                r = client_ask_begin_streams(client, &writer, "attach", 1, &id);
        if (r)
                return r;
        codec_put_uint(&writer, "kept", kept);
        codec_put_uint(&writer, "from", from);
        r = client_ask_streams(client, &writer, id, 1, &frame);
        if (r)
                return r;
        stream = client_stream(client, id);
        stream->sequence = from;
        stream->kept = kept;
        *ret_stream = id;
        return 0;
}

int smv_detach(struct smv_client *client, uint32_t stream)
{
        struct client_stream *known;
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        known = client_stream(client, stream);
        if (!known)
                return 0;
        if (!known->kept)
                return client_fail(client, -EINVAL, "the stream was not asked to be kept");
        client_ask_begin(client, &writer, "detach", &id);
        codec_put_uint(&writer, "stream", stream);
        r = client_ask(client, &writer, id, &frame);
        if (r)
                return r;
        known->left = true;
        client_forget_left(client);
        return 0;
}

int smv_drop(struct smv_client *client, uint64_t kept)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_ask_begin(client, &writer, "drop", &id);
        codec_put_uint(&writer, "kept", kept);
        return client_ask(client, &writer, id, &frame);
}
