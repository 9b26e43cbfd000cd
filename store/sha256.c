#include "store/sha256.h"

#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

bool sha256_plain;

static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
};

static uint32_t rotate(uint32_t word, unsigned bits)
{
        return word >> bits | word << (32 - bits);
}

static uint32_t read_word(const uint8_t *at)
{
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void expand(const uint8_t *block, uint32_t words[64])
{
        for (unsigned i = 0; i < 16; i++)
                words[i] = read_word(block + 4 * i);
        for (unsigned i = 16; i < 64; i++) {
                uint32_t a = words[i - 15], b = words[i - 2];

                words[i] = words[i - 16] + words[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
                           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
        }
}

/* One round; the caller rotates the names of the eight words instead of the words. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                           \
        do {                                                                                       \
                uint32_t first = (h) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +            \
                                 ((g) ^ ((e) & ((f) ^ (g)))) + constants[i] + words[i];            \
                                                                                                   \
                (d) += first;                                                                      \
                (h) = first + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +                     \
                      (((a) & (b)) | ((c) & ((a) | (b))));                                         \
        } while (0)

static void add_block(uint32_t state[8], const uint8_t *block)
{
        uint32_t words[64];
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5],
                 g = state[6], h = state[7];

        expand(block, words);
        for (unsigned i = 0; i < 64; i += 8) {
                ROUND(a, b, c, d, e, f, g, h, i);
                ROUND(h, a, b, c, d, e, f, g, i + 1);
                ROUND(g, h, a, b, c, d, e, f, i + 2);
                ROUND(f, g, h, a, b, c, d, e, i + 3);
                ROUND(e, f, g, h, a, b, c, d, i + 4);
                ROUND(d, e, f, g, h, a, b, c, i + 5);
                ROUND(c, d, e, f, g, h, a, b, i + 6);
                ROUND(b, c, d, e, f, g, h, a, i + 7);
        }
        state[0] += a, state[1] += b, state[2] += c, state[3] += d;
        state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

#ifdef __x86_64__
/*
 * With the instructions of the processor.  They keep the state as ABEF and CDGH, and take the words
 * of four rounds, with their constants added, two rounds at a time.
 */
__attribute__((target("sha,sse4.1"))) static void
add_blocks_fast(uint32_t state[8], const uint8_t *blocks, size_t count)
{
        const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
        __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
        __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
        __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);

        for (; count; count--, blocks += 64) {
                __m128i abef_before = abef, cdgh_before = cdgh, words[4];

                for (unsigned i = 0; i < 16; i++) {
                        __m128i *now = &words[i % 4], sum;

                        if (i < 4) {
                                *now = _mm_loadu_si128((const __m128i *)(blocks + 16 * i));
                                *now = _mm_shuffle_epi8(*now, swap);
                        } else {
                                __m128i before = words[(i + 3) % 4];

                                *now = _mm_sha256msg1_epu32(*now, words[(i + 1) % 4]);
                                *now = _mm_add_epi32(
                                        *now, _mm_alignr_epi8(before, words[(i + 2) % 4], 4));
                                *now = _mm_sha256msg2_epu32(*now, before);
                        }
                        sum = _mm_add_epi32(*now,
                                            _mm_loadu_si128((const __m128i *)(constants + 4 * i)));
                        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
                        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
                }
                abef = _mm_add_epi32(abef, abef_before);
                cdgh = _mm_add_epi32(cdgh, cdgh_before);
        }
        low = _mm_shuffle_epi32(abef, 0x1b);
        high = _mm_shuffle_epi32(cdgh, 0xb1);
        _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
        _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

static bool is_fast(void)
{
        unsigned a, b = 0, c = 0, d;

        return !sha256_plain && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & 1u << 29 &&
               __get_cpuid(1, &a, &b, &c, &d) && c & 1u << 19;
}
#else
static void add_blocks_fast(uint32_t state[8], const uint8_t *blocks, size_t count)
{
        (void)state, (void)blocks, (void)count;
}

static bool is_fast(void)
{
        return false;
}
#endif

static void add_blocks(uint32_t state[8], const uint8_t *blocks, size_t count)
{
        if (count > 1 && is_fast()) {
                add_blocks_fast(state, blocks, count);
                return;
        }
        for (; count; count--, blocks += 64)
                add_block(state, blocks);
}

void sha256_begin(struct sha256 *hash)
{
        *hash = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t count)
{
        const uint8_t *at = bytes;
        size_t used = hash->bytes % 64;

        hash->bytes += count;
        if (used) {
                size_t part = count < 64 - used ? count : 64 - used;

                memcpy(hash->block + used, at, part);
                at += part;
                count -= part;
                if (used + part < 64)
                        return;
                add_block(hash->state, hash->block);
        }
        add_blocks(hash->state, at, count / 64);
        if (count % 64)
                memcpy(hash->block, at + count / 64 * 64, count % 64);
}

void sha256_end(struct sha256 *hash, uint8_t ret_digest[SHA256_BYTES])
{
        uint8_t tail[72] = { 0x80 };
        uint64_t bits = hash->bytes * 8;
        size_t zeros = (hash->bytes % 64 < 56 ? 56 : 120) - hash->bytes % 64;

        for (unsigned i = 0; i < 8; i++)
                tail[zeros + i] = (uint8_t)(bits >> (56 - 8 * i));
        sha256_add(hash, tail, zeros + 8);
        for (unsigned i = 0; i < SHA256_BYTES; i++)
                ret_digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_end_hex(struct sha256 *hash, char ret_hex[SHA256_HEX_BYTES])
{
        static const char digits[] = "0123456789abcdef";
        uint8_t digest[SHA256_BYTES];

        sha256_end(hash, digest);
        for (unsigned i = 0; i < SHA256_BYTES; i++) {
                ret_hex[2 * i] = digits[digest[i] >> 4];
                ret_hex[2 * i + 1] = digits[digest[i] & 15];
        }
        ret_hex[2 * SHA256_BYTES] = '\0';
}
