/*
 * Ranges of numbers, compared with arithmetic on all numbers of few digits: which are within, and
 * which digits can be continued to one that is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/number-range.h"

#define RANGES   400
#define FRACTION 2 /* digits behind the point */
#define UNITS    100

static uint64_t random_state = 11;

static unsigned random_below(unsigned bound)
{
        random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
        return (random_state >> 33) % bound;
}

/* A range in units of 1/100, and whether it has a high bound of at most 3 digits. */
struct wanted {
        unsigned low, high, multiple; /* multiple: of units; 0: none */
        bool above, below, whole;
};

static bool within(const struct wanted *wanted, unsigned units)
{
        if (units < wanted->low || units > wanted->high)
                return false;
        if ((wanted->above && units == wanted->low) || (wanted->below && units == wanted->high))
                return false;
        return !wanted->multiple || units % wanted->multiple == 0;
}

/* Whether a text is a whole number of the range. */
static bool complete(const struct wanted *wanted, const char *text)
{
        const char *point = strchr(text, '.');
        size_t count = strlen(text);
        char fraction[3] = "00";

        if (count == 0 || text[count - 1] == '.' || (text[0] == '0' && count > 1 && text[1] != '.'))
                return false;
        if (point)
                memcpy(fraction, point + 1, strlen(point + 1));
        return within(wanted, (unsigned)atoi(text) * UNITS + (unsigned)atoi(fraction));
}

static bool grammatical(const struct wanted *wanted, const char *text)
{
        const char *point = strchr(text, '.');
        size_t whole = point ? (size_t)(point - text) : strlen(text);

        if (point &&
            (wanted->whole || whole == 0 || strchr(point + 1, '.') || strlen(point + 1) > FRACTION))
                return false;
        return whole <= 3 && !(text[0] == '0' && whole > 1);
}

/* Whether the text, or one that begins with it, is within the range: by trying all of them. */
static bool possible(const struct wanted *wanted, char *text)
{
        size_t count = strlen(text);

        if (!grammatical(wanted, text))
                return false;
        if (complete(wanted, text))
                return true;
        for (const char *c = "0123456789."; *c; c++) {
                bool found;

                text[count] = *c;
                text[count + 1] = 0;
                found = possible(wanted, text);
                text[count] = 0;
                if (found)
                        return true;
        }
        return false;
}

static void check(const struct wanted *wanted, const struct number_range *range,
                  struct number_state state, char *text)
{
        size_t count = strlen(text);

        if (number_complete(range, state) != complete(wanted, text))
                fail_msg("%s in %u to %u: %d", text, wanted->low, wanted->high,
                         number_complete(range, state));
        for (const char *c = "0123456789."; *c; c++) {
                struct number_state next = state;
                bool goes_on = number_step(range, &next, *c);

                text[count] = *c;
                text[count + 1] = 0;
                if (goes_on != possible(wanted, text))
                        fail_msg("%s in %u%s to %u%s, multiple %u: %d", text, wanted->low,
                                 wanted->above ? " (open)" : "", wanted->high,
                                 wanted->below ? " (open)" : "", wanted->multiple, goes_on);
                if (goes_on)
                        check(wanted, range, next, text);
                text[count] = 0;
        }
}

static struct decimal decimal_of(unsigned units)
{
        struct decimal decimal;
        char text[16];
        bool negative;

        snprintf(text, sizeof(text), "%u.%02u", units / UNITS, units % UNITS);
        assert_true(decimal_read(text, &decimal, &negative) && !negative);
        return decimal;
}

/* Bounds as the compiler of schemas gives them: on the grid if there is one. */
static void random_range(struct wanted *wanted, struct number_range *range)
{
        static const unsigned multiples[] = { 0, 0, 1, 3, 7, 25, 50, 100, 130, 999 };

        memset(range, 0, sizeof(*range));
        wanted->multiple = multiples[random_below(10)];
        wanted->whole = random_below(3) == 0;
        if (wanted->whole && wanted->multiple)
                wanted->multiple *= 100;
        wanted->low = random_below(random_below(2) ? 3000 : 60000);
        wanted->high = wanted->low + random_below(random_below(2) ? 300 : 39000);
        wanted->above = wanted->below = false;
        if (wanted->whole) {
                wanted->low -= wanted->low % UNITS;
                wanted->high -= wanted->high % UNITS;
                if (!wanted->multiple)
                        wanted->multiple = UNITS;
                range->multiple = wanted->multiple / UNITS;
        } else if (wanted->multiple) {
                range->multiple = wanted->multiple;
                range->multiple_scale = FRACTION;
        } else {
                /* Between open bounds there is a number, so the bounds have one digit less. */
                wanted->low -= wanted->low % 10;
                wanted->high -= wanted->high % 10;
                wanted->above = random_below(2);
                wanted->below = random_below(2);
        }
        range->fraction_max = wanted->whole ? 0 : FRACTION;
        range->low = decimal_of(wanted->low);
        range->high = decimal_of(wanted->high);
        range->has_high = true;
        range->above = wanted->above;
        range->below = wanted->below;
}

static void ranges_allow_just_the_digits_that_lead_into_them(void **state)
{
        (void)state;
        for (int i = 0; i < RANGES; i++) {
                struct number_range range;
                struct wanted wanted;
                char text[16] = "";

                random_range(&wanted, &range);
                if (number_possible(&range, number_begin()) != possible(&wanted, text))
                        fail_msg("%u to %u", wanted.low, wanted.high);
                if (number_possible(&range, number_begin()))
                        check(&wanted, &range, number_begin(), text);
        }
}

static void check_rounding(const char *text, unsigned scale, bool other, bool up,
                           const char *expected)
{
        struct decimal decimal, wanted;
        bool negative, done;

        assert_true(decimal_read(text, &decimal, &negative));
        done = up ? decimal_up(&decimal, scale, other) : decimal_down(&decimal, scale, other);
        assert_int_equal(done, expected != NULL);
        if (!expected)
                return;
        assert_true(decimal_read(expected, &wanted, &negative));
        if (decimal_compare(&decimal, &wanted) || decimal.count != wanted.count)
                fail_msg("%s rounded to %u digits is not %s", text, scale, expected);
}

static void bounds_are_rounded_to_the_grid(void **state)
{
        (void)state;
        check_rounding("1.25", 0, false, true, "2");
        check_rounding("1", 0, false, true, "1");
        check_rounding("1", 0, true, true, "2");
        check_rounding("99.5", 0, false, true, "100");
        check_rounding("99.99", 1, false, true, "100");
        check_rounding("1e3", 0, true, false, "999");
        check_rounding("1.25", 1, true, false, "1.2");
        check_rounding("10", 1, true, false, "9.9");
        check_rounding("0", 0, true, false, NULL);
        check_rounding("0.001", 0, false, true, "1");
        check_rounding("12e-1", 3, true, true, "1.201");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ranges_allow_just_the_digits_that_lead_into_them),
                cmocka_unit_test(bounds_are_rounded_to_the_grid),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
