/*
 * Operators that are a matrix and little else.  A crew item is a panel: it is
 * read from memory once and then, from the cache, once for each block of rows.
 */
#include "kernels/cpu/cpu.h"

#include <string.h>

uint32_t cpu_panel(const struct product *p, uint32_t part, uint32_t panel, uint32_t from,
                   uint32_t tokens, float out[TOKENS * PANEL])
{
        const struct mat_shape *shape = &p->w->shape;
        const struct part *w = &p->w->parts[part];
        uint32_t first = panel * PANEL, width = shape->rows[part] - first;
        const float *bias = p->bias;

        if (width > PANEL)
                width = PANEL;
        p->cpu->isa->product(shape->type[part], out, w->panels + panel * w->panel_bytes,
                             shape->columns, p->x + (size_t)from * shape->columns, shape->columns,
                             tokens);
        if (bias) {
                for (uint32_t i = 0; i < part; i++)
                        bias += shape->rows[i];
                for (uint32_t t = 0; t < tokens; t++)
                        for (uint32_t i = 0; i < width; i++)
                                out[t * PANEL + i] += bias[first + i];
        }
        return width;
}

static uint32_t block_of(const struct product *p, uint32_t from)
{
        return p->rows - from < TOKENS ? p->rows - from : TOKENS;
}

struct norming {
        struct cpu *cpu;
        const float *x, *norm;
        float eps;
        uint32_t columns;
        const uint32_t *which;
};

static void norm_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct norming *n = arg;
        const float *x = n->x + (size_t)(n->which ? n->which[item] : item) * n->columns;
        float *to = n->cpu->normed + (size_t)item * n->columns;

        (void)thread;
        if (n->norm)
                n->cpu->isa->norm(to, x, n->norm, n->columns, n->eps);
        else
                memcpy(to, x, n->columns * sizeof(*to));
}

const float *cpu_normed(struct cpu *cpu, const float *x, const float *norm, float eps,
                        uint32_t columns, const uint32_t *which, uint32_t count)
{
        struct norming n = { cpu, x, norm, eps, columns, which };

        if (!norm && !which)
                return x;
        assert((size_t)count * columns <= cpu->normed_max);
        crew_run(cpu->crew, norm_work, &n, count);
        return cpu->normed;
}

struct embedding {
        const struct cpu *cpu;
        const struct mat *table;
        float scale;
        float *x;
};

static void embed_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct embedding *e = arg;
        uint32_t columns = e->table->shape.columns;
        float *x = e->x + (size_t)item * columns;

        (void)thread;
        cpu_mat_row(e->table, 0, e->cpu->steps.tokens[item], x);
        for (uint32_t i = 0; i < columns; i++)
                x[i] *= e->scale;
}

int cpu_embed(struct kernels *k, const struct mat *table, float scale, float *x)
{
        struct cpu *cpu = cpu_of(k);
        struct embedding e = { cpu, table, scale, x };

        assert(cpu->steps.running && table->shape.parts == 1);
        crew_run(cpu->crew, embed_work, &e, cpu->steps.step.row_count);
        return 0;
}

static void project_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct product *p = arg;
        float sums[TOKENS * PANEL] __attribute__((aligned(64)));

        (void)thread;
        for (uint32_t from = 0; from < p->rows; from += TOKENS) {
                uint32_t tokens = block_of(p, from);
                uint32_t width = cpu_panel(p, 0, item, from, tokens, sums);

                for (uint32_t t = 0; t < tokens; t++) {
                        float *x = p->out + (size_t)(from + t) * p->w->rows + item * PANEL;

                        for (uint32_t i = 0; i < width; i++)
                                x[i] += sums[t * PANEL + i];
                }
        }
}

int cpu_project(struct kernels *k, const struct linear *op, float *x, const float *y)
{
        struct cpu *cpu = cpu_of(k);
        struct product p = { cpu, op->w, y, cpu->steps.step.row_count, op->bias, x, op };

        assert(cpu->steps.running && op->w->shape.parts == 1);
        crew_run(cpu->crew, project_work, &p, op->w->panels);
        return 0;
}

static void gate_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct product *p = arg;
        const struct gate *op = p->op;
        float gates[TOKENS * PANEL] __attribute__((aligned(64)));
        float ups[TOKENS * PANEL] __attribute__((aligned(64)));
        uint32_t rows = p->w->shape.rows[0];

        (void)thread;
        for (uint32_t from = 0; from < p->rows; from += TOKENS) {
                uint32_t tokens = block_of(p, from);
                uint32_t width = cpu_panel(p, 0, item, from, tokens, gates);

                cpu_panel(p, 1, item, from, tokens, ups);
                p->cpu->isa->activate(op->act, gates, gates, ups, tokens * PANEL);
                for (uint32_t t = 0; t < tokens; t++)
                        memcpy(p->out + (size_t)(from + t) * rows + item * PANEL, gates + t * PANEL,
                               width * sizeof(float));
        }
}

int cpu_gate(struct kernels *k, const struct gate *op, float *out, const float *x)
{
        struct cpu *cpu = cpu_of(k);
        const struct mat *w = op->w;
        uint32_t rows = cpu->steps.step.row_count;
        struct product p = { cpu, w, NULL, rows, op->bias, out, op };

        assert(cpu->steps.running && w->shape.parts == 2 && w->shape.rows[0] == w->shape.rows[1]);
        p.x = cpu_normed(cpu, x, op->norm, op->eps, w->shape.columns, NULL, rows);
        crew_run(cpu->crew, gate_work, &p, w->parts[0].panel_count);
        return 0;
}

static void head_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct product *p = arg;
        const struct head *op = p->op;
        float sums[TOKENS * PANEL] __attribute__((aligned(64)));

        (void)thread;
        for (uint32_t from = 0; from < p->rows; from += TOKENS) {
                uint32_t tokens = block_of(p, from);
                uint32_t width = cpu_panel(p, 0, item, from, tokens, sums);

                if (op->softcap > 0)
                        p->cpu->isa->soften(sums, op->softcap, tokens * PANEL);
                for (uint32_t t = 0; t < tokens; t++)
                        memcpy(p->out + (size_t)(from + t) * p->w->rows + item * PANEL,
                               sums + t * PANEL, width * sizeof(float));
        }
}

int cpu_head(struct kernels *k, const struct head *op, float *logits, const float *x)
{
        struct cpu *cpu = cpu_of(k);
        const struct step *step = &cpu->steps.step;
        struct product p = { cpu, op->w, NULL, step->want_count, NULL, logits, op };

        assert(cpu->steps.running && op->w->shape.parts == 1);
        if (!step->want_count)
                return 0;
        p.x = cpu_normed(cpu, x, op->norm, op->eps, op->w->shape.columns, step->want,
                         step->want_count);
        crew_run(cpu->crew, head_work, &p, op->w->panels);
        return 0;
}
