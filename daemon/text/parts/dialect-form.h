/*
 * Dialect form: the marks, shapes and tags that dialects are made of.
 */
#ifndef DAEMON_TEXT_PARTS_DIALECT_FORM_H
#define DAEMON_TEXT_PARTS_DIALECT_FORM_H

#include <stdbool.h>
#include <stdint.h>

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
        MARK_END,      /* ... and behind it */
        MARK_SENT,     /* ... if it was a call */
        MARK_CALL_TOO, /* another mark that a call follows */
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

/*
 * How the template of a dialect writes calls, byte by byte, where a reader takes more spellings:
 *
 *      begin call between call ... end
 *
 * Marks stand in these texts as their own text.  In `call`, the bytes below stand for its parts.
 */
#define WRITTEN_NAME      "\1"
#define WRITTEN_ARGUMENTS "\2" /* an object of JSON, or what stands for it in this shape */
#define WRITTEN_ID        "\3" /* nine letters or digits */
#define WRITTEN_NUMBER    "\4"

struct dialect_writing {
        const char *begin, *call; /* begin and end: or NULL */
        const char *between;      /* NULL: there is only one call */
        const char *end;
        /* Of shapes whose arguments are no JSON: struct json_tags. */
        const char *key, *key_end, *raw_key_end, *value_end, *between_values;
};

#endif
