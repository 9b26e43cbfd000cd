/*
 * q, k and v: one product for all three, then a pass over the rows that norms and rotates the
 * heads and writes k and v into their pages.
 *
 * Cosines and sines depend only on the position. So they are made once in a step and used for every
 * layer that rotates by the same frequencies.
 */
#include "kernels/cpu/cpu.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/convert.h"

/*
 * The most rows of an item: neighbouring rows of a prompt share cache lines of a K tile. If there
 * are fewer rows, they are divided evenly over the threads.
 */
#define ROWS_SHARE 8u
#define HALVES     64u

struct finish {
        struct cpu *cpu;
        const struct qkv *op;
        float *q;
        uint32_t share; /* rows of an item */
};

static void qkv_finish(const struct product *p, uint32_t panel, uint32_t from, uint32_t tokens)
{
        float sums[TOKENS * PANEL] __attribute__((aligned(64)));
        uint32_t part = 0, first = 0, width;

        while (panel >= p->w->parts[part].panel_count) {
                panel -= p->w->parts[part].panel_count;
                first += p->w->shape.rows[part++];
        }
        width = cpu_panel(p, part, panel, from, tokens, sums);
        for (uint32_t t = 0; t < tokens; t++)
                panel_copy(p->out + (size_t)(from + t) * p->w->rows + first + panel * PANEL,
                           sums + t * PANEL, width);
}

static void rope_table_work(void *arg, uint32_t thread, uint32_t item)
{
        struct cpu *cpu = arg;
        const struct rope *rope = &cpu->rope_of_table;
        float *rope_table = cpu->rope_table + (size_t)item * rope->dims;
        uint32_t pairs = rope->dims / 2;

        (void)thread;
        for (uint32_t i = 0; i < pairs; i++) {
                double angle = (double)cpu->steps.rows[item].position * rope->frequency[i];

                rope_table[i] = (float)(cos(angle) * rope->factor);
                rope_table[pairs + i] = (float)(sin(angle) * rope->factor);
        }
}

static void rope_table_make(struct cpu *cpu, const struct rope *rope)
{
        const struct rope *have = &cpu->rope_of_table;

        if (!rope->dims || (have->frequency == rope->frequency && have->dims == rope->dims &&
                            have->factor == rope->factor))
                return;
        assert((size_t)rope->dims * cpu->steps.step.row_count <= cpu->rope_table_max);
        cpu->rope_of_table = *rope;
        thread_pool_run(cpu->thread_pool, rope_table_work, cpu, cpu->steps.step.row_count);
}

static void head_rotate(const struct rope *rope, float *head, const float *rope_table)
{
        uint32_t pairs = rope->dims / 2, step = 1, apart = pairs;

        if (rope->pairing == ROPE_ADJACENT) {
                step = 2;
                apart = 1;
        }
        for (uint32_t i = 0; i < pairs; i++) {
                float *a = head + (size_t)i * step, *b = a + apart;
                float x = *a, y = *b, c = rope_table[i], s = rope_table[pairs + i];

                *a = x * c - y * s;
                *b = x * s + y * c;
        }
}

static void heads_finish(const struct finish *f, float *heads, uint32_t count, const float *norm,
                         const float *rope_table)
{
        const struct qkv *op = f->op;

        for (uint32_t h = 0; h < count; h++, heads += op->head_dim) {
                if (norm)
                        f->cpu->isa->loops->norm(heads, heads, norm, op->head_dim, op->eps);
                head_rotate(&op->rope, heads, rope_table);
        }
}

static void halves_put(const struct isa *isa, uint16_t *to, size_t stride, const float *head,
                       uint32_t dim)
{
        uint16_t halves[HALVES];

        for (uint32_t from = 0; from < dim; from += HALVES) {
                uint32_t n = dim - from < HALVES ? dim - from : HALVES;

                isa->loops->to_half(halves, head + from, n);
                for (uint32_t d = 0; d < n; d++)
                        to[(from + d) * stride] = halves[d];
        }
}

/* KV_INT8 and KV_FP8. Returns the scale (page.h). */
static float bytes_put(enum kv_type type, uint8_t *to, size_t stride, const float *head,
                       uint32_t dim)
{
        const float top = type == KV_FP8 ? 448 : 127;
        /* without signs, floats are in the order of their bits; NaN comes last */
        uint32_t most = 0;
        float scale;

        for (uint32_t d = 0; d < dim; d++) {
                uint32_t size = float_bits(head[d]) & 0x7fffffff;

                most = size > most ? size : most;
        }
        scale = most < 0x7f800000 ? bits_float(most) / top : NAN;
        if (scale < FLT_MIN)
                scale = 0;
        for (uint32_t d = 0; d < dim; d++) {
                float number = scale > 0 ? head[d] / scale : 0;

                to[d * stride] =
                        type == KV_FP8 ? float_to_e4m3(number) : (uint8_t)(int8_t)rintf(number);
        }
        return scale;
}

/* Writes a head into line `line` of a tile: its numbers go to `at`, `at + stride`, ... */
static void tile_put(const struct finish *f, uint8_t *tile, size_t line, size_t at, size_t stride,
                     const float *head)
{
        const struct kv *kv = f->op->kv;
        uint32_t dim = f->op->head_dim;

        switch (kv->shape.type) {
        case KV_F16:
                halves_put(f->cpu->isa, (uint16_t *)tile + at, stride, head, dim);
                break;
        case KV_BF16:
                for (uint32_t d = 0; d < dim; d++)
                        ((uint16_t *)tile)[at + d * stride] = float_to_bfloat(head[d]);
                break;
        case KV_INT8:
        case KV_FP8:
                kv_scales(kv, tile)[line] = bytes_put(kv->shape.type, tile + at, stride, head, dim);
                break;
        case KV_F32:
                for (uint32_t d = 0; d < dim; d++)
                        ((float *)tile)[at + d * stride] = head[d];
        }
}

static void row_put(const struct finish *f, const struct step_row *row, const float *k,
                    const float *v)
{
        const struct qkv *op = f->op;
        uint32_t page = steps_page(&f->cpu->steps, row->slot, row->position);
        size_t line = row->position % PAGE_POSITIONS;

        for (uint32_t h = 0; h < op->kv_heads; h++) {
                uint8_t *tile = kv_tile(op->kv, page, op->layer, h);
                size_t head = (size_t)h * op->head_dim;

                tile_put(f, tile, line, line, PAGE_POSITIONS, k + head);
                tile_put(f, tile + op->kv->tile_bytes, line, line * op->head_dim, 1, v + head);
        }
}

static void finish_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct finish *f = arg;
        const struct qkv *op = f->op;
        const struct step *step = &f->cpu->steps.step;
        size_t q_count = (size_t)op->heads * op->head_dim;
        size_t k_count = (size_t)op->kv_heads * op->head_dim;
        uint32_t first = item * f->share, end = first + f->share;

        (void)thread;
        for (uint32_t r = first; r < end && r < step->row_count; r++) {
                float *q = f->cpu->outs + r * (q_count + 2 * k_count);
                float *k = q + q_count, *v = k + k_count;
                const float *rope_table = f->cpu->rope_table + (size_t)r * op->rope.dims;

                heads_finish(f, q, op->heads, op->q_norm, rope_table);
                memcpy(f->q + r * q_count, q, q_count * sizeof(*q));
                if (!step->rows[r].write)
                        continue;
                heads_finish(f, k, op->kv_heads, op->k_norm, rope_table);
                row_put(f, &step->rows[r], k, v);
        }
}

static uint32_t rows_share(const struct cpu *cpu, uint32_t rows)
{
        uint32_t threads = thread_pool_threads(cpu->thread_pool),
                 each = (rows + threads - 1) / threads;

        return each < 1 ? 1 : each < ROWS_SHARE ? each : ROWS_SHARE;
}

static void qkv_check(const struct cpu *cpu, const struct qkv *op)
{
        const struct matrix_shape *shape = &op->w->shape;
        const struct kv_shape *kv = &op->kv->shape;

        assert(cpu->steps.running && shape->parts == 3);
        assert(shape->rows[0] == op->heads * op->head_dim);
        assert(shape->rows[1] == op->kv_heads * op->head_dim && shape->rows[2] == shape->rows[1]);
        assert(op->layer < kv->layers && op->kv_heads == kv->kv_heads);
        assert(op->head_dim == kv->head_dim);
        assert(op->rope.dims <= op->head_dim && op->rope.dims % 2 == 0);
}

int cpu_qkv(struct kernels *k, const struct qkv *op, float *q, const float *x)
{
        struct cpu *cpu = cpu_of(k);
        uint32_t rows = cpu->steps.step.row_count;
        struct product p = { cpu, op->w, rows, op->bias, cpu->outs, op, qkv_finish };
        struct finish f = { cpu, op, q, rows_share(cpu, rows) };

        qkv_check(cpu, op);
        logit_summary_invalidate(&cpu->logit_summary);
        rope_table_make(cpu, &op->rope);
        cpu_act_quantise(&p, x, op->norm, op->eps, NULL);
        cpu_product(&p, op->w->panels);
        thread_pool_run(cpu->thread_pool, finish_work, &f, (rows + f.share - 1) / f.share);
        return 0;
}
