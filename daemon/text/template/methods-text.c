/*
 * The methods of strings.  Methods of Python that we do not have are in the table without `work`:
 * they are attributes all the same, and a call is refused by name.
 */
#include "daemon/text/template/access.h"
#include "daemon/text/template/blank.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/case.h"
#include "daemon/text/template/methods.h"
#include "daemon/text/template/strings.h"
#include "daemon/text/template/text.h"

#include <string.h>

#define COUNT(rows) (sizeof(rows) / sizeof(*(rows)))

/* ---- strings: searching ---- */

/* The part of a text that a method searches; slots 1 and 2 give it in characters. */
static int part_of(struct budget *budget, const struct text *text, const struct call *call,
                   uint32_t *ret_from, uint32_t *ret_end)
{
        int64_t ends[2];
        uint32_t length;
        int r = text_length(budget, text, &length);

        for (unsigned i = 0; !r && i < 2; i++) {
                struct value value = call->slots[i + 1];

                if (value.kind == VALUE_NONE)
                        value.kind = MISSING;
                r = integer_argument(budget, value, i ? length : 0, &ends[i]);
                if (!r && ends[i] < 0)
                        ends[i] = ends[i] < -(int64_t)length ? 0 : ends[i] + length;
        }
        if (r)
                return error_pass(r);
        /* As in Python, a part that begins after the end does not contain the empty text either. */
        *ret_from = ends[0] > length ? TEXT_NOWHERE : text_place(text, ends[0]);
        *ret_end = text_place(text, ends[1]);
        return 0;
}

static bool begins_or_ends(const struct text *text, uint32_t from, uint32_t end,
                           const struct text *with, bool begins)
{
        if (from > end || with->count > end - from)
                return false;
        return !memcmp(text->bytes + (begins ? from : end - with->count), with->bytes, with->count);
}

static int begins_with(struct budget *budget, struct value self, const struct call *call,
                       bool begins, struct value *ret_value)
{
        struct value what = call->slots[0];
        bool tuple = what.kind == VALUE_LIST && what.flavour == LIST_TUPLE, truth = false;
        const struct text *with;
        uint32_t from, end;
        int r = part_of(budget, self.text, call, &from, &end);

        for (uint32_t i = 0; !r && !truth && i < (tuple ? what.list->count : 1); i++) {
                struct value one = tuple ? what.list->items[i] : what;

                r = one.kind == VALUE_NONE
                            ? budget_fail(budget, "a NoneType cannot begin or end a str")
                            : string_argument(budget, one, &with);
                if (!r)
                        truth = begins_or_ends(self.text, from, end, with, begins);
                if (!r)
                        r = budget_charge(budget, 1 + with->count / 64);
        }
        *ret_value = value_bool(truth);
        return error_pass(r);
}

static int text_startswith(struct budget *budget, struct value self, const struct call *call,
                           struct value *ret_value)
{
        return error_pass(begins_with(budget, self, call, true, ret_value));
}

static int text_endswith(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value)
{
        return error_pass(begins_with(budget, self, call, false, ret_value));
}

enum { LOOK_FIND, LOOK_LAST, LOOK_INDEX, LOOK_LAST_INDEX };

static int look(struct budget *budget, struct value self, const struct call *call, int how,
                struct value *ret_value)
{
        bool back = how == LOOK_LAST || how == LOOK_LAST_INDEX;
        const struct text *wanted;
        struct value before;
        uint32_t from, end, found, length;
        int r = string_argument(budget, call->slots[0], &wanted);

        if (!r && !wanted)
                r = budget_fail(budget, "a str cannot contain a NoneType");
        if (!r)
                r = part_of(budget, self.text, call, &from, &end);
        if (!r)
                r = budget_charge_bytes(budget, (uint64_t)self.text->count *
                                                        (back ? wanted->count + 1 : 2));
        if (r)
                return error_pass(r);
        found = (back ? text_find_last : text_find)(self.text, wanted, from, end);
        *ret_value = value_integer(-1);
        if (found == TEXT_NOWHERE && how >= LOOK_INDEX)
                return error_raise(budget_fail(budget, "substring not found"));
        if (found == TEXT_NOWHERE)
                return 0;
        r = text_slice(budget, self.text, 0, found, &before);
        if (!r)
                r = text_length(budget, before.text, &length);
        if (!r)
                *ret_value = value_integer(length);
        return error_pass(r);
}

static int text_find_method(struct budget *budget, struct value self, const struct call *call,
                            struct value *ret_value)
{
        return error_pass(look(budget, self, call, LOOK_FIND, ret_value));
}

static int text_rfind(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        return error_pass(look(budget, self, call, LOOK_LAST, ret_value));
}

static int text_index(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        return error_pass(look(budget, self, call, LOOK_INDEX, ret_value));
}

static int text_rindex(struct budget *budget, struct value self, const struct call *call,
                       struct value *ret_value)
{
        return error_pass(look(budget, self, call, LOOK_LAST_INDEX, ret_value));
}

static int text_count(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        const struct text *wanted;
        uint32_t from, end, count = 0;
        struct value part;
        int r = string_argument(budget, call->slots[0], &wanted);

        if (!r && !wanted)
                r = budget_fail(budget, "a NoneType cannot be counted in a str");
        if (!r)
                r = part_of(budget, self.text, call, &from, &end);
        if (!r)
                r = budget_charge_bytes(budget, (uint64_t)self.text->count * 2 + wanted->count);
        if (!r && !wanted->count) {
                if (from <= end && !(r = text_slice(budget, self.text, from, end, &part)))
                        r = text_length(budget, part.text, &count);
                *ret_value = value_integer((int64_t)count + (from <= end));
                return error_pass(r);
        }
        while (!r && (from = text_find(self.text, wanted, from, end)) != TEXT_NOWHERE) {
                from += wanted->count;
                count++;
                r = budget_charge(budget, 1 + wanted->count / 64);
        }
        *ret_value = value_integer(count);
        return error_pass(r);
}

/* ---- strings: kinds of characters ---- */

static bool code_is_digit(uint32_t code)
{
        return unicode_kind(code) == UNICODE_NUMBER;
}

static bool code_is_letter(uint32_t code)
{
        return unicode_kind(code) == UNICODE_LETTER;
}

static bool code_is_either(uint32_t code)
{
        return code_is_digit(code) || code_is_letter(code);
}

static bool code_is_ascii(uint32_t code)
{
        return code < 0x80;
}

static int all_are(struct budget *budget, struct value self, bool (*are)(uint32_t), bool empty,
                   struct value *ret_value)
{
        const struct text *text = self.text;
        bool truth = text->count || empty;
        uint32_t code;
        int r = budget_charge(budget, text->count / 16);

        for (uint32_t at = 0; !r && truth && at < text->count;) {
                at += unicode_next(text->bytes + at, text->count - at, &code);
                truth = are(code);
        }
        *ret_value = value_bool(truth);
        return error_pass(r);
}

/* Our tables do not say which numbers beyond ASCII are digits in Python. */
static int text_isdigit(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        const struct text *text = self.text;
        uint32_t code;
        int r = budget_charge(budget, text->count / 16);

        (void)call;
        for (uint32_t at = 0; !r && at < text->count;) {
                at += unicode_next(text->bytes + at, text->count - at, &code);
                if (code >= 0x80 && unicode_kind(code) == UNICODE_NUMBER)
                        r = budget_fail(budget,
                                        "'isdigit' for digits beyond ASCII is not supported");
        }
        if (r)
                return error_pass(r);
        return error_pass(all_are(budget, self, code_is_digit, false, ret_value));
}

static int text_isalpha(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        (void)call;
        return error_pass(all_are(budget, self, code_is_letter, false, ret_value));
}

static int text_isalnum(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        (void)call;
        return error_pass(all_are(budget, self, code_is_either, false, ret_value));
}

static int text_isspace(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        (void)call;
        return error_pass(all_are(budget, self, blank_is, false, ret_value));
}

static int text_isascii(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        (void)call;
        return error_pass(all_are(budget, self, code_is_ascii, true, ret_value));
}

static int text_islower(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        (void)call;
        *ret_value = value_bool(string_is_lower(self.text));
        return error_pass(budget_charge(budget, self.text->count / 8));
}

static int text_isupper(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        (void)call;
        *ret_value = value_bool(string_is_upper(self.text));
        return error_pass(budget_charge(budget, self.text->count / 8));
}

/* ---- strings: changed copies ---- */

static int text_lower(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        (void)call;
        return error_pass(string_in_case(budget, self.text, CASE_LOWER, ret_value));
}

static int text_upper(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        (void)call;
        return error_pass(string_in_case(budget, self.text, CASE_UPPER, ret_value));
}

static int text_capitalize(struct budget *budget, struct value self, const struct call *call,
                           struct value *ret_value)
{
        (void)call;
        return error_pass(string_capitalize(budget, self.text, ret_value));
}

/* A letter after one that has a case becomes lower case, any other becomes title case. */
static int text_title(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        const struct text *text = self.text;
        struct builder to = { .bytes = NULL };
        bool inside = false;
        uint32_t code;
        int r = budget_charge(budget, text->count / 4);

        (void)call;
        for (uint32_t at = 0; !r && at < text->count;) {
                unsigned n = unicode_next(text->bytes + at, text->count - at, &code);

                r = case_add(budget, &to, text, at, at + n, inside ? CASE_LOWER : CASE_TITLE);
                inside = case_is_lower(code) || case_is_upper(code);
                at += n;
        }
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

static int text_replace(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        const struct text *old, *new;
        int64_t most;
        int r = string_argument(budget, call->slots[0], &old);

        if (!r)
                r = string_argument(budget, call->slots[1], &new);
        if (!r)
                r = integer_argument(budget, call->slots[2], -1, &most);
        if (!r && (!old || !new))
                r = budget_fail(budget, "a NoneType is given, a str is expected");
        return error_pass(r ? r : string_replace(budget, self.text, old, new, most, ret_value));
}

static int text_join(struct budget *budget, struct value self, const struct call *call,
                     struct value *ret_value)
{
        const struct value *items;
        uint32_t count;
        int r = value_items(budget, call->slots[0], &items, &count);

        return error_pass(r ? r : string_join(budget, self.text, items, count, true, ret_value));
}

static int remove_with(struct budget *budget, struct value self, const struct call *call,
                       bool begins, struct value *ret_value)
{
        const struct text *text = self.text, *what;
        int r = string_argument(budget, call->slots[0], &what);
        uint32_t n;

        if (!r && !what)
                r = budget_fail(budget, "a NoneType is given, a str is expected");
        if (!r)
                r = budget_charge_bytes(budget, what->count);
        if (r)
                return error_pass(r);
        n = begins_or_ends(text, 0, text->count, what, begins) ? what->count : 0;
        return error_pass(text_slice(budget, text, begins ? n : 0, text->count - (begins ? 0 : n),
                                     ret_value));
}

static int text_removeprefix(struct budget *budget, struct value self, const struct call *call,
                             struct value *ret_value)
{
        return error_pass(remove_with(budget, self, call, true, ret_value));
}

static int text_removesuffix(struct budget *budget, struct value self, const struct call *call,
                             struct value *ret_value)
{
        return error_pass(remove_with(budget, self, call, false, ret_value));
}

static int fill_with(struct budget *budget, struct value self, const struct call *call, int where,
                     struct value *ret_value)
{
        const struct text *fill;
        int64_t width;
        int r = integer_argument(budget, call->slots[0], 0, &width);

        if (!r)
                r = string_argument(budget, call->slots[1], &fill);
        return error_pass(r ? r : string_center(budget, self.text, width, fill, where, ret_value));
}

static int text_center(struct budget *budget, struct value self, const struct call *call,
                       struct value *ret_value)
{
        return error_pass(fill_with(budget, self, call, 0, ret_value));
}

static int text_ljust(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        return error_pass(fill_with(budget, self, call, -1, ret_value));
}

static int text_rjust(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        return error_pass(fill_with(budget, self, call, 1, ret_value));
}

/* A `/` is a parameter that can only be given by position. */
static const struct builtin text_rows[] = {
        { "strip", text_strip, "/", 0 },
        { "lstrip", text_lstrip, "/", 0 },
        { "rstrip", text_rstrip, "/", 0 },
        { "split", text_split, "sep maxsplit", 0 },
        { "rsplit", text_rsplit, "sep maxsplit", 0 },
        { "splitlines", text_splitlines, "keepends", 0 },
        { "partition", text_partition, "/", 1 },
        { "rpartition", text_rpartition, "/", 1 },
        { "startswith", text_startswith, "/ / /", 1 },
        { "endswith", text_endswith, "/ / /", 1 },
        { "find", text_find_method, "/ / /", 1 },
        { "rfind", text_rfind, "/ / /", 1 },
        { "index", text_index, "/ / /", 1 },
        { "rindex", text_rindex, "/ / /", 1 },
        { "count", text_count, "/ / /", 1 },
        { "isdigit", text_isdigit, "", 0 },
        { "isnumeric", text_isdigit, "", 0 },
        { "isdecimal", text_isdigit, "", 0 },
        { "isalpha", text_isalpha, "", 0 },
        { "isalnum", text_isalnum, "", 0 },
        { "isspace", text_isspace, "", 0 },
        { "isascii", text_isascii, "", 0 },
        { "islower", text_islower, "", 0 },
        { "isupper", text_isupper, "", 0 },
        { "lower", text_lower, "", 0 },
        { "upper", text_upper, "", 0 },
        { "capitalize", text_capitalize, "", 0 },
        { "title", text_title, "", 0 },
        { "replace", text_replace, "/ / /", 2 },
        { "join", text_join, "/", 1 },
        { "removeprefix", text_removeprefix, "/", 1 },
        { "removesuffix", text_removesuffix, "/", 1 },
        { "center", text_center, "/ /", 1 },
        { "ljust", text_ljust, "/ /", 1 },
        { "rjust", text_rjust, "/ /", 1 },
        { "format", NULL, "", 0 },
        { "format_map", NULL, "", 0 },
        { "zfill", NULL, "", 0 },
        { "swapcase", NULL, "", 0 },
        { "casefold", NULL, "", 0 },
        { "expandtabs", NULL, "", 0 },
        { "encode", NULL, "", 0 },
        { "translate", NULL, "", 0 },
        { "maketrans", NULL, "", 0 },
        { "istitle", NULL, "", 0 },
        { "isidentifier", NULL, "", 0 },
        { "isprintable", NULL, "", 0 },
};
const struct builtins text_methods = { "method of strings", text_rows, COUNT(text_rows) };
