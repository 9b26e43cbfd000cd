#include "bench/peaks-loops.h"

#include <stdbool.h>

#define CHAINS 12u /* independent sums: more than any processor has in flight */
#define AHEAD  4096

/*
 * A round adds to each of the chains once.  The operand is opaque to the compiler every time anew,
 * and so are the sums, so it can neither leave a product out nor know its result.  Both loops over
 * the chains have to be unrolled for the sums to stay in registers.
 */
#define HIDE(value) __asm__ volatile("" : "+x"(value))
#define ROUNDS_OF(type, zero, operand, step)                                                       \
        type sums[CHAINS];                                                                         \
                                                                                                   \
        _Pragma("GCC unroll 12") for (unsigned i = 0; i < CHAINS; i++) sums[i] = zero;             \
        for (uint32_t round = 0; round < rounds; round++)                                          \
                _Pragma("GCC unroll 12") for (unsigned i = 0; i < CHAINS; i++)                     \
                {                                                                                  \
                        HIDE(operand);                                                             \
                        sums[i] = step;                                                            \
                        HIDE(sums[i]);                                                             \
                }

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define FOR(instructions) __attribute__((target(instructions), noinline))

FOR("avx512f,avx512bw,avx512vnni") static void bytes_avx512vnni(uint32_t rounds)
{
        __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);

        ROUNDS_OF(__m512i, _mm512_setzero_si512(), a, _mm512_dpbusd_epi32(sums[i], a, b))
}

FOR("avxvnni,avx2") static void bytes_avxvnni(uint32_t rounds)
{
        __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);

        ROUNDS_OF(__m256i, _mm256_setzero_si256(), a, _mm256_dpbusd_avx_epi32(sums[i], a, b))
}

/* Pairs of bytes to 16 bits, pairs of these to 32, and their sum. */
FOR("avx2") static void bytes_avx2(uint32_t rounds)
{
        __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5), ones = _mm256_set1_epi16(1);

        ROUNDS_OF(__m256i, _mm256_setzero_si256(), a,
                  _mm256_add_epi32(sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones)))
}

static void bytes_sse2(uint32_t rounds)
{
        __m128i a = _mm_set1_epi16(3), b = _mm_set1_epi16(5);

        ROUNDS_OF(__m128i, _mm_setzero_si128(), a, _mm_add_epi32(sums[i], _mm_madd_epi16(a, b)))
}

FOR("avx512f,avx512bf16") static void bfloats_avx512bf16(uint32_t rounds)
{
        __m512i bits = _mm512_set1_epi16(0x3f80);

        ROUNDS_OF(__m512, _mm512_setzero_ps(), bits,
                  _mm512_dpbf16_ps(sums[i], (__m512bh)bits, (__m512bh)bits))
}

FOR("avx512f") static void floats_avx512(uint32_t rounds)
{
        __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);

        ROUNDS_OF(__m512, _mm512_setzero_ps(), a, _mm512_fmadd_ps(a, b, sums[i]))
}

FOR("avx2,fma") static void floats_avx2(uint32_t rounds)
{
        __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);

        ROUNDS_OF(__m256, _mm256_setzero_ps(), a, _mm256_fmadd_ps(a, b, sums[i]))
}

static void floats_sse2(uint32_t rounds)
{
        __m128 a = _mm_set1_ps(0.5f), b = _mm_set1_ps(0.25f);

        ROUNDS_OF(__m128, _mm_setzero_ps(), a, _mm_add_ps(sums[i], _mm_mul_ps(a, b)))
}

/* Of leaf 7: not every compiler has a name for these. */
static bool leaf_says(unsigned leaf, unsigned bit_of_a, unsigned bit_of_c)
{
        unsigned a, b, c, d;

        return __get_cpuid_count(7, leaf, &a, &b, &c, &d) && (a & bit_of_a) == bit_of_a &&
               (c & bit_of_c) == bit_of_c;
}

static bool have_avx512vnni(void)
{
        return __builtin_cpu_supports("avx512bw") && leaf_says(0, 0, bit_AVX512VNNI);
}

static bool have_avxvnni(void)
{
        return __builtin_cpu_supports("avx2") && leaf_says(1, 1u << 4, 0);
}

static bool have_avx512bf16(void)
{
        return __builtin_cpu_supports("avx512bw") && leaf_says(1, bit_AVX512BF16, 0);
}

static bool have_avx512(void)
{
        return __builtin_cpu_supports("avx512f");
}

static bool have_avx2(void)
{
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool have_any(void)
{
        return true;
}

/* Best first. */
static const struct choice {
        enum peak_kind kind;
        bool (*have)(void);
        struct loop loop;
} choices[] = {
        { PEAK_BYTES, have_avx512vnni, { "avx512vnni", bytes_avx512vnni, CHAINS * 128 } },
        { PEAK_BYTES, have_avxvnni, { "avxvnni", bytes_avxvnni, CHAINS * 64 } },
        { PEAK_BYTES, have_avx2, { "avx2", bytes_avx2, CHAINS * 64 } },
        { PEAK_BYTES, have_any, { "sse2", bytes_sse2, CHAINS * 16 } },
        { PEAK_BFLOATS, have_avx512bf16, { "avx512bf16", bfloats_avx512bf16, CHAINS * 64 } },
        { PEAK_FLOATS, have_avx512, { "avx512", floats_avx512, CHAINS * 32 } },
        { PEAK_FLOATS, have_avx2, { "avx2", floats_avx2, CHAINS * 16 } },
        { PEAK_FLOATS, have_any, { "sse2", floats_sse2, CHAINS * 8 } },
};

#else

/* Compiled by whatever instructions the compiler chooses. */
typedef float floats __attribute__((vector_size(16)));
typedef int16_t shorts __attribute__((vector_size(16)));

#undef HIDE
#define HIDE(value) __asm__ volatile("" : "+w"(value))

static void floats_plain(uint32_t rounds)
{
        floats a = { 0.5f, 0.5f, 0.5f, 0.5f }, b = a;

        ROUNDS_OF(floats, (floats){ 0 }, a, sums[i] + a * b)
}

static void bytes_plain(uint32_t rounds)
{
        shorts a = { 3, 3, 3, 3, 3, 3, 3, 3 }, b = a;

        ROUNDS_OF(shorts, (shorts){ 0 }, a, sums[i] + a * b)
}

static bool have_any(void)
{
        return true;
}

static const struct choice {
        enum peak_kind kind;
        bool (*have)(void);
        struct loop loop;
} choices[] = {
        { PEAK_BYTES, have_any, { "plain", bytes_plain, CHAINS * 16 } },
        { PEAK_FLOATS, have_any, { "plain", floats_plain, CHAINS * 8 } },
};
#endif

const struct loop *loop_of(enum peak_kind kind)
{
        for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++)
                if (choices[i].kind == kind && choices[i].have())
                        return &choices[i].loop;
        return loop_of(PEAK_FLOATS); /* there always is one */
}

/* A word of each line is enough: the line comes as a whole. */
void loop_read(const uint8_t *from, size_t bytes)
{
        uint64_t sum = 0;

        for (size_t at = 0; at < bytes; at += 256) {
                __builtin_prefetch(from + at + AHEAD);
                __builtin_prefetch(from + at + AHEAD + 64);
                __builtin_prefetch(from + at + AHEAD + 128);
                __builtin_prefetch(from + at + AHEAD + 192);
                for (size_t line = 0; line < 256; line += 64)
                        sum += *(const uint64_t *)(const void *)(from + at + line);
        }
        __asm__ volatile("" : : "r"(sum));
}
