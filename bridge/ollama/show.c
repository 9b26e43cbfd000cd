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

#define TOOL_NAME "get_example"
#define THOUGHT   "an-example-of-a-thought"
#define PARAMETERS                                                                                 \
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"description\":"      \
        "\"A name\"}},\"required\":[\"name\"]}"
#define PARAMETER_NODES 64u
#define WHY_BYTES       128u
#define KEY_BYTES       128u

/*
 * The examples that are rendered, in this order.  A template may refuse any of them; then it cannot
 * do that.
 */
enum example {
        EXAMPLE_TOOL,    /* a tool is offered */
        EXAMPLE_THOUGHT, /* the assistant has thought */
        EXAMPLE_THINK,   /* the template is told to let the model think ... */
        EXAMPLE_SILENT,  /* ... or not to: is the prompt another one? */
        EXAMPLE_N,
};

struct show {
        struct text model;
        const char *name; /* the daemon's */
        enum example example;
        struct json_document *parameters; /* of the tool */
        struct text rendered[EXAMPLE_N];  /* at NULL: the template has refused it */
};

static void clean(struct call *call)
{
        struct show *show = call->own;

        show->parameters = json_free(show->parameters);
}

/* ---- the answer ---- */

static bool has(struct text text, const char *words)
{
        return text.at && memmem(text.at, text.bytes, words, strlen(words));
}

static bool can_think(const struct show *show)
{
        struct text think = show->rendered[EXAMPLE_THINK], silent = show->rendered[EXAMPLE_SILENT];

        if (has(show->rendered[EXAMPLE_THOUGHT], THOUGHT))
                return true;
        return think.at && silent.at &&
               (think.bytes != silent.bytes || memcmp(think.at, silent.at, think.bytes));
}

static void put_capabilities(struct json_builder *to, const struct show *show)
{
        json_put_key(to, "capabilities");
        json_put_array(to);
        json_put_word(to, "completion");
        if (has(show->rendered[EXAMPLE_TOOL], TOOL_NAME))
                json_put_word(to, "tools");
        if (can_think(show))
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
        struct text template = show->rendered[EXAMPLE_TOOL];
        char modified_at[TIMESTAMP_BYTES], line[KEY_BYTES];

        if (!template.at)
                template = show->rendered[EXAMPLE_THINK];
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
        put_capabilities(to, show);
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

/* ---- the examples ---- */

static void add_turn(struct conversation *conversation, enum turn_role role, const char *text)
{
        struct turn *turn = conversation_turn(conversation, role);

        if (!turn)
                return;
        turn->content = (struct text){ text, strlen(text) };
        if (role == TURN_ASSISTANT)
                turn->reasoning = TEXT(THOUGHT);
}

static void add_tool(struct conversation *conversation)
{
        struct tool *tool = conversation_tool(conversation);

        if (!tool)
                return;
        tool->name = TEXT(TOOL_NAME);
        tool->description = TEXT("Gets an example");
        tool->schema = 0;
}

static int make_example(struct call *call, struct smv_generate *options)
{
        const struct show *show = call->own;
        struct conversation conversation = { .arena = &call->arena,
                                             .json = show->parameters,
                                             .continuation = ASKED_NO };

        *options = (struct smv_generate){ SMV_SIZE(smv_generate), .model = show->name };
        add_turn(&conversation, TURN_USER, "{{ .Prompt }}");
        if (show->example == EXAMPLE_TOOL)
                add_tool(&conversation);
        else if (show->example == EXAMPLE_THOUGHT)
                add_turn(&conversation, TURN_ASSISTANT, "{{ .Response }}");
        else
                conversation_think(&conversation, show->example == EXAMPLE_THINK);
        return conversation_pack(&conversation, options);
}

static void ask_example(struct call *call);

static void next(struct call *call)
{
        struct show *show = call->own;

        if (++show->example < EXAMPLE_N && link_client(call->link))
                ask_example(call);
        else
                reply(call);
}

static void on_rendered(struct call *call, const struct smv_event *answer)
{
        struct show *show = call->own;

        show->rendered[show->example] = arena_copy(&call->arena, answer->text, answer->text_bytes);
        if (call->arena.failed)
                call_no_memory(call);
        else
                next(call);
}

static void on_not_rendered(struct call *call, const struct failure *failure)
{
        (void)failure;
        next(call);
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
        if (!bridge_find_model(call, show->name, &model) || !model.chat)
                reply(call);
        else if (json_parse(PARAMETERS, strlen(PARAMETERS), PARAMETER_NODES, &show->parameters, why,
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
