/*
 * Vectors of quads: in each lane of 32 bits four bytes, which belong to one row.  Part of body.h.
 *
 * quad_dot() is what the integer products rest on: to each lane it adds the sum of four products.
 * They are exact, so every instruction set gives the same.
 */

typedef int8_t bytes_of_lanes __attribute__((vector_size(LANES)));

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

/* Signed bytes, one for each lane. */
LANES_INLINE ivec load_bytes(const uint8_t *p)
{
        bytes_of_lanes v;

        memcpy(&v, p, sizeof(v));
        return __builtin_convertvector(v, ivec);
}

LANES_INLINE ivec shift_down(ivec v, uint32_t by)
{
        return (ivec)((uvec)v >> by);
}

LANES_INLINE vec to_floats(ivec v)
{
        return __builtin_convertvector(v, vec);
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

#if LANES == 4
/* The dot product of the four bytes of each lane, the first ones unsigned. */
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

/* Codes up to 127, and signed bytes no less than -127. */
LANES_INLINE ivec quad_dot(ivec sum, ivec codes, ivec x)
{
#if LANES == 16
        return (ivec)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)codes, (__m512i)x);
#elif LANES == 8
        /* pairs of products fit 16 bits: 2 * 127 * 127 */
        __m256i pairs = _mm256_maddubs_epi16((__m256i)codes, (__m256i)x);

        return sum + (ivec)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#else
        return quad_dot_plain(sum, codes, x);
#endif
}

/* Codes up to 255, and 128 too large: the sum is that of the codes as they are. */
LANES_INLINE ivec quad_dot_bytes(ivec sum, ivec codes, ivec x)
{
#if LANES == 16
        return quad_dot(sum, codes, x);
#elif LANES == 8
        /* Pairs of these would not fit 16 bits; of what they mean they do, 2 * 128 * 127, its sign
         * given to the other side.  quad_start() has not taken the 128 away then. */
        __m256i numbers = (__m256i)(codes ^ (int32_t)0x80808080);
        __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(numbers),
                                             _mm256_sign_epi8((__m256i)x, numbers));

        return sum + (ivec)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#else
        return quad_dot_plain(sum, codes, x);
#endif
}

/* What sums begin at, so that `zero`, a power of two, is subtracted from every code: `less` is minus
 * the sum of x. */
LANES_INLINE ivec quad_start(const uint32_t zero, int32_t less)
{
        if (zero == 0 || (LANES == 8 && zero == 128))
                return splat_dword(0);
        return splat_dword(less) << __builtin_ctz(zero);
}

/* Of each byte, which is below 16: that place of the table. */
LANES_INLINE ivec look_up(const uint8_t table[16], ivec places)
{
#if LANES == 16
        __m128i t = _mm_loadu_si128((const __m128i *)table);

        return (ivec)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), (__m512i)places);
#elif LANES == 8
        __m128i t = _mm_loadu_si128((const __m128i *)table);

        return (ivec)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), (__m256i)places);
#else
        uint8_t bytes[sizeof(places)];

        memcpy(bytes, &places, sizeof(places));
        for (uint32_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = table[bytes[i]];
        memcpy(&places, bytes, sizeof(places));
        return places;
#endif
}
