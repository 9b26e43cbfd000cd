/* Requests with one reply and no stream: about texts and tokens, and about the daemon's work. */
#include <errno.h>
#include <string.h>

#include "client/options.h"
#include "client/request.h"

/* ---- what the replies say ---- */

static int take_tokens(struct smv_client *client, const struct client_pending *pending,
                       const struct codec_frame *frame, struct smv_event *ret_answer)
{
        int r = codec_get_ids(frame, "tokens", &client->ids);

        (void)pending;
        if (r)
                return client_bad_reply(client, r, "tokens");
        ret_answer->tokens = (const uint32_t *)(const void *)client->ids.at;
        ret_answer->token_count = client->ids.count / sizeof(uint32_t);
        return 0;
}

static int take_text(struct smv_client *client, const struct client_pending *pending,
                     const struct codec_frame *frame, struct smv_event *ret_answer)
{
        struct codec_text text;
        int r = codec_get_text(frame, "text", &text);

        (void)pending;
        if (r)
                return client_bad_reply(client, r, "text");
        ret_answer->text = text.bytes;
        ret_answer->text_bytes = text.count;
        return 0;
}

static int take_text_and_tokens(struct smv_client *client, const struct client_pending *pending,
                                const struct codec_frame *frame, struct smv_event *ret_answer)
{
        int r = take_text(client, pending, frame, ret_answer);

        return r ? r : take_tokens(client, pending, frame, ret_answer);
}

/* The number of pieces must be the one that the request wanted. */
static int take_pieces(struct smv_client *client, const struct client_pending *pending,
                       const struct codec_frame *frame, struct smv_event *ret_answer)
{
        int r = codec_get_pieces(frame, &client->ids);
        size_t count = client->ids.count / sizeof(struct smv_piece);

        if (!r && (count < pending->pieces.least || count > pending->pieces.most))
                r = -EPROTO;
        if (r)
                return client_bad_reply(client, r, "pieces");
        ret_answer->pieces = (const struct smv_piece *)(const void *)client->ids.at;
        ret_answer->piece_count = count;
        return 0;
}

static int take_vocabulary(struct smv_client *client, const struct client_pending *pending,
                           const struct codec_frame *frame, struct smv_event *ret_answer)
{
        int r = take_pieces(client, pending, frame, ret_answer);

        if (r)
                return r;
        r = codec_get_uint(frame, "vocab", &ret_answer->number);
        return r ? client_bad_reply(client, r, "vocab") : 0;
}

static int take_json(struct smv_client *client, const struct codec_frame *frame, const char *field,
                     struct smv_event *ret_answer)
{
        int r = codec_get_json(frame, field, &client->text);

        if (r)
                return client_bad_reply(client, r, field);
        ret_answer->text = client->text.at;
        ret_answer->text_bytes = strlen(client->text.at);
        return 0;
}

static int take_status(struct smv_client *client, const struct client_pending *pending,
                       const struct codec_frame *frame, struct smv_event *ret_answer)
{
        (void)pending;
        return take_json(client, frame, "status", ret_answer);
}

static int take_list(struct smv_client *client, const struct client_pending *pending,
                     const struct codec_frame *frame, struct smv_event *ret_answer)
{
        (void)pending;
        return take_json(client, frame, "work", ret_answer);
}

static int take_pool(struct smv_client *client, const struct client_pending *pending,
                     const struct codec_frame *frame, struct smv_event *ret_answer)
{
        (void)pending;
        return take_json(client, frame, "pool", ret_answer);
}

/* ---- requests ---- */

/* client_begin(), then the request. */
static int begin(struct smv_client *client, struct client_request *request, const char *op,
                 client_take_fn *take)
{
        int r = client_begin(client);

        if (r)
                return r;
        client_request_begin(client, request, op);
        request->pending.take = take;
        return 0;
}

static int begin_tokenize(struct smv_client *client, struct client_request *request,
                          const char *model, const char *text, size_t text_bytes)
{
        int r = begin(client, request, "tokenize", take_tokens);

        if (r)
                return r;
        client_put_model(&request->writer, model);
        codec_put_given(&request->writer, "text", text, text_bytes);
        return 0;
}

int smv_tokenize(struct smv_client *client, const char *model, const char *text, size_t text_bytes,
                 const uint32_t **ret_tokens, size_t *ret_count)
{
        struct client_request request;
        struct smv_event answer;
        int r = begin_tokenize(client, &request, model, text, text_bytes);

        if (!r)
                r = client_request_wait(client, &request, &answer);
        if (r)
                return r;
        *ret_tokens = answer.tokens;
        *ret_count = answer.token_count;
        return 0;
}

int smv_ask_tokenize(struct smv_client *client, const char *model, const char *text,
                     size_t text_bytes, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_tokenize(client, &request, model, text, text_bytes);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_detokenize(struct smv_client *client, struct client_request *request,
                            const char *model, const uint32_t *tokens, size_t token_count)
{
        int r = begin(client, request, "detokenize", take_text);

        if (r)
                return r;
        client_put_model(&request->writer, model);
        codec_put_ids(&request->writer, "tokens", tokens, token_count);
        return 0;
}

int smv_detokenize(struct smv_client *client, const char *model, const uint32_t *tokens,
                   size_t token_count, const char **ret_text, size_t *ret_bytes)
{
        struct client_request request;
        struct smv_event answer;
        int r = begin_detokenize(client, &request, model, tokens, token_count);

        if (!r)
                r = client_request_wait(client, &request, &answer);
        if (r)
                return r;
        *ret_text = answer.text;
        *ret_bytes = answer.text_bytes;
        return 0;
}

int smv_ask_detokenize(struct smv_client *client, const char *model, const uint32_t *tokens,
                       size_t token_count, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_detokenize(client, &request, model, tokens, token_count);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_pieces(struct smv_client *client, struct client_request *request,
                        const char *model, const uint32_t *tokens, size_t token_count)
{
        int r = begin(client, request, "pieces", take_pieces);

        if (r)
                return r;
        client_put_model(&request->writer, model);
        codec_put_ids(&request->writer, "tokens", tokens, token_count);
        request->pending.pieces.least = request->pending.pieces.most = token_count;
        return 0;
}

int smv_pieces(struct smv_client *client, const char *model, const uint32_t *tokens,
               size_t token_count, const struct smv_piece **ret_pieces)
{
        struct client_request request;
        struct smv_event answer;
        int r = begin_pieces(client, &request, model, tokens, token_count);

        if (!r)
                r = client_request_wait(client, &request, &answer);
        if (!r)
                *ret_pieces = answer.pieces;
        return r;
}

int smv_ask_pieces(struct smv_client *client, const char *model, const uint32_t *tokens,
                   size_t token_count, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_pieces(client, &request, model, tokens, token_count);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_vocabulary(struct smv_client *client, struct client_request *request,
                            const char *model, uint32_t from, uint32_t count)
{
        int r = begin(client, request, "pieces", take_vocabulary);

        if (r)
                return r;
        client_put_model(&request->writer, model);
        codec_put_uint(&request->writer, "from", from);
        if (count)
                codec_put_uint(&request->writer, "length", count);
        request->pending.pieces.least = 1;
        request->pending.pieces.most = count ? count : UINT32_MAX - from;
        return 0;
}

int smv_vocabulary(struct smv_client *client, const char *model, uint32_t from, uint32_t count,
                   const struct smv_piece **ret_pieces, size_t *ret_count, size_t *ret_vocab)
{
        struct client_request request;
        struct smv_event answer;
        int r = begin_vocabulary(client, &request, model, from, count);

        if (!r)
                r = client_request_wait(client, &request, &answer);
        if (r)
                return r;
        *ret_pieces = answer.pieces;
        *ret_count = answer.piece_count;
        *ret_vocab = (size_t)answer.number;
        return 0;
}

int smv_ask_vocabulary(struct smv_client *client, const char *model, uint32_t from, uint32_t count,
                       uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_vocabulary(client, &request, model, from, count);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_template(struct smv_client *client, struct client_request *request,
                          const struct smv_generate *options, bool tokenize)
{
        struct smv_generate o;
        int r;

        r = client_begin_generate(client, options, &o);
        if (r)
                return r;
        client_request_begin(client, request, "template");
        client_put_model(&request->writer, o.model);
        client_put_conversation(&request->writer, &o);
        if (tokenize)
                codec_put_bool(&request->writer, "tokenize", true);
        request->pending.take = tokenize ? take_text_and_tokens : take_text;
        return 0;
}

int smv_template(struct smv_client *client, const struct smv_generate *options,
                 const char **ret_text, size_t *ret_bytes, const uint32_t **ret_tokens,
                 size_t *ret_count)
{
        struct client_request request;
        struct smv_event answer;
        int r = begin_template(client, &request, options, ret_tokens);

        if (!r)
                r = client_request_wait(client, &request, &answer);
        if (r)
                return r;
        *ret_text = answer.text;
        *ret_bytes = answer.text_bytes;
        if (!ret_tokens)
                return 0;
        *ret_tokens = answer.tokens;
        *ret_count = answer.token_count;
        return 0;
}

int smv_ask_template(struct smv_client *client, const struct smv_generate *options, int tokenize,
                     uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_template(client, &request, options, tokenize);

        return r ? r : client_request_ask(client, &request, ret_request);
}

/* A request without fields, whose reply is JSON. */
static int wait_for_json(struct smv_client *client, const char *op, client_take_fn *take,
                         const char **ret_json)
{
        struct client_request request;
        struct smv_event answer;
        int r = begin(client, &request, op, take);

        if (!r)
                r = client_request_wait(client, &request, &answer);
        if (!r)
                *ret_json = answer.text;
        return r;
}

static int ask_for_json(struct smv_client *client, const char *op, client_take_fn *take,
                        uint32_t *ret_request)
{
        struct client_request request;
        int r = begin(client, &request, op, take);

        return r ? r : client_request_ask(client, &request, ret_request);
}

int smv_status(struct smv_client *client, const char **ret_json)
{
        return wait_for_json(client, "status", take_status, ret_json);
}

int smv_ask_status(struct smv_client *client, uint32_t *ret_request)
{
        return ask_for_json(client, "status", take_status, ret_request);
}

int smv_list(struct smv_client *client, const char **ret_json)
{
        return wait_for_json(client, "list", take_list, ret_json);
}

int smv_ask_list(struct smv_client *client, uint32_t *ret_request)
{
        return ask_for_json(client, "list", take_list, ret_request);
}

static int begin_pool(struct smv_client *client, struct client_request *request, uint32_t from)
{
        int r = begin(client, request, "pool", take_pool);

        if (!r)
                codec_put_uint(&request->writer, "from", from);
        return r;
}

int smv_pool(struct smv_client *client, uint32_t from, const char **ret_json)
{
        struct client_request request;
        struct smv_event answer;
        int r = begin_pool(client, &request, from);

        if (!r)
                r = client_request_wait(client, &request, &answer);
        if (!r)
                *ret_json = answer.text;
        return r;
}

int smv_ask_pool(struct smv_client *client, uint32_t from, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_pool(client, &request, from);

        return r ? r : client_request_ask(client, &request, ret_request);
}

static int begin_end(struct smv_client *client, struct client_request *request, uint64_t number)
{
        int r = begin(client, request, "end", NULL);

        if (!r)
                codec_put_uint(&request->writer, "number", number);
        return r;
}

int smv_end(struct smv_client *client, uint64_t number)
{
        struct client_request request;
        int r = begin_end(client, &request, number);

        return r ? r : client_request_wait(client, &request, NULL);
}

int smv_ask_end(struct smv_client *client, uint64_t number, uint32_t *ret_request)
{
        struct client_request request;
        int r = begin_end(client, &request, number);

        return r ? r : client_request_ask(client, &request, ret_request);
}
