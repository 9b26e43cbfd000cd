#include "daemon/text/parts/dialect.h"

#include <assert.h>
#include <string.h>

#include "daemon/text/parts/json-scan.h"

#define SIGNS_MAX 3u
/* The mark that opens reasoning is looked for in so many tokens at the end of a prompt. */
#define TAIL_TOKENS 16u
#define TAIL_BYTES  64u

/* A template has the dialect if it has each of the texts in `has`, and none of those in `lacks`. */
struct signs {
        const char *has[SIGNS_MAX], *lacks[SIGNS_MAX];
};

struct calls {
        const char *name;
        struct signs signs;
        enum dialect_shape shape;
        bool bare;
        struct dialect_spelling call, call_end, call_id, arguments;
};

/* The most specific first: the first whose signs are in the template is taken. */
static const struct calls calls[] = {
        /* Hermes 2 and 3, Qwen2.5, Qwen3, Granite 4 */
        { .name = "hermes",
          .signs = { { "<tool_call>" }, { "<function=", "<arg_key>" } },
          .shape = SHAPE_OBJECT,
          .call = { "<tool_call>", .newline_before = 1 },
          .call_end = { "</tool_call>", .newline_before = 1 } },
        /* Small 3.2 */
        { .name = "mistral-v11",
          .signs = { { "[TOOL_CALLS]", "[CALL_ID]" } },
          .shape = SHAPE_NAMED,
          .call = { "[TOOL_CALLS]" },
          .call_id = { "[CALL_ID]" },
          .arguments = { "[ARGS]" } },
        /* Magistral, Devstral, Ministral 3 */
        { .name = "mistral-v13",
          .signs = { { "[TOOL_CALLS]", "[ARGS]" } },
          .shape = SHAPE_NAMED,
          .call = { "[TOOL_CALLS]" },
          .arguments = { "[ARGS]" } },
        /* Nemo, Small 3.0 */
        { .name = "mistral-v3",
          .signs = { { "[TOOL_CALLS]" } },
          .shape = SHAPE_LIST,
          .call = { "[TOOL_CALLS]" } },
        /* Llama 3.1 to 3.3: some templates do not write the token before calls */
        { .name = "llama3",
          .signs = { { "<|python_tag|>" }, { "<tool_call>" } },
          .shape = SHAPE_OBJECT,
          .bare = true,
          .call = { "<|python_tag|>" } },
        { .name = "llama3",
          .signs = { { "ipython", "\"parameters\": " }, { "<tool_call>" } },
          .shape = SHAPE_OBJECT,
          .bare = true,
          .call = { "<|python_tag|>" } },
};

/* A model has it if either mark is in its template, or if the first is a token. */
struct reasoning {
        struct dialect_spelling think, think_end;
};

static const struct reasoning reasonings[] = {
        { .think = { "<think>", .newline_before = 1, .newlines_after = 1 },
          .think_end = { "</think>", .newline_before = 1, .newlines_after = 2 } },
        { .think = { "[THINK]" }, .think_end = { "[/THINK]" } },
};

static bool has_text(const struct dialect_conf *conf, const char *text)
{
        for (size_t i = 0; i < sizeof(conf->templates) / sizeof(*conf->templates); i++)
                if (conf->templates[i] && strstr(conf->templates[i], text))
                        return true;
        return false;
}

static bool has_signs(const struct dialect_conf *conf, const struct signs *signs)
{
        for (size_t i = 0; i < SIGNS_MAX; i++)
                if ((signs->has[i] && !has_text(conf, signs->has[i])) ||
                    (signs->lacks[i] && has_text(conf, signs->lacks[i])))
                        return false;
        return true;
}

/* The id of the token that the vocabulary writes like this; false: there is none. */
static bool find_token(const struct tokenizer *tokenizer, const char *text, uint32_t *ret_token)
{
        size_t wanted = strlen(text), bytes;

        for (uint32_t id = 0; id < tokenizer_vocab(tokenizer); id++) {
                const char *spelling = tokenizer_spelling(tokenizer, id, &bytes);

                if (bytes == wanted && !memcmp(spelling, text, bytes)) {
                        *ret_token = id;
                        return true;
                }
        }
        return false;
}

static void add_mark(struct dialect *dialect, const struct dialect_conf *conf,
                     enum dialect_mark mark, const struct dialect_spelling *spelling)
{
        uint32_t token;

        if (!spelling->text)
                return;
        assert(strlen(spelling->text) <= MARK_BYTES_MAX);
        dialect->marks[mark].spelling = *spelling;
        dialect->marks[mark].bytes = (uint8_t)strlen(spelling->text);
        dialect->marks[mark].is_token = find_token(conf->tokenizer, spelling->text, &token) &&
                                        tokenizer_kind(conf->tokenizer, token) == ENTRY_CONTROL;
        if (dialect->marks[mark].is_token)
                dialect->marks[mark].token = token;
}

static size_t escaped_max(const struct tokenizer *tokenizer)
{
        char escape[JSON_SCAN_ESCAPE_BYTES];
        size_t most = 0, bytes;

        for (uint32_t id = 0; id < tokenizer_vocab(tokenizer); id++) {
                const char *spelling = tokenizer_spelling(tokenizer, id, &bytes);
                size_t escaped = bytes;

                for (size_t i = 0; i < bytes; i++)
                        if ((uint8_t)spelling[i] < ' ')
                                escaped += json_scan_escape((uint8_t)spelling[i], escape) - 1;
                if (escaped > most)
                        most = escaped;
        }
        return most;
}

static void add_calls(struct dialect *dialect, const struct dialect_conf *conf)
{
        for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
                if (!has_signs(conf, &calls[i].signs))
                        continue;
                dialect->name = calls[i].name;
                dialect->shape = calls[i].shape;
                dialect->bare = calls[i].bare;
                add_mark(dialect, conf, MARK_CALL, &calls[i].call);
                add_mark(dialect, conf, MARK_CALL_END, &calls[i].call_end);
                add_mark(dialect, conf, MARK_CALL_ID, &calls[i].call_id);
                add_mark(dialect, conf, MARK_ARGUMENTS, &calls[i].arguments);
                return;
        }
}

static void add_reasoning(struct dialect *dialect, const struct dialect_conf *conf)
{
        uint32_t token;

        for (size_t i = 0; i < sizeof(reasonings) / sizeof(*reasonings); i++) {
                const struct reasoning *reasoning = &reasonings[i];

                if (!has_text(conf, reasoning->think.text) &&
                    !has_text(conf, reasoning->think_end.text) &&
                    !find_token(conf->tokenizer, reasoning->think.text, &token))
                        continue;
                add_mark(dialect, conf, MARK_THINK, &reasoning->think);
                add_mark(dialect, conf, MARK_THINK_END, &reasoning->think_end);
                return;
        }
}

void dialect_open(const struct dialect_conf *conf, struct dialect *ret_dialect)
{
        *ret_dialect = (struct dialect){ .name = "" };
        add_calls(ret_dialect, conf);
        add_reasoning(ret_dialect, conf);
        ret_dialect->piece_max = escaped_max(conf->tokenizer);
}

void dialect_drop_calls(struct dialect *dialect)
{
        dialect->name = "";
        dialect->shape = SHAPE_NONE;
        dialect->bare = false;
        for (unsigned mark = 0; mark < MARK_N; mark++)
                if (mark != MARK_THINK && mark != MARK_THINK_END)
                        memset(&dialect->marks[mark], 0, sizeof(dialect->marks[mark]));
}

enum dialect_mark dialect_mark(const struct dialect *dialect, uint32_t token)
{
        for (unsigned mark = 0; mark < MARK_N; mark++)
                if (dialect->marks[mark].is_token && dialect->marks[mark].token == token)
                        return (enum dialect_mark)mark;
        return MARK_N;
}

/* The text before `end` of the tail of a prompt, one token longer; false: it has no room. */
static bool put_before(const struct tokenizer *tokenizer, uint32_t token, char *tail, size_t *end)
{
        size_t bytes;
        const char *spelling = tokenizer_spelling(tokenizer, token, &bytes);

        if (bytes > *end)
                return false;
        *end -= bytes;
        memcpy(tail + *end, spelling, bytes);
        return true;
}

bool dialect_opens_reasoning(const struct dialect *dialect, const struct tokenizer *tokenizer,
                             const uint32_t *tokens, size_t count)
{
        size_t bytes = dialect->marks[MARK_THINK].bytes, at = TAIL_BYTES, end = TAIL_BYTES;
        char tail[TAIL_BYTES];

        if (!bytes)
                return false;
        for (size_t i = 0; i < count && i < TAIL_TOKENS; i++)
                if (!put_before(tokenizer, tokens[count - 1 - i], tail, &at))
                        break;
        while (end > at && json_is_blank((uint8_t)tail[end - 1]))
                end--;
        return end - at >= bytes &&
               !memcmp(tail + end - bytes, dialect->marks[MARK_THINK].spelling.text, bytes);
}
