#include "bridge/openai/completion-text.h"

#include <string.h>

#include "bridge/core/logprobs.h"

static uint64_t characters(struct text text)
{
        uint64_t count = 0;

        for (size_t i = 0; i < text.bytes; i++)
                count += ((unsigned char)text.at[i] & 0xc0) != 0x80;
        return count;
}

/* ---- echo ---- */

/* The text of a prompt of tokens, for `echo`. */
static struct text text_of_tokens(struct call *call, const struct completion_prompt *prompt)
{
        const struct vocabulary *vocabulary = call->bridge->vocabulary;
        size_t bytes = 0, at = 0;
        char *text;

        for (size_t i = 0; i < prompt->token_count; i++)
                bytes += vocabulary_piece(vocabulary, prompt->tokens[i]).bytes;
        text = arena_alloc(&call->arena, bytes + 1);
        for (size_t i = 0; text && i < prompt->token_count; i++) {
                struct text piece = vocabulary_piece(vocabulary, prompt->tokens[i]);

                memcpy(text + at, piece.at, piece.bytes);
                at += piece.bytes;
        }
        return (struct text){ text, at };
}

bool completion_echo(struct run *run, struct completion_prompt *prompt,
                     struct completion_choice *choices)
{
        if (prompt->tokens)
                prompt->text = text_of_tokens(run->call, prompt);
        if (run->call->arena.failed)
                return false;
        for (uint32_t i = 0; i < run->count; i++) {
                choices[i].offset = characters(prompt->text);
                if (bytes_add(&run->choices[i].text, prompt->text.at, prompt->text.bytes))
                        return false;
        }
        return true;
}

/* ---- logprobs ---- */

static void put_top(struct json_builder *to, const struct vocabulary *vocabulary,
                    const struct smv_logprob *entries, size_t count)
{
        json_put_object(to);
        for (size_t k = 1; k <= count; k++) {
                struct text piece = vocabulary_piece(vocabulary, entries[k].token);

                json_put_text(to, piece.at, piece.bytes);
                json_write_raw(&to->out, ":");
                to->comma = false;
                json_put_float(to, logprob_shown(entries[k].logprob));
        }
        json_put_object_end(to);
}

/* Logprobs of tokens that follow each other. */
struct entries {
        const struct smv_logprob *at;
        size_t count, step; /* step: 1 and the likeliest tokens */
};

/* The part of a choice that the answer shows now: its prompt, if asked for, and new tokens. */
struct shown {
        bool prompt;
        struct text first; /* the text of the first token of the prompt */
        struct entries parts[2];
};

static struct text piece_at(const struct vocabulary *vocabulary, const struct entries *entries,
                            size_t i)
{
        return vocabulary_piece(vocabulary, entries->at[i * entries->step].token);
}

/* The text of a prompt in front of the tokens that have logprobs: that of its first token. */
static struct text first_text(const struct completion_prompt *prompt,
                              const struct vocabulary *vocabulary, const struct entries *entries)
{
        size_t rest = 0;

        if (prompt->token_count)
                return vocabulary_piece(vocabulary, prompt->tokens[0]);
        for (size_t i = 0; i < entries->count; i++)
                rest += piece_at(vocabulary, entries, i).bytes;
        return (struct text){ prompt->text.at,
                              prompt->text.bytes > rest ? prompt->text.bytes - rest : 0 };
}

static struct shown shown_of(struct run *run, uint32_t index,
                             const struct completion_prompt *prompt, bool scores)
{
        struct run_choice *choice = &run->choices[index];
        size_t step = 1 + run->options.prompt_logprobs;
        struct shown shown = {
                .prompt = scores,
                .parts[0] = { .at = (const void *)run->prompt_values.at, .step = step },
                .parts[1] = { .at = (const void *)choice->logprobs.values.at,
                              .count = run_logprobs_ready(choice),
                              .step = 1 + choice->logprobs.top_count },
        };

        if (!shown.prompt)
                return shown;
        shown.parts[0].count = run->prompt_values.count / (step * sizeof(struct smv_logprob));
        shown.first = first_text(prompt, run->call->bridge->vocabulary, &shown.parts[0]);
        return shown;
}

static void put_texts(struct json_builder *to, const struct vocabulary *vocabulary,
                      const struct shown *shown)
{
        json_put_key(to, "tokens");
        json_put_array(to);
        if (shown->prompt)
                json_put_text(to, shown->first.at, shown->first.bytes);
        for (unsigned part = 0; part < 2; part++)
                for (size_t i = 0; i < shown->parts[part].count; i++) {
                        struct text piece = piece_at(vocabulary, &shown->parts[part], i);

                        json_put_text(to, piece.at, piece.bytes);
                }
        json_put_array_end(to);
}

/* The first token of a prompt follows nothing, so it has no logprob. */
static void put_values(struct json_builder *to, const struct shown *shown)
{
        json_put_key(to, "token_logprobs");
        json_put_array(to);
        if (shown->prompt)
                json_put_null(to);
        for (unsigned part = 0; part < 2; part++) {
                const struct entries *entries = &shown->parts[part];

                for (size_t i = 0; i < entries->count; i++)
                        json_put_float(to, logprob_shown(entries->at[i * entries->step].logprob));
        }
        json_put_array_end(to);
}

static void put_tops(struct json_builder *to, const struct vocabulary *vocabulary,
                     const struct shown *shown)
{
        json_put_key(to, "top_logprobs");
        json_put_array(to);
        if (shown->prompt)
                json_put_null(to);
        for (unsigned part = 0; part < 2; part++) {
                const struct entries *entries = &shown->parts[part];

                for (size_t i = 0; i < entries->count; i++)
                        put_top(to, vocabulary, &entries->at[i * entries->step], entries->step - 1);
        }
        json_put_array_end(to);
}

static void put_offsets(struct json_builder *to, const struct vocabulary *vocabulary,
                        const struct shown *shown, uint64_t *offset)
{
        json_put_key(to, "text_offset");
        json_put_array(to);
        if (shown->prompt) {
                json_put_uint(to, 0);
                *offset = characters(shown->first);
        }
        for (unsigned part = 0; part < 2; part++)
                for (size_t i = 0; i < shown->parts[part].count; i++) {
                        json_put_uint(to, *offset);
                        *offset += characters(piece_at(vocabulary, &shown->parts[part], i));
                }
        json_put_array_end(to);
}

void completion_put_logprobs(struct json_builder *to, struct run *run, uint32_t index,
                             const struct completion_prompt *prompt,
                             struct completion_choice *choice)
{
        const struct vocabulary *vocabulary = run->call->bridge->vocabulary;
        struct shown shown = shown_of(run, index, prompt, choice->scores);

        if (!shown.parts[0].count && !shown.parts[1].count) {
                json_put_null(to);
                return;
        }
        json_put_object(to);
        put_texts(to, vocabulary, &shown);
        put_values(to, &shown);
        put_tops(to, vocabulary, &shown);
        put_offsets(to, vocabulary, &shown, &choice->offset);
        json_put_object_end(to);
        run_logprobs_take(&run->choices[index], shown.parts[1].count);
        choice->scores = false;
}
