/* Requests about resumable streams: attach, detach, drop. */
#include <errno.h>

#include "client/request.h"
#include "client/streams.h"

uint64_t smv_resume_id(const struct smv_client *client, uint32_t stream)
{
        for (size_t i = 0; client && i < client->stream_count; i++)
                if (client->streams[i].id == stream)
                        return client->streams[i].resume_id;
        return 0;
}

int smv_attach(struct smv_client *client, uint64_t resume_id, uint32_t from, uint32_t *ret_stream)
{
        struct client_stream *stream;
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (!r)
                r = client_streams_begin(client, &writer, "attach", 1, &id);
        if (r)
                return r;
        codec_put_uint(&writer, "resume_id", resume_id);
        codec_put_uint(&writer, "from", from);
        r = client_streams_call(client, &writer, id, 1, &frame);
        if (r)
                return r;
        stream = client_stream(client, id);
        stream->sequence = from;
        client_stream_keep(stream, resume_id);
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
        if (!known->resume_id)
                return client_refuse(client, -EINVAL, "stream",
                                     "the stream is not resumable: begin it with keep_ms");
        client_request_begin(client, &writer, "detach", &id);
        codec_put_uint(&writer, "stream", stream);
        r = client_request_call(client, &writer, id, &frame);
        if (r)
                return r;
        known->detached = true;
        client_remove_detached(client);
        return 0;
}

int smv_drop(struct smv_client *client, uint64_t resume_id)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_request_begin(client, &writer, "drop", &id);
        codec_put_uint(&writer, "resume_id", resume_id);
        return client_request_call(client, &writer, id, &frame);
}
