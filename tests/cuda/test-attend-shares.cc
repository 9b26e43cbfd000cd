/*
 * Attention with heads of 512 numbers on the emulator: items of one KV head differ in the share of
 * V that they add up.  Otherwise it is checked as test-attend.cc checks other heads.
 */
#include "tests/cuda/attend-step.h"

#define HEAD 512u

/* Two KV heads, more slices than a ring has stages, and an end anywhere in a page. */
static void reads_pages_of_every_type(void **)
{
        for (kv_type type : types) {
                const fixture w = fixture_new(3, 2, HEAD, CONTEXT, type);

                check(&w, { { 0, 7, 1, 20 }, { 0, 1, 4, 260 } });
                check(&w, decodes({ 1, 15, 17, ATTEND_SPLIT, 650 }));
        }
}

static void reads_e4m3_pages_with_any_exponent(void **)
{
        for (uint32_t exponent : { 0u, 8u, 15u }) {
                const fixture w = fixture_of_exponent(exponent, HEAD);

                check(&w, decodes({ 1, 40 }));
        }
}

static void serves_a_group_of_any_number_of_heads(void **)
{
        for (uint32_t group : { 1u, 8u, 21u }) {
                const fixture w = fixture_new(group, 1, HEAD);

                check(&w, { { 0, 3, 1, 255 }, { 0, 1, 2, 0 } });
        }
}

static void a_window_hides_earlier_positions(void **)
{
        for (uint32_t window : { 1u, 40u }) {
                fixture w = fixture_new(4, 1, HEAD);

                w.window = window;
                check(&w, { { 0, 1, 3, 30 }, { 0, 6, 1, 252 }, { 0, 3, 7, 764 } });
        }
}

static void applies_softcap_sinks_and_slopes(void **)
{
        fixture w = fixture_new(5, 2, HEAD, CONTEXT, KV_INT8);

        w.softcap = 5;
        with_sinks_and_slopes(&w);
        check(&w, some());
}

static void adds_more_parts_than_fit_one_pass(void **)
{
        const fixture w = fixture_new(2, 2, HEAD, 2400);

        check(&w, decodes({ 2320, 300 }));
}

static void a_row_has_the_same_bits_alone_and_beside_others(void **)
{
        for (kv_type type : types) {
                fixture w = fixture_new(4, 1, HEAD, CONTEXT, type);
                step_of all;

                w.window = type == KV_BF16 ? 45 : 0;
                with_sinks_and_slopes(&w);
                all = run_plainly(&w, some(), true);
                for (const view_run &run : all.runs)
                        for (uint32_t r = 0; r < run.count; r++) {
                                const step_of one = run_plainly(
                                        &w, { { 0, 1, run.slot, run.position + r } }, r % 2);

                                assert_memory_equal(row_at(&one, 0), row_at(&all, run.row + r),
                                                    all.width * 2);
                        }
        }
}

static void a_prompt_has_the_same_bits_whole_and_in_chunks(void **)
{
        const uint32_t pieces[] = { 1, 16, 40, 194, 3, 26 };
        const fixture w = fixture_new(3, 1, HEAD);
        const step_of whole = run_plainly(&w, { { 0, 280, 2, 0 } }, true);
        uint32_t at = 0;

        for (uint32_t count : pieces) {
                const step_of piece =
                        run_plainly(&w, { { 0, 1, 1, 40 }, { 0, count, 2, at } }, count % 2);

                assert_memory_equal(row_at(&piece, 1), row_at(&whole, at),
                                    (size_t)count * whole.width * 2);
                at += count;
        }
        assert_int_equal(at, 280);
}

/* Whether all shares of a row and head that must not be finite have such a number. */
static bool is_unfit(const uint16_t *head, uint32_t first, uint32_t last)
{
        for (uint32_t share = first; share <= last; share++)
                if (finite(head + share * ATTEND_SHARE, ATTEND_SHARE))
                        return false;
        return true;
}

/* A number of V belongs to one share; a number of K, or a scale, to both. */
static void check_not_finite(kv_type type, bool v, uint32_t number)
{
        fixture w = fixture_new(4, 1, HEAD, CONTEXT, type);
        const step_of was = run_plainly(&w, { { 0, 12, 0, 295 } }, true);
        bool both = !v || KV_HAS_SCALES(type);
        step_of is;

        make_unfit(&w, 0, number_at(&w, 300, v, 0) + number, true, false);
        is = run_plainly(&w, { { 0, 12, 0, 295 } }, true);
        for (uint32_t r = 0; r < 12; r++) {
                if (295 + r < 300) {
                        assert_memory_equal(row_at(&is, r), row_at(&was, r), is.width * 2);
                        continue;
                }
                for (uint32_t h = 0; h < w.heads; h++)
                        assert_true(is_unfit(row_at(&is, r) + h * HEAD,
                                             both ? 0 : number / ATTEND_SHARE,
                                             both ? 1 : number / ATTEND_SHARE));
        }
}

static void a_number_that_is_not_finite_affects_only_rows_that_see_it(void **)
{
        for (kv_type type : types)
                for (uint32_t number : { 9u, 400u })
                        for (uint32_t v = 0; v < 2; v++)
                                check_not_finite(type, v, number);
}

static void reports_its_scratch_size(void **)
{
        attend_scratch scratch = { 32, 8, HEAD, 0, 0, 0, 0, nullptr, nullptr, nullptr };
        attend_scratch_bytes bytes;

        /* 8192 pages are 512 splits, for two shares of each of 8 KV heads */
        assert_int_equal(attend_scratch_of(&scratch, 4, 1, 8192, &bytes), 0);
        assert_int_equal(scratch.cuts_max, 512);
        assert_int_equal(bytes.parts, 512 * 8 * 2 * (16 * 256 + 32) * 4);
        assert_int_equal(bytes.arrived, 512 * 8 * 2 * 4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_pages_of_every_type),
                cmocka_unit_test(reads_e4m3_pages_with_any_exponent),
                cmocka_unit_test(serves_a_group_of_any_number_of_heads),
                cmocka_unit_test(a_window_hides_earlier_positions),
                cmocka_unit_test(applies_softcap_sinks_and_slopes),
                cmocka_unit_test(adds_more_parts_than_fit_one_pass),
                cmocka_unit_test(a_row_has_the_same_bits_alone_and_beside_others),
                cmocka_unit_test(a_prompt_has_the_same_bits_whole_and_in_chunks),
                cmocka_unit_test(a_number_that_is_not_finite_affects_only_rows_that_see_it),
                cmocka_unit_test(reports_its_scratch_size),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
