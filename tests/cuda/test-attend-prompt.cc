/*
 * Attention of long runs on the emulator, against the formula in double, among pages full of
 * NaN.  Runs have contexts of any length, fill any tiles, and stand beside decodes that
 * attend() takes.
 */
#include "tests/cuda/attend-fixture.h"

#include <errno.h>

#include "kernels/cuda/attend-prompt.h"

#define PROCESSORS 3u

struct step_of {
        const fixture *w;
        vector<view_run> runs;
        uint32_t rows_min; /* of runs that are taken as prompts; the others are attend()'s */
        uint32_t layers;   /* by one plan */
        uint32_t width, rows, tiles;
        vector<uint16_t> out; /* (rows, width) */
};

static void plan_and_run(step_of *step, attend_args *args, uint32_t bucket)
{
        attend_prompt_scratch prompts = {};
        attend_scratch_bytes bytes;
        size_t list_bytes;

        assert_int_equal(
                attend_scratch_of(&args->scratch, PROCESSORS, bucket, args->view.pages_max, &bytes),
                0);
        args->scratch.rows_below = prompts.rows_min = step->rows_min;
        assert_int_equal(
                attend_prompt_scratch_of(&prompts, &args->scratch, PROCESSORS, bucket, &list_bytes),
                0);
        vector<uint8_t> list(bytes.list, 0xff), parts(bytes.parts, 0xff), tiles(list_bytes, 0xff);
        vector<unsigned> arrived(bytes.arrived / sizeof(unsigned), 0);
        args->scratch.list = (attend_list *)list.data();
        args->scratch.parts = (float *)parts.data();
        args->scratch.arrived = arrived.data();
        prompts.list = (attend_prompt_list *)tiles.data();
        assert_int_equal(attend_plan(nullptr, &args->view, &args->scratch), 0);
        assert_int_equal(attend_prompt_plan(nullptr, &args->view, &args->scratch, &prompts), 0);
        for (uint32_t layer = 0; layer < step->layers; layer++) {
                std::fill(args->out, args->out + (size_t)step->rows * step->width, UNTOUCHED);
                if (step->rows_min > 1)
                        assert_int_equal(attend(nullptr, args), 0);
                assert_int_equal(attend_prompt(nullptr, args, &prompts), 0);
                assert_int_equal(prompts.list->next, 0);
                assert_int_equal(prompts.list->done, 0);
        }
        step->tiles = prompts.list->count;
        for (uint32_t i = 0; i < args->scratch.list->count; i++)
                assert_true(args->scratch.list->items[i].run.count < step->rows_min);
}

static void step_run_once(step_of *step)
{
        const fixture *w = step->w;
        memory m = memory_new(w, step->runs);
        uint32_t bucket = step->rows + 3;
        step_counts counts = { step->rows, (uint32_t)step->runs.size(), 0 };
        vector<uint16_t> q = queries(w, step->runs, step->rows);
        vector<uint16_t> out((size_t)bucket * step->width, UNTOUCHED);
        attend_args args = {};

        args.scratch.heads = w->heads;
        args.scratch.kv_heads = w->kv_heads;
        args.scratch.head_dim = w->head_dim;
        args.scratch.window = w->window;
        args.view.counts = &counts;
        args.view.runs = step->runs.data();
        args.view.rows_max = bucket;
        args.q = q.data();
        args.out = out.data();
        describe(&args, w, &m);
        plan_and_run(step, &args, bucket);
        for (size_t i = (size_t)step->rows * step->width; i < out.size(); i++)
                assert_int_equal(out[i], UNTOUCHED);
        out.resize((size_t)step->rows * step->width);
        step->out = out;
}

static step_of step_new(const fixture *w, vector<view_run> runs, uint32_t rows_min)
{
        step_of step = {};

        step.w = w;
        step.rows_min = rows_min;
        step.layers = 1;
        step.width = (w->heads * w->head_dim + 63) / 64 * 64;
        for (view_run &run : runs) {
                run.row = step.rows;
                step.rows += run.count;
        }
        step.runs = runs;
        return step;
}

/* As the header has it; values are no larger than 1. */
static double allowed(const fixture *w, uint32_t own, double largest, double number)
{
        double off = largest * (w->head_dim + 64) * 0x1p-24 + (w->softcap + 1) * 0x1p-20;

        double weights = w->type == KV_F16 ? 0x1p-11 : 0x1p-8;

        return weights + (own + 1) * 0x1p-25 + 2 * off + (fabs(number) + off) * 0x1p-8;
}

static void compare(const step_of *step)
{
        const fixture *w = step->w;
        double worst = 0;

        for (const view_run &run : step->runs) {
                for (uint32_t i = 0; i < run.count * w->heads; i++) {
                        uint32_t row = i / w->heads, head = i % w->heads, own = run.position + row;
                        double largest;
                        vector<double> want = expected(w, run.slot, own, head, &largest);
                        const uint16_t *out =
                                &step->out[(run.row + row) * step->width + head * w->head_dim];

                        for (uint32_t d = 0; d < w->head_dim; d++) {
                                double have = (double)from_bfloat(out[d]);
                                double wrong =
                                        fabs(have - want[d]) / allowed(w, own, largest, want[d]);

                                worst = fmax(worst, wrong);
                                if (!(wrong <= 1))
                                        fail_msg("slot %u position %u head %u number %u: %g, "
                                                 "and not %g",
                                                 run.slot, own, head, d, have, want[d]);
                        }
                }
        }
        for (uint32_t r = 0; r < step->rows; r++)
                for (uint32_t c = w->heads * w->head_dim; c < step->width; c++)
                        assert_int_equal(step->out[r * step->width + c], 0);
        print_message("  %u rows, %u tiles; worst %.2f of what is allowed\n", step->rows,
                      step->tiles, worst);
}

/* Under all schedules: the same bits, and the right ones. */
static void check(const fixture *w, vector<view_run> runs, uint32_t rows_min)
{
        step_of first = step_new(w, runs, rows_min);

        for (unsigned s = 0; s < EMU_SCHEDULES; s += SCHEDULES_STEP) {
                step_of step = first;

                emu_set_schedule(s);
                step_run_once(&step);
                if (!s)
                        first.out = step.out, first.tiles = step.tiles;
                assert_memory_equal(step.out.data(), first.out.data(), first.out.size() * 2);
        }
        compare(&first);
}

/* Under one schedule. */
static step_of run_plainly(const fixture *w, vector<view_run> runs)
{
        step_of step = step_new(w, runs, 1);

        emu_set_schedule(3);
        step_run_once(&step);
        return step;
}

/* Ends of a page, of a step, of a tile; and more steps than stages can hold at once. */
static vector<view_run> ragged(void)
{
        return { { 0, 19, 0, 0 },  { 0, 1, 1, 1 },   { 0, 33, 2, 15 }, { 0, 7, 3, 16 },
                 { 0, 16, 4, 17 }, { 0, 3, 5, 255 }, { 0, 2, 6, 600 } };
}

static vector<view_run> few(void)
{
        return { { 0, 40, 1, 50 }, { 0, 5, 2, 290 } };
}

/* ---- results ---- */

static void runs_of_any_length_see_their_past_and_themselves(void **)
{
        for (uint32_t g : { 1u, 2u, 4u, 7u, 8u }) {
                const fixture w = fixture_new(g, g == 2 ? 2 : 1, 64);

                check(&w, ragged(), 1);
        }
}

static void serves_every_head_dimension_of_attend_but_512(void **)
{
        for (uint32_t d = 0; d < 600; d++) {
                assert_false(attend_prompt_serves(d, KV_F32));
                for (kv_type type : types) {
                        bool served = attend_serves(d, type) && d != 512;

                        assert_int_equal(attend_prompt_serves(d, type), served);
                        if (served && (type != KV_F16 || d != 64)) {
                                const fixture w = fixture_new(3, 1, d, CONTEXT, type);

                                check(&w, few(), 1);
                        }
                }
        }
}

static void reads_pages_of_every_type(void **)
{
        for (kv_type type : types) {
                const fixture w = fixture_new(2, 2, 80, CONTEXT, type);

                check(&w, ragged(), 1);
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

                check(&w, { { 0, 20, 1, 30 } }, 1);
        }
}

static void splits_a_long_run_into_many_tiles(void **)
{
        const fixture w = fixture_new(4, 1, 64), wide = fixture_new(1, 1, 256);

        check(&w, { { 0, 150, 3, 0 }, { 0, 70, 1, 600 } }, 1);
        check(&wide, { { 0, 140, 3, 30 } }, 1);
}

static void splits_a_group_with_more_heads_than_a_tile(void **)
{
        const fixture w = fixture_new(131, 1, 32);

        check(&w, { { 0, 3, 0, 100 } }, 1);
}

static void a_window_hides_earlier_positions(void **)
{
        for (uint32_t window : { 1u, 16u, 63u, 64u, 65u, 250u }) {
                fixture w = fixture_new(4, 1, window % 3 ? 64 : 128);
                vector<view_run> runs = few();

                w.window = window;
                runs.push_back({ 0, 9, 3, 120 }); /* of a warp, some see a step and some the next */
                runs.push_back({ 0, 7, SLOTS - 1, CONTEXT - 7 }); /* to the end of all tables */
                check(&w, runs, 1);
        }
}

static void applies_softcap_sinks_and_slopes(void **)
{
        fixture w = fixture_new(5, 2, 64);

        w.softcap = 2;
        check(&w, few(), 1);
        w.softcap = 0;
        with_sinks_and_slopes(&w);
        check(&w, few(), 1);
        w.softcap = 5;
        w.window = 60;
        check(&w, few(), 1);
}

static void handles_scores_that_are_far_apart(void **)
{
        for (kv_type type : types) {
                fixture w = fixture_new(4, 1, 64, CONTEXT, type);

                w.scale = 300;
                check(&w, few(), 1);
        }
}

/* ---- whose rows they are ---- */

static void exactly_one_attention_kernel_computes_each_row(void **)
{
        fixture w = fixture_new(4, 2, 64);

        with_sinks_and_slopes(&w);
        for (uint32_t rows_min : { 8u, 40u, 41u })
                check(&w,
                      { { 0, 1, 3, 30 },
                        { 0, 40, 1, 230 },
                        { 0, 1, 0, 519 },
                        { 0, 7, 5, 15 },
                        { 0, 8, 6, 0 },
                        { 0, 1, 2, 0 } },
                      rows_min);
}

static void one_plan_serves_several_layers(void **)
{
        const fixture w = fixture_new(2, 2, 32);

        for (unsigned s = 0; s < EMU_SCHEDULES; s += SCHEDULES_STEP) {
                step_of step = step_new(&w, few(), 1);

                emu_set_schedule(s);
                step.layers = 3;
                step_run_once(&step);
                compare(&step);
        }
}

/* More runs than the warp that lists them has lanes. */
static void lists_every_tile_of_every_long_run_once(void **)
{
        attend_scratch shape = {};
        attend_prompt_scratch scratch = {};
        vector<view_run> runs;
        step_counts counts = {};
        step_view view = {};
        uint32_t tiles = 0;
        size_t bytes;

        shape.heads = 21;
        shape.kv_heads = 3;
        shape.head_dim = 64;
        dice = 9;
        for (uint32_t i = 0; i < 100; i++) {
                uint32_t count = i == 41 ? 900 : i / 10 == 7 ? 1 : 1 + roll_below(60);

                runs.push_back({ counts.rows, count, i, roll_below(9000) });
                counts.rows += count;
                tiles += count < 20 ? 0 : (count * 7 + 127) / 128;
        }
        counts.runs = 100;
        assert_int_equal(attend_prompt_scratch_of(&scratch, &shape, 8, counts.rows, &bytes), 0);
        scratch.rows_min = 20;
        view.counts = &counts;
        view.runs = runs.data();
        view.rows_max = counts.rows;
        for (unsigned s = 0; s < EMU_SCHEDULES; s += SCHEDULES_STEP) {
                vector<uint8_t> memory(bytes, 0xff);
                /*
                 * for the first row of each run: 1 more than the number of its tiles still to
                 * come
                 */
                vector<uint32_t> next(counts.rows);
                uint32_t before = 0;

                emu_set_schedule(s);
                scratch.list = (attend_prompt_list *)memory.data();
                assert_int_equal(attend_prompt_plan(nullptr, &view, &shape, &scratch), 0);
                assert_int_equal(scratch.list->count, tiles);
                assert_int_equal(scratch.list->next, 0);
                assert_int_equal(scratch.list->done, 0);
                for (uint32_t i = 0; i < tiles; i++) {
                        const attend_prompt_item *item = &scratch.list->items[i];
                        const view_run *run = &runs[item->run.slot];
                        uint32_t *left = &next[run->row];

                        assert_memory_equal(&item->run, run, sizeof(*run));
                        assert_true(run->row >= before);
                        before = run->row;
                        if (!*left)
                                *left = (run->count * 7 + 127) / 128 + 1;
                        assert_int_equal(item->tile, *left - 2);
                        --*left;
                }
        }
}

static void does_nothing_for_a_bucket_of_few_rows(void **)
{
        attend_prompt_scratch scratch = {};
        attend_args args = {};

        /* nothing of what would be looked at is there */
        args.scratch.heads = args.scratch.kv_heads = 1;
        args.scratch.head_dim = 64;
        args.scale = 1;
        args.view.rows_max = ATTEND_PROMPT_ROWS - 1;
        scratch.rows_min = ATTEND_PROMPT_ROWS;
        scratch.blocks = 1;
        assert_int_equal(attend_prompt_plan(nullptr, &args.view, &args.scratch, &scratch), 0);
        assert_int_equal(attend_prompt(nullptr, &args, &scratch), 0);
}

static const uint16_t *row_at(const step_of *step, uint32_t row)
{
        return &step->out[(size_t)row * step->width];
}

static void a_prompt_has_the_same_bits_whole_and_in_chunks(void **)
{
        const uint32_t pieces[] = { 1, 16, 40, 2, 75, 3, 24 };

        for (uint32_t i = 0; i < 5; i++) {
                fixture w = fixture_new(3, 1, 64, CONTEXT, i < 2 ? KV_F16 : types[i - 1]);
                uint32_t at = 0;
                step_of whole;

                w.window = i % 2 ? 45 : 0;
                whole = run_plainly(&w, { { 0, 161, 2, 0 } });
                for (uint32_t count : pieces) {
                        const step_of piece =
                                run_plainly(&w, { { 0, 5, 1, 40 }, { 0, count, 2, at } });

                        assert_memory_equal(row_at(&piece, 5), row_at(&whole, at),
                                            (size_t)count * whole.width * 2);
                        at += count;
                }
                assert_int_equal(at, 161);
        }
}

/* ---- numbers that are none ---- */

static void check_not_finite(kv_type type, uint32_t d, uint32_t where, bool v, bool nan, bool minus)
{
        const vector<view_run> runs = { { 0, 20, 0, 295 } };
        fixture w = fixture_new(4, 1, d, CONTEXT, type);
        step_of was, is;

        w.window = 9;
        was = run_plainly(&w, runs);
        make_unfit(&w, 0, number_at(&w, where, v, 0) + 9, nan, minus);
        is = run_plainly(&w, runs);
        for (uint32_t r = 0; r < 20; r++) {
                if (295 + r < where || 295 + r >= where + 9)
                        assert_memory_equal(row_at(&is, r), row_at(&was, r), is.width * 2);
                else if (v || nan || KV_HAS_SCALES(type))
                        for (uint32_t h = 0; h < w.heads; h++)
                                assert_false(finite(row_at(&is, r) + h * d, d));
        }
}

static void a_number_that_is_not_finite_affects_only_rows_that_see_it(void **)
{
        for (kv_type type : types)
                for (uint32_t d : { 64u, 256u })
                        for (uint32_t x = 0; x < 4; x++) {
                                const uint32_t v = x % 2, where = 300 + 11 * (x / 2);

                                check_not_finite(type, d, where, v, true, false);
                                check_not_finite(type, d, where, v, false, false);
                                check_not_finite(type, d, where, v, false, true);
                        }
}

/* ---- scratch ---- */

static void reports_its_scratch_size_or_an_overflow(void **)
{
        attend_scratch shape = {};
        attend_prompt_scratch scratch = {};
        size_t bytes;

        shape.heads = 32;
        shape.kv_heads = 8;
        shape.head_dim = 128;
        assert_int_equal(attend_prompt_scratch_of(&scratch, &shape, 4, 4096, &bytes), 0);
        assert_int_equal(bytes, sizeof(attend_prompt_list) + 4096 * sizeof(attend_prompt_item));
        assert_int_equal(attend_prompt_scratch_of(&scratch, &shape, 4, UINT32_MAX, &bytes),
                         -EOVERFLOW);
        assert_int_equal(attend_prompt_scratch_of(&scratch, &shape, UINT32_MAX, 4096, &bytes),
                         -EOVERFLOW);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(runs_of_any_length_see_their_past_and_themselves),
                cmocka_unit_test(serves_every_head_dimension_of_attend_but_512),
                cmocka_unit_test(reads_pages_of_every_type),
                cmocka_unit_test(reads_e4m3_pages_with_every_exponent),
                cmocka_unit_test(splits_a_long_run_into_many_tiles),
                cmocka_unit_test(splits_a_group_with_more_heads_than_a_tile),
                cmocka_unit_test(a_window_hides_earlier_positions),
                cmocka_unit_test(applies_softcap_sinks_and_slopes),
                cmocka_unit_test(handles_scores_that_are_far_apart),
                cmocka_unit_test(exactly_one_attention_kernel_computes_each_row),
                cmocka_unit_test(one_plan_serves_several_layers),
                cmocka_unit_test(lists_every_tile_of_every_long_run_once),
                cmocka_unit_test(does_nothing_for_a_bucket_of_few_rows),
                cmocka_unit_test(a_prompt_has_the_same_bits_whole_and_in_chunks),
                cmocka_unit_test(a_number_that_is_not_finite_affects_only_rows_that_see_it),
                cmocka_unit_test(reports_its_scratch_size_or_an_overflow),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
