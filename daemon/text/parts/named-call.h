/*
 * Named call: reads a call whose name stands before its arguments, outside of them: SHAPE_NAMED.
 *
 * Some models leave the mark before the arguments out; then they stand right behind the name.
 */
#ifndef DAEMON_TEXT_PARTS_NAMED_CALL_H
#define DAEMON_TEXT_PARTS_NAMED_CALL_H

#include "daemon/text/parts/call-state.h"

/* As call_feed() and call_mark(), up to the arguments. */
enum call_outcome named_call_feed(struct parts *parts, uint8_t byte, struct parts_out *out);
enum call_outcome named_call_mark(struct parts *parts, enum dialect_mark mark);

#endif
