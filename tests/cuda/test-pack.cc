/*
 * File rows as they are packed for products, compared number by number with the description in
 * linear.h.
 */
#include "tests/cuda/linear-fixture.h"

#include <vector>

/* Number k of a packed row, by the description in linear.h: its bits, and its value. */
static uint32_t bits_in(const uint8_t *from, size_t first, unsigned count)
{
        uint32_t bits = 0;

        for (unsigned i = 0; i < count; i++)
                bits |= (from[(first + i) / 8] >> (first + i) % 8 & 1u) << i;
        return bits;
}

static uint32_t packed_bits(linear_format format, const uint8_t *row, uint32_t k)
{
        bool six = format == LINEAR_K6;
        const uint8_t *step = row + k / 128 * (six ? 96 : format == LINEAR_K5 ? 80 : 64);
        uint32_t group = k % 128 / 32, t = six ? k % 16 / 4 : k % 32 / 8;
        uint32_t i = six ? k % 32 / 16 * 4 + k % 4 : k % 8, odd = i % 2;
        uint32_t bits = bits_in(step + t * 16 + group * 4, odd ? 2 * i + 14 : 2 * i, 4);

        if (format == LINEAR_K5)
                bits += 16 * bits_in(step + 64 + t * 4, group * 4 + i / 2 + 16 * odd, 1);
        if (six)
                bits += 16 * bits_in(step + 64 + t * 8 + group / 2 * 4,
                                     group % 2 * 8 + (odd ? i + 15 : i), 2);
        return bits;
}

static float packed_number(linear_format format, const uint8_t *row, const uint16_t *scales,
                           uint32_t k, uint32_t columns)
{
        const uint8_t *bytes = (const uint8_t *)scales, *at;
        uint32_t i = k % 8, first = k % 256 / 128 * 8 + k % 128 / 32;
        uint16_t bfloat;
        float scale;

        switch (format) {
        case LINEAR_BFLOAT:
                memcpy(&bfloat, row + k * 2, 2);
                return bfloat_to_float(bfloat);
        case LINEAR_INT8:
        case LINEAR_E4M3:
                at = row + k / 64 * 64 + k % 32 / 8 * 16 + (k % 64 / 32) * 8 + i / 4 * 4;
                at += i % 4 == 1 ? 2 : i % 4 == 2 ? 1 : i % 4;
                if (format == LINEAR_INT8)
                        return half_to_float(scales[k / 32]) * (float)(int8_t)*at;
                memcpy(&scale, bytes + k / 128 * 4, 4);
                return scale * e4m3_to_float(*at);
        case LINEAR_INT4:
                return half_to_float(scales[k / 32]) * ((float)packed_bits(format, row, k) - 8);
        case LINEAR_K6:
                return half_to_float(scales[columns / 16 / 2 + k / 256]) *
                       ((float)bytes[k / 16] - 128) * ((float)packed_bits(format, row, k) - 32);
        default:
                bytes += k / 256 * 16;
                return half_to_float(scales[k / 256 * 8]) *
                               (float)bits_in(bytes + 4, first * 6, 6) *
                               (float)packed_bits(format, row, k) -
                       half_to_float(scales[k / 256 * 8 + 1]) *
                               (float)bits_in(bytes + 4, (first + 4) * 6, 6);
        }
}

/* No neighbour is closer, and in a tie the even one is taken. */
static bool is_nearest(float is, float of)
{
        uint16_t bits = (uint16_t)(float_bits(is) >> 16);
        double off = fabs((double)is - of);

        for (int i = -1; i <= 1; i += 2) {
                double other = fabs((double)bfloat_to_float((uint16_t)(bits + i)) - of);

                if ((bits & 0x7fff) && (other < off || (other == off && off > 0 && bits & 1)))
                        return false;
        }
        return (bits & 0x7fff) || of == 0;
}

static void try_packing(linear_format format, row_type type, uint32_t columns)
{
        size_t bytes = linear_row_bytes(format, columns);
        size_t scale_count = linear_row_scales(format, columns);
        uint32_t padded = linear_columns(format, columns);
        bool is_short = format == LINEAR_BFLOAT || format == LINEAR_INT8 || format == LINEAR_E4M3;
        uint32_t step = is_short ? 64 : 128;
        uint8_t *file = make<uint8_t>(row_bytes(type, columns) + 1, 0);
        uint8_t *row = make<uint8_t>(bytes + 1, 0xa5);
        uint16_t *scales = make<uint16_t>(scale_count + 1, 0xa5);
        float *floats = make<float>(columns, 0);

        assert_true(padded >= columns && padded - columns < step);
        assert_int_equal(padded % step, 0);
        roll_row(type, columns, file + 1); /* files align nothing */
        row_to_floats(type, file + 1, columns, floats);
        linear_pack_row(format, type, file + 1, columns, row, scales);
        for (uint32_t k = 0; k < padded; k++) {
                float is = packed_number(format, row, scales, k, padded),
                      of = k < columns ? floats[k] : 0;

                if (format == LINEAR_BFLOAT ? !is_nearest(is, of) : is != of) {
                        print_message("%s, column %u: %g, not %g\n", row_type_name(type), k, is,
                                      of);
                        fail();
                }
        }
        assert_int_equal(row[bytes], 0xa5);
        assert_int_equal(scales[scale_count], 0xa5a5);
        free(file);
        free(row);
        free(scales);
        free(floats);
}

static void packed_rows_hold_the_numbers_of_the_file(void **)
{
        for (uint32_t columns : { 32u, 64u, 96u, 128u, 160u, 1120u }) {
                try_packing(LINEAR_INT8, ROW_Q8_0, columns);
                try_packing(LINEAR_INT4, ROW_Q4_0, columns);
                try_packing(LINEAR_BFLOAT, ROW_Q8_0, columns);
                try_packing(LINEAR_BFLOAT, ROW_Q4_0, columns);
        }
        for (uint32_t columns : { 128u, 384u, 1152u }) {
                try_packing(LINEAR_E4M3, ROW_F8_E4M3, columns);
                try_packing(LINEAR_BFLOAT, ROW_F8_E4M3, columns);
        }
        for (row_type type : { ROW_Q4_K, ROW_Q5_K, ROW_Q6_K })
                for (uint32_t columns : { 256u, 768u, 2560u }) {
                        try_packing(linear_format_of(type), type, columns);
                        try_packing(LINEAR_BFLOAT, type, columns);
                }
        for (row_type type :
             { ROW_IQ4_XS, ROW_IQ3_XXS, ROW_IQ3_S, ROW_IQ2_XXS, ROW_IQ2_XS, ROW_IQ2_S, ROW_IQ1_S })
                for (uint32_t columns : { 256u, 768u })
                        try_packing(linear_format_of(type), type, columns);
        for (uint32_t columns : { 1u, 63u, 64u, 255u, 257u, 600u })
                for (row_type type : { ROW_F32, ROW_F16, ROW_BF16 })
                        try_packing(LINEAR_BFLOAT, type, columns);
}

static void packed_rows_are_no_larger_than_in_the_file(void **)
{
        static const struct {
                row_type type;
                linear_format format;
        } kept[] = { { ROW_BF16, LINEAR_BFLOAT }, { ROW_Q8_0, LINEAR_INT8 },
                     { ROW_Q4_0, LINEAR_INT4 },   { ROW_Q4_K, LINEAR_K4 },
                     { ROW_Q5_K, LINEAR_K5 },     { ROW_Q6_K, LINEAR_K6 },
                     { ROW_F8_E4M3, LINEAR_E4M3 } };

        for (const auto &one : kept)
                for (uint32_t columns : { 256u, 2048u, 4096u, 14336u }) {
                        size_t bytes = linear_row_bytes(one.format, columns) +
                                       2 * linear_row_scales(one.format, columns);
                        size_t more = bytes - row_bytes(one.type, columns);

                        assert_int_equal(linear_format_of(one.type), one.format);
                        if (one.type == ROW_Q6_K)
                                assert_in_range(more, 0, 14);
                        else
                                assert_int_equal(more, 0);
                }
}

/* In any place and with either sign.  The scales of the blocks beside it stay the same. */
static void a_nan_weight_makes_only_the_scale_of_its_block_nan(void **)
{
        enum { COLUMNS = 384 };
        uint8_t file[COLUMNS / 128 * 132], row[COLUMNS];
        float scales[COLUMNS / 128], was[COLUMNS / 128];

        roll_row(ROW_F8_E4M3, COLUMNS, file);
        linear_pack_row(LINEAR_E4M3, ROW_F8_E4M3, file, COLUMNS, row, (uint16_t *)was);
        for (uint32_t k = 0; k < COLUMNS; k++) {
                uint8_t *code = &file[k / 128 * 132 + 4 + k % 128], kept = *code;

                *code |= 0x7f;
                linear_pack_row(LINEAR_E4M3, ROW_F8_E4M3, file, COLUMNS, row, (uint16_t *)scales);
                *code = kept;
                for (uint32_t block = 0; block < COLUMNS / 128; block++)
                        if (block == k / 128)
                                assert_true(isnan(scales[block]));
                        else
                                assert_memory_equal(&scales[block], &was[block], 4);
        }
}

static void rounds_numbers_to_the_nearest_bfloat(void **)
{
        /* 1 + 2^-8 lies between 1 and 1 + 2^-7, and 1 + 3 * 2^-8 above that: to the even one */
        static const struct {
                uint32_t from;
                uint16_t to;
        } cases[] = { { 0x3f808000, 0x3f80 }, { 0x3f818000, 0x3f82 }, { 0x3f808001, 0x3f81 },
                      { 0xbf807fff, 0xbf80 }, { 0x7f7fffff, 0x7f80 }, { 0xff800000, 0xff80 },
                      { 0x80000000, 0x8000 }, { 0x00000001, 0x0000 }, { 0x7f800001, 0x7fc0 } };
        uint16_t row[64];

        for (const auto &one : cases) {
                linear_pack_row(LINEAR_BFLOAT, ROW_F32, &one.from, 1, row, nullptr);
                assert_int_equal(row[0], one.to);
                assert_int_equal(row[1], 0);
        }
}

/* Whatever they are; behind them are zeros up to the end of a step. */
static void copies_bfloats_unchanged_and_pads_with_zeros(void **)
{
        enum { COLUMNS = 65521 };
        const size_t end = linear_columns(LINEAR_BFLOAT, COLUMNS);
        std::vector<uint16_t> file(COLUMNS), row(end, 0x5a5a);

        for (uint32_t i = 0; i < COLUMNS; i++)
                file[i] = (uint16_t)(65535 - i);
        linear_pack_row(LINEAR_BFLOAT, ROW_BF16, file.data(), COLUMNS, row.data(), nullptr);
        assert_memory_equal(row.data(), file.data(), COLUMNS * sizeof(uint16_t));
        for (size_t i = COLUMNS; i < end; i++)
                assert_int_equal(row[i], 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(packed_rows_hold_the_numbers_of_the_file),
                cmocka_unit_test(packed_rows_are_no_larger_than_in_the_file),
                cmocka_unit_test(a_nan_weight_makes_only_the_scale_of_its_block_nan),
                cmocka_unit_test(rounds_numbers_to_the_nearest_bfloat),
                cmocka_unit_test(copies_bfloats_unchanged_and_pads_with_zeros),
        };

        roll_from_seed();
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
