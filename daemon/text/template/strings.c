#include "daemon/text/template/strings.h"

#include <string.h>

#include "daemon/text/template/blank.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/case.h"
#include "daemon/text/template/print.h"
#include "daemon/text/template/text.h"

/* ---- arguments ---- */

int string_argument(struct budget *budget, struct value value, const struct text **ret_text)
{
        *ret_text = NULL;
        if (is_missing(value) || value.kind == VALUE_NONE)
                return 0;
        if (value.kind != VALUE_STRING)
                return error_raise(
                        budget_fail(budget, "a %s is given, a str is expected", value_type(value)));
        *ret_text = value.text;
        return 0;
}

int integer_argument(struct budget *budget, struct value value, int64_t otherwise,
                     int64_t *ret_integer)
{
        *ret_integer = otherwise;
        if (is_missing(value))
                return 0;
        if (value.kind != VALUE_INTEGER && value.kind != VALUE_BOOL)
                return error_raise(budget_fail(budget, "a %s is given, an int is expected",
                                               value_type(value)));
        *ret_integer = value_whole(value);
        return 0;
}

bool truth_argument(struct value value, bool otherwise)
{
        return is_missing(value) ? otherwise : value_truth(value);
}

/* ---- stripping ---- */

static bool has_character(const struct text *characters, const char *one, uint32_t count)
{
        return memmem(characters->bytes, characters->count, one, count);
}

static uint32_t strip_left(const struct text *text, const struct text *characters)
{
        uint32_t at = 0, code;

        if (!characters)
                return blank_leading(text->bytes, text->count);
        while (at < text->count) {
                unsigned n = unicode_next(text->bytes + at, text->count - at, &code);

                if (!has_character(characters, text->bytes + at, n))
                        break;
                at += n;
        }
        return at;
}

static uint32_t strip_right(const struct text *text, const struct text *characters, uint32_t from)
{
        uint32_t end = text->count;

        if (!characters)
                return end - blank_trailing(text->bytes + from, end - from);
        while (end > from) {
                uint32_t start = text_before(text->bytes, end);

                if (!has_character(characters, text->bytes + start, end - start))
                        break;
                end = start;
        }
        return end;
}

int string_strip(struct budget *budget, const struct text *text, const struct text *characters,
                 bool left, bool right, struct value *ret_value)
{
        uint64_t each = characters ? characters->count / 16 : 0;
        /* the set of characters is searched for each character */
        int r = budget_charge(budget, text->count * each / 16);
        uint32_t from, end;

        if (r)
                return error_pass(r);
        from = left ? strip_left(text, characters) : 0;
        end = right ? strip_right(text, characters, from) : text->count;
        r = budget_charge(budget, (from + (text->count - end)) / 16);
        return error_pass(r ? r : text_slice(budget, text, from, end, ret_value));
}

/* ---- replacing ---- */

/* Replaces the empty text, which is found before each character and at the end. */
static int replace_nothing(struct budget *budget, const struct text *text, const struct text *new,
                           int64_t most, struct builder *to)
{
        uint32_t at = 0, code;
        int r = 0;

        while (!r && most && at < text->count) {
                unsigned n = unicode_next(text->bytes + at, text->count - at, &code);

                r = budget_charge(budget, 1);
                if (!r)
                        r = text_add_all(budget, to, new);
                if (!r)
                        r = text_add_slice(budget, to, text, at, at + n);
                at += n;
                most -= most > 0;
        }
        if (!r)
                r = text_add_slice(budget, to, text, at, text->count);
        return error_pass(r || !most ? r : text_add_all(budget, to, new));
}

int string_replace(struct budget *budget, const struct text *text, const struct text *old,
                   const struct text *new, int64_t most, struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        uint32_t at = 0, found;
        int r = budget_charge_bytes(budget, (uint64_t)text->count + old->count);

        if (!r && !old->count) {
                r = replace_nothing(budget, text, new, most, &to);
                return error_pass(r ? r : text_end(budget, &to, ret_value));
        }
        while (!r && most && (found = text_find(text, old, at, text->count)) != TEXT_NOWHERE) {
                r = text_add_slice(budget, &to, text, at, found);
                if (!r)
                        r = text_add_all(budget, &to, new);
                if (!r)
                        r = budget_charge(budget, 1 + old->count / 64);
                at = found + old->count;
                most -= most > 0;
        }
        if (!r)
                r = text_add_slice(budget, &to, text, at, text->count);
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

/* ---- lines ---- */

/* The length in bytes of the line end at `at`; 0: there is none. */
static unsigned line_end(const struct text *text, uint32_t at)
{
        uint32_t code;
        unsigned n = unicode_next(text->bytes + at, text->count - at, &code);

        if (code == '\r' && at + 1 < text->count && text->bytes[at + 1] == '\n')
                return 2;
        return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
                               code == 0x2028 || code == 0x2029
                       ? n
                       : 0;
}

static uint32_t count_lines(const struct text *text)
{
        uint32_t lines = 1;

        for (uint32_t at = 0; at < text->count; at++)
                lines += ((unsigned char)text->bytes[at] & 0xC0) != 0x80 && line_end(text, at);
        return lines;
}

int string_lines(struct budget *budget, const struct text *text, bool ends, struct value *ret_list)
{
        uint32_t from = 0, code;
        struct value line;
        int r = budget_charge(budget, text->count / 16);

        if (!r)
                r = budget_list(budget, count_lines(text), LIST_LIST, ret_list);
        for (uint32_t at = 0; !r && at < text->count;) {
                unsigned n = line_end(text, at);

                if (!n) {
                        at += unicode_next(text->bytes + at, text->count - at, &code);
                        continue;
                }
                r = text_slice(budget, text, from, ends ? at + n : at, &line);
                if (!r)
                        r = budget_list_add(budget, ret_list, line);
                if (!r)
                        r = budget_charge(budget, 1);
                from = at += n;
        }
        if (!r && from < text->count) {
                r = text_slice(budget, text, from, text->count, &line);
                if (!r)
                        r = budget_list_add(budget, ret_list, line);
        }
        return error_pass(r);
}

/* ---- cases ---- */

int string_in_case(struct budget *budget, const struct text *text, int how, struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        int r = case_add(budget, &to, text, 0, text->count, (enum letter_case)how);

        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

int string_capitalize(struct budget *budget, const struct text *text, struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        uint32_t first = text_place(text, 1);
        int r = case_add(budget, &to, text, 0, first, CASE_TITLE);

        if (!r)
                r = case_add(budget, &to, text, first, text->count, CASE_LOWER);
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

static bool is_in_case(const struct text *text, bool (*right)(uint32_t), bool (*wrong)(uint32_t))
{
        bool any = false;
        uint32_t code;

        for (uint32_t at = 0; at < text->count;) {
                at += unicode_next(text->bytes + at, text->count - at, &code);
                if (wrong(code))
                        return false;
                any |= right(code);
        }
        return any;
}

bool string_is_lower(const struct text *text)
{
        return is_in_case(text, case_is_lower, case_is_upper);
}

bool string_is_upper(const struct text *text)
{
        return is_in_case(text, case_is_upper, case_is_lower);
}

/* ---- joining ---- */

/* strict: only strings are allowed, as in str.join(). */
int string_join(struct budget *budget, const struct text *between, const struct value *items,
                uint32_t count, bool strict, struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        int r = 0;

        for (uint32_t i = 0; !r && i < count; i++) {
                if (strict && items[i].kind != VALUE_STRING)
                        return error_raise(budget_fail(budget, "a %s cannot be joined to strings",
                                                       value_type(items[i])));
                r = budget_charge(budget, 1);
                if (!r && i)
                        r = text_add_all(budget, &to, between);
                if (!r)
                        r = print_value(budget, &to, items[i]);
        }
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

static int add_fill(struct budget *budget, struct builder *to, const struct text *fill,
                    int64_t times)
{
        int r = 0;

        for (; !r && times > 0; times--) {
                r = budget_charge(budget, 1);
                if (!r)
                        r = fill ? text_add_all(budget, to, fill)
                                 : text_add(budget, to, " ", 1, TEXT_OURS);
        }
        return error_pass(r);
}

/* where: -1: the text is on the left; 0: in the middle; 1: on the right. */
int string_center(struct budget *budget, const struct text *text, int64_t width,
                  const struct text *fill, int where, struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        int64_t capacity, before;
        uint32_t length;
        int r = text_length(budget, text, &length);

        if (!r && fill && (!fill->count || text_place(fill, 1) != fill->count))
                r = budget_fail(budget, "the fill of a text is not one character");
        capacity = width > length ? width - length : 0;
        before = where < 0 ? 0 : where > 0 ? capacity : capacity / 2 + (capacity & width & 1);
        if (!r)
                r = add_fill(budget, &to, fill, before);
        if (!r)
                r = text_add_all(budget, &to, text);
        if (!r)
                r = add_fill(budget, &to, fill, capacity - before);
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}
