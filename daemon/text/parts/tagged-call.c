/*
 * The bytes of a value that may be JSON are held back until it is over, since it may turn out to be
 * a string.  If there is no room for more of them, it is taken as JSON, and streams from then on.
 * Strings stream at once; only what may be their last tag, with what must follow it, is held.
 */
#include "daemon/text/parts/tagged-call.h"

#include <string.h>

#include "daemon/text/parts/tags.h"

#define KEY_MAX 256u
/* With a close behind them, and all of it escaped, so many bytes are not more than may be held. */
#define JSON_HELD_MAX 384u

/* ---- the ends ---- */

static void put(struct parts *parts, struct parts_out *out, const char *text)
{
        parts_put(parts, out, SMV_PART_ARGUMENTS, 0, text, strlen(text));
}

static void put_escaped(struct parts *parts, struct parts_out *out, char byte)
{
        if (byte == '"' || byte == '\\')
                put(parts, out, "\\");
        parts_put_string(parts, out, (uint8_t)byte);
}

/* A tag was read that ends the name, or a value: a key follows it, or the call ends. */
static enum call_outcome go_on(struct parts *parts, enum tags_match match, struct parts_out *out)
{
        if (!parts->call.begun)
                call_put_name(parts, out);
        parts_drop(parts);
        if (match == TAGS_BEFORE_KEY) {
                parts->call.at = TAGGED_KEY;
                return CALL_MORE;
        }
        put(parts, out, parts->call.has_arguments ? "}" : "{}");
        parts_put_call_end(parts, out, 0);
        parts->call.passed_on = true;
        parts->call.at = NEXT;
        return CALL_WHOLE;
}

/* ---- values ---- */

static void drop_first(struct parts *parts)
{
        memmove(parts->held, parts->held + 1, --parts->held_count);
}

static enum call_outcome read_string(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        parts_hold(parts, byte);
        while (parts->held_count) {
                enum tags_match match = tags_match_close(parts, tags_held(parts, 0));

                if (match == TAGS_BEGINNING)
                        break;
                if (match != TAGS_NO_MATCH) {
                        put(parts, out, "\"");
                        return go_on(parts, match, out);
                }
                put_escaped(parts, out, parts->held[0]);
                drop_first(parts);
        }
        return CALL_MORE;
}

/*
 * The held bytes are no JSON, so they are read again as a string.  The end of the call may be among
 * them, if a string of JSON seemed to go on there.  Then the bytes behind it stay held.
 */
static enum call_outcome take_as_string(struct parts *parts, struct parts_out *out)
{
        enum call_outcome outcome = CALL_MORE;
        size_t count = parts->held_count, at = 0;
        char held[PARTS_HELD_MAX];

        memcpy(held, parts->held, count);
        parts_drop(parts);
        parts->call.at = TAGGED_STRING;
        put(parts, out, "\"");
        while (at < count && outcome == CALL_MORE)
                outcome = tagged_call_feed(parts, (uint8_t)held[at++], out);
        /* The last byte is not taken then, so it does not stay. */
        if (outcome == CALL_BAD) {
                at--;
                count--;
        }
        while (at < count)
                parts_hold(parts, (uint8_t)held[at++]);
        return outcome;
}

/* The value is whole; what is held behind it may be its close. */
static enum call_outcome read_close(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct tags_cursor cursor;
        enum tags_match match = TAGS_NO_MATCH;

        parts_hold(parts, byte);
        cursor = tags_held(parts, parts->call.value_bytes);
        if (tags_pass_blanks(&cursor))
                match = tags_match_close(parts, cursor);
        if (match == TAGS_BEGINNING)
                return CALL_MORE;
        if (match != TAGS_NO_MATCH) {
                call_put_json(parts, out, parts->held, parts->call.value_bytes);
                return go_on(parts, match, out);
        }
        if (!parts->call.streams)
                return take_as_string(parts, out);
        parts->held_count--;
        return CALL_BAD;
}

/* A string of JSON that has a line break, or the last tag of its value, is none. */
static bool is_broken_string(const struct parts *parts, uint8_t byte)
{
        const char *end = parts->dialect->tags->value_end;
        size_t count = strlen(end) - 1;

        if (parts->scan.depth || !json_scan_in_string(&parts->scan))
                return false;
        return byte < ' ' || ((char)byte == end[count] && parts->held_count >= count &&
                              !memcmp(parts->held + parts->held_count - count, end, count));
}

static void begin_stream(struct parts *parts, struct parts_out *out)
{
        call_put_json(parts, out, parts->held, parts->held_count);
        parts_drop(parts);
        parts->call.streams = true;
}

static void take_json(struct parts *parts, uint8_t byte, bool in_string, struct parts_out *out)
{
        if (!parts->call.streams) {
                if (in_string && byte < ' ')
                        parts->escapes += JSON_SCAN_ESCAPE_BYTES - 1;
                parts_hold(parts, byte);
        } else if (in_string) {
                parts_put_string(parts, out, byte);
        } else {
                parts_put(parts, out, SMV_PART_ARGUMENTS, 0, (const char *)&byte, 1);
        }
}

/* It could only be null, and does not begin like that. */
static bool is_not_null(const struct parts *parts, uint8_t byte)
{
        return parts->call.type == ARGUMENT_STRING_OR_NULL && !parts->held_count && byte != 'n';
}

static enum call_outcome read_json(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        bool broken =
                !parts->call.streams && (is_broken_string(parts, byte) || is_not_null(parts, byte));
        bool in_string = json_scan_in_string(&parts->scan);
        enum json_scan_outcome outcome;

        outcome = broken ? JSON_SCAN_BAD : json_scan_feed(&parts->scan, byte);
        if (outcome == JSON_SCAN_BAD && parts->call.streams)
                return CALL_BAD;
        if (outcome == JSON_SCAN_BAD) {
                parts_hold(parts, byte);
                return take_as_string(parts, out);
        }
        if (outcome != JSON_SCAN_BEFORE)
                take_json(parts, byte, in_string, out);
        if (outcome == JSON_SCAN_MORE)
                return CALL_MORE;
        parts->call.value_bytes = (uint16_t)parts->held_count;
        parts->call.at = TAGGED_CLOSE;
        return outcome == JSON_SCAN_BEFORE ? read_close(parts, byte, out) : CALL_MORE;
}

static enum call_outcome begin_value(struct parts *parts, struct parts_out *out)
{
        parts_drop(parts);
        parts->call.first = true;
        parts->call.newline = false;
        parts->call.streams = false;
        parts->call.at = parts->call.type == ARGUMENT_STRING ? TAGGED_STRING : TAGGED_JSON;
        if (parts->call.type == ARGUMENT_STRING)
                put(parts, out, "\"");
        json_scan_begin(&parts->scan);
        return CALL_MORE;
}

/* The first newline of a value belongs to the tag before it; then so does the last. */
static enum call_outcome read_value(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        bool first = parts->call.first;

        parts->call.first = false;
        if (first && byte == '\n' && parts->dialect->tags->newlines) {
                parts->call.newline = true;
                return CALL_MORE;
        }
        return parts->call.at == TAGGED_STRING ? read_string(parts, byte, out)
                                               : read_json(parts, byte, out);
}

/* ---- names and keys ---- */

static enum call_outcome read_next(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        enum tags_match match;

        parts_hold(parts, byte);
        match = tags_match_next(parts, tags_held(parts, parts->call.mark_at));
        if (match == TAGS_BEGINNING)
                return CALL_MORE;
        if (match != TAGS_NO_MATCH)
                return go_on(parts, match, out);
        parts->held_count--;
        return CALL_BAD;
}

static enum call_outcome read_name_end(struct parts *parts, uint8_t byte)
{
        struct tags_cursor cursor;
        enum tags_match match;

        parts_hold(parts, byte);
        cursor = tags_held(parts, parts->call.mark_at);
        match = tags_match(&cursor, parts->dialect->tags->name_end);
        if (match == TAGS_NO_MATCH) {
                parts->held_count--;
                return CALL_BAD;
        }
        if (match == TAGS_WHOLE)
                parts->call.mark_at = (uint16_t)parts->held_count;
        parts->call.at = match == TAGS_WHOLE ? TAGGED_NEXT : TAGGED_NAME_END;
        return CALL_MORE;
}

static enum call_outcome read_name(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        const char *end = parts->dialect->tags->name_end;
        struct parts_call *call = &parts->call;

        call->mark_at = (uint16_t)parts->held_count;
        if (!end && !call->name_bytes && json_is_blank(byte))
                return call_take(parts, byte, TAGGED);
        if (call->name_bytes && end && byte == (uint8_t)*end)
                return read_name_end(parts, byte);
        if (call->name_bytes && !end && (byte == '<' || json_is_blank(byte))) {
                call->at = TAGGED_NEXT;
                return read_next(parts, byte, out);
        }
        if (byte <= ' ' || strchr("\"<>{}[]\\", byte) || call->name_bytes == PARTS_NAME_MAX)
                return CALL_BAD;
        call->name[call->name_bytes++] = (char)byte;
        return call_take(parts, byte, TAGGED);
}

/* If tags say which values are strings, the schema does not count. */
static enum argument_type type_of_value(const struct parts *parts, bool raw)
{
        const struct parts_call *call = &parts->call;

        if (parts->dialect->tags->raw_key_end)
                return raw ? ARGUMENT_STRING : ARGUMENT_ANY;
        return argument_types_find(parts->types, call->name, call->name_bytes, parts->held,
                                   call->mark_at);
}

/* The key is what is held before mark_at. */
static enum call_outcome end_key(struct parts *parts, bool raw, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        call->type = (uint8_t)type_of_value(parts, raw);
        put(parts, out, call->has_arguments ? ", \"" : "{\"");
        for (uint16_t i = 0; i < call->mark_at; i++)
                put_escaped(parts, out, parts->held[i]);
        put(parts, out, "\": ");
        call->has_arguments = true;
        if (!parts->dialect->tags->value)
                return begin_value(parts, out);
        parts_drop(parts);
        call->at = TAGGED_OPEN;
        return CALL_MORE;
}

static enum call_outcome read_key_end(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        const struct dialect_tags *tags = parts->dialect->tags;
        struct tags_cursor cursor, other;
        enum tags_match match, raw = TAGS_NO_MATCH;

        parts_hold(parts, byte);
        cursor = other = tags_held(parts, parts->call.mark_at);
        match = tags_match(&cursor, tags->key_end);
        if (tags->raw_key_end)
                raw = tags_match(&other, tags->raw_key_end);
        if (match == TAGS_WHOLE || raw == TAGS_WHOLE)
                return end_key(parts, raw == TAGS_WHOLE, out);
        parts->call.at = TAGGED_KEY_END;
        if (match == TAGS_BEGINNING || raw == TAGS_BEGINNING)
                return CALL_MORE;
        parts->held_count--;
        return CALL_BAD;
}

static enum call_outcome read_key(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        if (parts->held_count && byte == (uint8_t)parts->dialect->tags->key_end[0]) {
                parts->call.mark_at = (uint16_t)parts->held_count;
                return read_key_end(parts, byte, out);
        }
        if (byte < ' ' || parts->held_count == KEY_MAX)
                return CALL_BAD;
        return call_take(parts, byte, TAGGED_KEY);
}

static enum call_outcome read_open(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        enum tags_match match = TAGS_NO_MATCH;
        struct tags_cursor cursor;

        parts_hold(parts, byte);
        cursor = tags_held(parts, 0);
        if (tags_pass_blanks(&cursor))
                match = tags_match(&cursor, parts->dialect->tags->value);
        if (match == TAGS_WHOLE)
                return begin_value(parts, out);
        if (match == TAGS_BEGINNING)
                return CALL_MORE;
        parts->held_count--;
        return CALL_BAD;
}

/* ---- all of a call ---- */

enum call_outcome tagged_call_feed(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        if (parts->held_count + MARK_BYTES_MAX > PARTS_HELD_MAX)
                return CALL_BAD;
        if (call->at == TAGGED_JSON && parts->held_count + parts->escapes > JSON_HELD_MAX)
                begin_stream(parts, out);
        switch ((enum call_at)call->at) {
        case TAGGED:
                return read_name(parts, byte, out);
        case TAGGED_NAME_END:
                return read_name_end(parts, byte);
        case TAGGED_NEXT:
                return read_next(parts, byte, out);
        case TAGGED_KEY:
                return read_key(parts, byte, out);
        case TAGGED_KEY_END:
                return read_key_end(parts, byte, out);
        case TAGGED_OPEN:
                return read_open(parts, byte, out);
        case TAGGED_CLOSE:
                return read_close(parts, byte, out);
        default:
                return read_value(parts, byte, out);
        }
}

/* The call ends here, if its tags allow that. */
static enum call_outcome end_at_mark(struct parts *parts, struct parts_out *out)
{
        struct parts_call *call = &parts->call;
        struct tags_cursor cursor = tags_held(parts, call->at == TAGGED_NEXT    ? call->mark_at
                                                     : call->at == TAGGED_CLOSE ? call->value_bytes
                                                                                : 0);

        if (call->at == TAGGED && call->name_bytes && !parts->dialect->tags->name_end)
                return go_on(parts, TAGS_BEFORE_END, out);
        if (call->at == TAGGED_NEXT && tags_pass_blanks(&cursor) && cursor.at == cursor.end)
                return go_on(parts, TAGS_BEFORE_END, out);
        if (call->at == TAGGED_STRING && tags_is_closed(parts, cursor)) {
                put(parts, out, "\"");
                return go_on(parts, TAGS_BEFORE_END, out);
        }
        if (call->at == TAGGED_CLOSE && tags_pass_blanks(&cursor) &&
            tags_is_closed(parts, cursor)) {
                call_put_json(parts, out, parts->held, call->value_bytes);
                return go_on(parts, TAGS_BEFORE_END, out);
        }
        return CALL_BAD;
}

enum call_outcome tagged_call_mark(struct parts *parts, enum dialect_mark mark,
                                   struct parts_out *out)
{
        enum call_outcome outcome = CALL_MORE;

        if (mark != MARK_CALL_END && mark != MARK_CALLS_END)
                return CALL_BAD;
        if (parts->call.at == TAGGED_JSON && !parts->call.streams)
                outcome = take_as_string(parts, out);
        return outcome == CALL_MORE ? end_at_mark(parts, out) : outcome;
}
