/*
 * Printing recurses, because values are at most VALUE_DEPTH_MAX deep.
 */
#include "daemon/text/template/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/text/template/budget.h"
#include "daemon/text/template/case.h"
#include "daemon/text/template/compare.h"
#include "daemon/text/template/text.h"

static int put(struct budget *budget, struct builder *to, const char *word)
{
        return error_pass(text_add(budget, to, word, strlen(word), TEXT_OURS));
}

/* ---- numbers ---- */

/* Python writes an exponent if it is below -4, or 16 or more. */
void print_real(double real, char *to)
{
        char digits[REAL_BYTES], *e, *point;
        int exponent, count;

        if (isnan(real) || isinf(real)) {
                snprintf(to, REAL_BYTES, "%s", isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
                return;
        }
        for (int precision = 0; precision < 17; precision++) {
                snprintf(digits, sizeof(digits), "%.*e", precision, real);
                if (strtod(digits, NULL) == real)
                        break;
        }
        e = strchr(digits, 'e');
        exponent = atoi(e + 1);
        if (exponent < -4 || exponent >= 16) {
                snprintf(to, REAL_BYTES, "%s", digits);
                return;
        }
        point = strchr(digits, '.');
        count = point ? (int)(e - point) - 1 : 0; /* digits after the point */
        snprintf(to, REAL_BYTES, "%.*f", count > exponent ? count - exponent : 1, real);
}

static int put_real(struct budget *budget, struct builder *to, double real, bool json)
{
        char text[REAL_BYTES];

        print_real(real, text);
        if (json && !isfinite(real))
                return error_pass(put(budget, to,
                                      isnan(real) ? "NaN"
                                      : real < 0  ? "-Infinity"
                                                  : "Infinity"));
        return error_pass(put(budget, to, text));
}

static int put_integer(struct budget *budget, struct builder *to, int64_t integer)
{
        char text[24];

        snprintf(text, sizeof(text), "%lld", (long long)integer);
        return error_pass(put(budget, to, text));
}

/* ---- repr ---- */

static int put_code(struct budget *budget, struct builder *to, uint32_t code,
                    enum text_origin origin)
{
        char text[12];

        snprintf(text, sizeof(text),
                 code < 0x100     ? "\\x%02x"
                 : code < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                 code);
        return error_pass(text_add(budget, to, text, strlen(text), origin));
}

/* The short escape of a character; NULL: there is none. */
static const char *repr_letter(uint32_t code, char quote)
{
        return code == '\n'                   ? "\\n"
               : code == '\r'                 ? "\\r"
               : code == '\t'                 ? "\\t"
               : code == '\\'                 ? "\\\\"
               : code == (unsigned char)quote ? "\\'"
                                              : NULL;
}

static int repr_text(struct budget *budget, struct builder *to, const struct text *text)
{
        bool single = memchr(text->bytes, '\'', text->count);
        char quote = single && !memchr(text->bytes, '"', text->count) ? '"' : '\'';
        uint32_t same = 0, code;
        int r = text_add(budget, to, &quote, 1, TEXT_OURS);

        if (!r)
                r = budget_charge_bytes(budget, (uint64_t)text->count * 4);
        for (uint32_t at = 0; !r && at < text->count;) {
                unsigned n = unicode_next(text->bytes + at, text->count - at, &code);
                const char *letter = repr_letter(code, quote == '"' ? '\0' : quote);

                if (code == '\0')
                        letter = NULL;
                if (letter || (code != UNICODE_INVALID && case_is_hidden(code))) {
                        enum text_origin origin = text_origin_at(text, at);

                        r = text_add_slice(budget, to, text, same, at);
                        if (!r)
                                r = letter ? text_add(budget, to, letter, strlen(letter), origin)
                                           : put_code(budget, to, code, origin);
                        same = at + n;
                }
                at += n;
        }
        if (!r)
                r = text_add_slice(budget, to, text, same, text->count);
        return error_pass(r ? r : text_add(budget, to, &quote, 1, TEXT_OURS));
}

static int repr_list(struct budget *budget, struct builder *to, struct value value)
{
        bool tuple = value.flavour == LIST_TUPLE;
        int r = put(budget, to, tuple ? "(" : "[");

        for (uint32_t i = 0; !r && i < value.list->count; i++) {
                r = i ? put(budget, to, ", ") : 0;
                if (!r)
                        r = print_repr(budget, to, value.list->items[i]);
        }
        if (!r && tuple && value.list->count == 1)
                r = put(budget, to, ",");
        return error_pass(r ? r : put(budget, to, tuple ? ")" : "]"));
}

static int repr_map(struct budget *budget, struct builder *to, const struct map *map)
{
        int r = put(budget, to, "{");

        for (uint32_t i = 0; !r && i < map->count; i++) {
                r = i ? put(budget, to, ", ") : 0;
                if (!r)
                        r = print_repr(budget, to, map->entries[i].key);
                if (!r)
                        r = put(budget, to, ": ");
                if (!r)
                        r = print_repr(budget, to, map->entries[i].value);
        }
        return error_pass(r ? r : put(budget, to, "}"));
}

int print_repr(struct budget *budget, struct builder *to, struct value value)
{
        int r = budget_charge(budget, 1);

        if (r)
                return error_pass(r);
        switch (value.kind) {
        case VALUE_UNDEFINED:
                return error_pass(put(budget, to, "Undefined"));
        case VALUE_NONE:
                return error_pass(put(budget, to, "None"));
        case VALUE_BOOL:
                return error_pass(put(budget, to, value.truth ? "True" : "False"));
        case VALUE_INTEGER:
                return error_pass(put_integer(budget, to, value.integer));
        case VALUE_FLOAT:
                return error_pass(put_real(budget, to, value.real, false));
        case VALUE_STRING:
                return error_pass(repr_text(budget, to, value.text));
        case VALUE_MAP:
                return error_pass(repr_map(budget, to, value.map));
        case VALUE_LIST:
                if (value.flavour <= LIST_TUPLE)
                        return error_pass(repr_list(budget, to, value));
                /* fall through */
        default:
                return error_raise(
                        budget_fail(budget, "a %s cannot be printed", value_type(value)));
        }
}

/* The text of a list or a map is TEXT_GIVEN as a whole if any part of it is. */
int print_value(struct budget *budget, struct builder *to, struct value value)
{
        struct builder all = { .bytes = NULL };
        struct value text;
        int r;

        if (value.kind == VALUE_UNDEFINED)
                return 0;
        if (value.kind == VALUE_STRING)
                return error_pass(text_add_all(budget, to, value.text));
        if (value.kind < VALUE_LIST)
                return error_pass(print_repr(budget, to, value));
        r = print_repr(budget, &all, value);
        if (!r)
                r = text_end_as_one(budget, &all, &text);
        return error_pass(r ? r : text_add_all(budget, to, text.text));
}

int print_text(struct budget *budget, struct value value, struct value *ret_text)
{
        struct builder to = { .bytes = NULL };
        int r;

        *ret_text = value;
        if (value.kind == VALUE_STRING)
                return 0;
        r = print_value(budget, &to, value);
        return error_pass(r ? r : text_end(budget, &to, ret_text));
}

/* ---- JSON ---- */

static const char *json_letter(uint32_t code)
{
        static const char *const letters[] = {
                ['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\r'] = "\\r",
                ['\t'] = "\\t", ['\b'] = "\\b",  ['\f'] = "\\f"
        };

        return code <= '\\' ? letters[code] : NULL;
}

static int json_code(struct budget *budget, struct builder *to, uint32_t code,
                     enum text_origin origin)
{
        char text[16];

        if (code < 0x10000)
                snprintf(text, sizeof(text), "\\u%04x", code);
        else
                snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10),
                         0xDC00 + (code & 0x3FF));
        return error_pass(text_add(budget, to, text, strlen(text), origin));
}

static int json_text(struct budget *budget, struct builder *to, const struct text *text, bool ascii)
{
        uint32_t same = 0, code;
        int r = put(budget, to, "\"");

        if (!r)
                r = budget_charge_bytes(budget, (uint64_t)text->count * 2);
        for (uint32_t at = 0; !r && at < text->count;) {
                unsigned n = unicode_next(text->bytes + at, text->count - at, &code);
                const char *letter = json_letter(code);

                if (letter || code < 0x20 || (ascii && code >= 0x7F && code <= 0x10FFFF)) {
                        enum text_origin origin = text_origin_at(text, at);

                        r = text_add_slice(budget, to, text, same, at);
                        if (!r)
                                r = letter ? text_add(budget, to, letter, strlen(letter), origin)
                                           : json_code(budget, to, code, origin);
                        same = at + n;
                }
                at += n;
        }
        if (!r)
                r = text_add_slice(budget, to, text, same, text->count);
        return error_pass(r ? r : put(budget, to, "\""));
}

static int json_line(struct budget *budget, struct builder *to, const struct json_style *style,
                     unsigned depth)
{
        int r = style->indent ? put(budget, to, "\n") : 0;

        for (unsigned i = 0; !r && style->indent && i < depth; i++)
                r = text_add_all(budget, to, style->indent);
        return error_pass(r);
}

static int json_any(struct budget *budget, struct builder *to, struct value value,
                    const struct json_style *style, unsigned depth);

static int json_list(struct budget *budget, struct builder *to, const struct list *list,
                     const struct json_style *style, unsigned depth)
{
        int r = put(budget, to, "[");

        for (uint32_t i = 0; !r && i < list->count; i++) {
                r = i ? text_add_all(budget, to, style->comma) : 0;
                if (!r)
                        r = json_line(budget, to, style, depth + 1);
                if (!r)
                        r = json_any(budget, to, list->items[i], style, depth + 1);
        }
        if (!r && list->count)
                r = json_line(budget, to, style, depth);
        return error_pass(r ? r : put(budget, to, "]"));
}

static int json_key_text(struct budget *budget, struct builder *to, struct value key, bool ascii)
{
        int r;

        switch (key.kind) {
        case VALUE_STRING:
                return error_pass(json_text(budget, to, key.text, ascii));
        case VALUE_NONE:
                return error_pass(put(budget, to, "\"null\""));
        case VALUE_BOOL:
                return error_pass(put(budget, to, key.truth ? "\"true\"" : "\"false\""));
        case VALUE_INTEGER:
        case VALUE_FLOAT:
                r = put(budget, to, "\"");
                if (!r)
                        r = key.kind == VALUE_FLOAT ? put_real(budget, to, key.real, true)
                                                    : put_integer(budget, to, key.integer);
                return error_pass(r ? r : put(budget, to, "\""));
        default:
                return error_raise(
                        budget_fail(budget, "a %s cannot be a key in JSON", value_type(key)));
        }
}

static int json_entries(struct budget *budget, const struct map *map, bool sorted,
                        struct sortable **ret_entries)
{
        struct sortable *entries;
        int r = budget_charge(budget, map->count / 4);

        if (r || !(entries = budget_take(budget, (size_t)map->count * sizeof(*entries), &r)))
                return error_pass(r);
        for (uint32_t i = 0; i < map->count; i++)
                entries[i] = (struct sortable){ map->entries[i].key, map->entries[i].value };
        *ret_entries = entries;
        return error_pass(sorted ? value_sort(budget, entries, map->count, false) : 0);
}

static int json_map(struct budget *budget, struct builder *to, const struct map *map,
                    const struct json_style *style, unsigned depth)
{
        struct sortable *entries = NULL;
        int r = json_entries(budget, map, style->sorted, &entries);

        if (!r)
                r = put(budget, to, "{");
        for (uint32_t i = 0; !r && i < map->count; i++) {
                r = i ? text_add_all(budget, to, style->comma) : 0;
                if (!r)
                        r = json_line(budget, to, style, depth + 1);
                if (!r)
                        r = json_key_text(budget, to, entries[i].key, style->ascii);
                if (!r)
                        r = text_add_all(budget, to, style->colon);
                if (!r)
                        r = json_any(budget, to, entries[i].value, style, depth + 1);
        }
        if (!r && map->count)
                r = json_line(budget, to, style, depth);
        return error_pass(r ? r : put(budget, to, "}"));
}

static int json_any(struct budget *budget, struct builder *to, struct value value,
                    const struct json_style *style, unsigned depth)
{
        int r = budget_charge(budget, 1);

        if (r)
                return error_pass(r);
        switch (value.kind) {
        case VALUE_NONE:
                return error_pass(put(budget, to, "null"));
        case VALUE_BOOL:
                return error_pass(put(budget, to, value.truth ? "true" : "false"));
        case VALUE_INTEGER:
                return error_pass(put_integer(budget, to, value.integer));
        case VALUE_FLOAT:
                return error_pass(put_real(budget, to, value.real, true));
        case VALUE_STRING:
                return error_pass(json_text(budget, to, value.text, style->ascii));
        case VALUE_MAP:
                return error_pass(json_map(budget, to, value.map, style, depth));
        case VALUE_LIST:
                if (value.flavour <= LIST_TUPLE)
                        return error_pass(json_list(budget, to, value.list, style, depth));
                /* fall through */
        default:
                return error_raise(
                        budget_fail(budget, "a %s cannot be written as JSON", value_type(value)));
        }
}

int print_json(struct budget *budget, struct builder *to, struct value value,
               const struct json_style *style)
{
        return error_pass(json_any(budget, to, value, style, 0));
}
