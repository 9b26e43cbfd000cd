/*
 * The loops of isa.h, for the vectors that the including file chooses:
 *
 *      LANES              floats in a vector: 16, 8 or 4
 *      WIDTH              numbers: vectors of a panel that a pass of a product handles (a pass with
 *                         one row of x handles all vectors)
 *      WIDTH_FEW          codes: the same, for two or three rows of x
 *      WIDTH_CODES        codes: the same, for more rows of x
 *      TILE               numbers: rows of x that a pass handles at most; all tiles are 12 or less
 *      TILE_CODES         codes: the same
 *      TILE_DOTS          the same, for codes whose dots are needed before all 32 columns are
 *                         summed (two scales, or more bits than a sum holds)
 *      HALF_BY_HARDWARE   the processor converts halves
 *      BFLOATS_BY_HARDWARE   the processor multiplies bfloats
 *      BODY_ISA, BODY_LOOPS, BODY_NAME   the tables that this file makes
 *
 * The widths and tiles are chosen by the number of registers and the cost of unpacking.
 *
 * Every function that sums keeps 16 partial sums, whatever LANES is. Number i goes to sum i % 16,
 * and the sums are added in one fixed tree.
 */
#include <assert.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/quads.h"

#define SUMS  16u
#define PARTS (SUMS / LANES) /* vectors in 16 numbers */

typedef float four __attribute__((vector_size(16)));

LANES_INLINE four load_four(const float *p)
{
        four v;

        memcpy(&v, p, sizeof(v));
        return v;
}

/* In halves: number i and i + 8, then i and i + 4, ... */
static float tree_sum(const float sums[SUMS])
{
        four s = (load_four(sums) + load_four(sums + 8)) +
                 (load_four(sums + 4) + load_four(sums + 12));

        return (s[0] + s[2]) + (s[1] + s[3]);
}

LANES_INLINE four larger_four(four a, four b)
{
#if LANES > 4
        return (four)_mm_max_ps((__m128)a, (__m128)b);
#else
        return larger(a, b);
#endif
}

static float tree_max(const float numbers[SUMS])
{
        four m = larger_four(larger_four(load_four(numbers), load_four(numbers + 8)),
                             larger_four(load_four(numbers + 4), load_four(numbers + 12)));

        m = larger_four(m, __builtin_shufflevector(m, m, 2, 3, 0, 1));
        return larger_four(m, __builtin_shufflevector(m, m, 1, 0, 3, 2))[0];
}

#include "kernels/cpu/numbers.h"
#include "kernels/cpu/product.h"

static void product(enum row_type type, float *out, const void *panel, uint32_t columns,
                    const void *acts, size_t stride, uint32_t tokens)
{
        switch (type) {
#define TYPE(T)                                                                                    \
        case T:                                                                                    \
                passes(T, out, panel, columns, acts, stride, tokens);                              \
                break
                TYPE(ROW_F32);
                TYPE(ROW_F16);
                TYPE(ROW_BF16);
                TYPE(ROW_Q4_0);
                TYPE(ROW_Q8_0);
                TYPE(ROW_Q4_K);
                TYPE(ROW_Q5_K);
                TYPE(ROW_Q6_K);
                TYPE(ROW_Q4_1);
                TYPE(ROW_Q5_0);
                TYPE(ROW_Q5_1);
                TYPE(ROW_Q2_K);
                TYPE(ROW_Q3_K);
                TYPE(ROW_IQ4_NL);
                TYPE(ROW_MXFP4);
                TYPE(ROW_F8_E4M3);
#undef TYPE
        default:
                assert(false);
        }
}

/*
 * The largest magnitude of a block, compared as integers: that of a NaN if there is one, else
 * that of an infinity if there is one.
 */
LANES_INLINE float block_largest(const float *x)
{
        ivec most = { 0 };

        UNROLL for (uint32_t i = 0; i < ACT_NUMBERS; i += LANES)
        {
                most = larger_dwords(most, load_dwords(x + i) & 0x7fffffff);
        }
        return bits_float((uint32_t)largest_dword(most));
}

/*
 * Rounds each number to an integer by adding 1.5 * 2^23, where a float has no fraction bits left.
 */
LANES_INLINE void block_round(ivec ret_numbers[ACT_NUMBERS / LANES], const float *x, float factor)
{
        const float whole = 0x1.8p23f;

        UNROLL for (uint32_t i = 0; i < ACT_NUMBERS / LANES; i++)
        {
                vec rounded = load(x + i * LANES) * factor + whole;

                ret_numbers[i] = (ivec)((uvec)rounded - (uvec)splat(whole));
        }
}

LANES_INLINE void act_make(struct act *to, const float *x)
{
        float most = block_largest(x);
        bool none = most < 0x1p-100f; /* else 127 / most would be infinite */
        ivec numbers[ACT_NUMBERS / LANES];
        int32_t first, second;

        block_round(numbers, x, none ? 0 : 127 / most);
        /* first and second: the sums of the bytes, even if x is not finite */
        narrow_block(to->bytes, numbers, &first, &second);
        to->scale = none ? 0 : most / 127;
        to->less = -(first + second);
        to->less_halves[0] = (int16_t)-first;
        to->less_halves[1] = (int16_t)-second;
        to->less_scaled = to->scale * (float)to->less;
}

static void act(enum act_kind kind, void *to, const float *x, uint32_t columns)
{
        assert(kind == ACT_BFLOATS || (kind == ACT_BYTES && columns % ACT_NUMBERS == 0));
        if (kind == ACT_BFLOATS)
                bfloats_make(to, x, columns);
        else
                for (uint32_t i = 0; i < columns / ACT_NUMBERS; i++)
                        act_make((struct act *)to + i, x + i * ACT_NUMBERS);
}

static void norm(float *out, const float *x, const float *weight, uint32_t count, float eps)
{
        uint32_t whole = count / SUMS * SUMS;
        vec part[PARTS] = { 0 };
        float sums[SUMS], factor;

        for (uint32_t i = 0; i < whole; i += SUMS)
                for (uint32_t p = 0; p < PARTS; p++) {
                        vec v = load(x + i + p * LANES);

                        part[p] += v * v;
                }
        for (uint32_t p = 0; p < PARTS; p++)
                store(sums + p * LANES, part[p]);
        for (uint32_t i = whole; i < count; i++)
                sums[i - whole] += x[i] * x[i];

        factor = 1.0f / sqrtf(tree_sum(sums) / (float)count + eps);
        for (uint32_t i = 0; i < count; i++)
                out[i] = x[i] * factor * weight[i];
}

static void activate(enum activation act, float *out, const float *g, const float *u,
                     uint32_t count)
{
        for (uint32_t i = 0; i < count; i += LANES) {
                vec x = load(g + i), y;

                if (act == ACT_SILU)
                        y = x / (exp_lanes(-x) + 1.0f);
                else
                        y = x * 0.5f *
                            (tanh_lanes((x * x * x * 0.044715f + x) * 0.7978845608f) + 1.0f);
                store(out + i, y * load(u + i));
        }
}

static void soften(float *x, float cap, uint32_t count)
{
        for (uint32_t i = 0; i < count; i += LANES)
                store(x + i, tanh_lanes(load(x + i) / cap) * cap);
}

static void maxima(float *ret_maxima, const float *x, uint32_t blocks)
{
        for (uint32_t b = 0; b < blocks; b++, x += LOGITS_BLOCK) {
                float most[SUMS];
                ivec bad = { 0 };

                for (uint32_t i = 0; i < SUMS; i += LANES) {
                        vec one = load(x + i), other = load(x + i + SUMS);

                        bad |= ~(one < splat(INFINITY)) | ~(other < splat(INFINITY));
                        store(most + i, larger(one, other));
                }
                ret_maxima[b] = any(bad) ? INFINITY : tree_max(most);
        }
}

static void weigh(float *ret_each, float *ret_sums, const float *x, uint32_t blocks, float largest,
                  float factor)
{
        for (uint32_t b = 0; b < blocks; b++, x += LOGITS_BLOCK, ret_each += LOGITS_BLOCK) {
                float sums[SUMS];

                for (uint32_t i = 0; i < SUMS; i += LANES) {
                        vec one = exp_lanes((load(x + i) - largest) * factor);
                        vec other = exp_lanes((load(x + i + SUMS) - largest) * factor);

                        store(ret_each + i, one);
                        store(ret_each + i + SUMS, other);
                        store(sums + i, one + other);
                }
                ret_sums[b] = tree_sum(sums);
        }
}

static uint32_t split(const struct split *at, float *ret_sums, uint32_t *ret_where, float *ret_each,
                      const float *x, uint32_t blocks, uint32_t first)
{
        const vec none = { 0 };
        uint32_t n = 0;

        for (uint32_t b = 0; b < blocks; b++) {
                vec sums[PARTS] = { 0 };
                float all[SUMS];

                for (uint32_t p = 0; p < 2 * PARTS; p++, x += LANES, first += LANES) {
                        vec v = load(x), e = exp_lanes((v - at->largest) * at->factor);
                        ivec is_above = v >= at->above;

                        sums[p % PARTS] += choose(is_above, e, none);
                        n += list_lanes(~is_above & (v >= at->least), first, e, ret_where + n,
                                        ret_each + n);
                }
                for (uint32_t p = 0; p < PARTS; p++)
                        store(all + p * LANES, sums[p]);
                ret_sums[b] = tree_sum(all);
        }
        return n;
}

_Static_assert(LOGITS_BLOCK == 2 * SUMS, "two numbers for each sum");

static void to_half(uint16_t *out, const float *x, uint32_t count)
{
        uint32_t i = 0;

#if HALF_BY_HARDWARE
        for (; i + 8 <= count; i += 8) {
                __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);

                _mm_storeu_si128((__m128i *)(out + i), h);
        }
#endif
        for (; i < count; i++)
                out[i] = float_to_half(x[i]);
}

#include "kernels/cpu/attention.h"

const struct loops BODY_LOOPS = {
        .norm = norm,
        .activate = activate,
        .soften = soften,
        .maxima = maxima,
        .weigh = weigh,
        .split = split,
        .to_half = to_half,
        .attend = attend,
        .attend_join = attend_join,
        .attend_out = attend_out,
};

const struct isa BODY_ISA = {
        .name = BODY_NAME,
        .product = product,
        .act = act,
        .loops = &BODY_LOOPS,
};
