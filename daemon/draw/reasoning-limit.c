#include "daemon/draw/reasoning-limit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/parts.h"

/* A character that has begun has so many tokens more at most. */
#define UTF8_TOKENS 3u

/* The header of an answer in a dialect of channels has so many marks and words. */
#define END_BYTES_MAX (5 * MARK_BYTES_MAX + 32u)

/* Behind the tokens that were seen. */
struct state {
        struct parts parts;
        uint32_t seen;     /* 0: none, parts_begin() was not called */
        uint32_t at;       /* so many of `end` have come; the next one follows */
        uint8_t utf8_left; /* bytes that the last character lacks */
        bool used;
};

struct reasoning_limit {
        size_t bytes; /* of all its memory */
        const struct dialect *dialect;
        const struct tokenizer *tokenizer;
        uint32_t tokens_max;
        bool calls_wanted;
        const uint32_t *end; /* the tokens that are forced */
        uint32_t end_count;

        /* From here on only the engine reads and writes it. */
        struct state state;
        struct state kept; /* before guesses; `guessed`: there are some */
        bool guessed;
        struct parts_out out; /* nobody reads it */
};

/* ---- what is forced ---- */

static void add_mark(const struct dialect *dialect, enum dialect_mark mark, char *text,
                     size_t *bytes)
{
        memcpy(text + *bytes, dialect->marks[mark].spelling.text, dialect->marks[mark].bytes);
        *bytes += dialect->marks[mark].bytes;
}

static void add_word(const char *word, char *text, size_t *bytes)
{
        memcpy(text + *bytes, word, strlen(word));
        *bytes += strlen(word);
}

static void add_end(const struct dialect *dialect, char *text, size_t *bytes)
{
        if (dialect->shape != SHAPE_CHANNELS) {
                add_mark(dialect, MARK_THINK_END, text, bytes);
                return;
        }
        add_mark(dialect, MARK_END, text, bytes);
        add_mark(dialect, MARK_START, text, bytes);
        add_word("assistant", text, bytes);
        add_mark(dialect, MARK_CHANNEL, text, bytes);
        add_word("final", text, bytes);
        add_mark(dialect, MARK_MESSAGE, text, bytes);
}

/* Message and end as tokens.  Control tokens are found in the end only. */
static int encode_end(const struct reasoning_limit_conf *conf, uint32_t **ret_ids,
                      size_t *ret_count)
{
        const struct text_part behind_message = { conf->message_bytes, SIZE_MAX };
        struct encoding how = { .controls = &behind_message, .control_count = 1 };
        size_t bytes = conf->message_bytes;
        char *text = malloc(bytes + END_BYTES_MAX);
        uint32_t *ids = NULL;
        int r = -ENOMEM;

        if (text) {
                if (bytes)
                        memcpy(text, conf->message, bytes);
                add_end(conf->dialect, text, &bytes);
                ids = calloc(tokenizer_ids_max(conf->tokenizer, bytes) + 1, sizeof(*ids));
        }
        if (ids)
                r = tokenizer_encode(conf->tokenizer, text, bytes, &how, ids, ret_count);
        free(text);
        if (r) {
                free(ids);
                return error_raise(r);
        }
        *ret_ids = ids;
        return 0;
}

/* ---- its memory ---- */

static struct reasoning_limit *make(const struct dialect *dialect, const uint32_t *end,
                                    size_t end_count)
{
        size_t text = parts_bytes_max(dialect->piece_max);
        size_t parts = parts_count_max(dialect, dialect->piece_max);
        size_t bytes = sizeof(struct reasoning_limit) + parts * sizeof(struct smv_record_part) +
                       end_count * sizeof(*end) + text;
        struct reasoning_limit *limit = calloc(1, bytes);
        uint32_t *to;

        if (!limit)
                return NULL;
        limit->bytes = bytes;
        limit->out.parts = (struct smv_record_part *)(limit + 1);
        to = (uint32_t *)(limit->out.parts + parts);
        if (end_count)
                memcpy(to, end, end_count * sizeof(*end));
        limit->end = to;
        limit->end_count = (uint32_t)end_count;
        limit->out.text = (char *)(to + end_count);
        limit->dialect = dialect;
        return limit;
}

int reasoning_limit_new(const struct reasoning_limit_conf *conf, struct reasoning_limit **ret)
{
        struct reasoning_limit *limit;
        uint32_t *end = NULL;
        size_t count = 0;
        int r;

        assert(dialect_has_reasoning(conf->dialect));
        r = encode_end(conf, &end, &count);
        if (r)
                return error_pass(r);
        limit = make(conf->dialect, end, count);
        free(end);
        if (!limit)
                return error_raise(-ENOMEM);
        limit->tokenizer = conf->tokenizer;
        limit->tokens_max = conf->tokens_max;
        limit->calls_wanted = conf->calls_wanted;
        *ret = limit;
        return 0;
}

int reasoning_limit_like(const struct reasoning_limit *other, struct reasoning_limit **ret)
{
        struct reasoning_limit *limit = make(other->dialect, other->end, other->end_count);

        if (!limit)
                return error_raise(-ENOMEM);
        limit->tokenizer = other->tokenizer;
        limit->tokens_max = other->tokens_max;
        limit->calls_wanted = other->calls_wanted;
        *ret = limit;
        return 0;
}

void reasoning_limit_follow(struct reasoning_limit *limit, const struct reasoning_limit *other)
{
        assert(limit->dialect == other->dialect && limit->end_count == other->end_count);
        assert(!other->guessed);
        limit->state = other->state;
}

struct reasoning_limit *reasoning_limit_free(struct reasoning_limit *limit)
{
        free(limit);
        return NULL;
}

size_t reasoning_limit_bytes(const struct reasoning_limit *limit)
{
        return limit ? limit->bytes : 0;
}

/* ---- the tokens ---- */

/* A byte that continues no character ends the one before. */
static uint8_t utf8_left(uint8_t left, uint8_t byte)
{
        if ((byte & 0xC0) == 0x80)
                return left ? left - 1 : 0;
        return byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
}

static bool is_over(const struct reasoning_limit *limit)
{
        uint32_t tokens = limit->state.parts.reasoning_tokens;

        return limit->state.parts.state == PARTS_REASONING && tokens >= limit->tokens_max &&
               (!limit->state.utf8_left || tokens - limit->tokens_max >= UTF8_TOKENS);
}

static uint32_t next(const struct reasoning_limit *limit)
{
        return limit->end_count && (limit->state.at || is_over(limit)) ? limit->end[limit->state.at]
                                                                       : REASONING_LIMIT_NONE;
}

static void read_text(struct reasoning_limit *limit, uint32_t token)
{
        enum dialect_mark mark = dialect_mark(limit->dialect, token);
        size_t bytes = 0;
        const char *text;

        limit->out.bytes = limit->out.count = 0;
        if (mark != MARK_N) {
                parts_mark(&limit->state.parts, mark, &limit->out);
        } else {
                text = tokenizer_piece(limit->tokenizer, token, &bytes);
                parts_feed(&limit->state.parts, text, bytes, &limit->out);
                for (size_t i = 0; i < bytes; i++)
                        limit->state.utf8_left =
                                utf8_left(limit->state.utf8_left, (uint8_t)text[i]);
        }
        parts_count(&limit->state.parts);
}

static void read_token(struct reasoning_limit *limit, uint32_t token)
{
        uint32_t wanted = next(limit);

        if (wanted == token) {
                limit->state.used = true;
                limit->state.at = (limit->state.at + 1) % limit->end_count;
        } else {
                limit->state.at = 0;
        }
        read_text(limit, token);
}

uint32_t reasoning_limit_next(struct reasoning_limit *limit, const uint32_t *tokens, uint32_t count,
                              uint32_t answer)
{
        const struct dialect *dialect = limit->dialect;

        assert(answer && count >= answer && count >= limit->state.seen);
        if (!limit->state.seen) {
                bool open = dialect_opens_reasoning(dialect, limit->tokenizer, tokens, answer);

                parts_begin(&limit->state.parts, dialect, NULL, limit->calls_wanted, open);
                limit->state.seen = answer;
        }
        while (limit->state.seen < count)
                read_token(limit, tokens[limit->state.seen++]);
        return next(limit);
}

void reasoning_limit_keep(struct reasoning_limit *limit)
{
        assert(!limit->guessed);
        limit->kept = limit->state;
        limit->guessed = true;
}

void reasoning_limit_return(struct reasoning_limit *limit)
{
        if (limit->guessed)
                limit->state = limit->kept;
        limit->guessed = false;
}

bool reasoning_limit_is_used(struct reasoning_limit *limit, const uint32_t *tokens, uint32_t count)
{
        while (limit->state.seen && limit->state.seen < count)
                read_token(limit, tokens[limit->state.seen++]);
        return limit->state.used;
}
