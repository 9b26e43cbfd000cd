/*
 * Call state: where a call is, and what the readers of its shapes share: call.h, named-call.h,
 * literal-call.h and tagged-call.h.
 */
#ifndef DAEMON_TEXT_PARTS_CALL_STATE_H
#define DAEMON_TEXT_PARTS_CALL_STATE_H

#include "daemon/text/parts/state.h"

enum call_outcome {
        CALL_MORE, /* the byte was taken */
        /*
         * It was taken, and ends the call, or the last of a list; all is passed on.  Bytes that are
         * held do not belong to the call.
         */
        CALL_WHOLE,
        CALL_BAD, /* it was not taken: no call goes on like this */
};

enum call_at {
        FRAME, /* behind MARK_CALLS, before MARK_CALL */
        OPEN,  /* before the object */
        KEY_OR_END,
        KEY,
        IN_KEY,
        COLON,
        VALUE,
        NAME,
        HELD_ARGUMENTS,
        ARGUMENTS, /* they are passed on */
        OTHER,     /* the value of a key that does not matter */
        NEXT,      /* a comma or the end */
        /* SHAPE_LIST */
        LIST,
        LIST_NEXT,
        /* SHAPE_CHANNELS */
        CHANNEL_OPEN, /* before the arguments */
        /* SHAPE_NAMED */
        NAMED,      /* in the name */
        NAMED_MARK, /* in a mark behind it */
        NAMED_ID,
        NAMED_OPEN, /* before the arguments */
        /* SHAPE_PYTHON and SHAPE_BARE */
        LITERAL_WORD, /* "call:" */
        LITERAL_NAME,
        LITERAL_KEY, /* of Python, or the end */
        LITERAL,     /* in the arguments, which are passed on */
        /* SHAPE_TAGGED */
        TAGGED,          /* in the name */
        TAGGED_NAME_END, /* in the tag behind it */
        TAGGED_NEXT,     /* before a key, or the end */
        TAGGED_KEY,
        TAGGED_KEY_END,
        TAGGED_OPEN,   /* before the tag of a value */
        TAGGED_STRING, /* in a value that is a string */
        TAGGED_JSON,   /* in a value that may be JSON */
        TAGGED_CLOSE,  /* ... which is over if its last tag follows */
};

/* Holds the byte back; the call is at `next` then.  Returns CALL_MORE. */
enum call_outcome call_take(struct parts *parts, uint8_t byte, enum call_at next);

/* A call begins: passes its name on. */
void call_put_name(struct parts *parts, struct parts_out *out);
/* Passes a byte of the arguments on, behind the name. */
enum call_outcome call_pass_argument(struct parts *parts, uint8_t byte, struct parts_out *out);
/* Passes a whole value of JSON on. */
void call_put_json(struct parts *parts, struct parts_out *out, const char *json, size_t bytes);
/* The name is known, and this is the first byte of the arguments: both are passed on. */
enum call_outcome call_pass_first_argument(struct parts *parts, uint8_t byte,
                                           struct parts_out *out);

#endif
