/*
 * Vectors of quads: each lane of 32 bits holds four bytes that belong to one row. Part of
 * loops.inc.
 *
 * quad_dot() is the basis of the integer products: it adds the sum of four products to each lane.
 * The products are exact, so every instruction set gives the same result.
 */

LANES_INLINE ivec load_dwords(const void *p)
{
        ivec v;

        memcpy(&v, p, sizeof(v));
        return v;
}

LANES_INLINE ivec splat_dword(int32_t x)
{
        return x - (ivec){ 0 };
}

/* Four signed bytes, the same in all lanes. */
LANES_INLINE ivec splat_quad(const int8_t *p)
{
        int32_t x;

        memcpy(&x, p, sizeof(x));
        return splat_dword(x);
}

LANES_INLINE ivec shift_down(ivec v, uint32_t by)
{
        return (ivec)((uvec)v >> by);
}

/* Moves bits from position `from` to position `to`. The caller masks the bits beside them. */
LANES_INLINE ivec bits_to(ivec v, const uint32_t from, const uint32_t to)
{
        return from < to ? v << (int32_t)(to - from) : shift_down(v, from - to);
}

/*
 * Dots of quads. `most` is the largest code. With an instruction for four products, the sums are
 * already the dots. Otherwise (LANES == 8) the sums are 16-bit sums of two products, over as many
 * quads as fit. dots_of() then turns them into dots, times a factor that is in both halves of
 * each lane.
 */
LANES_INLINE uint32_t quads_that_fit(const uint32_t most)
{
        return LANES == 8 ? 32767 / (2 * 127 * most) : UINT32_MAX;
}

/*
 * How many quads are best handled before the next row of x. If few fit, two at once mean that
 * sums need no registers of their own.
 */
LANES_INLINE uint32_t quads_at_once(const uint32_t fit)
{
        return fit < 8 && fit % 2 == 0 ? 2 : 1;
}

#if LANES == 4
LANES_INLINE ivec quad_dot_plain(ivec sum, ivec codes, ivec x)
{
        UNROLL for (uint32_t i = 0; i < 4; i++)
        {
                sum += ((codes >> (int32_t)(8 * i)) & 255) *
                       ((ivec)((uvec)x << (24 - 8 * i)) >> 24);
        }
        return sum;
}
#endif

/* x is signed and at least -127. Codes that are 128 too large (`is_128`) may need 8 bits. */
LANES_INLINE ivec quad_dot(const bool is_128, ivec sum, ivec codes, ivec x)
{
#if LANES == 16
        (void)is_128;
        return (ivec)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)codes, (__m512i)x);
#elif LANES == 8
        __m256i a = (__m256i)codes, b = (__m256i)x;

        if (is_128) { /* the codes' real values, with their signs moved to the other factor */
                a = _mm256_xor_si256(a, _mm256_set1_epi8((char)0x80));
                b = _mm256_sign_epi8(b, a);
                a = _mm256_abs_epi8(a);
        }
        return (ivec)_mm256_add_epi16((__m256i)sum, _mm256_maddubs_epi16(a, b));
#else
        (void)is_128;
        return quad_dot_plain(sum, codes, x);
#endif
}

/*
 * The value at which dots begin, so that `zero`, a power of two or 0, is subtracted from every
 * code. `less` is minus the sum of x.
 */
LANES_INLINE ivec dots_start(const uint32_t zero, ivec less)
{
        if (zero == 0 || (LANES == 8 && zero == 128)) /* quad_dot() subtracts it */
                return splat_dword(0);
        return less << __builtin_ctz(zero);
}

/* The products of each lane's two 16-bit halves with those of the other vector, summed. */
LANES_INLINE ivec pair_dot(ivec a, ivec b)
{
#if LANES == 16
        return (ivec)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif LANES == 8
        return (ivec)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
        return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}

LANES_INLINE ivec both_halves(ivec v)
{
        return (v & 0xffff) | (ivec)((uvec)v << 16);
}

/*
 * The value at which sums begin, and the dots after the sums are added, times `factor`, which
 * both_halves() made; NULL: 1. Where sums are dots, they begin at the current dots.
 */
LANES_INLINE ivec sums_of(ivec dots, const ivec *factor)
{
        return LANES == 8 || factor ? splat_dword(0) : dots;
}

LANES_INLINE ivec dots_of(ivec dots, ivec sums, const ivec *factor)
{
        if (LANES == 8)
                return dots + pair_dot(sums, factor ? *factor : both_halves(splat_dword(1)));
        return factor ? dots + sums * (*factor >> 16) : sums;
}

#if LANES == 4
/* A call, because some hundred of these loops in one function would take a minute to compile. */
static __attribute__((noinline)) ivec look_up_bytes(const uint8_t table[16], ivec places)
{
        uint8_t bytes[sizeof(places)];

        memcpy(bytes, &places, sizeof(places));
        for (uint32_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = table[bytes[i]];
        memcpy(&places, bytes, sizeof(places));
        return places;
}
#endif

/* Replaces each byte, which is below 16, by that entry of the table. */
LANES_INLINE ivec look_up(const uint8_t table[16], ivec places)
{
#if LANES == 16
        __m128i t = _mm_loadu_si128((const __m128i *)table);

        return (ivec)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), (__m512i)places);
#elif LANES == 8
        __m128i t = _mm_loadu_si128((const __m128i *)table);

        return (ivec)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), (__m256i)places);
#else
        return look_up_bytes(table, places);
#endif
}

/*
 * Writes the lowest bytes of 32 dwords, in order. Returns two sums of these bytes as signed
 * numbers, of the first 16 and of the last 16.
 */
LANES_INLINE void narrow_block(int8_t to[32], const ivec dwords[32 / LANES], int32_t *ret_first,
                               int32_t *ret_second)
{
#if LANES == 4
        for (uint32_t half = 0; half < 2; half++) {
                ivec sum = { 0 };

                for (uint32_t i = half * 4; i < half * 4 + 4; i++) {
                        bvec b = __builtin_convertvector(dwords[i], bvec);

                        memcpy(to + i * 4, &b, sizeof(b));
                        sum += (ivec)((uvec)dwords[i] << 24) >> 24;
                }
                *(half ? ret_second : ret_first) = sum[0] + sum[1] + sum[2] + sum[3];
        }
#else
        const __m128i sign = _mm_set1_epi8((char)0x80), none = _mm_setzero_si128();
        __m128i first, second;

#if LANES == 16
        first = _mm512_cvtepi32_epi8((__m512i)dwords[0]);
        second = _mm512_cvtepi32_epi8((__m512i)dwords[1]);
#else
        /* packing works on halves of vectors: first all lower halves, then all upper ones */
        __m256i a = _mm256_packus_epi32((__m256i)(dwords[0] & 255), (__m256i)(dwords[1] & 255));
        __m256i b = _mm256_packus_epi32((__m256i)(dwords[2] & 255), (__m256i)(dwords[3] & 255));
        __m256i all = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b),
                                                  _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));

        first = _mm256_castsi256_si128(all);
        second = _mm256_extracti128_si256(all, 1);
#endif
        _mm_storeu_si128((__m128i *)to, first);
        _mm_storeu_si128((__m128i *)(to + 16), second);
        /* summed in groups of eight, after adding 128 to each byte */
        first = _mm_sad_epu8(_mm_xor_si128(first, sign), none);
        second = _mm_sad_epu8(_mm_xor_si128(second, sign), none);
        *ret_first = _mm_cvtsi128_si32(first) + _mm_extract_epi16(first, 4) - 16 * 128;
        *ret_second = _mm_cvtsi128_si32(second) + _mm_extract_epi16(second, 4) - 16 * 128;
#endif
}
