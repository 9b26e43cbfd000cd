/*
 * Parts: divides the text of a stream into text for people, reasoning, and tool calls.
 *
 * It is fed what the detok shows, and reads it byte by byte.  So the parts of a text do not depend
 * on the tokens, or other pieces, in which the text comes.  It holds bytes back only while they may
 * still become a mark that can stand here, or belong to a call whose name is not known yet.
 *
 *      TEXT        all text that is none of the following
 *      REASONING   the text between the marks of reasoning, without them
 *      CALL        the name of a tool, whole; once for each call, before its other parts
 *      ARGUMENTS   JSON text; the ARGUMENTS of a call together are one object, never empty
 *      CALL_END    no bytes; the call is whole, unless the part has the flag CUT
 *
 * Nothing that a model writes is an error.  A call that cannot be read becomes a TEXT with the flag
 * UNPARSED: all bytes from its mark on, up to the first that does not fit.  If its name and a part
 * of its arguments were passed on already, it gets a CALL_END with the flag CUT, and the bytes that
 * do not fit are text.  Then the parser reads on, and takes the next mark as it would any other.
 *
 *      reasoning   The mark that opens it counts at the beginning, behind other reasoning, and
 *                  behind a call; elsewhere it is text.  In reasoning, all marks are text but the
 *                  one that closes it.  The models of some dialects also call from reasoning, which
 *                  that ends.  What cannot be read as a call there is still reasoning.
 *      calls       Only if the caller asks for them: a model that was offered no tools writes no
 *                  calls.  The arguments are checked as JSON.  A control character in a string of
 *                  theirs, such as a line break, is escaped.  If the arguments stand before the
 *                  name, they are held back, and all of the call may have PARTS_HELD_MAX bytes;
 *                  more than that is a call that cannot be read.
 *                  An argument in tags is a string if its tag or its tool says so
 *                  (argument-types.h), or if it cannot be read as JSON; else it is JSON.
 *      frames      Marks around calls that can be read, or around the answer, are in no part.
 *
 * All memory is in struct parts, which may be copied: a fork of a stream goes on from the same
 * state.  Any thread; nothing is allocated.
 */
#ifndef DAEMON_TEXT_PARTS_H
#define DAEMON_TEXT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/text/parts/state.h"

/* The most that one feed of `bytes` adds, which escapes may have made longer. */
static inline size_t parts_bytes_max(size_t bytes)
{
        return bytes + PARTS_HELD_MAX + MARK_BYTES_MAX;
}

/*
 * The shortest texts for their parts are calls without arguments, or that are cut at once, with a
 * letter between them: four parts each.
 */
static inline size_t parts_count_max(const struct dialect *dialect, size_t bytes)
{
        static const uint8_t least[] = {
                [SHAPE_NONE] = 8,     [SHAPE_OBJECT] = 6, [SHAPE_LIST] = 4, [SHAPE_NAMED] = 3,
                [SHAPE_CHANNELS] = 3, [SHAPE_PYTHON] = 1, [SHAPE_BARE] = 1, [SHAPE_TAGGED] = 4
        };

        /* What looked like a string of an argument may turn out to be several calls. */
        if (dialect->shape == SHAPE_TAGGED)
                bytes += PARTS_HELD_MAX;
        return bytes / least[dialect->shape] + 8;
}

/* `types` are those of the tools, or NULL; they live as long as the stream. */
void parts_begin(struct parts *parts, const struct dialect *dialect,
                 const struct argument_types *types, bool calls_wanted, bool in_reasoning);

/*
 * Continues from the state of `other`, whose types are the same, but may end earlier; its
 * reasoning_tokens do not count.
 */
void parts_follow(struct parts *parts, const struct parts *other,
                  const struct argument_types *types);

/* Adds to *out, as do the next two. */
void parts_feed(struct parts *parts, const char *text, size_t bytes, struct parts_out *out);
/* The stream has a control token here that is this mark. */
void parts_mark(struct parts *parts, enum dialect_mark mark, struct parts_out *out);
/* The text is over: what is held back is text, and a call that is not whole is cut. */
void parts_end(struct parts *parts, struct parts_out *out);

/* Call this after each token: it counts those of reasoning, with its marks. */
void parts_count(struct parts *parts);

#endif
