/* File rows, laid as linear.h says. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/cuda/linear-formats.h"
#include "kernels/rows.h"

linear_format linear_format_of(row_type type)
{
        static const linear_format formats[ROW_TYPE_N] = {
                LINEAR_BFLOAT, LINEAR_BFLOAT, LINEAR_BFLOAT, LINEAR_INT4,
                LINEAR_INT8,   LINEAR_K4,     LINEAR_K5,     LINEAR_K6,
        };

        /* whatever has no format of its own: bfloats */
        static_assert(LINEAR_BFLOAT == 0, "");
        static_assert(ROW_Q4_0 == 3 && ROW_Q8_0 == 4 && ROW_Q4_K == 5 && ROW_Q6_K == 7, "");
        static_assert(ROW_F8_E4M3 > ROW_Q6_K, "");
        return type == ROW_F8_E4M3 ? LINEAR_E4M3 : formats[type];
}

uint32_t linear_columns(linear_format format, uint32_t columns)
{
        uint32_t step = GROUP * GROUPS_OF(format);

        assert(columns <= UINT32_MAX - step);
        return (columns + step - 1) / step * step;
}

size_t linear_row_bytes(linear_format format, uint32_t columns)
{
        return (size_t)linear_columns(format, columns) / (GROUP * GROUPS_OF(format)) *
               STEP_BYTES(format);
}

size_t linear_row_scales(linear_format format, uint32_t columns)
{
        return ROW_SCALES(format, linear_columns(format, columns));
}

/* To nearest, ties to even. */
static uint16_t bfloat_of(float f)
{
        uint32_t bits = float_bits(f);

        if (f != f)
                return (uint16_t)(bits >> 16 | 0x40);
        return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void pack_bfloats(row_type type, const uint8_t *row, uint32_t columns, uint16_t *to)
{
        float piece[256]; /* whole blocks of any type */
        const uint32_t most = sizeof(piece) / sizeof(*piece);

        if (type == ROW_BF16) { /* they are some already */
                memcpy(to, row, columns * sizeof(*to));
                return;
        }
        for (uint32_t at = 0; at < columns; at += most) {
                uint32_t count = columns - at < most ? columns - at : most;

                row_to_floats(type, row, count, piece);
                for (uint32_t i = 0; i < count; i++)
                        to[at + i] = bfloat_of(piece[i]);
                row += row_bytes(type, count);
        }
}

/* A group in order of its columns; where the lane t has its eight. */
struct group {
        uint8_t numbers[GROUP]; /* not negative, of six bits at most */
};

static uint32_t column_of(linear_format format, uint32_t lane, uint32_t i)
{
        return format == LINEAR_K6 ? i / 4 * 16 + lane * 4 + i % 4 : lane * 8 + i;
}

/* Bits `low` .. of a lane's numbers, `width` of each: pairs of columns, the odd ones 16 bits higher. */
static uint32_t pack_pairs(linear_format format, const group *group, uint32_t lane, unsigned low,
                           unsigned width)
{
        uint32_t word = 0;

        for (uint32_t i = 0; i < 8; i++) {
                uint32_t number = group->numbers[column_of(format, lane, i)];

                word |= (number >> low & ((1u << width) - 1)) << (i / 2 * width + i % 2 * 16);
        }
        return word;
}

static void put_word(uint8_t *to, uint32_t word)
{
        memcpy(to, &word, sizeof(word));
}

/* Byte i of a word has column 0 2 1 3. */
static void pack_bytes(const uint8_t *numbers, uint8_t *step, uint32_t group)
{
        static const uint8_t order[4] = { 0, 2, 1, 3 };

        for (uint32_t i = 0; i < GROUP; i++)
                step[i / 8 * 16 + group * 8 + i % 8 / 4 * 4 + i % 4] =
                        numbers[i / 4 * 4 + order[i % 4]];
}

static void pack_q4_0(const uint8_t *block, uint8_t *step, uint32_t number)
{
        group group;

        for (uint32_t i = 0; i < GROUP; i++)
                group.numbers[i] = block[2 + i % 16] >> i / 16 * 4 & 15;
        for (uint32_t lane = 0; lane < 4; lane++)
                put_word(step + lane * 16 + number * 4,
                         pack_pairs(LINEAR_INT4, &group, lane, 0, 4));
}

static void pack_small(linear_format format, const uint8_t *row, uint32_t columns, uint8_t *to,
                       uint16_t *scales)
{
        uint32_t groups = GROUPS_OF(format);
        size_t bytes = format == LINEAR_INT8 ? 34 : 18;

        for (uint32_t i = 0; i < columns / GROUP; i++, row += bytes) {
                uint8_t *step = to + (size_t)(i / groups) * STEP_BYTES(format);

                memcpy(&scales[i], row, sizeof(*scales));
                if (format == LINEAR_INT8)
                        pack_bytes(row + 2, step, i % groups);
                else
                        pack_q4_0(row, step, i % groups);
        }
}

/* A float, and 128 codes: four groups, in two steps. */
static void pack_e4m3(const uint8_t *row, uint32_t columns, uint8_t *to, uint16_t *scales)
{
        for (uint32_t i = 0; i < columns / 128;
             i++, row += 132, to += 2 * STEP_BYTES(LINEAR_E4M3)) {
                float scale;

                memcpy(&scale, row, sizeof(scale));
                for (uint32_t k = 0; k < 128; k++)
                        if ((row[4 + k] & 0x7f) == 0x7f)
                                scale = NAN;
                memcpy(scales + i * 2, &scale, sizeof(scale));
                for (uint32_t group = 0; group < 4; group++)
                        pack_bytes(row + 4 + group * GROUP,
                                   to + group / 2 * STEP_BYTES(LINEAR_E4M3), group % 2);
        }
}

/* ---- blocks of 256 ---- */

/* Integers of a block: kernels/blocks.h says what they mean. */
struct block {
        group groups[8];
        uint8_t six[16];   /* scales, least values: LINEAR_K4, LINEAR_K5 */
        uint8_t bytes[16]; /* scales and 128: LINEAR_K6 */
};

/* How twelve bytes have them is told in kernels/blocks.c. */
static void read_runs(const uint8_t *packed, uint8_t six[16])
{
        for (unsigned i = 0; i < 4; i++) {
                six[i] = packed[i] & 63;
                six[8 + i] = packed[4 + i] & 63;
                six[4 + i] = (uint8_t)((packed[8 + i] & 15) | packed[i] >> 6 << 4);
                six[12 + i] = (uint8_t)(packed[8 + i] >> 4 | packed[4 + i] >> 6 << 4);
        }
}

static void read_q4_k(const uint8_t *from, const uint8_t *fifths, block *block)
{
        for (unsigned i = 0; i < 256; i++) {
                unsigned group = i / 32, place = i % 32;
                unsigned n = from[group / 2 * 32 + place] >> group % 2 * 4 & 15;

                if (fifths)
                        n |= (fifths[place] >> group & 1u) << 4;
                block->groups[group].numbers[place] = (uint8_t)n;
        }
}

static void read_q6_k(const uint8_t *from, block *block)
{
        for (unsigned i = 0; i < 256; i++) {
                unsigned half = i / 128, line = i / 32 % 4, place = i % 32;
                unsigned low = from[half * 64 + line % 2 * 32 + place] >> line / 2 * 4 & 15;
                unsigned high = from[128 + half * 32 + place] >> line * 2 & 3;

                block->groups[i / 32].numbers[place] = (uint8_t)(low | high << 4);
        }
        for (unsigned i = 0; i < 16; i++)
                block->bytes[i] = from[192 + i] ^ 0x80;
}

/* Half a block.  Bits from the fifth on are apart: of each lane, in order of groups. */
static void pack_half(linear_format format, const group groups[4], uint8_t *to)
{
        unsigned words = format == LINEAR_K5 ? 1 : format == LINEAR_K6 ? 2 : 0; /* of a lane */

        for (unsigned i = 0; i < 4 * 4; i++)
                put_word(to + i * 4, pack_pairs(format, &groups[i % 4], i / 4, 0, 4));
        for (unsigned i = 0; i < 4 * words; i++) {
                unsigned count = 4 / words, first = i % words * count;
                uint32_t word = 0;

                for (unsigned g = 0; g < count; g++)
                        word |= pack_pairs(format, &groups[first + g], i / words, 4, words)
                                << g * 4 * words;
                put_word(to + 64 + i * 4, word);
        }
}

/* Of each half four scales, then four least values; the first number is in the lowest bits. */
static void pack_six(const uint8_t six[16], uint16_t *to)
{
        uint32_t words[4] = {};

        for (unsigned i = 0; i < 16; i++) {
                uint64_t two = (uint64_t)six[i % 8 / 4 * 8 + i / 8 * 4 + i % 4] << i * 6 % 32;

                words[i * 6 / 32] |= (uint32_t)two;
                words[i * 6 / 32 + 1] |= (uint32_t)(two >> 32);
        }
        memcpy(to, words, 12);
}

static void pack_blocks(linear_format format, const uint8_t *row, uint32_t columns, uint8_t *to,
                        uint16_t *scales)
{
        size_t bytes = format == LINEAR_K4 ? 144 : format == LINEAR_K5 ? 176 : 210;
        uint32_t count = columns / 256;
        block block = {};

        for (uint32_t i = 0; i < count; i++, row += bytes) {
                if (format == LINEAR_K6) {
                        read_q6_k(row, &block);
                        memcpy(scales + i * 8, block.bytes, 16);
                        memcpy(scales + count * 8 + i, row + 208, 2);
                } else {
                        const uint8_t *fifths = format == LINEAR_K5 ? row + 16 : nullptr;

                        read_runs(row + 4, block.six);
                        read_q4_k(fifths ? row + 48 : row + 16, fifths, &block);
                        memcpy(scales + i * 8, row, 4);
                        pack_six(block.six, scales + i * 8 + 2);
                }
                pack_half(format, block.groups, to);
                pack_half(format, block.groups + 4, to + STEP_BYTES(format));
                to += 2 * STEP_BYTES(format);
        }
}

void linear_pack_row(linear_format format, row_type type, const void *file_row, uint32_t columns,
                     void *ret_weights, uint16_t *ret_scales)
{
        const uint8_t *row = (const uint8_t *)file_row;
        uint8_t *to = (uint8_t *)ret_weights;
        size_t scales = linear_row_scales(format, columns);

        memset(to, 0, linear_row_bytes(format, columns)); /* any number is zero at scale 0 */
        if (scales)
                memset(ret_scales, 0, scales * sizeof(*ret_scales));
        if (format == LINEAR_BFLOAT) {
                pack_bfloats(type, row, columns, (uint16_t *)ret_weights);
                return;
        }
        assert(linear_format_of(type) == format && row_bytes(type, columns));
        if (format >= LINEAR_K4)
                pack_blocks(format, row, columns, to, ret_scales);
        else if (format == LINEAR_E4M3)
                pack_e4m3(row, columns, to, ret_scales);
        else
                pack_small(format, row, columns, to, ret_scales);
}
