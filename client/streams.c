/*
 * Begins streams: sends their options, and records the streams once the daemon has accepted them.
 */
#include "client/private.h"

#include <errno.h>
#include <samovar/protocol.h>
#include <stdlib.h>
#include <string.h>

static int put_stops(struct codec_writer *writer, const struct smv_generate *o)
{
        for (size_t i = 0; i < o->stop_count; i++)
                if (!o->stops[i])
                        return -EINVAL;
        if (o->stop_count)
                codec_put_texts(writer, "stop", o->stops, o->stop_count);
        if (o->stop_token_count)
                codec_put_ids(writer, "stop_tokens", o->stop_tokens, o->stop_token_count);
        return 0;
}

void client_put_model(struct codec_writer *writer, const char *model)
{
        if (model)
                codec_put_text(writer, "model", model, strlen(model));
}

/* NULL, or why the conversation cannot be sent. */
static const char *check_talk(const struct smv_generate *o)
{
        if (o->messages && o->packed_messages.bytes)
                return "messages are given twice, once packed";
        for (size_t i = 0; i < o->message_count; i++)
                if (!o->messages || !o->messages[i].role || !o->messages[i].content)
                        return "a message lacks its role or its content";
        return NULL;
}

void client_put_talk(struct codec_writer *writer, const struct smv_generate *o)
{
        if (o->messages)
                codec_put_messages(writer, "messages", o->messages, o->message_count);
        if (o->packed_messages.bytes)
                codec_put_packed(writer, "messages", &o->packed_messages);
        if (o->packed_tools.bytes)
                codec_put_packed(writer, "tools", &o->packed_tools);
        if (o->packed_vars.bytes)
                codec_put_packed(writer, "template_vars", &o->packed_vars);
}

void client_put_class(struct codec_writer *writer, enum smv_class priority)
{
        static const char *const names[] = { "normal", "interactive", "background" };

        if ((unsigned)priority < sizeof(names) / sizeof(*names))
                codec_put_text(writer, "class", names[priority], strlen(names[priority]));
}

void client_put_drawing(struct codec_writer *writer, const struct smv_generate *o)
{
        if (o->temperature != 0 || (o->set & SMV_SET_TEMPERATURE))
                codec_put_float(writer, "temperature", (double)o->temperature);
        if (o->top_p != 0 || (o->set & SMV_SET_TOP_P))
                codec_put_float(writer, "top_p", (double)o->top_p);
        if (o->min_p != 0 || (o->set & SMV_SET_MIN_P))
                codec_put_float(writer, "min_p", (double)o->min_p);
        if (o->top_k || (o->set & SMV_SET_TOP_K))
                codec_put_uint(writer, "top_k", o->top_k);
        if (o->seed || (o->set & SMV_SET_SEED))
                codec_put_uint(writer, "seed", o->seed);
        if (o->choice)
                codec_put_uint(writer, "choice", o->choice);
}

void client_put_start(struct codec_writer *writer, const struct smv_generate *o)
{
        client_put_model(writer, o->model);
        client_put_talk(writer, o);
        if (o->prompt)
                codec_put_text(writer, "prompt", o->prompt,
                               o->prompt_bytes ? o->prompt_bytes : strlen(o->prompt));
        if (o->tokens)
                codec_put_ids(writer, "tokens", o->tokens, o->token_count);
}

/* Only fields that are set are sent: the daemon has the defaults. */
static int put_generate(struct codec_writer *writer, const struct smv_generate *o)
{
        client_put_start(writer, o);
        if (o->handle)
                codec_put_uint(writer, "handle", o->handle);
        if (o->max_tokens)
                codec_put_uint(writer, "max_tokens", o->max_tokens);
        client_put_drawing(writer, o);
        if (o->n)
                codec_put_uint(writer, "n", o->n);
        if (o->ignore_eos)
                codec_put_bool(writer, "ignore_eos", true);
        if (o->priority)
                client_put_class(writer, o->priority);
        if (o->logprobs || (o->set & SMV_SET_LOGPROBS))
                codec_put_uint(writer, "logprobs", o->logprobs);
        if (o->keep_ms)
                codec_put_uint(writer, "keep_ms", o->keep_ms);
        if (o->deadline_ms)
                codec_put_uint(writer, "deadline_ms", o->deadline_ms);
        return put_stops(writer, o);
}

/* Reserves memory before the request: once the daemon has begun a stream, nothing may fail. */
static int reserve_streams(struct smv_client *client, uint32_t count)
{
        size_t size = client->stream_size ? client->stream_size : 8;
        struct client_stream *streams;

        while (size - client->stream_count < count)
                size *= 2;
        if (size == client->stream_size)
                return 0;
        streams = reallocarray(client->streams, size, sizeof(*streams));
        if (!streams)
                return client_fail(client, -ENOMEM, "out of memory");
        client->streams = streams;
        client->stream_size = size;
        return 0;
}

/* The stream has begun, so this must not fail: a field that the reply lacks becomes 0. */
static struct smv_accepted take_accepted(const struct codec_frame *frame)
{
        static const char *const names[] = { "prompt_tokens", "max_tokens", "position", "wait_ms" };
        uint64_t values[sizeof(names) / sizeof(names[0])] = { 0 };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (codec_get_uint(frame, names[i], &values[i]))
                        values[i] = 0;
        return (struct smv_accepted){
                .prompt_tokens = (uint32_t)values[0],
                .max_tokens = (uint32_t)values[1],
                .position = (uint32_t)values[2],
                .wait_ms = values[3],
        };
}

int client_ask_begin_streams(struct smv_client *client, struct codec_writer *writer, const char *op,
                             uint32_t count, uint32_t *ret_id)
{
        int r = reserve_streams(client, count);

        if (r)
                return r;
        *ret_id = client_new_ids(client, count);
        codec_begin(writer, &client->link.out, client->request_max, op, *ret_id);
        return 0;
}

int client_ask_streams(struct smv_client *client, struct codec_writer *writer, uint32_t id,
                       uint32_t count, struct codec_frame *ret_frame)
{
        int r = client_ask(client, writer, id, ret_frame);

        for (uint32_t i = 0; !r && i < count; i++)
                client->streams[client->stream_count++] = (struct client_stream){ .id = id + i };
        if (!r)
                client->accepted = take_accepted(ret_frame);
        return r;
}

int client_take_generate(struct smv_client *client, const struct smv_generate *options,
                         struct smv_generate *ret_options)
{
        const char *wrong;
        int r = client_begin(client);

        if (r)
                return r;
        r = client_take(ret_options, sizeof(*ret_options), options);
        if (r)
                return client_fail(client, r, "struct smv_generate has %s",
                                   r == -EINVAL ? "no size" : "fields that this library lacks");
        wrong = check_talk(ret_options);
        return wrong ? client_fail(client, -EINVAL, "%s", wrong) : 0;
}

int smv_generate(struct smv_client *client, const struct smv_generate *options,
                 uint32_t *ret_stream)
{
        struct codec_writer writer;
        struct codec_frame frame;
        struct smv_generate o;
        uint32_t id, count;
        int r;

        r = client_take_generate(client, options, &o);
        if (r)
                return r;
        if (o.n > SMV_CHOICES_MAX)
                return client_fail(client, -EINVAL, "n is %u; it may be up to %u", o.n,
                                   SMV_CHOICES_MAX);
        count = o.n ? o.n : 1;
        r = client_ask_begin_streams(client, &writer, "generate", count, &id);
        if (r)
                return r;
        r = put_generate(&writer, &o);
        if (r) {
                client->link.out.count = writer.frame;
                return client_fail(client, r, "a stop string is NULL");
        }
        r = client_ask_streams(client, &writer, id, count, &frame);
        if (r)
                return r;
        *ret_stream = id;
        if (!o.keep_ms)
                return 0;
        r = codec_get_uint(&frame, "kept", &client_stream(client, id)->kept);
        return r ? client_bad_answer(client, r, "kept") : 0;
}

void smv_accepted(const struct smv_client *client, struct smv_accepted *ret_accepted)
{
        struct smv_accepted accepted = client->accepted;

        client_give(ret_accepted, &accepted, sizeof(accepted));
}
