/*
 * Requests and their replies.
 *
 * A call sends one frame and reads ahead until the reply with its id has come.
 * Records that come in between stay where they are, for smv_next().
 */
#include "client/private.h"

#include <errno.h>
#include <samovar/protocol.h>
#include <stdlib.h>
#include <string.h>

int client_decode(struct smv_client *client, const char *body, size_t count,
                  struct codec_frame *ret_frame)
{
        int r = codec_decode(&client->codec, body, count, ret_frame);

        if (!r && ret_frame->records && client->shared.ring && !client_kept_count(client))
                return -EPROTO;
        return r;
}

/*
 * Looks at the next frame at link->scan.  1: it is the reply to `id`.  0: it is not, or no frame is
 * complete.  Or -ENOMEM.  *ret_more: a frame was there and another may follow.
 */
static int look(struct smv_client *client, uint32_t id, struct codec_frame *ret_frame,
                bool *ret_more)
{
        struct link *link = &client->link;
        struct codec_frame frame = { 0 };
        const char *body;
        size_t bytes;
        int r;

        *ret_more = false;
        if (!link_frame(link, link->scan, &body, &bytes))
                return 0;
        if (bytes) {
                r = client_decode(client, body, bytes, &frame);
                if (r == -EPROTO)
                        link_lose(link, r, link->scan);
                if (r)
                        return r == -EPROTO ? 0 : r;
        }

        *ret_more = true;
        link->scan += 4 + bytes;
        if (bytes && !frame.records && frame.id == id) {
                *ret_frame = frame;
                return 1;
        }
        if (frame.records)
                client->records_ahead++;
        else if (bytes)
                client_stray(client, &frame);
        /*
         * Drop doorbells and replies that no call waits for, unless records are before them:
         * dropping would drop those records too.
         */
        if (!client->records_ahead)
                link_drop(link, link->scan);
        return 0;
}

static int wait_reply(struct smv_client *client, uint32_t id, uint64_t deadline,
                      struct codec_frame *ret_frame)
{
        bool more;
        int r;

        /*
         * The daemon need not ring while this call is awake, and the last event is no longer valid.
         * If there is no memory to tell the daemon of the free space, smv_next() does it later.
         */
        shared_awake(&client->shared);
        client_release(client, true);

        link_flush(&client->link);
        for (;;) {
                do
                        r = look(client, id, ret_frame, &more);
                while (!r && more);
                if (r)
                        return r < 0 ? client_fail(client, r, "out of memory") : 0;
                if (client->link.lost)
                        return client_lost(client);

                r = link_turn(&client->link, deadline);
                if (r < 0)
                        return client_fail(client, r, "out of memory");
                if (!r) {
                        /*
                         * If the reply came later, it could begin a stream that the caller does not
                         * know.  So give up the link.
                         */
                        link_lose(&client->link, -ETIMEDOUT, client->link.scan);
                        client_lost(client);
                        return -ETIMEDOUT;
                }
        }
}

void client_ask_begin(struct smv_client *client, struct codec_writer *writer, const char *op,
                      uint32_t *ret_id)
{
        *ret_id = client_new_ids(client, 1);
        codec_begin(writer, &client->link.out, client->request_max, op, *ret_id);
}

static int end(struct smv_client *client, struct codec_writer *writer)
{
        int r = codec_end(writer);

        if (r == -EPROTO)
                return client_fail(client, -EINVAL, "what is packed is not one msgpack value");
        if (r == -EMSGSIZE)
                return client_fail(client, r,
                                   "the request is longer than the %zu bytes that the daemon takes",
                                   client->request_max);
        if (r)
                return client_fail(client, r, "out of memory");
        return 0;
}

/* Ends the request, sends it, waits for its reply: 0, -EREMOTEIO or another error. */
static int ask(struct smv_client *client, struct codec_writer *writer, uint32_t id,
               uint64_t deadline, struct codec_frame *ret_frame)
{
        struct codec_frame frame;
        int r;

        r = end(client, writer);
        if (!r)
                r = wait_reply(client, id, deadline, &frame);
        if (r)
                return r;
        if (!frame.ok) {
                client_refused(client, &frame);
                return -EREMOTEIO;
        }
        *ret_frame = frame;
        return 0;
}

int client_ask(struct smv_client *client, struct codec_writer *writer, uint32_t id,
               struct codec_frame *ret_frame)
{
        return ask(client, writer, id, link_deadline(client->reply_ms), ret_frame);
}

int client_bad_answer(struct smv_client *client, int error, const char *field)
{
        if (error != -EPROTO)
                return client_fail(client, error, "out of memory");
        return client_fail(client, error, "the daemon's answer has no well-formed field %s", field);
}

static void put_hello(struct codec_writer *writer, const struct smv_connect *options)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        static const char *const transports[] = { "auto", "ring", "socket" };
        static const char *const doorbells[] = { "kick", "futex", "none" };
        const char *transport = transports[options->transport];
        const char *doorbell = doorbells[options->doorbell];

        codec_put_ids(writer, "versions", versions, 2);
        codec_put_text(writer, "transport", transport, strlen(transport));
        if (options->transport == SMV_TRANSPORT_SOCKET)
                return;
        codec_put_text(writer, "doorbell", doorbell, strlen(doorbell));
        if (options->ring_bytes)
                codec_put_uint(writer, "ring_bytes", options->ring_bytes);
}

/* Finds the segment of this kind, and the descriptor that came for it. */
static int find_segment(struct smv_client *client, const struct codec_frame *frame,
                        const char *kind, struct shared_segment *ret_segment)
{
        uint64_t index;
        int r;

        r = codec_get_segment(frame, kind, &index, &ret_segment->bytes);
        if (!r && index >= client->link.fd_count)
                r = -EBADF;
        if (!r)
                ret_segment->fd = client->link.fds[index];
        return r;
}

static int take_ring(struct smv_client *client, const struct codec_frame *frame,
                     enum smv_doorbell doorbell)
{
        struct shared_segment ring, control;
        const char *why;
        int r;

        r = find_segment(client, frame, "ring", &ring);
        if (!r)
                r = find_segment(client, frame, "control", &control);
        if (r == -EBADF)
                why = "its descriptors have not come";
        else if (r)
                why = "its segments are not named";
        else
                r = shared_open(&client->shared, &ring, &control, doorbell, &why);
        if (!r)
                return 0;
        client->ring_failed = true;
        return client_fail(client, r, "the daemon's ring cannot be used: %s", why);
}

static int take_transport(struct smv_client *client, const struct codec_frame *frame,
                          const struct smv_connect *options)
{
        struct codec_text text;
        bool ring;

        ring = !codec_get_text(frame, "transport", &text) && text.count == 4 &&
               !memcmp(text.bytes, "ring", 4);
        if (ring && options->transport == SMV_TRANSPORT_SOCKET)
                return client_fail(client, -EPROTO, "the daemon gave a ring that nobody asked for");
        if (!ring && options->transport == SMV_TRANSPORT_RING)
                return client_fail(client, -EPROTO, "the daemon gave no ring");
        return ring ? take_ring(client, frame, options->doorbell) : 0;
}

static int take_limits(struct smv_client *client, const struct codec_frame *frame)
{
        uint64_t version, frame_bytes;
        int r;

        r = codec_get_uint(frame, "version", &version);
        if (r)
                return client_bad_answer(client, r, "version");
        if (version != SMV_PROTOCOL_VERSION)
                return client_fail(client, -EPROTO,
                                   "the daemon chose version %llu, which is not ours",
                                   (unsigned long long)version);
        r = codec_get_uint(frame, "frame_bytes", &frame_bytes);
        if (r)
                return client_bad_answer(client, r, "frame_bytes");

        client->request_max = frame_bytes < UINT32_MAX ? frame_bytes : UINT32_MAX;
        /* A daemon that accepts longer requests also sends longer replies. */
        if (client->request_max > client->link.frame_max)
                client->link.frame_max =
                        client->request_max < LINK_IN_MAX ? client->request_max : LINK_IN_MAX;
        return 0;
}

/*
 * Skips models with too long a name or too many end tokens, and all models beyond
 * CLIENT_MODELS_MAX.
 */
static int take_models(struct smv_client *client, const struct codec_frame *frame)
{
        struct client_model *model = client->models;
        struct codec_text name;
        size_t bytes;

        client->model_count = 0;
        for (size_t i = 0; client->model_count < CLIENT_MODELS_MAX; i++) {
                uint64_t context;
                int r = codec_get_model(frame, i, &name, &model->is_default, &context,
                                        &client->ids);

                if (r == -ENOENT)
                        break;
                if (r)
                        return client_bad_answer(client, r, "models");
                bytes = client->ids.count;
                if (name.count > SMV_NAME_BYTES_MAX || bytes > sizeof(model->ends))
                        continue;
                memcpy(model->name, name.bytes, name.count);
                model->name[name.count] = '\0';
                model->context = context < UINT32_MAX ? (uint32_t)context : UINT32_MAX;
                model->end_count = (uint32_t)(bytes / sizeof(*model->ends));
                if (bytes)
                        memcpy(model->ends, client->ids.at, bytes);
                model = &client->models[++client->model_count];
        }
        return 0;
}

int client_hello(struct smv_client *client, const struct smv_connect *options, uint64_t deadline)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        client_ask_begin(client, &writer, "hello", &id);
        put_hello(&writer, options);
        if (options->transport != SMV_TRANSPORT_SOCKET)
                link_take_fds(&client->link);
        r = ask(client, &writer, id, deadline, &frame);
        if (!r)
                r = take_limits(client, &frame);
        if (!r)
                r = take_models(client, &frame);
        if (!r)
                r = take_transport(client, &frame, options);
        link_drop_fds(&client->link);
        return r;
}

int smv_cancel(struct smv_client *client, uint32_t stream)
{
        struct codec_writer writer;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        if (!client_stream(client, stream))
                return 0;

        client_ask_begin(client, &writer, "cancel", &id);
        codec_put_uint(&writer, "stream", stream);
        r = end(client, &writer);
        if (!r)
                link_flush(&client->link);
        return r;
}

int smv_tokenize(struct smv_client *client, const char *model, const char *text, size_t text_bytes,
                 const uint32_t **ret_tokens, size_t *ret_count)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_ask_begin(client, &writer, "tokenize", &id);
        client_put_model(&writer, model);
        codec_put_text(&writer, "text", text, text_bytes);
        r = client_ask(client, &writer, id, &frame);
        if (r)
                return r;

        r = codec_get_ids(&frame, "tokens", &client->ids);
        if (r)
                return client_bad_answer(client, r, "tokens");
        *ret_tokens = (const uint32_t *)(const void *)client->ids.at;
        *ret_count = client->ids.count / sizeof(uint32_t);
        return 0;
}

int smv_detokenize(struct smv_client *client, const char *model, const uint32_t *tokens,
                   size_t token_count, const char **ret_text, size_t *ret_bytes)
{
        struct codec_writer writer;
        struct codec_frame frame;
        struct codec_text text;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_ask_begin(client, &writer, "detokenize", &id);
        client_put_model(&writer, model);
        codec_put_ids(&writer, "tokens", tokens, token_count);
        r = client_ask(client, &writer, id, &frame);
        if (r)
                return r;

        r = codec_get_text(&frame, "text", &text);
        if (r)
                return client_bad_answer(client, r, "text");
        *ret_text = text.bytes;
        *ret_bytes = text.count;
        return 0;
}

int smv_template(struct smv_client *client, const struct smv_generate *options,
                 const char **ret_text, size_t *ret_bytes, const uint32_t **ret_tokens,
                 size_t *ret_count)
{
        struct codec_writer writer;
        struct codec_frame frame;
        struct codec_text text;
        struct smv_generate o;
        uint32_t id;
        int r;

        r = client_take_generate(client, options, &o);
        if (r)
                return r;
        client_ask_begin(client, &writer, "template", &id);
        client_put_model(&writer, o.model);
        client_put_talk(&writer, &o);
        if (ret_tokens)
                codec_put_bool(&writer, "tokenize", true);
        r = client_ask(client, &writer, id, &frame);
        if (r)
                return r;

        r = codec_get_text(&frame, "text", &text);
        if (r)
                return client_bad_answer(client, r, "text");
        *ret_text = text.bytes;
        *ret_bytes = text.count;
        if (!ret_tokens)
                return 0;
        r = codec_get_ids(&frame, "tokens", &client->ids);
        if (r)
                return client_bad_answer(client, r, "tokens");
        *ret_tokens = (const uint32_t *)(const void *)client->ids.at;
        *ret_count = client->ids.count / sizeof(uint32_t);
        return 0;
}

int smv_status(struct smv_client *client, const char **ret_json)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_ask_begin(client, &writer, "status", &id);
        r = client_ask(client, &writer, id, &frame);
        if (r)
                return r;

        r = codec_get_json(&frame, "status", &client->text);
        if (r)
                return client_bad_answer(client, r, "status");
        *ret_json = client->text.at;
        return 0;
}
