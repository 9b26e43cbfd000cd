/*
 * A product of two bfloats and a float are both whole multiples of 2^-320.  So a step adds them in
 * an integer of 640 bits, without any rounding.
 */
#include "tests/kernels/exact-sums.h"

#include "tests/kernels/small-model.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#define WORDS 10u
#define UNIT  320 /* bit 0 of a sum is 2^-320 */

struct seen seen;

struct term {
        bool is_nan, is_infinite, is_negative;
        uint64_t mantissa;
        int exponent; /* of the mantissa's last bit */
};

static struct term term_of(uint32_t bits)
{
        uint32_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
        struct term t = { .is_negative = bits >> 31 };

        t.is_nan = exponent == 0xff && fraction != 0;
        t.is_infinite = exponent == 0xff && fraction == 0;
        if (exponent > 0 && exponent < 0xff) {
                t.mantissa = 0x800000 | fraction;
                t.exponent = (int)exponent - 150;
        }
        return t;
}

static bool term_is_zero(const struct term *t)
{
        return !t->is_nan && !t->is_infinite && t->mantissa == 0;
}

static struct term term_product(const struct term *a, const struct term *b)
{
        return (struct term){
                .is_nan = a->is_nan || b->is_nan || (a->is_infinite && term_is_zero(b)) ||
                          (b->is_infinite && term_is_zero(a)),
                .is_infinite = a->is_infinite || b->is_infinite,
                .is_negative = a->is_negative != b->is_negative,
                .mantissa = a->mantissa * b->mantissa,
                .exponent = a->exponent + b->exponent,
        };
}

/* Two's complement. */
static void wide_add(uint64_t sum[WORDS], const struct term *t)
{
        uint32_t at = (uint32_t)(t->exponent + UNIT), word = at / 64;
        unsigned __int128 shifted = (unsigned __int128)t->mantissa << at % 64;
        uint64_t carry = t->is_negative;

        for (uint32_t i = 0; i < WORDS; i++) {
                uint64_t part = i == word       ? (uint64_t)shifted
                                : i == word + 1 ? (uint64_t)(shifted >> 64)
                                                : 0;
                unsigned __int128 all = (unsigned __int128)sum[i] + carry;

                all += t->is_negative ? ~part : part;
                sum[i] = (uint64_t)all;
                carry = (uint64_t)(all >> 64);
        }
}

static bool wide_negate_if_negative(uint64_t sum[WORDS])
{
        uint64_t carry = 1;

        if (!(sum[WORDS - 1] >> 63))
                return false;
        for (uint32_t i = 0; i < WORDS; i++) {
                sum[i] = ~sum[i] + carry;
                carry = carry && sum[i] == 0;
        }
        return true;
}

/* The number of bits up to the uppermost one. */
static uint32_t wide_length(const uint64_t sum[WORDS])
{
        for (uint32_t i = WORDS; i > 0; i--)
                if (sum[i - 1])
                        return i * 64 - (uint32_t)__builtin_clzll(sum[i - 1]);
        return 0;
}

static uint32_t wide_bit(const uint64_t sum[WORDS], uint32_t at)
{
        return sum[at / 64] >> at % 64 & 1;
}

static bool wide_has_bits_below(const uint64_t sum[WORDS], uint32_t end)
{
        for (uint32_t i = 0; i < end / 64; i++)
                if (sum[i])
                        return true;
        return end % 64 && sum[end / 64] << (64 - end % 64);
}

static uint32_t wide_rounded(const uint64_t sum[WORDS], uint32_t length, uint32_t sign)
{
        uint32_t last = length - 24, mantissa = 0;
        int exponent = (int)length - 1 - UNIT;
        bool is_up;

        for (uint32_t i = 0; i < 24; i++)
                mantissa |= wide_bit(sum, last + i) << i;
        is_up = wide_bit(sum, last - 1) && (mantissa & 1 || wide_has_bits_below(sum, last - 1));
        seen.brinks += exponent == -127 && mantissa == 0xffffff && !is_up;
        mantissa += is_up;
        if (mantissa == 0x1000000) {
                mantissa /= 2;
                exponent++;
        }
        if (exponent < -126) {
                seen.flushed++;
                return sign;
        }
        if (exponent > 127) {
                seen.overflowed++;
                return sign | INFINITE;
        }
        return sign | (uint32_t)(exponent + 127) << 23 | (mantissa & 0x7fffff);
}

static uint32_t sum_of(const struct term *a, const struct term *b)
{
        uint64_t sum[WORDS] = { 0 };
        uint32_t length;
        bool is_negative;

        if (a->is_nan || b->is_nan ||
            (a->is_infinite && b->is_infinite && a->is_negative != b->is_negative)) {
                seen.nans++;
                return SOME_NAN;
        }
        if (a->is_infinite || b->is_infinite)
                return INFINITE | ((a->is_infinite ? a : b)->is_negative ? SIGN : 0);
        wide_add(sum, a);
        wide_add(sum, b);
        is_negative = wide_negate_if_negative(sum);
        length = wide_length(sum);
        if (length)
                return wide_rounded(sum, length, is_negative ? SIGN : 0);
        seen.minus_zeros += a->is_negative && b->is_negative;
        return a->is_negative && b->is_negative ? SIGN : 0;
}

uint32_t exact_add(uint32_t a, uint32_t b)
{
        struct term first = term_of(a), second = term_of(b);

        return sum_of(&first, &second);
}

uint32_t exact_add_product(uint32_t sum, uint16_t x, uint16_t w)
{
        struct term first = term_of((uint32_t)x << 16), second = term_of((uint32_t)w << 16);
        struct term product = term_product(&first, &second), before = term_of(sum);

        return sum_of(&before, &product);
}

uint32_t exact_dot_add(uint32_t c, const uint16_t *x, const uint16_t *w, uint32_t apart,
                       uint32_t pairs)
{
        uint32_t halves[2] = { 0, 0 };

        for (uint32_t half = 0; half < 2; half++)
                for (uint32_t k = 0; k < pairs; k++)
                        halves[half] = exact_add_product(halves[half], x[2 * k + half],
                                                         w[k * apart + half]);
        return exact_add(c, exact_add(halves[0], halves[1]));
}

bool is_nan(uint32_t bits)
{
        return (bits & ~SIGN) > INFINITE;
}

bool is_same(uint32_t bits, uint32_t should)
{
        return is_nan(should) ? is_nan(bits) : bits == should;
}

/* ---- numbers ---- */

/* Half of the mantissas have few bits, so that sums become exact, or ties. */
static uint16_t mantissa_any(void)
{
        static const uint8_t few[] = { 0, 0, 0, 0, 1, 0x40, 0x7e, 0x7f };

        return random_below(2) ? few[random_below(COUNT(few))] : random_below(128);
}

uint16_t bfloat_any(enum numbers kind)
{
        static const uint16_t edges[] = { 0x0000, 0x0001, 0x0040, 0x007f, 0x0080, 0x0081,
                                          0x3f80, 0x3f81, 0x7f00, 0x7f7f, 0x3f7f, 0x0100 };
        /* of two such: 2^-126, 2^-138, 2^-150, 2^-151 */
        static const uint8_t brink[] = { 64, 64, 64, 64, 52, 52, 52, 51, 65 };
        uint32_t exponent = 1 + random_below(254);
        uint16_t sign = random_below(2) ? 0x8000 : 0;

        if (kind == EDGES)
                return sign | edges[random_below(COUNT(edges))];
        if (random_below(16) == 0) /* a zero, or a subnormal number */
                return sign | (random_below(2) ? 0 : random_below(128));
        if (kind == OF_A_MODEL)
                exponent = 118 + random_below(10);
        if (kind == LARGE)
                exponent = 188 + random_below(4);
        if (kind == BRINK)
                exponent = brink[random_below(COUNT(brink))];
        return (uint16_t)(sign | exponent << 7 |
                          (kind == BRINK && random_below(4) ? 0 : mantissa_any()));
}

uint32_t float_any(enum numbers kind)
{
        static const uint32_t edges[] = { 0x00000000, 0x00000001, 0x007fffff, 0x00800000,
                                          0x00800001, 0x00ffffff, 0x3f800000, 0x7f7fffff };
        uint32_t sign = random_below(2) ? SIGN : 0, exponent = 1 + random_below(254);
        uint32_t mantissa = random_below(2) ? random_below(0x800000) : random_below(4);

        if (kind == EDGES || random_below(8) == 0)
                return sign | edges[random_below(COUNT(edges))];
        if (kind == OF_A_MODEL)
                exponent = 114 + random_below(18);
        if (kind == BRINK)
                exponent = random_below(4);
        if (kind == LARGE)
                exponent = 251 + random_below(4);
        return sign | exponent << 23 | mantissa;
}

uint16_t special_any(void)
{
        static const uint16_t specials[] = { 0x7f80, 0xff80, 0x7f81, 0xffc0, 0x7fff };

        return specials[random_below(COUNT(specials))];
}
