/*
 * Tags: compares bytes that are held with the tags of a dialect (struct dialect_tags).
 */
#ifndef DAEMON_TEXT_PARTS_TAGS_H
#define DAEMON_TEXT_PARTS_TAGS_H

#include "daemon/text/parts/state.h"

enum tags_match {
        TAGS_NO_MATCH,
        TAGS_BEGINNING, /* the bytes are the beginning of it */
        TAGS_WHOLE,
        TAGS_BEFORE_KEY, /* it is whole, and the tag of a key follows, whole */
        TAGS_BEFORE_END, /* the same with the end of the call */
};

struct tags_cursor {
        const char *at, *end;
};

/* The held bytes from that one on. */
struct tags_cursor tags_held(const struct parts *parts, size_t from);

/* Passes the tag if it is whole. */
enum tags_match tags_match(struct tags_cursor *cursor, const char *tag);
/* Passes blanks; false: there are too many. */
bool tags_pass_blanks(struct tags_cursor *cursor);

/*
 * The tag of a key, or the end of the call, behind blanks.  Models leave the last tag of a call
 * out, but not the mark behind all calls.
 */
enum tags_match tags_match_next(const struct parts *parts, struct tags_cursor cursor);
/* The last tag of a value, and what must follow it: one of these. */
enum tags_match tags_match_close(const struct parts *parts, struct tags_cursor cursor);
/* Is the last tag of a value there, and nothing but blanks behind it? */
bool tags_is_closed(const struct parts *parts, struct tags_cursor cursor);

#endif
