#include "daemon/constraint/number-range.h"

#include <assert.h>

enum comparison {
        EQUAL, /* so far */
        LESS,
        GREATER,
};

enum phase {
        WHOLE, /* before the point; no digit yet if `whole` is 0 */
        POINT, /* just read */
        FRACTION,
};

struct reading {
        enum phase phase;
        bool zero; /* the number begins with 0, so the point is next */
        enum comparison low, high;
        unsigned whole, fraction; /* digits */
};

typedef unsigned __int128 wide;

static struct reading unpack(uint32_t packed)
{
        return (struct reading){
                .phase = packed & 3,
                .zero = packed >> 2 & 1,
                .low = packed >> 3 & 3,
                .high = packed >> 5 & 3,
                .whole = packed >> 8 & 255,
                .fraction = packed >> 16 & 255,
        };
}

static uint32_t pack(struct reading at)
{
        return at.phase | at.zero << 2 | at.low << 3 | at.high << 5 | at.whole << 8 |
               at.fraction << 16;
}

struct number_state number_begin(void)
{
        return (struct number_state){ 0, 0 };
}

static enum comparison compare_digit(enum comparison so_far, const struct decimal *bound,
                                     unsigned at, unsigned digit)
{
        if (so_far != EQUAL || digit == bound->digits[at])
                return so_far;
        return digit < bound->digits[at] ? LESS : GREATER;
}

/* A number of `whole` digits before the point, which compares so digit by digit. */
static enum comparison by_length(enum comparison so_far, const struct decimal *bound,
                                 unsigned whole)
{
        if (whole == bound->whole)
                return so_far;
        return whole < bound->whole ? LESS : GREATER;
}

static unsigned whole_most(const struct number_range *range)
{
        if (range->has_high)
                return range->high.whole;
        return range->low.whole > range->whole_max ? range->low.whole : range->whole_max;
}

bool number_step(const struct number_range *range, struct number_state *state, uint8_t byte)
{
        struct reading at = unpack(state->packed);
        unsigned digit = byte - '0';

        if (byte == '.') {
                if (at.phase != WHOLE || at.whole == 0 || range->fraction_max == 0)
                        return false;
                at.low = by_length(at.low, &range->low, at.whole);
                if (range->has_high)
                        at.high = by_length(at.high, &range->high, at.whole);
                at.phase = POINT;
        } else if (byte < '0' || byte > '9') {
                return false;
        } else if (at.phase == WHOLE) {
                if (at.zero || at.whole == whole_most(range))
                        return false;
                at.zero = at.whole == 0 && digit == 0;
                if (at.whole < range->low.whole)
                        at.low = compare_digit(at.low, &range->low, at.whole, digit);
                if (range->has_high && at.whole < range->high.whole)
                        at.high = compare_digit(at.high, &range->high, at.whole, digit);
                at.whole++;
        } else {
                if (at.fraction == range->fraction_max)
                        return false;
                at.low = compare_digit(at.low, &range->low, range->low.whole + at.fraction, digit);
                if (range->has_high)
                        at.high = compare_digit(at.high, &range->high,
                                                range->high.whole + at.fraction, digit);
                at.phase = FRACTION;
                at.fraction++;
        }
        if (range->multiple && byte != '.')
                state->remainder = ((uint64_t)state->remainder * 10 + digit) % range->multiple;
        state->packed = pack(at);
        return number_possible(range, *state);
}

static wide power(unsigned exponent)
{
        wide result = 1;

        while (exponent--)
                result *= 10;
        return result;
}

bool number_complete(const struct number_range *range, struct number_state state)
{
        struct reading at = unpack(state.packed);
        enum comparison low = by_length(at.low, &range->low, at.whole), high = LESS;

        if (at.whole == 0 || at.phase == POINT)
                return false;
        if (at.phase == FRACTION)
                low = at.low;
        if (low == EQUAL && at.fraction < (unsigned)(range->low.count - range->low.whole))
                low = LESS;
        if (range->has_high) {
                high = at.phase == FRACTION ? at.high : by_length(at.high, &range->high, at.whole);
                if (high == EQUAL &&
                    at.fraction < (unsigned)(range->high.count - range->high.whole))
                        high = LESS;
        }
        if (low == LESS || (low == EQUAL && range->above))
                return false;
        if (high == GREATER || (high == EQUAL && range->below))
                return false;
        return !range->multiple ||
               state.remainder * power(range->multiple_scale - at.fraction) % range->multiple == 0;
}

/* The last `count` digits of the bound, with `scale` digits behind the point. */
static wide last_digits(const struct decimal *bound, unsigned scale, unsigned count)
{
        wide value = 0;

        for (unsigned i = bound->whole + scale - count; i < bound->whole + scale; i++)
                value = value * 10 + bound->digits[i];
        return value;
}

/* Whether `more` digits behind what was read can make a multiple within the range. */
static bool has_multiple(const struct number_range *range, const struct reading *at,
                         uint32_t remainder, unsigned whole, unsigned more)
{
        wide low = 0, high = power(more) - 1, first;

        if (at->low == EQUAL && whole == range->low.whole)
                low = last_digits(&range->low, range->multiple_scale, more);
        if (range->has_high && at->high == EQUAL && whole == range->high.whole)
                high = last_digits(&range->high, range->multiple_scale, more);
        if (at->whole == 0 && whole > 1 && low < power(more - 1))
                low = power(more - 1);
        first = (remainder * power(more) + low) % range->multiple;
        return low + (first ? range->multiple - first : 0) <= high;
}

/* Whether the least number behind these digits is the high bound itself: all its others are 0. */
static bool least_is_high(const struct number_range *range, unsigned digits)
{
        for (unsigned i = digits; i < range->high.count; i++)
                if (range->high.digits[i])
                        return false;
        return true;
}

/* Whether a number of so many digits before the point can be within the range. */
static bool possible_length(const struct number_range *range, const struct reading *at,
                            uint32_t remainder, unsigned whole)
{
        bool more = whole > at->whole || range->fraction_max > 0;
        enum comparison low = by_length(at->low, &range->low, whole), high = LESS;

        if (range->has_high)
                high = by_length(at->high, &range->high, whole);
        if (low == LESS || high == GREATER)
                return false;
        if (!more && low == EQUAL && range->above)
                return false;
        if (range->has_high && high == EQUAL && range->below && least_is_high(range, at->whole))
                return false;
        return !range->multiple ||
               has_multiple(range, at, remainder, whole, whole - at->whole + range->multiple_scale);
}

static bool possible_fraction(const struct number_range *range, const struct reading *at,
                              uint32_t remainder)
{
        unsigned low_scale = range->low.count - range->low.whole;
        unsigned high_scale = range->high.count - range->high.whole;
        bool reaches =
                at->fraction < range->fraction_max || (at->fraction >= low_scale && !range->above);

        if (at->low == LESS || (at->low == EQUAL && !reaches))
                return false;
        if (range->has_high && (at->high == GREATER ||
                                (at->high == EQUAL && range->below && at->fraction >= high_scale)))
                return false;
        return !range->multiple ||
               has_multiple(range, at, remainder, at->whole, range->multiple_scale - at->fraction);
}

bool number_possible(const struct number_range *range, struct number_state state)
{
        struct reading at = unpack(state.packed);

        assert(!range->multiple || range->fraction_max == range->multiple_scale);
        if (at.whole == 0 && range->has_high) {
                int order = decimal_compare(&range->low, &range->high);

                if (order > 0 || (order == 0 && (range->above || range->below)))
                        return false;
        }
        if (at.phase != WHOLE)
                return possible_fraction(range, &at, state.remainder);
        for (unsigned whole = at.whole ? at.whole : 1; whole <= (at.zero ? 1 : whole_most(range));
             whole++)
                if (possible_length(range, &at, state.remainder, whole))
                        return true;
        return false;
}
