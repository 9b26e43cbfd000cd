/*
 * Each byte becomes the bytes of JSON that it means, which a scan of JSON checks.  So this file
 * knows strings, words and keys, and the scan knows what may follow what.
 */
#include "daemon/text/parts/literal-call.h"

#include <string.h>

#define WORD_BEFORE_NAME "call:"

/* Where the arguments are: struct parts_call, `literal`. */
enum literal {
        BETWEEN,
        NUMBER,
        WORD,     /* True and the like */
        BARE_KEY, /* of SHAPE_BARE */
        STRING,
        ESCAPE,
        HEX,
        QUOTE_MARK, /* in MARK_QUOTE, which opens a string ... */
        QUOTE_END,  /* ... or ends it */
};

static bool is_python(const struct parts *parts)
{
        return parts->dialect->shape == SHAPE_PYTHON;
}

static bool is_letter(uint8_t byte)
{
        return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

static bool is_digit(uint8_t byte)
{
        return byte >= '0' && byte <= '9';
}

/* ---- JSON ---- */

static enum call_outcome end_call(struct parts *parts, struct parts_out *out)
{
        parts_put_call_end(parts, out, 0);
        parts_drop(parts);
        parts->call.passed_on = true;
        parts->call.at = is_python(parts) ? LIST_NEXT : NEXT;
        return is_python(parts) ? CALL_MORE : CALL_WHOLE;
}

/* Passes text on if it is JSON here. */
static enum call_outcome put(struct parts *parts, struct parts_out *out, const char *text)
{
        for (; *text; text++) {
                enum json_scan_outcome outcome = json_scan_feed(&parts->scan, (uint8_t)*text);

                if (outcome == JSON_SCAN_BAD)
                        return CALL_BAD;
                parts_put(parts, out, SMV_PART_ARGUMENTS, 0, text, 1);
                if (outcome == JSON_SCAN_DONE)
                        return end_call(parts, out);
        }
        return CALL_MORE;
}

static enum call_outcome put_byte(struct parts *parts, struct parts_out *out, uint8_t byte)
{
        const char text[2] = { (char)byte };

        return byte ? put(parts, out, text) : CALL_BAD;
}

/* A byte of a string, as it is meant. */
static enum call_outcome put_char(struct parts *parts, struct parts_out *out, uint8_t byte)
{
        char escape[JSON_SCAN_ESCAPE_BYTES + 1] = { '\\', (char)byte };

        if (byte < ' ')
                escape[json_scan_escape(byte, escape)] = '\0';
        if (byte < ' ' || byte == '"' || byte == '\\')
                return put(parts, out, escape);
        return put_byte(parts, out, byte);
}

/* ---- strings ---- */

static enum call_outcome go(struct parts *parts, enum literal literal)
{
        parts->call.literal = (uint8_t)literal;
        return CALL_MORE;
}

static enum call_outcome put_quote(struct parts *parts, struct parts_out *out, enum literal next)
{
        parts->call.literal = (uint8_t)next;
        return put(parts, out, "\"");
}

static enum call_outcome read_string(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        if (is_python(parts) && byte == (uint8_t)parts->call.quote)
                return put_quote(parts, out, BETWEEN);
        if (is_python(parts) && byte == '\\')
                return go(parts, ESCAPE);
        if (!is_python(parts) && byte == '<' && !parts->dialect->marks[MARK_QUOTE].is_token) {
                parts->call.word_bytes = 1;
                return go(parts, QUOTE_END);
        }
        return put_char(parts, out, byte);
}

static enum call_outcome read_escape(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        parts->call.literal = STRING;
        switch (byte) {
        case '\n':
                return CALL_MORE;
        case '\'':
        case '"':
        case '\\':
                return put_char(parts, out, byte);
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't':
                (void)put(parts, out, "\\");
                return put_byte(parts, out, byte);
        case 'u':
        case 'x':
                parts->call.left = byte == 'u' ? 4 : 2;
                parts->call.literal = HEX;
                return put(parts, out, byte == 'u' ? "\\u" : "\\u00");
        default:
                (void)put(parts, out, "\\\\");
                return put_char(parts, out, byte);
        }
}

static enum call_outcome read_hex(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        if (!--parts->call.left)
                parts->call.literal = STRING;
        return put_byte(parts, out, byte);
}

/* The mark of a string, as text.  Where one may end, its first bytes may also be text. */
static enum call_outcome read_quote_mark(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        const char *mark = parts->dialect->marks[MARK_QUOTE].spelling.text;
        bool end = parts->call.literal == QUOTE_END;
        uint8_t count = parts->call.word_bytes;

        if (byte == (uint8_t)mark[count]) {
                parts->call.word_bytes++;
                return mark[count + 1] ? CALL_MORE : put_quote(parts, out, end ? BETWEEN : STRING);
        }
        if (!end)
                return CALL_BAD;
        parts->call.literal = STRING;
        for (uint8_t i = 0; i < count; i++)
                (void)put_char(parts, out, (uint8_t)mark[i]);
        return read_string(parts, byte, out);
}

/* ---- between strings ---- */

static enum call_outcome begin_word(struct parts *parts, uint8_t byte)
{
        parts->call.word[0] = (char)byte;
        parts->call.word_bytes = 1;
        return go(parts, WORD);
}

static enum call_outcome begin_bare_key(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        (void)put_quote(parts, out, BARE_KEY);
        return put_char(parts, out, byte);
}

/* Behind the value of an argument of Python. */
static enum call_outcome end_argument(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        if (byte == ')')
                return put(parts, out, "}");
        parts->call.at = LITERAL_KEY;
        return CALL_MORE;
}

static enum call_outcome read_between(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        const struct dialect *dialect = parts->dialect;
        bool key = json_scan_expects_key(&parts->scan);

        parts->call.literal = BETWEEN;
        if (json_is_blank(byte))
                return byte == ' ' ? put_byte(parts, out, byte) : CALL_MORE;
        if (is_python(parts) && parts->scan.depth == 1 && (byte == ',' || byte == ')'))
                return end_argument(parts, byte, out);
        if (is_python(parts) && (byte == '"' || byte == '\'')) {
                parts->call.quote = (char)byte;
                return put_quote(parts, out, STRING);
        }
        if (!is_python(parts) && byte == '<' && !dialect->marks[MARK_QUOTE].is_token) {
                parts->call.word_bytes = 1;
                return go(parts, QUOTE_MARK);
        }
        if (!is_python(parts) && key && byte != '}' && byte != ',')
                return begin_bare_key(parts, byte, out);
        if (is_letter(byte))
                return begin_word(parts, byte);
        if (byte == '-' || is_digit(byte))
                parts->call.literal = NUMBER;
        else if (!strchr("{}[],:", byte))
                return CALL_BAD;
        return put_byte(parts, out, byte);
}

static enum call_outcome read_number(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        if (is_digit(byte) || (byte && strchr(".eE+-", byte)))
                return put_byte(parts, out, byte);
        return read_between(parts, byte, out);
}

static enum call_outcome read_word(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        static const char *const words[][2] = { { "True", "true" },   { "true", "true" },
                                                { "False", "false" }, { "false", "false" },
                                                { "None", "null" },   { "null", "null" } };
        struct parts_call *call = &parts->call;

        if (is_letter(byte)) {
                if (call->word_bytes == sizeof(call->word))
                        return CALL_BAD;
                call->word[call->word_bytes++] = (char)byte;
                return CALL_MORE;
        }
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
                if (call->word_bytes != strlen(words[i][0]) ||
                    memcmp(call->word, words[i][0], call->word_bytes))
                        continue;
                return put(parts, out, words[i][1]) == CALL_MORE ? read_between(parts, byte, out)
                                                                 : CALL_BAD;
        }
        return CALL_BAD;
}

static enum call_outcome read_bare_key(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        if (byte != ':')
                return byte < ' ' || strchr("{}[],", byte) ? CALL_BAD : put_char(parts, out, byte);
        parts->call.literal = BETWEEN;
        return put(parts, out, "\":");
}

static enum call_outcome read_arguments(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        switch ((enum literal)parts->call.literal) {
        case NUMBER:
                return read_number(parts, byte, out);
        case WORD:
                return read_word(parts, byte, out);
        case BARE_KEY:
                return read_bare_key(parts, byte, out);
        case STRING:
                return read_string(parts, byte, out);
        case ESCAPE:
                return read_escape(parts, byte, out);
        case HEX:
                return read_hex(parts, byte, out);
        case QUOTE_MARK:
        case QUOTE_END:
                return read_quote_mark(parts, byte, out);
        default:
                return read_between(parts, byte, out);
        }
}

/* ---- names, and keys of Python ---- */

static enum call_outcome begin_arguments(struct parts *parts, struct parts_out *out)
{
        call_put_name(parts, out);
        parts_drop(parts);
        json_scan_begin(&parts->scan);
        parts->call.at = LITERAL;
        parts->call.literal = BETWEEN;
        return put(parts, out, "{");
}

static enum call_outcome read_name(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        if (call->name_bytes && byte == (is_python(parts) ? '(' : '{')) {
                call_take(parts, byte, LITERAL_KEY);
                call->mark_at = (uint16_t)parts->held_count;
                return is_python(parts) ? CALL_MORE : begin_arguments(parts, out);
        }
        if (!call->name_bytes && json_is_blank(byte))
                return call_take(parts, byte, LITERAL_NAME);
        if (!(is_letter(byte) || is_digit(byte) || (byte && strchr(".-:/", byte))) ||
            call->name_bytes == PARTS_NAME_MAX)
                return CALL_BAD;
        call->name[call->name_bytes++] = (char)byte;
        return call_take(parts, byte, LITERAL_NAME);
}

static enum call_outcome end_key(struct parts *parts, struct parts_out *out)
{
        char key[PARTS_NAME_MAX + 1];
        size_t bytes = parts->held_count - parts->call.mark_at;

        memcpy(key, parts->held + parts->call.mark_at, bytes);
        key[bytes] = '\0';
        if (!parts->call.begun)
                (void)begin_arguments(parts, out);
        else
                (void)put(parts, out, ", ");
        parts_drop(parts);
        parts->call.mark_at = 0;
        parts->call.at = LITERAL;
        parts->call.literal = BETWEEN;
        (void)put(parts, out, "\"");
        (void)put(parts, out, key);
        return put(parts, out, "\": ");
}

/* The bytes of the key are those that are held from mark_at on. */
static enum call_outcome read_key(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        size_t bytes = parts->held_count - parts->call.mark_at;

        if (!bytes && json_is_blank(byte)) {
                parts->call.mark_at++;
                return call_take(parts, byte, LITERAL_KEY);
        }
        if (!bytes && byte == ')') {
                if (!parts->call.begun)
                        (void)begin_arguments(parts, out);
                return put(parts, out, "}");
        }
        if (bytes && byte == '=')
                return end_key(parts, out);
        if (!(is_letter(byte) || (bytes && is_digit(byte))) || bytes == PARTS_NAME_MAX)
                return CALL_BAD;
        return call_take(parts, byte, LITERAL_KEY);
}

static enum call_outcome read_word_before(struct parts *parts, uint8_t byte)
{
        static const char word[] = WORD_BEFORE_NAME;
        uint8_t *count = &parts->call.word_bytes;

        if (byte != (uint8_t)word[*count])
                return CALL_BAD;
        return call_take(parts, byte, word[++*count] ? LITERAL_WORD : LITERAL_NAME);
}

/* ---- all of a call ---- */

enum call_outcome literal_call_feed(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        switch ((enum call_at)parts->call.at) {
        case LITERAL_WORD:
                return read_word_before(parts, byte);
        case LITERAL_NAME:
                return read_name(parts, byte, out);
        case LITERAL_KEY:
                return read_key(parts, byte, out);
        default:
                return read_arguments(parts, byte, out);
        }
}

enum call_outcome literal_call_mark(struct parts *parts, enum dialect_mark mark,
                                    struct parts_out *out)
{
        struct parts_call *call = &parts->call;

        if (mark != MARK_QUOTE || call->at != LITERAL)
                return CALL_BAD;
        if (call->literal == STRING)
                return put_quote(parts, out, BETWEEN);
        return call->literal == BETWEEN ? put_quote(parts, out, STRING) : CALL_BAD;
}
