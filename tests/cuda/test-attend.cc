/*
 * Attention on the emulator, against the formula in double, among pages full of NaN.  It also
 * checks the promise that a row's bits are its own: they do not depend on other rows, on how a
 * prompt was cut, or on how the work was split.
 */
#include "tests/cuda/attend-step.h"

#include <errno.h>

/* Decodes beside a chunk of a prompt that has a past. */
static vector<view_run> mixed(void)
{
        return { { 0, 1, 3, 30 },
                 { 0, 40, 1, 230 },
                 { 0, 1, 0, 519 },
                 { 0, 3, 5, 15 },
                 { 0, 1, 2, 0 } };
}

/* ---- results ---- */

static void decodes_see_contexts_of_any_length(void **)
{
        for (uint32_t g : { 1u, 4u, 7u, 8u }) {
                const fixture w = fixture_new(g, g == 1 ? 2 : 1, 64), wide = fixture_new(g, 1, 128);

                check(&w,
                      decodes({ 1, 15, 16, 17, ATTEND_SPLIT - 1, ATTEND_SPLIT, ATTEND_SPLIT + 1 }));
                check(&wide, decodes({ 1, 15, 16, 17, g == 4 ? ATTEND_SPLIT + 1 : 33 }));
        }
}

static void splits_a_long_context(void **)
{
        for (uint32_t d : { 128u, 256u }) {
                const fixture w = fixture_new(4, 1, d);

                check(&w, decodes({ 600, 17 }));
        }
}

static void adds_more_parts_than_fit_one_pass(void **)
{
        const fixture w = fixture_new(2, 1, 32, 2400);

        check(&w, decodes({ 2320 }));
}

static void serves_every_supported_head_dimension(void **)
{
        for (uint32_t d = 0; d < 600; d++) {
                bool known = d == 32 || d == 64 || d == 80 || d == 96 || d == 128 || d == 256 ||
                             d == 512;

                assert_false(attend_serves(d, KV_F32));
                for (kv_type type : types) {
                        assert_int_equal(attend_serves(d, type), known);
                        if (known && (type != KV_F16 || (d != 64 && d != 128))) {
                                const fixture w = fixture_new(3, 1, d, CONTEXT, type);

                                check(&w, { { 0, 7, 1, 20 }, { 0, 1, 4, 260 } });
                        }
                }
        }
}

static void a_chunk_sees_its_past_and_itself_up_to_each_row(void **)
{
        const fixture four = fixture_new(4, 1, 64), seven = fixture_new(7, 2, 64);

        check(&four, mixed());
        check(&seven, some());
}

/* Two KV heads, splits, more slices than a ring has stages, and an end anywhere in a page. */
static void reads_pages_of_every_type(void **)
{
        for (kv_type type : types) {
                const fixture w = fixture_new(2, 2, 80, CONTEXT, type);

                check(&w, some());
                check(&w, decodes({ 1, 15, 17, ATTEND_SPLIT + 1, 799 }));
        }
}

/*
 * By page.h a head's largest number has the largest exponent but one.  Readers must not rely on
 * that.
 */
static void reads_e4m3_pages_with_every_exponent(void **)
{
        for (uint32_t exponent = 0; exponent < 16; exponent++) {
                const fixture w = fixture_of_exponent(exponent, exponent % 2 ? 64 : 80);

                check(&w, decodes({ 1, 15, 40 }));
        }
}

static void splits_a_group_with_more_heads_than_a_tile(void **)
{
        const fixture w = fixture_new(21, 1, 32);

        check(&w, { { 0, 3, 0, 100 }, { 0, 1, 1, 258 } });
}

static void a_window_hides_earlier_positions(void **)
{
        for (uint32_t window : { 1u, 32u, 250u }) {
                fixture w = fixture_new(4, 1, 64);
                vector<view_run> runs = some();

                w.window = window;
                runs.push_back({ 0, 7, 7, 764 });
                check(&w, runs);
        }
}

static void does_not_list_splits_before_the_window(void **)
{
        fixture w = fixture_new(2, 1, 64);

        w.window = 20;
        assert_int_equal(run_plainly(&w, { { 0, 1, 0, 799 } }, true).items, 1);
        w.window = 300;
        assert_int_equal(run_plainly(&w, { { 0, 1, 0, 799 } }, true).items, 3);
        w.window = 0;
        assert_int_equal(run_plainly(&w, { { 0, 1, 0, 799 } }, true).items, 4);
        assert_int_equal(run_plainly(&w, { { 0, 1, 0, 799 } }, false).items, 1);
}

/* More tiles than the kernel that lists them has threads, and not all can be cut. */
static void lists_every_split_of_every_tile_once(void **)
{
        const uint32_t group = 16, kv_heads = 2;
        attend_scratch scratch = { group * kv_heads, kv_heads, 32,     0, 0, 0, 0,
                                   nullptr,          nullptr,  nullptr };
        vector<view_run> runs;
        step_counts counts = {};
        step_view view = {};
        attend_scratch_bytes bytes;
        uint32_t splits = 0, cuts = 0, listed = 0;

        dice = 9;
        for (uint32_t i = 0; i < 300; i++) {
                runs.push_back({ counts.rows, 1 + roll_below(4), i, roll_below(9000) });
                counts.rows += runs.back().count;
        }
        counts.runs = 300;
        assert_int_equal(attend_scratch_of(&scratch, 8, counts.rows, 700, &bytes), 0);
        vector<uint8_t> memory(bytes.list, 0xff);
        scratch.list = (attend_list *)memory.data();
        view.counts = &counts;
        view.runs = runs.data();
        view.rows_max = counts.rows;
        for (unsigned s = 0; s < EMU_SCHEDULES; s += SCHEDULES_STEP) {
                vector<bool> taken(scratch.cuts_max);
                /* for each tile, which is a row: its next split */
                vector<uint32_t> next(counts.rows);

                emu_set_schedule(s);
                scratch.blocks = s % 2 ? 5000 : 1000;
                assert_int_equal(attend_plan(nullptr, &view, &scratch), 0);
                splits = cuts = 0;
                for (uint32_t i = 0; i < scratch.list->count; i++) {
                        const attend_item *item = &scratch.list->items[i];
                        uint32_t row = item->run.row + item->tile;
                        uint32_t all = (item->run.position + item->tile) / ATTEND_SPLIT + 1;

                        assert_true(item->tile < item->run.count);
                        assert_int_equal(item->begin, next[row]);
                        next[row] = item->end;
                        splits += item->end - item->begin;
                        if (item->part == ATTEND_WHOLE) {
                                assert_int_equal(item->end, all);
                                continue;
                        }
                        assert_int_equal(item->end, item->begin + 1);
                        assert_true(item->part + all <= scratch.cuts_max);
                        assert_false(taken[item->part + item->begin]);
                        taken[item->part + item->begin] = true;
                        cuts++;
                }
                for (const view_run &run : runs)
                        for (uint32_t r = 0; r < run.count; r++)
                                assert_int_equal(next[run.row + r],
                                                 (run.position + r) / ATTEND_SPLIT + 1);
                assert_true(cuts > 0 && cuts < splits);
                listed = scratch.list->count;
        }
        print_message("  %u splits, %u of them of their own, %u items\n", splits, cuts, listed);
}

static void applies_softcap_sinks_and_slopes(void **)
{
        fixture w = fixture_new(5, 2, 64);

        w.softcap = 2;
        check(&w, some());
        w.softcap = 0;
        with_sinks_and_slopes(&w);
        check(&w, some());
        w.softcap = 5;
        w.window = 60;
        check(&w, some());
}

static void handles_scores_that_are_far_apart(void **)
{
        for (kv_type type : types) {
                fixture w = fixture_new(4, 1, 64, CONTEXT, type);

                w.scale = 300;
                check(&w, { { 0, 9, 1, 290 }, { 0, 1, 2, 700 } });
        }
}

/* ---- whose bits they are ---- */

static void a_row_has_the_same_bits_alone_and_beside_others(void **)
{
        for (uint32_t i = 0; i < 5; i++) {
                const uint32_t window = i == 1 ? 45 : 0;
                fixture w = fixture_new(4, 1, 64, CONTEXT, i < 2 ? KV_F16 : types[i - 1]);
                step_of all;

                w.window = window;
                with_sinks_and_slopes(&w);
                all = run_plainly(&w, i ? some() : mixed(), true);
                for (const view_run &run : all.runs) {
                        for (uint32_t r = 0; r < run.count; r++) {
                                const step_of one = run_plainly(
                                        &w, { { 0, 1, run.slot, run.position + r } }, r % 2);

                                assert_memory_equal(row_at(&one, 0), row_at(&all, run.row + r),
                                                    all.width * 2);
                        }
                }
        }
}

static void a_prompt_has_the_same_bits_whole_and_in_chunks(void **)
{
        const uint32_t pieces[] = { 1, 16, 40, 2, 194, 3, 24 };

        for (kv_type type : types) {
                const fixture w = fixture_new(3, 1, 64, CONTEXT, type);
                const step_of whole = run_plainly(&w, { { 0, 280, 2, 0 } }, true);
                uint32_t at = 0;

                for (uint32_t count : pieces) {
                        const step_of piece = run_plainly(
                                &w, { { 0, 1, 1, 40 }, { 0, count, 2, at } }, count % 2);

                        assert_memory_equal(row_at(&piece, 1), row_at(&whole, at),
                                            (size_t)count * whole.width * 2);
                        at += count;
                }
                assert_int_equal(at, 280);
        }
}

static void one_plan_serves_several_layers(void **)
{
        const fixture w = fixture_new(4, 1, 64);
        step_of step = step_new(&w, decodes({ CONTEXT, 20 }));

        step.cut = true;
        step.layers = 3;
        step_run_once(&step);
        compare(&step);
}

static void splitting_the_work_changes_no_bit(void **)
{
        const fixture w = fixture_new(2, 2, 128);
        vector<view_run> runs = decodes({ CONTEXT, 500, 20, 513 });

        assert_memory_equal(run_plainly(&w, runs, true).out.data(),
                            run_plainly(&w, runs, false).out.data(), 4 * w.heads * 128 * 2);
}

/* ---- numbers that are none ---- */

static void check_not_finite(kv_type type, bool v, bool nan, bool minus)
{
        fixture w = fixture_new(4, 1, 64, CONTEXT, type);
        const step_of was = run_plainly(&w, { { 0, 20, 0, 295 } }, true);
        step_of is;

        make_unfit(&w, 0, number_at(&w, 300, v, 0) + 9, nan, minus);
        is = run_plainly(&w, { { 0, 20, 0, 295 } }, true);
        for (uint32_t r = 0; r < 20; r++) {
                if (295 + r < 300)
                        assert_memory_equal(row_at(&is, r), row_at(&was, r), is.width * 2);
                else if (v || nan || KV_HAS_SCALES(type))
                        for (uint32_t h = 0; h < w.heads; h++)
                                assert_false(finite(row_at(&is, r) + h * 64, 64));
        }
}

static void a_number_that_is_not_finite_affects_only_rows_that_see_it(void **)
{
        for (kv_type type : types)
                for (uint32_t v = 0; v < 2; v++) {
                        check_not_finite(type, v, true, false);
                        check_not_finite(type, v, false, false);
                        check_not_finite(type, v, false, true);
                }
}

/* ---- scratch ---- */

static void reports_its_scratch_size_or_an_overflow(void **)
{
        attend_scratch scratch = { 32, 8, 128, 0, 0, 0, 0, nullptr, nullptr, nullptr };
        attend_scratch_bytes bytes;

        /* 8192 pages are 512 splits: one sequence of that length, on 8 KV heads */
        assert_int_equal(attend_scratch_of(&scratch, 4, 1, 8192, &bytes), 0);
        assert_int_equal(scratch.cuts_max, 512);
        assert_int_equal(bytes.parts, 512 * 8 * (16 * 128 + 32) * 4);
        assert_int_equal(bytes.arrived, 512 * 8 * 4);
        assert_int_equal(attend_scratch_of(&scratch, 4, UINT32_MAX, 8192, &bytes), -EOVERFLOW);
        assert_int_equal(attend_scratch_of(&scratch, 4, 4096, UINT32_MAX, &bytes), -EOVERFLOW);
        assert_int_equal(attend_scratch_of(&scratch, UINT32_MAX, 4096, 8192, &bytes), -EOVERFLOW);
        /* a large step needs no more than what keeps a device busy */
        assert_int_equal(attend_scratch_of(&scratch, 132, 4096, 8192, &bytes), 0);
        assert_true(bytes.parts < 80u << 20);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decodes_see_contexts_of_any_length),
                cmocka_unit_test(splits_a_long_context),
                cmocka_unit_test(adds_more_parts_than_fit_one_pass),
                cmocka_unit_test(serves_every_supported_head_dimension),
                cmocka_unit_test(a_chunk_sees_its_past_and_itself_up_to_each_row),
                cmocka_unit_test(reads_pages_of_every_type),
                cmocka_unit_test(reads_e4m3_pages_with_every_exponent),
                cmocka_unit_test(splits_a_group_with_more_heads_than_a_tile),
                cmocka_unit_test(a_window_hides_earlier_positions),
                cmocka_unit_test(does_not_list_splits_before_the_window),
                cmocka_unit_test(lists_every_split_of_every_tile_once),
                cmocka_unit_test(applies_softcap_sinks_and_slopes),
                cmocka_unit_test(handles_scores_that_are_far_apart),
                cmocka_unit_test(a_row_has_the_same_bits_alone_and_beside_others),
                cmocka_unit_test(a_prompt_has_the_same_bits_whole_and_in_chunks),
                cmocka_unit_test(one_plan_serves_several_layers),
                cmocka_unit_test(splitting_the_work_changes_no_bit),
                cmocka_unit_test(a_number_that_is_not_finite_affects_only_rows_that_see_it),
                cmocka_unit_test(reports_its_scratch_size_or_an_overflow),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
