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
        const float *rope_table; /* of op->rope; NULL: none */
        uint32_t from, end;      /* the rows whose results are in cpu->outs */
        uint32_t share;          /* rows of an item */
};

/* Numbers of a row of results: q, k and v, or q alone. */
static uint32_t out_columns(const struct qkv *op)
{
        uint32_t heads = op->w->shape.parts > 1 ? op->heads + 2 * op->kv_heads : op->heads;

        return heads * op->head_dim;
}

/* Not for NaN. */
static void panels_clip(float *panels, float clip, uint32_t count)
{
        for (uint32_t i = 0; i < count * PANEL; i++) {
                float x = panels[i];

                x = x > clip ? clip : x;
                panels[i] = x < -clip ? -clip : x;
        }
}

static void qkv_finish(const struct product *p, const struct result *r)
{
        float clip = ((const struct qkv *)p->op)->clip;
        float *out = p->out + r->panel * PANEL;

        for (uint32_t part = 0; part < r->part; part++)
                out += p->w->shape.rows[part];
        if (clip > 0)
                panels_clip(r->sums, clip, r->rows);
        for (uint32_t t = 0; t < r->rows; t++)
                panel_copy(out + (r->from + t) * (size_t)out_columns(p->op), r->sums + t * PANEL,
                           r->width);
}

struct rope_job {
        const struct cpu *cpu;
        const struct rope *rope;
        float *table;
};

static void rope_table_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct rope_job *job = arg;
        const struct rope *rope = job->rope;
        float *rope_table = job->table + (size_t)item * rope->dims;
        uint32_t pairs = rope->dims / 2;

        (void)thread;
        for (uint32_t i = 0; i < pairs; i++) {
                double angle = (double)job->cpu->steps.rows[item].position * rope->frequency[i];

                rope_table[i] = (float)(cos(angle) * rope->factor);
                rope_table[pairs + i] = (float)(sin(angle) * rope->factor);
        }
}

/* The table of this rope; makes it if this step has not made it yet. */
static const float *rope_table_of(struct cpu *cpu, const struct rope *rope)
{
        uint32_t have = cpu->rope_count < ROPE_TABLES ? cpu->rope_count : ROPE_TABLES, at;
        struct rope_job job = { cpu, rope, NULL };

        if (!rope->dims)
                return NULL;
        assert((size_t)rope->dims * cpu->steps.step.row_count <= cpu->rope_tables_max);
        for (uint32_t i = 0; i < have; i++) {
                const struct rope *r = &cpu->ropes[i];

                if (r->frequency == rope->frequency && r->dims == rope->dims &&
                    r->factor == rope->factor)
                        return cpu->rope_tables + i * cpu->rope_tables_max;
        }
        at = cpu->rope_count++ % ROPE_TABLES;
        cpu->ropes[at] = *rope;
        job.table = cpu->rope_tables + at * cpu->rope_tables_max;
        thread_pool_run(cpu->thread_pool, rope_table_work, &job, cpu->steps.step.row_count);
        return job.table;
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

/* Norms `count` heads of q, of k or of v. */
static void heads_norm(const struct finish *f, float *heads, uint32_t count,
                       enum head_norm_span span, const struct row_norm *norm)
{
        const struct qkv *op = f->op;
        const struct loops *loops = f->cpu->isa->loops;
        struct row_norm own = *norm;

        if (span == SPAN_WHOLE) {
                loops->norm(heads, heads, norm, count * op->head_dim);
                return;
        }
        for (uint32_t h = 0; h < count; h++, heads += op->head_dim) {
                loops->norm(heads, heads, &own, op->head_dim);
                if (span == SPAN_HEADS && own.weight)
                        own.weight += op->head_dim;
                if (span == SPAN_HEADS && own.bias)
                        own.bias += op->head_dim;
        }
}

/* `row` is the row's index in the step. */
static void heads_finish(const struct finish *f, float *heads, uint32_t count,
                         const struct row_norm *norm, uint32_t row)
{
        const struct qkv *op = f->op;

        if (norm->kind != NORM_NONE)
                heads_norm(f, heads, count, op->span, norm);
        for (uint32_t h = 0; f->rope_table && h < count; h++)
                head_rotate(&op->rope, heads + (size_t)h * op->head_dim,
                            f->rope_table + (size_t)row * op->rope.dims);
}

static void query_scale(const struct qkv *op, float *q, size_t count, uint32_t position)
{
        float factor = (float)(1 + op->query_beta * log(1 + (double)(position / op->query_length)));

        for (size_t i = 0; i < count; i++)
                q[i] *= factor;
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
        uint32_t page = steps_page(&f->cpu->steps, op->kv->shape.group, row->slot, row->position);
        size_t line = row->position % PAGE_POSITIONS;

        for (uint32_t h = 0; h < op->kv_heads; h++) {
                uint8_t *tile = kv_tile(op->kv, page, op->layer, h);
                size_t head = (size_t)h * op->head_dim;

                tile_put(f, tile, line, line, PAGE_POSITIONS, k + head);
                tile_put(f, tile + op->kv->tile_bytes, line, line * op->head_dim, 1, v + head);
        }
}

/* A row's k and v, next to each other; v is that of k if there is no part for it. */
static void kv_finish(const struct finish *f, float *k, uint32_t row)
{
        const struct qkv *op = f->op;
        size_t count = (size_t)op->kv_heads * op->head_dim;
        float *v = k + count;

        if (op->w->shape.parts == 2)
                memcpy(v, k, count * sizeof(*v));
        if (op->v_norm.kind != NORM_NONE)
                heads_norm(f, v, op->kv_heads, SPAN_HEAD, &op->v_norm);
        heads_finish(f, k, op->kv_heads, &op->k_norm, row);
        row_put(f, &f->cpu->steps.step.rows[row], k, v);
}

static void finish_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct finish *f = arg;
        const struct qkv *op = f->op;
        const struct step *step = &f->cpu->steps.step;
        size_t q_count = (size_t)op->heads * op->head_dim;
        uint32_t first = f->from + item * f->share, end = first + f->share;

        (void)thread;
        for (uint32_t r = first; r < end && r < f->end; r++) {
                float *q = f->cpu->outs + (r - f->from) * (size_t)out_columns(op);

                heads_finish(f, q, op->heads, &op->q_norm, r);
                if (op->query_beta != 0)
                        query_scale(op, q, q_count, step->rows[r].position);
                memcpy(f->q + r * q_count, q, q_count * sizeof(*q));
                if (step->rows[r].write && op->w->shape.parts > 1)
                        kv_finish(f, q + q_count, r);
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

        assert(cpu->steps.running && shape->rows[0] == op->heads * op->head_dim);
        for (uint32_t part = 1; part < shape->parts; part++)
                assert(shape->rows[part] == op->kv_heads * op->head_dim);
        assert(op->layer < kv->layers && op->kv_heads == kv->kv_heads);
        assert(op->head_dim == kv->head_dim);
        assert(op->rope.dims <= op->head_dim && op->rope.dims % 2 == 0);
        assert(op->query_beta == 0 || op->query_length);
}

int cpu_qkv(struct kernels *k, const struct qkv *op, float *q, const float *x)
{
        struct cpu *cpu = cpu_of(k);
        uint32_t rows = cpu->steps.step.row_count, most;
        struct product p = { cpu, op->w, rows, op->bias, cpu->outs, op, false, qkv_finish };
        struct finish f = { .cpu = cpu, .op = op, .q = q };

        qkv_check(cpu, op);
        logit_summary_invalidate(&cpu->logit_summary);
        f.rope_table = rope_table_of(cpu, &op->rope);
        cpu_act_quantise(&p, x, &op->norm, NULL);
        most = (uint32_t)(cpu->outs_max / out_columns(op));
        for (; f.from < rows; f.from = f.end) {
                p.rows = rows - f.from < most ? rows - f.from : most;
                f.end = f.from + p.rows;
                f.share = rows_share(cpu, p.rows);
                cpu_product(&p);
                thread_pool_run(cpu->thread_pool, finish_work, &f,
                                (p.rows + f.share - 1) / f.share);
                cpu_acts_skip(&p, p.rows);
        }
        return 0;
}
