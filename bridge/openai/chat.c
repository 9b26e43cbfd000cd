#include "bridge/openai/chat.h"

#include <string.h>

#include "base/sys.h"

#include "bridge/core/bridge.h"
#include "bridge/core/constraint.h"
#include "bridge/core/conversation.h"
#include "bridge/core/logprobs.h"
#include "bridge/core/run.h"
#include "bridge/core/sampling.h"
#include "bridge/core/tools.h"
#include "bridge/openai/messages.h"
#include "bridge/openai/options.h"
#include "bridge/openai/writing.h"

#define NS_PER_MS UINT64_C(1000000)

struct chat {
        struct openai_head head;
        struct openai_stream stream;
        bool logprobs, timings;
        bool many_calls; /* not only the first call is shown */
        struct smv_generate options;
        struct run *run;
};

static void clean(struct call *call)
{
        struct chat *chat = call->own;

        chat->run = run_deinit(chat->run);
}

/* ---- streamed ---- */

/* A chunk of one choice up to its delta, which is open. */
static struct json_builder begin_chunk(struct call *call, uint32_t index)
{
        struct chat *chat = call->own;
        struct json_builder to = call_event(call, NULL);

        openai_put_head(&to, call, &chat->head);
        json_put_key(&to, "choices");
        json_put_array(&to);
        json_put_object(&to);
        json_put_key_uint(&to, "index", index);
        json_put_key(&to, "delta");
        json_put_object(&to);
        return to;
}

/* Closes the delta, and the choice with it. */
static bool end_chunk(struct call *call, struct json_builder *to, struct run_choice *choice,
                      const char *finish)
{
        const struct chat *chat = call->own;

        json_put_object_end(to);
        json_put_key(to, "logprobs");
        if (choice && run_logprobs_ready(choice)) {
                json_put_object(to);
                json_put_key(to, "content");
                logprobs_put(to, call->bridge->vocabulary, choice);
                json_put_key_null(to, "refusal");
                json_put_object_end(to);
        } else {
                json_put_null(to);
        }
        json_put_key_word(to, "finish_reason", finish);
        json_put_object_end(to);
        json_put_array_end(to);
        if (chat->stream.usage)
                json_put_key_null(to, "usage");
        json_put_object_end(to);
        return call_event_send(call, to);
}

/* The role comes once for each choice, in the order of their index. */
static void on_begun(struct run *run)
{
        struct call *call = run->call;
        struct json_builder to;

        call_stream(call, CALL_EVENTS, ": ping\n\n");
        for (uint32_t i = 0; i < run->count; i++) {
                to = begin_chunk(call, i);
                json_put_key_word(&to, "role", "assistant");
                json_put_key_word(&to, "content", "");
                if (!end_chunk(call, &to, NULL, NULL))
                        return;
        }
}

/* As llama-server writes it, in a chunk without a delta. */
static void on_progress(struct run *run, const struct smv_event *event)
{
        struct chat *chat = run->call->own;
        struct json_builder to = call_event(run->call, NULL);

        openai_put_head(&to, run->call, &chat->head);
        json_put_key(&to, "choices");
        json_put_array(&to);
        json_put_array_end(&to);
        json_put_key(&to, "prompt_progress");
        json_put_object(&to);
        json_put_key_uint(&to, "total", event->prompt_tokens);
        json_put_key_uint(&to, "cache", event->cached_tokens);
        json_put_key_uint(&to, "processed", event->prefilled);
        json_put_key_uint(&to, "time_ms", (sys_clock_ns() - run->call->begun_ns) / NS_PER_MS);
        json_put_object_end(&to);
        if (chat->stream.usage)
                json_put_key_null(&to, "usage");
        json_put_object_end(&to);
        call_event_send(run->call, &to);
}

static void put_call_delta(struct json_builder *to, const struct run_piece *piece)
{
        json_put_key(to, "tool_calls");
        json_put_array(to);
        json_put_object(to);
        json_put_key_uint(to, "index", piece->call->index);
        if (piece->kind == PIECE_CALL) {
                json_put_key_word(to, "id", piece->call->id);
                json_put_key_word(to, "type", "function");
        }
        json_put_key(to, "function");
        json_put_object(to);
        if (piece->kind == PIECE_CALL) {
                json_put_key_text(to, "name", piece->call->name.at, piece->call->name.count);
                json_put_key_word(to, "arguments", "");
        } else {
                json_put_key_text(to, "arguments", piece->text.at, piece->text.bytes);
        }
        json_put_object_end(to);
        json_put_object_end(to);
        json_put_array_end(to);
}

static void on_piece(struct run *run, uint32_t index, const struct run_piece *piece)
{
        struct json_builder to;

        if (piece->kind == PIECE_CALL_END)
                return;
        to = begin_chunk(run->call, index);
        if (piece->kind == PIECE_TEXT)
                json_put_key_text(&to, "content", piece->text.at, piece->text.bytes);
        else if (piece->kind == PIECE_REASONING)
                json_put_key_text(&to, "reasoning_content", piece->text.at, piece->text.bytes);
        else
                put_call_delta(&to, piece);
        end_chunk(run->call, &to, &run->choices[index], NULL);
}

static void on_ended(struct run *run, uint32_t index)
{
        struct run_choice *choice = &run->choices[index];
        struct json_builder to;

        if (run_logprobs_ready(choice)) {
                to = begin_chunk(run->call, index);
                json_put_key_word(&to, "content", "");
                if (!end_chunk(run->call, &to, choice, NULL))
                        return;
        }
        to = begin_chunk(run->call, index);
        end_chunk(run->call, &to, NULL, run_end_word(choice->end));
}

static void on_done(struct run *run)
{
        static const char done[] = "data: [DONE]\n\n";
        struct call *call = run->call;
        struct chat *chat = call->own;
        struct json_builder to;

        if (chat->stream.usage) {
                to = call_event(call, NULL);
                openai_put_head(&to, call, &chat->head);
                json_put_key(&to, "choices");
                json_put_array(&to);
                json_put_array_end(&to);
                openai_put_usage(&to, run);
                if (chat->timings)
                        openai_put_timings(&to, run);
                json_put_object_end(&to);
                if (!call_event_send(call, &to))
                        return;
        }
        call_write(call, done, sizeof(done) - 1);
        call_finish(call);
}

static void on_failed(struct run *run, const struct failure *failure)
{
        call_fail(run->call, failure);
}

static const struct run_ops streamed = {
        .begun = on_begun,
        .progress = on_progress,
        .piece = on_piece,
        .ended = on_ended,
        .done = on_done,
        .failed = on_failed,
};

/* ---- whole ---- */

static void put_calls(struct json_builder *to, const struct run_choice *choice)
{
        json_put_key(to, "tool_calls");
        json_put_array(to);
        for (const struct run_call *made = choice->calls; made; made = made->next) {
                json_put_object(to);
                json_put_key_word(to, "id", made->id);
                json_put_key_word(to, "type", "function");
                json_put_key(to, "function");
                json_put_object(to);
                json_put_key_text(to, "name", made->name.at, made->name.count);
                json_put_key_text(to, "arguments", made->arguments.at, made->arguments.count);
                json_put_object_end(to);
                json_put_object_end(to);
        }
        json_put_array_end(to);
}

static void put_message(struct json_builder *to, const struct run_choice *choice)
{
        json_put_key(to, "message");
        json_put_object(to);
        json_put_key_word(to, "role", "assistant");
        if (choice->text.count || !choice->calls)
                json_put_key_text(to, "content", choice->text.at, choice->text.count);
        else
                json_put_key_null(to, "content");
        json_put_key_null(to, "refusal");
        if (choice->reasoning.count)
                json_put_key_text(to, "reasoning_content", choice->reasoning.at,
                                  choice->reasoning.count);
        if (choice->calls)
                put_calls(to, choice);
        json_put_object_end(to);
}

static void put_choice(struct json_builder *to, const struct call *call, uint32_t index,
                       struct run_choice *choice)
{
        const struct chat *chat = call->own;

        json_put_object(to);
        json_put_key_uint(to, "index", index);
        put_message(to, choice);
        json_put_key(to, "logprobs");
        if (chat->logprobs) {
                json_put_object(to);
                json_put_key(to, "content");
                logprobs_put(to, call->bridge->vocabulary, choice);
                json_put_key_null(to, "refusal");
                json_put_object_end(to);
        } else {
                json_put_null(to);
        }
        json_put_key_word(to, "finish_reason", run_end_word(choice->end));
        json_put_object_end(to);
}

static void on_whole(struct run *run)
{
        struct call *call = run->call;
        struct chat *chat = call->own;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        openai_put_head(&to, call, &chat->head);
        json_put_key(&to, "choices");
        json_put_array(&to);
        for (uint32_t i = 0; i < run->count; i++)
                put_choice(&to, call, i, &run->choices[i]);
        json_put_array_end(&to);
        openai_put_usage(&to, run);
        openai_put_timings(&to, run);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

static const struct run_ops whole = { .done = on_whole, .failed = on_failed };

/* ---- the request ---- */

static void go(struct call *call)
{
        struct chat *chat = call->own;

        if (!bridge_model(call, chat->head.model, &chat->options.model))
                return;
        if (!chat->head.model.bytes)
                chat->head.model = bridge_model_name(call);
        chat->run = run_new(call, &chat->options, chat->stream.stream ? &streamed : &whole, chat);
        if (!chat->run) {
                call_no_memory(call);
                return;
        }
        chat->run->one_call = !chat->many_calls;
        run_start(chat->run);
}

static void read_request(struct call *call, struct fields *fields, struct chat *chat)
{
        struct conversation conversation = { .arena = &call->arena, .json = call->json };
        bool progress = false;

        chat->options = (struct smv_generate){ SMV_SIZE(smv_generate), .clamp = 1, .parts = 1 };
        chat->options.max_tokens = UINT32_MAX;
        chat->many_calls = true;
        field_text(fields, 0, "model", &chat->head.model);
        openai_read_messages(fields, &conversation);
        openai_read_end(fields, &conversation);
        openai_read_tools(fields, &conversation, &chat->options);
        openai_read_vars(fields, &conversation);
        openai_read_options(call, fields, &chat->options);
        if (!sampling_read_length(fields, 0, "max_completion_tokens", &chat->options))
                sampling_read_length(fields, 0, "max_tokens", &chat->options);
        chat->stream = openai_read_stream(fields);
        logprobs_read(fields, &chat->options, &chat->logprobs);
        constraint_read_format(call, fields, field_object(fields, 0, "response_format"),
                               "response_format", &chat->options);
        field_refuse(fields, 0, "audio", "the model writes text only");
        field_refuse(fields, 0, "web_search_options", "there is no search");
        field_bool(fields, 0, "timings_per_token", &chat->timings);
        field_bool(fields, 0, "return_progress", &progress);
        chat->options.progress = progress && chat->stream.stream;
        field_bool(fields, 0, "parallel_tool_calls", &chat->many_calls);
        chat->head.object = chat->stream.stream ? "chat.completion.chunk" : "chat.completion";
        chat->head.tier = openai_tier(&chat->options);
        tools_settle(fields, &conversation, !chat->many_calls, &chat->options);
        constraint_settle(call, fields, &chat->options);
        if (!fields->failed && conversation_pack(&conversation, &chat->options))
                call->arena.failed = true;
}

void openai_chat(struct call *call)
{
        struct fields fields = { 0 };
        struct chat *chat;

        if (!call_read_json(call))
                return;
        fields.json = call->json;
        call->own = chat = arena_alloc(&call->arena, sizeof(*chat));
        if (chat)
                read_request(call, &fields, chat);
        if (!call_was_read(call, &fields))
                return;
        call->clean = clean;
        call_identifier(call, "chatcmpl-", chat->head.id, sizeof(chat->head.id));
        chat->head.created_s = call->facts.created_s;
        if (chat->logprobs)
                call_with_vocabulary(call, go);
        else
                call_with_daemon(call, go);
}
