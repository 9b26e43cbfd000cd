/*
 * Operators that are a matrix product and little else. An item of the thread pool is some panels:
 * they are read from memory once, and then from a cache, once for each block of rows. Tiles take
 * many rows and more panels at once, and may read the panels from memory for each 512 rows.
 */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "kernels/memory.h"

#define CHUNK_BYTES (512u << 10) /* of weights: half of an L2 cache */
/* Chunks for each thread: several, so that the others need not wait long for a late thread. */
#define CHUNK_SHARES 4u

int cpu_product_init(struct cpu *cpu, uint32_t rows_max)
{
        size_t threads = thread_pool_threads(cpu->thread_pool);

        for (uint32_t type = 0; type < ROW_TYPE_N; type++) {
                struct piece_size size = isa_piece(cpu->isa, type, rows_max);
                uint32_t rows = size.rows < rows_max ? size.rows : rows_max;
                size_t sums = (size_t)size.panels * rows * PANEL;

                cpu->piece_sums = sums > cpu->piece_sums ? sums : cpu->piece_sums;
        }
        cpu->sums = memory_new(threads * PIECE_PARTS * cpu->piece_sums, sizeof(*cpu->sums));
        return cpu->sums ? 0 : -ENOMEM;
}

static bool is_scaled(float scale)
{
        return scale != 0 && scale != 1;
}

static void panels_scale(float *panels, float scale, uint32_t count)
{
        for (uint32_t i = 0; i < count * PANEL; i++)
                panels[i] *= scale;
}

/* Adds the real rows of a panel, with a constant size if all are real, as in panel_copy(). */
static void panel_add(float *to, const float *panel, uint32_t width)
{
        if (width == PANEL)
                for (uint32_t i = 0; i < PANEL; i++)
                        to[i] += panel[i];
        else
                for (uint32_t i = 0; i < width; i++)
                        to[i] += panel[i];
}

/* The panels [panel, panel + count) of a part, and the rows [from, from + rows) of x. */
struct span {
        uint32_t panel, count, from, rows;
};

static void span_multiply(const struct product *p, uint32_t part, const struct span *span,
                          float *out)
{
        const struct matrix_shape *shape = &p->w->shape;
        const struct part *w = &p->w->parts[part];
        const enum act_kind kind = act_kind_of(shape->type[part]);
        const size_t stride = act_stride(kind, shape->columns);
        const struct piece piece = {
                .type = shape->type[part],
                .columns = shape->columns,
                .panels = w->panels + span->panel * w->stride,
                .panel_stride = w->stride,
                .panel_count = span->count,
                .acts = (const uint8_t *)p->acts[kind] + span->from * stride,
                .act_stride = stride,
                .rows = span->rows,
                .lone_ahead = p->cpu->lone_ahead,
        };

        p->cpu->isa->product(&piece, out);
}

static void panel_bias(float *panel, const float *bias, uint32_t width, uint32_t rows)
{
        for (uint32_t t = 0; t < rows; t++)
                for (uint32_t i = 0; i < width; i++)
                        panel[t * PANEL + i] += bias[i];
}

/* Multiplies one or both parts of a span, and finishes its panels one by one. */
static void span_work(const struct product *p, uint32_t part, const struct span *span, float *sums)
{
        const uint32_t *rows = p->w->shape.rows;
        const size_t numbers = (size_t)span->rows * PANEL;
        float *ups = p->are_pairs ? sums + p->cpu->piece_sums : NULL;
        const float *bias = p->bias;

        span_multiply(p, part, span, sums);
        if (ups)
                span_multiply(p, 1, span, ups);
        for (uint32_t i = 0; bias && i < part; i++)
                bias += rows[i];
        for (uint32_t i = 0; i < span->count; i++) {
                uint32_t first = (span->panel + i) * PANEL, width = rows[part] - first;
                struct result result = {
                        part,       span->panel + i,    width < PANEL ? width : PANEL, span->from,
                        span->rows, sums + i * numbers, ups ? ups + i * numbers : NULL
                };

                if (bias)
                        panel_bias(result.sums, bias + first, result.width, span->rows);
                if (bias && ups)
                        panel_bias(result.ups, bias + rows[0] + first, result.width, span->rows);
                p->finish(p, &result);
        }
}

static struct piece_size piece_of(const struct product *p, uint32_t part)
{
        struct piece_size size = isa_piece(p->cpu->isa, p->w->shape.type[part], p->rows);
        struct piece_size more = isa_piece(p->cpu->isa, p->w->shape.type[1], p->rows);

        if (p->are_pairs && more.rows < size.rows)
                return more;
        return size;
}

struct chunks {
        const struct product *product;
        uint32_t panels, chunk;
};

/* Some panels of all parts, one part after the other. */
static void chunk_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct chunks *c = arg;
        const struct product *p = c->product;
        float *sums = p->cpu->sums + thread * PIECE_PARTS * p->cpu->piece_sums;
        uint32_t first = item * c->chunk, before = 0;
        uint32_t end = c->panels - first < c->chunk ? c->panels : first + c->chunk;

        for (uint32_t part = 0; before < end; before += p->w->parts[part++].panel_count) {
                uint32_t at = first > before ? first - before : 0, last = end - before;
                const struct piece_size most = piece_of(p, part);

                if (last > p->w->parts[part].panel_count)
                        last = p->w->parts[part].panel_count;
                for (uint32_t from = 0; from < p->rows; from += most.rows)
                        for (uint32_t panel = at; panel < last; panel += most.panels) {
                                uint32_t rows = p->rows - from, count = last - panel;
                                struct span span = { panel,
                                                     count < most.panels ? count : most.panels,
                                                     from, rows < most.rows ? rows : most.rows };

                                span_work(p, part, &span, sums);
                        }
        }
}

void cpu_product(struct product *p)
{
        const struct matrix *w = p->w;
        uint32_t panels = p->are_pairs ? w->parts[0].panel_count : w->panels;
        uint32_t shares = thread_pool_threads(p->cpu->thread_pool) * CHUNK_SHARES;
        uint32_t most = (panels + shares - 1) / shares, at_once = piece_of(p, 0).panels;
        struct chunks c = { p, panels, (uint32_t)(CHUNK_BYTES / w->parts[0].stride) };

        c.chunk = c.chunk > at_once ? c.chunk : at_once;
        c.chunk = c.chunk < most ? c.chunk : most;
        thread_pool_run(p->cpu->thread_pool, chunk_work, &c, (panels + c.chunk - 1) / c.chunk);
}

struct act_job {
        const struct product *product;
        const float *x;
        const struct row_norm *norm;
        const uint32_t *which;
};

static void act_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct act_job *a = arg;
        const struct cpu *cpu = a->product->cpu;
        const struct matrix *w = a->product->w;
        uint32_t columns = w->shape.columns;
        const float *x = a->x + (size_t)(a->which ? a->which[item] : item) * columns;

        if (a->norm && a->norm->kind != NORM_NONE) {
                float *normed = cpu->normed + (size_t)thread * round_up(columns, 16);

                cpu->isa->loops->norm(normed, x, a->norm, columns);
                x = normed;
        }
        for (uint32_t kind = 0; kind < ACT_KINDS; kind++) {
                uint8_t *to = (uint8_t *)cpu->acts[kind] + item * act_stride(kind, columns);

                if (!(w->kinds >> kind & 1))
                        continue;
                if (kind == ACT_FLOATS)
                        memcpy(to, x, columns * sizeof(*x));
                else
                        cpu->isa->act_quantise(kind, to, x, columns);
        }
}

void cpu_act_quantise(struct product *p, const float *x, const struct row_norm *norm,
                      const uint32_t *which)
{
        struct act_job a = { p, x, norm, which };

        for (uint32_t kind = 0; kind < ACT_KINDS; kind++)
                p->acts[kind] = p->cpu->acts[kind];
        thread_pool_run(p->cpu->thread_pool, act_work, &a, p->rows);
}

void cpu_acts_skip(struct product *p, uint32_t rows)
{
        for (uint32_t kind = 0; kind < ACT_KINDS; kind++)
                p->acts[kind] = (const uint8_t *)p->acts[kind] +
                                rows * act_stride(kind, p->w->shape.columns);
}

struct embedding {
        const struct cpu *cpu;
        const struct embed *op;
        float *x;
};

/* x += the row of `positions` for this row's position */
static void position_add(const struct embedding *e, uint32_t thread, uint32_t row, float *x)
{
        const struct embed *op = e->op;
        uint32_t columns = op->table->shape.columns;
        float *place = e->cpu->normed + (size_t)thread * round_up(columns, 16);

        cpu_matrix_row(op->positions, 0, e->cpu->steps.step.rows[row].position + op->first_position,
                       place);
        for (uint32_t i = 0; i < columns; i++)
                x[i] += place[i];
}

static void embed_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct embedding *e = arg;
        const struct embed *op = e->op;
        uint32_t columns = op->table->shape.columns;
        float *x = e->x + (size_t)item * columns;

        cpu_matrix_row(op->table, 0, e->cpu->steps.tokens[item], x);
        for (uint32_t i = 0; i < columns; i++)
                x[i] *= op->scale;
        if (op->positions)
                position_add(e, thread, item, x);
        if (op->norm.kind != NORM_NONE)
                e->cpu->isa->loops->norm(x, x, &op->norm, columns);
}

int cpu_embed(struct kernels *k, const struct embed *op, float *x)
{
        struct cpu *cpu = cpu_of(k);
        const struct matrix_shape *table = &op->table->shape;
        struct embedding e = { cpu, op, x };

        assert(cpu->steps.running && table->parts == 1);
        assert(!op->positions || op->positions->shape.columns == table->columns);
        logit_summary_invalidate(&cpu->logit_summary);
        thread_pool_run(cpu->thread_pool, embed_work, &e, cpu->steps.step.row_count);
        return 0;
}

static void project_finish(const struct product *p, const struct result *r)
{
        const struct linear *op = p->op;

        if (is_scaled(op->scale))
                panels_scale(r->sums, op->scale, r->rows);
        for (uint32_t t = 0; t < r->rows; t++) {
                float *x = p->out + (size_t)(r->from + t) * p->w->rows + r->panel * PANEL;

                panel_add(x, r->sums + t * PANEL, r->width);
                for (uint32_t i = 0; is_scaled(op->after) && i < r->width; i++)
                        x[i] *= op->after;
        }
}

/* Writes results that will be normed. */
static void project_store(const struct product *p, const struct result *r)
{
        for (uint32_t t = 0; t < r->rows; t++)
                panel_copy(p->out + (size_t)(r->from + t) * p->w->rows + r->panel * PANEL,
                           r->sums + t * PANEL, r->width);
}

/* The results in cpu->outs, and the rows of x that they are added to. */
struct norm_job {
        const struct cpu *cpu;
        const struct linear *op;
        float *x;
};

static void norm_add_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct norm_job *n = arg;
        const struct linear *op = n->op;
        uint32_t rows = op->w->rows, together = op->norm_columns ? op->norm_columns : rows;
        float *out = n->cpu->outs + (size_t)item * rows, *x = n->x + (size_t)item * rows;
        float scale = is_scaled(op->scale) ? op->scale : 1;

        (void)thread;
        for (uint32_t i = 0; i < rows; i += together)
                n->cpu->isa->loops->norm(out + i, out + i, &op->norm, together);
        for (uint32_t i = 0; i < rows; i++)
                x[i] += scale * out[i];
        for (uint32_t i = 0; is_scaled(op->after) && i < rows; i++)
                x[i] *= op->after;
}

/* A norm needs whole rows of results: as many rows at a time as there is scratch memory for. */
static void project_normed(struct product *p, float *x)
{
        struct cpu *cpu = p->cpu;
        const struct matrix *w = p->w;
        uint32_t left = p->rows, most = (uint32_t)(cpu->outs_max / w->rows);

        p->out = cpu->outs;
        p->finish = project_store;
        while (left > 0) {
                struct norm_job n = { cpu, p->op, x };

                p->rows = left < most ? left : most;
                cpu_product(p);
                thread_pool_run(cpu->thread_pool, norm_add_work, &n, p->rows);
                left -= p->rows;
                x += (size_t)p->rows * w->rows;
                cpu_acts_skip(p, p->rows);
        }
}

int cpu_project(struct kernels *k, const struct linear *op, float *x, const float *y)
{
        struct cpu *cpu = cpu_of(k);
        struct product p = { cpu,   op->w,         cpu->steps.step.row_count, op->bias, x, op,
                             false, project_finish };

        assert(cpu->steps.running && op->w->shape.parts == 1);
        assert(!op->norm_columns || op->w->rows % op->norm_columns == 0);
        logit_summary_invalidate(&cpu->logit_summary);
        cpu_act_quantise(&p, y, NULL, NULL);
        if (op->norm.kind != NORM_NONE)
                project_normed(&p, x);
        else
                cpu_product(&p);
        return 0;
}

static void panel_multiply(float *panel, const float *factor, uint32_t width)
{
        for (uint32_t i = 0; i < width; i++)
                panel[i] *= factor[i];
}

static void gate_finish(const struct product *p, const struct result *r)
{
        const struct gate *op = p->op;
        uint32_t rows = p->w->shape.rows[0];

        p->cpu->isa->loops->activate(op->act, r->sums, r->sums, r->ups, r->rows * PANEL);
        for (uint32_t t = 0; t < r->rows; t++) {
                float *gates = r->sums + t * PANEL;
                size_t row = r->from + t;

                if (op->factor)
                        panel_multiply(gates,
                                       op->factor + row * op->factor_columns + op->factor_first +
                                               r->panel * PANEL,
                                       r->width);
                panel_copy(p->out + row * rows + r->panel * PANEL, gates, r->width);
        }
}

int cpu_gate(struct kernels *k, const struct gate *op, float *out, const float *x)
{
        struct cpu *cpu = cpu_of(k);
        const struct matrix *w = op->w;
        struct product p = { cpu, w,  cpu->steps.step.row_count, op->bias,
                             out, op, w->shape.parts == 2,       gate_finish };

        assert(cpu->steps.running && (w->shape.parts == 1 || w->shape.parts == 2));
        assert(w->shape.parts == 1 || (w->shape.rows[0] == w->shape.rows[1] && !op->factor));
        assert(!op->factor || op->factor_first + w->rows <= op->factor_columns);
        logit_summary_invalidate(&cpu->logit_summary);
        cpu_act_quantise(&p, x, &op->norm, NULL);
        cpu_product(&p);
        return 0;
}

static void head_finish(const struct product *p, const struct result *r)
{
        const struct head *op = p->op;
        struct cpu *cpu = p->cpu;

        if (is_scaled(op->scale))
                panels_scale(r->sums, op->scale, r->rows);
        if (op->softcap > 0)
                cpu->isa->loops->softcap(r->sums, op->softcap, r->rows * PANEL);
        for (uint32_t t = 0; t < r->rows; t++) {
                float *sums = r->sums + t * PANEL;

                panel_copy(p->out + (size_t)(r->from + t) * p->w->rows + r->panel * PANEL, sums,
                           r->width);
                for (uint32_t i = r->width; i < PANEL; i++)
                        sums[i] = -INFINITY;
        }
        logit_summary_add_block(&cpu->logit_summary, cpu->isa->loops, cpu->steps.step.picks,
                                r->panel, r->from, r->rows, r->sums);
}

int cpu_head(struct kernels *k, const struct head *op, float *logits, const float *x)
{
        struct cpu *cpu = cpu_of(k);
        const struct step *step = &cpu->steps.step;
        struct product p = {
                cpu, op->w, step->want_count, op->bias, logits, op, false, head_finish
        };

        assert(cpu->steps.running && op->w->shape.parts == 1);
        if (!step->want_count)
                return 0;
        logit_summary_begin(&cpu->logit_summary, logits, op->w->rows, step->want_count);
        cpu_act_quantise(&p, x, &op->norm, step->want);
        cpu_product(&p);
        return 0;
}

struct renorm_job {
        const struct cpu *cpu;
        const struct renorm *op;
        float *x;
};

static void renorm_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct renorm_job *n = arg;
        float *x = n->x + (size_t)item * n->op->columns;

        (void)thread;
        n->cpu->isa->loops->norm(x, x, &n->op->norm, n->op->columns);
}

int cpu_renorm(struct kernels *k, const struct renorm *op, float *x)
{
        struct cpu *cpu = cpu_of(k);
        struct renorm_job n = { cpu, op, x };

        assert(cpu->steps.running && op->norm.kind != NORM_NONE);
        logit_summary_invalidate(&cpu->logit_summary);
        thread_pool_run(cpu->thread_pool, renorm_work, &n, cpu->steps.step.row_count);
        return 0;
}
