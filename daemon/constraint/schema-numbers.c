/* The numbers of a shape. */
#include <string.h>

#include "daemon/constraint/schema-shape.h"

#define WHOLE_DIGITS    16u
#define FRACTION_DIGITS 16u
#define DIVISOR_MAX     1000000u

struct bound {
        bool is_set, negative, open; /* open: the bound itself is outside */
        struct decimal value;
};

struct number_shape {
        struct bound low, high;
        uint64_t divisor; /* 0: none; of the number times 10^scale */
        unsigned scale;
};

static int compare(const struct bound *one, const struct bound *other)
{
        int order = decimal_compare(&one->value, &other->value);

        if (one->negative != other->negative)
                return one->negative ? -1 : 1;
        return one->negative ? -order : order;
}

static bool read_bound(struct schema_compiler *compiler, uint32_t node, bool open,
                       struct bound *ret_bound)
{
        const char *text = json_number(compiler->json, node);

        if (!text || !decimal_read(text, &ret_bound->value, &ret_bound->negative)) {
                schema_fail(compiler, node, "it must be a number of at most %d digits",
                            NUMBER_DIGITS);
                return false;
        }
        ret_bound->is_set = true;
        ret_bound->open = open;
        if (decimal_is_zero(&ret_bound->value))
                ret_bound->negative = false;
        return true;
}

/* The stricter of two bounds; sign is 1 for low bounds and -1 for high ones. */
static void tighten(struct schema_compiler *compiler, struct bound *bound, int sign, uint32_t node,
                    bool open)
{
        struct bound other;
        int order;

        if (node == JSON_NONE || !read_bound(compiler, node, open, &other))
                return;
        order = bound->is_set ? sign * compare(&other, bound) : 1;
        if (order > 0 || (order == 0 && open))
                *bound = other;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
        while (b) {
                uint64_t rest = a % b;

                a = b;
                b = rest;
        }
        return a;
}

/* `multipleOf` as a whole number of units of 10^-scale. */
static void read_divisor(struct schema_compiler *compiler, struct number_shape *number,
                         uint32_t node)
{
        struct bound divisor;
        uint64_t units = 0;
        unsigned scale;

        if (node == JSON_NONE || !read_bound(compiler, node, false, &divisor))
                return;
        if (divisor.negative || decimal_is_zero(&divisor.value)) {
                schema_fail(compiler, node, "multipleOf must be above 0");
                return;
        }
        scale = divisor.value.count - divisor.value.whole;
        for (unsigned i = 0; i < divisor.value.count && units <= DIVISOR_MAX; i++)
                units = units * 10 + divisor.value.digits[i];
        for (; scale < number->scale && units <= DIVISOR_MAX; scale++)
                units *= 10;
        for (; number->scale < scale && number->divisor <= DIVISOR_MAX; number->scale++)
                number->divisor *= 10;
        if (number->divisor)
                units = number->divisor / common_divisor(number->divisor, units) * units;
        number->divisor = units;
        if (units > DIVISOR_MAX || number->scale != scale)
                schema_fail(compiler, node, "multipleOf needs more than %u remainders",
                            DIVISOR_MAX);
}

static void read_element(struct schema_compiler *compiler, struct number_shape *number,
                         uint32_t element)
{
        uint32_t node = element_node(element);

        if (element_kind(element) == MATCHES) {
                tighten(compiler, &number->low, 1, schema_keyword(compiler, node, "minimum"),
                        false);
                tighten(compiler, &number->low, 1,
                        schema_keyword(compiler, node, "exclusiveMinimum"), true);
                tighten(compiler, &number->high, -1, schema_keyword(compiler, node, "maximum"),
                        false);
                tighten(compiler, &number->high, -1,
                        schema_keyword(compiler, node, "exclusiveMaximum"), true);
                read_divisor(compiler, number, schema_keyword(compiler, node, "multipleOf"));
        } else if (shape_denies(compiler, element, "minimum")) {
                tighten(compiler, &number->high, -1, node, true);
        } else if (shape_denies(compiler, element, "exclusiveMinimum")) {
                tighten(compiler, &number->high, -1, node, false);
        } else if (shape_denies(compiler, element, "maximum")) {
                tighten(compiler, &number->low, 1, node, true);
        } else if (shape_denies(compiler, element, "exclusiveMaximum")) {
                tighten(compiler, &number->low, 1, node, false);
        }
}

static unsigned most(unsigned a, unsigned b)
{
        return a > b ? a : b;
}

/* The digits of numbers between two magnitudes; without `high` there is no upper bound. */
static uint32_t magnitudes(struct schema_compiler *compiler, const struct number_shape *number,
                           bool on_grid, const struct bound *low, const struct bound *high)
{
        struct number_range range = {
                .whole_max = WHOLE_DIGITS,
                .multiple = number->divisor,
                .multiple_scale = number->scale,
                .fraction_max = number->scale,
                .low = { .whole = 1, .count = 1 },
        };

        if (low && low->is_set) {
                range.low = low->value;
                range.above = low->open;
        }
        if (high && high->is_set) {
                range.high = high->value;
                range.below = high->open;
                range.has_high = true;
        }
        if (!on_grid) {
                unsigned scale = most(range.low.count - range.low.whole,
                                      range.has_high ? range.high.count - range.high.whole : 0);

                range.fraction_max = most(FRACTION_DIGITS, scale + 1);
                return range.fraction_max <= NUMBER_DIGITS ? regex_number(compiler->pool, &range)
                                                           : REGEX_NONE;
        }
        if (!decimal_up(&range.low, number->scale, range.above) ||
            (range.has_high && !decimal_down(&range.high, number->scale, range.below)))
                return REGEX_NONE;
        range.above = range.below = false;
        if (range.multiple &&
            number->scale + most(range.low.whole,
                                 range.has_high ? range.high.whole : WHOLE_DIGITS) >
                    30)
                schema_fail(compiler, 0, "a bound beside multipleOf has more than 30 digits");
        return compiler->failed ? REGEX_NONE : regex_number(compiler->pool, &range);
}

static uint32_t between(struct schema_compiler *compiler, const struct number_shape *number,
                        bool on_grid)
{
        const struct bound *low = &number->low, *high = &number->high;
        uint32_t positive = REGEX_NONE, negative = REGEX_NONE;

        if (!(high->is_set && high->negative))
                positive = magnitudes(compiler, number, on_grid, low->negative ? NULL : low, high);
        if (!low->is_set || low->negative) /* magnitudes of negative numbers rise as they fall */
                negative = magnitudes(
                        compiler, number, on_grid,
                        high->is_set && (high->negative || decimal_is_zero(&high->value)) ? high
                                                                                          : NULL,
                        low);
        return regex_or2(
                compiler->pool, positive,
                regex_concat(compiler->pool, regex_range(compiler->pool, '-', '-'), negative));
}

/* Numbers without a bound; an exponent is possible where no value is excluded. */
static uint32_t any_number(struct schema_compiler *compiler, bool integer, bool exponent)
{
        struct regex_pool *pool = compiler->pool;
        uint32_t digit = regex_range(pool, '0', '9'), signs;
        uint32_t minus = regex_repeat(pool, regex_range(pool, '-', '-'), 0, 1);
        uint32_t whole = regex_concat(pool, regex_range(pool, '1', '9'),
                                      regex_repeat(pool, digit, 0, WHOLE_DIGITS - 1));
        uint32_t term =
                regex_concat(pool, minus, regex_or2(pool, regex_range(pool, '0', '0'), whole));
        uint32_t fraction = regex_concat(pool, regex_range(pool, '.', '.'),
                                         regex_repeat(pool, digit, 1, FRACTION_DIGITS));
        struct byte_set set = { 0 };

        if (integer)
                return term;
        term = regex_concat(pool, term, regex_repeat(pool, fraction, 0, 1));
        if (!exponent)
                return term;
        byte_set_add(&set, '+', '+');
        byte_set_add(&set, '-', '-');
        signs = regex_repeat(pool, regex_set(pool, &set), 0, 1);
        memset(&set, 0, sizeof(set));
        byte_set_add(&set, 'e', 'e');
        byte_set_add(&set, 'E', 'E');
        return regex_concat(
                pool, term,
                regex_repeat(
                        pool,
                        regex_concat(pool, regex_set(pool, &set),
                                     regex_concat(pool, signs, regex_repeat(pool, digit, 1, 3))),
                        0, 1));
}

/* Numbers that are integers, written with or without a point. */
static uint32_t whole_numbers(struct regex_pool *pool)
{
        uint32_t zeros =
                regex_concat(pool, regex_range(pool, '.', '.'),
                             regex_repeat(pool, regex_range(pool, '0', '0'), 1, REGEX_FOREVER));
        uint32_t digits = regex_repeat(pool, regex_range(pool, '0', '9'), 1, REGEX_FOREVER);

        return regex_concat(pool, regex_repeat(pool, regex_range(pool, '-', '-'), 0, 1),
                            regex_concat(pool, digits, regex_repeat(pool, zeros, 0, 1)));
}

static uint32_t decimal_text(struct regex_pool *pool, const struct decimal *decimal)
{
        char text[2 * NUMBER_DIGITS + 1];
        unsigned count = 0;

        for (unsigned i = 0; i < decimal->count; i++) {
                if (i == decimal->whole)
                        text[count++] = '.';
                text[count++] = '0' + decimal->digits[i];
        }
        return regex_literal(pool, text, count);
}

/*
 * A number of the schema: in its shortest form; or in every form without an exponent, so that it
 * can be excluded.
 */
static uint32_t one_number(struct schema_compiler *compiler, uint32_t node, bool every_form)
{
        struct regex_pool *pool = compiler->pool;
        const char *text = json_number(compiler->json, node);
        struct number_range range = { .has_high = true };
        uint32_t minus = regex_range(pool, '-', '-'), term;
        bool negative;

        if (!decimal_read(text, &range.low, &negative) ||
            range.low.count - range.low.whole + 1 > NUMBER_DIGITS)
                return regex_literal(pool, text, strlen(text));
        range.high = range.low;
        range.fraction_max = most(FRACTION_DIGITS, range.low.count - range.low.whole + 1);
        term = every_form ? regex_number(pool, &range) : decimal_text(pool, &range.low);
        if (decimal_is_zero(&range.low))
                return every_form ? regex_concat(pool, regex_repeat(pool, minus, 0, 1), term)
                                  : term;
        return negative ? regex_concat(pool, minus, term) : term;
}

static uint32_t listed(struct schema_compiler *compiler, uint32_t list, bool every_form)
{
        const struct json_document *json = compiler->json;
        uint32_t term = REGEX_NONE;

        if (json_kind(json, list) == JSON_NUMBER)
                return one_number(compiler, list, every_form);
        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at))
                if (json_kind(json, at) == JSON_NUMBER)
                        term = regex_or2(compiler->pool, term,
                                         one_number(compiler, at, every_form));
        return term;
}

uint32_t shape_numbers(struct schema_compiler *compiler, const struct shape *shape)
{
        struct regex_pool *pool = compiler->pool;
        struct number_shape number = { 0 };
        uint32_t term = REGEX_ANY, base;
        bool denies = shape->fraction;

        if (!(shape->types & 1u << JSON_NUMBER))
                return REGEX_NONE;
        for (uint32_t i = 0; i < shape->leaf->count; i++) {
                uint32_t element = shape->leaf->elements[i], node = element_node(element);

                read_element(compiler, &number, element);
                if (element_kind(element) == IS)
                        term = regex_and2(pool, term, listed(compiler, node, false));
                if (shape_denies(compiler, element, "const") ||
                    shape_denies(compiler, element, "enum")) {
                        denies = true;
                        term = regex_and2(pool, term,
                                          regex_not(pool, listed(compiler, node, true)));
                }
        }
        for (uint32_t i = 0; i < shape->list_count; i++)
                term = regex_and2(pool, term, listed(compiler, shape->lists[i], false));
        if (shape->fraction)
                term = regex_and2(pool, term, regex_not(pool, whole_numbers(pool)));
        if (shape->integer && number.scale) {
                /* Multiples of m / 10^s that are integers are multiples of this. */
                uint64_t unit = 1;

                for (; number.scale; number.scale--)
                        unit *= 10;
                number.divisor /= common_divisor(number.divisor, unit);
        }
        if (number.low.is_set || number.high.is_set || number.divisor)
                base = between(compiler, &number, shape->integer || number.divisor);
        else
                base = any_number(compiler, shape->integer, !denies);
        return regex_and2(pool, term, base);
}
