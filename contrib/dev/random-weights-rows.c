#include "contrib/dev/random-weights-rows.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/convert.h"

#define POOL     ((size_t)4 << 20) /* bytes; a row may have half of them */
#define POOLS    24u
#define MEASURED 256u /* blocks that are measured, to see how large numbers are at a scale of 1 */
#define MINUS    0x8000u

#define IN_FOURTHS (-2) /* a scale that is in the upper halves of four bytes: IQ1_M */

/*
 * Where a block has its scale and its scale of least values, both as halves.  Codes are taken at
 * random, from 0 to some 2^n - 1.  If the format means a code less 2^(n-1), the mean of the codes
 * is not quite 0: scales of either sign correct that.  If it means a code less a least value, that
 * value is half of the largest code.
 */
struct form {
        uint32_t gguf;
        int16_t scale_at, least_at; /* -1: none */
        float least;                /* for a scale of 1 */
        bool either_sign;
        void (*mend)(uint8_t *block);
};

struct pool {
        enum row_type type;
        double deviation;
        uint8_t *bytes;
};

static struct pool pools[POOLS];
static uint32_t pool_count;

/* splitmix64 */
uint64_t dice_next(uint64_t *dice)
{
        uint64_t z = (*dice += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

double dice_unit(uint64_t *dice)
{
        return ((double)(dice_next(dice) >> 40) - 8388607.5) / 8388608.0;
}

/* ---- blocks ---- */

/* Quantisers do not write -128, and some kernels cannot multiply it. */
static void mend_bytes(uint8_t *block)
{
        for (unsigned i = 2; i < 34; i++)
                if (block[i] == 0x80)
                        block[i] = 0x81;
}

static void mend_exponent(uint8_t *block)
{
        block[0] = 128;
}

/* The least values of runs are equal to their scales: see take_runs() of kernels/blocks.c. */
static void mend_runs(uint8_t *block)
{
        memcpy(block + 8, block + 4, 4);
        for (unsigned i = 12; i < 16; i++)
                block[i] = (uint8_t)(block[i] & 15) * 17;
}

static void mend_halves(uint8_t *block)
{
        for (unsigned i = 0; i < 16; i++)
                block[i] = (uint8_t)(block[i] & 15) * 17;
}

/* Quantisers write 0, 1 and 2: each 3 becomes 1, which means 0. */
static void mend_trits(uint8_t *block)
{
        for (unsigned i = 0; i < 64; i++)
                block[i] &= (uint8_t) ~((block[i] & block[i] >> 1 & 0x55) << 1);
}

static const struct form forms[ROW_TYPE_N] = {
        [ROW_F32] = { 0, -1, -1 },
        [ROW_F16] = { 1, -1, -1 },
        [ROW_BF16] = { 30, -1, -1 },
        [ROW_Q4_0] = { 2, 0, -1, 0, true },
        [ROW_Q4_1] = { 3, 0, 2, -7.5f },
        [ROW_Q5_0] = { 6, 0, -1, 0, true },
        [ROW_Q5_1] = { 7, 0, 2, -15.5f },
        [ROW_Q8_0] = { 8, 0, -1, 0, false, mend_bytes },
        [ROW_Q2_K] = { 10, 80, 82, 1.5f, false, mend_halves },
        [ROW_Q3_K] = { 11, 108, -1 },
        [ROW_Q4_K] = { 12, 0, 2, 7.5f, false, mend_runs },
        [ROW_Q5_K] = { 13, 0, 2, 15.5f, false, mend_runs },
        [ROW_Q6_K] = { 14, 208, -1 },
        [ROW_IQ4_NL] = { 20, 0, -1, 0, true },
        [ROW_MXFP4] = { 39, -1, -1, 0, false, mend_exponent },
        [ROW_IQ4_XS] = { 23, 0, -1, 0, true },
        [ROW_IQ3_XXS] = { 18, 0, -1, 0, true },
        [ROW_IQ3_S] = { 21, 0, -1, 0, true },
        [ROW_IQ2_XXS] = { 16, 0, -1, 0, true },
        [ROW_IQ2_XS] = { 17, 0, -1, 0, true },
        [ROW_IQ2_S] = { 22, 0, -1, 0, true },
        [ROW_IQ1_S] = { 19, 0, -1, 0, true },
        [ROW_IQ1_M] = { 29, IN_FOURTHS, -1, 0, true },
        [ROW_TQ1_0] = { 34, 52, -1, 0, true },
        [ROW_TQ2_0] = { 35, 64, -1, 0, true, mend_trits },
};

static void put_half(uint8_t *block, int at, uint16_t half)
{
        if (at == IN_FOURTHS)
                for (int i = 0; i < 4; i++)
                        block[49 + i * 2] =
                                (uint8_t)((block[49 + i * 2] & 15) | (half >> i * 4 & 15) << 4);
        if (at < 0)
                return;
        block[at] = (uint8_t)half;
        block[at + 1] = (uint8_t)(half >> 8);
}

static void scale_block(const struct form *form, uint8_t *block, double scale, uint16_t sign)
{
        put_half(block, form->scale_at, float_to_half((float)scale) | sign);
        put_half(block, form->least_at, float_to_half((float)scale * form->least));
}

/* The root mean square of the numbers of these blocks. */
static double measure(enum row_type type, const uint8_t *blocks)
{
        const struct block_format *format = block_format(type);
        float numbers[BLOCK_NUMBERS_MAX];
        double sum = 0;

        for (unsigned b = 0; b < MEASURED; b++) {
                block_to_floats(format, blocks + (size_t)b * format->bytes, numbers);
                for (unsigned i = 0; i < format->numbers; i++)
                        sum += (double)numbers[i] * (double)numbers[i];
        }
        return sqrt(sum / (MEASURED * (double)format->numbers));
}

static void fill_blocks(struct pool *p, uint64_t *dice)
{
        const struct form *form = &forms[p->type];
        size_t bytes = block_format(p->type)->bytes;
        double scale = 1;

        for (int sized = 0; sized < 2; sized++) {
                for (uint8_t *b = p->bytes; b + bytes <= p->bytes + POOL; b += bytes) {
                        if (!sized && form->mend)
                                form->mend(b);
                        scale_block(form, b, scale,
                                    form->either_sign && sized && dice_next(dice) >> 63 ? MINUS
                                                                                        : 0);
                }
                scale = p->deviation / measure(p->type, p->bytes);
        }
        if (p->type == ROW_MXFP4)
                for (uint8_t *b = p->bytes; b + bytes <= p->bytes + POOL; b += bytes)
                        b[0] = (uint8_t)(b[0] + (int)lround(log2(scale)));
}

/* ---- numbers ---- */

static void fill_numbers(struct pool *p, uint64_t *dice)
{
        /* The distribution is uniform, which is random enough. */
        double most = p->deviation * sqrt(3.0);
        size_t bytes = p->type == ROW_F32 ? 4 : 2;

        for (uint8_t *at = p->bytes; at + bytes <= p->bytes + POOL; at += bytes) {
                float number = (float)(dice_unit(dice) * most);
                uint32_t bits = p->type == ROW_F16   ? float_to_half(number)
                                : p->type == ROW_F32 ? float_bits(number)
                                                     : float_bits(number) >> 16;

                for (size_t i = 0; i < bytes; i++)
                        at[i] = (uint8_t)(bits >> 8 * i);
        }
}

/* ---- pools ---- */

static const struct pool *pool(enum row_type type, double deviation)
{
        struct pool *p = pools;
        uint64_t dice = type;

        while (p < pools + pool_count && (p->type != type || p->deviation != deviation))
                p++;
        if (p < pools + pool_count)
                return p;
        assert(pool_count < POOLS);
        pool_count++;
        *p = (struct pool){ type, deviation, malloc(POOL) };
        if (!p->bytes) {
                perror("random-weights");
                exit(1);
        }
        if (!block_format(type)) {
                fill_numbers(p, &dice);
                return p;
        }
        for (size_t at = 0; at < POOL; at += 8) {
                uint64_t bits = dice_next(&dice);

                for (size_t i = 0; i < 8; i++)
                        p->bytes[at + i] = (uint8_t)(bits >> 8 * i);
        }
        fill_blocks(p, &dice);
        return p;
}

bool random_weights_has(enum row_type type)
{
        return type != ROW_F8_E4M3 && type != ROW_NVFP4;
}

uint32_t random_weights_gguf_type(enum row_type type)
{
        return forms[type].gguf;
}

const void *random_weights_row(enum row_type type, double deviation, uint32_t columns,
                               uint64_t *dice)
{
        const struct block_format *format = block_format(type);
        size_t unit = row_bytes(type, format ? format->numbers : 1);
        size_t bytes = row_bytes(type, columns), spare = (POOL - bytes) / unit;

        assert(bytes && bytes <= POOL / 2);
        return pool(type, deviation)->bytes + dice_next(dice) % spare * unit;
}
