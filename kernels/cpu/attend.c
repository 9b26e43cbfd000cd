/*
 * Attention, shared out by block of rows and KV head.  All queries of a block
 * and of the heads that share a KV head walk its tiles together, so a tile is
 * fetched and converted once for them; each still takes its own tiles in its own
 * order (isa.h), as if it were alone.
 */
#include "kernels/cpu/cpu.h"

#include <errno.h>

#include "kernels/memory.h"

struct attention {
        struct cpu *cpu;
        const struct attend *op;
        float *out;
        const float *q;
        uint32_t spans;
};

void cpu_attend_deinit(struct cpu *cpu)
{
        for (uint32_t i = 0; cpu->scratch && i < crew_threads(cpu->crew); i++) {
                memory_free(cpu->scratch[i].k);
                memory_free(cpu->scratch[i].v);
                memory_free(cpu->scratch[i].acc);
        }
        cpu->scratch = memory_free(cpu->scratch);
        cpu->wide_max = 0;
}

int cpu_attend_init(struct cpu *cpu, uint32_t head_dim)
{
        uint32_t wide = round_up(head_dim, PAGE_POSITIONS);

        if (wide <= cpu->wide_max)
                return 0;
        cpu_attend_deinit(cpu);
        cpu->scratch = memory_new(crew_threads(cpu->crew), sizeof(*cpu->scratch));
        for (uint32_t i = 0; cpu->scratch && i < crew_threads(cpu->crew); i++) {
                struct attend_scratch *s = &cpu->scratch[i];

                s->k = memory_new((size_t)wide * PAGE_POSITIONS, sizeof(*s->k));
                s->v = memory_new((size_t)wide * PAGE_POSITIONS, sizeof(*s->v));
                s->acc = memory_new((size_t)wide * QUERIES, sizeof(*s->acc));
                if (!s->k || !s->v || !s->acc)
                        cpu_attend_deinit(cpu);
        }
        if (!cpu->scratch)
                return -ENOMEM;
        cpu->wide_max = wide;
        return 0;
}

/* Queries of heads [head, head + count) of the rows of a span; returns how many. */
static uint32_t queries_make(const struct attention *a, const struct step_run *span, uint32_t head,
                             uint32_t count, struct query *queries)
{
        const struct attend *op = a->op;
        uint32_t n = 0;

        for (uint32_t r = span->row; r < span->row + span->count; r++) {
                uint32_t own = a->cpu->steps.rows[r].position;

                for (uint32_t h = head; h < head + count; h++) {
                        size_t at = ((size_t)r * op->heads + h) * op->head_dim;

                        queries[n++] = (struct query){
                                .q = a->q + at,
                                .out = a->out + at,
                                .own = own,
                                .first = op->window && own >= op->window ? own - op->window + 1 : 0,
                                .slope = op->slopes ? op->slopes[h] : 0,
                                .sink = op->sinks ? &op->sinks[h] : NULL,
                        };
                }
        }
        return n;
}

static void attend_block(const struct attention *a, uint32_t thread, const struct step_run *span,
                         uint32_t kv_head, uint32_t head, uint32_t count)
{
        const struct attend *op = a->op;
        const struct isa *isa = a->cpu->isa;
        struct attend_scratch *s = &a->cpu->scratch[thread];
        struct query queries[QUERIES];
        uint32_t n = queries_make(a, span, head, count, queries), end = queries[n - 1].own;
        uint32_t slot = a->cpu->steps.rows[span->row].slot;
        struct attend_tile tile = {
                .head_dim = op->head_dim,
                .type = op->kv->shape.type,
                .scale = op->scale,
                .softcap = op->softcap,
        };

        isa->attend_begin(s, op->head_dim, n);
        for (uint32_t t = queries[0].first / PAGE_POSITIONS; t <= end / PAGE_POSITIONS; t++) {
                tile.base = t * PAGE_POSITIONS;
                tile.k = kv_tile(op->kv, steps_page(&a->cpu->steps, slot, tile.base), op->layer,
                                 kv_head);
                tile.v = (const uint8_t *)tile.k + op->kv->tile_bytes;
                tile.k_scales = kv_scales(op->kv, tile.k);
                tile.v_scales = kv_scales(op->kv, tile.v);
                isa->attend_tile(s, &tile, queries, n);
        }
        isa->attend_end(s, op->head_dim, queries, n);
}

static void attend_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct attention *a = arg;
        const struct attend *op = a->op;
        /* from the end: the last rows of a long run see most, and should not be left over */
        const struct step_run *span = &a->cpu->spans[a->spans - 1 - item / op->kv_heads];
        uint32_t kv_head = item % op->kv_heads, group = op->heads / op->kv_heads;

        for (uint32_t h = 0; h < group; h += QUERIES) {
                uint32_t count = group - h < QUERIES ? group - h : QUERIES;

                attend_block(a, thread, span, kv_head, kv_head * group + h, count);
        }
}

/* The runs, cut so that a span's queries fit a block. */
static uint32_t spans_make(struct cpu *cpu, uint32_t group)
{
        const struct step *step = &cpu->steps.step;
        uint32_t n = 0, most = group < QUERIES ? QUERIES / group : 1;

        for (uint32_t i = 0; i < step->run_count; i++) {
                struct step_run left = step->runs[i];

                while (left.count > 0) {
                        uint32_t count = left.count < most ? left.count : most;

                        cpu->spans[n++] = (struct step_run){ left.row, count };
                        left.row += count;
                        left.count -= count;
                }
        }
        return n;
}

int cpu_attend(struct kernels *k, const struct attend *op, float *out, const float *q)
{
        struct cpu *cpu = cpu_of(k);
        const struct kv_shape *kv = &op->kv->shape;
        struct attention a = { .cpu = cpu, .op = op, .out = out, .q = q };

        assert(cpu->steps.running && op->layer < kv->layers);
        assert(op->kv_heads == kv->kv_heads && op->head_dim == kv->head_dim);
        assert(op->heads % op->kv_heads == 0 && op->head_dim <= cpu->wide_max);
        a.spans = spans_make(cpu, op->heads / op->kv_heads);
        crew_run(cpu->crew, attend_work, &a, a.spans * op->kv_heads);
        return 0;
}
