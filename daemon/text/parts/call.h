/*
 * Call: reads the object of a tool call, {"name": N, "arguments": {...}}.
 *
 * The keys may come in any order, and others may stand beside them, which are skipped.
 * "parameters" is another word for "arguments".  A call without arguments, or with null, has {}.
 */
#ifndef DAEMON_TEXT_PARTS_CALL_H
#define DAEMON_TEXT_PARTS_CALL_H

#include "daemon/text/parts/state.h"

/* At most this many blanks stand before the mark that closes a call. */
#define CALL_BLANKS_MAX 32u

enum call_outcome {
        CALL_MORE,  /* the byte was taken */
        CALL_WHOLE, /* it was taken, and ends the object; the call was passed on */
        CALL_BAD,   /* it was not taken: no object goes on like this */
};

/* The bytes that are held are those before the object. */
void call_begin(struct parts *parts);
enum call_outcome call_feed(struct parts *parts, uint8_t byte, struct parts_out *out);

/* The name was passed on, and the arguments are not whole. */
bool call_is_open(const struct parts *parts);
/* All of the call was passed on, but the object is not over. */
bool call_is_passed_on(const struct parts *parts);
/*
 * All of the call was passed on, and nothing but blanks is held: the object may be taken as over,
 * although its end does not come.
 */
bool call_may_end(const struct parts *parts);

#endif
