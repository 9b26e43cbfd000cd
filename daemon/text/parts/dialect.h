/*
 * Dialect: how a model writes its reasoning and its tool calls.
 *
 * The table in dialect.c has the dialects that are known.  A model's dialect is chosen when the
 * model is opened, by signs in its chat template: text that only templates of this dialect have.
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

#include "daemon/text/tokenizer.h"

enum dialect_mark {
        MARK_CALL,     /* a call follows */
        MARK_CALL_END, /* ... and has ended */
        MARK_THINK,    /* reasoning follows */
        MARK_THINK_END,
        MARK_CALL_ID,   /* in a call: behind the name, before an id */
        MARK_ARGUMENTS, /* in a call: before the arguments */
        MARK_NAME,      /* in a call: before the name, behind a word for the kind of call */
        MARK_CALLS,     /* calls follow ... */
        MARK_CALLS_END, /* ... and have all ended */
        MARK_ANSWER,    /* text for people follows ... */
        MARK_ANSWER_END,
        MARK_QUOTE, /* in a call: before and behind a string */
        /* SHAPE_CHANNELS: of a message, before its role, its channel, its form and its text ... */
        MARK_START,
        MARK_CHANNEL,
        MARK_FORM,
        MARK_MESSAGE,
        MARK_END,  /* ... and behind it */
        MARK_SENT, /* ... if it was a call */
        MARK_N,
};

/* No mark is longer. */
#define MARK_BYTES_MAX 32u

/* How a call is written. */
enum dialect_shape {
        SHAPE_NONE,   /* the dialect has no calls that are known */
        SHAPE_OBJECT, /* MARK_CALL {"name": N, "arguments": {...}} MARK_CALL_END */
        SHAPE_LIST,   /* MARK_CALL [{"name": N, "arguments": {...}}, ...] MARK_CALL_END */
        /*
         * MARK_CALL kind MARK_NAME N MARK_CALL_ID I MARK_ARGUMENTS {...} MARK_CALL_END; a dialect
         * may lack the kind and the id, with their marks.
         */
        SHAPE_NAMED,
        /*
         * Messages: MARK_START role MARK_CHANNEL channel MARK_FORM form MARK_MESSAGE text MARK_END.
         * "to=N" behind the role or the channel makes the text, an object of JSON, a call.
         */
        SHAPE_CHANNELS,
        SHAPE_PYTHON, /* MARK_CALL [N(K=V, ...), ...] MARK_CALL_END; values are those of Python */
        SHAPE_BARE,   /* MARK_CALL call:N{K:V, ...} MARK_CALL_END; strings are in MARK_QUOTE */
        SHAPE_TAGGED, /* MARK_CALL N, then each argument in tags: struct dialect_tags */
};

/* What else is peculiar to the calls of a dialect. */
enum dialect_trait {
        /* A call may also stand without its mark, where reasoning may begin. */
        DIALECT_BARE = 1 << 0,
        /* A call may stand in reasoning, and ends it. */
        DIALECT_IN_REASONING = 1 << 1,
        /* A name is written "functions.N:i", where i counts calls. */
        DIALECT_NUMBERED = 1 << 2,
        /* The arguments stand in a fence of backticks, and MARK_ARGUMENTS opens it. */
        DIALECT_FENCED = 1 << 3,
        /* The marks of reasoning also stand elsewhere, with nothing between them or alone. */
        DIALECT_STRAY = 1 << 4,
        /* An object is {N: {...}}, its only key is the name. */
        DIALECT_NAME_IS_KEY = 1 << 5,
};

struct dialect_spelling {
        const char *text;       /* NULL: the dialect does not have this mark */
        uint8_t newline_before; /* 1: a newline before the mark belongs to it */
        uint8_t newlines_after; /* so many at most behind the mark belong to it */
        const char *word_after; /* as does this word before them; or NULL */
};

/*
 * A call of SHAPE_TAGGED: N name_end, for each argument `key` K key_end `value` V value_end, and
 * call_end.  Blanks may stand before `key`, `value` and call_end.
 */
struct dialect_tags {
        const char *name_end; /* NULL: the name ends before the first blank or tag */
        const char *key, *key_end;
        const char *raw_key_end; /* the value is a string, whatever it looks like; or NULL */
        const char *value;       /* NULL: it follows key_end at once */
        const char *value_end, *call_end;
        /* One newline may stand behind the first tag of a value, and then also before its last. */
        bool newlines;
};

struct dialect {
        const char *name; /* "": the model has no dialect of calls that is known */
        enum dialect_shape shape;
        uint32_t traits;                 /* enum dialect_trait */
        const struct dialect_tags *tags; /* of SHAPE_TAGGED */
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
};

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
