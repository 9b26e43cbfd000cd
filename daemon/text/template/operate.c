#include "daemon/text/template/operate.h"

#include <math.h>
#include <string.h>

#include "daemon/text/template/format.h"
#include "daemon/text/template/text.h"
#include "daemon/why.h"

const char *value_type(struct value value)
{
        static const char *const names[] = {
                [VALUE_UNDEFINED] = "Undefined", [VALUE_NONE] = "NoneType",
                [VALUE_BOOL] = "bool",           [VALUE_INTEGER] = "int",
                [VALUE_FLOAT] = "float",         [VALUE_STRING] = "str",
                [VALUE_LIST] = "list",           [VALUE_MAP] = "dict",
                [VALUE_NAMESPACE] = "namespace", [VALUE_LOOP] = "loop",
                [VALUE_MACRO] = "macro",         [VALUE_FUNCTION] = "function",
                [VALUE_METHOD] = "method",
        };
        static const char *const flavours[] = { "list", "tuple", "range", "view", "generator" };

        return value.kind == VALUE_LIST ? flavours[value.flavour] : names[value.kind];
}

bool value_truth(struct value value)
{
        switch (value.kind) {
        case VALUE_UNDEFINED:
        case VALUE_NONE:
                return false;
        case VALUE_BOOL:
                return value.truth;
        case VALUE_INTEGER:
                return value.integer;
        case VALUE_FLOAT:
                return value.real != 0;
        case VALUE_STRING:
                return value.text->count;
        case VALUE_LIST:
                return value.list->count || value.flavour == LIST_STREAM;
        case VALUE_MAP:
                return value.map->count;
        default:
                return true;
        }
}

bool value_is_number(struct value value)
{
        return value.kind >= VALUE_BOOL && value.kind <= VALUE_FLOAT;
}

int64_t value_whole(struct value number)
{
        return number.kind == VALUE_BOOL ? number.truth : number.integer;
}

double value_real(struct value number)
{
        return number.kind == VALUE_FLOAT ? number.real : (double)value_whole(number);
}

int value_is_undefined(struct run *run, struct value value)
{
        const struct lack *lack = value.lack;

        if (!lack)
                return error_raise(run_fail(run, "a value is undefined"));
        if (!lack->owner)
                return error_raise(run_fail(run, "'%s' is undefined", text_shown(lack->name).text));
        return error_raise(run_fail(run, "a %s has no attribute '%s'", lack->owner,
                                    text_shown(lack->name).text));
}

/* ---- arithmetic ---- */

static int no_operator(struct run *run, enum binary op, struct value a, struct value b)
{
        static const char *const signs[] = { "+", "-", "*", "/", "//", "%", "**" };

        if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED)
                return error_pass(value_is_undefined(run, a.kind == VALUE_UNDEFINED ? a : b));
        return error_raise(run_fail(run, "'%s' is not for a %s and a %s", signs[op], value_type(a),
                                    value_type(b)));
}

static int too_large(struct run *run)
{
        return error_raise(run_fail(run, "an integer has more than 64 bits"));
}

/* Python rounds down, C towards zero. */
static int64_t floor_whole(int64_t a, int64_t b)
{
        return a / b - (a % b && (a < 0) != (b < 0));
}

static int power_whole(struct run *run, int64_t base, int64_t power, struct value *ret_value)
{
        int64_t result = 1;

        if (power < 0) {
                if (!base)
                        return error_raise(run_fail(run, "0 to a negative power"));
                *ret_value = value_float(pow((double)base, (double)power));
                return 0;
        }
        for (; power; power >>= 1) {
                if ((power & 1) && __builtin_mul_overflow(result, base, &result))
                        return error_pass(too_large(run));
                if (power > 1 && __builtin_mul_overflow(base, base, &base))
                        return error_pass(too_large(run));
        }
        *ret_value = value_integer(result);
        return 0;
}

static int binary_whole(struct run *run, enum binary op, int64_t a, int64_t b,
                        struct value *ret_value)
{
        int64_t c = 0;
        bool over = false;

        if ((op == BINARY_FLOOR || op == BINARY_MODULO || op == BINARY_DIVIDE) && !b)
                return error_raise(run_fail(run, "a division by 0"));
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
                return error_pass(power_whole(run, a, b, ret_value));
        }
        if (over)
                return error_pass(too_large(run));
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

static int binary_real(struct run *run, enum binary op, double a, double b, struct value *ret_value)
{
        double c = 0;

        if ((op == BINARY_FLOOR || op == BINARY_MODULO || op == BINARY_DIVIDE) && b == 0)
                return error_raise(run_fail(run, "a division by 0"));
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
                        return error_raise(run_fail(run, "a power that is not real"));
                c = pow(a, b);
                if (isinf(c) && isfinite(a) && isfinite(b))
                        return error_raise(run_fail(run, "a power is too large"));
                break;
        }
        *ret_value = value_float(c);
        return 0;
}

static int add_lists(struct run *run, struct value a, struct value b, struct value *ret_value)
{
        struct value all;
        int r = run_list(run, a.list->count + b.list->count, a.flavour, &all);

        for (uint32_t i = 0; !r && i < a.list->count; i++)
                r = run_list_add(run, &all, a.list->items[i]);
        for (uint32_t i = 0; !r && i < b.list->count; i++)
                r = run_list_add(run, &all, b.list->items[i]);
        *ret_value = all;
        return error_pass(r);
}

/* Charges for the whole result before it makes any of it. */
static int repeat(struct run *run, struct value what, int64_t times, struct value *ret_value)
{
        bool text = what.kind == VALUE_STRING;
        uint64_t count = text ? what.text->count : what.list->count, all;
        struct builder to = { .bytes = NULL };
        int r;

        if (times < 0)
                times = 0;
        if (__builtin_mul_overflow(count, (uint64_t)times, &all) || all >= UINT32_MAX)
                return error_pass(error_raise(run_no_fuel(run)));
        r = run_charge(run, all / (text ? 64 : 1));
        if (!r && !text)
                r = run_list(run, (uint32_t)all, what.flavour, ret_value);
        for (; !r && count && times; times--) {
                if (text)
                        r = text_add_all(run, &to, what.text);
                for (uint32_t i = 0; !r && !text && i < count; i++)
                        r = run_list_add(run, ret_value, what.list->items[i]);
                if (!r)
                        r = run_charge(run, times % 8 == 0);
        }
        return error_pass(r || !text ? r : text_end(run, &to, ret_value));
}

bool value_is_sequence(struct value value)
{
        return value.kind == VALUE_LIST && value.flavour <= LIST_TUPLE;
}

static bool is_repeated(struct value what, struct value times)
{
        return (what.kind == VALUE_STRING || value_is_sequence(what)) &&
               (times.kind == VALUE_INTEGER || times.kind == VALUE_BOOL);
}

int value_binary(struct run *run, enum binary op, struct value a, struct value b,
                 struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        int r;

        if (value_is_number(a) && value_is_number(b)) {
                if (a.kind == VALUE_FLOAT || b.kind == VALUE_FLOAT)
                        return error_pass(
                                binary_real(run, op, value_real(a), value_real(b), ret_value));
                return error_pass(binary_whole(run, op, value_whole(a), value_whole(b), ret_value));
        }
        if (op == BINARY_ADD && a.kind == VALUE_STRING && b.kind == VALUE_STRING) {
                r = text_add_all(run, &to, a.text);
                if (!r)
                        r = text_add_all(run, &to, b.text);
                return error_pass(r ? r : text_end(run, &to, ret_value));
        }
        if (op == BINARY_ADD && value_is_sequence(a) && value_is_sequence(b) &&
            a.flavour == b.flavour)
                return error_pass(add_lists(run, a, b, ret_value));
        if (op == BINARY_MODULO && a.kind == VALUE_STRING)
                return error_pass(format_percent(run, a.text, b, ret_value));
        if (op == BINARY_MULTIPLY && is_repeated(a, b))
                return error_pass(repeat(run, a, value_whole(b), ret_value));
        if (op == BINARY_MULTIPLY && is_repeated(b, a))
                return error_pass(repeat(run, b, value_whole(a), ret_value));
        return error_pass(no_operator(run, op, a, b));
}

int value_sign(struct run *run, struct value value, bool negate, struct value *ret_value)
{
        if (value.kind == VALUE_UNDEFINED)
                return error_pass(value_is_undefined(run, value));
        if (!value_is_number(value))
                return error_raise(run_fail(run, "a sign in front of a %s", value_type(value)));
        if (value.kind == VALUE_FLOAT) {
                *ret_value = value_float(negate ? -value.real : value.real);
                return 0;
        }
        if (negate && value_whole(value) == INT64_MIN)
                return error_pass(too_large(run));
        *ret_value = value_integer(negate ? -value_whole(value) : value_whole(value));
        return 0;
}
