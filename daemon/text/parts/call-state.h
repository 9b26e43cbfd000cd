/*
 * Call state: where a call is, and what the readers of its shapes share: call.h, named-call.h.
 */
#ifndef DAEMON_TEXT_PARTS_CALL_STATE_H
#define DAEMON_TEXT_PARTS_CALL_STATE_H

#include "daemon/text/parts/state.h"

enum call_outcome {
        CALL_MORE,  /* the byte was taken */
        CALL_WHOLE, /* it was taken, and ends the call, or the last of a list; all is passed on */
        CALL_BAD,   /* it was not taken: no call goes on like this */
};

enum call_at {
        OPEN, /* before the object */
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
        /* SHAPE_NAMED, from here on */
        NAMED,      /* in the name */
        NAMED_MARK, /* in a mark behind it */
        NAMED_ID,
        NAMED_OPEN, /* before the arguments */
};

/* Holds the byte back; the call is at `next` then.  Returns CALL_MORE. */
enum call_outcome call_take(struct parts *parts, uint8_t byte, enum call_at next);

/* A call begins: passes its name on. */
void call_put_name(struct parts *parts, struct parts_out *out);
/* Passes a byte of the arguments on, behind the name. */
enum call_outcome call_pass_argument(struct parts *parts, uint8_t byte, struct parts_out *out);
/* The name is known, and this is the first byte of the arguments: both are passed on. */
enum call_outcome call_pass_first_argument(struct parts *parts, uint8_t byte,
                                           struct parts_out *out);

#endif
