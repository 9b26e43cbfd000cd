/* Shared by tests of the kernel attend: a step on the emulator, and what its results must be. */
#ifndef TESTS_CUDA_ATTEND_STEP_H
#define TESTS_CUDA_ATTEND_STEP_H

#include "tests/cuda/attend-fixture.h"

#define PROCESSORS 2u

/* ---- a step ---- */

struct step_of {
        const fixture *w;
        vector<view_run> runs;
        uint32_t layers; /* by one plan */
        bool cut;        /* where that is worth anything; else every tile is whole */
        uint32_t width, rows, items;
        vector<uint16_t> out; /* (rows, width) */
};

static void step_run_once(step_of *step)
{
        const fixture *w = step->w;
        memory m = memory_new(w, step->runs);
        uint32_t bucket = step->rows + 3, pages_max = w->context / PAGE_POSITIONS;
        step_counts counts = { step->rows, (uint32_t)step->runs.size(), 0 };
        vector<uint16_t> q = queries(w, step->runs, step->rows);
        vector<uint16_t> out((size_t)bucket * step->width, UNTOUCHED);
        attend_args args = {};
        attend_scratch_bytes bytes;

        args.scratch = { w->heads, w->kv_heads, w->head_dim, w->window, 0,
                         0,        0,           nullptr,     nullptr,   nullptr };
        assert_int_equal(attend_scratch_of(&args.scratch, PROCESSORS, bucket, pages_max, &bytes),
                         0);
        if (step->cut)
                args.scratch.blocks *= 16;
        else
                args.scratch.cuts_max = 0;
        vector<uint8_t> list(bytes.list, 0xff), parts(bytes.parts, 0xff);
        vector<unsigned> arrived(bytes.arrived / sizeof(unsigned), 0);
        args.scratch.list = (attend_list *)list.data();
        args.scratch.parts = (float *)parts.data();
        args.scratch.arrived = arrived.data();
        args.view.counts = &counts;
        args.view.runs = step->runs.data();
        args.view.rows_max = bucket;
        args.q = q.data();
        args.out = out.data();
        describe(&args, w, &m);
        assert_int_equal(attend_plan(nullptr, &args.view, &args.scratch), 0);
        for (uint32_t layers = 0; layers < step->layers; layers++)
                assert_int_equal(attend(nullptr, &args), 0);
        for (unsigned n : arrived)
                assert_int_equal(n, 0);
        for (size_t i = (size_t)step->rows * step->width; i < out.size(); i++)
                assert_int_equal(out[i], UNTOUCHED);
        out.resize((size_t)step->rows * step->width);
        step->items = args.scratch.list->count;
        step->out = out;
}

static step_of step_new(const fixture *w, vector<view_run> runs)
{
        step_of step = {};

        step.w = w;
        step.layers = 1;
        step.width = (w->heads * w->head_dim + 63) / 64 * 64;
        for (view_run &run : runs) {
                run.row = step.rows;
                step.rows += run.count;
        }
        step.runs = runs;
        return step;
}

/* Under one schedule. */
static step_of run_plainly(const fixture *w, vector<view_run> runs, bool cut)
{
        step_of step = step_new(w, runs);

        step.cut = cut;
        emu_set_schedule(cut ? 3 : 2);
        step_run_once(&step);
        return step;
}

static void compare(const step_of *step)
{
        const fixture *w = step->w;
        double worst = 0;

        for (const view_run &run : step->runs) {
                for (uint32_t i = 0; i < run.count * w->heads; i++) {
                        uint32_t row = i / w->heads, head = i % w->heads;
                        double largest;
                        vector<double> want =
                                expected(w, run.slot, run.position + row, head, &largest);
                        const uint16_t *out =
                                &step->out[(run.row + row) * step->width + head * w->head_dim];

                        for (uint32_t d = 0; d < w->head_dim; d++) {
                                double have = (double)from_bfloat(out[d]);
                                double wrong = fabs(have - want[d]);

                                /*
                                 * Half of a bfloat's last place, plus the error of weights that
                                 * are halves or bfloats.
                                 */
                                wrong /= fabs(want[d]) / 256 + (w->type == KV_F16 ? 0.001 : 0.004);
                                worst = wrong > worst || wrong != wrong ? wrong : worst;
                                if (!(wrong <= 1))
                                        fail_msg("slot %u position %u head %u number %u: %g, "
                                                 "and not %g",
                                                 run.slot, run.position + row, head, d, have,
                                                 want[d]);
                        }
                }
        }
        for (uint32_t r = 0; r < step->rows; r++)
                for (uint32_t c = w->heads * w->head_dim; c < step->width; c++)
                        assert_int_equal(step->out[r * step->width + c], 0);
        print_message("  %u rows, %u items; worst %.2f of what is allowed\n", step->rows,
                      step->items, worst);
}

/* Under all schedules, with tiles cut and whole: the same bits, and the right ones. */
static void check(const fixture *w, vector<view_run> runs)
{
        step_of first = step_new(w, runs);

        for (unsigned s = 0; s < EMU_SCHEDULES; s += SCHEDULES_STEP) {
                step_of step = first;

                emu_set_schedule(s);
                step.cut = s % 2;
                step_run_once(&step);
                if (!s)
                        first.out = step.out, first.items = step.items;
                assert_memory_equal(step.out.data(), first.out.data(), first.out.size() * 2);
        }
        compare(&first);
}

/* One row in each slot, with a given context. */
static vector<view_run> decodes(vector<uint32_t> contexts)
{
        vector<view_run> runs;

        for (uint32_t s = 0; s < contexts.size(); s++)
                runs.push_back({ 0, 1, s, contexts[s] - 1 });
        return runs;
}

/* A chunk of a prompt, a prompt, and decodes. */
static vector<view_run> some(void)
{
        return { { 0, 1, 3, 30 }, { 0, 6, 1, 252 }, { 0, 1, 2, 0 }, { 0, 9, 6, 12 } };
}

static const uint16_t *row_at(const step_of *step, uint32_t row)
{
        return &step->out[(size_t)row * step->width];
}

#endif
