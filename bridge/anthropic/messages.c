#include "bridge/anthropic/messages.h"

#include <errno.h>

#include "bridge/anthropic/blocks.h"
#include "bridge/anthropic/request.h"
#include "bridge/core/bridge.h"
#include "bridge/core/identifier.h"
#include "bridge/core/run.h"

#define PING "event: ping\ndata: {\"type\": \"ping\"}\n\n"

struct message {
        char id[48];
        struct anthropic_request request;
        struct blocks blocks;
        struct run *run;
        struct failure too_long; /* the daemon's refusal, until the tokens are counted */
};

static void clean(struct call *call)
{
        struct message *message = call->own;

        message->run = run_deinit(message->run);
        blocks_deinit(&message->blocks);
}

/* ---- what both forms have ---- */

static const char *stop_reason(const struct run_choice *choice)
{
        switch (choice->end) {
        case RUN_STOP:
                return "stop_sequence";
        case RUN_LENGTH:
                return "max_tokens";
        case RUN_CONTEXT:
                return "model_context_window_exceeded";
        case RUN_CALLS:
                return "tool_use";
        default:
                return "end_turn";
        }
}

/* choice NULL: it has not ended. */
static void put_stop(struct json_builder *to, const struct run_choice *choice)
{
        json_put_key_word(to, "stop_reason", choice ? stop_reason(choice) : NULL);
        if (choice && choice->end == RUN_STOP)
                json_put_key_text(to, "stop_sequence", choice->stop_text.at,
                                  choice->stop_text.bytes);
        else
                json_put_key_null(to, "stop_sequence");
}

static const char *tier_name(const struct smv_generate *options)
{
        if (options->priority == SMV_PRIORITY_BACKGROUND)
                return "batch";
        return options->priority == SMV_PRIORITY_INTERACTIVE ? "priority" : "standard";
}

/* Cached tokens do not count as input, and writing to the cache costs nothing. */
static void put_usage(struct json_builder *to, const struct run *run)
{
        struct run_usage usage = run_usage(run);

        json_put_key(to, "usage");
        json_put_object(to);
        json_put_key_uint(to, "input_tokens",
                          usage.prompt > usage.cached ? usage.prompt - usage.cached : 0);
        json_put_key_uint(to, "cache_creation_input_tokens", 0);
        json_put_key_uint(to, "cache_read_input_tokens", usage.cached);
        json_put_key_uint(to, "output_tokens", usage.output);
        json_put_key(to, "output_tokens_details");
        json_put_object(to);
        json_put_key_uint(to, "thinking_tokens", usage.reasoning);
        json_put_object_end(to);
        json_put_key_word(to, "service_tier", tier_name(&run->options));
        json_put_object_end(to);
}

/* The message up to its content. */
static void put_head(struct json_builder *to, const struct message *message)
{
        json_put_object(to);
        json_put_key_word(to, "id", message->id);
        json_put_key_word(to, "type", "message");
        json_put_key_word(to, "role", "assistant");
        json_put_key_text(to, "model", message->request.model.at, message->request.model.bytes);
        json_put_key(to, "content");
}

/* ---- streamed ---- */

static struct json_builder begin_event(struct call *call, const char *type)
{
        struct json_builder to = call_event(call, type);

        json_put_object(&to);
        json_put_key_word(&to, "type", type);
        return to;
}

/* How much of the prompt is cached is known at the end; message_delta overrides these counts. */
static void on_begun(struct run *run)
{
        struct call *call = run->call;
        struct json_builder to;

        call_stream(call, CALL_EVENTS, PING);
        to = begin_event(call, "message_start");
        json_put_key(&to, "message");
        put_head(&to, call->own);
        json_put_array(&to);
        json_put_array_end(&to);
        put_stop(&to, NULL);
        put_usage(&to, run);
        json_put_object_end(&to);
        json_put_object_end(&to);
        call_event_send(call, &to);
}

static void on_piece(struct run *run, uint32_t index, const struct run_piece *piece)
{
        struct message *message = run->own;

        (void)index;
        blocks_add(&message->blocks, piece);
}

static void on_done(struct run *run)
{
        struct call *call = run->call;
        struct message *message = run->own;
        struct json_builder to;

        if (!blocks_end(&message->blocks))
                return;
        to = begin_event(call, "message_delta");
        json_put_key(&to, "delta");
        json_put_object(&to);
        put_stop(&to, &run->choices[0]);
        json_put_object_end(&to);
        put_usage(&to, run);
        json_put_object_end(&to);
        if (!call_event_send(call, &to))
                return;
        to = begin_event(call, "message_stop");
        json_put_object_end(&to);
        if (call_event_send(call, &to))
                call_finish(call);
}

/* ---- whole ---- */

static void on_whole(struct run *run)
{
        struct message *message = run->own;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (!blocks_end(&message->blocks))
                return;
        put_head(&to, message);
        blocks_put(&message->blocks, &to);
        put_stop(&to, &run->choices[0]);
        put_usage(&to, run);
        json_put_object_end(&to);
        call_reply_json(run->call, &to, &body);
        bytes_deinit(&body);
}

/* ---- refusals ---- */

/* Agents look for these words, and shorten the conversation by the two numbers. */
static void on_counted(struct call *call, const struct smv_event *answer)
{
        struct message *message = call->own;
        struct smv_model model;

        if (bridge_find_model(call, message->request.options.model, &model) &&
            answer->token_count >= model.context)
                message->too_long = failure_make(FAILURE_TOO_LONG, "messages",
                                                 "prompt is too long: %zu tokens > %u maximum",
                                                 answer->token_count, model.context);
        call_fail(call, &message->too_long);
}

static void on_not_counted(struct call *call, const struct failure *failure)
{
        const struct message *message = call->own;

        (void)failure;
        call_fail(call, &message->too_long);
}

/* The daemon's refusal has the numbers only as words; so the prompt is counted here. */
static void ask_count(struct call *call)
{
        const struct message *message = call->own;
        struct smv_client *client = link_client(call->link);
        uint32_t request = 0;
        int r = client ? smv_ask_template(client, &message->request.options, 1, &request)
                       : -ENOTCONN;

        call->on_refused = on_not_counted;
        call_ask(call, r, request, on_counted);
}

static void on_failed(struct run *run, const struct failure *failure)
{
        struct message *message = run->own;

        if (failure->class != FAILURE_TOO_LONG || run->begun) {
                call_fail(run->call, failure);
                return;
        }
        message->too_long = failure_make(FAILURE_TOO_LONG, failure->param, "prompt is too long: %s",
                                         failure->message);
        ask_count(run->call);
}

static const struct run_ops streamed = {
        .begun = on_begun,
        .piece = on_piece,
        .done = on_done,
        .failed = on_failed,
};
static const struct run_ops whole = { .piece = on_piece, .done = on_whole, .failed = on_failed };

/* ---- the request ---- */

static void go(struct call *call)
{
        struct message *message = call->own;
        struct anthropic_request *request = &message->request;

        request->options.model = bridge_model(call, request->model);
        blocks_init(&message->blocks, call, request->stream);
        message->run =
                run_new(call, &request->options, request->stream ? &streamed : &whole, message);
        if (!message->run) {
                call_no_memory(call);
                return;
        }
        message->run->one_call = request->one_call;
        run_start(message->run);
}

/* Reads what both routes take, and makes call->own; false: the call has failed. */
static bool begin(struct call *call, struct fields *fields, struct message **ret_message)
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
        if (call->arena.failed) {
                call_no_memory(call);
                return;
        }
        if (fields->failed) {
                call_fail(call, &fields->failure);
                return;
        }
        call->clean = clean;
        call_with_daemon(call, next);
}

void anthropic_messages(struct call *call)
{
        struct fields fields = { 0 };
        struct message *message;

        if (!begin(call, &fields, &message))
                return;
        if (message) {
                anthropic_read_options(call, &fields, &message->request);
                identifier_make("msg_", message->id, sizeof(message->id));
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
        struct message *message = call->own;
        struct smv_generate *options = &message->request.options;
        uint32_t request = 0;
        int r;

        options->model = bridge_model(call, message->request.model);
        r = smv_ask_template(link_client(call->link), options, 1, &request);
        call_ask(call, r, request, on_tokens);
}

void anthropic_count_tokens(struct call *call)
{
        struct fields fields = { 0 };
        struct message *message;

        if (begin(call, &fields, &message))
                proceed(call, &fields, count);
}
