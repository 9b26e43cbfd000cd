/*
 * The tests that can follow `is`.
 */
#include <math.h>

#include "daemon/text/template/access.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/code.h"
#include "daemon/text/template/compare.h"
#include "daemon/text/template/operate.h"
#include "daemon/text/template/print.h"
#include "daemon/text/template/strings.h"

#define TEST(name, truth)                                                                          \
        static int name(struct budget *budget, struct value self, const struct call *call,         \
                        struct value *ret_value)                                                   \
        {                                                                                          \
                (void)budget;                                                                      \
                (void)self;                                                                        \
                (void)call;                                                                        \
                *ret_value = value_bool(truth);                                                    \
                return 0;                                                                          \
        }

TEST(test_defined, self.kind != VALUE_UNDEFINED)
TEST(test_undefined, self.kind == VALUE_UNDEFINED)
TEST(test_none, self.kind == VALUE_NONE)
TEST(test_boolean, self.kind == VALUE_BOOL)
TEST(test_true, self.kind == VALUE_BOOL && self.truth)
TEST(test_false, self.kind == VALUE_BOOL && !self.truth)
TEST(test_integer, self.kind == VALUE_INTEGER)
TEST(test_float, self.kind == VALUE_FLOAT)
TEST(test_number, value_is_number(self))
TEST(test_string, self.kind == VALUE_STRING)
TEST(test_mapping, self.kind == VALUE_MAP)
TEST(test_iterable, value_is_iterable(self))
TEST(test_sequence, self.kind == VALUE_UNDEFINED || self.kind == VALUE_STRING ||
                            self.kind == VALUE_MAP ||
                            (self.kind == VALUE_LIST && self.flavour < LIST_VIEW))
TEST(test_callable, self.kind >= VALUE_MACRO || self.kind == VALUE_UNDEFINED)
TEST(test_escaped, false)
TEST(test_filter, self.kind == VALUE_STRING &&
                          builtin_find(&filters, self.text->bytes, self.text->count) != NO_BUILTIN)
TEST(test_test, self.kind == VALUE_STRING &&
                        builtin_find(&tests, self.text->bytes, self.text->count) != NO_BUILTIN)

static int compare(struct budget *budget, enum compare op, struct value self,
                   const struct call *call, struct value *ret_value)
{
        bool truth = false;
        int r = value_compare(budget, op, self, call->slots[0], &truth);

        *ret_value = value_bool(truth);
        return error_pass(r);
}

#define COMPARISON(name, op)                                                                       \
        static int name(struct budget *budget, struct value self, const struct call *call,         \
                        struct value *ret_value)                                                   \
        {                                                                                          \
                return error_pass(compare(budget, op, self, call, ret_value));                     \
        }

COMPARISON(test_eq, COMPARE_EQ)
COMPARISON(test_ne, COMPARE_NE)
COMPARISON(test_lt, COMPARE_LT)
COMPARISON(test_le, COMPARE_LE)
COMPARISON(test_gt, COMPARE_GT)
COMPARISON(test_ge, COMPARE_GE)
COMPARISON(test_in, COMPARE_IN)

/* Tests the remainder of a division. */
static int divided(struct budget *budget, struct value self, struct value by, int64_t wanted,
                   struct value *ret_value)
{
        struct value left;
        int r = 0;

        if (self.kind == VALUE_STRING)
                return error_raise(budget_fail(budget, "a str cannot be divided"));
        r = value_binary(budget, BINARY_MODULO, self, by, &left);
        if (!r)
                *ret_value = value_bool(value_real(left) == (double)wanted);
        return error_pass(r);
}

static int test_odd(struct budget *budget, struct value self, const struct call *call,
                    struct value *ret_value)
{
        (void)call;
        return error_pass(divided(budget, self, value_integer(2), 1, ret_value));
}

static int test_even(struct budget *budget, struct value self, const struct call *call,
                     struct value *ret_value)
{
        (void)call;
        return error_pass(divided(budget, self, value_integer(2), 0, ret_value));
}

static int test_divisibleby(struct budget *budget, struct value self, const struct call *call,
                            struct value *ret_value)
{
        return error_pass(divided(budget, self, call->slots[0], 0, ret_value));
}

/*
 * Identity instead of equality for lists and all later kinds.  Other kinds are compared by value,
 * because Python has only one object for a small value.
 */
static int test_sameas(struct budget *budget, struct value self, const struct call *call,
                       struct value *ret_value)
{
        struct value other = call->slots[0];
        bool same = self.kind == other.kind && self.flavour == other.flavour;
        int r = 0;

        if (same && self.kind >= VALUE_LIST)
                same = self.list == other.list;
        else if (same)
                r = value_equal(budget, self, other, &same);
        *ret_value = value_bool(same);
        return error_pass(r);
}

static int test_lower(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        int r = print_text(budget, self, &self);

        (void)call;
        if (!r)
                *ret_value = value_bool(string_is_lower(self.text));
        return error_pass(r ? r : budget_charge(budget, self.text->count / 8));
}

static int test_upper(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        int r = print_text(budget, self, &self);

        (void)call;
        if (!r)
                *ret_value = value_bool(string_is_upper(self.text));
        return error_pass(r ? r : budget_charge(budget, self.text->count / 8));
}

static const struct builtin rows[] = {
        { "boolean", test_boolean, "", 0 },     { "callable", test_callable, "", 0 },
        { "defined", test_defined, "", 0 },     { "divisibleby", test_divisibleby, "num", 1 },
        { "eq", test_eq, "other", 1 },          { "equalto", test_eq, "other", 1 },
        { "==", test_eq, "other", 1 },          { "escaped", test_escaped, "", 0 },
        { "even", test_even, "", 0 },           { "false", test_false, "", 0 },
        { "filter", test_filter, "", 0 },       { "float", test_float, "", 0 },
        { "ge", test_ge, "other", 1 },          { ">=", test_ge, "other", 1 },
        { "greaterthan", test_gt, "other", 1 }, { "gt", test_gt, "other", 1 },
        { ">", test_gt, "other", 1 },           { "in", test_in, "seq", 1 },
        { "integer", test_integer, "", 0 },     { "iterable", test_iterable, "", 0 },
        { "le", test_le, "other", 1 },          { "<=", test_le, "other", 1 },
        { "lessthan", test_lt, "other", 1 },    { "lower", test_lower, "", 0 },
        { "lt", test_lt, "other", 1 },          { "<", test_lt, "other", 1 },
        { "mapping", test_mapping, "", 0 },     { "ne", test_ne, "other", 1 },
        { "!=", test_ne, "other", 1 },          { "none", test_none, "", 0 },
        { "number", test_number, "", 0 },       { "odd", test_odd, "", 0 },
        { "sameas", test_sameas, "other", 1 },  { "sequence", test_sequence, "", 0 },
        { "string", test_string, "", 0 },       { "test", test_test, "", 0 },
        { "true", test_true, "", 0 },           { "undefined", test_undefined, "", 0 },
        { "upper", test_upper, "", 0 },
};
const struct builtins tests = { "test", rows, sizeof(rows) / sizeof(*rows) };
