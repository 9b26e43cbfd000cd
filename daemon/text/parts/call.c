/*
 * The bytes of an object are held back until its name is known and its arguments begin.  From then
 * on the arguments are passed on as they come.  If the arguments come first, they stay with the
 * bytes that are held until the name is known.
 */
#include "daemon/text/parts/call.h"

#include <string.h>

#include "daemon/text/parts/literal-call.h"
#include "daemon/text/parts/named-call.h"
#include "daemon/text/parts/tagged-call.h"

/* The mark of the call is the last of what is held. */
static void begin(struct parts *parts)
{
        static const enum call_at first[] = {
                [SHAPE_OBJECT] = OPEN, [SHAPE_LIST] = LIST,         [SHAPE_NAMED] = NAMED,
                [SHAPE_PYTHON] = LIST, [SHAPE_BARE] = LITERAL_WORD, [SHAPE_TAGGED] = TAGGED
        };

        parts->call.at = (uint8_t)first[parts->dialect->shape];
}

void call_begin(struct parts *parts, bool in_reasoning)
{
        parts->call = (struct parts_call){ .in_reasoning = in_reasoning };
        begin(parts);
}

void call_begin_bare(struct parts *parts)
{
        parts->call = (struct parts_call){ .bare = true };
        begin(parts);
}

void call_begin_frame(struct parts *parts, bool in_reasoning)
{
        parts->call = (struct parts_call){ .at = FRAME,
                                           .in_reasoning = in_reasoning,
                                           .mark_at = (uint16_t)parts->held_count };
}

bool call_is_open(const struct parts *parts)
{
        return parts->call.begun && !parts->call.passed_on;
}

bool call_is_passed_on(const struct parts *parts)
{
        return parts->call.passed_on;
}

bool call_may_end(const struct parts *parts)
{
        return parts->call.passed_on && (parts->call.at == NEXT || parts->call.at == LIST_NEXT) &&
               parts->held_count <= CALL_BLANKS_MAX && parts_holds_only_blanks(parts);
}

/* ---- the ends ---- */

/* The object ends, or both the name and the arguments are known. */
static void pass_on(struct parts *parts, struct parts_out *out)
{
        call_put_name(parts, out);
        if (parts->call.arguments_bytes)
                call_put_json(parts, out, parts->held + parts->call.arguments_at,
                              parts->call.arguments_bytes);
        else
                parts_put(parts, out, SMV_PART_ARGUMENTS, 0, "{}", 2);
        parts_put_call_end(parts, out, 0);
        parts->call.passed_on = true;
        parts_drop(parts);
}

static enum call_outcome end_object(struct parts *parts, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        if (!call->passed_on && (!call->has_name || (call->bare && !call->has_arguments)))
                return CALL_BAD;
        if (!call->passed_on)
                pass_on(parts, out);
        parts_drop(parts);
        if (parts->dialect->shape != SHAPE_LIST)
                return CALL_WHOLE;
        call->at = LIST_NEXT;
        return CALL_MORE;
}

static enum call_at first_of_list(const struct parts *parts)
{
        return parts->dialect->shape == SHAPE_PYTHON ? LITERAL_NAME : OPEN;
}

static enum call_outcome read_list(struct parts *parts, uint8_t byte)
{
        if (byte == ']') {
                parts_drop(parts);
                return CALL_WHOLE;
        }
        if (byte != ',')
                return CALL_BAD;
        parts->call = (struct parts_call){ 0 };
        return call_take(parts, byte, first_of_list(parts));
}

/* ---- keys and values ---- */

static bool key_is(const struct parts_call *call, const char *word)
{
        return call->key_bytes == strlen(word) && !memcmp(call->key, word, call->key_bytes);
}

static bool is_arguments(const struct parts *parts)
{
        const struct parts_call *call = &parts->call;

        return parts->dialect->traits & DIALECT_NAME_IS_KEY || key_is(call, "arguments") ||
               key_is(call, "parameters");
}

static enum call_outcome read_name_as_key(struct parts *parts, uint8_t byte)
{
        struct parts_call *call = &parts->call;

        if (byte == '"' && call->name_bytes && !call->has_name) {
                call->has_name = true;
                return call_take(parts, byte, COLON);
        }
        if (byte < ' ' || byte == '"' || byte == '\\' || call->name_bytes == PARTS_NAME_MAX)
                return CALL_BAD;
        call->name[call->name_bytes++] = (char)byte;
        return call_take(parts, byte, IN_KEY);
}

static enum call_outcome read_key(struct parts *parts, uint8_t byte)
{
        struct parts_call *call = &parts->call;

        if (parts->dialect->traits & DIALECT_NAME_IS_KEY)
                return read_name_as_key(parts, byte);
        if (byte == '"')
                return call_take(parts, byte, COLON);
        if (byte < ' ' || byte == '\\')
                return CALL_BAD;
        /* A key that is longer than all that matter is none of them. */
        if (call->key_bytes < sizeof(call->key))
                call->key[call->key_bytes++] = (char)byte;
        return call_take(parts, byte, IN_KEY);
}

static enum call_outcome read_name(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        if (byte == '"' && call->name_bytes) {
                call->has_name = true;
                call_take(parts, byte, NEXT);
                if (call->has_arguments)
                        pass_on(parts, out);
                return CALL_MORE;
        }
        if (byte < ' ' || byte == '"' || byte == '\\' || call->name_bytes == PARTS_NAME_MAX)
                return CALL_BAD;
        call->name[call->name_bytes++] = (char)byte;
        return call_take(parts, byte, NAME);
}

/* A value that stays with the bytes that are held. */
static enum call_outcome scan_held(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct parts_call *call = &parts->call;
        bool in_string = json_scan_in_string(&parts->scan);
        enum json_scan_outcome outcome = json_scan_feed(&parts->scan, byte);

        if (outcome == JSON_SCAN_BAD)
                return CALL_BAD;
        if (outcome == JSON_SCAN_BEFORE) {
                call->at = NEXT;
                return call_feed(parts, byte, out);
        }
        if (in_string && byte < ' ')
                parts->escapes += JSON_SCAN_ESCAPE_BYTES - 1;
        call_take(parts, byte, (enum call_at)call->at);
        if (outcome != JSON_SCAN_DONE)
                return CALL_MORE;
        if (call->at == HELD_ARGUMENTS)
                call->arguments_bytes = (uint16_t)(parts->held_count - call->arguments_at);
        call->at = NEXT;
        return CALL_MORE;
}

static enum call_outcome begin_scan(struct parts *parts, uint8_t byte, enum call_at at,
                                    struct parts_out *out)
{
        json_scan_begin(&parts->scan);
        parts->call.at = (uint8_t)at;
        return scan_held(parts, byte, out);
}

static enum call_outcome begin_arguments(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        if (byte == 'n')
                return begin_scan(parts, byte, OTHER, out);
        if (byte != '{' || call->has_arguments)
                return CALL_BAD;
        call->has_arguments = true;
        if (!call->has_name) {
                call->arguments_at = (uint16_t)parts->held_count;
                return begin_scan(parts, byte, HELD_ARGUMENTS, out);
        }
        return call_pass_first_argument(parts, byte, out);
}

static enum call_outcome begin_value(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        if (call->passed_on)
                return begin_scan(parts, byte, OTHER, out);
        if (key_is(call, "name") || key_is(call, "tool_name"))
                return byte == '"' && !call->has_name ? call_take(parts, byte, NAME) : CALL_BAD;
        return is_arguments(parts) ? begin_arguments(parts, byte, out)
                                   : begin_scan(parts, byte, OTHER, out);
}

/* ---- all bytes of a call ---- */

static enum call_outcome begin_in_frame(struct parts *parts, enum dialect_mark mark)
{
        const struct parts_call *call = &parts->call;

        if (mark != MARK_CALL || parts->held_count != call->mark_at)
                return CALL_BAD;
        for (const char *text = parts->dialect->marks[mark].spelling.text; *text; text++)
                parts_hold(parts, (uint8_t)*text);
        begin(parts);
        return CALL_MORE;
}

/* Blanks, and then MARK_CALL, whose first bytes are held from mark_at on. */
static enum call_outcome read_frame(struct parts *parts, uint8_t byte)
{
        const struct dialect *dialect = parts->dialect;
        size_t count = parts->held_count - parts->call.mark_at;

        if (!count && json_is_blank(byte) && parts->held_count < 2 * MARK_BYTES_MAX) {
                parts->call.mark_at++;
                return call_take(parts, byte, FRAME);
        }
        if (dialect->marks[MARK_CALL].is_token ||
            (uint8_t)dialect->marks[MARK_CALL].spelling.text[count] != byte)
                return CALL_BAD;
        call_take(parts, byte, FRAME);
        if (count + 1 == dialect->marks[MARK_CALL].bytes)
                begin(parts);
        return CALL_MORE;
}

enum call_outcome call_mark(struct parts *parts, enum dialect_mark mark, struct parts_out *out)
{
        if (parts->call.at == FRAME)
                return begin_in_frame(parts, mark);
        switch (parts->dialect->shape) {
        case SHAPE_NAMED:
                return named_call_mark(parts, mark);
        case SHAPE_BARE:
                return literal_call_mark(parts, mark, out);
        case SHAPE_TAGGED:
                return tagged_call_mark(parts, mark, out);
        default:
                return CALL_BAD;
        }
}

/* Between keys and values, where blanks may stand. */
static enum call_outcome read_between(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        switch ((enum call_at)call->at) {
        case OPEN:
                return byte == '{' ? call_take(parts, byte, KEY_OR_END) : CALL_BAD;
        case KEY_OR_END:
                if (byte == '}')
                        return end_object(parts, out);
                /* fall through */
        case KEY:
                call->key_bytes = 0;
                return byte == '"' ? call_take(parts, byte, IN_KEY) : CALL_BAD;
        case COLON:
                return byte == ':' ? call_take(parts, byte, VALUE) : CALL_BAD;
        case NEXT:
                if (byte == '}')
                        return end_object(parts, out);
                return byte == ',' ? call_take(parts, byte, KEY) : CALL_BAD;
        case LIST:
                return byte == '[' ? call_take(parts, byte, first_of_list(parts)) : CALL_BAD;
        case LIST_NEXT:
                return read_list(parts, byte);
        default:
                return begin_value(parts, byte, out);
        }
}

enum call_outcome call_feed(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        enum call_at at = (enum call_at)parts->call.at;

        if (at == ARGUMENTS)
                return call_pass_argument(parts, byte, out);
        if (at >= TAGGED)
                return tagged_call_feed(parts, byte, out);
        if (parts->held_count + parts->escapes + JSON_SCAN_ESCAPE_BYTES > PARTS_HELD_MAX)
                return CALL_BAD;
        if (at >= LITERAL_WORD)
                return literal_call_feed(parts, byte, out);
        if (at >= NAMED)
                return named_call_feed(parts, byte, out);
        switch (at) {
        case FRAME:
                return read_frame(parts, byte);
        case IN_KEY:
                return read_key(parts, byte);
        case NAME:
                return read_name(parts, byte, out);
        case HELD_ARGUMENTS:
        case OTHER:
                return scan_held(parts, byte, out);
        default:
                return json_is_blank(byte) ? call_take(parts, byte, at)
                                           : read_between(parts, byte, out);
        }
}
