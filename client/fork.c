/* Forks of streams. */
#include <errno.h>
#include <samovar/protocol.h>

#include "client/options.h"
#include "client/request.h"
#include "client/streams.h"

/* Options that are not set are the parent's, so they are not sent. */
static void put_fork(struct codec_writer *writer, uint32_t stream, const struct smv_fork *o)
{
        const struct smv_generate drawing = {
                .set = o->set,
                .temperature = o->temperature,
                .top_p = o->top_p,
                .min_p = o->min_p,
                .top_k = o->top_k,
                .seed = o->seed,
                .sample_index = o->sample_index,
        };

        codec_put_uint(writer, "stream", stream);
        codec_put_uint(writer, "count", o->count);
        if (o->max_tokens)
                codec_put_uint(writer, "max_tokens", o->max_tokens);
        client_put_sampling(writer, &drawing);
        if (o->priority || (o->set & SMV_SET_PRIORITY))
                client_put_priority(writer, o->priority);
}

static int take_fork(struct smv_client *client, const struct smv_fork *options,
                     struct smv_fork *ret_options)
{
        int r = client_begin(client);

        if (r)
                return r;
        r = client_copy_in(ret_options, sizeof(*ret_options), options);
        if (r)
                return client_refuse_struct(client, r, "smv_fork");
        if (!ret_options->count || ret_options->count > SMV_FORKS_MAX)
                return client_refuse(client, -EINVAL, "count",
                                     "count is %u; it may be from 1 to %u", ret_options->count,
                                     SMV_FORKS_MAX);
        r = client_check_priority(client, ret_options->priority);
        return r ? r : client_check_set(client, ret_options->set);
}

static int begin_fork(struct smv_client *client, struct client_request *request, uint32_t stream,
                      const struct smv_fork *options)
{
        struct smv_fork o;
        int r;

        r = take_fork(client, options, &o);
        if (!r)
                r = client_streams_begin(client, request, "fork", o.count);
        if (!r)
                put_fork(&request->writer, stream, &o);
        return r;
}

/* Their ids are known as soon as the request is begun. */
static void return_streams(const struct client_pending *pending, uint32_t *ret_streams)
{
        for (uint32_t i = 0; i < pending->streams; i++)
                ret_streams[i] = pending->id + i;
}

int smv_fork(struct smv_client *client, uint32_t stream, const struct smv_fork *options,
             uint32_t *ret_streams)
{
        struct client_request request;
        int r = begin_fork(client, &request, stream, options);

        if (!r)
                r = client_request_wait(client, &request, NULL);
        if (!r)
                return_streams(&request.pending, ret_streams);
        return r;
}

int smv_ask_fork(struct smv_client *client, uint32_t stream, const struct smv_fork *options,
                 uint32_t *ret_streams)
{
        struct client_request request;
        int r = begin_fork(client, &request, stream, options);

        if (!r)
                r = client_request_ask(client, &request, ret_streams);
        if (!r)
                return_streams(&request.pending, ret_streams);
        return r;
}
