/*
 * The bytes of an object are held back until its name is known and its arguments begin.  From then
 * on the arguments are passed on as they come.  If the arguments come first, they stay with the
 * bytes that are held until the name is known.
 */
#include "daemon/text/parts/call.h"

#include <string.h>

#include "daemon/text/parts/named-call.h"

void call_begin(struct parts *parts, bool bare, bool in_reasoning)
{
        static const enum call_at first[] = {
                [SHAPE_OBJECT] = OPEN, [SHAPE_LIST] = LIST, [SHAPE_NAMED] = NAMED
        };

        parts->call = (struct parts_call){ .at = (uint8_t)first[parts->dialect->shape],
                                           .bare = bare,
                                           .in_reasoning = in_reasoning };
}

bool call_is_open(const struct parts *parts)
{
        return parts->call.at == ARGUMENTS;
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

static void pass_on_held_arguments(struct parts *parts, struct parts_out *out)
{
        const char *at = parts->held + parts->call.arguments_at;

        for (uint16_t i = 0; i < parts->call.arguments_bytes; i++)
                parts_put_string(parts, out, (uint8_t)at[i]);
}

/* The object ends, or both the name and the arguments are known. */
static void pass_on(struct parts *parts, struct parts_out *out)
{
        call_put_name(parts, out);
        if (parts->call.arguments_bytes)
                pass_on_held_arguments(parts, out);
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

static enum call_outcome read_list(struct parts *parts, uint8_t byte)
{
        if (byte == ']') {
                parts_drop(parts);
                return CALL_WHOLE;
        }
        if (byte != ',')
                return CALL_BAD;
        parts->call = (struct parts_call){ 0 };
        return call_take(parts, byte, OPEN);
}

/* ---- keys and values ---- */

static bool key_is(const struct parts_call *call, const char *word)
{
        return call->key_bytes == strlen(word) && !memcmp(call->key, word, call->key_bytes);
}

static bool is_arguments(const struct parts_call *call)
{
        return key_is(call, "arguments") || key_is(call, "parameters");
}

static enum call_outcome read_key(struct parts *parts, uint8_t byte)
{
        struct parts_call *call = &parts->call;

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
        return is_arguments(call) ? begin_arguments(parts, byte, out)
                                  : begin_scan(parts, byte, OTHER, out);
}

/* ---- all bytes of a call ---- */

enum call_outcome call_mark(struct parts *parts, enum dialect_mark mark)
{
        return parts->dialect->shape == SHAPE_NAMED ? named_call_mark(parts, mark) : CALL_BAD;
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
                return byte == '[' ? call_take(parts, byte, OPEN) : CALL_BAD;
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
        if (parts->held_count + parts->escapes + JSON_SCAN_ESCAPE_BYTES > PARTS_HELD_MAX)
                return CALL_BAD;
        if (at >= NAMED)
                return named_call_feed(parts, byte, out);
        switch (at) {
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
