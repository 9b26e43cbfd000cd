/* Requests about resumable streams: attach, detach, drop. */
#include <errno.h>

#include "client/request.h"
#include "client/streams.h"

uint64_t smv_resume_id(const struct smv_client *client, uint32_t stream)
{
        const struct client_stream *known = client ? client_stream(client, stream) : NULL;

        return known ? known->resume_id : 0;
}

static int take_attached(struct smv_client *client, const struct client_pending *pending,
                         const struct codec_frame *frame, struct smv_event *ret_answer)
{
        client_take_streams(client, pending, frame, ret_answer);
        client_stream_keep(client, ret_answer, pending->attach.resume_id);
        client_stream(client, pending->id)->sequence = pending->attach.from;
        return 0;
}

static int begin_attach(struct smv_client *client, struct client_request *request,
                        uint64_t resume_id, uint32_t from)
{
        int r = client_begin(client);

        if (!r)
                r = client_streams_begin(client, request, "attach", 1);
        if (r)
                return r;
        codec_put_uint(&request->writer, "resume_id", resume_id);
        codec_put_uint(&request->writer, "from", from);
        request->pending.keeps = true;
        request->pending.take = take_attached;
        request->pending.attach.resume_id = resume_id;
        request->pending.attach.from = from;
        return 0;
}

int smv_attach(struct smv_client *client, uint64_t resume_id, uint32_t from, uint32_t *ret_stream)
{
        struct client_request request;
        int r = begin_attach(client, &request, resume_id, from);

        if (!r)
                r = client_request_wait(client, &request, NULL);
        if (!r)
                *ret_stream = request.pending.id;
        return r;
}

int smv_ask_attach(struct smv_client *client, uint64_t resume_id, uint32_t from,
                   uint32_t *ret_stream)
{
        struct client_request request;
        int r = begin_attach(client, &request, resume_id, from);

        return r ? r : client_request_ask(client, &request, ret_stream);
}

/* The stream may have had its END while the request was on its way. */
static int take_detached(struct smv_client *client, const struct client_pending *pending,
                         const struct codec_frame *frame, struct smv_event *ret_answer)
{
        struct client_stream *stream = client_stream(client, pending->detached);

        (void)frame;
        (void)ret_answer;
        if (stream && !stream->detached) {
                stream->detached = true;
                client->detached_count++;
        }
        client_remove_detached(client);
        return 0;
}

static int begin_detach(struct smv_client *client, struct client_request *request, uint32_t stream)
{
        const struct client_stream *known;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        if (client_pending_stream(client, stream))
                return client_refuse(client, -EBUSY, "stream",
                                     "the stream has not begun: its reply is outstanding");
        known = client_stream(client, stream);
        if (known && !known->resume_id)
                return client_refuse(client, -EINVAL, "stream",
                                     "the stream is not resumable: begin it with keep_ms");
        client_request_begin(client, request, "detach");
        codec_put_uint(&request->writer, "stream", stream);
        request->pending.take = take_detached;
        request->pending.detached = stream;
        return 0;
}

int smv_detach(struct smv_client *client, uint32_t stream)
{
        struct client_request request;
        int r = client_begin(client);

        if (!r && !client_stream(client, stream) && !client_pending_stream(client, stream))
                return 0;
        if (!r)
                r = begin_detach(client, &request, stream);
        return r ? r : client_request_wait(client, &request, NULL);
}

int smv_ask_detach(struct smv_client *client, uint32_t stream, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_detach(client, &request, stream);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_drop(struct smv_client *client, struct client_request *request, uint64_t resume_id)
{
        int r = client_begin(client);

        if (r)
                return r;
        client_request_begin(client, request, "drop");
        codec_put_uint(&request->writer, "resume_id", resume_id);
        return 0;
}

int smv_drop(struct smv_client *client, uint64_t resume_id)
{
        struct client_request request;
        int r = begin_drop(client, &request, resume_id);

        return r ? r : client_request_wait(client, &request, NULL);
}

int smv_ask_drop(struct smv_client *client, uint64_t resume_id, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_drop(client, &request, resume_id);

        return r ? r : client_request_ask(client, &request, ret_request);
}
