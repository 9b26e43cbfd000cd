#include "bridge/anthropic/messages.h"

#include "bridge/anthropic/message-writer.h"
#include "bridge/core/bridge.h"
#include "bridge/core/sampling.h"

static void clean(struct call *call)
{
        struct anthropic_message *message = call->own;

        message->run = run_deinit(message->run);
        blocks_deinit(&message->blocks);
}

/* ---- the request ---- */

/* Programs ask models for a budget that do not reason, too. */
static void apply_budget(struct call *call, struct anthropic_request *request)
{
        struct smv_model model;

        if (request->has_budget && bridge_find_model(call, request->options.model, &model) &&
            model.reasoning)
                sampling_limit_reasoning((int64_t)request->budget, &request->options);
}

static void go(struct call *call)
{
        struct anthropic_message *message = call->own;
        struct anthropic_request *request = &message->request;

        if (!bridge_model(call, request->model, &request->options.model))
                return;
        apply_budget(call, request);
        blocks_init(&message->blocks, call, request->stream);
        message->run = run_new(call, &request->options,
                               request->stream ? &anthropic_streamed : &anthropic_whole, message);
        if (!message->run) {
                call_no_memory(call);
                return;
        }
        message->run->one_call = request->one_call;
        message->run->explains_miss = request->diagnose;
        run_start(message->run);
}

/* Reads what both routes take, and makes call->own; false: the call has failed. */
static bool begin(struct call *call, struct fields *fields, struct anthropic_message **ret_message)
{
        if (!call_read_json(call))
                return false;
        fields->json = call->json;
        call->own = *ret_message = arena_alloc(&call->arena, sizeof(**ret_message));
        if (*ret_message)
                anthropic_read_prompt(call, fields, &(*ret_message)->request);
        return true;
}

static void proceed(struct call *call, const struct fields *fields, void (*next)(struct call *call))
{
        if (!call_was_read(call, fields))
                return;
        call->clean = clean;
        call_with_daemon(call, next);
}

void anthropic_messages(struct call *call)
{
        struct fields fields = { 0 };
        struct anthropic_message *message;

        if (!begin(call, &fields, &message))
                return;
        if (message) {
                anthropic_read_options(call, &fields, &message->request);
                call_identifier(call, "msg_", message->id, sizeof(message->id));
        }
        proceed(call, &fields, go);
}

/* ---- count_tokens ---- */

static void on_tokens(struct call *call, const struct smv_event *answer)
{
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        json_put_object(&to);
        json_put_key_uint(&to, "input_tokens", answer->token_count);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

static void count(struct call *call)
{
        struct anthropic_message *message = call->own;
        struct smv_generate *options = &message->request.options;
        uint32_t request = 0;
        int r;

        if (!bridge_model(call, message->request.model, &options->model))
                return;
        r = smv_ask_template(link_client(call->link), options, 1, &request);
        call_ask(call, r, request, on_tokens);
}

void anthropic_count_tokens(struct call *call)
{
        struct fields fields = { 0 };
        struct anthropic_message *message;

        if (begin(call, &fields, &message))
                proceed(call, &fields, count);
}
