#include "bridge/core/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "bridge/core/bridge.h"
#include "bridge/core/metrics.h"
#include "bridge/core/vocabulary.h"

#define KEEP_MS_MAX 86400000u

/* ---- metrics ---- */

/* A batch's calls have the same routes. */
static const char *operation_of(const struct call *call)
{
        return call->route && (!strcmp(call->route, "/v1/completions") ||
                               !strcmp(call->route, "/api/generate"))
                       ? "text_completion"
                       : "chat";
}

/* Many models have the same first token in all prompts, which is not worth much. */
bool run_miss(const struct run *run, enum miss_reason *ret_reason)
{
        const struct smv_event *end = &run->choices[0].last;

        if (end->diverged_at > 1)
                *ret_reason = MISS_PREFIX;
        else if (end->cached_tokens <= 1 && end->prompt_tokens > 1)
                *ret_reason = MISS_NOTHING_CACHED;
        else
                return false;
        return true;
}

/* If the dialect finds out more, it counts that. */
static void note_miss(const struct run *run)
{
        enum miss_reason reason;

        if (run->explains_miss && run->choices[0].last.diverged_at)
                return;
        if (run_miss(run, &reason))
                metrics_miss(run->call->bridge->metrics, reason);
}

/* It has ended; failure NULL: with all its choices. */
static void note_request(const struct run *run, const struct failure *failure)
{
        const struct call *call = run->call;
        const struct smv_event *last = &run->choices[0].last;
        struct run_usage usage = run_usage(run);
        uint64_t now_ns = sys_clock_ns();
        struct smv_model model;
        bool found = bridge_find_model(call, run->options.model, &model);

        metrics_request(call->bridge->metrics,
                        &(struct gen_ai_request){
                                .operation = operation_of(call),
                                .model = found ? model.name : "",
                                .status = failure ? failure_status(failure, DIALECT_OPENAI) : 0,
                                .took_ns = now_ns - call->begun_ns,
                                .asked_ns = now_ns - run->asked_ns,
                                .first_ns = run->first_ns ? run->first_ns - call->begun_ns : 0,
                                .decode_ns = last->decode_ns,
                                .decoded = last->output_tokens ? last->output_tokens - 1 : 0,
                                .input = usage.prompt,
                                .output = usage.output,
                        });
}

/* ---- failures ---- */

static void fail(struct run *run, const struct failure *failure)
{
        link_remove(&run->ask);
        note_request(run, failure);
        run->ops->failed(run, failure);
}

/* The daemon has not accepted it. */
static void refuse(struct run *run, const struct failure *failure)
{
        if (run->ops->refused && run->ops->refused(run, failure))
                return;
        note_request(run, failure);
        run->ops->failed(run, failure);
}

static void fail_for_memory(struct run *run)
{
        struct failure failure = failure_make(FAILURE_BUSY, NULL, "samovar-http is out of memory");

        fail(run, &failure);
}

/* ---- pieces ---- */

static struct run_call *add_call(struct run *run, struct run_choice *choice)
{
        struct run_call *call = arena_alloc(&run->call->arena, sizeof(*call));

        if (!call)
                return NULL;
        call->index = choice->last_call ? choice->last_call->index + 1 : 0;
        call_identifier(run->call, "call_", call->id, sizeof(call->id));
        if (choice->last_call)
                choice->last_call->next = call;
        else
                choice->calls = call;
        choice->last_call = call;
        return call;
}

/* Adds a piece to what is collected.  0, or -ENOMEM. */
static int collect(struct run *run, struct run_choice *choice, struct run_piece *piece)
{
        struct run_call *call = choice->last_call;

        switch (piece->kind) {
        case PIECE_TEXT:
                return bytes_add(&choice->text, piece->text.at, piece->text.bytes);
        case PIECE_REASONING:
                return bytes_add(&choice->reasoning, piece->text.at, piece->text.bytes);
        case PIECE_CALL:
                piece->call = call = add_call(run, choice);
                if (!call)
                        return -ENOMEM;
                choice->in_call = true;
                return bytes_add(&call->name, piece->text.at, piece->text.bytes);
        case PIECE_ARGUMENTS:
                piece->call = call;
                return bytes_add(&call->arguments, piece->text.at, piece->text.bytes);
        case PIECE_CALL_END:
                piece->call = call;
                choice->in_call = false;
        }
        return 0;
}

static bool has_cut_call(const struct run_choice *choice)
{
        for (const struct run_call *call = choice->calls; call; call = call->next)
                if (call->cut)
                        return true;
        return choice->in_call;
}

static bool has_whole_calls(const struct run_choice *choice)
{
        return choice->calls && !has_cut_call(choice);
}

/* False: the call is over. */
static bool pass_piece(struct run *run, uint32_t index, enum piece_kind kind, struct text text)
{
        struct run_piece piece = { .kind = kind, .text = text };

        if (run->one_call && has_whole_calls(&run->choices[index]))
                return true;
        if (!run->first_ns)
                run->first_ns = sys_clock_ns();
        run->choices[index].shown += text.bytes;
        if (collect(run, &run->choices[index], &piece)) {
                fail_for_memory(run);
                return false;
        }
        if (run->ops->piece)
                run->ops->piece(run, index, &piece);
        return !run->call->over;
}

static int collect_logprobs(const struct run *run, struct run_choice *choice,
                            const struct smv_event *event)
{
        const struct vocabulary *vocabulary = run->call->bridge->vocabulary;
        struct run_logprobs *logprobs = &choice->logprobs;
        size_t values = event->token_count * (1 + event->top_count);
        int r;

        if (!event->logprobs)
                return 0;
        logprobs->top_count = event->top_count;
        r = bytes_add(&logprobs->values, event->logprobs, values * sizeof(*event->logprobs));
        for (size_t i = 0; !r && i < event->token_count; i++) {
                r = bytes_add(&logprobs->starts, &logprobs->end, sizeof(logprobs->end));
                logprobs->end += vocabulary_piece(vocabulary, event->tokens[i]).bytes;
        }
        return r;
}

static size_t logprobs_count(const struct run_choice *choice)
{
        return choice->logprobs.starts.count / sizeof(uint64_t);
}

/* Where the text of token i ends. */
static uint64_t logprob_end(const struct run_choice *choice, size_t i)
{
        const uint64_t *starts = (const void *)choice->logprobs.starts.at;

        return i + 1 < logprobs_count(choice) ? starts[i + 1] : choice->logprobs.end;
}

size_t run_logprobs_ready(const struct run_choice *choice)
{
        size_t count = logprobs_count(choice), ready = 0;

        if (choice->ended)
                return count;
        while (ready < count && logprob_end(choice, ready) <= choice->shown)
                ready++;
        return ready;
}

void run_logprobs_take(struct run_choice *choice, size_t count)
{
        struct run_logprobs *logprobs = &choice->logprobs;
        size_t starts = count * sizeof(uint64_t);
        size_t values = count * (1 + logprobs->top_count) * sizeof(struct smv_logprob);

        if (!count)
                return;
        memmove(logprobs->starts.at, logprobs->starts.at + starts, logprobs->starts.count - starts);
        memmove(logprobs->values.at, logprobs->values.at + values, logprobs->values.count - values);
        logprobs->starts.count -= starts;
        logprobs->values.count -= values;
}

/* A token that ended the choice has no text, and a stop string hides those behind its beginning. */
static void end_logprobs(const struct run *run, struct run_choice *choice,
                         const struct smv_event *event)
{
        const uint64_t *starts = (const void *)choice->logprobs.starts.at;
        struct run_logprobs *logprobs = &choice->logprobs;
        size_t count = logprobs_count(choice);

        if (!count || event->reason == SMV_END_LENGTH)
                return;
        if (event->reason == SMV_END_STOP && event->stopped_by == SMV_STOPPED_BY_STRING)
                while (count && starts[count - 1] >= choice->shown)
                        count--;
        else if (!run->end_logprob)
                count--;
        logprobs->starts.count = count * sizeof(uint64_t);
        logprobs->values.count = count * (1 + logprobs->top_count) * sizeof(struct smv_logprob);
}

static enum piece_kind kind_of(const struct smv_part *part)
{
        static const enum piece_kind kinds[] = {
                [SMV_PART_TEXT] = PIECE_TEXT,         [SMV_PART_REASONING] = PIECE_REASONING,
                [SMV_PART_CALL] = PIECE_CALL,         [SMV_PART_ARGUMENTS] = PIECE_ARGUMENTS,
                [SMV_PART_CALL_END] = PIECE_CALL_END,
        };

        return part->kind < sizeof(kinds) / sizeof(*kinds) ? kinds[part->kind] : PIECE_TEXT;
}

/* The text of an event: divided into parts by the daemon, or plain. */
static void pass_text(struct run *run, uint32_t index, const struct smv_event *event)
{
        const char *at = event->text;

        if (!run->options.parts) {
                if (event->text_bytes)
                        pass_piece(run, index, PIECE_TEXT,
                                   (struct text){ event->text, event->text_bytes });
                return;
        }
        for (size_t i = 0; i < event->part_count; i++) {
                const struct smv_part *part = &event->parts[i];

                if (part->kind == SMV_PART_CALL_END && run->choices[index].last_call)
                        run->choices[index].last_call->cut = part->flags & SMV_PARTS_CUT;
                if (!pass_piece(run, index, kind_of(part), (struct text){ at, part->bytes }))
                        return;
                at += part->bytes;
        }
}

/* ---- ends ---- */

static struct text stop_text(const struct run *run, const struct smv_event *event)
{
        const char *stop;

        if (event->reason != SMV_END_STOP || event->stopped_by != SMV_STOPPED_BY_STRING ||
            event->stop_index >= run->options.stop_count)
                return (struct text){ 0 };
        stop = run->options.stops[event->stop_index];
        return (struct text){ stop, strlen(stop) };
}

static enum run_end end_of(const struct run *run, const struct run_choice *choice,
                           const struct smv_event *event)
{
        uint32_t asked = run->options.max_tokens;

        if (run->one_call && has_whole_calls(choice))
                return RUN_CALLS;
        if (event->reason == SMV_END_LENGTH)
                return asked && asked > run->accepted.max_tokens ? RUN_CONTEXT : RUN_LENGTH;
        if (has_cut_call(choice)) /* as if a length had cut it: nobody may carry it out */
                return RUN_LENGTH;
        if (has_whole_calls(choice))
                return RUN_CALLS;
        return event->reason == SMV_END_STOP && choice->stop_text.at ? RUN_STOP : RUN_EOS;
}

const char *run_end_word(enum run_end end)
{
        switch (end) {
        case RUN_LENGTH:
        case RUN_CONTEXT:
                return "length";
        case RUN_CALLS:
                return "tool_calls";
        default:
                return "stop";
        }
}

static void end_choice(struct run *run, uint32_t index, const struct smv_event *event)
{
        struct run_choice *choice = &run->choices[index];
        struct failure failure;

        if (event->reason == SMV_END_ERROR || event->reason == SMV_END_CANCELLED ||
            event->reason == SMV_END_STALLED) {
                failure = event->reason == SMV_END_ERROR
                                  ? call_code_failure(run->call, event->code)
                                  : failure_make(FAILURE_UNAVAILABLE, NULL,
                                                 "the daemon ended the stream: %s",
                                                 smv_reason_name(event->reason));
                fail(run, &failure);
                return;
        }
        choice->last = *event;
        choice->stop_text = stop_text(run, event);
        choice->end = end_of(run, choice, event);
        end_logprobs(run, choice, event);
        choice->reasoning_tokens = event->reasoning_tokens;
        choice->ended = true;
        run->left--;
        metrics_end(run->call->bridge->metrics, run_end_word(choice->end), event, !index,
                    run->count, run->accepted.max_tokens);
        if (!index)
                note_miss(run);
        if (!run->left)
                note_request(run, NULL);
        if (run->ops->ended)
                run->ops->ended(run, index);
        if (!run->left && !run->call->over)
                run->ops->done(run);
}

/* ---- what the link calls ---- */

/* The prompt is one for all choices, so those of the first are enough. */
static void collect_prompt(struct run *run, uint32_t index, const struct smv_event *event)
{
        size_t values = event->token_count * (1 + event->top_count);

        if (!index &&
            bytes_add(&run->prompt_values, event->logprobs, values * sizeof(*event->logprobs)))
                fail_for_memory(run);
}

static void on_event(struct link_ask *ask, uint32_t index, const struct smv_event *event)
{
        struct run *run = (struct run *)(void *)((char *)ask - offsetof(struct run, ask));

        if (event->kind == SMV_EVENT_END) {
                end_choice(run, index, event);
                return;
        }
        if (event->kind == SMV_EVENT_PROGRESS && run->ops->progress)
                run->ops->progress(run, event);
        if (event->kind == SMV_EVENT_PROMPT_LOGPROBS) {
                collect_prompt(run, index, event);
                return;
        }
        if (event->kind != SMV_EVENT_TOKENS)
                return;
        if (collect_logprobs(run, &run->choices[index], event))
                fail_for_memory(run);
        else
                pass_text(run, index, event);
}

/* The client learns the id with the headers, so before anything can be lost. */
static void keep(const struct run *run, uint64_t resume_id)
{
        struct call *call = run->call;
        const struct kept_stream *kept = kept_add(call->bridge->kept, call->principal, call->path,
                                                  call->body, resume_id, &call->facts);

        if (kept)
                call_header(call, "x-samovar-stream-id", kept->id);
}

static void tell_queue(const struct run *run)
{
        char position[16];

        snprintf(position, sizeof(position), "%u", (unsigned)run->accepted.queue_position);
        call_header(run->call, "x-samovar-queue-position", position);
}

static void on_reply(struct link_ask *ask, const struct smv_event *reply,
                     const struct smv_problem *problem)
{
        struct run *run = (struct run *)(void *)((char *)ask - offsetof(struct run, ask));
        struct failure failure;

        if (problem) {
                failure = call_problem(run->call, problem);
                refuse(run, &failure);
                return;
        }
        run->begun = true;
        if (!run->call->attach_id) {
                run->call->facts.accepted = (struct smv_accepted){ SMV_SIZE(smv_accepted) };
                smv_accepted(link_client(run->call->link), &run->call->facts.accepted);
        }
        run->accepted = run->call->facts.accepted;
        if (run->options.keep_ms && !run->call->attach_id)
                keep(run, reply->number);
        tell_queue(run);
        if (run->ops->begun)
                run->ops->begun(run);
}

/* ---- the run ---- */

struct run *run_new(struct call *call, const struct smv_generate *options,
                    const struct run_ops *ops, void *own)
{
        struct run *run = arena_alloc(&call->arena, sizeof(*run));

        if (!run)
                return NULL;
        run->call = call;
        run->ops = ops;
        run->own = own;
        run->options = *options;
        if (call->background)
                run->options.priority = SMV_PRIORITY_BACKGROUND;
        run->count = run->left = options->n ? options->n : 1;
        run->ask.on_reply = on_reply;
        run->ask.on_event = on_event;
        run->choices = arena_alloc(&call->arena, run->count * sizeof(*run->choices));
        return run->choices ? run : NULL;
}

/*
 * `stream_keep_ms`: the stream goes on without its client for that long.  Only one stream can, and
 * only if it is streamed.
 */
uint32_t run_keep_ms(const struct call *call, uint32_t count)
{
        uint64_t keep_ms = 0;
        bool stream = false;

        if (count > 1 || !call->bridge->kept || call->background || !call->json)
                return 0;
        stream = call->dialect == DIALECT_OLLAMA; /* there a stream is the default */
        json_bool(call->json, json_member(call->json, 0, "stream"), &stream);
        json_whole(call->json, json_member(call->json, 0, "stream_keep_ms"), &keep_ms);
        return !stream ? 0 : keep_ms < KEEP_MS_MAX ? (uint32_t)keep_ms : KEEP_MS_MAX;
}

static int ask(struct run *run, struct smv_client *client, uint32_t *ret_first)
{
        struct smv_generate options;

        run->options.keep_ms = run_keep_ms(run->call, run->count);
        run->ask.keeps = run->options.keep_ms > 0;
        run->options.progress = run->options.progress && !run->ask.keeps;
        if (run->call->attach_id)
                return smv_ask_attach(client, run->call->attach_id, 0, ret_first);
        options = run->options;
        if (options.handle) /* which has its own; ours is for the metrics */
                options.model = NULL;
        return smv_ask_generate(client, &options, ret_first);
}

void run_start(struct run *run)
{
        struct link *link = run->call->link;
        struct smv_client *client = link_client(link);
        struct link_stream *streams;
        struct failure failure;
        uint32_t first;
        int r;

        run->asked_ns = sys_clock_ns();
        streams = arena_alloc(&run->call->arena, run->count * sizeof(*streams));
        if (!streams) {
                fail_for_memory(run);
                return;
        }
        r = client ? ask(run, client, &first) : -ENOTCONN;
        if (!r) {
                link_add(link, &run->ask, streams, first, run->count);
                link_flush(link);
                return;
        }
        failure = call_ask_failure(run->call, r);
        refuse(run, &failure);
}

struct run *run_deinit(struct run *run)
{
        if (!run)
                return NULL;
        link_remove(&run->ask);
        bytes_deinit(&run->prompt_values);
        for (uint32_t i = 0; run->choices && i < run->count; i++) {
                struct run_choice *choice = &run->choices[i];

                bytes_deinit(&choice->text);
                bytes_deinit(&choice->reasoning);
                bytes_deinit(&choice->logprobs.starts);
                bytes_deinit(&choice->logprobs.values);
                for (struct run_call *call = choice->calls; call; call = call->next) {
                        bytes_deinit(&call->name);
                        bytes_deinit(&call->arguments);
                }
        }
        return NULL;
}

struct run_usage run_usage(const struct run *run)
{
        struct run_usage usage = { .prompt = run->accepted.prompt_tokens };

        for (uint32_t i = 0; i < run->count; i++) {
                usage.output += run->choices[i].last.output_tokens;
                usage.reasoning += run->choices[i].reasoning_tokens;
                usage.drafted += run->choices[i].last.drafted;
                usage.drafts_right += run->choices[i].last.drafts_right;
                usage.predicted += run->choices[i].last.predicted;
                usage.predictions_right += run->choices[i].last.predictions_right;
        }
        usage.cached = run->choices[0].last.cached_tokens;
        usage.queued_ns = run->choices[0].last.queued_ns;
        usage.prefill_ns = run->choices[0].last.prefill_ns;
        usage.decode_ns = run->choices[0].last.decode_ns;
        return usage;
}
