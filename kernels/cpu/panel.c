#include "kernels/cpu/panel.h"

#include <assert.h>
#include <string.h>

#include "kernels/blocks.h"
#include "kernels/rows.h"

static void put16(uint8_t *to, uint16_t u)
{
        memcpy(to, &u, sizeof(u));
}

static uint16_t get16(const uint8_t *from)
{
        uint16_t u;

        memcpy(&u, from, sizeof(u));
        return u;
}

static void put32(uint8_t *to, uint32_t u)
{
        memcpy(to, &u, sizeof(u));
}

static uint32_t get32(const uint8_t *from)
{
        uint32_t u;

        memcpy(&u, from, sizeof(u));
        return u;
}

static void put_scale(enum row_type type, uint8_t *to, float scale)
{
        put16(to, type == ROW_MXFP4 ? (uint16_t)(float_bits(scale) >> 16) : float_to_half(scale));
}

static float get_scale(enum row_type type, const uint8_t *from)
{
        return type == ROW_MXFP4 ? bfloat_to_float(get16(from)) : half_to_float(get16(from));
}

/* The dword of a code of low or high bits, and how far up in it they stand. */
static void pair_at(unsigned column, unsigned *ret_quad, unsigned *ret_shift)
{
        *ret_quad = column / 16;
        *ret_shift = 8 * (column % 4) + 2 * (column / 4 % 4);
}

static unsigned fifth_shift(unsigned column)
{
        return 8 * (column % 4) + column / 4;
}

/* 32 codes of a row, whose dwords are SLAB_QUADS apart. */
static void low_put(const struct slab *s, uint8_t *to, const uint8_t *codes)
{
        uint32_t pairs[2] = { 0, 0 };
        unsigned quad, shift;

        for (unsigned i = 0; i < 32 && s->low == LOW_BYTES; i++)
                to[i / 4 * SLAB_QUADS + i % 4] = codes[i];
        for (unsigned i = 0; i < 16 && s->low == LOW_NIBBLES; i++)
                to[i / 4 * SLAB_QUADS + i % 4] =
                        (uint8_t)((codes[i] & 15) | (codes[i + 16] & 15) << 4);
        if (s->low != LOW_PAIRS)
                return;
        for (unsigned i = 0; i < 32; i++) {
                pair_at(i, &quad, &shift);
                pairs[quad] |= (codes[i] & 3u) << shift;
        }
        put32(to, pairs[0]);
        put32(to + SLAB_QUADS, pairs[1]);
}

static void high_put(const struct slab *s, uint8_t *to, const uint8_t *codes)
{
        const unsigned above = s->low == LOW_PAIRS ? 2 : 4;
        uint32_t pairs[2] = { 0, 0 }, fifths = 0;
        unsigned quad, shift;

        for (unsigned i = 0; i < 32; i++) {
                pair_at(i, &quad, &shift);
                pairs[quad] |= (codes[i] >> above & 3u) << shift;
                fifths |= (codes[i] >> above & 1u) << fifth_shift(i);
        }
        if (s->high == HIGH_FIFTHS)
                put32(to, fifths);
        if (s->high == HIGH_PAIRS) {
                put32(to, pairs[0]);
                put32(to + SLAB_QUADS, pairs[1]);
        }
}

static void codes_get(const struct slab *s, const uint8_t *from, uint8_t *ret_codes)
{
        const uint8_t *more = from + slab_low_bytes(s);
        const unsigned above = s->low == LOW_PAIRS ? 2 : 4;
        unsigned quad, shift, code;

        for (unsigned i = 0; i < 32; i++) {
                pair_at(i, &quad, &shift);
                if (s->low == LOW_BYTES)
                        code = from[i / 4 * SLAB_QUADS + i % 4];
                else if (s->low == LOW_NIBBLES)
                        code = from[i / 4 % 4 * SLAB_QUADS + i % 4] >> i / 16 * 4 & 15;
                else
                        code = get32(from + quad * SLAB_QUADS) >> shift & 3;
                if (s->high == HIGH_FIFTHS)
                        code |= (get32(more) >> fifth_shift(i) & 1) << above;
                if (s->high == HIGH_PAIRS)
                        code |= (get32(more + quad * SLAB_QUADS) >> shift & 3) << above;
                ret_codes[i] = (uint8_t)code;
        }
}

static void six_bits_put(uint8_t *to, const struct block *b)
{
        uint8_t six[16];

        memcpy(six, b->scales, 8);
        memcpy(six + 8, b->leasts, 8);
        for (unsigned w = 0; w < 3; w++) {
                uint32_t dword = (six[15] >> 2 * w & 3u) << 30;

                for (unsigned i = 0; i < 5; i++)
                        dword |= (uint32_t)six[w * 5 + i] << 6 * i;
                put32(to + w * SLAB_QUADS, dword);
        }
}

static void six_bits_get(const uint8_t *from, struct block *b)
{
        uint8_t six[16] = { 0 };

        for (unsigned w = 0; w < 3; w++) {
                uint32_t dword = get32(from + w * SLAB_QUADS);

                for (unsigned i = 0; i < 5; i++)
                        six[w * 5 + i] = dword >> 6 * i & 63;
                six[15] |= (uint8_t)(dword >> 30 << 2 * w);
        }
        memcpy(b->scales, six, 8);
        memcpy(b->leasts, six + 8, 8);
}

static void slab_put(enum row_type type, uint8_t *slab, uint32_t row, const struct block *b)
{
        const struct slab *s = &slabs[type];
        uint8_t *to = slab + slab_runs_at(s), *codes = slab + slab_codes_at(s) + row * 4;

        put_scale(type, slab + row * 2, b->scale);
        if (s->has_leasts)
                put_scale(type, slab + SLAB_SCALES + row * 2, b->least);
        if (s->runs == RUNS_SIX_BITS)
                six_bits_put(to + row * 4, b);
        for (unsigned i = 0; i < 16 && s->runs == RUNS_SIGNED; i++)
                to[i * PANEL + row] = (uint8_t)b->scales[i];
        for (unsigned i = 0; i < 16 && s->runs == RUNS_HALVES; i++)
                to[i * PANEL + row] = (uint8_t)(b->scales[i] | b->leasts[i] << 4);
        for (unsigned i = 0; i < s->columns; i += 32, codes += slab_code_bytes(s)) {
                low_put(s, codes, b->codes + i);
                high_put(s, codes + slab_low_bytes(s), b->codes + i);
        }
}

static void slab_get(enum row_type type, const uint8_t *slab, uint32_t row, struct block *b)
{
        const struct slab *s = &slabs[type];
        const uint8_t *from = slab + slab_runs_at(s), *codes = slab + slab_codes_at(s) + row * 4;

        b->scale = get_scale(type, slab + row * 2);
        b->least = s->has_leasts ? get_scale(type, slab + SLAB_SCALES + row * 2) : 0;
        memset(b->scales, 1, sizeof(b->scales));
        memset(b->leasts, s->has_leasts, sizeof(b->leasts));
        if (s->runs == RUNS_SIX_BITS)
                six_bits_get(from + row * 4, b);
        for (unsigned i = 0; i < 16 && s->runs == RUNS_SIGNED; i++)
                b->scales[i] = (int8_t)from[i * PANEL + row];
        for (unsigned i = 0; i < 16 && s->runs == RUNS_HALVES; i++) {
                b->scales[i] = from[i * PANEL + row] & 15;
                b->leasts[i] = from[i * PANEL + row] >> 4;
        }
        for (unsigned i = 0; i < s->columns; i += 32, codes += slab_code_bytes(s))
                codes_get(s, codes, b->codes + i);
}

void panel_put(enum row_type type, uint8_t *panel, uint32_t row, uint32_t columns,
               const uint8_t *file_row)
{
        const struct block_format *format = block_format(type);
        const size_t number = type == ROW_F32 ? 4 : 2;
        struct block b;

        assert(row < PANEL);
        if (format) {
                for (uint32_t k = 0; k < columns; k += format->numbers) {
                        format->take(file_row, &b);
                        slab_put(type, panel, row, &b);
                        file_row += format->bytes;
                        panel += slabs[type].bytes;
                }
                return;
        }
        for (size_t k = 0; k < columns; k++) {
                size_t at =
                        type == ROW_BF16 ? k / 2 * 2 * PANEL + row * 2 + k % 2 : k * PANEL + row;

                memcpy(panel + at * number, file_row + k * number, number);
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
                        slab_get(type, panel, row, &b);
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
