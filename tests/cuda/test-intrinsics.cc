/*
 * The meaning of each instruction of intrinsics.h on the CPU, compared with the PTX ISA's
 * description of the GPU's instructions.  The formulas here come from that document, not from
 * intrinsics.h.
 */
#include "tests/cuda/fixture.h"

#include <math.h>
#include <vector>

#include "tests/cuda/intrinsic-kernels.h"

#define SEED 20260u

/* ---- 16-bit numbers ---- */

struct format {
        int fraction, least; /* bits of it; exponent of the smallest normal number */
        uint32_t infinity;
};

static const format half = { 10, -14, 0x7c00 };
static const format bfloat = { 7, -126, 0x7f80 };

static double value_of(const format *format, uint32_t bits)
{
        int exponent = (int)((bits & 0x7fff) >> format->fraction);
        int fraction = (int)(bits & ((1u << format->fraction) - 1));
        double sign = bits & 0x8000 ? -1 : 1;

        if ((bits & 0x7fff) >= format->infinity)
                return fraction ? NAN : sign * INFINITY;
        if (exponent)
                return sign * ldexp((1 << format->fraction) + fraction,
                                    format->least + exponent - 1 - format->fraction);
        return sign * ldexp(fraction, format->least - format->fraction);
}

/* The nearest one, the even one of two; a double holds all of it exactly. */
static uint32_t nearest(const format *format, float f)
{
        uint32_t sign = signbit(f) ? 0x8000 : 0, bits;
        double size = fabs((double)f), steps;
        int exponent;

        if (isnan(f))
                return 0x7fff;
        if (isinf(f))
                return sign | format->infinity;
        exponent = size > 0 ? ilogb(size) : format->least;
        if (exponent < format->least)
                exponent = format->least;
        steps = rint(ldexp(size, format->fraction - exponent)); /* ties to even */
        /* A carry into the exponent is where it belongs, infinity included. */
        bits = ((uint32_t)(exponent - format->least) << format->fraction) + (uint32_t)steps;
        return sign | (bits < format->infinity ? bits : format->infinity);
}

static void check_rounding(float f)
{
        uint32_t halves = two_halves(f, -f), bfloats = two_bfloats(f, -f);

        assert_int_equal(halves & 0xffff, nearest(&half, f));
        assert_int_equal(halves >> 16, nearest(&half, -f));
        assert_int_equal(bfloats & 0xffff, nearest(&bfloat, f));
        assert_int_equal(bfloats >> 16, nearest(&bfloat, -f));
}

static bool same(float f, double value)
{
        return isnan(value) ? isnan(f) : (double)f == value && !signbit(f) == !signbit(value);
}

static void converts_every_half_and_bfloat_both_ways(void **)
{
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
                uint32_t above = (bits * 31 + 7) << 16; /* not looked at */
                float h = from_half(bits | above), b = from_bfloat(bits | above);

                assert_true(same(h, value_of(&half, bits)));
                assert_true(same(b, value_of(&bfloat, bits)));
                assert_int_equal(two_halves(h, 1), 0x3c000000 | (isnan(h) ? 0x7fff : bits));
                assert_int_equal(two_halves(1, h) >> 16, isnan(h) ? 0x7fff : bits);
                assert_int_equal(two_bfloats(b, 1), 0x3f800000 | (isnan(b) ? 0x7fff : bits));
                assert_int_equal(two_bfloats(1, b) >> 16, isnan(b) ? 0x7fff : bits);
        }
}

/* Between neighbours, at the tie and a float's step beside it. */
static void rounds_to_nearest_even_at_every_tie(void **)
{
        for (uint32_t bits = 0; bits < 0x7c00; bits++) {
                double tie = (value_of(&half, bits) +
                              (bits + 1 < 0x7c00 ? value_of(&half, bits + 1) : 65536)) /
                             2;

                check_rounding((float)tie);
                check_rounding(nextafterf((float)tie, 0));
                check_rounding(nextafterf((float)tie, INFINITY));
        }
        for (uint32_t bits = 0; bits < 0x7f80; bits++) {
                uint32_t tie = bits << 16 | 0x8000;

                for (uint32_t u = tie - 1; u <= tie + 1; u++)
                        check_rounding(float_of(u));
        }
}

static void rounds_random_floats_correctly(void **)
{
        uint64_t state = SEED;

        for (unsigned i = 0; i < 500000; i++)
                check_rounding(float_of((uint32_t)next_random(&state)));
}

/* IEEE 754's own examples. */
static void packs_the_first_number_low_and_rounds_limits_as_ieee_754_says(void **)
{
        assert_int_equal(two_halves(1, -2), 0xc0003c00);
        assert_int_equal(two_bfloats(1, -2), 0xc0003f80);
        assert_int_equal(two_halves(65504, 65519.996f), 0x7bff7bff);
        assert_int_equal(two_halves(65520, -65520), 0xfc007c00);
        assert_int_equal(two_halves(5.9604645e-8f, 2.9802322e-8f), 0x00000001);
        assert_int_equal(two_halves(6.097555e-5f, 6.1035156e-5f), 0x040003ff);
        assert_int_equal(two_bfloats(3.3895314e38f, 3.4028235e38f), 0x7f807f7f);
        assert_int_equal(two_halves(NAN, -NAN), 0x7fff7fff);
        assert_int_equal(two_bfloats(NAN, -NAN), 0x7fff7fff);
        assert_true(exp2_fast(-3) == 0.125f && exp2_fast(0) == 1 && exp2_fast(10) == 1024);
        assert_true(exp2_fast(-INFINITY) == 0);
}

/* Where kernels run: each half, each bfloat, and floats of all sizes. */
static void conversions_inside_kernels_are_correct(void **)
{
        const uint32_t many = 0x18000;
        std::vector<uint32_t> in(many), halves(many), bfloats(many), less(many), less_half(many);
        std::vector<uint32_t> scaled(many), quotients(many);
        std::vector<float> from_halves(many), from_bfloats(many);
        uint64_t state = SEED + 7;

        for (uint32_t i = 0; i < many; i++)
                in[i] = i < 0x10000 ? i | i << 16 : (uint32_t)next_random(&state);
        run_now(0, one_block(256, 0), convert,
                convert_args{ many, in.data(), halves.data(), bfloats.data(), from_halves.data(),
                              from_bfloats.data(), less.data(), less_half.data(), scaled.data(),
                              quotients.data() });
        for (uint32_t i = 0; i < many; i++) {
                float f = float_of(in[i]);
                float low = from_bfloats[i], high = float_of(in[i] & 0xffff0000u);

                assert_int_equal(halves[i], nearest(&half, f) | nearest(&half, -f) << 16);
                assert_int_equal(bfloats[i], nearest(&bfloat, f) | nearest(&bfloat, -f) << 16);
                assert_true(same(from_halves[i], value_of(&half, in[i] & 0xffff)));
                assert_true(same(low, value_of(&bfloat, in[i] & 0xffff)));
                assert_int_equal(less[i],
                                 nearest(&bfloat, low - high) | nearest(&bfloat, high - low) << 16);
                assert_int_equal(quotients[i], f != f ? NAN_BITS : bits_of(f / 448));
                assert_int_equal(scaled[i], nearest(&bfloat, low * 0x1p120f) |
                                                    nearest(&bfloat, high * 0x1p-2f) << 16);
                low = from_halves[i];
                high = value_of(&half, in[i] >> 16);
                assert_int_equal(less_half[i],
                                 nearest(&half, low - high) | nearest(&half, high - low) << 16);
        }
}

/* ---- lanes ---- */

static void shuffles_return_the_value_of_the_named_lane(void **)
{
        float in[96], across[31 * 96], from[32 * 96], sum[96], most[96];
        uint64_t wide[96], state = SEED;

        for (float &f : in)
                f = (float)(int64_t)next_random(&state) * 1e-15f;
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                lanes_args args = { in, across, from, sum, most, wide };

                run_now(schedule, one_block(96, 0), lanes, args);
                for (unsigned i = 0; i < 96; i++) {
                        const float *warp = &in[i / 32 * 32];
                        float tree[32], largest = warp[0];

                        for (unsigned bits = 1; bits < 32; bits++)
                                assert_true(across[(bits - 1) * 96 + i] == warp[i % 32 ^ bits]);
                        for (unsigned lane = 0; lane < 32; lane++)
                                assert_true(from[lane * 96 + i] == warp[lane]);
                        assert_true(wide[i] == ((uint64_t)(i ^ 3) << 40 | 5));
                        memcpy(tree, warp, sizeof(tree));
                        for (unsigned n = 16; n; n /= 2)
                                for (unsigned k = 0; k < n; k++)
                                        tree[k] += tree[k + n];
                        for (unsigned k = 1; k < 32; k++)
                                largest = warp[k] > largest ? warp[k] : largest;
                        assert_true(sum[i] == tree[0]);
                        assert_true(most[i] == largest);
                }
        }
}

/* ---- matrices ---- */

static uint16_t random_number(const format *format, uint64_t *state)
{
        uint64_t dice = next_random(state);
        uint32_t one = nearest(format, 1); /* from 1/16 to 2, either sign, now and then 0 */

        if (dice % 11 == 0)
                return 0;
        return (uint16_t)((one & ~((4u << format->fraction) - 1)) +
                          (dice >> 8 & ((4u << format->fraction) - 1)) + (dice & 0x8000));
}

template <bool HALVES> static void check_products(const format *format)
{
        uint16_t a[512], b[256];
        float c[256], out[256], first[256];
        uint64_t state = SEED + HALVES;
        product_args args = { a, b, c, out };

        for (uint16_t &bits : a)
                bits = random_number(format, &state);
        for (uint16_t &bits : b)
                bits = random_number(format, &state);
        for (float &f : c)
                f = (float)(int)(next_random(&state) % 2001) / 100 - 10;
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                memset(out, 0xff, sizeof(out));
                run_now(schedule, one_block(64, 0), HALVES ? product_of_halves : product_of_bfloats,
                        args);
                if (!schedule)
                        memcpy(first, out, sizeof(first));
                assert_memory_equal(out, first, sizeof(out));
        }
        for (unsigned i = 0; i < 256; i++) {
                unsigned warp = i / 128, row = i % 128 / 8, column = i % 8;
                double sum = c[i], size = fabs(c[i]);

                for (unsigned k = 0; k < 16; k++) {
                        double x = value_of(format, a[warp * 256 + row * 16 + k]);
                        double y = value_of(format, b[warp * 128 + k * 8 + column]);

                        sum += x * y;
                        size += fabs(x * y);
                }
                assert_true(fabs(out[i] - sum) <= size * 17 * 0x1p-24);
        }
}

static void matrix_products_are_correct(void **)
{
        check_products<false>(&bfloat);
        check_products<true>(&half);
}

/*
 * In row 0 infinity times 0, in row 1 a NaN of the CPU's, in row 2 a negative one among the
 * sums.
 */
static void a_nan_product_has_the_nan_bits_of_the_gpu(void **)
{
        uint16_t a[512] = {}, b[256] = {};
        float c[256] = {}, out[256];

        a[0] = 0x7f80;
        a[16] = 0x7fc0;
        c[16] = float_of(0xffc00001);
        run_now(0, one_block(64, 0), product_of_bfloats, product_args{ a, b, c, out });
        for (unsigned i = 0; i < 256; i++)
                assert_int_equal(bits_of(out[i]), i < 17 ? NAN_BITS : 0);
}

/* Of matrix i, a lane has two numbers of row lane/4; turned, of column lane/4. */
static void loads_four_matrices_plain_and_transposed(void **)
{
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                uint32_t out[2][32][4];

                run_now(schedule, one_block(32, 512), load, load_args{ out[0][0] });
                for (unsigned lane = 0; lane < 32; lane++)
                        for (unsigned i = 0; i < 4; i++) {
                                unsigned g = lane / 4, t = lane % 4, m = i * 64;
                                unsigned low = m + g * 8 + 2 * t, turned = m + 2 * t * 8 + g;

                                assert_int_equal(out[0][lane][i], low | (low + 1) << 16);
                                assert_int_equal(out[1][lane][i], turned | (turned + 8) << 16);
                        }
        }
}

/* ---- copies ---- */

static void copies_arrive_in_batches_when_waited_for_and_can_write_zeros(void **)
{
        static const unsigned come[LOOKS] = { 0, 2, 3, 4 };
        uint4 from[40 * 4], out[40 * LOOKS * 4];
        uint8_t poison[16], zeros[16] = {};
        uint64_t state = SEED;

        memset(poison, 0xff, sizeof(poison));
        for (uint4 &four : from)
                four = { (uint32_t)next_random(&state), 1, 2, (uint32_t)next_random(&state) };
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                run_now(schedule, one_block(40, 40 * 64), copies, copy_args{ from, out });
                for (unsigned i = 0; i < 40 * LOOKS * 4; i++) {
                        unsigned thread = i / 4 / LOOKS, n = i % 4;
                        const void *expected = &from[thread * 4 + n];

                        if (n >= come[i / 4 % LOOKS]) {
                                /* on a GPU the copy may have come early */
                                if (!emulated)
                                        continue;
                                expected = poison;
                        }
                        if (n == 1 && thread % 2 == 0 && expected != poison)
                                expected = zeros;
                        assert_memory_equal(&out[i], expected, 16);
                }
        }
}

/* ---- blocks ---- */

static void the_last_block_sees_the_writes_of_all_blocks(void **)
{
        uint4 weights[7];
        unsigned expected = 0;

        for (unsigned i = 0; i < 7; i++) {
                weights[i] = { 1, 2, 1u << i * 3, 4 };
                expected += 1u << i * 3;
        }
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule++) {
                unsigned tickets = 0, sums[7], last = 0;

                run_now(schedule, { 7, 1, 1, 32, 0, false }, count,
                        count_args{ weights, &tickets, sums, &last });
                assert_int_equal(tickets, 7);
                assert_int_equal(last, expected);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(converts_every_half_and_bfloat_both_ways),
                cmocka_unit_test(rounds_to_nearest_even_at_every_tie),
                cmocka_unit_test(rounds_random_floats_correctly),
                cmocka_unit_test(packs_the_first_number_low_and_rounds_limits_as_ieee_754_says),
                cmocka_unit_test(conversions_inside_kernels_are_correct),
                cmocka_unit_test(shuffles_return_the_value_of_the_named_lane),
                cmocka_unit_test(matrix_products_are_correct),
                cmocka_unit_test(a_nan_product_has_the_nan_bits_of_the_gpu),
                cmocka_unit_test(loads_four_matrices_plain_and_transposed),
                cmocka_unit_test(copies_arrive_in_batches_when_waited_for_and_can_write_zeros),
                cmocka_unit_test(the_last_block_sees_the_writes_of_all_blocks),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
