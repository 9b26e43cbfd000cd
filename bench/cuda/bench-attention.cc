/*
 * Attention (attend.h): decodes, for several numbers and context lengths, with pages in no
 * particular order; and prompts.  Decodes go from one layer's pages to those of the next, so that
 * the pages come from memory and not from the cache.
 */
#include <stdio.h>
#include <math.h>
#include <utility>
#include <vector>

#include "bench/cuda/bench.h"
#include "kernels/cuda/attend-prompt.h"
#include "kernels/cuda/intrinsics.h"

#define HEADS    32u
#define KV_HEADS 8u
#define CACHED   ((size_t)300 << 20)
#define NODES    16u

struct shape {
        /* context: of each slot, including the rows of this step; its last row is at context - 1 */
        uint32_t slots, rows, context;
        uint32_t head_dim;
};

struct operands {
        attend_args args;
        attend_prompt_scratch prompts;
        const uint8_t *pages;
        size_t layer_bytes;
        unsigned layers;
        std::vector<void *> memory; /* all memory that was allocated */
};

template <class T> static T *keep(operands *o, T *memory)
{
        o->memory.push_back((void *)memory);
        return memory;
}

static std::vector<uint32_t> shuffled(uint32_t count)
{
        std::vector<uint32_t> pages(count);
        uint64_t dice = 1;

        for (uint32_t i = 0; i < count; i++)
                pages[i] = i;
        for (uint32_t i = count - 1; i > 0; i--) {
                dice = dice * 6364136223846793005u + 1442695040888963407u;
                std::swap(pages[i], pages[(dice >> 33) % (i + 1)]);
        }
        return pages;
}

static void make_step(bench *b, operands *o, const shape *s)
{
        uint32_t rows = s->slots * s->rows;
        step_view *view = &o->args.view;
        std::vector<view_run> runs;

        for (uint32_t i = 0; i < s->slots; i++)
                runs.push_back({ i * s->rows, s->rows, i, s->context - s->rows });
        view->pages_max = (s->context + PAGE_POSITIONS - 1) / PAGE_POSITIONS;
        view->rows_max = rows < 8 ? 8 : rows;
        view->runs = keep(o, bench_sent(b, runs));
        view->counts = keep(o, bench_sent<step_counts>(b, { { rows, s->slots, s->slots } }));
        view->tables = keep(o, bench_sent(b, shuffled(s->slots * view->pages_max)));
}

static void make_room(bench *b, operands *o, const shape *s)
{
        attend_scratch *scratch = &o->args.scratch;
        attend_scratch_bytes bytes;

        *scratch = {};
        scratch->heads = HEADS;
        scratch->kv_heads = KV_HEADS;
        scratch->head_dim = s->head_dim;
        bench_must(attend_scratch_of(scratch, device_processors(b->device), o->args.view.rows_max,
                                     o->args.view.pages_max, &bytes),
                   "room for attention");
        scratch->list = (attend_list *)keep(o, bench_new(b, bytes.list));
        scratch->parts = (float *)keep(o, bench_new(b, bytes.parts));
        scratch->arrived = (unsigned *)keep(o, bench_new(b, bytes.arrived));
        bench_must(device_clear(b->device, STREAM_STEPS, scratch->arrived, bytes.arrived),
                   "to clear");
}

/* Whether the rows are those of a prompt, which has a kernel of its own. */
static bool is_prompt(const shape *s)
{
        return s->rows >= ATTEND_PROMPT_ROWS;
}

static void make_plan(bench *b, operands *o, const shape *s)
{
        attend_args *a = &o->args;
        size_t bytes;

        if (!is_prompt(s)) {
                bench_must(attend_plan(b->device, &a->view, &a->scratch), "a plan");
                return;
        }
        o->prompts.rows_min = ATTEND_PROMPT_ROWS;
        bench_must(attend_prompt_scratch_of(&o->prompts, &a->scratch, device_processors(b->device),
                                            a->view.rows_max, &bytes),
                   "room for prompts");
        o->prompts.list = (attend_prompt_list *)keep(o, bench_new(b, bytes));
        bench_must(attend_prompt_plan(b->device, &a->view, &a->scratch, &o->prompts), "a plan");
}

static void operands_open(bench *b, operands *o, const shape *s)
{
        attend_args *a = &o->args;
        size_t numbers = (size_t)HEADS * s->head_dim;

        *o = {};
        make_step(b, o, s);
        make_room(b, o, s);
        a->page_bytes = (size_t)KV_HEADS * 2 * PAGE_POSITIONS * s->head_dim * 2;
        o->layer_bytes = a->page_bytes * s->slots * a->view.pages_max;
        o->layers = b->tiny ? 2 : (unsigned)(CACHED / o->layer_bytes) + 1;
        o->pages = keep(o, bench_array<uint8_t>(b, FILL_HALVES, o->layer_bytes * o->layers));
        a->q = keep(o, bench_array<uint16_t>(b, FILL_HALVES, a->view.rows_max * numbers));
        a->out = keep(o, bench_array<uint16_t>(b, FILL_HALVES, a->view.rows_max * numbers));
        a->scale = 1 / sqrtf((float)s->head_dim);
        make_plan(b, o, s);
}

static void operands_close(bench *b, operands *o)
{
        for (void *memory : o->memory)
                bench_delete(b, memory);
}

/*
 * Averages of numbers between -1 and 1 are also between them, and it is unlikely that all are 0.
 */
static void check_out(bench *b, const operands *o, const shape *s)
{
        std::vector<uint16_t> out((size_t)s->slots * s->rows * HEADS * s->head_dim);
        bool any = false;

        bench_fetch(b, out.data(), o->args.out, out.size() * 2);
        for (uint16_t bits : out) {
                bench_check((bits & 0x7fff) <= 0x3f80, "averages of numbers up to 1");
                any = any || bits & 0x7fff;
        }
        bench_check(any, "averages of numbers that are not 0");
}

/* The time of one layer. */
static figure time_attention(bench *b, const shape *s)
{
        operands o;
        figure f;
        auto put = [&](unsigned i) {
                o.args.pages = o.pages + i % o.layers * o.layer_bytes;
                bench_must(is_prompt(s) ? attend_prompt(b->device, &o.args, &o.prompts)
                                        : attend(b->device, &o.args),
                           "attention");
        };

        operands_open(b, &o, s);
        put(0);
        bench_wait(b);
        check_out(b, &o, s);
        f = bench_time_recorded(b, b->tiny ? 2 : NODES, put);
        operands_close(b, &o);
        return f;
}

static void tell_decode(bench *b, uint32_t head_dim, uint32_t slots, uint32_t context)
{
        const shape s = { slots, 1, b->tiny ? 40 : context, head_dim };
        double bytes = (double)slots * context * KV_HEADS * head_dim * 4;
        prediction predicted = predict_each(
                [=](const card &card) { return (bytes / card.memory / 0.95 + 4e-6) * 1e6; });
        figure f = {};
        char what[100];

        snprintf(what, sizeof(what), "head_dim %u, %u decode%s, context %u", head_dim, slots,
                 slots > 1 ? "s" : "", context);
        if (b->device)
                f = figure_times(time_attention(b, &s), 1e6);
        figure_tell("attention", what, "us", predicted, b->device ? &f : nullptr,
                    b->device ? bytes / b->bandwidth / (f.median * 1e-6) : 0);
}

static void tell_prompt(bench *b, uint32_t head_dim, uint32_t rows, double predicted)
{
        const shape s = { 1, b->tiny ? ATTEND_PROMPT_ROWS : rows,
                          b->tiny ? ATTEND_PROMPT_ROWS : rows, head_dim };
        double operations = 4.0 * HEADS * head_dim * rows * (rows + 1.0) / 2;
        figure f = {};
        char what[100];

        snprintf(what, sizeof(what), "head_dim %u, a prompt of %u", head_dim, rows);
        if (b->device)
                f = figure_times(figure_rate(time_attention(b, &s), operations), 1e-12);
        figure_tell("attention", what, "TFLOP/s", prediction_of_all(predicted),
                    b->device ? &f : nullptr, f.median * 1e12 / b->card->products);
}

void bench_attention(bench *b)
{
        static const struct {
                uint32_t rows;
                double predicted; /* for head_dim 128; half of it for 64 */
        } prompts[] = { { 512, 180 }, { 1024, 240 }, { 2048, 300 }, { 4096, 350 }, { 8192, 400 } };

        for (uint32_t head_dim : { 128u, 64u }) {
                for (uint32_t slots : { 1u, 8u, 32u, 64u, 128u, 256u })
                        for (uint32_t context : { 256u, 1024u, 4096u, 8192u })
                                if (!b->tiny || (slots == 1 && context == 256))
                                        tell_decode(b, head_dim, slots, context);
                for (const auto &prompt : prompts)
                        if (!b->tiny || prompt.rows == 512)
                                tell_prompt(b, head_dim, prompt.rows,
                                            prompt.predicted * head_dim / 128);
        }
}
