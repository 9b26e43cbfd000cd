#include "daemon/text/parts/tags.h"

#include <string.h>

#define BLANKS_MAX 32u

struct tags_cursor tags_held(const struct parts *parts, size_t from)
{
        return (struct tags_cursor){ parts->held + from, parts->held + parts->held_count };
}

enum tags_match tags_match(struct tags_cursor *cursor, const char *tag)
{
        size_t left = (size_t)(cursor->end - cursor->at), bytes = strlen(tag);

        if (memcmp(cursor->at, tag, left < bytes ? left : bytes))
                return TAGS_NO_MATCH;
        if (left < bytes)
                return TAGS_BEGINNING;
        cursor->at += bytes;
        return TAGS_WHOLE;
}

bool tags_pass_blanks(struct tags_cursor *cursor)
{
        const char *first = cursor->at;

        while (cursor->at < cursor->end && json_is_blank((uint8_t)*cursor->at))
                cursor->at++;
        return cursor->at - first <= BLANKS_MAX;
}

/* A tag that is a mark, too, is found by its token, if it has one. */
static enum tags_match match_end(const struct parts *parts, struct tags_cursor cursor,
                                 enum dialect_mark mark, const char *tag)
{
        enum tags_match match = TAGS_NO_MATCH;

        if (tag && !parts->dialect->marks[mark].is_token)
                match = tags_match(&cursor, tag);
        return match == TAGS_WHOLE ? TAGS_BEFORE_END : match;
}

enum tags_match tags_match_next(const struct parts *parts, struct tags_cursor cursor)
{
        const struct dialect *dialect = parts->dialect;
        struct tags_cursor key;
        enum tags_match match, end;

        if (!tags_pass_blanks(&cursor))
                return TAGS_NO_MATCH;
        key = cursor;
        match = tags_match(&key, dialect->tags->key);
        if (match == TAGS_WHOLE)
                return TAGS_BEFORE_KEY;
        end = match_end(parts, cursor, MARK_CALL_END, dialect->tags->call_end);
        match = end > match ? end : match;
        end = match_end(parts, cursor, MARK_CALLS_END,
                        dialect->marks[MARK_CALLS_END].spelling.text);
        return end > match ? end : match;
}

enum tags_match tags_match_close(const struct parts *parts, struct tags_cursor cursor)
{
        const struct dialect_tags *tags = parts->dialect->tags;
        enum tags_match match;

        if (parts->call.newline && cursor.at < cursor.end && *cursor.at == '\n')
                cursor.at++;
        match = tags_match(&cursor, tags->value_end);
        return match == TAGS_WHOLE ? tags_match_next(parts, cursor) : match;
}

bool tags_is_closed(const struct parts *parts, struct tags_cursor cursor)
{
        if (parts->call.newline && cursor.at < cursor.end && *cursor.at == '\n')
                cursor.at++;
        return tags_match(&cursor, parts->dialect->tags->value_end) == TAGS_WHOLE &&
               tags_pass_blanks(&cursor) && cursor.at == cursor.end;
}
