/*
 * Begins streams: sends their options, and adds them to the table once the daemon has accepted
 * them.  Also cancels streams.
 */
#include "client/streams.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <samovar/protocol.h>
#include <string.h>

#include "client/options.h"
#include "client/request.h"

/* Only fields that are set are sent: the daemon has the defaults. */
static void put_generate(struct codec_writer *writer, const struct smv_generate *o)
{
        const char *choice = o->tool_choice == SMV_TOOLS_NONE ? "none" : "required";

        client_put_start(writer, o);
        if (o->handle)
                codec_put_uint(writer, "handle", o->handle);
        if (o->max_tokens || (o->set & SMV_SET_MAX_TOKENS))
                codec_put_uint(writer, "max_tokens", o->max_tokens);
        client_put_sampling(writer, o);
        client_put_cuts(writer, o);
        client_put_penalties(writer, o);
        client_put_reasoning(writer, o);
        client_put_asking(writer, o);
        if (o->n)
                codec_put_uint(writer, "n", o->n);
        if (o->ignore_eos)
                codec_put_bool(writer, "ignore_eos", true);
        if (o->clamp)
                codec_put_bool(writer, "clamp", true);
        if (o->control_text)
                codec_put_bool(writer, "control_text", true);
        if (o->progress)
                codec_put_bool(writer, "progress", true);
        if (o->parts)
                codec_put_bool(writer, "parts", true);
        if (o->constraint)
                codec_put_given(writer, "constraint", o->constraint, o->constraint_bytes);
        if (o->prediction)
                codec_put_given(writer, "prediction", o->prediction, o->prediction_bytes);
        if (o->draft_tokens || (o->set & SMV_SET_DRAFT_TOKENS))
                codec_put_uint(writer, "draft_tokens", o->draft_tokens);
        if (o->tool_choice)
                codec_put_text(writer, "tool_choice", choice, strlen(choice));
        if (o->allowed_tool_count)
                codec_put_texts(writer, "allowed_tools", o->allowed_tools, o->allowed_tool_count);
        if (o->calls_max)
                codec_put_uint(writer, "calls_max", o->calls_max);
        if (o->priority)
                client_put_priority(writer, o->priority);
        if (o->logprobs || (o->set & SMV_SET_LOGPROBS))
                codec_put_uint(writer, "logprobs", o->logprobs);
        if (o->prompt_logprobs || (o->set & SMV_SET_PROMPT_LOGPROBS))
                codec_put_uint(writer, "prompt_logprobs", o->prompt_logprobs);
        if (o->keep_ms)
                codec_put_uint(writer, "keep_ms", o->keep_ms);
        if (o->deadline_ms)
                codec_put_uint(writer, "deadline_ms", o->deadline_ms);
        if (o->stop_count)
                codec_put_texts(writer, "stop", o->stops, o->stop_count);
        if (o->stop_token_count)
                codec_put_ids(writer, "stop_tokens", o->stop_tokens, o->stop_token_count);
}

/* The stream has begun, so this must not fail: a field that the reply lacks becomes 0. */
static uint64_t uint_or_0(const struct codec_frame *frame, const char *name)
{
        uint64_t value;

        return codec_get_uint(frame, name, &value) ? 0 : value;
}

static float float_or_0(const struct codec_frame *frame, const char *name)
{
        float value;

        return codec_get_float(frame, name, &value) ? 0 : value;
}

static struct smv_accepted take_accepted(const struct codec_frame *frame)
{
        struct smv_accepted accepted = {
                .prompt_tokens = (uint32_t)uint_or_0(frame, "prompt_tokens"),
                .max_tokens = (uint32_t)uint_or_0(frame, "max_tokens"),
                .queue_position = (uint32_t)uint_or_0(frame, "queue_position"),
                .wait_ms = uint_or_0(frame, "wait_ms"),
                .temperature = float_or_0(frame, "temperature"),
                .top_p = float_or_0(frame, "top_p"),
                .min_p = float_or_0(frame, "min_p"),
                .top_k = (uint32_t)uint_or_0(frame, "top_k"),
                .seed = uint_or_0(frame, "seed"),
        };
        struct codec_text chain;

        static_assert(sizeof(accepted.chain) == SMV_CHAIN_BYTES, "the chain of the daemon fits");
        if (!codec_get_text(frame, "chain", &chain) && chain.count < sizeof(accepted.chain))
                memcpy(accepted.chain, chain.bytes, chain.count);
        return accepted;
}

int client_streams_begin(struct smv_client *client, struct client_request *request, const char *op,
                         uint32_t count)
{
        uint32_t id;
        int r = client_reserve_streams(client, count);

        if (r)
                return r;
        id = client_new_ids(client, count);
        request->pending =
                (struct client_pending){ .id = id, .streams = count, .take = client_take_streams };
        codec_begin(&request->writer, &client->connection.out, client->request_max, op, id);
        return 0;
}

/* The reply of a daemon that knows no numbers of streams has none. */
int client_take_streams(struct smv_client *client, const struct client_pending *pending,
                        const struct codec_frame *frame, struct smv_event *ret_answer)
{
        uint64_t numbers[SMV_FORKS_MAX];
        bool numbered = !codec_get_uints(frame, "numbers", numbers, pending->streams);
        bool asks_first = pending->ask == SMV_ASK_MASK;
        uint32_t slot = (uint32_t)uint_or_0(frame, "ask_slot");
        uint32_t ticket = (uint32_t)uint_or_0(frame, "ask_ticket");
        uint32_t position = (uint32_t)uint_or_0(frame, "prompt_tokens");

        (void)ret_answer;
        if (pending->ask && !slots_give(&client->slots, slot, ticket))
                return client_bad_reply(client, -EPROTO, "ask_slot");
        client->asks_first_count += asks_first;
        for (uint32_t i = 0; i < pending->streams; i++)
                stream_table_add(&client->streams, &(struct client_stream){
                                                           .id = pending->id + i,
                                                           .number = numbered ? numbers[i] : 0,
                                                           .ask = pending->ask,
                                                           .ask_slot = slot,
                                                           .ask_ticket = ticket,
                                                           .ask_position = position,
                                                           .is_asking = asks_first,
                                                           .asks_first = asks_first,
                                                   });
        client->accepted = take_accepted(frame);
        return 0;
}

/* The number of a stream that survives its connection is its resume id. */
void client_stream_keep(struct smv_client *client, struct smv_event *answer, uint64_t resume_id)
{
        struct client_stream *stream = client_stream(client, answer->stream);

        stream->number = stream->resume_id = answer->number = resume_id;
        client->resumable_count += resume_id != 0;
}

static int take_kept(struct smv_client *client, const struct client_pending *pending,
                     const struct codec_frame *frame, struct smv_event *ret_answer)
{
        uint64_t resume_id;
        int r = codec_get_uint(frame, "resume_id", &resume_id);

        if (r)
                return client_bad_reply(client, r, "resume_id");
        client_take_streams(client, pending, frame, ret_answer);
        client_stream_keep(client, ret_answer, resume_id);
        return 0;
}

static int begin_generate(struct smv_client *client, struct client_request *request,
                          const struct smv_generate *options)
{
        struct smv_generate o;
        int r;

        r = client_begin_generate(client, options, &o);
        if (r)
                return r;
        if (o.ask && (o.n > 1 || o.keep_ms))
                return client_refuse(client, -EINVAL, o.n > 1 ? "n" : "keep_ms",
                                     "ask goes with one stream, and without keep_ms");
        if (o.n > SMV_SAMPLES_MAX)
                return client_refuse(client, -EINVAL, "n", "n is %u; it may be up to %u", o.n,
                                     SMV_SAMPLES_MAX);
        r = client_streams_begin(client, request, "generate", o.n ? o.n : 1);
        if (r)
                return r;
        put_generate(&request->writer, &o);
        request->pending.ask = o.ask;
        if (o.keep_ms) {
                request->pending.keeps = true;
                request->pending.take = take_kept;
        }
        return 0;
}

int smv_generate(struct smv_client *client, const struct smv_generate *options,
                 uint32_t *ret_stream)
{
        struct client_request request;
        int r = begin_generate(client, &request, options);

        if (!r)
                r = client_request_wait(client, &request, NULL);
        if (!r)
                *ret_stream = request.pending.id;
        return r;
}

int smv_ask_generate(struct smv_client *client, const struct smv_generate *options,
                     uint32_t *ret_stream)
{
        struct client_request request;
        int r = begin_generate(client, &request, options);

        return r ? r : client_request_ask(client, &request, ret_stream);
}

void smv_accepted(const struct smv_client *client, struct smv_accepted *ret_accepted)
{
        struct smv_accepted accepted = { 0 };

        if (client)
                accepted = client->accepted;
        client_copy_out(ret_accepted, &accepted, sizeof(accepted));
}

uint64_t smv_stream_number(const struct smv_client *client, uint32_t stream)
{
        const struct client_stream *known = client ? client_stream(client, stream) : NULL;

        return known ? known->number : 0;
}

int smv_cancel(struct smv_client *client, uint32_t stream)
{
        struct client_request request;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        if (!client_stream(client, stream) && !client_pending_stream(client, stream))
                return 0;

        client_request_begin(client, &request, "cancel");
        codec_put_uint(&request.writer, "stream", stream);
        return client_request_send(client, &request);
}
