/*
 * Tagged call: reads a call whose arguments stand in tags of their own: SHAPE_TAGGED.
 *
 * The name is passed on when a first argument or the end of the call follows it.  A value is a
 * string if the tag of its key or the tool's schema says so, or if it is no JSON: 12 is a number
 * and "12 apples" is not.
 * The last tag of a value counts only if the tag of another key or the end of the call follows, as
 * a value may have that tag in it.
 */
#ifndef DAEMON_TEXT_PARTS_TAGGED_CALL_H
#define DAEMON_TEXT_PARTS_TAGGED_CALL_H

#include "daemon/text/parts/call-state.h"

/* As call_feed() and call_mark(). */
enum call_outcome tagged_call_feed(struct parts *parts, uint8_t byte, struct parts_out *out);
enum call_outcome tagged_call_mark(struct parts *parts, enum dialect_mark mark,
                                   struct parts_out *out);

#endif
