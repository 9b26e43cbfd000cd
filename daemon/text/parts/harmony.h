/*
 * Harmony: divides the messages of SHAPE_CHANNELS, where each says in a header what it is.
 *
 *      analysis             its text is REASONING
 *      a recipient "to=N"   its text is a call of N, or of M if N is "functions.M"
 *      all others           their text is TEXT
 *
 * A stream begins behind the role of its first message, so in a header.  A message that is a call
 * but has no object of JSON is TEXT with the flag UNPARSED, with its header.  So is a header that
 * does not end within HARMONY_HEADER_MAX bytes.
 */
#ifndef DAEMON_TEXT_PARTS_HARMONY_H
#define DAEMON_TEXT_PARTS_HARMONY_H

#include "daemon/text/parts/state.h"

#define HARMONY_HEADER_MAX 256u

/* As parts_feed(), parts_mark() and parts_end(). */
void harmony_feed(struct parts *parts, const char *text, size_t bytes, struct parts_out *out);
void harmony_mark(struct parts *parts, enum dialect_mark mark, struct parts_out *out);
void harmony_end(struct parts *parts, struct parts_out *out);

#endif
