#include "kernels/blocks-iq.h"

#include <string.h>

#include "kernels/block-grids.h"
#include "kernels/convert.h"

static uint16_t u16_at(const uint8_t *at)
{
        uint16_t u;

        memcpy(&u, at, sizeof(u));
        return u;
}

static uint32_t u32_at(const uint8_t *at)
{
        uint32_t u;

        memcpy(&u, at, sizeof(u));
        return u;
}

static void begin(struct block *b, uint16_t half, float factor)
{
        b->scale = half_to_float(half) * factor;
        b->min = 0;
        memset(b->mins, 0, sizeof(b->mins));
}

/* All scales are odd: 2 n + 1. */
static int8_t odd(unsigned n)
{
        return (int8_t)(2 * n + 1);
}

/* The signs of eight numbers, of which seven are stored: the number of ones is even. */
static unsigned even_signs(unsigned seven)
{
        seven &= 127;
        return seven | (unsigned)__builtin_parity(seven) << 7;
}

/* The codes of an entry. Each gets one more bit, its own bit of `upper`. */
static void put_fours(uint8_t *codes, uint16_t entry, unsigned upper)
{
        for (unsigned i = 0; i < 4; i++)
                codes[i] = (uint8_t)((entry >> 4 * i & 7) | (upper >> i & 1) << 3);
}

static void put_eights(uint8_t *codes, uint16_t entry, unsigned upper)
{
        for (unsigned i = 0; i < 8; i++)
                codes[i] = (uint8_t)((entry >> 2 * i & 3) | (upper >> i & 1) << 2);
}

/*
 * scale | 64 indexes | eight dwords: four signs of seven bits, and a scale in the upper four bits
 */
void block_iq3_xxs(const uint8_t *from, struct block *b)
{
        begin(b, u16_at(from), 0.5f);
        for (unsigned run = 0; run < 8; run++) {
                uint32_t dword = u32_at(from + 66 + run * 4);

                b->scales[run] = odd(dword >> 28);
                for (unsigned i = 0; i < 8; i++)
                        put_fours(b->codes + run * 32 + i * 4, grid_iq3_xxs[from[2 + run * 8 + i]],
                                  even_signs(dword >> i / 2 * 7) >> i % 2 * 4);
        }
}

/*
 * scale | 64 bytes, the lower eight bits of indexes | 8 bytes, their ninth bits | 32 bytes of signs
 * | 4 bytes of eight scales
 */
void block_iq3_s(const uint8_t *from, struct block *b)
{
        begin(b, u16_at(from), 1);
        for (unsigned run = 0; run < 8; run++)
                b->scales[run] = odd(from[106 + run / 2] >> run % 2 * 4 & 15);
        for (unsigned i = 0; i < 64; i++) {
                unsigned index = from[2 + i] | (from[66 + i / 8] >> i % 8 & 1u) << 8;

                put_fours(b->codes + i * 4, grid_iq3_s[index], from[74 + i / 2] >> i % 2 * 4);
        }
}

/*
 * scale | eight times: four indexes, then a dword: four signs of seven bits, and a scale in the
 * upper four bits
 */
void block_iq2_xxs(const uint8_t *from, struct block *b)
{
        begin(b, u16_at(from), 0.125f);
        for (unsigned run = 0; run < 8; run++) {
                const uint8_t *at = from + 2 + run * 8;
                uint32_t dword = u32_at(at + 4);

                b->scales[run] = odd(dword >> 28);
                for (unsigned i = 0; i < 4; i++)
                        put_eights(b->codes + run * 32 + i * 8, grid_iq2_xxs[at[i]],
                                   even_signs(dword >> i * 7));
        }
}

static void take_scales(const uint8_t *from, struct block *b)
{
        for (unsigned run = 0; run < 16; run++)
                b->scales[run] = odd(from[run / 2] >> run % 2 * 4 & 15);
}

/* scale | 32 words: an index of nine bits, and signs of seven bits | 8 bytes of sixteen scales */
void block_iq2_xs(const uint8_t *from, struct block *b)
{
        begin(b, u16_at(from), 0.125f);
        take_scales(from + 66, b);
        for (unsigned i = 0; i < 32; i++) {
                unsigned word = u16_at(from + 2 + i * 2);

                put_eights(b->codes + i * 8, grid_iq2_xs[word & 511], even_signs(word >> 9));
        }
}

/*
 * scale | 32 bytes, the lower eight bits of indexes | 32 bytes of signs | 8 bytes, the upper two
 * bits of indexes | 8 bytes of sixteen scales
 */
void block_iq2_s(const uint8_t *from, struct block *b)
{
        begin(b, u16_at(from), 0.125f);
        take_scales(from + 74, b);
        for (unsigned i = 0; i < 32; i++) {
                unsigned index = from[2 + i] | (from[66 + i / 4] >> i % 4 * 2 & 3u) << 8;

                put_eights(b->codes + i * 8, grid_iq2_s[index], from[34 + i]);
        }
}

/*
 * scale | 32 bytes, the lower eight bits of indexes | 8 words: the upper three bits of four
 * indexes, a scale of three bits, and whether 1/8 is subtracted
 */
void block_iq1_s(const uint8_t *from, struct block *b)
{
        begin(b, u16_at(from), 0.125f);
        for (unsigned run = 0; run < 8; run++) {
                unsigned word = u16_at(from + 34 + run * 2);

                b->scales[run] = odd(word >> 12 & 7);
                for (unsigned i = 0; i < 4; i++) {
                        unsigned index = from[2 + run * 4 + i] | (word >> i * 3 & 7) << 8;

                        put_eights(b->codes + run * 32 + i * 8, grid_iq1[index],
                                   word >> 15 ? 255 : 0);
                }
        }
}

uint16_t block_iq1_m_scale(const uint8_t *from)
{
        unsigned half = 0;

        for (unsigned i = 0; i < 4; i++)
                half |= (u16_at(from + 48 + i * 2) >> 12 & 15u) << i * 4;
        return (uint16_t)half;
}

/*
 * 32 bytes, the lower eight bits of indexes | 16 bytes, four bits for each index: its upper three
 * bits, and whether 1/8 is subtracted | 4 words: four scales of three bits, and four bits of the
 * block's scale
 */
void block_iq1_m(const uint8_t *from, struct block *b)
{
        begin(b, block_iq1_m_scale(from), 0.125f);
        for (unsigned run = 0; run < 16; run++)
                b->scales[run] = odd(u16_at(from + 48 + run / 4 * 2) >> run % 4 * 3 & 7);
        for (unsigned i = 0; i < 32; i++) {
                unsigned bits = from[32 + i / 2] >> i % 2 * 4, index = from[i] | (bits & 7) << 8;

                put_eights(b->codes + i * 8, grid_iq1[index], bits & 8 ? 255 : 0);
        }
}
