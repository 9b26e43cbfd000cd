/*
 * Blocks of a file become slabs by moving dwords. Four bytes of a row stay together, so the only
 * work is to shift and mask, four codes at a time. Each function below handles a part of one
 * format's block in a file (`from`), and one row's place in a slab (`to`). The row's dwords in
 * the slab are SLAB_QUADS apart unless the function says otherwise.
 */
#include "kernels/cpu/panel.h"

#include <assert.h>
#include <string.h>

#include "kernels/blocks-iq.h"
#include "kernels/blocks.h"
#include "kernels/convert.h"

#define PANEL_INLINE static inline __attribute__((always_inline))
/* Columns of each row that are moved at a time, so that their cache lines stay in the L1 cache. */
#define STRIPE 32u

PANEL_INLINE void put16(uint8_t *to, uint16_t u)
{
        memcpy(to, &u, sizeof(u));
}

PANEL_INLINE uint16_t get16(const uint8_t *from)
{
        uint16_t u;

        memcpy(&u, from, sizeof(u));
        return u;
}

PANEL_INLINE void put32(uint8_t *to, uint32_t u)
{
        memcpy(to, &u, sizeof(u));
}

PANEL_INLINE uint32_t get32(const uint8_t *from)
{
        uint32_t u;

        memcpy(&u, from, sizeof(u));
        return u;
}

/*
 * 16 bytes with columns 0 .. 15 in their lower halves and 16 .. 31 in the upper halves: copied
 * unchanged
 */
PANEL_INLINE void put_nibbles(uint8_t *to, const uint8_t *from)
{
        for (uint32_t j = 0; j < 4; j++)
                put32(to + j * SLAB_QUADS, get32(from + j * 4));
}

/* 32 bytes with a run in their lower halves (shift 0) or in the upper halves (4) */
PANEL_INLINE void put_halves(uint8_t *to, const uint8_t *from, uint32_t shift)
{
        for (uint32_t j = 0; j < 4; j++) {
                uint32_t first = get32(from + j * 4) >> shift & 0x0f0f0f0f;
                uint32_t second = get32(from + 16 + j * 4) >> shift & 0x0f0f0f0f;

                put32(to + j * SLAB_QUADS, first | second << 4);
        }
}

/*
 * 32 bytes, two bits of each. The dword of the second 16 columns is `apart` bytes after the
 * first.
 */
PANEL_INLINE void put_pairs(uint8_t *to, uint32_t apart, const uint8_t *from, uint32_t shift)
{
        for (uint32_t half = 0; half < 2; half++) {
                uint32_t pairs = 0;

                for (uint32_t j = 0; j < 4; j++)
                        pairs |= (get32(from + half * 16 + j * 4) >> shift & 0x03030303) << 2 * j;
                put32(to + half * apart, pairs);
        }
}

/* 32 bytes, one bit of each */
PANEL_INLINE void put_fifths(uint8_t *to, const uint8_t *from, uint32_t shift)
{
        uint32_t fifths = 0;

        for (uint32_t j = 0; j < 8; j++)
                fifths |= (get32(from + j * 4) >> shift & 0x01010101) << j;
        put32(to, fifths);
}

/*
 * `bits` has one bit for each of 32 columns, in order. The bits of every fourth column go to one
 * byte.
 */
PANEL_INLINE uint32_t fifths_of(uint32_t bits)
{
        uint32_t fifths = 0;

        for (uint32_t i = 0; i < 4; i++) {
                uint32_t x = bits >> i & 0x11111111;

                x = (x | x >> 3) & 0x03030303;
                x = (x | x >> 6) & 0x000f000f;
                x = (x | x >> 12) & 0xff;
                fifths |= x << 8 * i;
        }
        return fifths;
}

/*
 * Twelve bytes of eight scales and eight least values. The first four of each are the lower six
 * bits of bytes 0 .. 3 and 4 .. 7. The lower four bits of the others are the halves of bytes 8 ..
 * 11. Their upper two bits are the remaining bits of bytes 0 .. 7.
 */
PANEL_INLINE void put_six_bits(uint8_t *to, const uint8_t *from)
{
        uint32_t a = get32(from), b = get32(from + 4), c = get32(from + 8);
        uint32_t fours[4] = { a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030),
                              b & 0x3f3f3f3f, (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030) };
        uint8_t six[16];

        memcpy(six, fours, sizeof(six));
        for (uint32_t w = 0; w < 3; w++) {
                uint32_t dword = (six[15] >> 2 * w & 3u) << 30;

                for (uint32_t i = 0; i < 5; i++)
                        dword |= (uint32_t)six[w * 5 + i] << 6 * i;
                put32(to + w * SLAB_QUADS, dword);
        }
}

/*
 * Where a row's byte for the run `i` of 16 columns is. Each block has two such bytes, and `bytes`
 * is the size of a block.
 */
PANEL_INLINE uint8_t *run_byte(uint8_t *first, uint32_t bytes, uint32_t i)
{
        return first + i / 2 * bytes + i % 2 * PANEL;
}

/*
 * Twelve bytes of sixteen scales, stored 32 too large: lower four bits in bytes 0 .. 7, upper two
 * in 8 .. 11.
 */
PANEL_INLINE void put_signed_six_bits(uint8_t *to, uint32_t bytes, const uint8_t *from)
{
        for (uint32_t i = 0; i < 16; i++) {
                uint32_t low = from[i % 8] >> i / 8 * 4 & 15,
                         high = from[8 + i % 4] >> i / 4 * 2 & 3;

                *run_byte(to, bytes, i) = (uint8_t)((low | high << 4) - 32);
        }
}

PANEL_INLINE void put_run_bytes(uint8_t *to, uint32_t bytes, const uint8_t *from)
{
        for (uint32_t i = 0; i < 16; i++)
                *run_byte(to, bytes, i) = from[i];
}

/* 2^(e - 128) as a bfloat: for the two smallest exponents this is subnormal. */
PANEL_INLINE uint16_t scale_of_exponent(uint8_t e)
{
        return (uint16_t)(e < 2 ? 0x20u << e : (e - 1u) << 7);
}

/* A float | 128 codes */
PANEL_INLINE void put_e4m3(uint8_t *slab, uint32_t row, const uint8_t *from)
{
        uint8_t *codes = slab + E4M3_CODES + row;
        bool is_number = true;

        for (uint32_t i = 0; i < 128; i++) {
                uint8_t code = from[4 + i];

                is_number &= (code & 0x7f) != 0x7f;
                codes[i * PANEL] = code;
        }
        put32(slab + row * 4, get32(from));
        put16(slab + E4M3_STARTS + row * 2, is_number ? 0 : 0x7e00);
}

/* Sixteen bits of scales, upper two of each; then four bytes of their lower four bits. */
PANEL_INLINE void put_whole_runs(uint8_t *to, const uint8_t *from)
{
        for (uint32_t i = 0; i < 8; i++) {
                uint32_t low = from[2 + i / 2] >> i % 2 * 4 & 15,
                         high = from[i / 4] >> i % 4 * 2 & 3;

                to[i * PANEL] = (uint8_t)((low | high << 4) - 32);
        }
}

/* Where a file's block has its scale, a half, if only codes and scales of runs are unpacked. */
PANEL_INLINE uint16_t half_of(const enum row_type type, const uint8_t *from)
{
        switch (type) {
        case ROW_IQ1_M:
                return block_iq1_m_scale(from);
        case ROW_TQ1_0:
                return get16(from + 52);
        case ROW_TQ2_0:
                return get16(from + 64);
        default:
                return get16(from);
        }
}

/* A type whose codes are not stored one by one: its block is unpacked first. */
PANEL_INLINE void put_unpacked(const enum row_type type, uint8_t *slab, uint32_t row,
                               const uint8_t *from)
{
        const struct slab *s = &slabs[type];
        uint8_t *runs = slab + slab_runs_at(s) + row, *at = slab + slab_blocks_at(s);
        struct block b;

        block_format(type)->take(from, &b);
        if (type == ROW_NVFP4)
                put32(slab + row * 4, get32(from));
        else
                put16(slab + row * 2, half_of(type, from));
        for (uint32_t run = 0; run < 8 && s->runs == RUNS_WHOLE; run++)
                runs[run * PANEL] = (uint8_t)b.scales[run];
        for (uint32_t i = 0; i < s->columns / 32u; i++, at += slab_block_bytes(s)) {
                const uint8_t *codes = b.codes + i * 32;

                for (uint32_t half = 0; half < 2 && s->runs >= RUNS_SIGNED; half++)
                        at[half * PANEL + row] = (uint8_t)b.scales[2 * i + half];
                if (s->low == LOW_NIBBLES)
                        put_halves(at + slab_low_at(s) + row * 4, codes, 0);
                else
                        put_pairs(at + slab_low_at(s) + row * 4, SLAB_QUADS, codes, 0);
                if (s->high == HIGH_FIFTHS)
                        put_fifths(at + slab_high_at(s, 0) + row * 4, codes, 2);
        }
}

PANEL_INLINE void put_block(const enum row_type type, uint8_t *slab, uint32_t row,
                            const uint8_t *from)
{
        const struct slab *s = &slabs[type];
        const uint32_t bytes = slab_block_bytes(s);
        uint8_t *scale = slab + row * 2, *min = scale + SLAB_SCALES;
        uint8_t *runs = slab + slab_runs_at(s), *block = slab + slab_blocks_at(s);
        uint8_t *low = block + slab_low_at(s) + row * 4;
        uint8_t *high = block + slab_high_at(s, 0) + row * 4;

        switch (type) {
        case ROW_F8_E4M3:
                put_e4m3(slab, row, from);
                break;
        case ROW_Q8_0:
                put16(scale, get16(from));
                for (uint32_t j = 0; j < 8; j++)
                        put32(low + j * SLAB_QUADS, get32(from + 2 + j * 4) ^ 0x80808080);
                break;
        case ROW_Q4_0:
        case ROW_IQ4_NL:
                put16(scale, get16(from));
                put_nibbles(low, from + 2);
                break;
        case ROW_MXFP4:
                put16(scale, scale_of_exponent(from[0]));
                put_nibbles(low, from + 1);
                break;
        case ROW_Q4_1:
                put16(scale, get16(from));
                put16(min, get16(from + 2) ^ 0x8000);
                put_nibbles(low, from + 4);
                break;
        case ROW_Q5_0:
                put16(scale, get16(from));
                put_nibbles(low, from + 6);
                put32(high, fifths_of(get32(from + 2)));
                break;
        case ROW_Q5_1:
                put16(scale, get16(from));
                put16(min, get16(from + 2) ^ 0x8000);
                put_nibbles(low, from + 8);
                put32(high, fifths_of(get32(from + 4)));
                break;
        case ROW_Q4_K:
                put16(scale, get16(from));
                put16(min, get16(from + 2));
                put_six_bits(runs + row * 4, from + 4);
                for (uint32_t run = 0; run < 8; run++)
                        put_halves(low + run * bytes, from + 16 + run / 2 * 32, run % 2 * 4);
                break;
        case ROW_Q5_K:
                put16(scale, get16(from));
                put16(min, get16(from + 2));
                put_six_bits(runs + row * 4, from + 4);
                for (uint32_t run = 0; run < 8; run++) {
                        put_halves(low + run * bytes, from + 48 + run / 2 * 32, run % 2 * 4);
                        put_fifths(high + run * bytes, from + 16, run);
                }
                break;
        case ROW_Q6_K:
                put16(scale, get16(from + 208));
                put_run_bytes(block + row, bytes, from + 192);
                for (uint32_t run = 0; run < 8; run++) {
                        put_halves(low + run * bytes, from + run / 4 * 64 + run % 2 * 32,
                                   run % 4 / 2 * 4);
                        put_pairs(high + run * bytes, slab_high_at(s, 1) - slab_high_at(s, 0),
                                  from + 128 + run / 4 * 32, run % 4 * 2);
                }
                break;
        case ROW_Q3_K:
                put16(scale, get16(from + 108));
                put_signed_six_bits(block + row, bytes, from + 96);
                for (uint32_t run = 0; run < 8; run++) {
                        put_pairs(low + run * bytes, SLAB_QUADS, from + 32 + run / 4 * 32,
                                  run % 4 * 2);
                        put_fifths(high + run * bytes, from, run);
                }
                break;
        case ROW_IQ4_XS:
                put16(scale, get16(from));
                put_whole_runs(runs + row, from + 2);
                for (uint32_t run = 0; run < 8; run++)
                        put_nibbles(low + run * bytes, from + 8 + run * 16);
                break;
        case ROW_Q2_K:
                put16(scale, get16(from + 80));
                put16(min, get16(from + 82));
                put_run_bytes(block + row, bytes, from);
                for (uint32_t run = 0; run < 8; run++)
                        put_pairs(low + run * bytes, SLAB_QUADS, from + 16 + run / 4 * 32,
                                  run % 4 * 2);
                break;
        default:
                put_unpacked(type, slab, row, from);
        }
}

PANEL_INLINE void put_blocks(const enum row_type type, uint8_t *panel, uint32_t row, uint32_t rows,
                             uint32_t columns, const uint8_t *from)
{
        const size_t stride = row_bytes(type, columns),
                     bytes = row_bytes(type, slabs[type].columns);

        for (uint32_t k = 0; k < columns; k += slabs[type].columns) {
                for (uint32_t r = 0; r < rows; r++)
                        put_block(type, panel, row + r, from + r * stride);
                panel += slabs[type].bytes;
                from += bytes;
        }
}

/* Each row has `count` numbers of `number` bytes each, which stay together. */
PANEL_INLINE void put_numbers(uint8_t *panel, uint32_t row, uint32_t rows, uint32_t count,
                              size_t stride, const uint8_t *from, const size_t number)
{
        for (uint32_t k = 0; k < count; k += STRIPE) {
                uint32_t end = count - k < STRIPE ? count : k + STRIPE;

                for (uint32_t r = 0; r < rows; r++) {
                        const uint8_t *line = from + r * stride;
                        uint8_t *to = panel + (row + r) * number;

                        for (size_t i = k; i < end; i++)
                                memcpy(to + i * PANEL * number, line + i * number, number);
                }
        }
}

void panel_put(enum row_type type, uint8_t *panel, uint32_t row, uint32_t rows, uint32_t columns,
               const uint8_t *from)
{
        const size_t stride = row_bytes(type, columns);

        assert(row < PANEL && rows <= PANEL - row);
        switch (type) {
        case ROW_F32:
                put_numbers(panel, row, rows, columns, stride, from, 4);
                break;
        case ROW_F16:
                put_numbers(panel, row, rows, columns, stride, from, 2);
                break;
        case ROW_BF16:
                put_numbers(panel, row, rows, columns / 2, stride, from, 4);
                panel += (columns / 2 * PANEL + row) * (size_t)4;
                for (uint32_t r = 0; r < rows && columns % 2; r++)
                        put32(panel + r * 4, get16(from + r * stride + (columns - 1) * (size_t)2));
                break;
#define PUT(T)                                                                                     \
        case T:                                                                                    \
                put_blocks(T, panel, row, rows, columns, from);                                    \
                break
                PUT(ROW_Q4_0);
                PUT(ROW_Q8_0);
                PUT(ROW_Q4_K);
                PUT(ROW_Q5_K);
                PUT(ROW_Q6_K);
                PUT(ROW_Q4_1);
                PUT(ROW_Q5_0);
                PUT(ROW_Q5_1);
                PUT(ROW_Q2_K);
                PUT(ROW_Q3_K);
                PUT(ROW_IQ4_NL);
                PUT(ROW_MXFP4);
                PUT(ROW_F8_E4M3);
                PUT(ROW_IQ4_XS);
                PUT(ROW_IQ3_XXS);
                PUT(ROW_IQ3_S);
                PUT(ROW_IQ2_XXS);
                PUT(ROW_IQ2_XS);
                PUT(ROW_IQ2_S);
                PUT(ROW_IQ1_S);
                PUT(ROW_IQ1_M);
                PUT(ROW_TQ1_0);
                PUT(ROW_TQ2_0);
                PUT(ROW_NVFP4);
#undef PUT
        default:
                assert(false);
        }
}
