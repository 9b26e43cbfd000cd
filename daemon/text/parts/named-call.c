#include "daemon/text/parts/named-call.h"

#include <string.h>

/* ---- marks in a call ---- */

/* A mark before the name changes its meaning, so it comes before all others. */
static bool expects_mark(const struct parts_call *call, enum dialect_mark mark)
{
        switch (mark) {
        case MARK_NAME:
                return !call->has_kind && !call->has_id && !call->has_mark;
        case MARK_CALL_ID:
                return !call->has_id && !call->has_mark;
        case MARK_ARGUMENTS:
                return !call->has_mark;
        default:
                return false;
        }
}

/* A mark in a call is whole. */
static enum call_at behind_mark(struct parts_call *call, enum dialect_mark mark)
{
        switch (mark) {
        case MARK_NAME:
                call->has_kind = true;
                call->name_bytes = 0;
                return NAMED;
        case MARK_CALL_ID:
                call->has_id = true;
                return NAMED_ID;
        default:
                call->has_mark = true;
                return NAMED_OPEN;
        }
}

/* The mark whose first bytes are those that are held from mark_at on, and this one; MARK_N: none */
static enum dialect_mark find_mark(const struct parts *parts, uint8_t byte)
{
        size_t count = parts->held_count - parts->call.mark_at;

        for (unsigned mark = 0; mark < MARK_N; mark++) {
                const char *text = parts->dialect->marks[mark].spelling.text;

                if (expects_mark(&parts->call, (enum dialect_mark)mark) &&
                    !parts->dialect->marks[mark].is_token &&
                    count < parts->dialect->marks[mark].bytes && (uint8_t)text[count] == byte &&
                    !memcmp(parts->held + parts->call.mark_at, text, count))
                        return (enum dialect_mark)mark;
        }
        return MARK_N;
}

static enum call_outcome read_mark(struct parts *parts, uint8_t byte)
{
        size_t count = parts->held_count - parts->call.mark_at;
        enum dialect_mark mark = find_mark(parts, byte);

        if (mark == MARK_N)
                return CALL_BAD;
        return call_take(parts, byte,
                         count + 1 < parts->dialect->marks[mark].bytes
                                 ? NAMED_MARK
                                 : behind_mark(&parts->call, mark));
}

/* If a mark may begin with this byte, it is held as its first.  False: no mark does. */
static bool begin_mark(struct parts *parts, uint8_t byte)
{
        parts->call.mark_at = (uint16_t)parts->held_count;
        return find_mark(parts, byte) != MARK_N && read_mark(parts, byte) == CALL_MORE;
}

enum call_outcome named_call_mark(struct parts *parts, enum dialect_mark mark)
{
        const struct parts_call *call = &parts->call;
        bool possible = call->at == NAMED || call->at == NAMED_ID || call->at == NAMED_OPEN;

        if (!possible || !call->name_bytes || !expects_mark(call, mark) ||
            parts->held_count + MARK_BYTES_MAX > PARTS_HELD_MAX)
                return CALL_BAD;
        for (const char *text = parts->dialect->marks[mark].spelling.text; *text; text++)
                parts_hold(parts, (uint8_t)*text);
        parts->call.at = (uint8_t)behind_mark(&parts->call, mark);
        return CALL_MORE;
}

/* ---- between the marks ---- */

static enum call_outcome read_name(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        if (json_is_blank(byte))
                return call_take(parts, byte, call->name_bytes ? NAMED_OPEN : NAMED);
        if (byte == '{' && call->name_bytes)
                return call_pass_first_argument(parts, byte, out);
        if (call->name_bytes && begin_mark(parts, byte))
                return CALL_MORE;
        if (byte < ' ' || strchr("[]{}\"\\<>`", byte) || call->name_bytes == PARTS_NAME_MAX)
                return CALL_BAD;
        call->name[call->name_bytes++] = (char)byte;
        return call_take(parts, byte, NAMED);
}

static enum call_outcome read_id(struct parts *parts, uint8_t byte)
{
        if (begin_mark(parts, byte))
                return CALL_MORE;
        return byte <= ' ' || strchr("[{", byte) ? CALL_BAD : call_take(parts, byte, NAMED_ID);
}

static enum call_outcome read_open(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        if (json_is_blank(byte))
                return call_take(parts, byte, NAMED_OPEN);
        if (byte == '{')
                return call_pass_first_argument(parts, byte, out);
        return begin_mark(parts, byte) ? CALL_MORE : CALL_BAD;
}

enum call_outcome named_call_feed(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        switch ((enum call_at)parts->call.at) {
        case NAMED:
                return read_name(parts, byte, out);
        case NAMED_MARK:
                return read_mark(parts, byte);
        case NAMED_ID:
                return read_id(parts, byte);
        default:
                return read_open(parts, byte, out);
        }
}
