#include "bridge/ollama/models.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bridge/core/bridge.h"
#include "bridge/core/fields.h"
#include "bridge/core/timestamp.h"
#include "bridge/ollama/request.h"

/* Programs compare it with the version that a feature came with; these features are all there. */
#define VERSION "0.20.0"
/* No model leaves the memory while the daemon runs; Ollama writes a year like this for that. */
#define FOR_EVER "2318-01-01T00:00:00Z"

/* "3.7M" */
static void write_size(uint64_t parameters, char to[16])
{
        static const char units[] = " KMBT";
        double value = (double)parameters;
        size_t unit = 0;

        for (; value >= 999.95 && unit + 1 < sizeof(units) - 1; unit++)
                value /= 1000;
        if (unit)
                snprintf(to, 16, "%.1f%c", value, units[unit]);
        else
                snprintf(to, 16, "%.0f", value);
}

void ollama_put_details(struct json_builder *to, const struct smv_model *model)
{
        char size[16];

        write_size(model->parameters, size);
        json_put_key(to, "details");
        json_put_object(to);
        json_put_key_word(to, "parent_model", "");
        json_put_key_word(to, "format", model->format);
        json_put_key_word(to, "family", model->architecture);
        json_put_key(to, "families");
        json_put_array(to);
        json_put_word(to, model->architecture);
        json_put_array_end(to);
        json_put_key_word(to, "parameter_size", size);
        json_put_key_word(to, "quantization_level", model->quantisation);
        json_put_object_end(to);
}

/* Every name of Ollama has a tag.  The object stays open. */
static void put_model(struct json_builder *to, const struct smv_model *model)
{
        char name[128], modified_at[TIMESTAMP_BYTES];

        snprintf(name, sizeof(name), "%s%s", model->name,
                 strchr(model->name, ':') ? "" : ":latest");
        timestamp_of_s(model->modified_s, modified_at);
        json_put_object(to);
        json_put_key_word(to, "name", name);
        json_put_key_word(to, "model", name);
        json_put_key_word(to, "modified_at", modified_at);
        json_put_key_uint(to, "size", model->bytes);
        json_put_key_word(to, "digest", model->digest);
        ollama_put_details(to, model);
}

/* ---- tags ---- */

static void put_tags(struct call *call)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        json_put_object(&to);
        json_put_key(&to, "models");
        json_put_array(&to);
        for (size_t i = 0; !smv_model(link_client(call->link), i, &model); i++) {
                put_model(&to, &model);
                json_put_object_end(&to);
        }
        json_put_array_end(&to);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

void ollama_tags(struct call *call)
{
        call_with_daemon(call, put_tags);
}

/* ---- ps ---- */

/* The layers of a model are alike, so their share is that of its bytes. */
static uint64_t bytes_on_gpu(const struct smv_model *model)
{
        if (!model->layers || model->gpu_layers >= model->layers)
                return model->layers ? model->bytes : 0;
        return (uint64_t)((double)model->bytes * model->gpu_layers / model->layers);
}

static void put_running(struct call *call)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        struct smv_client *client = link_client(call->link);
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        json_put_object(&to);
        json_put_key(&to, "models");
        json_put_array(&to);
        for (size_t i = 0; client && !smv_model(client, i, &model); i++) {
                put_model(&to, &model);
                json_put_key_word(&to, "expires_at", FOR_EVER);
                json_put_key_uint(&to, "size_vram", bytes_on_gpu(&model));
                json_put_key_uint(&to, "context_length", model.context);
                json_put_object_end(&to);
        }
        json_put_array_end(&to);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

void ollama_ps(struct call *call)
{
        call_with_daemon(call, put_running);
}

/* ---- version ---- */

void ollama_version(struct call *call)
{
        static const char body[] = "{\"version\":\"" VERSION "\"}";

        call_reply(call, 200, "application/json", body, sizeof(body) - 1);
}

/* ---- pull ---- */

struct pull {
        struct text model;
        bool stream;
};

static bool put_status(struct call *call, const char *status, const struct smv_model *model)
{
        struct json_builder to = call_event(call, NULL);
        char digest[80];

        json_put_object(&to);
        json_put_key_word(&to, "status", status);
        if (model) {
                snprintf(digest, sizeof(digest), "sha256:%s", model->digest);
                json_put_key_word(&to, "digest", digest);
                json_put_key_uint(&to, "total", model->bytes);
                json_put_key_uint(&to, "completed", model->bytes);
        }
        json_put_object_end(&to);
        return call_event_send(call, &to);
}

/* A model that is served is there already: the steps that programs show are all done. */
static void stream_pull(struct call *call, const struct smv_model *model)
{
        char pulling[32];

        snprintf(pulling, sizeof(pulling), "pulling %.12s", model->digest);
        call_stream(call, CALL_LINES, NULL);
        if (put_status(call, "pulling manifest", NULL) && put_status(call, pulling, model) &&
            put_status(call, "verifying sha256 digest", NULL) &&
            put_status(call, "writing manifest", NULL) && put_status(call, "success", NULL))
                call_finish(call);
}

static void pull(struct call *call)
{
        static const char success[] = "{\"status\":\"success\"}";
        const struct pull *wanted = call->own;
        struct smv_model model;
        struct failure failure;
        const char *name;

        if (!bridge_model(call, wanted->model, &name))
                return;
        if (!bridge_find_model(call, name, &model)) {
                failure = failure_make(FAILURE_NO_MODEL, "model",
                                       "model '%.*s' cannot be pulled: samovard serves only the "
                                       "models that it was started with",
                                       (int)wanted->model.bytes, wanted->model.at);
                call_fail(call, &failure);
        } else if (wanted->stream) {
                stream_pull(call, &model);
        } else {
                call_reply(call, 200, "application/json", success, sizeof(success) - 1);
        }
}

void ollama_pull(struct call *call)
{
        struct fields fields = { 0 };
        struct pull *wanted;

        if (!call_read_json(call))
                return;
        fields.json = call->json;
        call->own = wanted = arena_alloc(&call->arena, sizeof(*wanted));
        if (!wanted) {
                call_no_memory(call);
                return;
        }
        wanted->stream = true;
        ollama_read_model(&fields, &wanted->model);
        field_bool(&fields, 0, "stream", &wanted->stream);
        if (fields.failed)
                call_fail(call, &fields.failure);
        else
                call_with_daemon(call, pull);
}
