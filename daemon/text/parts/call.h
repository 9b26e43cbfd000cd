/*
 * Call: reads a tool call, in one of the shapes of dialect-form.h, from behind its mark on.
 *
 * The keys of an object may come in any order, and others may stand beside them, which are skipped.
 * "parameters" is another word for "arguments", and "tool_name" for "name".  A call without
 * arguments, or with null, has {}.
 * But an object without a mark is a call only if it has arguments: it may be an answer in JSON.
 */
#ifndef DAEMON_TEXT_PARTS_CALL_H
#define DAEMON_TEXT_PARTS_CALL_H

#include "daemon/text/parts/call-state.h"

/* At most this many blanks stand before the mark that closes a call. */
#define CALL_BLANKS_MAX 32u

/* The bytes that are held are those of its mark ... */
void call_begin(struct parts *parts, bool in_reasoning);
/* ... or none are, as it has no mark ... */
void call_begin_bare(struct parts *parts);
/* ... or they are MARK_CALLS, which MARK_CALL must follow. */
void call_begin_frame(struct parts *parts, bool in_reasoning);
enum call_outcome call_feed(struct parts *parts, uint8_t byte, struct parts_out *out);
/* The same for a control token that is a mark. */
enum call_outcome call_mark(struct parts *parts, enum dialect_mark mark, struct parts_out *out);

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
