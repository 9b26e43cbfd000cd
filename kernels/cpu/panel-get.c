/* Rows of panels as floats: what a product's weights mean, for embeddings and tests. */
#include "kernels/cpu/panel.h"

#include <assert.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/convert.h"

static uint16_t get16(const uint8_t *from)
{
        uint16_t u;

        memcpy(&u, from, sizeof(u));
        return u;
}

static uint32_t get32(const uint8_t *from)
{
        uint32_t u;

        memcpy(&u, from, sizeof(u));
        return u;
}

static float get_scale(enum row_type type, const uint8_t *from)
{
        float d = type == ROW_NVFP4   ? bits_float(get32(from))
                  : type == ROW_MXFP4 ? bfloat_to_float(get16(from))
                                      : half_to_float(get16(from));

        return d / (float)(1u << slabs[type].halvings);
}

/* Gets the codes of a row's block of 32 columns. */
static void get_codes(const struct slab *s, const uint8_t *block, uint8_t *ret_codes)
{
        const uint8_t *low = block + slab_low_at(s);
        const uint32_t above = s->low == LOW_PAIRS ? 2 : 4;

        for (uint32_t quad = 0; quad < 8; quad++) {
                uint32_t half = quad / 4, j = quad % 4, codes;
                const uint8_t *high = block + slab_high_at(s, half);

                if (s->low == LOW_BYTES)
                        codes = get32(low + quad * SLAB_QUADS);
                else if (s->low == LOW_NIBBLES)
                        codes = get32(low + j * SLAB_QUADS) >> half * 4 & 0x0f0f0f0f;
                else
                        codes = get32(low + half * SLAB_QUADS) >> 2 * j & 0x03030303;
                if (s->high == HIGH_FIFTHS)
                        codes |= (get32(high) >> quad & 0x01010101) << above;
                if (s->high == HIGH_PAIRS)
                        codes |= (get32(high) >> 2 * j & 0x03030303) << above;
                memcpy(ret_codes + quad * 4, &codes, sizeof(codes));
        }
}

static void get_six_bits(const uint8_t *from, struct block *b)
{
        uint8_t six[16] = { 0 };

        for (uint32_t w = 0; w < 3; w++) {
                uint32_t dword = get32(from + w * SLAB_QUADS);

                for (uint32_t i = 0; i < 5; i++)
                        six[w * 5 + i] = dword >> 6 * i & 63;
                six[15] |= (uint8_t)(dword >> 30 << 2 * w);
        }
        memcpy(b->scales, six, 8);
        memcpy(b->mins, six + 8, 8);
}

static void get_e4m3(const uint8_t *slab, uint32_t row, struct block *b)
{
        b->scale = bits_float(get32(slab + row * 4));
        b->min = 0;
        b->scales[0] = 1;
        b->mins[0] = 0;
        for (uint32_t i = 0; i < 128; i++)
                b->codes[i] = slab[E4M3_CODES + i * PANEL + row];
}

/* Unpacks the byte of a run of 16 columns. */
static void get_run(const struct slab *s, uint8_t byte, uint32_t run, struct block *b)
{
        b->scales[run] = s->runs == RUNS_HALVES ? byte & 15 : (int8_t)byte;
        if (s->runs == RUNS_HALVES)
                b->mins[run] = byte >> 4;
}

static void get_block(enum row_type type, const uint8_t *slab, uint32_t row, struct block *b)
{
        const struct slab *s = &slabs[type];
        const uint8_t *blocks = slab + slab_blocks_at(s);

        if (type == ROW_F8_E4M3) {
                get_e4m3(slab, row, b);
                return;
        }
        b->scale = get_scale(type, slab + row * (type == ROW_NVFP4 ? 4 : 2));
        b->min = s->has_mins ? get_scale(type, slab + SLAB_SCALES + row * 2) : 0;
        memset(b->scales, 1, sizeof(b->scales));
        memset(b->mins, s->has_mins, sizeof(b->mins));
        if (s->runs == RUNS_SIX_BITS)
                get_six_bits(slab + slab_runs_at(s) + row * 4, b);
        for (uint32_t run = 0; run < 8 && s->runs == RUNS_WHOLE; run++)
                b->scales[run] = (int8_t)slab[slab_runs_at(s) + run * PANEL + row];
        for (uint32_t i = 0; i < s->columns / 32u; i++, blocks += slab_block_bytes(s)) {
                for (uint32_t half = 0; half < 2 && s->runs >= RUNS_SIGNED; half++)
                        get_run(s, blocks[half * PANEL + row], 2 * i + half, b);
                get_codes(s, blocks + row * 4, b->codes + i * 32);
        }
}

void panel_get(enum row_type type, const uint8_t *panel, uint32_t row, uint32_t columns,
               float *ret_floats)
{
        const struct block_format *format = block_format(type);
        struct block b;

        assert(row < PANEL);
        if (format) {
                for (uint32_t k = 0; k < columns;
                     k += format->numbers, panel += slabs[type].bytes) {
                        get_block(type, panel, row, &b);
                        block_means(format, &b, ret_floats + k);
                }
                return;
        }
        for (size_t k = 0; k < columns; k++) {
                if (type == ROW_F32)
                        ret_floats[k] = bits_float(get32(panel + (k * PANEL + row) * 4));
                else if (type == ROW_F16)
                        ret_floats[k] = half_to_float(get16(panel + (k * PANEL + row) * 2));
                else
                        ret_floats[k] = bfloat_to_float(
                                get16(panel + (k / 2 * PANEL + row) * 4 + k % 2 * 2));
        }
}
