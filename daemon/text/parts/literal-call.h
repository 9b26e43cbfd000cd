/*
 * Literal call: reads a call whose arguments are no JSON, but literals: of Python (SHAPE_PYTHON),
 * or with bare keys and strings between marks (SHAPE_BARE).  They are passed on as JSON.
 *
 * Strings of Python may be in either quotes.  Of its escapes, those that JSON has and those of two
 * hexadecimal digits are read; a backslash before another byte is a backslash.
 */
#ifndef DAEMON_TEXT_PARTS_LITERAL_CALL_H
#define DAEMON_TEXT_PARTS_LITERAL_CALL_H

#include "daemon/text/parts/call-state.h"

/* As call_feed() and call_mark(). */
enum call_outcome literal_call_feed(struct parts *parts, uint8_t byte, struct parts_out *out);
enum call_outcome literal_call_mark(struct parts *parts, enum dialect_mark mark,
                                    struct parts_out *out);

#endif
