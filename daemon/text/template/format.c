#include "daemon/text/template/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/print.h"
#include "daemon/text/template/text.h"

#define WIDTH_MAX 1000u

struct formatting {
        struct budget *budget;
        const struct text *format;
        uint32_t at, used; /* used: how many values of the tuple were used */
        struct value values;
        struct builder to;
        /* The parts of one directive. */
        char flags[8], kind;
        uint32_t width;
        int precision; /* -1: not given */
};

static char next(struct formatting *f)
{
        return f->at < f->format->count ? f->format->bytes[f->at] : '\0';
}

static int read_number(struct formatting *f, uint32_t *ret_number)
{
        *ret_number = 0;
        for (; next(f) >= '0' && next(f) <= '9'; f->at++) {
                *ret_number = *ret_number * 10 + (uint32_t)(next(f) - '0');
                if (*ret_number > WIDTH_MAX)
                        return error_raise(
                                budget_fail(f->budget, "a format is wider than %u", WIDTH_MAX));
        }
        return 0;
}

/* The value of %(name)s. */
static int take_named(struct formatting *f, struct value *ret_value)
{
        const char *end = memchr(f->format->bytes + f->at, ')', f->format->count - f->at);
        const struct map_entry *entry;
        struct value name;
        int r;

        if (!end || f->values.kind != VALUE_MAP)
                return error_raise(budget_fail(f->budget, "a format asks for a name"));
        r = text_slice(f->budget, f->format, f->at + 1, (uint32_t)(end - f->format->bytes), &name);
        if (r)
                return error_pass(r);
        r = budget_map_find(f->budget, f->values.map, name, &entry);
        if (r)
                return error_pass(r);
        if (!entry)
                return error_raise(budget_fail(f->budget,
                                               "a format asks for '%s', which is not given",
                                               text_shown(name.text).text));
        f->at = (uint32_t)(end - f->format->bytes) + 1;
        *ret_value = entry->value;
        return 0;
}

static int take_next(struct formatting *f, struct value *ret_value)
{
        bool tuple = f->values.kind == VALUE_LIST && f->values.flavour == LIST_TUPLE;

        if (f->used >= (tuple ? f->values.list->count : 1))
                return error_raise(
                        budget_fail(f->budget, "a format asks for more values than are given"));
        *ret_value = tuple ? f->values.list->items[f->used] : f->values;
        f->used++;
        return 0;
}

static int read_directive(struct formatting *f, struct value *ret_value, bool *ret_named)
{
        uint32_t flags = 0, precision;
        int r = 0;

        *ret_named = next(f) == '(';
        if (*ret_named && (r = take_named(f, ret_value)))
                return error_pass(r);
        for (; next(f) && strchr("-+ #0", next(f)); f->at++)
                if (flags < sizeof(f->flags) - 1)
                        f->flags[flags++] = next(f);
        f->flags[flags] = '\0';
        f->precision = -1;
        r = read_number(f, &f->width);
        if (!r && next(f) == '.') {
                f->at++;
                r = read_number(f, &precision);
                f->precision = (int)precision;
        }
        f->kind = next(f);
        f->at += f->at < f->format->count;
        return error_pass(r);
}

static int add_padded(struct formatting *f, const struct text *text)
{
        bool left = strchr(f->flags, '-');
        uint32_t length, end = text->count;
        int r = text_length(f->budget, text, &length);

        if (f->precision >= 0 && (uint32_t)f->precision < length) {
                end = text_place(text, f->precision);
                length = (uint32_t)f->precision;
        }
        for (uint32_t i = length; !r && !left && i < f->width; i++)
                r = text_add(f->budget, &f->to, " ", 1, TEXT_OURS);
        if (!r)
                r = text_add_slice(f->budget, &f->to, text, 0, end);
        for (uint32_t i = length; !r && left && i < f->width; i++)
                r = text_add(f->budget, &f->to, " ", 1, TEXT_OURS);
        return error_pass(r);
}

static int add_shown(struct formatting *f, struct value value)
{
        struct builder repr = { .bytes = NULL };
        struct value text;
        int r;

        if (f->kind == 's')
                r = print_text(f->budget, value, &text);
        else if (!(r = print_repr(f->budget, &repr, value)))
                r = text_end_as_one(f->budget, &repr, &text);
        return error_pass(r ? r : add_padded(f, text.text));
}

/*
 * Differs from C's printf: a sign and a prefix are allowed with every base, and the flag 0 fills
 * the width even if a precision is given.
 */
static int add_whole(struct formatting *f, int64_t whole)
{
        uint64_t size = whole < 0 ? -(uint64_t)whole : (uint64_t)whole;
        bool left = strchr(f->flags, '-'), zeros = strchr(f->flags, '0') && !left;
        char digits[WIDTH_MAX + 32], text[WIDTH_MAX * 2 + 64];
        int precision = f->precision < 1 ? 1 : f->precision, n, pad;
        const char *prefix = "", *sign = whole < 0               ? "-"
                                         : strchr(f->flags, '+') ? "+"
                                         : strchr(f->flags, ' ') ? " "
                                                                 : "";

        if (strchr(f->flags, '#'))
                prefix = f->kind == 'x' ? "0x" : f->kind == 'X' ? "0X" : f->kind == 'o' ? "0o" : "";
        n = snprintf(digits, sizeof(digits),
                     f->kind == 'x'   ? "%.*" PRIx64
                     : f->kind == 'X' ? "%.*" PRIX64
                     : f->kind == 'o' ? "%.*" PRIo64
                                      : "%.*" PRIu64,
                     precision, size);
        pad = (int)f->width - (int)strlen(sign) - (int)strlen(prefix) - n;
        if (pad < 0)
                pad = 0;
        n = snprintf(text, sizeof(text), "%*s%s%s", zeros || left ? 0 : pad, "", sign, prefix);
        memset(text + n, '0', zeros ? (size_t)pad : 0);
        n += zeros ? pad : 0;
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%*s", digits, left ? pad : 0, "");
        return error_pass(text_add(f->budget, &f->to, text, (size_t)n, TEXT_OURS));
}

/* Directives for real numbers are left to C's printf. */
static int add_real(struct formatting *f, double real)
{
        char directive[32], text[WIDTH_MAX * 2 + 400];
        int n;

        n = snprintf(directive, sizeof(directive), "%%%s", f->flags);
        if (f->width)
                n += snprintf(directive + n, sizeof(directive) - (size_t)n, "%u", f->width);
        if (f->precision >= 0)
                n += snprintf(directive + n, sizeof(directive) - (size_t)n, ".%d", f->precision);
        snprintf(directive + n, sizeof(directive) - (size_t)n, "%c", f->kind);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        n = snprintf(text, sizeof(text), directive, real);
#pragma GCC diagnostic pop
        return error_pass(text_add(f->budget, &f->to, text, (size_t)n, TEXT_OURS));
}

static int add_number(struct formatting *f, struct value value)
{
        double real = value_real(value);

        if (!strchr("diuxXo", f->kind))
                return error_pass(add_real(f, real));
        if (value.kind == VALUE_FLOAT) {
                if (!(fabs(real) < 9e18) || strchr("xXo", f->kind))
                        return error_raise(
                                budget_fail(f->budget, "'%%%c' does not take a float", f->kind));
                value = value_integer((int64_t)real);
        }
        return error_pass(add_whole(f, value_whole(value)));
}

static int add_directive(struct formatting *f)
{
        struct value value;
        bool named;
        int r;

        if (next(f) == '%') {
                f->at++;
                return error_pass(text_add(f->budget, &f->to, "%", 1, TEXT_OURS));
        }
        r = read_directive(f, &value, &named);
        if (!r && !named)
                r = take_next(f, &value);
        if (r)
                return error_pass(r);
        if (f->kind == 's' || f->kind == 'r')
                return error_pass(add_shown(f, value));
        if (!f->kind || !strchr("diuxXofFeEgG", f->kind))
                return error_raise(
                        budget_fail(f->budget, "a format has a directive that is not supported"));
        if (!value_is_number(value))
                return error_raise(budget_fail(f->budget, "'%%%c' does not take a %s", f->kind,
                                               value_type(value)));
        return error_pass(add_number(f, value));
}

int format_percent(struct budget *budget, const struct text *format, struct value values,
                   struct value *ret_value)
{
        struct formatting f = { .budget = budget, .format = format, .values = values };
        bool tuple = values.kind == VALUE_LIST && values.flavour == LIST_TUPLE;
        /* As in Python, values that allow [key] need not all be used. */
        bool subscripted = values.kind == VALUE_MAP || values.kind == VALUE_UNDEFINED ||
                           (values.kind == VALUE_LIST && values.flavour < LIST_VIEW && !tuple);
        int r = 0;

        while (!r && f.at < format->count) {
                const char *sign = memchr(format->bytes + f.at, '%', format->count - f.at);
                uint32_t end = sign ? (uint32_t)(sign - format->bytes) : format->count;

                r = text_add_slice(budget, &f.to, format, f.at, end);
                f.at = end + (sign != NULL);
                if (!r)
                        r = budget_charge(budget, 1);
                if (!r && sign)
                        r = add_directive(&f);
        }
        if (!r && !subscripted && f.used < (tuple ? values.list->count : 1))
                return error_raise(
                        budget_fail(budget, "a format is given more values than it asks for"));
        return error_pass(r ? r : text_end(budget, &f.to, ret_value));
}
