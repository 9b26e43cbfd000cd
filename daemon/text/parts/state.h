/*
 * The state of the parts of a stream (daemon/text/parts.h), what is made of them, and how its
 * modules add to that.
 */
#ifndef DAEMON_TEXT_PARTS_STATE_H
#define DAEMON_TEXT_PARTS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/error.h>
#include <samovar/ring.h>

#include "daemon/text/parts/argument-types.h"
#include "daemon/text/parts/dialect.h"
#include "daemon/text/parts/json-scan.h"

#define PARTS_HELD_MAX 1024u
#define PARTS_NAME_MAX 128u /* bytes of a tool's name */

/*
 * The object of a call, as far as it is read; parts/call.c.  Its bytes are held back until the
 * arguments can be passed on.
 */
struct parts_call {
        uint8_t at;
        bool bare;         /* it has no mark */
        bool in_reasoning; /* its mark stands in reasoning */
        bool begun;        /* its name is passed on */
        bool passed_on;    /* its parts are; what follows in the object is skipped */
        bool has_name, has_arguments;
        /* Of SHAPE_NAMED: MARK_NAME has come, MARK_CALL_ID has, MARK_ARGUMENTS has. */
        bool has_kind, has_id, has_mark;
        uint8_t key_bytes, name_bytes;
        uint16_t arguments_at, arguments_bytes; /* in the bytes that are held ... */
        uint16_t mark_at;                       /* ... as is a mark, or tag, in the call */
        uint16_t value_bytes;                   /* of SHAPE_TAGGED, of a whole value of JSON */
        uint8_t type;                           /* enum argument_type, of its value */
        bool first, newline, streams;           /* see parts/tagged-call.c */
        uint8_t literal, left, word_bytes;      /* see parts/literal-call.c, as for these */
        char quote, word[6];
        char key[12]; /* the first bytes of the key being read */
        char name[PARTS_NAME_MAX];
};

enum parts_state {
        PARTS_TEXT,
        PARTS_REASONING,
        PARTS_IN_CALL,
        PARTS_CALL_END, /* the object of a call is over, and its closing mark may follow */
        PARTS_HEADER,   /* of SHAPE_CHANNELS: before the text of a message */
};

struct parts {
        const struct dialect *dialect;
        const struct argument_types *types; /* of the request's tools, or NULL */
        bool calls_wanted;
        uint8_t state;
        bool fresh;   /* nothing but blanks came since the beginning, reasoning, or a call */
        bool answer;  /* MARK_ANSWER has come */
        uint8_t skip; /* newlines that may follow and belong to the mark before */
        uint8_t word; /* of the word behind a mark, so many bytes have come ... */
        const char *word_after; /* ... of this one; NULL: it may not follow */
        struct parts_call call;
        struct json_scan scan;
        /* In `held`: all bytes since the last that were passed on. */
        uint32_t held_count, escapes; /* bytes that escapes add to them */
        char held[PARTS_HELD_MAX];

        /* Of all text so far: */
        uint32_t call_count; /* calls that have begun */
        uint32_t flags;      /* enum smv_parts_flag */
        /* Tokens of this stream, see parts_count(). */
        uint32_t reasoning_tokens, held_tokens;
        bool reasoned;
};

/* Where the parts go: room for parts_bytes_max() and parts_count_max(). */
struct parts_out {
        char *text;
        size_t bytes;
        struct smv_record_part *parts; /* they divide the text */
        size_t count;
};

/* Adds bytes to the last part if it goes on with them, else a part.  Empty text is no part. */
void parts_put(struct parts *parts, struct parts_out *out, enum smv_part_kind kind, uint32_t flags,
               const char *text, size_t bytes);
/* The same with one byte of a string of JSON, escaped if need be. */
void parts_put_string(struct parts *parts, struct parts_out *out, uint8_t byte);
void parts_put_call_end(struct parts *parts, struct parts_out *out, uint32_t flags);

/* Passes all bytes that are held back on, as a part of this kind. */
void parts_release(struct parts *parts, struct parts_out *out, enum smv_part_kind kind,
                   uint32_t flags);
/* Holds a byte back, and forgets all of them. */
void parts_hold(struct parts *parts, uint8_t byte);
void parts_drop(struct parts *parts);
bool parts_holds_only_blanks(const struct parts *parts);

#endif
