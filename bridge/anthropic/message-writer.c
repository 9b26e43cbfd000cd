#include "bridge/anthropic/message-writer.h"

#include <errno.h>

#include "bridge/core/bridge.h"

#define PING "event: ping\ndata: {\"type\": \"ping\"}\n\n"

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

static void put_miss_reason(struct json_builder *to, const struct anthropic_message *message)
{
        static const char *const names[] = {
                [CACHE_MISS_UNKNOWN] = "unavailable",
                [CACHE_MISS_TOOLS] = "tools_changed",
                [CACHE_MISS_SYSTEM] = "system_changed",
                [CACHE_MISS_MESSAGES] = "messages_changed",
        };
        const struct cache_miss *miss = &message->request.miss;
        uint64_t prompt = run_usage(message->run).prompt;

        json_put_object(to);
        json_put_key_word(to, "type", names[miss->part]);
        if (miss->part != CACHE_MISS_UNKNOWN)
                json_put_key_uint(to, "cache_missed_input_tokens",
                                  prompt > miss->diverged_at ? prompt - miss->diverged_at : 0);
        json_put_object_end(to);
}

/* Only if the client asked.  ended false: the reason is not known yet, which is null. */
static void put_diagnostics(struct json_builder *to, const struct anthropic_message *message,
                            bool ended)
{
        if (!message->request.diagnose)
                return;
        json_put_key(to, "diagnostics");
        if (ended && !message->request.miss.diverged_at) {
                json_put_null(to);
                return;
        }
        json_put_object(to);
        json_put_key(to, "cache_miss_reason");
        if (ended)
                put_miss_reason(to, message);
        else
                json_put_null(to);
        json_put_object_end(to);
}

/* The message up to its content. */
static void put_head(struct json_builder *to, const struct anthropic_message *message)
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
        put_diagnostics(&to, call->own, false);
        put_usage(&to, run);
        json_put_object_end(&to);
        json_put_object_end(&to);
        call_event_send(call, &to);
}

static void on_piece(struct run *run, uint32_t index, const struct run_piece *piece)
{
        struct anthropic_message *message = run->own;

        (void)index;
        blocks_add(&message->blocks, piece);
}

static void end_stream(struct call *call)
{
        const struct anthropic_message *message = call->own;
        const struct run *run = message->run;
        struct json_builder to;

        to = begin_event(call, "message_delta");
        json_put_key(&to, "delta");
        json_put_object(&to);
        put_stop(&to, &run->choices[0]);
        put_diagnostics(&to, message, true);
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

static void reply_whole(struct call *call)
{
        const struct anthropic_message *message = call->own;
        const struct run *run = message->run;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        put_head(&to, message);
        blocks_put(&message->blocks, run->choices[0].last.reason == SMV_END_LENGTH, &to);
        put_stop(&to, &run->choices[0]);
        put_diagnostics(&to, message, true);
        put_usage(&to, run);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

static void on_done(struct run *run)
{
        struct anthropic_message *message = run->own;
        void (*finish)(struct call * call) = message->request.stream ? end_stream : reply_whole;
        uint32_t diverged_at = run->choices[0].last.diverged_at;

        if (!blocks_end(&message->blocks))
                return;
        if (message->request.diagnose && diverged_at)
                cache_miss_find(run->call, &message->request.miss, &message->request.options,
                                diverged_at, finish);
        else
                finish(run->call);
}

/* ---- refusals ---- */

/* Agents look for these words, and shorten the conversation by the two numbers. */
static void on_counted(struct call *call, const struct smv_event *answer)
{
        struct anthropic_message *message = call->own;
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
        const struct anthropic_message *message = call->own;

        (void)failure;
        call_fail(call, &message->too_long);
}

/* The daemon's refusal has the numbers only as words; so the prompt is counted here. */
static void ask_count(struct call *call)
{
        const struct anthropic_message *message = call->own;
        struct smv_client *client = link_client(call->link);
        uint32_t request = 0;
        int r = client ? smv_ask_template(client, &message->request.options, 1, &request)
                       : -ENOTCONN;

        call->on_refused = on_not_counted;
        call_ask(call, r, request, on_counted);
}

static void on_failed(struct run *run, const struct failure *failure)
{
        struct anthropic_message *message = run->own;

        if (failure->class != FAILURE_TOO_LONG || run->begun) {
                call_fail(run->call, failure);
                return;
        }
        message->too_long = failure_make(FAILURE_TOO_LONG, failure->param, "prompt is too long: %s",
                                         failure->message);
        ask_count(run->call);
}

const struct run_ops anthropic_streamed = {
        .begun = on_begun,
        .piece = on_piece,
        .done = on_done,
        .failed = on_failed,
};
const struct run_ops anthropic_whole = {
        .piece = on_piece,
        .done = on_done,
        .failed = on_failed,
};
