#include "tests/e2e/combination.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define VOCABULARY 2048u /* of teaspoon */

static const char *const questions[] = {
        "Is it warm in Athens?",
        "What is two plus three?",
        "Tell me a story of a red kettle and a boat.",
        "Name a colour and a number.",
        "Write a list.",
        "Repeat: la la la la la la la la la la la la la la la la la la la la la la la la la la.",
};

/* [{type: function, function: {name: weather, description, parameters}}] in msgpack */
static const char tools[] = "\x91\x82\xa4type\xa8"
                            "function\xa8"
                            "function\x83\xa4name\xa7weather\xab"
                            "description\xb6the weather of a place\xaaparameters\x82\xa4type\xa6"
                            "object\xaaproperties\x81\xa5place\x81\xa4type\xa6string";

static const char *const begun[] = { NULL, "<think>\n", "Well,", "{" };

static const char *const constraints[] = {
        NULL,
        "{\"schema\":{\"type\":\"object\",\"properties\":{\"word\":{\"enum\":[\"red\",\"blue\"]},"
        "\"n\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":99},\"what\":{\"type\":\"string\","
        "\"maxLength\":20}},\"required\":[\"word\",\"n\"],\"additionalProperties\":false}}",
        "{\"regex\":\"([a-z]{2,8} ){3,9}[0-9]+\"}",
        "{\"json\":true}",
        "{\"choices\":[\"yes\",\"no\",\"it is a long story\",\"it is a longer story\"]}",
        "{\"grammar\":\"root ::= item+\\nitem ::= \\\"- \\\" [a-z ]{1,12} \\\"\\\\n\\\"\"}",
        "{\"tags\":[{\"begin\":\"<n>\",\"end\":\"</n>\",\"regex\":\"[0-9]{1,3}\"}]}",
};

static const char *const stops[][2] = { { NULL }, { "the", NULL }, { "\n", " a" }, { "}", "e" } };

/* ---- the model ---- */

/* In the template of teaspoon: blanks become a comment of as many bytes. */
#define BLANKS  "                    {%- set call"
#define COMMENT "{#-<think></think>#}{%- set call"

void combination_write_model(const char *folder, char path[256])
{
        const char *model = getenv("COMBINATION_MODEL");
        FILE *file;
        char *bytes, *at;
        long size;

        snprintf(path, 256, "%s/models/%s", getenv("SOURCES"),
                 model ? model : "teaspoon-q8_0.gguf");
        file = fopen(path, "r");
        assert(file && !fseek(file, 0, SEEK_END));
        size = ftell(file);
        bytes = malloc((size_t)size);
        assert(bytes && size > 0);
        rewind(file);
        assert(fread(bytes, 1, (size_t)size, file) == (size_t)size);
        fclose(file);
        at = memmem(bytes, (size_t)size, BLANKS, strlen(BLANKS));
        assert(at);
        memcpy(at, COMMENT, strlen(COMMENT));
        snprintf(path, 256, "%s/teaspoon-thinks.gguf", folder);
        file = fopen(path, "w");
        assert(file && fwrite(bytes, 1, (size_t)size, file) == (size_t)size);
        assert(!fclose(file));
        free(bytes);
}

/* ---- drawing ---- */

/* The next word of a sequence: splitmix64. */
static uint64_t next(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

/* 0 in half of all cases, else 1 to `most`. */
static uint32_t some(uint64_t *state, uint32_t most)
{
        uint64_t word = next(state);

        return word & 1 ? 1 + (uint32_t)(word >> 1) % most : 0;
}

/* A stream that asks is alone, and has no logprobs, mirostat or limit if it asks for tokens. */
static void fit_questions(struct combination *of)
{
        if (!of->ask) {
                of->whole_row = 0;
                return;
        }
        of->siblings = of->fork_at = of->detach_at = 0;
        if (of->logprobs || of->cuts == 6 || of->reasoning)
                of->ask = SMV_ASK_MASK;
        /* A mask forbids tokens of the end of reasoning, too, and a list does not. */
        if (of->reasoning)
                of->allowed = 0;
}

void combination_draw(uint32_t number, struct combination *ret_combination)
{
        uint64_t state = number;

        *ret_combination = (struct combination){
                .number = number,
                .question = (uint32_t)next(&state) % COUNT(questions),
                .tools = some(&state, 1),
                .choice = some(&state, 4),
                .begun = some(&state, 1) ? some(&state, COUNT(begun) - 1) : 0,
                .constraint = some(&state, COUNT(constraints) - 1),
                .temperature = some(&state, 2),
                .cuts = some(&state, 6),
                .penalties = some(&state, 4),
                .bans = some(&state, 3),
                .logprobs = some(&state, 2),
                .stops = some(&state, COUNT(stops) - 1),
                .parts = some(&state, 1),
                .control_text = some(&state, 1),
                .min_tokens = some(&state, 1) ? some(&state, 20) : 0,
                .reasoning = some(&state, 12),
                .max_tokens = 1 + (uint32_t)next(&state) % COMBINATION_TOKENS,
                .siblings = some(&state, COMBINATION_N - 1),
                .fork_at = some(&state, 30),
                .detach_at = some(&state, 30),
                .allowed = some(&state, 1) ? some(&state, 1) : 0,
                .rows = some(&state, 6),
                .ask = some(&state, 1) ? some(&state, SMV_ASK_TOKEN) : 0,
                .whole_row = some(&state, 1),
        };
        /* Siblings begin together, and only one stream has a resume id here. */
        if (ret_combination->siblings)
                ret_combination->detach_at = 0;
        fit_questions(ret_combination);
}

/* ---- features ---- */

struct feature {
        const char *name;
        uint32_t *value;
};

/* Members that may be 0, in the order in which a failure is made smaller. */
static void list_features(struct combination *of, struct feature features[COMBINATION_FEATURES])
{
        const struct feature all[COMBINATION_FEATURES] = {
                { "siblings", &of->siblings },
                { "fork_at", &of->fork_at },
                { "detach_at", &of->detach_at },
                { "whole_row", &of->whole_row },
                { "ask", &of->ask },
                { "rows", &of->rows },
                { "allowed", &of->allowed },
                { "logprobs", &of->logprobs },
                { "control_text", &of->control_text },
                { "parts", &of->parts },
                { "stops", &of->stops },
                { "min_tokens", &of->min_tokens },
                { "bans", &of->bans },
                { "penalties", &of->penalties },
                { "cuts", &of->cuts },
                { "temperature", &of->temperature },
                { "reasoning", &of->reasoning },
                { "constraint", &of->constraint },
                { "begun", &of->begun },
                { "choice", &of->choice },
                { "tools", &of->tools },
                { "question", &of->question },
                { "max_tokens", &of->max_tokens },
        };

        memcpy(features, all, sizeof(all));
}

bool combination_without(struct combination *combination, uint32_t feature)
{
        struct feature features[COMBINATION_FEATURES];
        uint32_t off;

        list_features(combination, features);
        off = features[feature].value == &combination->max_tokens ? COMBINATION_TOKENS : 0;
        if (*features[feature].value == off)
                return false;
        *features[feature].value = off;
        fit_questions(combination);
        return true;
}

void combination_describe(const struct combination *combination, char *to, size_t bytes)
{
        struct combination copy = *combination;
        struct feature features[COMBINATION_FEATURES];
        size_t n = (size_t)snprintf(to, bytes, "combination %u:", copy.number);

        list_features(&copy, features);
        for (size_t i = 0; i < COMBINATION_FEATURES && n < bytes; i++)
                if (*features[i].value)
                        n += (size_t)snprintf(to + n, bytes - n, " %s %u", features[i].name,
                                              *features[i].value);
}

/* ---- the request ---- */

static void set_cuts(const struct combination *of, struct smv_generate *ask)
{
        switch (of->cuts) {
        case 1:
                ask->top_k = 5;
                ask->set |= SMV_SET_TOP_K;
                break;
        case 2:
                ask->top_p = 0.8f;
                ask->set |= SMV_SET_TOP_P;
                break;
        case 3:
                ask->min_p = 0.2f;
                ask->set |= SMV_SET_MIN_P;
                break;
        case 4:
                ask->n_sigma = 2;
                ask->xtc_chance = 0.5f;
                break;
        case 5:
                ask->typical = 0.9f;
                ask->temperature_range = 0.5f;
                ask->order = SMV_ORDER_TEMPERATURE_LAST;
                break;
        case 6:
                ask->mirostat_tau = 3;
                break;
        default:
                break;
        }
}

/* Choices of tools have a meaning only with tools. */
static void set_choice(const struct combination *of, struct smv_generate *ask)
{
        static const char *const names[] = { "weather" };

        switch (of->tools ? of->choice : 0) {
        case 1:
                ask->tool_choice = SMV_TOOLS_REQUIRED;
                break;
        case 2:
                ask->tool_choice = SMV_TOOLS_REQUIRED;
                ask->allowed_tools = names;
                ask->allowed_tool_count = COUNT(names);
                ask->calls_max = 1;
                break;
        case 3:
                ask->calls_max = 2;
                break;
        case 4:
                ask->tool_choice = SMV_TOOLS_NONE;
                break;
        default:
                break;
        }
}

static void set_penalties(const struct combination *of, struct smv_generate *ask)
{
        switch (of->penalties) {
        case 1:
                ask->presence_penalty = 0.5f;
                ask->frequency_penalty = 0.3f;
                break;
        case 2:
                ask->repetition_penalty = 1.3f;
                break;
        case 3:
                ask->dry_multiplier = 0.8f;
                break;
        case 4:
                ask->no_repeat_ngram = 3;
                break;
        default:
                break;
        }
}

static void set_bans(const struct combination *of, struct smv_generate *ask)
{
        static const char *const texts[] = { " the", "ed", "o w" };
        static const struct smv_bias biases[] = { { 32, 2 }, { 264, -3 }, { 300, 1.5f } };
        static const uint32_t banned[] = { 101, 290, 291, 292, 296 };

        switch (of->bans) {
        case 1:
                ask->banned_texts = texts;
                ask->banned_text_count = COUNT(texts);
                break;
        case 2:
                ask->biases = biases;
                ask->bias_count = COUNT(biases);
                break;
        case 3:
                ask->banned_tokens = banned;
                ask->banned_token_count = COUNT(banned);
                break;
        default:
                break;
        }
}

/* Seven of eight tokens may be drawn. */
static bool is_allowed(const struct combination *of, uint32_t token)
{
        uint64_t state = (uint64_t)of->number << 32 | token;

        return next(&state) % 8 > 0;
}

static void set_allowed(const struct combination *of, struct smv_generate *ask)
{
        static uint32_t allowed[VOCABULARY];
        size_t count = 0;

        if (!of->allowed)
                return;
        for (uint32_t i = 0; i < VOCABULARY; i++)
                if (is_allowed(of, i))
                        allowed[count++] = i;
        ask->allowed_tokens = allowed;
        ask->allowed_token_count = count;
}

struct smv_generate combination_request(const struct combination *of, uint32_t n, uint32_t sample)
{
        static struct smv_message messages[2];
        struct smv_generate ask = {
                SMV_SIZE(smv_generate),
                .messages = messages,
                .message_count = of->begun ? 2 : 1,
                .continue_final_message = of->begun != 0,
                .max_tokens = of->max_tokens,
                .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                .temperature = of->temperature == 0   ? 0
                               : of->temperature == 1 ? 0.8f
                                                      : 1.7f,
                .seed = of->number,
                .constraint = constraints[of->constraint],
                .logprobs = of->logprobs > 1 ? 3 : 0,
                .parts = of->parts != 0,
                .control_text = of->control_text != 0,
                .min_tokens = of->min_tokens,
                .n = n,
                .sample_index = sample,
        };

        messages[0] = (struct smv_message){ "user", questions[of->question], 0 };
        messages[1] = (struct smv_message){ "assistant", begun[of->begun], 0 };
        if (of->tools)
                ask.packed_tools = (struct smv_packed){ tools, sizeof(tools) - 1 };
        if (of->logprobs)
                ask.set |= SMV_SET_LOGPROBS;
        ask.stops = stops[of->stops];
        ask.stop_count = of->stops ? stops[of->stops][1] ? 2 : 1 : 0;
        if (of->reasoning) {
                ask.set |= SMV_SET_REASONING_MAX;
                ask.reasoning_max = of->reasoning - 1;
                ask.reasoning_end = of->reasoning % 2 ? "\nEnough." : NULL;
        }
        set_choice(of, &ask);
        set_cuts(of, &ask);
        set_penalties(of, &ask);
        set_bans(of, &ask);
        set_allowed(of, &ask);
        if (of->rows) {
                ask.set |= SMV_SET_ROW_TOP;
                ask.row_top = of->rows - 1;
        }
        return ask;
}

struct smv_generate combination_asking_request(const struct combination *of, uint32_t n,
                                               uint32_t sample)
{
        struct smv_generate ask = combination_request(of, n, sample);

        if (!of->ask)
                return ask;
        ask.ask = of->ask;
        ask.ask_ms = SMV_ASK_MS_MAX;
        ask.whole_row = of->whole_row != 0;
        if (of->ask == SMV_ASK_MASK)
                ask.allowed_token_count = 0;
        return ask;
}

int combination_answer(const struct combination *of, struct smv_client *client, uint32_t stream)
{
        uint32_t mask[VOCABULARY / 32] = { 0 };

        if (of->ask == SMV_ASK_TOKEN)
                return smv_answer_token(client, stream, SMV_TOKEN_AS_DRAWN);
        if (!of->allowed)
                return smv_answer_mask(client, stream, NULL, 0);
        for (uint32_t i = 0; i < VOCABULARY; i++)
                if (is_allowed(of, i))
                        mask[i / 32] |= 1u << i % 32;
        return smv_answer_mask(client, stream, mask, COUNT(mask));
}

/* ---- outcomes ---- */

static void show(struct outcome *outcome, const char *kind, double a, double b)
{
        outcome->shown_bytes += (size_t)snprintf(outcome->shown + outcome->shown_bytes,
                                                 COMBINATION_SHOWN - outcome->shown_bytes,
                                                 "%s %a %a\n", kind, a, b);
        assert(outcome->shown_bytes < COMBINATION_SHOWN);
}

/* Parts may be cut anywhere, so each of their bytes is shown. */
static void show_parts(struct outcome *outcome, const struct smv_event *event)
{
        for (size_t i = 0; i < event->part_count; i++) {
                const struct smv_part *part = &event->parts[i];

                for (uint32_t j = 0; j < part->bytes; j++) {
                        assert(outcome->shown_bytes + 2 < COMBINATION_SHOWN);
                        outcome->shown[outcome->shown_bytes++] = (char)('A' + part->kind);
                }
                if (part->kind == SMV_PART_CALL_END)
                        show(outcome, "end of call", part->call, part->flags);
        }
}

/* Whole rows come only to those who are asked, so they are checked and not shown. */
static void show_row(struct outcome *outcome, const struct smv_row *row)
{
        show(outcome, "row", row->position, (double)row->log_sum);
        for (size_t i = 0; i <= row->top_count; i++) {
                const struct smv_logprob *entry = &row->entries[i];

                show(outcome, "entry", entry->token, (double)entry->logprob);
                if (row->logits)
                        assert(fabs((double)row->logits[entry->token] - (double)entry->logprob -
                                    (double)row->log_sum) < 1e-4);
        }
}

void outcome_add(struct outcome *outcome, const struct smv_event *event)
{
        const struct smv_logprob *at = event->logprobs;

        if (event->kind == SMV_EVENT_END) {
                outcome->end = *event;
                return;
        }
        if (event->row && outcome->shows_rows)
                show_row(outcome, event->row);
        if (event->kind == SMV_EVENT_ASK)
                return;
        assert(outcome->count + event->token_count <= COMBINATION_TOKENS);
        assert(outcome->text_bytes + event->text_bytes < COMBINATION_TEXT);
        if (!outcome->count)
                outcome->first = event->position;
        memcpy(outcome->tokens + outcome->count, event->tokens,
               event->token_count * sizeof(*event->tokens));
        if (event->text_bytes)
                memcpy(outcome->text + outcome->text_bytes, event->text, event->text_bytes);
        outcome->count += (uint32_t)event->token_count;
        outcome->text_bytes += event->text_bytes;
        for (size_t i = 0; at && i < event->token_count * (1 + event->top_count); i++)
                show(outcome, "logprob", at[i].token, (double)at[i].logprob);
        show_parts(outcome, event);
}

static bool same_end(const struct smv_event *a, const struct smv_event *b, bool is_fork)
{
        bool same = a->reason == b->reason && a->code == b->code &&
                    a->stopped_by == b->stopped_by && a->calls == b->calls &&
                    (!a->stopped_by || a->stop_index == b->stop_index) &&
                    a->prompt_tokens + a->output_tokens == b->prompt_tokens + b->output_tokens;

        return same && (is_fork ||
                        (a->output_tokens == b->output_tokens && a->parts_flags == b->parts_flags &&
                         a->reasoning_tokens == b->reasoning_tokens));
}

static bool ends_with(const void *whole, size_t whole_bytes, const void *end, size_t end_bytes)
{
        return end_bytes <= whole_bytes &&
               !memcmp((const char *)whole + whole_bytes - end_bytes, end, end_bytes);
}

bool outcome_same(const struct outcome *whole, const struct outcome *other, bool is_fork, char *why,
                  size_t bytes)
{
        const char *what = NULL;

        if (whole->refused != other->refused)
                what = "the refusal";
        else if (!ends_with(whole->tokens, whole->count * sizeof(uint32_t), other->tokens,
                            other->count * sizeof(uint32_t)) ||
                 (!is_fork && whole->count != other->count))
                what = "the tokens";
        else if (!ends_with(whole->text, whole->text_bytes, other->text, other->text_bytes) ||
                 (!is_fork && whole->text_bytes != other->text_bytes))
                what = "the text";
        else if (!ends_with(whole->shown, whole->shown_bytes, other->shown, other->shown_bytes) ||
                 (!is_fork && whole->shown_bytes != other->shown_bytes))
                what = "parts or logprobs";
        else if (!whole->refused && !same_end(&whole->end, &other->end, is_fork))
                what = "the end";
        if (what)
                snprintf(why, bytes,
                         "%s: %u tokens, \"%.200s\", %s, code %d; not %u tokens, \"%.200s\", %s, "
                         "code %d",
                         what, whole->count, whole->text, smv_reason_name(whole->end.reason),
                         whole->refused ? whole->refused : (int)whole->end.code, other->count,
                         other->text, smv_reason_name(other->end.reason),
                         other->refused ? other->refused : (int)other->end.code);
        return !what;
}
