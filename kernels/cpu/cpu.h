/*
 * The CPU backend: the operators of kernels.h, shared out over a crew, on top of
 * the loops of isa.h.
 *
 * Weights lie in panels (panel.h), as exact as they are in the file and as large.  Pages are
 * KV_LAYOUT_LANES: positions in the lanes of K, the head in the lanes of V.
 *
 * Work is cut by panels, by row, or by row and KV head.  How it is cut, and who
 * does which piece, never reaches a result: a number is always summed by one
 * thread in one order, which depends on its row alone.
 *
 * All scratch is made at open, or when a matrix or a pool is made that needs more.
 */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include <string.h>

#include "kernels/cpu/crew.h"
#include "kernels/cpu/gist.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/sorter.h"
#include "kernels/kernels.h"
#include "kernels/kv.h"
#include "kernels/steps.h"

struct part {
        uint8_t *panels;
        size_t stride;        /* from one panel to the next; another part's may lie between them */
        uint32_t panel_count; /* the last one filled up with zero rows */
};

struct mat {
        struct mat_shape shape;
        uint32_t rows;   /* of all parts */
        uint32_t panels; /* of all parts */
        uint32_t kinds;  /* of x that products with it need: 1 << act_kind */
        uint8_t *memory; /* of all parts */
        struct part parts[MAT_PARTS_MAX];
};

struct attend_room; /* attend.c: one thread's */

struct cpu {
        struct kernels table; /* first: a struct kernels of ours is a struct cpu */
        const struct isa *isa;
        struct crew *crew;
        struct steps steps;
        uint32_t vocab_max;

        void *acts[ACT_KINDS]; /* (rows_max): of the widest matrix that wants them */
        size_t acts_max[ACT_KINDS];
        float *normed; /* (threads, columns of the widest matrix) */
        size_t normed_max;
        float *outs; /* (rows_max, rows of the tallest q, k, v) */
        size_t outs_max;

        float *turns; /* (rows_max, head_dim): cosines, then sines, of a row's position */
        size_t turns_max;
        struct rope turned; /* what `turns` holds; frequency NULL: nothing */

        struct step_run *blocks;   /* (rows_max): attention's blocks of rows */
        struct attend_room *rooms; /* (threads) */
        uint8_t *apart;            /* softmaxes of spans that different threads work at */
        uint32_t head_dim_max;     /* there is room for */

        struct gist gist;       /* of the logits that this step's head made */
        struct sorter *sorters; /* (threads) */
};

static inline struct cpu *cpu_of(struct kernels *k)
{
        return (struct cpu *)k;
}

/* Replaces `*scratch`, a pointer, when it is too small; what was in it is scratch. */
int cpu_scratch_grow(void *scratch, size_t *max, size_t count, size_t bytes);

/* mat.c */
int cpu_mat_new(struct kernels *k, const struct mat_shape *shape, struct mat **ret_mat);
void cpu_mat_free(struct kernels *k, struct mat *mat);
int cpu_weights_put(struct kernels *k, struct mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                    const void *file_rows);
void cpu_mat_row(const struct mat *mat, uint32_t part, uint32_t row, float *ret_floats);

/* linear.c */
struct product { /* a matrix with `rows` rows of x */
        struct cpu *cpu;
        const struct mat *w;
        uint32_t rows;
        const float *bias;
        float *out;
        const void *op;
        /* One panel of these with rows [from, from + tokens), at most TOKENS */
        void (*finish)(const struct product *p, uint32_t panel, uint32_t from, uint32_t tokens);
        const void *acts[ACT_KINDS];
};

/* Rows that are multiplied with one panel after the other, before the next ones are: both stay in the
 * second cache. */
#define TOKENS 48u

/* Makes p->acts: x normed (norm may be NULL); of the rows `which`, or of all when it is NULL. */
void cpu_acts(struct product *p, const float *x, const float *norm, float eps,
              const uint32_t *which);
/* p->finish() for all of `panels` and all rows */
void cpu_product(struct product *p, uint32_t panels);
/* out[t] = panel x[from + t] + bias, for t < tokens; returns the rows of the panel that are real */
uint32_t cpu_panel(const struct product *p, uint32_t part, uint32_t panel, uint32_t from,
                   uint32_t tokens, float out[TOKENS * PANEL]);

/* Rows of a panel that are real.  Where all are, how many is known to the compiler, and nobody is called. */
static inline void panel_copy(float *to, const float *panel, uint32_t width)
{
        if (width == PANEL)
                memcpy(to, panel, PANEL * sizeof(*to));
        else
                memcpy(to, panel, width * sizeof(*to));
}

int cpu_embed(struct kernels *k, const struct mat *table, float scale, float *x);
int cpu_project(struct kernels *k, const struct linear *op, float *x, const float *y);
int cpu_gate(struct kernels *k, const struct gate *op, float *out, const float *x);
int cpu_head(struct kernels *k, const struct head *op, float *logits, const float *x);

/* qkv.c */
int cpu_qkv(struct kernels *k, const struct qkv *op, float *q, const float *x);

/* attend.c */
int cpu_attend_init(struct cpu *cpu, uint32_t head_dim);
void cpu_attend_deinit(struct cpu *cpu);
int cpu_attend(struct kernels *k, const struct attend *op, float *out, const float *q);

/* pick.c */
int cpu_pick(struct kernels *k, const float *logits, uint32_t vocab);

#endif
