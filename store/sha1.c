#include "store/sha1.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t rotate(uint32_t word, unsigned bits)
{
        return word << bits | word >> (32 - bits);
}

static void expand(const uint8_t *block, uint32_t words[80])
{
        for (unsigned i = 0; i < 16; i++)
                words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
        for (unsigned i = 16; i < 80; i++)
                words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
}

/* The function and the constant of a round. */
static uint32_t mix(unsigned i, uint32_t b, uint32_t c, uint32_t d)
{
        if (i < 20)
                return ((b & c) | (~b & d)) + 0x5a827999;
        if (i < 40)
                return (b ^ c ^ d) + 0x6ed9eba1;
        if (i < 60)
                return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
        return (b ^ c ^ d) + 0xca62c1d6;
}

static void add_block(uint32_t state[5], const uint8_t *block)
{
        uint32_t words[80], v[5];

        expand(block, words);
        memcpy(v, state, sizeof(v));
        for (unsigned i = 0; i < 80; i++) {
                uint32_t next = rotate(v[0], 5) + mix(i, v[1], v[2], v[3]) + v[4] + words[i];

                v[4] = v[3];
                v[3] = v[2];
                v[2] = rotate(v[1], 30);
                v[1] = v[0];
                v[0] = next;
        }
        for (unsigned i = 0; i < 5; i++)
                state[i] += v[i];
}

void sha1_begin(struct sha1 *hash)
{
        *hash = (struct sha1){ .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                          0xc3d2e1f0 } };
}

void sha1_begin_blob(struct sha1 *hash, uint64_t bytes)
{
        char head[32];
        int n = snprintf(head, sizeof(head), "blob %" PRIu64, bytes);

        sha1_begin(hash);
        sha1_add(hash, head, (size_t)n + 1);
}

void sha1_add(struct sha1 *hash, const void *bytes, size_t count)
{
        const uint8_t *at = bytes;

        while (count) {
                size_t used = hash->bytes % 64, part = count < 64 - used ? count : 64 - used;

                memcpy(hash->block + used, at, part);
                hash->bytes += part;
                at += part;
                count -= part;
                if (used + part == 64)
                        add_block(hash->state, hash->block);
        }
}

void sha1_end_hex(struct sha1 *hash, char ret_hex[SHA1_HEX_BYTES])
{
        static const char digits[] = "0123456789abcdef";
        uint8_t tail[72] = { 0x80 };
        uint64_t bits = hash->bytes * 8;
        size_t zeros = (hash->bytes % 64 < 56 ? 56 : 120) - hash->bytes % 64;

        for (unsigned i = 0; i < 8; i++)
                tail[zeros + i] = (uint8_t)(bits >> (56 - 8 * i));
        sha1_add(hash, tail, zeros + 8);
        for (unsigned i = 0; i < 40; i++)
                ret_hex[i] = digits[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
        ret_hex[40] = '\0';
}
