#include "kernels/blocks.h"

#include <stddef.h>
#include <string.h>

#include "kernels/convert.h"

static float half_at(const uint8_t *at)
{
        uint16_t half;

        memcpy(&half, at, sizeof(half));
        return half_to_float(half);
}

/* A block with one run and no least value. */
static void plain(struct block *b, float scale)
{
        b->scale = scale;
        b->min = 0;
        b->scales[0] = 1;
        b->mins[0] = 0;
}

/*
 * A block with one run and a value that is added. It is stored negated, because `min` is
 * subtracted.
 */
static void above(struct block *b, float scale, float min)
{
        plain(b, scale);
        b->min = -min;
        b->mins[0] = 1;
}

/* 16 bytes: codes 0 .. 15 in their lower halves, 16 .. 31 in the upper halves */
static void take_nibbles(const uint8_t *from, uint8_t *codes)
{
        for (unsigned i = 0; i < 16; i++) {
                codes[i] = from[i] & 15;
                codes[16 + i] = from[i] >> 4;
        }
}

/* The fifth bits of 32 codes, in four bytes. */
static void take_fifths(const uint8_t *from, uint8_t *codes)
{
        for (unsigned i = 0; i < 32; i++)
                codes[i] |= (uint8_t)((from[i / 8] >> i % 8 & 1) << 4);
}

/* scale | 16 bytes */
static void q4_0(const uint8_t *from, struct block *b)
{
        plain(b, half_at(from));
        take_nibbles(from + 2, b->codes);
}

/* scale | least | 16 bytes */
static void q4_1(const uint8_t *from, struct block *b)
{
        above(b, half_at(from), half_at(from + 2));
        take_nibbles(from + 4, b->codes);
}

/* scale | fifth bits | 16 bytes */
static void q5_0(const uint8_t *from, struct block *b)
{
        plain(b, half_at(from));
        take_nibbles(from + 6, b->codes);
        take_fifths(from + 2, b->codes);
}

/* scale | least | fifth bits | 16 bytes */
static void q5_1(const uint8_t *from, struct block *b)
{
        above(b, half_at(from), half_at(from + 2));
        take_nibbles(from + 8, b->codes);
        take_fifths(from + 4, b->codes);
}

/* scale | 32 signed bytes */
static void q8_0(const uint8_t *from, struct block *b)
{
        plain(b, half_at(from));
        for (unsigned i = 0; i < 32; i++)
                b->codes[i] = from[2 + i] ^ 0x80;
}

/*
 * exponent | 16 bytes. The table holds twice the numbers that the codes mean, and the scale is
 * halved.
 */
static void mxfp4(const uint8_t *from, struct block *b)
{
        unsigned e = from[0];

        /* 2^(e - 128): for the two smallest exponents this is a subnormal float */
        plain(b, bits_float(e < 2 ? 0x200000u << e : (e - 1) << 23));
        take_nibbles(from + 1, b->codes);
}

/* scale, a float | 128 bytes */
static void f8_e4m3(const uint8_t *from, struct block *b)
{
        float scale;

        memcpy(&scale, from, sizeof(scale));
        plain(b, scale);
        memcpy(b->codes, from + sizeof(scale), 128);
}

/*
 * Eight scales and eight least values of six bits, in twelve bytes. The first four of each are
 * the lower six bits of bytes 0 .. 3 and 4 .. 7. The lower four bits of the others are the halves
 * of bytes 8 .. 11. Their upper two bits are the remaining bits of bytes 0 .. 7.
 */
static void take_runs(const uint8_t *packed, struct block *b)
{
        for (unsigned i = 0; i < 4; i++) {
                b->scales[i] = (int8_t)(packed[i] & 63);
                b->mins[i] = packed[4 + i] & 63;
                b->scales[4 + i] = (int8_t)((packed[8 + i] & 15) | packed[i] >> 6 << 4);
                b->mins[4 + i] = (uint8_t)(packed[8 + i] >> 4 | packed[4 + i] >> 6 << 4);
        }
}

/* Eight runs of 32: each 32 bytes hold two runs, in their lower and upper halves. */
static void take_halves(const uint8_t *from, uint8_t *codes)
{
        for (unsigned i = 0; i < 256; i++)
                codes[i] = from[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
}

/* scale | scale of the least values | 12 bytes of runs | 128 bytes */
static void q4_k(const uint8_t *from, struct block *b)
{
        b->scale = half_at(from);
        b->min = half_at(from + 2);
        take_runs(from + 4, b);
        take_halves(from + 16, b->codes);
}

/*
 * The same as q4_k, with 32 bytes of fifth bits before the numbers; each byte has one bit for
 * each run.
 */
static void q5_k(const uint8_t *from, struct block *b)
{
        b->scale = half_at(from);
        b->min = half_at(from + 2);
        take_runs(from + 4, b);
        take_halves(from + 48, b->codes);
        for (unsigned i = 0; i < 256; i++)
                b->codes[i] |= (uint8_t)((from[16 + i % 32] >> i / 32 & 1) << 4);
}

/*
 * 64 bytes: each half of the block has 128 numbers, in four rows of 32 that share the same bytes.
 */
static void take_pairs(const uint8_t *from, unsigned shift, uint8_t *codes)
{
        for (unsigned i = 0; i < 256; i++)
                codes[i] |= (uint8_t)((from[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) << shift);
}

/*
 * 128 bytes of lower four bits | 64 bytes of upper two | 16 signed scales | scale
 *
 * Each half of the block has 128 numbers, in four rows of 32. The first two rows are the lower
 * halves of 64 bytes, the other two the upper halves.
 */
static void q6_k(const uint8_t *from, struct block *b)
{
        b->scale = half_at(from + 208);
        b->min = 0;
        memset(b->mins, 0, sizeof(b->mins));
        memcpy(b->scales, from + 192, sizeof(b->scales));
        for (unsigned i = 0; i < 256; i++)
                b->codes[i] = from[i / 128 * 64 + i % 64] >> i / 64 % 2 * 4 & 15;
        take_pairs(from + 128, 4, b->codes);
}

/*
 * 16 bytes, each with a scale in its lower half and a least value in its upper half | 64 bytes |
 * scale | scale of the least values
 */
static void q2_k(const uint8_t *from, struct block *b)
{
        b->scale = half_at(from + 80);
        b->min = half_at(from + 82);
        for (unsigned i = 0; i < 16; i++) {
                b->scales[i] = from[i] & 15;
                b->mins[i] = from[i] >> 4;
        }
        memset(b->codes, 0, sizeof(b->codes));
        take_pairs(from + 16, 0, b->codes);
}

/*
 * 32 bytes of third bits, each byte with one bit for each group of 32 numbers | 64 bytes of the
 * lower two bits | 12 bytes of scales | scale.
 *
 * Scales are six bits and stored 32 too large. Their lower four bits are the halves of bytes 0 ..
 * 7. Their upper two bits are in bytes 8 .. 11, from the lowest bits up.
 */
static void q3_k(const uint8_t *from, struct block *b)
{
        const uint8_t *packed = from + 96;

        b->scale = half_at(from + 108);
        b->min = 0;
        memset(b->mins, 0, sizeof(b->mins));
        for (unsigned i = 0; i < 16; i++) {
                unsigned low = packed[i % 8] >> i / 8 * 4 & 15,
                         high = packed[8 + i % 4] >> i / 4 * 2 & 3;

                b->scales[i] = (int8_t)((int)(low | high << 4) - 32);
        }
        for (unsigned i = 0; i < 256; i++)
                b->codes[i] = (uint8_t)((from[i % 32] >> i / 32 & 1) << 2);
        take_pairs(from + 32, 0, b->codes);
}

const struct block_format *block_format(enum row_type type)
{
        static const int8_t iq4_nl_table[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                                 1,    13,   25,  38,  53,  69,  89,  113 };
        static const int8_t mxfp4_table[16] = { 0, 1,  2,  3,  4,  6,  8,  12,
                                                0, -1, -2, -3, -4, -6, -8, -12 };
        static const struct block_format formats[ROW_TYPE_N] = {
                [ROW_Q4_0] = { 32, 18, 32, NULL, 8, q4_0 },
                [ROW_Q4_1] = { 32, 20, 32, NULL, 0, q4_1 },
                [ROW_Q5_0] = { 32, 22, 32, NULL, 16, q5_0 },
                [ROW_Q5_1] = { 32, 24, 32, NULL, 0, q5_1 },
                [ROW_Q8_0] = { 32, 34, 32, NULL, 128, q8_0 },
                [ROW_Q2_K] = { 256, 84, 16, NULL, 0, q2_k },
                [ROW_Q3_K] = { 256, 110, 16, NULL, 4, q3_k },
                [ROW_Q4_K] = { 256, 144, 32, NULL, 0, q4_k },
                [ROW_Q5_K] = { 256, 176, 32, NULL, 0, q5_k },
                [ROW_Q6_K] = { 256, 210, 16, NULL, 32, q6_k },
                [ROW_IQ4_NL] = { 32, 18, 32, iq4_nl_table, 0, q4_0 },
                [ROW_MXFP4] = { 32, 17, 32, mxfp4_table, 0, mxfp4 },
                [ROW_F8_E4M3] = { 128, 132, 128, NULL, 0, f8_e4m3, true },
        };

        return type < ROW_TYPE_N && formats[type].numbers ? &formats[type] : NULL;
}

float block_number(const struct block_format *format, uint8_t code)
{
        if (format->is_e4m3)
                return e4m3_to_float(code);
        return format->table ? format->table[code] : (float)(code - format->zero);
}

void block_means(const struct block_format *format, const struct block *b, float *ret_floats)
{
        const unsigned run = format->run;
        const int zero = format->zero;

        for (unsigned first = 0; first < format->numbers; first += run) {
                float scale = b->scale * (float)b->scales[first / run];
                float min = b->min * (float)b->mins[first / run];
                const uint8_t *codes = b->codes + first;

                if (format->table || format->is_e4m3)
                        for (unsigned i = 0; i < run; i++)
                                ret_floats[first + i] =
                                        scale * block_number(format, codes[i]) - min;
                else
                        for (unsigned i = 0; i < run; i++)
                                ret_floats[first + i] = scale * (float)(codes[i] - zero) - min;
        }
}

void block_to_floats(const struct block_format *format, const uint8_t *from, float *ret_floats)
{
        struct block b;

        format->take(from, &b);
        block_means(format, &b, ret_floats);
}
