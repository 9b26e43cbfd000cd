#include "bridge/ollama/record-writer.h"

#include <string.h>

#include "base/sys.h"
#include "bridge/core/logprobs.h"
#include "bridge/core/timestamp.h"
#include "bridge/core/tools.h"

/* ---- records ---- */

/* The content of a record.  Calls are shown when they are whole; a call that was cut is text. */
struct shown {
        struct text content, thinking;
        const struct run_call *calls, *behind; /* from the one on, up to the other */
};

static void put_head(struct json_builder *to, const struct ollama_answer *answer)
{
        char now[TIMESTAMP_BYTES];

        timestamp_of_ns(sys_wall_clock_ns(), now);
        json_put_object(to);
        json_put_key_text(to, "model", answer->request.model.at, answer->request.model.bytes);
        json_put_key_word(to, "created_at", now);
}

static void put_call(struct json_builder *to, const struct run_call *made)
{
        json_put_object(to);
        json_put_key_word(to, "id", made->id);
        json_put_key(to, "function");
        json_put_object(to);
        json_put_key_uint(to, "index", made->index);
        json_put_key_text(to, "name", made->name.at, made->name.count);
        json_put_key(to, "arguments");
        tools_put_arguments(to, &made->arguments);
        json_put_object_end(to);
        json_put_object_end(to);
}

static const struct run_call *next_whole(const struct run_call *call, const struct run_call *behind)
{
        while (call != behind && call->cut)
                call = call->next;
        return call;
}

static void put_calls(struct json_builder *to, const struct shown *shown)
{
        const struct run_call *made = next_whole(shown->calls, shown->behind);

        if (made == shown->behind)
                return;
        json_put_key(to, "tool_calls");
        json_put_array(to);
        for (; made != shown->behind; made = next_whole(made->next, shown->behind))
                put_call(to, made);
        json_put_array_end(to);
}

/* Texts may contain a NUL. */
static struct text join(struct arena *arena, struct text first, struct text second)
{
        char *at = arena_alloc(arena, first.bytes + second.bytes + 1);

        if (!at)
                return first;
        if (first.bytes)
                memcpy(at, first.at, first.bytes);
        memcpy(at + first.bytes, second.at, second.bytes);
        return (struct text){ at, first.bytes + second.bytes };
}

/* The text of a choice, with that of its cut calls. */
static struct text whole_text(struct arena *arena, const struct run_choice *choice)
{
        struct text text = { choice->text.at, choice->text.count };

        for (const struct run_call *made = choice->calls; made; made = made->next) {
                struct text cut = { 0 };

                if (made->cut)
                        cut = tools_cut_text(arena, made);
                if (cut.at)
                        text = join(arena, text, cut);
        }
        return text;
}

static void put_content(struct json_builder *to, const struct ollama_answer *answer,
                        const struct shown *shown)
{
        const char *content = shown->content.at ? shown->content.at : "";
        bool chat = answer->request.chat;

        if (chat) {
                json_put_key(to, "message");
                json_put_object(to);
                json_put_key_word(to, "role", "assistant");
        }
        json_put_key_text(to, chat ? "content" : "response", content, shown->content.bytes);
        if (shown->thinking.bytes)
                json_put_key_text(to, "thinking", shown->thinking.at, shown->thinking.bytes);
        if (chat)
                put_calls(to, shown);
        if (chat)
                json_put_object_end(to);
}

static void put_logprobs(struct json_builder *to, const struct ollama_answer *answer)
{
        const struct call *call = answer->run->call;
        struct run_choice *choice = &answer->run->choices[0];

        if (!answer->request.logprobs || !run_logprobs_ready(choice))
                return;
        json_put_key(to, "logprobs");
        logprobs_put(to, call->bridge->vocabulary, choice);
}

static void put_count(struct json_builder *to, const char *key, uint64_t count)
{
        if (count)
                json_put_key_uint(to, key, count);
}

/* Fields that are 0 are absent.  Tokens that took no time took the shortest that there is. */
static void put_end(struct json_builder *to, const struct ollama_answer *answer)
{
        const struct run *run = answer->run;
        struct run_usage usage = run_usage(run);
        enum run_end end = run->choices[0].end;

        json_put_key_bool(to, "done", true);
        json_put_key_word(to, "done_reason",
                          end == RUN_LENGTH || end == RUN_CONTEXT ? "length" : "stop");
        put_count(to, "total_duration", sys_clock_ns() - run->call->begun_ns);
        put_count(to, "load_duration", usage.queued_ns);
        put_count(to, "prompt_eval_count", usage.prompt);
        put_count(to, "prompt_eval_duration", usage.prefill_ns);
        put_count(to, "eval_count", usage.output);
        put_count(to, "eval_duration", usage.output && !usage.decode_ns ? 1 : usage.decode_ns);
}

/* ---- streamed ---- */

static void put_record(struct json_builder *to, const struct ollama_answer *answer,
                       const struct shown *shown)
{
        put_head(to, answer);
        put_content(to, answer, shown);
        put_logprobs(to, answer);
        json_put_key_bool(to, "done", false);
        json_put_object_end(to);
}

/* There are no comments in lines of JSON: a record without content is the only sign of life. */
static void on_begun(struct run *run)
{
        struct call *call = run->call;
        struct bytes ping = { 0 };
        struct json_builder to = json_build(&ping);
        struct text copy = { 0 };

        put_record(&to, run->own, &(struct shown){ 0 });
        if (!json_put_end(&to))
                copy = arena_format(&call->arena, "%s\n", ping.at);
        bytes_deinit(&ping);
        if (copy.at)
                call_stream(call, CALL_LINES, copy.at);
        else
                call_no_memory(call);
}

static void on_piece(struct run *run, uint32_t index, const struct run_piece *piece)
{
        const struct ollama_answer *answer = run->own;
        struct shown shown = { 0 };
        struct json_builder to;

        (void)index;
        if (piece->kind == PIECE_TEXT)
                shown.content = piece->text;
        else if (piece->kind == PIECE_REASONING)
                shown.thinking = piece->text;
        else if (piece->kind == PIECE_CALL_END && answer->request.chat && piece->call->cut)
                shown.content = tools_cut_text(&run->call->arena, piece->call);
        else if (piece->kind == PIECE_CALL_END && answer->request.chat)
                shown = (struct shown){ .calls = piece->call, .behind = piece->call->next };
        else
                return;
        to = call_event(run->call, NULL);
        put_record(&to, answer, &shown);
        call_event_send(run->call, &to);
}

static void on_done(struct run *run)
{
        struct call *call = run->call;
        struct json_builder to = call_event(call, NULL);

        put_head(&to, run->own);
        put_content(&to, run->own, &(struct shown){ 0 });
        put_logprobs(&to, run->own);
        put_end(&to, run->own);
        json_put_object_end(&to);
        if (call_event_send(call, &to))
                call_finish(call);
}

/* ---- whole ---- */

static void on_whole(struct run *run)
{
        const struct run_choice *choice = &run->choices[0];
        struct text text = whole_text(&run->call->arena, choice);
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        put_head(&to, run->own);
        put_content(&to, run->own,
                    &(struct shown){ .content = text,
                                     .thinking = { choice->reasoning.at, choice->reasoning.count },
                                     .calls = choice->calls,
                                     .behind = choice->in_call ? choice->last_call : NULL });
        put_logprobs(&to, run->own);
        put_end(&to, run->own);
        json_put_object_end(&to);
        call_reply_json(run->call, &to, &body);
        bytes_deinit(&body);
}

static void on_failed(struct run *run, const struct failure *failure)
{
        call_fail(run->call, failure);
}

const struct run_ops ollama_streamed = {
        .begun = on_begun,
        .piece = on_piece,
        .done = on_done,
        .failed = on_failed,
};
const struct run_ops ollama_whole = { .done = on_whole, .failed = on_failed };

void ollama_reply_empty(struct call *call, const struct ollama_answer *answer)
{
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        put_head(&to, answer);
        put_content(&to, answer, &(struct shown){ 0 });
        json_put_key_bool(&to, "done", true);
        json_put_key_word(&to, "done_reason", answer->request.unload ? "unload" : "load");
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}
