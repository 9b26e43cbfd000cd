/* Packs rows of a file in the layout of linear.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/convert.h"
#include "kernels/cuda/linear-formats.h"

linear_format linear_format_of(row_type type)
{
        static const linear_format formats[ROW_TYPE_N] = {
                LINEAR_BFLOAT, LINEAR_BFLOAT, LINEAR_BFLOAT, LINEAR_INT4,
                LINEAR_INT8,   LINEAR_K4,     LINEAR_K5,     LINEAR_K6,
        };

        /* types without a format of their own become bfloats */
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

static void pack_bfloats(row_type type, const uint8_t *row, uint32_t columns, uint16_t *to)
{
        float piece[256]; /* whole blocks of any type */
        const uint32_t most = sizeof(piece) / sizeof(*piece);

        if (type == ROW_BF16) { /* they are bfloats already */
                memcpy(to, row, columns * sizeof(*to));
                return;
        }
        for (uint32_t at = 0; at < columns; at += most) {
                uint32_t count = columns - at < most ? columns - at : most;

                row_to_floats(type, row, count, piece);
                for (uint32_t i = 0; i < count; i++)
                        to[at + i] = float_to_bfloat(piece[i]);
                row += row_bytes(type, count);
        }
}

/* The lowest `width` bits of bytes 0 2 4 6, side by side. */
static uint32_t pack_even(uint64_t bytes, unsigned width)
{
        bytes &= 0x0001000100010001u * ((1u << width) - 1);
        bytes = (bytes | bytes >> (16 - width)) & 0x0000000100000001u * ((1u << 2 * width) - 1);
        return (uint32_t)(bytes | bytes >> (32 - 2 * width)) & ((1u << 4 * width) - 1);
}

/* The lowest `width` bits of eight columns; those of odd columns are 16 bits higher. */
static uint32_t pack_pairs(uint64_t columns, unsigned width)
{
        return pack_even(columns, width) | pack_even(columns >> 8, width) << 16;
}

/* A lane's eight columns of a group of 32. */
static uint64_t columns_of(linear_format format, const uint8_t *group, uint32_t lane)
{
        uint64_t columns;
        uint32_t half[2];

        if (format == LINEAR_K6) {
                memcpy(&half[0], group + lane * 4, 4);
                memcpy(&half[1], group + 16 + lane * 4, 4);
                return half[0] | (uint64_t)half[1] << 32;
        }
        memcpy(&columns, group + lane * 8, 8);
        return columns;
}

static void put_word(uint8_t *to, uint32_t word)
{
        memcpy(to, &word, sizeof(word));
}

/* The bytes of a word have columns 0 2 1 3. */
static void pack_bytes(const uint8_t *numbers, uint8_t *step, uint32_t group)
{
        for (uint32_t i = 0; i < GROUP; i += 4) {
                uint32_t word;

                memcpy(&word, numbers + i, 4);
                word = (word & 0xff0000ff) | (word >> 8 & 0xff00) | (word & 0xff00) << 8;
                put_word(step + i / 8 * 16 + group * 8 + i % 8, word);
        }
}

/* The file has the columns of the first half in the lower four bits. */
static void pack_q4_0(const uint8_t *block, uint8_t *step, uint32_t number)
{
        for (uint32_t lane = 0; lane < 4; lane++) {
                uint64_t columns;

                memcpy(&columns, block + 2 + lane % 2 * 8, 8);
                put_word(step + lane * 16 + number * 4, pack_pairs(columns >> lane / 2 * 4, 4));
        }
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

/* A file block is a float and 128 codes: four groups, in two steps. */
static void pack_e4m3(const uint8_t *row, uint32_t columns, uint8_t *to, uint16_t *scales)
{
        for (uint32_t i = 0; i < columns / 128;
             i++, row += 132, to += 2 * STEP_BYTES(LINEAR_E4M3)) {
                bool is_number = true;
                float scale;

                memcpy(&scale, row, sizeof(scale));
                for (uint32_t k = 0; k < 128; k++)
                        is_number &= (row[4 + k] & 0x7f) != 0x7f;
                if (!is_number)
                        scale = NAN;
                memcpy(scales + i * 2, &scale, sizeof(scale));
                for (uint32_t group = 0; group < 4; group++)
                        pack_bytes(row + 4 + group * GROUP,
                                   to + group / 2 * STEP_BYTES(LINEAR_E4M3), group % 2);
        }
}

/* ---- blocks of 256 ---- */

/* Reads sixteen 6-bit integers from twelve bytes; kernels/blocks.c describes their layout. */
static void read_runs(const uint8_t *packed, uint8_t six[16])
{
        for (unsigned i = 0; i < 4; i++) {
                six[i] = packed[i] & 63;
                six[8 + i] = packed[4 + i] & 63;
                six[4 + i] = (uint8_t)((packed[8 + i] & 15) | packed[i] >> 6 << 4);
                six[12 + i] = (uint8_t)(packed[8 + i] >> 4 | packed[4 + i] >> 6 << 4);
        }
}

/*
 * Packs half a block; `lower` and `upper` point to its lower four bits and its upper bits.  Two
 * groups share the same lower bytes, and all four share the same upper bytes, each group in
 * higher bits than the one before.
 */
static void pack_half(linear_format format, const uint8_t *lower, const uint8_t *upper,
                      unsigned upper_shift, uint8_t *to)
{
        const bool six = format == LINEAR_K6;
        const unsigned width = six ? 2 : 1; /* number of upper bits, if there are any */

        for (unsigned lane = 0; lane < 4; lane++) {
                uint32_t words[2] = {};

                for (unsigned i = 0; i < 4; i++) {
                        unsigned bytes = six ? i % 2 : i / 2, shift = six ? i / 2 : i % 2;
                        uint64_t columns = columns_of(format, lower + bytes * 32, lane);

                        put_word(to + lane * 16 + i * 4, pack_pairs(columns >> shift * 4, 4));
                        if (!upper)
                                continue;
                        columns = columns_of(format, upper, lane) >> (upper_shift + i * width);
                        words[i * width / 4] |= pack_pairs(columns, width) << i * width % 4 * 4;
                }
                if (upper)
                        memcpy(to + 64 + lane * width * 4, words, width * 4);
        }
}

/*
 * Packs four scales, then four least values, for each half.  The first number is in the lowest
 * bits.
 */
static void pack_six(const uint8_t *packed, uint16_t *to)
{
        uint8_t six[16];
        uint32_t words[4] = {};

        read_runs(packed, six);
        for (unsigned i = 0; i < 16; i++) {
                uint64_t two = (uint64_t)six[i % 8 / 4 * 8 + i / 8 * 4 + i % 4] << i * 6 % 32;

                words[i * 6 / 32] |= (uint32_t)two;
                words[i * 6 / 32 + 1] |= (uint32_t)(two >> 32);
        }
        memcpy(to, words, 12);
}

/* kernels/blocks.h describes what a block's integers mean. */
static void pack_k4(const uint8_t *row, uint32_t count, uint8_t *to, uint16_t *scales)
{
        for (uint32_t i = 0; i < count; i++, row += 144, to += 2 * STEP_BYTES(LINEAR_K4)) {
                memcpy(scales + i * 8, row, 4);
                pack_six(row + 4, scales + i * 8 + 2);
                for (unsigned half = 0; half < 2; half++)
                        pack_half(LINEAR_K4, row + 16 + half * 64, nullptr, 0,
                                  to + half * STEP_BYTES(LINEAR_K4));
        }
}

static void pack_k5(const uint8_t *row, uint32_t count, uint8_t *to, uint16_t *scales)
{
        for (uint32_t i = 0; i < count; i++, row += 176, to += 2 * STEP_BYTES(LINEAR_K5)) {
                memcpy(scales + i * 8, row, 4);
                pack_six(row + 4, scales + i * 8 + 2);
                for (unsigned half = 0; half < 2; half++)
                        pack_half(LINEAR_K5, row + 48 + half * 64, row + 16, half * 4,
                                  to + half * STEP_BYTES(LINEAR_K5));
        }
}

static void pack_k6(const uint8_t *row, uint32_t count, uint8_t *to, uint16_t *scales)
{
        for (uint32_t i = 0; i < count; i++, row += 210, to += 2 * STEP_BYTES(LINEAR_K6)) {
                uint8_t bytes[16];

                for (unsigned run = 0; run < 16; run++)
                        bytes[run] = row[192 + run] ^ 0x80;
                memcpy(scales + i * 8, bytes, 16);
                memcpy(scales + count * 8 + i, row + 208, 2);
                for (unsigned half = 0; half < 2; half++)
                        pack_half(LINEAR_K6, row + half * 64, row + 128 + half * 32, 0,
                                  to + half * STEP_BYTES(LINEAR_K6));
        }
}

void linear_pack_row(linear_format format, row_type type, const void *file_row, uint32_t columns,
                     void *ret_weights, uint16_t *ret_scales)
{
        const uint8_t *row = (const uint8_t *)file_row;
        uint8_t *to = (uint8_t *)ret_weights;
        size_t scales = linear_row_scales(format, columns);

        memset(to, 0, linear_row_bytes(format, columns)); /* any number is zero if its scale is 0 */
        if (scales)
                memset(ret_scales, 0, scales * sizeof(*ret_scales));
        assert(format == LINEAR_BFLOAT ||
               (linear_format_of(type) == format && row_bytes(type, columns)));
        switch (format) {
        case LINEAR_BFLOAT:
                pack_bfloats(type, row, columns, (uint16_t *)ret_weights);
                return;
        case LINEAR_INT8:
        case LINEAR_INT4:
                pack_small(format, row, columns, to, ret_scales);
                return;
        case LINEAR_K4:
                pack_k4(row, columns / 256, to, ret_scales);
                return;
        case LINEAR_K5:
                pack_k5(row, columns / 256, to, ret_scales);
                return;
        case LINEAR_K6:
                pack_k6(row, columns / 256, to, ret_scales);
                return;
        case LINEAR_E4M3:
                pack_e4m3(row, columns, to, ret_scales);
                return;
        }
}
