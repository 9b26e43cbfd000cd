/*
 * The table of all filters, and the filters of texts.
 */
#include "daemon/text/template/filters.h"

#include <string.h>

#include "daemon/text/template/access.h"
#include "daemon/text/template/blank.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/case.h"
#include "daemon/text/template/format.h"
#include "daemon/text/template/objects.h"
#include "daemon/text/template/print.h"
#include "daemon/text/template/strings.h"
#include "daemon/text/template/text.h"

/* ---- texts ---- */

static int filter_string(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value)
{
        (void)call;
        return error_pass(print_text(budget, self, ret_value));
}

static int filter_trim(struct budget *budget, struct value self, const struct call *call,
                       struct value *ret_value)
{
        const struct text *characters;
        int r = print_text(budget, self, &self);

        if (!r)
                r = string_argument(budget, call->slots[0], &characters);
        return error_pass(r ? r
                            : string_strip(budget, self.text, characters, true, true, ret_value));
}

static int in_case(struct budget *budget, struct value self, enum letter_case how,
                   struct value *ret_value)
{
        int r = print_text(budget, self, &self);

        return error_pass(r ? r : string_in_case(budget, self.text, how, ret_value));
}

static int filter_lower(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        (void)call;
        return error_pass(in_case(budget, self, CASE_LOWER, ret_value));
}

static int filter_upper(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        (void)call;
        return error_pass(in_case(budget, self, CASE_UPPER, ret_value));
}

static int filter_capitalize(struct budget *budget, struct value self, const struct call *call,
                             struct value *ret_value)
{
        int r = print_text(budget, self, &self);

        (void)call;
        return error_pass(r ? r : string_capitalize(budget, self.text, ret_value));
}

static bool begins_word(uint32_t code)
{
        return blank_is(code) || (code < 0x80 && strchr("-({[<", (int)code));
}

/* A word begins only after blanks and opening brackets. */
static int filter_title(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        bool inside = false;
        uint32_t code;
        int r = print_text(budget, self, &self);

        (void)call;
        if (!r)
                r = budget_charge(budget, self.text->count / 4);
        for (uint32_t at = 0; !r && at < self.text->count;) {
                unsigned n = unicode_next(self.text->bytes + at, self.text->count - at, &code);
                bool starts = code && begins_word(code);

                r = case_add(budget, &to, self.text, at, at + n,
                             inside || starts ? CASE_LOWER : CASE_UPPER);
                inside = !starts;
                at += n;
        }
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

static int filter_replace(struct budget *budget, struct value self, const struct call *call,
                          struct value *ret_value)
{
        struct value old, new, count = call->slots[2];
        int64_t most;
        int r = print_text(budget, self, &self);

        if (!r)
                r = print_text(budget, call->slots[0], &old);
        if (!r)
                r = print_text(budget, call->slots[1], &new);
        if (count.kind == VALUE_NONE)
                count.kind = MISSING;
        if (!r)
                r = integer_argument(budget, count, -1, &most);
        return error_pass(
                r ? r : string_replace(budget, self.text, old.text, new.text, most, ret_value));
}

static int indent_lines(struct budget *budget, struct value lines, const struct text *by,
                        bool first, bool blank, struct builder *to)
{
        int r = 0;

        for (uint32_t i = 0; !r && i < lines.list->count; i++) {
                const struct text *line = lines.list->items[i].text;

                r = i ? text_add(budget, to, "\n", 1, TEXT_OURS) : 0;
                if (!r && (i ? blank || line->count : first))
                        r = text_add_all(budget, to, by);
                if (!r)
                        r = text_add_all(budget, to, line);
        }
        return error_pass(r);
}

/* As Jinja does, first appends a newline to the text, so that it has at least one line. */
static int filter_indent(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value)
{
        struct builder to = { .bytes = NULL }, whole = { .bytes = NULL };
        struct value lines, by = call->slots[0];
        int64_t width;
        int r = 0;

        if (self.kind == VALUE_UNDEFINED)
                return error_pass(undefined_fail(budget, self));
        if (self.kind != VALUE_STRING)
                return error_raise(
                        budget_fail(budget, "a %s cannot be indented", value_type(self)));
        if (is_missing(by) || by.kind != VALUE_STRING) {
                r = integer_argument(budget, by, 4, &width);
                if (!r)
                        r = text_ours(budget, "", 0, &by);
                if (!r)
                        r = string_center(budget, by.text, width, NULL, -1, &by);
        }
        if (!r)
                r = text_add_all(budget, &whole, self.text);
        if (!r)
                r = text_add(budget, &whole, "\n", 1, TEXT_OURS);
        if (!r)
                r = text_end(budget, &whole, &self);
        if (!r)
                r = string_lines(budget, self.text, false, &lines);
        if (!r)
                r = indent_lines(budget, lines, by.text, truth_argument(call->slots[1], false),
                                 truth_argument(call->slots[2], false), &to);
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

static int filter_center(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value)
{
        int64_t width;
        int r = print_text(budget, self, &self);

        if (!r)
                r = integer_argument(budget, call->slots[0], 80, &width);
        return error_pass(r ? r : string_center(budget, self.text, width, NULL, 0, ret_value));
}

static int filter_format(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value)
{
        struct value all;
        int r = print_text(budget, self, &self);

        if (!r && call->all.names)
                r = budget_fail(budget, "'format' with named arguments is not supported");
        if (!r)
                r = budget_list(budget, call->all.count, LIST_TUPLE, &all);
        for (uint32_t i = 0; !r && i < call->all.count; i++)
                r = budget_list_add(budget, &all, call->all.values[i]);
        return error_pass(r ? r : format_percent(budget, self.text, all, ret_value));
}

static int filter_escape(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value)
{
        static const char *const entities[] = {
                ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&#34;", ['\''] = "&#39;"
        };
        struct builder to = { .bytes = NULL };
        uint32_t same = 0;
        int r = print_text(budget, self, &self);

        (void)call;
        for (uint32_t at = 0; !r && at < self.text->count; at++) {
                unsigned char c = (unsigned char)self.text->bytes[at];

                if (c > '>' || !entities[c])
                        continue;
                r = budget_charge(budget, 1);
                if (!r)
                        r = text_add_slice(budget, &to, self.text, same, at);
                if (!r)
                        r = text_add(budget, &to, entities[c], strlen(entities[c]),
                                     text_origin_at(self.text, at));
                same = at + 1;
        }
        if (!r)
                r = text_add_slice(budget, &to, self.text, same, self.text->count);
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

static int filter_wordcount(struct budget *budget, struct value self, const struct call *call,
                            struct value *ret_value)
{
        int64_t words = 0;
        bool inside = false;
        uint32_t code;
        int r = print_text(budget, self, &self);

        (void)call;
        if (!r)
                r = budget_charge(budget, self.text->count / 16);
        for (uint32_t at = 0; !r && at < self.text->count;) {
                bool word;

                at += unicode_next(self.text->bytes + at, self.text->count - at, &code);
                word = code == '_' || unicode_kind(code) == UNICODE_LETTER ||
                       unicode_kind(code) == UNICODE_NUMBER;
                words += word && !inside;
                inside = word;
        }
        *ret_value = value_integer(words);
        return error_pass(r);
}

/* ---- JSON ---- */

static const struct text comma_word = TEXT_WORD(comma_word, ",");
static const struct text comma_blank_word = TEXT_WORD(comma_blank_word, ", ");
static const struct text colon_blank_word = TEXT_WORD(colon_blank_word, ": ");

static int json_separators(struct budget *budget, struct value given, struct json_style *style)
{
        if (is_missing(given) || given.kind == VALUE_NONE)
                return 0;
        if (given.kind != VALUE_LIST || given.list->count != 2 ||
            given.list->items[0].kind != VALUE_STRING || given.list->items[1].kind != VALUE_STRING)
                return error_raise(budget_fail(budget, "'separators' is not a pair of strings"));
        style->comma = given.list->items[0].text;
        style->colon = given.list->items[1].text;
        return 0;
}

static int json_indent(struct budget *budget, struct value given, struct json_style *style)
{
        struct value by = given;
        int64_t width;
        int r = 0;

        if (is_missing(given) || given.kind == VALUE_NONE)
                return 0;
        if (given.kind != VALUE_STRING) {
                r = integer_argument(budget, given, 0, &width);
                if (!r)
                        r = text_ours(budget, "", 0, &by);
                if (!r)
                        r = string_center(budget, by.text, width, NULL, -1, &by);
        }
        style->indent = by.text;
        style->comma = &comma_word;
        return error_pass(r);
}

static int filter_tojson(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value)
{
        struct json_style style = { .comma = &comma_blank_word, .colon = &colon_blank_word };
        struct builder to = { .bytes = NULL };
        int r;

        style.ascii = truth_argument(call->slots[0], false);
        style.sorted = truth_argument(call->slots[3], false);
        r = json_indent(budget, call->slots[1], &style);
        if (!r)
                r = json_separators(budget, call->slots[2], &style);
        if (!r)
                r = print_json(budget, &to, self, &style);
        return error_pass(r ? r : text_end_as_one(budget, &to, ret_value));
}

/* ---- the rest ---- */

static int filter_default(struct budget *budget, struct value self, const struct call *call,
                          struct value *ret_value)
{
        bool all = truth_argument(call->slots[1], false);

        *ret_value = self;
        if (self.kind != VALUE_UNDEFINED && !(all && !value_truth(self)))
                return 0;
        *ret_value = call->slots[0];
        return error_pass(is_missing(call->slots[0]) ? text_ours(budget, "", 0, ret_value) : 0);
}

static int filter_attr(struct budget *budget, struct value self, const struct call *call,
                       struct value *ret_value)
{
        const struct text *name;
        int r = string_argument(budget, call->slots[0], &name);

        if (!r && !name)
                r = budget_fail(budget, "'attr' has no name");
        if (!r && self.kind == VALUE_MAP)
                return error_pass(undefined_make(budget, name, "dict", ret_value));
        return error_pass(r ? r : value_attribute(budget, self, name, ret_value));
}

static const struct builtin rows[] = {
        { "abs", filter_abs, "", 0 },
        { "attr", filter_attr, "name", 1 },
        { "batch", filter_batch, "linecount fill_with", 1 },
        { "capitalize", filter_capitalize, "", 0 },
        { "center", filter_center, "width", 0 },
        { "count", filter_length, "", 0 },
        { "d", filter_default, "default_value boolean", 0 },
        { "default", filter_default, "default_value boolean", 0 },
        { "dictsort", filter_dictsort, "case_sensitive by reverse", 0 },
        { "e", filter_escape, "", 0 },
        { "escape", filter_escape, "", 0 },
        { "first", filter_first, "", 0 },
        { "float", filter_float, "default", 0 },
        { "format", filter_format, "*", 0 },
        { "from_json", filter_from_json, "", 0 },
        { "groupby", filter_groupby, "attribute default case_sensitive", 1 },
        { "indent", filter_indent, "width first blank", 0 },
        { "int", filter_int, "default base", 0 },
        { "items", filter_items, "", 0 },
        { "join", filter_join, "d attribute", 0 },
        { "last", filter_last, "", 0 },
        { "length", filter_length, "", 0 },
        { "list", filter_list, "", 0 },
        { "lower", filter_lower, "", 0 },
        { "map", filter_map, "*", 0 },
        { "max", filter_max, "case_sensitive attribute", 0 },
        { "min", filter_min, "case_sensitive attribute", 0 },
        { "reject", filter_reject, "*", 0 },
        { "rejectattr", filter_rejectattr, "*", 0 },
        { "replace", filter_replace, "old new count", 2 },
        { "reverse", filter_reverse, "", 0 },
        { "round", filter_round, "precision method", 0 },
        { "safe", filter_string, "", 0 },
        { "select", filter_select, "*", 0 },
        { "selectattr", filter_selectattr, "*", 0 },
        { "slice", filter_slice, "slices fill_with", 1 },
        { "sort", filter_sort, "reverse case_sensitive attribute", 0 },
        { "string", filter_string, "", 0 },
        { "sum", filter_sum, "attribute start", 0 },
        { "title", filter_title, "", 0 },
        { "tojson", filter_tojson, "ensure_ascii indent separators sort_keys", 0 },
        { "trim", filter_trim, "chars", 0 },
        { "unique", filter_unique, "case_sensitive attribute", 0 },
        { "upper", filter_upper, "", 0 },
        { "wordcount", filter_wordcount, "", 0 },
};
const struct builtins filters = { "filter", rows, sizeof(rows) / sizeof(*rows) };
