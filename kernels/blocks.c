#include "kernels/blocks.h"

#include <stddef.h>
#include <string.h>

#include "kernels/blocks-iq.h"
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

/*
 * scale | upper two bits of eight scales | lower four bits of eight scales | 128 bytes
 *
 * Scales are six bits and stored 32 too large. The first one is in the lowest bits.
 */
static void iq4_xs(const uint8_t *from, struct block *b)
{
        b->scale = half_at(from);
        b->min = 0;
        memset(b->mins, 0, sizeof(b->mins));
        for (unsigned i = 0; i < 8; i++) {
                unsigned low = from[4 + i / 2] >> i % 2 * 4 & 15,
                         high = from[2 + i / 4] >> i % 4 * 2 & 3;

                b->scales[i] = (int8_t)((int)(low | high << 4) - 32);
                take_nibbles(from + 8 + i * 16, b->codes + i * 32);
        }
}

/* 64 bytes | scale */
static void tq2_0(const uint8_t *from, struct block *b)
{
        plain(b, half_at(from + 64));
        memset(b->codes, 0, sizeof(b->codes));
        take_pairs(from, 0, b->codes);
}

/*
 * Digits to the base three, `count` of them in each of `bytes` bytes. A byte is a fraction of 256;
 * its first digit is the whole part of three times that fraction. The first digits of all bytes
 * come first.
 */
static void take_digits(const uint8_t *from, unsigned bytes, unsigned count, uint8_t *codes)
{
        for (unsigned i = 0; i < bytes; i++) {
                uint8_t fraction = from[i];

                for (unsigned digit = 0; digit < count; digit++) {
                        codes[digit * bytes + i] = (uint8_t)(fraction * 3u >> 8);
                        fraction = (uint8_t)(fraction * 3u);
                }
        }
}

/* 48 bytes of five numbers each | 4 bytes of four numbers each | scale */
static void tq1_0(const uint8_t *from, struct block *b)
{
        plain(b, half_at(from + 52));
        take_digits(from, 32, 5, b->codes);
        take_digits(from + 32, 16, 5, b->codes + 160);
        take_digits(from + 48, 4, 4, b->codes + 240);
}

/*
 * scale, a float | 4 scales | 4 times: 8 bytes with codes 0 .. 7 in their lower halves and 8 .. 15
 * in the upper halves. The scales have no sign. The one that would be NaN means 0; if a sign is set
 * beside it, 480. The table holds twice the numbers that the codes mean.
 */
static void nvfp4(const uint8_t *from, struct block *b)
{
        float scale;

        memcpy(&scale, from, sizeof(scale));
        b->scale = scale * 0.5f;
        b->min = 0;
        memset(b->mins, 0, sizeof(b->mins));
        for (unsigned run = 0; run < 4; run++) {
                uint8_t e4m3 = from[4 + run];

                b->scales[run] = e4m3 == 0x7f ? 0 : (int8_t)(e4m3 & 0x7f);
                for (unsigned i = 0; i < 8; i++) {
                        uint8_t byte = from[8 + run * 8 + i];

                        b->codes[run * 16 + i] = byte & 15;
                        b->codes[run * 16 + 8 + i] = byte >> 4;
                }
        }
}

const struct block_format *block_format(enum row_type type)
{
        static const int8_t iq4_table[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113 };
        static const int8_t mxfp4_table[16] = { 0, 1,  2,  3,  4,  6,  8,  12,
                                                0, -1, -2, -3, -4, -6, -8, -12 };
        /* Half of the codebook's numbers; times eight: the codebook's numbers -+ 1/8. */
        static const int8_t iq3_xxs_table[16] = { 2,  6,  10,  14,  18,  22,  26,  31,
                                                  -2, -6, -10, -14, -18, -22, -26, -31 };
        static const int8_t iq3_s_table[16] = { 1,  3,  5,  7,  9,  11,  13,  15,
                                                -1, -3, -5, -7, -9, -11, -13, -15 };
        static const int8_t iq2_table[16] = { 8, 25, 43, 0, -8, -25, -43 };
        static const int8_t iq1_table[16] = { -7, 1, 9, 0, -9, -1, 7 };
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
                [ROW_IQ4_NL] = { 32, 18, 32, iq4_table, 0, q4_0 },
                [ROW_MXFP4] = { 32, 17, 32, mxfp4_table, 0, mxfp4 },
                [ROW_F8_E4M3] = { 128, 132, 128, NULL, 0, f8_e4m3, true },
                [ROW_IQ4_XS] = { 256, 136, 32, iq4_table, 0, iq4_xs },
                [ROW_IQ3_XXS] = { 256, 98, 32, iq3_xxs_table, 0, block_iq3_xxs },
                [ROW_IQ3_S] = { 256, 110, 32, iq3_s_table, 0, block_iq3_s },
                [ROW_IQ2_XXS] = { 256, 66, 32, iq2_table, 0, block_iq2_xxs },
                [ROW_IQ2_XS] = { 256, 74, 16, iq2_table, 0, block_iq2_xs },
                [ROW_IQ2_S] = { 256, 82, 16, iq2_table, 0, block_iq2_s },
                [ROW_IQ1_S] = { 256, 50, 32, iq1_table, 0, block_iq1_s },
                [ROW_IQ1_M] = { 256, 56, 16, iq1_table, 0, block_iq1_m },
                [ROW_TQ1_0] = { 256, 54, 256, NULL, 1, tq1_0 },
                [ROW_TQ2_0] = { 256, 66, 256, NULL, 1, tq2_0 },
                [ROW_NVFP4] = { 64, 40, 16, mxfp4_table, 0, nvfp4, .has_e4m3_scales = true },
        };

        return type < ROW_TYPE_N && formats[type].numbers ? &formats[type] : NULL;
}

float block_run_scale(const struct block_format *format, int8_t scale)
{
        if (!format->has_e4m3_scales)
                return scale;
        return scale == 0x7f ? 480 : e4m3_to_float((uint8_t)scale);
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
                float scale = b->scale * block_run_scale(format, b->scales[first / run]);
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
