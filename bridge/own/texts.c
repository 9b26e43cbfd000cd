#include "bridge/own/texts.h"

#include <errno.h>
#include <string.h>

#include "bridge/core/bridge.h"
#include "bridge/core/constraint.h"
#include "bridge/core/conversation.h"
#include "bridge/core/fields.h"
#include "bridge/openai/messages.h"
#include "json/utf8.h"

/* What one of the three asks. */
struct texts {
        struct text model, text;
        bool pieces; /* with_pieces of /tokenize */
        const uint32_t *tokens;
        size_t token_count;
        struct smv_generate options; /* of /apply-template */
};

/* Begins a call: its JSON and its memory.  NULL: it has failed. */
static struct texts *begin(struct call *call, struct fields *fields)
{
        struct texts *texts;

        if (!call_read_json(call))
                return NULL;
        fields->json = call->json;
        call->own = texts = arena_alloc(&call->arena, sizeof(*texts));
        if (!texts) {
                call_no_memory(call);
                return NULL;
        }
        field_text(fields, 0, "model", &texts->model);
        return texts;
}

static void proceed(struct call *call, const struct fields *fields, void (*go)(struct call *call))
{
        if (call_was_read(call, fields))
                call_with_daemon(call, go);
}

static void put_ids(struct json_builder *to, const uint32_t *tokens, size_t count)
{
        json_put_array(to);
        for (size_t i = 0; i < count; i++)
                json_put_uint(to, tokens[i]);
        json_put_array_end(to);
}

static void reply(struct call *call, struct json_builder *to, struct bytes *body)
{
        call_reply_json(call, to, body);
        bytes_deinit(body);
}

/* ---- tokenize ---- */

/* A piece that is no UTF-8 is an array of bytes, as llama-server writes it. */
static void put_piece(struct json_builder *to, uint32_t token, const struct smv_piece *piece)
{
        json_put_object(to);
        json_put_key_uint(to, "id", token);
        json_put_key(to, "piece");
        if (utf8_valid(piece->bytes, piece->count) == piece->count) {
                json_put_text(to, piece->bytes, piece->count);
        } else {
                json_put_array(to);
                for (uint32_t i = 0; i < piece->count; i++)
                        json_put_uint(to, (unsigned char)piece->bytes[i]);
                json_put_array_end(to);
        }
        json_put_object_end(to);
}

static void on_pieces(struct call *call, const struct smv_event *answer)
{
        const struct texts *texts = call->own;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        json_put_object(&to);
        json_put_key(&to, "tokens");
        json_put_array(&to);
        for (size_t i = 0; i < answer->piece_count; i++)
                put_piece(&to, texts->tokens[i], &answer->pieces[i]);
        json_put_array_end(&to);
        json_put_key_uint(&to, "count", answer->piece_count);
        json_put_object_end(&to);
        reply(call, &to, &body);
}

static void ask_pieces(struct call *call, const struct smv_event *tokens)
{
        struct texts *texts = call->own;
        size_t bytes = tokens->token_count * sizeof(*tokens->tokens);
        struct text copy = arena_copy(&call->arena, (const char *)tokens->tokens, bytes);
        struct smv_client *client = link_client(call->link);
        uint32_t request = 0;
        const char *model;
        int r = -ENOTCONN;

        if (!copy.at) {
                call_no_memory(call);
                return;
        }
        texts->tokens = (const uint32_t *)(const void *)copy.at;
        texts->token_count = tokens->token_count;
        if (!bridge_model(call, texts->model, &model))
                return;
        if (client)
                r = smv_ask_pieces(client, model, texts->tokens, texts->token_count, &request);
        call_ask(call, r, request, on_pieces);
}

static void on_tokens(struct call *call, const struct smv_event *answer)
{
        const struct texts *texts = call->own;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (texts->pieces && answer->token_count) {
                ask_pieces(call, answer);
                return;
        }
        json_put_object(&to);
        json_put_key(&to, "tokens");
        put_ids(&to, answer->tokens, answer->token_count);
        json_put_key_uint(&to, "count", answer->token_count);
        json_put_object_end(&to);
        reply(call, &to, &body);
}

static void ask_tokenize(struct call *call)
{
        const struct texts *texts = call->own;
        const char *model;
        uint32_t request = 0;
        int r;

        if (!bridge_model(call, texts->model, &model))
                return;
        r = smv_ask_tokenize(link_client(call->link), model, texts->text.at, texts->text.bytes,
                             &request);
        call_ask(call, r, request, on_tokens);
}

/* llama-server's field is `content`, vLLM's is `prompt`. */
void own_tokenize(struct call *call)
{
        struct fields fields = { 0 };
        struct texts *texts = begin(call, &fields);

        if (!texts)
                return;
        if (!field_text(&fields, 0, "content", &texts->text) &&
            !field_text(&fields, 0, "prompt", &texts->text))
                fields_fail(&fields, FAILURE_REQUEST, "content",
                            "content is missing: the text to tokenize");
        field_bool(&fields, 0, "with_pieces", &texts->pieces);
        proceed(call, &fields, ask_tokenize);
}

/* ---- detokenize ---- */

static void on_text(struct call *call, const struct smv_event *answer)
{
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        json_put_object(&to);
        json_put_key_text(&to, "content", answer->text, answer->text_bytes);
        json_put_key_text(&to, "prompt", answer->text, answer->text_bytes);
        json_put_object_end(&to);
        reply(call, &to, &body);
}

static void ask_detokenize(struct call *call)
{
        const struct texts *texts = call->own;
        const char *model;
        uint32_t request = 0;
        int r;

        if (!bridge_model(call, texts->model, &model))
                return;
        r = smv_ask_detokenize(link_client(call->link), model, texts->tokens, texts->token_count,
                               &request);
        call_ask(call, r, request, on_text);
}

void own_detokenize(struct call *call)
{
        struct fields fields = { 0 };
        struct texts *texts = begin(call, &fields);
        uint32_t node, *tokens;
        uint64_t id;

        if (!texts)
                return;
        node = field_array(&fields, 0, "tokens");
        if (!json_count(call->json, node))
                fields_fail(&fields, FAILURE_REQUEST, "tokens",
                            "tokens must be an array of at least one token id");
        tokens = arena_alloc(&call->arena, (json_count(call->json, node) + 1) * sizeof(*tokens));
        for (uint32_t at = json_first(call->json, node); tokens && at != JSON_NONE;
             at = json_next(call->json, at)) {
                if (!json_whole(call->json, at, &id) || id > UINT32_MAX) {
                        fields_fail(&fields, FAILURE_REQUEST, "tokens",
                                    "tokens must be whole numbers from 0 on");
                        break;
                }
                tokens[texts->token_count++] = (uint32_t)id;
        }
        texts->tokens = tokens;
        proceed(call, &fields, ask_detokenize);
}

/* ---- apply-template ---- */

static void on_prompt(struct call *call, const struct smv_event *answer)
{
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        json_put_object(&to);
        json_put_key_text(&to, "prompt", answer->text, answer->text_bytes);
        json_put_key(&to, "tokens");
        put_ids(&to, answer->tokens, answer->token_count);
        json_put_object_end(&to);
        reply(call, &to, &body);
}

static void ask_template(struct call *call)
{
        struct texts *texts = call->own;
        uint32_t request = 0;
        int r;

        if (!bridge_model(call, texts->model, &texts->options.model))
                return;
        r = smv_ask_template(link_client(call->link), &texts->options, 1, &request);
        call_ask(call, r, request, on_prompt);
}

void own_apply_template(struct call *call)
{
        struct fields fields = { 0 };
        struct texts *texts = begin(call, &fields);
        struct conversation conversation = { .arena = &call->arena, .json = call->json };

        if (!texts)
                return;
        texts->options = (struct smv_generate){ SMV_SIZE(smv_generate) };
        openai_read_messages(&fields, &conversation);
        openai_read_end(&fields, &conversation);
        openai_read_tools(&fields, &conversation, &texts->options);
        openai_read_vars(&fields, &conversation);
        constraint_read_format(call, &fields, field_object(&fields, 0, "response_format"),
                               "response_format", &texts->options);
        constraint_read_extras(call, &fields, &texts->options);
        constraint_settle(call, &fields, &texts->options);
        if (!fields.failed && conversation_pack(&conversation, &texts->options))
                call->arena.failed = true;
        proceed(call, &fields, ask_template);
}
