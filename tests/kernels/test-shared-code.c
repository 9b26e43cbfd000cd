/* Code shared by the backends: numbers of files and pages, random draws, memory, pages, steps. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/blocks.h"
#include "kernels/convert.h"
#include "kernels/draw.h"
#include "kernels/kv.h"
#include "kernels/memory.h"
#include "kernels/steps.h"
#include "tests/kernels/blocks-golden.h"
#include "tests/kernels/e4m3.h"

/* sign * fraction * 2^exponent, straight from the definition of binary16 */
static long double half_value(uint16_t half)
{
        int exponent = half >> 10 & 31, fraction = half & 0x3ff;
        long double v;

        if (exponent == 31)
                v = fraction ? (long double)NAN : (long double)INFINITY;
        else
                v = exponent ? ldexpl(1024 + fraction, exponent - 25) : ldexpl(fraction, -24);
        return half & 0x8000 ? -v : v;
}

static void every_half_converts_to_its_float_and_back(void **state)
{
        (void)state;
        for (uint32_t h = 0; h < 65536; h++) {
                float f = half_to_float((uint16_t)h);
                long double expected = half_value((uint16_t)h);

                assert_int_equal(!!signbit(f), h >> 15);
                if (isnan(expected)) {
                        assert_true(isnan(f));
                        assert_int_equal(float_to_half(f), h | 0x200); /* quiet, the rest kept */
                } else {
                        assert_true(f == expected);
                        assert_int_equal(float_to_half(f), h);
                }
        }
}

static void floats_between_two_halves_round_to_nearest_even(void **state)
{
        (void)state;
        for (uint32_t h = 0; h < 0x7bff; h++) {
                long double low = half_value((uint16_t)h), high = half_value((uint16_t)(h + 1));
                float middle = (float)((low + high) / 2);

                assert_true(middle == (low + high) / 2);
                assert_int_equal(float_to_half(middle), h & 1 ? h + 1 : h);
                assert_int_equal(float_to_half(nextafterf(middle, 0)), h);
                assert_int_equal(float_to_half(nextafterf(middle, INFINITY)), h + 1);
                assert_int_equal(float_to_half(-middle), 0x8000 | (h & 1 ? h + 1 : h));
        }
}

static void floats_beyond_the_range_of_halves_become_infinity_or_zero(void **state)
{
        (void)state;
        assert_int_equal(float_to_half(65504.0f), 0x7bff);
        assert_int_equal(float_to_half(nextafterf(65520.0f, 0)), 0x7bff);
        assert_int_equal(float_to_half(65520.0f), 0x7c00);
        assert_int_equal(float_to_half(-1e30f), 0xfc00);
        assert_int_equal(float_to_half(INFINITY), 0x7c00);
        assert_int_equal(float_to_half(1e-30f), 0);
        assert_int_equal(float_to_half(-1e-42f), 0x8000);
        assert_int_equal(float_to_half(bits_float(0x7f800001)), 0x7e00); /* still a NaN */
}

static void every_e4m3_converts_to_its_float_and_back(void **state)
{
        (void)state;
        for (uint32_t byte = 0; byte < 256; byte++) {
                float f = e4m3_to_float((uint8_t)byte);

                assert_int_equal(float_to_e4m3(f), byte);
                assert_int_equal(!!signbit(f), byte >> 7);
                assert_true((byte & 0x7f) == 0x7f ? isnan(f) : f == e4m3_value((uint8_t)byte));
        }
}

static void floats_between_two_e4m3_round_to_nearest_even(void **state)
{
        (void)state;
        for (uint32_t byte = 0; byte < 0x7e; byte++) {
                double low = e4m3_value((uint8_t)byte), high = e4m3_value((uint8_t)(byte + 1));
                float middle = (float)((low + high) / 2);

                assert_int_equal(float_to_e4m3(middle), byte & 1 ? byte + 1 : byte);
                assert_int_equal(float_to_e4m3(nextafterf(middle, 0)), byte);
                assert_int_equal(float_to_e4m3(nextafterf(middle, INFINITY)), byte + 1);
                assert_int_equal(float_to_e4m3(-middle), 0x80 | (byte & 1 ? byte + 1 : byte));
        }
}

static void floats_beyond_the_range_of_e4m3_become_nan_or_zero(void **state)
{
        (void)state;
        assert_int_equal(float_to_e4m3(464.0f), 0x7e);
        assert_int_equal(float_to_e4m3(nextafterf(464.0f, INFINITY)), 0x7f);
        assert_int_equal(float_to_e4m3(-512.0f), 0xff);
        assert_int_equal(float_to_e4m3(-INFINITY), 0xff);
        assert_int_equal(float_to_e4m3(1e-30f), 0);
        assert_int_equal(float_to_e4m3(-1e-42f), 0x80);
}

static void converts_unaligned_rows_of_every_type_to_floats(void **state)
{
        const uint8_t bytes[] = { 0xee, 0x00, 0x3c, 0x00, 0xc0, 0x80, 0x3f, 0x20, 0xc1 };
        float f[2];

        (void)state;
        row_to_floats(ROW_F16, bytes + 1, 2, f);
        assert_true(f[0] == 1 && f[1] == -2);
        row_to_floats(ROW_BF16, bytes + 5, 2, f);
        assert_true(f[0] == 1 && f[1] == -10);
        row_to_floats(ROW_F32, bytes + 3, 1, f);
        assert_int_equal(float_bits(f[0]), 0x3f80c000);

        assert_int_equal(row_bytes(ROW_F32, 5), 20);
        assert_int_equal(row_bytes(ROW_F16, 5), 10);
        assert_int_equal(row_bytes(ROW_BF16, 5), 10);
        assert_int_equal(row_bytes(ROW_TYPE_N, 5), 0);
        assert_int_equal(row_kept_bytes(ROW_F32, 5), 20);
        assert_int_equal(row_kept_bytes(ROW_Q4_K, 512), 2 * 144);
        assert_int_equal(row_kept_bytes(ROW_IQ2_XXS, 512), 2 * 106);
        assert_int_equal(row_kept_bytes(ROW_IQ2_XXS, 500), 0);
        assert_string_equal(row_type_name(ROW_BF16), "BF16");
}

/* Against the numbers of another program: tests/kernels/blocks-golden.h says which. */
static void block_formats_match_those_of_other_programs(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(block_goldens) / sizeof(*block_goldens); i++) {
                const struct block_golden *golden = &block_goldens[i];
                uint32_t numbers = block_format(golden->type)->numbers;
                uint32_t bytes = block_format(golden->type)->bytes;
                uint8_t row[2 * sizeof(golden->bytes) + 1];
                float f[2 * BLOCK_NUMBERS_MAX];

                assert_int_equal(row_bytes(golden->type, 3 * numbers), 3 * bytes);
                assert_int_equal(row_bytes(golden->type, numbers + 1), 0);
                memcpy(row + 1, golden->bytes, bytes); /* not aligned */
                memcpy(row + 1 + bytes, golden->bytes, bytes);
                row_to_floats(golden->type, row + 1, 2 * numbers, f);
                for (uint32_t n = 0; n < 2 * numbers; n++)
                        if (float_bits(f[n]) != golden->floats[n % numbers] &&
                            !(isnan(f[n]) && isnan(bits_float(golden->floats[n % numbers]))))
                                fail_msg("%s: number %u is %g", row_type_name(golden->type), n,
                                         (double)f[n]);
        }
}

static uint64_t random_word(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

/* tests/kernels/blocks-golden.h describes the blocks. A file's block of NVFP4 has no float. */
static uint64_t sum_random_blocks(const struct block_sum *golden)
{
        const struct block_format *format = block_format(golden->type);
        uint32_t before = golden->type == ROW_NVFP4 ? sizeof(float) : 0;
        uint64_t state = 1, word = 0, sum = 0;
        uint8_t block[256];
        const float one = 1;
        float f[BLOCK_NUMBERS_MAX];
        uint32_t at = 0;

        memcpy(block, &one, sizeof(one));
        for (uint32_t b = 0; b < BLOCK_SUM_BLOCKS; b++) {
                for (uint32_t i = before; i < format->bytes; i++, at++) {
                        if (at % 8 == 0)
                                word = random_word(&state);
                        block[i] = (uint8_t)(word >> at % 8 * 8);
                }
                for (uint32_t i = 0; i < 2 && golden->upper[i] != 255; i++)
                        block[golden->upper[i]] &= 0xbf;
                row_to_floats(golden->type, block, format->numbers, f);
                for (uint32_t i = 0; i < format->numbers; i++)
                        sum = (sum ^ float_bits(f[i])) * UINT64_C(0x100000001b3);
        }
        return sum;
}

static void random_blocks_mean_what_they_mean_to_another_program(void **state)
{
        (void)state;
        /* all types but F32, F16, BF16 and F8_E4M3 */
        assert_int_equal(sizeof(block_sums) / sizeof(*block_sums) + 4, ROW_TYPE_N);
        for (size_t i = 0; i < sizeof(block_sums) / sizeof(*block_sums); i++)
                if (sum_random_blocks(&block_sums[i]) != block_sums[i].sum)
                        fail_msg("%s: other numbers", row_type_name(block_sums[i].type));
}

static void philox_matches_its_published_vectors(void **state)
{
        uint32_t c[4] = { 0 };
        uint32_t d[4] = { ~0u, ~0u, ~0u, ~0u };
        /* digits of pi */
        uint32_t e[4] = { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 };

        (void)state;
        philox(c, 0);
        assert_memory_equal(c, ((uint32_t[]){ 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 }),
                            16);
        philox(d, UINT64_MAX);
        assert_memory_equal(d, ((uint32_t[]){ 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd }),
                            16);
        philox(e, UINT64_C(0x299f31d0a4093822));
        assert_memory_equal(e, ((uint32_t[]){ 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 }),
                            16);
        assert_true(draw(0, 0, 0) == (0x6627e8d5e1 + 0.5) / 0x1p40);
        assert_true(draw(0, 1, 0) != draw(0, 0, 0) && draw(0, 0, 1) != draw(0, 0, 0));
        assert_true(draw(0, 0, UINT64_C(1) << 32) != draw(0, 0, 0));
}

/* The expected ones are of a program in Python with decimals of 50 digits. */
static void times_of_draws_are_those_of_another_program(void **state)
{
        static const struct {
                struct draw_key key;
                uint32_t id;
                double time;
        } cases[] = {
                { { 0, 0, 0 }, 0, 0x1.8cb49c94460f6p-2 },
                { { 1, 3, 2 }, 4, 0x1.341ac68eb4be1p+0 },
                { { UINT64_C(0x123456789abcdef0), UINT64_C(0xfedcba9876543210), 0xdeadbeef },
                  128255,
                  0x1.f49c3c3850faep-4 },
                { { 5, 77, 0 }, 63, 0x1.b8ebeb6182427p-2 },
                { { 5, 77, 0 }, 64, 0x1.3e27f1fc86043p+0 },
                { { 9, 100, 1 }, 7, 0x1.117e614d5f8f1p-4 }, /* the first of its span */
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                double least = draw_least(&cases[i].key, cases[i].id / DRAW_SPAN);
                double time = draw_time(&cases[i].key, cases[i].id, least);

                assert_true(fabs(time / cases[i].time - 1) < 0x1p-49);
        }
}

/* All pieces near 0 and 1, some between, and all exponents that a time has. */
static void the_logarithm_of_draws_is_as_close_as_its_header_says(void **state)
{
        (void)state;
        for (uint64_t i = 0; i < 1000000; i++) {
                uint64_t piece = i < 1000 ? i : UINT32_MAX - (i < 2000 ? i - 1000 : i * 4294);
                double u = ((double)(uint32_t)piece + 0.5) * 0x1p-32;
                double time = ldexp(1 + (double)i / 1000000, (int)(i % 45) - 39);

                assert_true(fabsl(draw_log(u) / logl(u) - 1) < 0x1p-50L);
                if (time != 1)
                        assert_true(fabsl(draw_log(time) / logl(time) - 1) < 0x1p-50L);
        }
        assert_true(draw_log(1) == 0);
        assert_true(-draw_log(0x1p-38) < 26.35 && -draw_log(23.6) > -3.17);
}

static void memory_is_aligned_and_zeroed_and_too_large_sizes_fail(void **state)
{
        static const size_t sizes[] = { 0, 1, 63, 64, 65, 4096, 5 << 20, (4 << 20) - 1 };

        (void)state;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                unsigned char *m = memory_new(sizes[i], 1);

                assert_non_null(m);
                assert_int_equal((uintptr_t)m % MEMORY_ALIGN, 0);
                for (size_t j = 0; j < sizes[i]; j++)
                        assert_int_equal(m[j], 0);
                memset(m, 0xff, sizes[i]);
                memory_free(m);
        }
        assert_null(memory_new(SIZE_MAX / 2, 3));
        assert_null(memory_new(SIZE_MAX, 1));
        assert_null(memory_free(NULL));
}

static void pool_tiles_do_not_overlap_and_pages_copy_whole(void **state)
{
        struct kv_shape shape = { 2, 3, 5, 4, KV_F16 };
        struct kv *kv;
        unsigned char number = 0;

        (void)state;
        assert_int_equal(kv_pool_new(&(struct kv_shape){ 2, 3, 0, 4, KV_F16 }, &kv), -EINVAL);
        assert_int_equal(kv_pool_new(&shape, &kv), 0);
        assert_int_equal(kv->tile_bytes, 16 * 5 * 2);
        for (uint32_t page = 0; page < 4; page++)
                for (uint32_t layer = 0; layer < 2; layer++)
                        for (uint32_t head = 0; head < 3; head++)
                                memset(kv_tile(kv, page, layer, head), ++number,
                                       2 * kv->tile_bytes);
        number = 0;
        for (size_t at = 0; at < 4 * kv->page_bytes; at++)
                assert_int_equal(kv->pages[at], at / (2 * kv->tile_bytes) + 1);

        kv_copy(KV_ALONE(kv), (struct step_copy[]){ { 0, 2 }, { 2, 3 } }, 2);
        assert_memory_equal(kv->pages + 3 * kv->page_bytes, kv->pages, kv->page_bytes);
        assert_int_equal(kv->pages[kv->page_bytes], 7);
        kv_pool_free(kv);
}

static void copies_between_pool_and_swap_are_made_in_order(void **state)
{
        const struct kv_shape shape = { 1, 1, 4, 3, KV_F16, 2 };
        const struct step_copy chain[] = { { 1, 3 }, { 4, 1 }, { 2, 4 }, { 3, 0 }, { 0, 2 } };
        const unsigned char should[] = { 1, 4, 1, 1, 2 };
        struct kv *kv;

        (void)state;
        assert_int_equal(kv_pool_new(&shape, &kv), 0);
        for (uint32_t page = 0; page < 5; page++)
                memset(kv->pages + page * kv->page_bytes, (int)page, kv->page_bytes);
        kv_copy(KV_ALONE(kv), chain, 5);
        for (size_t i = 0; i < 5 * kv->page_bytes; i++)
                assert_int_equal(kv->pages[i], should[i / kv->page_bytes]);
        assert_true(kv_copy_time(kv) >= 1);
        kv_pool_free(kv);
}

static void refuses_shapes_with_pages_that_have_no_number(void **state)
{
        struct kv *kv;

        (void)state;
        assert_int_equal(kv_pool_new(&(struct kv_shape){ 1, 1, 4, 0, KV_F16, 2 }, &kv), -EINVAL);
        assert_int_equal(kv_pool_new(&(struct kv_shape){ 1, 1, 4, 3, KV_F16, UINT32_MAX - 2 }, &kv),
                         -EINVAL);
        assert_int_equal(
                kv_pool_new(&(struct kv_shape){ 1u << 20, 1u << 20, 64, 3, KV_F16, 1u << 13 }, &kv),
                -ENOMEM);
}

static void tiles_of_every_type_begin_where_page_h_says(void **state)
{
        static const size_t number[KV_TYPES] = { 2, 2, 1, 4, 1 };

        (void)state;
        for (uint32_t dim = 1; dim < 300; dim++)
                for (uint32_t type = 0; type < KV_TYPES; type++) {
                        struct kv_shape shape = { 2, 3, dim, 1, type };
                        size_t tile = 16 * dim * number[type] + (number[type] == 1 ? 64 : 0);

                        assert_int_equal(kv_tile_bytes(&shape), tile);
                        assert_int_equal(kv_page_bytes(&shape), 12 * tile);
                        assert_int_equal(kv_tile_offset(&shape, 1, 2), 10 * tile);
                        assert_int_equal(kv_scales_offset(&shape), 16 * dim * number[type]);
                        assert_int_equal(tile % 16, 0);
                }
}

static void floats_round_to_the_nearest_bfloat(void **state)
{
        (void)state;
        for (uint32_t n = 0; n < 0x10000; n++) {
                float f = bfloat_to_float((uint16_t)n);
                uint32_t bits = n << 16;

                assert_int_equal(float_to_bfloat(f), isnan(f) ? n | 0x40 : n);
                if (!isfinite(f))
                        continue;
                assert_int_equal(float_to_bfloat(bits_float(bits | 0x7fff)), n);
                assert_int_equal(float_to_bfloat(bits_float(bits | 0x8000)), n + (n & 1));
                assert_int_equal(float_to_bfloat(bits_float(bits | 0x8001)), n + 1);
        }
        assert_true(isnan(bfloat_to_float(float_to_bfloat(bits_float(0x7f800001)))));
}

static const struct kernels_conf conf = {
        .rows_max = 4, .slots_max = 2, .pages_max = 3, .vocab_max = 8, .wants_max = 3
};

static void steps_apply_page_table_changes_and_copy_their_rows(void **state)
{
        struct step_row rows[] = { { .slot = 1, .position = 17, .from_row = STEP_TOKEN } };
        struct step_run runs[] = { { 0, 1 } };
        struct step_page pages[] = { { 1, 0, 7 }, { 1, 1, 9 } };
        struct step step = { .number = 5,
                             .row_count = 1,
                             .run_count = 1,
                             .page_count = 2,
                             .rows = rows,
                             .runs = runs,
                             .pages = pages };
        struct steps s;

        (void)state;
        rows[0].token = 6;
        assert_int_equal(steps_init(&s, &conf), 0);
        assert_int_equal(steps_page(&s, 0, 1, 0), STEPS_NO_PAGE);
        steps_begin(&s, &step);
        rows[0] = (struct step_row){ 0 };
        runs[0] = (struct step_run){ 0 };
        assert_int_equal(s.tokens[0], 6);
        assert_int_equal(s.step.rows[0].position, 17);
        assert_int_equal(s.step.runs[0].count, 1);
        assert_int_equal(steps_page(&s, 0, 1, 15), 7);
        assert_int_equal(steps_page(&s, 0, 1, 16), 9);
        assert_int_equal(steps_page(&s, 0, 0, 0), STEPS_NO_PAGE);
        steps_end(&s);

        pages[0].page = 3;
        step = (struct step){ .number = 6, .page_count = 1, .pages = pages };
        steps_begin(&s, &step);
        assert_int_equal(steps_page(&s, 0, 1, 0), 3);
        assert_int_equal(steps_page(&s, 0, 1, 16), 9);
        steps_end(&s);
        steps_deinit(&s);
}

/* A step of two rows, both wanted, whose picks are `picked`; returns the token that row 0 had. */
static uint32_t step_of_two(struct steps *s, uint64_t number, uint32_t from_row, uint64_t from_step,
                            uint32_t picked0, uint32_t picked1)
{
        struct step_row rows[] = {
                { .slot = 0, .token = 100, .from_row = from_row, .from_step = from_step },
                { .slot = 1, .token = 200, .from_row = STEP_TOKEN },
        };
        struct step_run runs[] = { { 0, 1 }, { 1, 1 } };
        struct pick picks[2] = { { 0 } };
        uint32_t want[] = { 0, 1 };
        struct step step = { .number = number,
                             .row_count = 2,
                             .run_count = 2,
                             .want_count = 2,
                             .rows = rows,
                             .runs = runs,
                             .want = want,
                             .picks = picks };
        uint32_t *tokens;

        steps_begin(s, &step);
        assert_int_equal(s->tokens[1], 200);
        tokens = steps_tokens_out(s);
        tokens[0] = picked0;
        tokens[1] = picked1;
        steps_end(s);
        return s->tokens[0];
}

static void rows_take_their_tokens_from_picks_of_earlier_steps(void **state)
{
        uint32_t tokens[2];
        struct steps s;

        (void)state;
        assert_int_equal(steps_init(&s, &conf), 0);
        assert_int_equal(step_of_two(&s, 1, STEP_TOKEN, 0, 11, 12), 100);
        assert_int_equal(step_of_two(&s, 2, 1, 1, 21, PICK_NOT_FINITE), 12);
        assert_int_equal(step_of_two(&s, 3, 0, 1, 31, 32), 11);
        assert_int_equal(step_of_two(&s, 4, 1, 2, 41, 42), 0); /* that pick failed */
        steps_collect(&s, 2, tokens);
        assert_int_equal(tokens[0], 21);
        assert_int_equal(tokens[1], PICK_NOT_FINITE);
        steps_collect(&s, 4, tokens);
        assert_int_equal(tokens[1], 42);
        steps_deinit(&s);
        steps_deinit(&s); /* an empty one is fine */
}

static void a_slot_has_a_page_table_in_each_group(void **state)
{
        const struct kernels_conf two = {
                .groups = 2, .rows_max = 1, .slots_max = 2, .pages_max = 3, .wants_max = 1
        };
        const struct step_page pages[] = { { 1, 2, 7 }, { 1, 2, 9, 1 }, { 0, 0, 4, 1 } };
        const struct step step = { .number = 1, .page_count = 3, .pages = pages };
        struct steps s;

        (void)state;
        assert_int_equal(steps_init(&s, &two), 0);
        steps_begin(&s, &step);
        assert_int_equal(steps_page(&s, 0, 1, 40), 7);
        assert_int_equal(steps_page(&s, 1, 1, 40), 9);
        assert_int_equal(steps_page(&s, 0, 0, 0), STEPS_NO_PAGE);
        assert_int_equal(steps_page(&s, 1, 0, 0), 4);
        assert_int_equal(steps_page(&s, 1, 1, 0), STEPS_NO_PAGE);
        steps_end(&s);
        steps_deinit(&s);
}

static void copies_are_made_in_the_pool_of_their_group(void **state)
{
        const struct kv_shape shape = { 1, 1, 4, 2, KV_F16 }, larger = { 2, 1, 4, 3, KV_F16, 0, 1 };
        const struct step_copy copies[] = { { 0, 1 }, { 2, 0, 1 } };
        struct kv *pools[KV_POOLS_MAX];

        (void)state;
        assert_int_equal(kv_pool_new(&shape, &pools[0]), 0);
        assert_int_equal(kv_pool_new(&larger, &pools[1]), 0);
        memset(pools[0]->pages, 5, pools[0]->page_bytes);
        memset(pools[1]->pages + 2 * pools[1]->page_bytes, 6, pools[1]->page_bytes);
        kv_copy(pools, copies, 2);
        assert_memory_equal(pools[0]->pages, pools[0]->pages + pools[0]->page_bytes,
                            pools[0]->page_bytes);
        for (size_t i = 0; i < pools[1]->page_bytes; i++)
                assert_int_equal(pools[1]->pages[i], 6);
        pools[1] = kv_pool_free(pools[1]);
        kv_copy(pools, copies, 2); /* no layer is in the second group */
        pools[0] = kv_pool_free(pools[0]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_half_converts_to_its_float_and_back),
                cmocka_unit_test(floats_between_two_halves_round_to_nearest_even),
                cmocka_unit_test(floats_beyond_the_range_of_halves_become_infinity_or_zero),
                cmocka_unit_test(every_e4m3_converts_to_its_float_and_back),
                cmocka_unit_test(floats_between_two_e4m3_round_to_nearest_even),
                cmocka_unit_test(floats_beyond_the_range_of_e4m3_become_nan_or_zero),
                cmocka_unit_test(converts_unaligned_rows_of_every_type_to_floats),
                cmocka_unit_test(block_formats_match_those_of_other_programs),
                cmocka_unit_test(random_blocks_mean_what_they_mean_to_another_program),
                cmocka_unit_test(philox_matches_its_published_vectors),
                cmocka_unit_test(times_of_draws_are_those_of_another_program),
                cmocka_unit_test(the_logarithm_of_draws_is_as_close_as_its_header_says),
                cmocka_unit_test(memory_is_aligned_and_zeroed_and_too_large_sizes_fail),
                cmocka_unit_test(pool_tiles_do_not_overlap_and_pages_copy_whole),
                cmocka_unit_test(copies_between_pool_and_swap_are_made_in_order),
                cmocka_unit_test(refuses_shapes_with_pages_that_have_no_number),
                cmocka_unit_test(tiles_of_every_type_begin_where_page_h_says),
                cmocka_unit_test(floats_round_to_the_nearest_bfloat),
                cmocka_unit_test(steps_apply_page_table_changes_and_copy_their_rows),
                cmocka_unit_test(rows_take_their_tokens_from_picks_of_earlier_steps),
                cmocka_unit_test(a_slot_has_a_page_table_in_each_group),
                cmocka_unit_test(copies_are_made_in_the_pool_of_their_group),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
