/* Requests with one reply and no stream: about texts and tokens, and about the daemon's work. */
#include <errno.h>
#include <string.h>

#include "client/options.h"
#include "client/request.h"

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
        client_request_begin(client, &writer, "tokenize", &id);
        client_put_model(&writer, model);
        codec_put_given(&writer, "text", text, text_bytes);
        r = client_request_call(client, &writer, id, &frame);
        if (r)
                return r;

        r = codec_get_ids(&frame, "tokens", &client->ids);
        if (r)
                return client_bad_reply(client, r, "tokens");
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
        client_request_begin(client, &writer, "detokenize", &id);
        client_put_model(&writer, model);
        codec_put_ids(&writer, "tokens", tokens, token_count);
        r = client_request_call(client, &writer, id, &frame);
        if (r)
                return r;

        r = codec_get_text(&frame, "text", &text);
        if (r)
                return client_bad_reply(client, r, "text");
        *ret_text = text.bytes;
        *ret_bytes = text.count;
        return 0;
}

/* Sends a request whose reply must have so many pieces. */
static int ask_pieces(struct smv_client *client, struct codec_writer *writer, uint32_t id,
                      struct codec_frame *ret_frame, size_t least, size_t most)
{
        size_t count;
        int r;

        r = client_request_call(client, writer, id, ret_frame);
        if (r)
                return r;
        r = codec_get_pieces(ret_frame, &client->ids);
        count = client->ids.count / sizeof(struct smv_piece);
        if (!r && (count < least || count > most))
                r = -EPROTO;
        return r ? client_bad_reply(client, r, "pieces") : 0;
}

int smv_pieces(struct smv_client *client, const char *model, const uint32_t *tokens,
               size_t token_count, const struct smv_piece **ret_pieces)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_request_begin(client, &writer, "pieces", &id);
        client_put_model(&writer, model);
        codec_put_ids(&writer, "tokens", tokens, token_count);
        r = ask_pieces(client, &writer, id, &frame, token_count, token_count);
        if (r)
                return r;
        *ret_pieces = (const struct smv_piece *)(const void *)client->ids.at;
        return 0;
}

int smv_vocabulary(struct smv_client *client, const char *model, uint32_t from, uint32_t count,
                   const struct smv_piece **ret_pieces, size_t *ret_count, size_t *ret_vocab)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint64_t vocab;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_request_begin(client, &writer, "pieces", &id);
        client_put_model(&writer, model);
        codec_put_uint(&writer, "from", from);
        if (count)
                codec_put_uint(&writer, "length", count);
        r = ask_pieces(client, &writer, id, &frame, 1, count ? count : UINT32_MAX - from);
        if (r)
                return r;
        r = codec_get_uint(&frame, "vocab", &vocab);
        if (r)
                return client_bad_reply(client, r, "vocab");
        *ret_pieces = (const struct smv_piece *)(const void *)client->ids.at;
        *ret_count = client->ids.count / sizeof(struct smv_piece);
        *ret_vocab = (size_t)vocab;
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

        r = client_begin_generate(client, options, &o);
        if (r)
                return r;
        client_request_begin(client, &writer, "template", &id);
        client_put_model(&writer, o.model);
        client_put_conversation(&writer, &o);
        if (ret_tokens)
                codec_put_bool(&writer, "tokenize", true);
        r = client_request_call(client, &writer, id, &frame);
        if (r)
                return r;

        r = codec_get_text(&frame, "text", &text);
        if (r)
                return client_bad_reply(client, r, "text");
        *ret_text = text.bytes;
        *ret_bytes = text.count;
        if (!ret_tokens)
                return 0;
        r = codec_get_ids(&frame, "tokens", &client->ids);
        if (r)
                return client_bad_reply(client, r, "tokens");
        *ret_tokens = (const uint32_t *)(const void *)client->ids.at;
        *ret_count = client->ids.count / sizeof(uint32_t);
        return 0;
}

/* Sends a request without fields, and gets one field of its reply as JSON. */
static int ask_json(struct smv_client *client, const char *op, const char *field,
                    const char **ret_json)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_request_begin(client, &writer, op, &id);
        r = client_request_call(client, &writer, id, &frame);
        if (r)
                return r;
        r = codec_get_json(&frame, field, &client->text);
        if (r)
                return client_bad_reply(client, r, field);
        *ret_json = client->text.at;
        return 0;
}

int smv_status(struct smv_client *client, const char **ret_json)
{
        return ask_json(client, "status", "status", ret_json);
}

int smv_list(struct smv_client *client, const char **ret_json)
{
        return ask_json(client, "list", "work", ret_json);
}

int smv_end(struct smv_client *client, uint64_t number)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        r = client_begin(client);
        if (r)
                return r;
        client_request_begin(client, &writer, "end", &id);
        codec_put_uint(&writer, "number", number);
        return client_request_call(client, &writer, id, &frame);
}
