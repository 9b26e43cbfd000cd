#include "bridge/openai/responses.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "bridge/core/bridge.h"
#include "bridge/core/constraint.h"
#include "bridge/core/tools.h"
#include "bridge/core/conversation.h"
#include "bridge/core/history.h"
#include "bridge/core/logprobs.h"
#include "bridge/core/run.h"
#include "bridge/core/sampling.h"
#include "bridge/core/vocabulary.h"
#include "bridge/openai/options.h"
#include "bridge/openai/response-items.h"
#include "bridge/openai/response-store.h"
#include "bridge/openai/response-writer.h"
#include "json/reader.h"

#define NODES_MAX 4000000u
#define WHY_BYTES 128u

struct responses {
        struct response_writer writer;
        struct smv_generate options;
        struct run *run;
        bool many_calls; /* not only the first call is shown */
        struct conversation conversation;
        struct json_document *before; /* items of the responses before, a JSON array; or NULL */
        struct history_plan plan;
        struct history *history; /* NULL: all messages go to the daemon with the run */
};

static void clean(struct call *call)
{
        struct responses *responses = call->own;

        responses->run = run_deinit(responses->run);
        history_drop(responses->history);
        response_deinit(&responses->writer);
        responses->before = json_free(responses->before);
}

/* ---- storing ---- */

/* The items of the request: a text is one message. */
static void put_input(struct json_builder *to, const struct json_document *json)
{
        uint32_t input = json_member(json, 0, "input");
        size_t bytes = 0;
        const char *text = json_string(json, input, &bytes);

        if (!text) {
                for (uint32_t item = json_first(json, input); item != JSON_NONE;
                     item = json_next(json, item))
                        json_put_node(to, json, item);
                return;
        }
        json_put_object(to);
        json_put_key_word(to, "type", "message");
        json_put_key_word(to, "role", "user");
        json_put_key(to, "content");
        json_put_array(to);
        json_put_object(to);
        json_put_key_word(to, "type", "input_text");
        json_put_key_text(to, "text", text, bytes);
        json_put_object_end(to);
        json_put_array_end(to);
        json_put_object_end(to);
}

/* The message that follows goes on where the last one ends. */
static void put_continues(struct json_builder *to)
{
        json_put_object(to);
        json_put_key_word(to, "type", RESPONSE_CONTINUES);
        json_put_object_end(to);
}

static int put_all(struct responses *responses, struct bytes *body, struct bytes *input,
                   struct bytes *items)
{
        struct call *call = responses->writer.call;
        struct json_builder to = json_build(body);
        int r;

        response_put(&responses->writer, &to);
        r = json_put_end(&to);
        to = json_build(input);
        json_put_array(&to);
        put_input(&to, call->json);
        json_put_array_end(&to);
        r = r ? r : json_put_end(&to);
        to = json_build(items);
        json_put_array(&to);
        for (uint32_t item = responses->before ? json_first(responses->before, 0) : JSON_NONE;
             item != JSON_NONE; item = json_next(responses->before, item))
                json_put_node(&to, responses->before, item);
        put_input(&to, call->json);
        if (responses->options.continue_final_message)
                put_continues(&to);
        response_put_items(&responses->writer, &to);
        json_put_array_end(&to);
        return r ? r : json_put_end(&to);
}

/* Do the items say what the tokens say?  A stop token and marks of a broken call are in these. */
static bool is_as_generated(const struct run *run)
{
        const struct run_choice *choice = &run->choices[0];

        if (run->options.ignore_eos || choice->last.stopped_by == SMV_STOPPED_BY_TOKEN ||
            choice->last.parts_flags & ~(unsigned)SMV_PARTS_LIMIT)
                return false;
        if (choice->end == RUN_LENGTH || choice->end == RUN_CONTEXT)
                return !choice->reasoning.count && !choice->calls;
        return !choice->calls || !run->one_call;
}

static void keep_history(struct responses *responses, struct stored *stored)
{
        const struct run *run = responses->run;
        struct run_usage usage = run_usage(run);

        if (responses->history && is_as_generated(run))
                history_keep(responses->history, &stored->history, usage.prompt + usage.output);
}

/* A response that cannot be stored was answered nevertheless. */
static void store(struct responses *responses)
{
        struct call *call = responses->writer.call;
        struct bytes body = { 0 }, input = { 0 }, items = { 0 };
        struct stored *stored;
        int r;

        if (!responses->writer.store)
                return;
        r = put_all(responses, &body, &input, &items);
        if (!r)
                r = response_store_add(call->bridge->responses, call, responses->writer.id, &body,
                                       &input, &items, &stored);
        if (!r)
                keep_history(responses, stored);
        else
                log_limited(LOG_WARN, "response_not_stored error=%s", strerror(-r));
        bytes_deinit(&body);
        bytes_deinit(&input);
        bytes_deinit(&items);
}

/* ---- answers ---- */

static void on_begun(struct run *run)
{
        struct responses *responses = run->own;

        if (!responses->writer.stream)
                return;
        call_stream(run->call, CALL_EVENTS, ": ping\n\n");
        response_begin(&responses->writer);
}

static void on_piece(struct run *run, uint32_t choice, const struct run_piece *piece)
{
        struct responses *responses = run->own;

        (void)choice;
        response_piece(&responses->writer, piece);
}

static void finish(struct call *call)
{
        struct responses *responses = call->own;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        response_end(&responses->writer);
        if (call->over)
                return;
        store(responses);
        if (responses->writer.stream) {
                call_finish(call);
                return;
        }
        response_put(&responses->writer, &to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

static void on_done(struct run *run)
{
        struct responses *responses = run->own;
        struct response_writer *writer = &responses->writer;
        uint32_t diverged_at = run->choices[0].last.diverged_at;

        if (writer->diagnose && diverged_at)
                cache_miss_find(run->call, &writer->miss, &responses->options, diverged_at, finish);
        else
                finish(run->call);
}

static void on_failed(struct run *run, const struct failure *failure)
{
        struct responses *responses = run->own;

        if (!run->call->streaming) {
                call_fail(run->call, failure);
                return;
        }
        response_fail(&responses->writer, failure);
        call_finish(run->call);
}

static void generate(struct call *call);

/* Perhaps not without the handle. */
static bool on_refused(struct run *run, const struct failure *failure)
{
        struct responses *responses = run->own;

        if (!responses->history)
                return false;
        log_debug("history_not_used error=%s", failure->message);
        history_drop(responses->history);
        run_deinit(run);
        generate(run->call);
        return true;
}

static const struct run_ops ops = {
        .begun = on_begun,
        .piece = on_piece,
        .done = on_done,
        .refused = on_refused,
        .failed = on_failed,
};

/* ---- the request ---- */

/* On the history, if there is one. */
static void generate(struct call *call)
{
        struct responses *responses = call->own;
        struct response_writer *writer = &responses->writer;
        struct smv_generate options = responses->options;

        if (responses->history) {
                options.handle = history_handle(responses->history);
                options.packed_messages = options.packed_vars = (struct smv_packed){ 0 };
                /* The history has told the model of the tools; the form of calls needs them. */
                if (!responses->conversation.strict && !options.tool_choice &&
                    !options.allowed_tool_count && !options.calls_max && !options.constraint)
                        options.packed_tools = (struct smv_packed){ 0 };
        }
        responses->run = run_new(call, &options, &ops, responses);
        writer->run = responses->run;
        if (!responses->run) {
                call_no_memory(call);
                return;
        }
        responses->run->one_call = !responses->many_calls;
        run_start(responses->run);
}

/*
 * A stream that goes on without its client has none, because no call is there when it ends; nor has
 * a line of a batch, of which there may be thousands.  An answer that continues a message becomes
 * one with it, and its handle would begin the answer where it does not begin.
 */
static bool wants_history(const struct call *call)
{
        const struct responses *responses = call->own;

        return responses->writer.store && !call->background && !call->attach_id &&
               !responses->options.continue_final_message && !run_keep_ms(call, 1);
}

static void plan_history(const struct call *call)
{
        struct responses *responses = call->own;
        const char *model = responses->options.model;

        responses->plan.model =
                model ? (struct text){ model, strlen(model) } : bridge_model_name(call);
        responses->plan.conversation = &responses->conversation;
        responses->plan.options = &responses->options;
        responses->plan.keep_ms = call->bridge->conf.response_keep_ms;
}

static void go(struct call *call)
{
        struct responses *responses = call->own;
        struct response_writer *writer = &responses->writer;
        struct stored *previous;

        if (!bridge_model(call, writer->model, &responses->options.model))
                return;
        if (!writer->model.bytes)
                writer->model = bridge_model_name(call);
        if (!wants_history(call)) {
                generate(call);
                return;
        }
        previous = response_store_find(call->bridge->responses, call, writer->previous_id);
        plan_history(call);
        history_make(call, &responses->plan, previous ? previous->history : NULL,
                     &responses->history, generate);
}

/* Fields that only come back with the response: they must be of the kind that a response has. */
static void check_echoes(struct fields *fields)
{
        struct text text;

        field_object(fields, 0, "metadata");
        field_text(fields, 0, "truncation", &text);
        field_text(fields, 0, "user", &text);
}

/* The items of the responses before, of the same principal. */
static void read_previous(struct call *call, struct fields *fields, struct responses *responses)
{
        struct conversation *conversation = &responses->conversation;
        struct fields before = { 0 };
        struct text id = { 0 };
        struct stored *stored;
        char why[WHY_BYTES];

        if (!field_text(fields, 0, "previous_response_id", &id))
                return;
        responses->writer.previous_id = id;
        stored = response_store_find(call->bridge->responses, call, id);
        if (!stored) {
                fields_fail(fields, FAILURE_NOT_FOUND, "previous_response_id",
                            "there is no stored response %.60s", id.at);
                return;
        }
        if (json_parse(stored->items.at, stored->items.count, NODES_MAX, &responses->before, why,
                       sizeof(why))) {
                call->arena.failed = true;
                return;
        }
        before.json = responses->before;
        response_read_input(&before, conversation, 0, true);
        responses->plan.last = conversation->last_turn;
        if (before.failed) {
                fields->failed = true;
                fields->failure = before.failure;
        }
}

static void read_logprobs(struct fields *fields, struct responses *responses)
{
        uint32_t include = field_array(fields, 0, "include");
        uint64_t top = 0;

        for (uint32_t at = json_first(fields->json, include); at != JSON_NONE;
             at = json_next(fields->json, at))
                responses->writer.logprobs |=
                        text_is(text_of(fields->json, at), "message.output_text.logprobs");
        field_uint(fields, 0, "top_logprobs", 0, LOGPROBS_TOP_MAX, &top);
        if (!responses->writer.logprobs)
                return;
        responses->options.logprobs = (uint32_t)top;
        responses->options.set |= SMV_SET_LOGPROBS;
}

static void read_format(struct call *call, struct fields *fields, struct responses *responses)
{
        uint32_t text = field_object(fields, 0, "text");

        constraint_read_format(call, fields, field_of(fields, text, "format"), "text.format",
                               &responses->options);
        constraint_settle(call, fields, &responses->options);
}

/* OpenAI compares with one response; the daemon compares with all that it has cached. */
static void read_diagnose(struct fields *fields, struct response_writer *writer)
{
        uint32_t options = field_object(fields, 0, "prompt_cache_options");
        struct text id;

        writer->diagnose = field_text(fields, options, "comparison_response_id", &id);
}

static void read_request(struct call *call, struct fields *fields, struct responses *responses)
{
        struct conversation *conversation = &responses->conversation;
        struct response_writer *writer = &responses->writer;

        responses->options = (struct smv_generate){ SMV_SIZE(smv_generate), .clamp = 1, .parts = 1,
                                                    .max_tokens = UINT32_MAX };
        conversation->arena = &call->arena;
        conversation->json = call->json;
        writer->call = call;
        writer->store = responses->many_calls = true;
        field_bool(fields, 0, "parallel_tool_calls", &responses->many_calls);
        field_text(fields, 0, "model", &writer->model);
        field_bool(fields, 0, "stream", &writer->stream);
        field_bool(fields, 0, "store", &writer->store);
        check_echoes(fields);
        field_refuse(fields, 0, "background", "a response runs while its client waits");
        field_refuse(fields, 0, "conversation", "use previous_response_id");
        field_refuse(fields, 0, "prompt", "there are no stored prompts");
        response_read_instructions(fields, conversation);
        read_previous(call, fields, responses);
        /* A response may be continued without anything new. */
        if (!writer->previous_id.bytes || field_of(fields, 0, "input") != JSON_NONE)
                response_read_input(fields, conversation, json_member(fields->json, 0, "input"),
                                    false);
        response_read_tools(fields, conversation, &responses->options);
        tools_settle(fields, conversation, !responses->many_calls, &responses->options);
        response_read_vars(fields, conversation);
        openai_read_sampling(call, fields, &responses->options);
        sampling_read_tier(fields, &responses->options);
        sampling_read_length(fields, 0, "max_output_tokens", &responses->options);
        read_logprobs(fields, responses);
        read_format(call, fields, responses);
        read_diagnose(fields, writer);
        writer->tier = openai_tier(&responses->options);
        if (!fields->failed && conversation_pack(conversation, &responses->options))
                call->arena.failed = true;
        writer->miss = cache_miss_of(conversation);
}

/* False: the call has failed. */
static bool begin(struct call *call)
{
        struct fields fields = { 0 };
        struct responses *responses;

        if (!call_read_json(call))
                return false;
        fields.json = call->json;
        call->own = responses = arena_alloc(&call->arena, sizeof(*responses));
        if (responses) {
                call->clean = clean;
                read_request(call, &fields, responses);
        }
        return call_was_read(call, &fields);
}

void openai_responses(struct call *call)
{
        struct responses *responses;

        if (!begin(call))
                return;
        responses = call->own;
        call_identifier(call, "resp_", responses->writer.id, sizeof(responses->writer.id));
        responses->writer.created_s = call->facts.created_s;
        if (responses->writer.logprobs)
                call_with_vocabulary(call, go);
        else
                call_with_daemon(call, go);
}

/* ---- the tokens of a request ---- */

static void on_tokens(struct call *call, const struct smv_event *answer)
{
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        json_put_object(&to);
        json_put_key_word(&to, "object", "response.input_tokens");
        json_put_key_uint(&to, "input_tokens", answer->token_count);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

static void ask_tokens(struct call *call)
{
        struct responses *responses = call->own;
        uint32_t request = 0;
        int r;

        if (!bridge_model(call, responses->writer.model, &responses->options.model))
                return;
        r = smv_ask_template(link_client(call->link), &responses->options, 1, &request);
        call_ask(call, r, request, on_tokens);
}

void openai_response_tokens(struct call *call)
{
        if (begin(call))
                call_with_daemon(call, ask_tokens);
}

/* ---- stored responses ---- */

/* NULL: the call has failed. */
static struct stored *find(struct call *call)
{
        struct stored *stored = response_store_find(call->bridge->responses, call, call->tail);
        struct failure failure;

        if (stored)
                return stored;
        failure = failure_make(FAILURE_NOT_FOUND, "response_id", "there is no stored response %.*s",
                               (int)(call->tail.bytes < 60 ? call->tail.bytes : 60), call->tail.at);
        call_fail(call, &failure);
        return NULL;
}

void openai_response_get(struct call *call)
{
        struct stored *stored = find(call);

        if (stored)
                call_reply(call, 200, "application/json", stored->body.at, stored->body.count);
}

void openai_response_delete(struct call *call)
{
        struct stored *stored = find(call);
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (!stored)
                return;
        json_put_object(&to);
        json_put_key_word(&to, "id", stored->id);
        json_put_key_word(&to, "object", "response");
        json_put_key_bool(&to, "deleted", true);
        json_put_object_end(&to);
        response_store_remove(stored);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

/* The items as they were sent, the newest first unless the order is asc, as OpenAI has it. */
void openai_response_input_items(struct call *call)
{
        struct stored *stored = find(call);
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (!stored)
                return;
        json_put_object(&to);
        json_put_key_word(&to, "object", "list");
        json_put_key(&to, "data");
        json_put_raw(&to, stored->input.at);
        json_put_key_bool(&to, "has_more", false);
        json_put_key_null(&to, "first_id");
        json_put_key_null(&to, "last_id");
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

void openai_response_cancel(struct call *call)
{
        struct failure failure;

        if (!find(call))
                return;
        failure = failure_make(FAILURE_REQUEST, "response_id",
                               "only responses in the background can be cancelled; this one has "
                               "ended");
        call_fail(call, &failure);
}
