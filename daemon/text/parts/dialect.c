#include "daemon/text/parts/dialect.h"

#include <assert.h>
#include <string.h>

#include "daemon/text/parts/dialect-rows.h"
#include "daemon/text/parts/json-scan.h"

/* The mark that opens reasoning is looked for in so many tokens at the end of a prompt. */
#define TAIL_TOKENS 16u
#define TAIL_BYTES  64u

static bool has_text(const struct dialect_conf *conf, const char *text)
{
        for (size_t i = 0; i < sizeof(conf->templates) / sizeof(*conf->templates); i++)
                if (conf->templates[i] && strstr(conf->templates[i], text))
                        return true;
        return false;
}

static bool has_signs(const struct dialect_conf *conf, const struct dialect_signs *signs)
{
        for (size_t i = 0; i < DIALECT_SIGNS_MAX; i++)
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

/* The most bytes of a token in a string of JSON; raw: it also escapes quotes and backslashes. */
static size_t escaped_max(const struct tokenizer *tokenizer, bool raw)
{
        char escape[JSON_SCAN_ESCAPE_BYTES];
        size_t most = 0, bytes;

        for (uint32_t id = 0; id < tokenizer_vocab(tokenizer); id++) {
                const char *spelling = tokenizer_spelling(tokenizer, id, &bytes);
                size_t escaped = bytes;

                for (size_t i = 0; i < bytes; i++)
                        if ((uint8_t)spelling[i] < ' ')
                                escaped += json_scan_escape((uint8_t)spelling[i], escape) - 1;
                        else if (raw && (spelling[i] == '"' || spelling[i] == '\\'))
                                escaped++;
                if (escaped > most)
                        most = escaped;
        }
        return most;
}

/*
 * The row with that name, or any name, whose signs are in the templates.  With a name, the first
 * such row if no signs are there; NULL: there is none.
 */
static const struct dialect_row *find_row(const struct dialect_conf *conf)
{
        const struct dialect_row *first = NULL;

        for (size_t i = 0; i < dialect_row_count; i++) {
                const struct dialect_row *row = &dialect_rows[i];

                if (conf->name && strcmp(conf->name, row->name))
                        continue;
                if (has_signs(conf, &row->signs))
                        return row;
                if (conf->name && !first)
                        first = row;
        }
        return first;
}

static void add_calls(struct dialect *dialect, const struct dialect_conf *conf,
                      const struct dialect_row *row)
{
        dialect->name = row->name;
        dialect->shape = row->shape;
        dialect->traits = row->traits;
        dialect->tags = row->tags;
        dialect->writing = row->writing;
        for (unsigned mark = 0; mark < MARK_N; mark++)
                add_mark(dialect, conf, (enum dialect_mark)mark, &row->marks[mark]);
}

static void add_reasoning(struct dialect *dialect, const struct dialect_conf *conf)
{
        uint32_t token;

        for (size_t i = 0; i < dialect_reasoning_count; i++) {
                const struct dialect_reasoning *reasoning = &dialect_reasonings[i];

                if (!has_text(conf, reasoning->think.text) &&
                    !has_text(conf, reasoning->think_end.text) &&
                    !find_token(conf->tokenizer, reasoning->think.text, &token))
                        continue;
                add_mark(dialect, conf, MARK_THINK, &reasoning->think);
                add_mark(dialect, conf, MARK_THINK_END, &reasoning->think_end);
                return;
        }
}

bool dialect_is_known(const char *name)
{
        for (size_t i = 0; i < dialect_row_count; i++)
                if (!strcmp(name, dialect_rows[i].name))
                        return true;
        return false;
}

void dialect_open(const struct dialect_conf *conf, struct dialect *ret_dialect)
{
        const struct dialect_row *row = find_row(conf);

        *ret_dialect = (struct dialect){ .name = "" };
        if (row)
                add_calls(ret_dialect, conf, row);
        add_reasoning(ret_dialect, conf);
        ret_dialect->piece_max = escaped_max(conf->tokenizer, ret_dialect->shape == SHAPE_TAGGED);
        /* Quotes around keys, and escapes, make the arguments at most twice as long. */
        if (ret_dialect->shape == SHAPE_PYTHON || ret_dialect->shape == SHAPE_BARE)
                ret_dialect->piece_max *= 2;
}

void dialect_drop_calls(struct dialect *dialect)
{
        dialect->name = "";
        dialect->shape = SHAPE_NONE;
        dialect->traits = 0;
        dialect->tags = NULL;
        dialect->writing = NULL;
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
