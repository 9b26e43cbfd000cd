#include "daemon/text/template/operate.h"

#include <math.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/code.h"
#include "daemon/text/template/format.h"
#include "daemon/text/template/objects.h"
#include "daemon/text/template/text.h"

static int no_operator(struct budget *budget, enum binary op, struct value a, struct value b)
{
        static const char *const signs[] = { "+", "-", "*", "/", "//", "%", "**" };

        if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED)
                return error_pass(undefined_fail(budget, a.kind == VALUE_UNDEFINED ? a : b));
        return error_raise(budget_fail(budget, "'%s' cannot be applied to a %s and a %s", signs[op],
                                       value_type(a), value_type(b)));
}

static int too_large(struct budget *budget)
{
        return error_raise(budget_fail(budget, "an integer has more than 64 bits"));
}

/* Python rounds down, C towards zero. */
static int64_t floor_whole(int64_t a, int64_t b)
{
        return a / b - (a % b && (a < 0) != (b < 0));
}

static int power_whole(struct budget *budget, int64_t base, int64_t power, struct value *ret_value)
{
        int64_t result = 1;

        if (power < 0) {
                if (!base)
                        return error_raise(
                                budget_fail(budget, "0 cannot be raised to a negative power"));
                *ret_value = value_float(pow((double)base, (double)power));
                return 0;
        }
        for (; power; power >>= 1) {
                if ((power & 1) && __builtin_mul_overflow(result, base, &result))
                        return error_pass(too_large(budget));
                if (power > 1 && __builtin_mul_overflow(base, base, &base))
                        return error_pass(too_large(budget));
        }
        *ret_value = value_integer(result);
        return 0;
}

static int binary_whole(struct budget *budget, enum binary op, int64_t a, int64_t b,
                        struct value *ret_value)
{
        int64_t c = 0;
        bool over = false;

        if ((op == BINARY_FLOOR || op == BINARY_MODULO || op == BINARY_DIVIDE) && !b)
                return error_raise(budget_fail(budget, "division by 0"));
        switch (op) {
        case BINARY_ADD:
                over = __builtin_add_overflow(a, b, &c);
                break;
        case BINARY_SUBTRACT:
                over = __builtin_sub_overflow(a, b, &c);
                break;
        case BINARY_MULTIPLY:
                over = __builtin_mul_overflow(a, b, &c);
                break;
        case BINARY_DIVIDE:
                *ret_value = value_float((double)a / (double)b);
                return 0;
        case BINARY_FLOOR:
                over = a == INT64_MIN && b == -1;
                c = over ? 0 : floor_whole(a, b);
                break;
        case BINARY_MODULO:
                c = b == -1 ? 0 : a % b;
                c += c && (c < 0) != (b < 0) ? b : 0;
                break;
        case BINARY_POWER:
                return error_pass(power_whole(budget, a, b, ret_value));
        }
        if (over)
                return error_pass(too_large(budget));
        *ret_value = value_integer(c);
        return 0;
}

static double modulo_real(double a, double b)
{
        double m = fmod(a, b);

        if (!m)
                return copysign(0, b);
        return (m < 0) != (b < 0) ? m + b : m;
}

static int binary_real(struct budget *budget, enum binary op, double a, double b,
                       struct value *ret_value)
{
        double c = 0;

        if ((op == BINARY_FLOOR || op == BINARY_MODULO || op == BINARY_DIVIDE) && b == 0)
                return error_raise(budget_fail(budget, "division by 0"));
        switch (op) {
        case BINARY_ADD:
                c = a + b;
                break;
        case BINARY_SUBTRACT:
                c = a - b;
                break;
        case BINARY_MULTIPLY:
                c = a * b;
                break;
        case BINARY_DIVIDE:
                c = a / b;
                break;
        case BINARY_FLOOR:
                c = (a - modulo_real(a, b)) / b;
                c = c ? floor(c + 0.5) : copysign(0, a / b);
                break;
        case BINARY_MODULO:
                c = modulo_real(a, b);
                break;
        case BINARY_POWER:
                if ((a < 0 && b != floor(b)) || (a == 0 && b < 0))
                        return error_raise(budget_fail(budget, "a power is not a real number"));
                c = pow(a, b);
                if (isinf(c) && isfinite(a) && isfinite(b))
                        return error_raise(budget_fail(budget, "a power is too large"));
                break;
        }
        *ret_value = value_float(c);
        return 0;
}

static int add_lists(struct budget *budget, struct value a, struct value b, struct value *ret_value)
{
        struct value all;
        int r = budget_list(budget, a.list->count + b.list->count, a.flavour, &all);

        for (uint32_t i = 0; !r && i < a.list->count; i++)
                r = budget_list_add(budget, &all, a.list->items[i]);
        for (uint32_t i = 0; !r && i < b.list->count; i++)
                r = budget_list_add(budget, &all, b.list->items[i]);
        *ret_value = all;
        return error_pass(r);
}

/* Charges for the whole result before it makes any of it. */
static int repeat(struct budget *budget, struct value what, int64_t times, struct value *ret_value)
{
        bool text = what.kind == VALUE_STRING;
        uint64_t count = text ? what.text->count : what.list->count, all;
        struct builder to = { .bytes = NULL };
        int r;

        if (times < 0)
                times = 0;
        if (__builtin_mul_overflow(count, (uint64_t)times, &all) || all >= UINT32_MAX)
                return error_pass(error_raise(budget_no_fuel(budget)));
        r = budget_charge(budget, all / (text ? 64 : 1));
        if (!r && !text)
                r = budget_list(budget, (uint32_t)all, what.flavour, ret_value);
        for (; !r && count && times; times--) {
                if (text)
                        r = text_add_all(budget, &to, what.text);
                for (uint32_t i = 0; !r && !text && i < count; i++)
                        r = budget_list_add(budget, ret_value, what.list->items[i]);
                if (!r)
                        r = budget_charge(budget, times % 8 == 0);
        }
        return error_pass(r || !text ? r : text_end(budget, &to, ret_value));
}

static bool is_repeated(struct value what, struct value times)
{
        return (what.kind == VALUE_STRING || value_is_sequence(what)) &&
               (times.kind == VALUE_INTEGER || times.kind == VALUE_BOOL);
}

int value_binary(struct budget *budget, enum binary op, struct value a, struct value b,
                 struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        int r;

        if (value_is_number(a) && value_is_number(b)) {
                if (a.kind == VALUE_FLOAT || b.kind == VALUE_FLOAT)
                        return error_pass(
                                binary_real(budget, op, value_real(a), value_real(b), ret_value));
                return error_pass(
                        binary_whole(budget, op, value_whole(a), value_whole(b), ret_value));
        }
        if (op == BINARY_ADD && a.kind == VALUE_STRING && b.kind == VALUE_STRING) {
                r = text_add_all(budget, &to, a.text);
                if (!r)
                        r = text_add_all(budget, &to, b.text);
                return error_pass(r ? r : text_end(budget, &to, ret_value));
        }
        if (op == BINARY_ADD && value_is_sequence(a) && value_is_sequence(b) &&
            a.flavour == b.flavour)
                return error_pass(add_lists(budget, a, b, ret_value));
        if (op == BINARY_MODULO && a.kind == VALUE_STRING)
                return error_pass(format_percent(budget, a.text, b, ret_value));
        if (op == BINARY_MULTIPLY && is_repeated(a, b))
                return error_pass(repeat(budget, a, value_whole(b), ret_value));
        if (op == BINARY_MULTIPLY && is_repeated(b, a))
                return error_pass(repeat(budget, b, value_whole(a), ret_value));
        return error_pass(no_operator(budget, op, a, b));
}

int value_sign(struct budget *budget, struct value value, bool negate, struct value *ret_value)
{
        if (value.kind == VALUE_UNDEFINED)
                return error_pass(undefined_fail(budget, value));
        if (!value_is_number(value))
                return error_raise(
                        budget_fail(budget, "a sign cannot be applied to a %s", value_type(value)));
        if (value.kind == VALUE_FLOAT) {
                *ret_value = value_float(negate ? -value.real : value.real);
                return 0;
        }
        if (negate && value_whole(value) == INT64_MIN)
                return error_pass(too_large(budget));
        *ret_value = value_integer(negate ? -value_whole(value) : value_whole(value));
        return 0;
}
