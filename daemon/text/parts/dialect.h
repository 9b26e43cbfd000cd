/*
 * Dialect: how a model writes its reasoning and its tool calls.
 *
 * The table in dialect-rows.c has all dialects.  A model's dialect is chosen when the model is
 * opened, by signs in its chat template: text that only templates of this dialect have.
 * The marks around reasoning and calls are then looked up in the vocabulary.  A mark that is a
 * control token is found by its id only.  The same characters in other tokens are text.  Any other
 * mark is found by its bytes, in whichever tokens they come.
 *
 * Read-only after it is opened; any thread may use it.
 */
#ifndef DAEMON_TEXT_PARTS_DIALECT_H
#define DAEMON_TEXT_PARTS_DIALECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/text/parts/dialect-form.h"
#include "daemon/text/tokenizer.h"

struct dialect {
        const char *name; /* "": the model has no dialect of calls that is known */
        enum dialect_shape shape;
        uint32_t traits;                       /* enum dialect_trait */
        const struct dialect_tags *tags;       /* of SHAPE_TAGGED */
        const struct dialect_writing *writing; /* NULL: it has no calls */
        struct {
                struct dialect_spelling spelling;
                uint8_t bytes;  /* of the text; 0: there is no such mark */
                bool is_token;  /* it is a control token ... */
                uint32_t token; /* ... with this id */
        } marks[MARK_N];
        size_t piece_max; /* the most bytes of a token's text if it is written into a JSON string */
};

struct dialect_conf {
        const struct tokenizer *tokenizer;
        const char *templates[2]; /* the model's chat templates; NULL: it has none */
        /* Its calls are of this dialect, or of none if that is not known; NULL: see the signs. */
        const char *name;
};

/* Is that the name of a dialect of calls? */
bool dialect_is_known(const char *name);

void dialect_open(const struct dialect_conf *conf, struct dialect *ret_dialect);

/* The model does not write calls in this way after all: its dialect has only reasoning. */
void dialect_drop_calls(struct dialect *dialect);

static inline bool dialect_has_calls(const struct dialect *dialect)
{
        return dialect->shape != SHAPE_NONE;
}

static inline bool dialect_has_reasoning(const struct dialect *dialect)
{
        return dialect->marks[MARK_THINK].bytes || dialect->marks[MARK_THINK_END].bytes ||
               dialect->shape == SHAPE_CHANNELS;
}

/* The mark that this token is; MARK_N: none. */
enum dialect_mark dialect_mark(const struct dialect *dialect, uint32_t token);

/*
 * True if the text that follows these tokens is reasoning: they end with the mark that opens it.
 * That depends on the template, which may write the mark behind the last message, and on its
 * variables.
 */
bool dialect_opens_reasoning(const struct dialect *dialect, const struct tokenizer *tokenizer,
                             const uint32_t *tokens, size_t count);

#endif
