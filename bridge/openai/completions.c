#include "bridge/openai/completions.h"

#include <string.h>

#include "bridge/core/bridge.h"
#include "bridge/core/constraint.h"
#include "bridge/core/run.h"
#include "bridge/core/sampling.h"
#include "bridge/core/vocabulary.h"
#include "bridge/openai/completion-text.h"
#include "bridge/openai/options.h"
#include "bridge/openai/writing.h"

#define LENGTH       16u /* OpenAI's default */
#define PROMPTS_MAX  256u
#define LOGPROBS_MAX 5u

/* One prompt of the request, with its run. */
struct prompt {
        struct completion_prompt given;
        struct run *run;
        struct completion_choice *choices;
};

struct completions {
        struct openai_head head;
        struct openai_stream stream;
        bool echo, logprobs;
        bool scores; /* the logprobs of the prompts are wanted, too */
        struct smv_generate options;
        struct prompt *prompts;
        uint32_t prompt_count, left, begun;
};

static void clean(struct call *call)
{
        struct completions *completions = call->own;

        for (uint32_t i = 0; i < completions->prompt_count; i++)
                completions->prompts[i].run = run_deinit(completions->prompts[i].run);
}

static struct prompt *prompt_of(const struct run *run)
{
        return run->own;
}

/* The index of a choice in the answer: the choices of the first prompt come first. */
static uint32_t index_of(const struct run *run, uint32_t choice)
{
        const struct completions *completions = run->call->own;

        return (uint32_t)(prompt_of(run) - completions->prompts) * run->count + choice;
}

/* ---- answers ---- */

static void put_choice(struct json_builder *to, struct run *run, uint32_t index, struct text text,
                       const char *finish)
{
        const struct completions *completions = run->call->own;
        struct prompt *prompt = prompt_of(run);

        json_put_object(to);
        json_put_key_uint(to, "index", index_of(run, index));
        json_put_key_text(to, "text", text.at, text.bytes);
        json_put_key(to, "logprobs");
        if (completions->logprobs)
                completion_put_logprobs(to, run, index, &prompt->given, &prompt->choices[index]);
        else
                json_put_null(to);
        json_put_key_word(to, "finish_reason", finish);
        json_put_object_end(to);
}

static bool send_chunk(struct run *run, uint32_t choice, struct text text, const char *finish)
{
        struct completions *completions = run->call->own;
        struct json_builder to = call_event(run->call, NULL);

        openai_put_head(&to, run->call, &completions->head);
        json_put_key(&to, "choices");
        json_put_array(&to);
        put_choice(&to, run, choice, text, finish);
        json_put_array_end(&to);
        if (completions->stream.usage)
                json_put_key_null(&to, "usage");
        json_put_object_end(&to);
        return call_event_send(run->call, &to);
}

/* The usage of all prompts. */
static void put_usage(struct json_builder *to, const struct completions *completions)
{
        uint64_t prompt = 0, cached = 0, output = 0;

        for (uint32_t i = 0; i < completions->prompt_count; i++) {
                struct run_usage usage = run_usage(completions->prompts[i].run);

                prompt += usage.prompt;
                cached += usage.cached;
                output += usage.output;
        }
        json_put_key(to, "usage");
        json_put_object(to);
        json_put_key_uint(to, "prompt_tokens", prompt);
        json_put_key_uint(to, "completion_tokens", output);
        json_put_key_uint(to, "total_tokens", prompt + output);
        json_put_key(to, "prompt_tokens_details");
        json_put_object(to);
        json_put_key_uint(to, "cached_tokens", cached);
        json_put_object_end(to);
        json_put_object_end(to);
}

static void send_end(struct run *run, uint32_t choice)
{
        send_chunk(run, choice, TEXT(""), run_end_word(run->choices[choice].end));
}

/* The prompt, for `echo`, and what came before the last prompt was accepted. */
static void send_so_far(struct run *run)
{
        for (uint32_t i = 0; i < run->count && !run->call->over; i++) {
                struct run_choice *choice = &run->choices[i];
                struct text text = { choice->text.at, choice->text.count };

                if (text.bytes && !send_chunk(run, i, text, NULL))
                        return;
                if (choice->ended)
                        send_end(run, i);
        }
}

/* The answer begins when the daemon has accepted every prompt: until then it may be refused. */
static void on_begun(struct run *run)
{
        struct completions *completions = run->call->own;

        if (++completions->begun < completions->prompt_count)
                return;
        call_stream(run->call, CALL_EVENTS, ": ping\n\n");
        for (uint32_t i = 0; i < completions->prompt_count; i++)
                send_so_far(completions->prompts[i].run);
}

static void on_piece(struct run *run, uint32_t choice, const struct run_piece *piece)
{
        const struct completions *completions = run->call->own;

        if (piece->kind == PIECE_TEXT && completions->begun == completions->prompt_count)
                send_chunk(run, choice, piece->text, NULL);
}

static void on_ended(struct run *run, uint32_t choice)
{
        const struct completions *completions = run->call->own;

        if (completions->begun == completions->prompt_count)
                send_end(run, choice);
}

static bool one_is_done(struct run *run)
{
        struct completions *completions = run->call->own;

        return !--completions->left;
}

static void on_done(struct run *run)
{
        static const char done[] = "data: [DONE]\n\n";
        struct completions *completions = run->call->own;
        struct json_builder to;

        if (!one_is_done(run))
                return;
        if (completions->stream.usage) {
                to = call_event(run->call, NULL);
                openai_put_head(&to, run->call, &completions->head);
                json_put_key(&to, "choices");
                json_put_array(&to);
                json_put_array_end(&to);
                put_usage(&to, completions);
                json_put_object_end(&to);
                if (!call_event_send(run->call, &to))
                        return;
        }
        call_write(run->call, done, sizeof(done) - 1);
        call_finish(run->call);
}

static void on_whole(struct run *run)
{
        struct completions *completions = run->call->own;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (!one_is_done(run))
                return;
        openai_put_head(&to, run->call, &completions->head);
        json_put_key(&to, "choices");
        json_put_array(&to);
        for (uint32_t i = 0; i < completions->prompt_count; i++) {
                struct run *each = completions->prompts[i].run;

                for (uint32_t k = 0; k < each->count; k++) {
                        struct run_choice *choice = &each->choices[k];

                        put_choice(&to, each, k,
                                   (struct text){ choice->text.at, choice->text.count },
                                   run_end_word(choice->end));
                }
        }
        json_put_array_end(&to);
        put_usage(&to, completions);
        json_put_object_end(&to);
        call_reply_json(run->call, &to, &body);
        bytes_deinit(&body);
}

static void on_failed(struct run *run, const struct failure *failure)
{
        call_fail(run->call, failure);
}

static const struct run_ops streamed = {
        .begun = on_begun,
        .piece = on_piece,
        .ended = on_ended,
        .done = on_done,
        .failed = on_failed,
};
static const struct run_ops whole = { .done = on_whole, .failed = on_failed };

/* ---- the request ---- */

static bool make_run(struct call *call, struct prompt *prompt)
{
        struct completions *completions = call->own;
        struct smv_generate options = completions->options;

        options.prompt = prompt->given.text.at;
        options.prompt_bytes = prompt->given.text.bytes;
        options.tokens = prompt->given.tokens;
        options.token_count = prompt->given.token_count;
        prompt->choices = arena_alloc(&call->arena, options.n * sizeof(*prompt->choices));
        for (uint32_t i = 0; prompt->choices && i < options.n; i++)
                prompt->choices[i].scores = completions->scores;
        prompt->run =
                run_new(call, &options, completions->stream.stream ? &streamed : &whole, prompt);
        if (!prompt->run || call->arena.failed)
                return false;
        /* As vLLM: programs that measure models take the last entry for the token of the answer. */
        prompt->run->end_logprob = true;
        return !completions->echo || completion_echo(prompt->run, &prompt->given, prompt->choices);
}

static void go(struct call *call)
{
        struct completions *completions = call->own;

        if (!bridge_model(call, completions->head.model, &completions->options.model))
                return;
        if (!completions->head.model.bytes)
                completions->head.model = bridge_model_name(call);
        for (uint32_t i = 0; i < completions->prompt_count; i++)
                if (!make_run(call, &completions->prompts[i])) {
                        call_no_memory(call);
                        return;
                }
        for (uint32_t i = 0; i < completions->prompt_count && !call->over; i++)
                run_start(completions->prompts[i].run);
}

static void read_tokens(struct call *call, struct fields *fields, struct completion_prompt *prompt,
                        uint32_t node)
{
        uint32_t count = json_count(fields->json, node);
        uint32_t *tokens = arena_alloc(&call->arena, (count + 1) * sizeof(*tokens));
        uint64_t id;

        if (!tokens)
                return;
        prompt->tokens = tokens;
        for (uint32_t at = json_first(fields->json, node); at != JSON_NONE;
             at = json_next(fields->json, at)) {
                if (!json_whole(fields->json, at, &id) || id > UINT32_MAX) {
                        fields_fail(fields, FAILURE_REQUEST, "prompt",
                                    "prompt: a token id must be a whole number from 0 on");
                        return;
                }
                tokens[prompt->token_count++] = (uint32_t)id;
        }
        if (!count)
                fields_fail(fields, FAILURE_REQUEST, "prompt", "prompt has no tokens");
}

static void read_prompt(struct call *call, struct fields *fields, uint32_t node)
{
        struct completions *completions = call->own;
        struct completion_prompt *prompt = &completions->prompts[completions->prompt_count++].given;

        switch (json_kind(fields->json, node)) {
        case JSON_STRING:
                prompt->text = text_of(fields->json, node);
                break;
        case JSON_ARRAY:
                read_tokens(call, fields, prompt, node);
                break;
        default:
                fields_fail(fields, FAILURE_REQUEST, "prompt",
                            "prompt must be a string, an array of strings, an array of token ids, "
                            "or an array of those");
        }
}

/* A list of numbers is one prompt; a list of anything else is a list of prompts. */
static void read_prompts(struct call *call, struct fields *fields)
{
        struct completions *completions = call->own;
        uint32_t node = field_of(fields, 0, "prompt");
        uint32_t first = json_first(fields->json, node);
        bool list = json_kind(fields->json, node) == JSON_ARRAY &&
                    json_kind(fields->json, first) != JSON_NUMBER;
        uint32_t count = list ? json_count(fields->json, node) : 1;

        if (count > PROMPTS_MAX) {
                fields_fail(fields, FAILURE_REQUEST, "prompt", "prompt has %u prompts; at most %u",
                            count, PROMPTS_MAX);
                return;
        }
        completions->prompts =
                arena_alloc(&call->arena, (count + 1) * sizeof(*completions->prompts));
        if (!completions->prompts)
                return;
        if (!list)
                read_prompt(call, fields, node);
        for (uint32_t at = list ? first : JSON_NONE; at != JSON_NONE;
             at = json_next(fields->json, at))
                read_prompt(call, fields, at);
        if (!completions->prompt_count)
                fields_fail(fields, FAILURE_REQUEST, "prompt", "prompt is an empty array");
}

/* No token at all is right if only the prompt is to be shown. */
static void read_length(struct fields *fields, struct completions *completions)
{
        uint64_t length;

        if (json_whole(fields->json, field_of(fields, 0, "max_tokens"), &length) && !length) {
                completions->options.max_tokens = 0;
                completions->options.set |= SMV_SET_MAX_TOKENS;
        } else {
                sampling_read_length(fields, 0, "max_tokens", &completions->options);
        }
}

/* `echo` with logprobs asks for those of the prompt, as programs do that measure models. */
static void read_scores(struct fields *fields, struct completions *completions)
{
        bool none = completions->options.set & SMV_SET_MAX_TOKENS;

        if (none && !completions->echo)
                fields_fail(fields, FAILURE_REQUEST, "max_tokens",
                            "max_tokens is 0; it may be only with echo");
        completions->scores = completions->echo && completions->logprobs;
        if (!completions->scores && !none)
                return;
        completions->options.prompt_logprobs = completions->options.logprobs;
        completions->options.set |= SMV_SET_PROMPT_LOGPROBS;
}

static void read_request(struct call *call, struct fields *fields)
{
        struct completions *completions = call->own;
        uint64_t top = 0;

        completions->options =
                (struct smv_generate){ SMV_SIZE(smv_generate), .clamp = 1, .max_tokens = LENGTH };
        field_text(fields, 0, "model", &completions->head.model);
        read_prompts(call, fields);
        openai_read_options(call, fields, &completions->options);
        read_length(fields, completions);
        completions->stream = openai_read_stream(fields);
        field_bool(fields, 0, "echo", &completions->echo);
        if (field_uint(fields, 0, "logprobs", 0, LOGPROBS_MAX, &top)) {
                completions->logprobs = true;
                completions->options.logprobs = (uint32_t)top;
                completions->options.set |= SMV_SET_LOGPROBS;
        }
        field_refuse(fields, 0, "suffix", "the model has no fill-in-the-middle");
        constraint_read_format(call, fields, field_object(fields, 0, "response_format"),
                               "response_format", &completions->options);
        read_scores(fields, completions);
        completions->left = completions->prompt_count;
}

void openai_completions(struct call *call)
{
        struct fields fields = { 0 };
        struct completions *completions;
        bool tokens = false;

        if (!call_read_json(call))
                return;
        fields.json = call->json;
        call->own = completions = arena_alloc(&call->arena, sizeof(*completions));
        if (completions)
                read_request(call, &fields);
        if (!call_was_read(call, &fields))
                return;
        call->clean = clean;
        completions->head.object = "text_completion";
        call_identifier(call, "cmpl-", completions->head.id, sizeof(completions->head.id));
        completions->head.created_s = call->facts.created_s;
        for (uint32_t i = 0; i < completions->prompt_count; i++)
                tokens |= completions->prompts[i].given.tokens != NULL;
        if (completions->logprobs || (completions->echo && tokens))
                call_with_vocabulary(call, go);
        else
                call_with_daemon(call, go);
}

/* Not 404, which programs take for a wrong address. */
void openai_embeddings(struct call *call)
{
        struct failure failure =
                failure_make(FAILURE_UNSUPPORTED, NULL, "the daemon does not make embeddings yet");

        call_fail(call, &failure);
}
