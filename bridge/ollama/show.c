#include "bridge/ollama/show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bridge/core/bridge.h"
#include "bridge/core/conversation.h"
#include "bridge/core/fields.h"
#include "bridge/core/timestamp.h"
#include "bridge/ollama/models.h"
#include "bridge/ollama/request.h"
#include "json/reader.h"

/* Programs look for the word "tools" in the template (litellm). */
#define TOOL_NAME "tools_example"
#define PARAMETERS                                                                                 \
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"description\":"      \
        "\"A name\"}},\"required\":[\"name\"]}"
#define PARAMETER_NODES 64u
#define WHY_BYTES       128u
#define KEY_BYTES       128u

struct show {
        struct text model;
        const char *name;                 /* the daemon's */
        bool tools;                       /* the example has a tool */
        struct json_document *parameters; /* of the tool */
        struct text rendered; /* at NULL: the template has refused it, or there is none */
};

static void clean(struct call *call)
{
        struct show *show = call->own;

        show->parameters = json_free(show->parameters);
}

/* ---- the answer ---- */

static void put_capabilities(struct json_builder *to, const struct smv_model *model)
{
        json_put_key(to, "capabilities");
        json_put_array(to);
        json_put_word(to, "completion");
        if (model->chat && *model->tool_dialect)
                json_put_word(to, "tools");
        if (model->chat && model->reasoning)
                json_put_word(to, "thinking");
        json_put_array_end(to);
}

static void put_architecture_key(struct json_builder *to, const char *architecture,
                                 const char *name, uint64_t value)
{
        char key[KEY_BYTES];

        snprintf(key, sizeof(key), "%.80s.%s", architecture, name);
        json_put_key_uint(to, key, value);
}

static void put_info(struct json_builder *to, const struct smv_model *model)
{
        const char *architecture = *model->architecture ? model->architecture : "unknown";

        json_put_key(to, "model_info");
        json_put_object(to);
        json_put_key_word(to, "general.architecture", architecture);
        json_put_key_word(to, "general.basename", model->name);
        json_put_key_uint(to, "general.parameter_count", model->parameters);
        put_architecture_key(to, architecture, "context_length", model->context);
        put_architecture_key(to, architecture, "vocab_size", model->vocab);
        json_put_object_end(to);
}

static void put_show(struct json_builder *to, const struct show *show,
                     const struct smv_model *model)
{
        struct text template = show->rendered;
        char modified_at[TIMESTAMP_BYTES], line[KEY_BYTES];

        if (!template.at)
                template = TEXT("{{ .Prompt }}"); /* Ollama's words for none */
        timestamp_of_s(model->modified_s, modified_at);
        json_put_object(to);
        snprintf(line, sizeof(line), "FROM %s\n", model->name);
        json_put_key_word(to, "modelfile", line);
        snprintf(line, sizeof(line), "num_ctx %u", model->context);
        json_put_key_word(to, "parameters", line);
        json_put_key_text(to, "template", template.at, template.bytes);
        ollama_put_details(to, model);
        put_info(to, model);
        put_capabilities(to, model);
        json_put_key_word(to, "modified_at", modified_at);
        json_put_object_end(to);
}

/* The connection may be another one by now, and with it the model. */
static void reply(struct call *call)
{
        const struct show *show = call->own;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);
        struct smv_model model;
        struct failure failure;

        if (!bridge_find_model(call, show->name, &model)) {
                failure = link_client(call->link) ? call_no_model(call)
                                                  : call_ask_failure(call, -ENOTCONN);
                call_fail(call, &failure);
                return;
        }
        put_show(&to, show, &model);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

/* ---- the example ---- */

static void add_tool(struct conversation *conversation)
{
        struct tool *tool = conversation_tool(conversation);

        if (!tool)
                return;
        tool->name = TEXT(TOOL_NAME);
        tool->description = TEXT("An example");
        tool->schema = 0;
}

static int make_example(struct call *call, struct smv_generate *options)
{
        const struct show *show = call->own;
        struct conversation conversation = { .arena = &call->arena,
                                             .json = show->parameters,
                                             .continuation = ASKED_NO };

        struct turn *turn;

        *options = (struct smv_generate){ SMV_SIZE(smv_generate), .model = show->name };
        turn = conversation_turn(&conversation, TURN_USER);
        if (turn)
                turn->content = TEXT("{{ .Prompt }}");
        if (show->tools)
                add_tool(&conversation);
        return conversation_pack(&conversation, options);
}

static void on_rendered(struct call *call, const struct smv_event *answer)
{
        struct show *show = call->own;

        show->rendered = arena_copy(&call->arena, answer->text, answer->text_bytes);
        if (call->arena.failed)
                call_no_memory(call);
        else
                reply(call);
}

static void on_not_rendered(struct call *call, const struct failure *failure)
{
        (void)failure;
        reply(call);
}

static void ask_example(struct call *call)
{
        struct smv_generate options;
        uint32_t request = 0;
        int r;

        if (make_example(call, &options)) {
                call_no_memory(call);
                return;
        }
        call->on_refused = on_not_rendered;
        r = smv_ask_template(link_client(call->link), &options, 0, &request);
        call_ask(call, r, request, on_rendered);
}

/* ---- the request ---- */

static void go(struct call *call)
{
        struct show *show = call->own;
        struct smv_model model;
        char why[WHY_BYTES];

        if (!bridge_model(call, show->model, &show->name))
                return;
        if (!bridge_find_model(call, show->name, &model) || !model.chat) {
                reply(call);
                return;
        }
        show->tools = *model.tool_dialect;
        if (json_parse(PARAMETERS, strlen(PARAMETERS), PARAMETER_NODES, &show->parameters, why,
                       sizeof(why)))
                call_no_memory(call);
        else
                ask_example(call);
}

void ollama_show(struct call *call)
{
        struct fields fields = { 0 };
        struct show *show;

        if (!call_read_json(call))
                return;
        fields.json = call->json;
        call->own = show = arena_alloc(&call->arena, sizeof(*show));
        if (!show) {
                call_no_memory(call);
                return;
        }
        ollama_read_model(&fields, &show->model);
        if (fields.failed) {
                call_fail(call, &fields.failure);
                return;
        }
        call->clean = clean;
        call_with_daemon(call, go);
}
