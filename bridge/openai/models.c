#include "bridge/openai/models.h"

#include <samovar/protocol.h>
#include <stdio.h>
#include <string.h>

#include "bridge/core/bridge.h"
#include "bridge/core/timestamp.h"

static void put_model(struct json_builder *to, const struct smv_model *model)
{
        char created_at[TIMESTAMP_BYTES];

        timestamp_of_s(model->modified_s, created_at);
        json_put_object(to);
        json_put_key_word(to, "id", model->name);
        json_put_key_word(to, "object", "model");
        json_put_key_uint(to, "created", model->modified_s);
        json_put_key_word(to, "owned_by", "samovar");
        json_put_key_word(to, "type", "model");
        json_put_key_word(to, "display_name", model->name);
        json_put_key_word(to, "created_at", created_at);
        json_put_key_word(to, "lifecycle", "active");
        json_put_key_uint(to, "max_model_len", model->context);
        json_put_key_uint(to, "max_input_tokens", model->context);
        json_put_key_uint(to, "max_tokens", model->context);
        json_put_key(to, "meta");
        json_put_object(to);
        json_put_key_word(to, "architecture", model->architecture);
        json_put_key_word(to, "quantization", model->quantisation);
        json_put_key_uint(to, "n_vocab", model->vocab);
        json_put_key_uint(to, "n_ctx_train", model->trained_context);
        json_put_key_uint(to, "n_params", model->parameters);
        json_put_key_uint(to, "size", model->bytes);
        json_put_key_word(to, "digest", model->digest);
        json_put_object_end(to);
        json_put_object_end(to);
}

static void list(struct call *call)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        struct smv_client *client = link_client(call->link);
        char first[SMV_NAME_BYTES_MAX + 1] = "", last[SMV_NAME_BYTES_MAX + 1] = "";
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        json_put_object(&to);
        json_put_key_word(&to, "object", "list");
        json_put_key(&to, "data");
        json_put_array(&to);
        for (size_t i = 0; !smv_model(client, i, &model); i++) {
                put_model(&to, &model);
                snprintf(last, sizeof(last), "%s", model.name);
                if (!i)
                        snprintf(first, sizeof(first), "%s", model.name);
        }
        json_put_array_end(&to);
        json_put_key_bool(&to, "has_more", false);
        json_put_key_word(&to, "first_id", *first ? first : NULL);
        json_put_key_word(&to, "last_id", *last ? last : NULL);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

void openai_models(struct call *call)
{
        call_with_daemon(call, list);
}

static void one(struct call *call)
{
        struct smv_model model;
        const char *name;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);
        struct failure failure;

        if (!bridge_model(call, call->tail, &name))
                return;
        if (!name || !bridge_find_model(call, name, &model)) {
                failure = call_no_model(call);
                call_fail(call, &failure);
                return;
        }
        put_model(&to, &model);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

void openai_model(struct call *call)
{
        call_with_daemon(call, one);
}
