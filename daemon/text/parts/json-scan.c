#include "daemon/text/parts/json-scan.h"

#include <string.h>

/* What may come next. */
enum state {
        VALUE,
        VALUE_OR_END, /* of a list */
        KEY,
        KEY_OR_END, /* of an object */
        COLON,
        NEXT, /* a comma, or the end of the innermost list or object */
        STRING,
        ESCAPE,
        HEX,
        LITERAL,
        MINUS,
        ZERO,
        DIGITS,
        POINT,
        FRACTION,
        E,
        E_SIGN,
        EXPONENT,
};

void json_scan_begin(struct json_scan *scan)
{
        *scan = (struct json_scan){ .state = VALUE };
}

bool json_scan_in_string(const struct json_scan *scan)
{
        return scan->state == STRING;
}

bool json_scan_expects_key(const struct json_scan *scan)
{
        return scan->state == KEY || scan->state == KEY_OR_END;
}

static bool is_digit(uint8_t byte)
{
        return byte >= '0' && byte <= '9';
}

static bool is_hex(uint8_t byte)
{
        return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

static enum json_scan_outcome go(struct json_scan *scan, enum state state)
{
        scan->state = (uint8_t)state;
        return JSON_SCAN_MORE;
}

/* A value ends with this byte. */
static enum json_scan_outcome end_value(struct json_scan *scan)
{
        scan->state = NEXT;
        return scan->depth ? JSON_SCAN_MORE : JSON_SCAN_DONE;
}

static enum json_scan_outcome nest(struct json_scan *scan, bool object)
{
        if (scan->depth == JSON_SCAN_DEPTH_MAX)
                return JSON_SCAN_BAD;
        scan->depth++;
        scan->objects = scan->objects << 1 | object;
        return go(scan, object ? KEY_OR_END : VALUE_OR_END);
}

static enum json_scan_outcome leave(struct json_scan *scan)
{
        scan->depth--;
        scan->objects >>= 1;
        return end_value(scan);
}

static enum json_scan_outcome begin_literal(struct json_scan *scan, const char *rest)
{
        scan->literal = rest;
        return go(scan, LITERAL);
}

static enum json_scan_outcome begin_string(struct json_scan *scan, bool key)
{
        scan->in_key = key;
        return go(scan, STRING);
}

static enum json_scan_outcome begin_value(struct json_scan *scan, uint8_t byte)
{
        if (json_is_blank(byte))
                return JSON_SCAN_MORE;
        if (byte >= '1' && byte <= '9')
                return go(scan, DIGITS);
        switch (byte) {
        case '{':
                return nest(scan, true);
        case '[':
                return nest(scan, false);
        case '"':
                return begin_string(scan, false);
        case '-':
                return go(scan, MINUS);
        case '0':
                return go(scan, ZERO);
        case 't':
                return begin_literal(scan, "rue");
        case 'f':
                return begin_literal(scan, "alse");
        case 'n':
                return begin_literal(scan, "ull");
        default:
                return JSON_SCAN_BAD;
        }
}

/* Between the values of a list or an object. */
static enum json_scan_outcome read_next(struct json_scan *scan, uint8_t byte)
{
        bool object = scan->objects & 1;

        if (json_is_blank(byte))
                return JSON_SCAN_MORE;
        if (byte == ',')
                return go(scan, object ? KEY : VALUE);
        return byte == (object ? '}' : ']') ? leave(scan) : JSON_SCAN_BAD;
}

static enum json_scan_outcome read_string(struct json_scan *scan, uint8_t byte)
{
        if (byte == '\\')
                return go(scan, ESCAPE);
        if (byte != '"')
                return JSON_SCAN_MORE;
        return scan->in_key ? go(scan, COLON) : end_value(scan);
}

static enum json_scan_outcome read_escape(struct json_scan *scan, uint8_t byte)
{
        if (byte == 'u') {
                scan->left = 4;
                return go(scan, HEX);
        }
        return byte && strchr("\"\\/bfnrt", byte) ? go(scan, STRING) : JSON_SCAN_BAD;
}

static enum json_scan_outcome read_key(struct json_scan *scan, uint8_t byte)
{
        if (json_is_blank(byte))
                return JSON_SCAN_MORE;
        if (byte == '"')
                return begin_string(scan, true);
        return byte == '}' && scan->state == KEY_OR_END ? leave(scan) : JSON_SCAN_BAD;
}

/* A number may end here, and its container, if there is one, reads on. */
static enum json_scan_outcome end_number(struct json_scan *scan, uint8_t byte)
{
        if (!scan->depth)
                return JSON_SCAN_BEFORE;
        scan->state = NEXT;
        return read_next(scan, byte);
}

static enum json_scan_outcome read_number(struct json_scan *scan, uint8_t byte)
{
        bool digit = is_digit(byte);

        switch ((enum state)scan->state) {
        case MINUS:
                return digit ? go(scan, byte == '0' ? ZERO : DIGITS) : JSON_SCAN_BAD;
        case POINT:
                return digit ? go(scan, FRACTION) : JSON_SCAN_BAD;
        case E:
                if (byte == '+' || byte == '-')
                        return go(scan, E_SIGN);
                return digit ? go(scan, EXPONENT) : JSON_SCAN_BAD;
        case E_SIGN:
                return digit ? go(scan, EXPONENT) : JSON_SCAN_BAD;
        default:
                break;
        }
        if (digit)
                return scan->state == ZERO ? JSON_SCAN_BAD : JSON_SCAN_MORE;
        if (byte == '.' && scan->state <= DIGITS)
                return go(scan, POINT);
        if ((byte == 'e' || byte == 'E') && scan->state != EXPONENT)
                return go(scan, E);
        return end_number(scan, byte);
}

enum json_scan_outcome json_scan_feed(struct json_scan *scan, uint8_t byte)
{
        switch ((enum state)scan->state) {
        case VALUE_OR_END:
                if (byte == ']')
                        return leave(scan);
                return begin_value(scan, byte);
        case VALUE:
                return begin_value(scan, byte);
        case KEY:
        case KEY_OR_END:
                return read_key(scan, byte);
        case COLON:
                if (byte == ':')
                        return go(scan, VALUE);
                return json_is_blank(byte) ? JSON_SCAN_MORE : JSON_SCAN_BAD;
        case NEXT:
                return read_next(scan, byte);
        case STRING:
                return read_string(scan, byte);
        case ESCAPE:
                return read_escape(scan, byte);
        case HEX:
                if (!is_hex(byte))
                        return JSON_SCAN_BAD;
                return --scan->left ? JSON_SCAN_MORE : go(scan, STRING);
        case LITERAL:
                if (byte != (uint8_t)*scan->literal++)
                        return JSON_SCAN_BAD;
                return *scan->literal ? JSON_SCAN_MORE : end_value(scan);
        default:
                return read_number(scan, byte);
        }
}

size_t json_scan_escape(uint8_t control, char ret_text[JSON_SCAN_ESCAPE_BYTES])
{
        static const char digits[] = "0123456789abcdef", shorts[] = "btn\0fr";

        ret_text[0] = '\\';
        if (control >= '\b' && control <= '\r' && control != '\v') {
                ret_text[1] = shorts[control - '\b'];
                return 2;
        }
        memcpy(ret_text + 1, "u00", 3);
        ret_text[4] = digits[control >> 4];
        ret_text[5] = digits[control & 15];
        return 6;
}
