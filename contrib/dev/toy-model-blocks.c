#include "contrib/dev/toy-model-blocks.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

uint16_t block_half(float f)
{
        uint32_t u, sign, magnitude;

        memcpy(&u, &f, sizeof(u));
        sign = u >> 16 & 0x8000;
        magnitude = u & 0x7fffffff;
        if (magnitude > 0x7f800000)
                return 0x7e00;
        if (magnitude < 0x38800000) { /* below 2^-14, a half counts in units of 2^-24 */
                double units = (double)(f < 0 ? -f : f) * 16777216.0;
                uint32_t whole = (uint32_t)units;
                double rest = units - whole;

                return (uint16_t)(sign | (whole + (rest > 0.5 || (rest == 0.5 && (whole & 1)))));
        }
        magnitude -= (127 - 15) << 23;
        return (uint16_t)(sign | ((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

static void put_half(uint8_t *to, double number)
{
        uint16_t half = block_half((float)number);

        to[0] = (uint8_t)half;
        to[1] = (uint8_t)(half >> 8);
}

/* The step of a number on a scale of `top` + 1 steps. */
static uint8_t step_of(double number, double least, double scale, int top)
{
        double place = scale > 0 ? (number - least) / scale + 0.5 : 0;

        return (uint8_t)(place < 0 ? 0 : place > top ? top : place);
}

/* Codes are 0 .. 2 zero - 1, and the code `zero` means 0; returns the scale. */
static double around_zero(const double *numbers, uint32_t count, int zero, uint8_t *codes)
{
        double most = 0, scale;

        for (uint32_t i = 0; i < count; i++)
                most = fmax(most, fabs(numbers[i]));
        scale = most / (zero - 1);
        for (uint32_t i = 0; i < count; i++)
                codes[i] = scale > 0 ? step_of(numbers[i], -zero * scale, scale, 2 * zero - 1)
                                     : (uint8_t)zero;
        return scale;
}

/* Codes are 0 .. top, counted from the least number, which is 0 or below. */
static double above_least(const double *numbers, uint32_t count, int top, uint8_t *codes,
                          double *ret_least)
{
        double least = 0, most = 0, scale;

        for (uint32_t i = 0; i < count; i++) {
                least = fmin(least, numbers[i]);
                most = fmax(most, numbers[i]);
        }
        scale = (most - least) / top;
        for (uint32_t i = 0; i < count; i++)
                codes[i] = step_of(numbers[i], least, scale, top);
        *ret_least = least;
        return scale;
}

/* Codes are the indices of the nearest values of `table`, times scale; a table ends with its
 * largest. */
static void in_table(const double *numbers, const int8_t table[16], double scale, uint8_t *codes)
{
        for (uint32_t i = 0; i < 32; i++) {
                codes[i] = 0;
                for (uint8_t c = 1; c < 16; c++)
                        if (fabs(numbers[i] - scale * table[c]) <
                            fabs(numbers[i] - scale * table[codes[i]]))
                                codes[i] = c;
        }
}

static void nibbles(const uint8_t *codes, uint8_t *to)
{
        for (uint32_t i = 0; i < 16; i++)
                to[i] = (uint8_t)((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}

static void fifths(const uint8_t *codes, uint8_t *to)
{
        memset(to, 0, 4);
        for (uint32_t i = 0; i < 32; i++)
                to[i / 8] |= (uint8_t)((codes[i] >> 4 & 1) << i % 8);
}

/* Q4_0, Q5_0, Q8_0 */
static void write_around(const struct block_type *type, const double *numbers, uint8_t *to)
{
        bool has_fifths = type->bytes == 22;
        uint8_t codes[32];

        put_half(to, around_zero(numbers, 32,
                                 type->bytes == 34 ? 128
                                 : has_fifths      ? 16
                                                   : 8,
                                 codes));
        if (type->bytes == 34) {
                for (uint32_t i = 0; i < 32; i++)
                        to[2 + i] = (uint8_t)(codes[i] - 128);
                return;
        }
        if (has_fifths)
                fifths(codes, to + 2);
        nibbles(codes, to + (has_fifths ? 6 : 2));
}

/* Q4_1, Q5_1 */
static void write_above(const struct block_type *type, const double *numbers, uint8_t *to)
{
        bool has_fifths = type->bytes == 24;
        uint8_t codes[32];
        double least;

        put_half(to, above_least(numbers, 32, has_fifths ? 31 : 15, codes, &least));
        put_half(to + 2, least);
        if (has_fifths)
                fifths(codes, to + 4);
        nibbles(codes, to + (has_fifths ? 8 : 4));
}

static const int8_t iq4_table[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113 };

static void write_iq4_nl(const struct block_type *type, const double *numbers, uint8_t *to)
{
        uint8_t codes[32];
        double most = 0;

        (void)type;
        for (uint32_t i = 0; i < 32; i++)
                most = fmax(most, fabs(numbers[i]));
        put_half(to, most / 113);
        in_table(numbers, iq4_table, most / 113, codes);
        nibbles(codes, to + 2);
}

/* All runs have the scale 1, which is stored as 33. */
static void write_iq4_xs(const struct block_type *type, const double *numbers, uint8_t *to)
{
        uint8_t codes[32];
        double most = 0;

        for (uint32_t i = 0; i < 256; i++)
                most = fmax(most, fabs(numbers[i]));
        memset(to, 0, type->bytes);
        put_half(to, most / 113);
        memset(to + 2, 0xaa, 2);
        memset(to + 4, 0x11, 4);
        for (uint32_t run = 0; run < 8; run++) {
                in_table(numbers + run * 32, iq4_table, most / 113, codes);
                nibbles(codes, to + 8 + run * 16);
        }
}

static void write_mxfp4(const struct block_type *type, const double *numbers, uint8_t *to)
{
        /* The values are twice the real ones, and so the scale is half. */
        static const int8_t table[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
        uint8_t codes[32], exponent = 1;
        double most = 0, scale = 0x1p-127;

        (void)type;
        for (uint32_t i = 0; i < 32; i++)
                most = fmax(most, fabs(numbers[i]));
        for (; scale * 12 < most; scale *= 2)
                exponent++;
        to[0] = exponent;
        in_table(numbers, table, scale, codes);
        nibbles(codes, to + 1);
}

/* The byte and the shift at which a number of a block of 256 has `bits` of its code: rows of 32
 * numbers share bytes. */
static void rows_put(uint8_t *to, const uint8_t *codes, unsigned from, unsigned bits)
{
        unsigned share = 8 / bits, mask = (1u << bits) - 1;

        for (unsigned i = 0; i < 256; i++)
                to[i / 32 / share * 32 + i % 32] |=
                        (uint8_t)((codes[i] >> from & mask) << i / 32 % share * bits);
}

/* Q4_K, Q5_K: all runs have the scale 1 and the least value 1, both of six bits. */
static void write_runs(const struct block_type *type, const double *numbers, uint8_t *to)
{
        bool has_fifths = type->bytes == 176;
        uint8_t codes[256];
        double least;

        put_half(to, above_least(numbers, 256, has_fifths ? 31 : 15, codes, &least));
        put_half(to + 2, -least);
        memset(to + 4, 0, type->bytes - 4);
        memset(to + 4, 0x01, 8);
        memset(to + 12, 0x11, 4);
        if (has_fifths)
                rows_put(to + 16, codes, 4, 1);
        rows_put(to + (has_fifths ? 48 : 16), codes, 0, 4);
}

static void write_q2_k(const struct block_type *type, const double *numbers, uint8_t *to)
{
        uint8_t codes[256];
        double least;

        memset(to, 0, type->bytes);
        put_half(to + 80, above_least(numbers, 256, 3, codes, &least));
        put_half(to + 82, -least);
        memset(to, 0x11, 16);
        rows_put(to + 16, codes, 0, 2);
}

/* The scales of runs are 1, which is stored as 33. */
static void write_q3_k(const struct block_type *type, const double *numbers, uint8_t *to)
{
        uint8_t codes[256];

        memset(to, 0, type->bytes);
        put_half(to + 108, around_zero(numbers, 256, 4, codes));
        rows_put(to, codes, 2, 1);
        rows_put(to + 32, codes, 0, 2);
        memset(to + 96, 0x11, 8);
        memset(to + 104, 0xaa, 4);
}

/* The lower halves of 64 bytes, then the upper ones, twice. */
static void write_q6_k(const struct block_type *type, const double *numbers, uint8_t *to)
{
        uint8_t codes[256];

        memset(to, 0, type->bytes);
        put_half(to + 208, around_zero(numbers, 256, 32, codes));
        for (unsigned i = 0; i < 256; i++)
                to[i / 128 * 64 + i % 64] |= (uint8_t)((codes[i] & 15) << i / 64 % 2 * 4);
        rows_put(to + 128, codes, 4, 2);
        memset(to + 192, 1, 16);
}

const struct block_type *block_type(const char *name)
{
        static const struct block_type types[] = {
                { "q4_0", 2, 32, 18, write_around },      { "q4_1", 3, 32, 20, write_above },
                { "q5_0", 6, 32, 22, write_around },      { "q5_1", 7, 32, 24, write_above },
                { "q8_0", 8, 32, 34, write_around },      { "q2_k", 10, 256, 84, write_q2_k },
                { "q3_k", 11, 256, 110, write_q3_k },     { "q4_k", 12, 256, 144, write_runs },
                { "q5_k", 13, 256, 176, write_runs },     { "q6_k", 14, 256, 210, write_q6_k },
                { "iq4_nl", 20, 32, 18, write_iq4_nl },   { "mxfp4", 39, 32, 17, write_mxfp4 },
                { "iq4_xs", 23, 256, 136, write_iq4_xs },
        };

        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
                if (!strcmp(name, types[i].name))
                        return &types[i];
        return NULL;
}
