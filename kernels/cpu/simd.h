/*
 * Vectors of LANES floats and the functions on them. Part of loops.inc: LANES and HALF_BY_HARDWARE
 * come from the file that includes it.
 *
 * Everything here is multiplication, addition, division, comparison and bit operations. Each of
 * them is exact or correctly rounded, so lanes give the same bits in vectors of any width.
 */
#include <math.h>
#include <string.h>

#include "kernels/convert.h"

#define LANES_INLINE static inline __attribute__((always_inline, unused))
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_CHECKED /* clang's way to tell */
#endif
#endif
#if defined(IS_CHECKED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* Not unrolled: the checks in every unrolled copy would take minutes to compile. */
#define UNROLL
#define PASS_MOST 2u
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#ifndef PASS_MOST
#define PASS_MOST 12u
#endif

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LANES)));
typedef uint16_t hvec __attribute__((vector_size(2 * LANES)));
typedef int8_t bvec __attribute__((vector_size(LANES)));

LANES_INLINE vec splat(float x)
{
        return x - (vec){ 0 }; /* subtracted, because -0 - 0 is -0 */
}

LANES_INLINE vec load(const float *p)
{
        vec v;

        memcpy(&v, p, sizeof(v));
        return v;
}

LANES_INLINE void store(float *p, vec v)
{
        memcpy(p, &v, sizeof(v));
}

/* a * b + c, rounded once */
LANES_INLINE vec fused(vec a, vec b, vec c)
{
#if LANES == 16
        return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif LANES == 8
        return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
        for (uint32_t i = 0; i < LANES; i++)
                c[i] = fmaf(a[i], b[i], c[i]);
        return c;
#endif
}

LANES_INLINE vec choose(ivec mask, vec yes, vec no)
{
        return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

/* The larger of both; b where one is NaN. */
LANES_INLINE vec larger(vec a, vec b)
{
#if LANES == 16
        return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif LANES == 8
        return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
        return choose(a > b, a, b);
#endif
}

/* The smaller of both; b where one is NaN. */
LANES_INLINE vec smaller(vec a, vec b)
{
#if LANES == 16
        return (vec)_mm512_min_ps((__m512)a, (__m512)b);
#elif LANES == 8
        return (vec)_mm256_min_ps((__m256)a, (__m256)b);
#else
        return choose(a < b, a, b);
#endif
}

/* True if any lane of a comparison's result is set. */
LANES_INLINE bool any(ivec mask)
{
#if LANES == 16
        return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif LANES == 8
        return _mm256_movemask_ps((__m256)mask) != 0;
#else
        int32_t all = 0;

        for (uint32_t i = 0; i < LANES; i++)
                all |= mask[i];
        return all != 0;
#endif
}

/* The upper 32 bits of each product. */
LANES_INLINE uvec multiply_high(uvec a, uint32_t b)
{
#if LANES == 16
        const __m512i by = _mm512_set1_epi32((int32_t)b);
        __m512i even = _mm512_mul_epu32((__m512i)a, by);
        __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), by);

        return (uvec)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
#elif LANES == 8
        const __m256i by = _mm256_set1_epi32((int32_t)b);
        __m256i even = _mm256_mul_epu32((__m256i)a, by);
        __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), by);

        return (uvec)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
#else
        for (uint32_t i = 0; i < LANES; i++)
                a[i] = (uint32_t)((uint64_t)a[i] * b >> 32);
        return a;
#endif
}

LANES_INLINE ivec larger_dwords(ivec a, ivec b)
{
#if LANES == 16
        return (ivec)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif LANES == 8
        return (ivec)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
        return (ivec)choose(a > b, (vec)a, (vec)b);
#endif
}

/* The largest of all lanes. */
LANES_INLINE int32_t largest_dword(ivec v)
{
#if LANES == 4
        int32_t most = v[0];

        for (uint32_t i = 1; i < LANES; i++)
                most = v[i] > most ? v[i] : most;
        return most;
#else
#if LANES == 16
        const __m256i all = _mm256_max_epi32(_mm512_castsi512_si256((__m512i)v),
                                             _mm512_extracti64x4_epi64((__m512i)v, 1));
#else
        const __m256i all = (__m256i)v;
#endif
        __m128i most = _mm_max_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));

        most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
        most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
        return _mm_cvtsi128_si32(most);
#endif
}

/* 0, 1, 2, ... */
LANES_INLINE ivec iota(void)
{
        static const int32_t numbers[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
        ivec v;

        memcpy(&v, numbers, sizeof(v));
        return v;
}

/*
 * Lists the lanes that are set in the mask, in order: their indexes, counted from `first`, and
 * their numbers. Returns how many; up to LANES entries are written.
 */
LANES_INLINE uint32_t list_lanes(ivec mask, uint32_t first, vec numbers, uint32_t *ret_where,
                                 float *ret_numbers)
{
#if LANES == 16
        const __mmask16 m = _mm512_movepi32_mask((__m512i)mask);

        _mm512_storeu_si512(ret_where,
                            _mm512_maskz_compress_epi32(m, (__m512i)(iota() + (int32_t)first)));
        _mm512_storeu_ps(ret_numbers, _mm512_maskz_compress_ps(m, (__m512)numbers));
        return (uint32_t)__builtin_popcount(m);
#else
        uint32_t n = 0;

        if (!any(mask))
                return 0;
        for (uint32_t i = 0; i < LANES; i++) {
                ret_where[n] = first + i;
                ret_numbers[n] = numbers[i];
                n += mask[i] & 1;
        }
        return n;
#endif
}

LANES_INLINE vec load_bfloat(const uint16_t *p)
{
        hvec h;

        memcpy(&h, p, sizeof(h));
        return (vec)(__builtin_convertvector(h, uvec) << 16);
}

LANES_INLINE vec to_floats(ivec v)
{
        return __builtin_convertvector(v, vec);
}

/*
 * Widens signed bytes, one for each lane. gcc 12 would split a conversion of such narrow vectors
 * and convert byte by byte.
 */
LANES_INLINE ivec widen_bytes(const void *p)
{
#if LANES == 16
        return (ivec)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif LANES == 8
        return (ivec)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
        bvec b;

        memcpy(&b, p, sizeof(b));
        return __builtin_convertvector(b, ivec);
#endif
}

LANES_INLINE vec load_bytes(const int8_t *p)
{
        return to_floats(widen_bytes(p));
}

LANES_INLINE vec halves_to_floats(hvec h)
{
#if HALF_BY_HARDWARE && LANES == 16
        return (vec)_mm512_cvtph_ps((__m256i)h);
#elif HALF_BY_HARDWARE && LANES == 8
        return (vec)_mm256_cvtph_ps((__m128i)h);
#else
        /* exponent and fraction moved into place, then the difference of the biases: exact,
         * subnormal halves included; infinity and NaN keep the largest exponent */
        uvec u = __builtin_convertvector(h, uvec), magnitude = u & 0x7fff;
        vec f = (vec)(magnitude << 13) * 0x1p112f;
        ivec special = magnitude >= 0x7c00;

        f = choose(special, (vec)(magnitude << 13 | 0x7f800000), f);
        return (vec)((uvec)f | (u & 0x8000) << 16);
#endif
}

LANES_INLINE vec load_half(const uint16_t *p)
{
        hvec h;

        memcpy(&h, p, sizeof(h));
        return halves_to_floats(h);
}

/*
 * Loads E4M3 numbers, each as 2^-8 of its value. With exponent and fraction moved into place it
 * is a half, and processors that convert halves handle subnormal halves at no cost; subnormal
 * floats would cost. The code of all ones is a number here, 480.
 */
LANES_INLINE vec load_e4m3(const uint8_t *p)
{
        hvec h;

#if LANES == 16
        h = (hvec)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
#elif LANES == 8
        h = (hvec)_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p));
#else
        bvec b;

        memcpy(&b, p, sizeof(b));
        h = __builtin_convertvector(b, hvec);
#endif
        return halves_to_floats(h << 7 & 0xbf80);
}

LANES_INLINE vec load_as(const enum row_type type, const void *numbers, size_t index)
{
        if (type == ROW_F32)
                return load((const float *)numbers + index);
        if (type == ROW_F16)
                return load_half((const uint16_t *)numbers + index);
        return load_bfloat((const uint16_t *)numbers + index);
}

/*
 * e^x to about one unit in the last place.  x = n ln 2 + r, n whole, and
 * e^x = 2^n e^r with the Taylor series to r^7 (|r| < 0.35: the rest is below
 * 6e-9).  n is rounded by adding 1.5 * 2^23, where a float has no fraction left;
 * ln 2 is subtracted in two parts, and neither's product is rounded.
 * Below -87 and above 88 the result is that of the bound; NaN stays NaN.
 */
LANES_INLINE vec exp_lanes(vec x)
{
        const float whole = 0x1.8p23f;
        vec n, r, p;

        x = smaller(splat(88.0f), larger(splat(-87.0f), x));
        n = fused(x, splat(0x1.715476p0f), splat(whole));
        uvec power = ((uvec)n - (uvec)splat(whole) + 127) << 23;
        n = n - whole;
        r = fused(n, splat(-0x1.62e43p-1f), x);
        r = fused(n, splat(0x1.05c610p-29f), r);
        p = fused(r, splat(1.0f / 5040), splat(1.0f / 720));
        p = fused(p, r, splat(1.0f / 120));
        p = fused(p, r, splat(1.0f / 24));
        p = fused(p, r, splat(1.0f / 6));
        p = fused(p, r, splat(0.5f));
        p = fused(p * r, r, r) + 1.0f;
        return p * (vec)power;
}

LANES_INLINE float exp_one(float x)
{
        return exp_lanes(splat(x))[0];
}

/* tanh x = (1 - e^-2x) / (1 + e^-2x); near 0, where that cancels, its continued fraction. */
LANES_INLINE vec tanh_lanes(vec x)
{
        uvec sign = (uvec)x & 0x80000000;
        vec a = (vec)((uvec)x & 0x7fffffff), z = x * x, t, far, near;

        t = exp_lanes(a * -2.0f);
        far = (vec)((uvec)((1.0f - t) / (1.0f + t)) | sign);
        near = x * ((z + 105.0f) * z + 945.0f) / ((z * 15.0f + 420.0f) * z + 945.0f);
        return choose(a < splat(0.5f), near, far);
}

/*
 * The share of a normal distribution that lies below x: (1 + erf(x / sqrt(2))) / 2, to a few units
 * in the last place. With a = |x| and t = 1 / (1 + 0.35 a), the share beyond a is e^(-a^2 / 2) t
 * times a polynomial in t. Its coefficients have the least relative error, 3.2e-8, for a up to 14;
 * further out the share is too small for a float. For x of -infinity it is 0.
 */
LANES_INLINE vec normal_below(vec x)
{
        vec a = (vec)((uvec)x & 0x7fffffff), t = 1.0f / fused(a, splat(0.35f), splat(1.0f)), p;

        p = fused(splat(-0.0291458778f), t, splat(0.143971473f));
        p = fused(p, t, splat(-0.25571382f));
        p = fused(p, t, splat(0.159173742f));
        p = fused(p, t, splat(-0.0231095869f));
        p = fused(p, t, splat(0.105507918f));
        p = fused(p, t, splat(0.119832888f));
        p = fused(p, t, splat(0.139861867f));
        p = fused(p, t, splat(0.139621407f)) * t * exp_lanes(a * a * -0.5f);
        return choose(x < (vec){ 0 }, p, 1.0f - p);
}
