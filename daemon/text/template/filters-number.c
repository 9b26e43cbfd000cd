/*
 * Filters of numbers.
 */
#include "daemon/text/template/blank.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/filters.h"
#include "daemon/text/template/objects.h"
#include "daemon/text/template/operate.h"
#include "daemon/text/template/strings.h"
#include "daemon/text/template/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 400u

static int whole_of_real(struct budget *budget, double real, struct value *ret_value)
{
        if (!(real >= -9223372036854775808.0 && real < 9223372036854775808.0))
                return error_raise(budget_fail(budget, "an integer has more than 64 bits"));
        *ret_value = value_integer((int64_t)real);
        return 0;
}

/* Copies a number's digits as Python reads them: blanks around, single underscores inside. */
static bool number_text(const struct text *text, bool hexadecimal, char *to)
{
        uint32_t from = blank_leading(text->bytes, text->count);
        uint32_t end = text->count - blank_trailing(text->bytes + from, text->count - from), n = 0;

        if (from >= end || end - from >= DIGITS_MAX)
                return false;
        for (uint32_t i = from; i < end; i++) {
                char c = text->bytes[i];

                if (c == '_' && i > from && i + 1 < end && text->bytes[i - 1] != '_')
                        continue;
                if (!c || c == '_' || ((c | 0x20) == 'x' && !hexadecimal) || c == 'p' || c == 'P' ||
                    c == '(')
                        return false;
                to[n++] = c;
        }
        to[n] = '\0';
        return true;
}

static bool parse_whole(const char *digits, int base, int64_t *ret_whole, bool *ret_over)
{
        char *end;

        errno = 0;
        *ret_whole = strtoll(digits, &end, base);
        *ret_over = errno == ERANGE;
        return end != digits && !*end && !strchr(" \t\n\v\f\r", *digits);
}

static bool parse_real(const char *digits, double *ret_real)
{
        char *end;

        *ret_real = strtod(digits, &end);
        return end != digits && !*end;
}

int filter_int(struct budget *budget, struct value self, const struct call *call,
               struct value *ret_value)
{
        char digits[DIGITS_MAX];
        int64_t whole, base;
        bool over = false;
        double real;
        int r = integer_argument(budget, call->slots[1], 10, &base);

        if (!r && (base < 2 || base > 36))
                r = budget_fail(budget, "an integer in base %lld is not supported",
                                (long long)base);
        if (r)
                return error_pass(r);
        if (self.kind == VALUE_UNDEFINED)
                return error_pass(undefined_fail(budget, self));
        *ret_value = is_missing(call->slots[0]) ? value_integer(0) : call->slots[0];
        if (self.kind == VALUE_FLOAT && isfinite(self.real))
                return error_pass(whole_of_real(budget, self.real, ret_value));
        if (self.kind == VALUE_BOOL || self.kind == VALUE_INTEGER)
                *ret_value = value_integer(value_whole(self));
        if (self.kind != VALUE_STRING || !number_text(self.text, base == 16, digits))
                return 0;
        if (parse_whole(digits, (int)base, &whole, &over)) {
                if (over)
                        return error_raise(budget_fail(budget, "an integer has more than 64 bits"));
                *ret_value = value_integer(whole);
                return 0;
        }
        if (!strpbrk(digits, "xX") && parse_real(digits, &real) && isfinite(real))
                return error_pass(whole_of_real(budget, real, ret_value));
        return 0;
}

int filter_float(struct budget *budget, struct value self, const struct call *call,
                 struct value *ret_value)
{
        char digits[DIGITS_MAX];
        double real;

        if (self.kind == VALUE_UNDEFINED)
                return error_pass(undefined_fail(budget, self));
        *ret_value = is_missing(call->slots[0]) ? value_float(0) : call->slots[0];
        if (value_is_number(self))
                *ret_value = value_float(value_real(self));
        else if (self.kind == VALUE_STRING && number_text(self.text, false, digits) &&
                 parse_real(digits, &real))
                *ret_value = value_float(real);
        return 0;
}

int filter_abs(struct budget *budget, struct value self, const struct call *call,
               struct value *ret_value)
{
        (void)call;
        if (!value_is_number(self))
                return error_pass(value_sign(budget, self, true, ret_value));
        return error_pass(value_sign(budget, self, signbit(value_real(self)), ret_value));
}

/* Rounds the exact decimal value, half to even: printf does that exactly. */
static double round_real(double real, int64_t digits)
{
        char text[DIGITS_MAX];
        double scale = pow(10, (double)-digits);

        if (!isfinite(real) || digits > 300)
                return real;
        if (digits < 0)
                return digits < -300 ? 0 : nearbyint(real / scale) * scale;
        snprintf(text, sizeof(text), "%.*f", (int)(digits < 60 ? digits : 60), real);
        return strtod(text, NULL);
}

int filter_round(struct budget *budget, struct value self, const struct call *call,
                 struct value *ret_value)
{
        struct value method = call->slots[1];
        int64_t digits;
        double scale;
        bool up;
        int r = integer_argument(budget, call->slots[0], 0, &digits);

        if (!r && !value_is_number(self))
                r = value_sign(budget, self, false, ret_value);
        if (r)
                return error_pass(r);
        if (is_missing(method) || (method.kind == VALUE_STRING && text_is(method.text, "common"))) {
                if (self.kind == VALUE_FLOAT)
                        *ret_value = value_float(round_real(self.real, digits));
                else if (digits < 0)
                        return error_raise(
                                budget_fail(budget, "rounding an int to tens is not supported"));
                else
                        *ret_value = value_integer(value_whole(self));
                return 0;
        }
        up = method.kind == VALUE_STRING && text_is(method.text, "ceil");
        if (!up && !(method.kind == VALUE_STRING && text_is(method.text, "floor")))
                return error_raise(
                        budget_fail(budget, "the method of 'round' is not common, ceil or floor"));
        scale = pow(10, (double)digits);
        *ret_value = value_float((up ? ceil : floor)(value_real(self) * scale) / scale +
                                 0.0); /* no -0.0 */
        return 0;
}
