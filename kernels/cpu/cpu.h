/*
 * The CPU backend: the operators of kernels.h, distributed over a thread pool and built from the
 * loops of isa.h.
 *
 * Weights lie in panels (panel.h), as exact and as large as they are in the file. Pages are
 * KV_LAYOUT_LANES: vector lanes hold positions in K, and numbers of the head in V.
 *
 * Work is divided by panels, by row, or by row and KV head. The division, and the thread that
 * does a piece, never affect a result: one thread always sums a number, in one order, which
 * depends on its row alone.
 *
 * All scratch memory is allocated at open, or when a matrix or a pool is made that needs more.
 */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include <string.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/logit-summary.h"
#include "kernels/cpu/radix-sort.h"
#include "kernels/cpu/thread-pool.h"
#include "kernels/kernels.h"
#include "kernels/kv.h"
#include "kernels/steps.h"

struct part {
        uint8_t *panels;
        /* From one panel to the next; panels of another part may lie between them. */
        size_t stride;
        uint32_t panel_count; /* the last one is padded with zero rows */
};

struct matrix {
        struct matrix_shape shape;
        uint32_t rows;   /* of all parts */
        uint32_t panels; /* of all parts */
        uint32_t kinds;  /* forms of x that products with it need: 1 << act_kind */
        uint8_t *memory; /* of all parts */
        struct part parts[MATRIX_PARTS_MAX];
};

struct attend_scratch; /* attend.c: scratch memory of one thread */

/* A model may rotate some layers by other frequencies than others. */
#define ROPE_TABLES 4u

struct cpu {
        struct kernels table; /* first: a struct kernels of ours is a struct cpu */
        const struct isa *isa;
        uint32_t lone_ahead; /* of a piece */
        struct thread_pool *thread_pool;
        bool has_thread_pool; /* it is its own, and not that of the backend beside it */
        struct steps steps;
        uint32_t vocab_max;

        /* (rows_max): with room for the widest matrix that uses this form. */
        void *acts[ACT_KINDS];
        size_t acts_max[ACT_KINDS];
        float *sums; /* (threads, PIECE_PARTS, piece_sums): of the piece that a thread multiplies */
        size_t piece_sums;
        float *normed; /* (threads, columns of the widest matrix) */
        size_t normed_max;
        /*
         * Results of whole rows, for qkv() and for norms of results in project(): (rows_max) for
         * the tallest and widest q, k, v. Other matrices have at least one row; an operator takes
         * as many rows at a time as there is room for.
         */
        float *outs;
        size_t outs_max;

        /* (ROPE_TABLES, rows_max, head_dim): cosines, then sines, of each row's position. */
        float *rope_tables;
        size_t rope_tables_max;
        struct rope ropes[ROPE_TABLES]; /* whose tables there are in this step */
        uint32_t rope_count;            /* made in this step; later ones replace the first ones */

        struct step_run *row_blocks;           /* (rows_max): attention's blocks of rows */
        struct attend_scratch *attend_scratch; /* (threads) */
        /* Softmaxes of spans, if different threads work on the spans of one row. */
        uint8_t *span_softmaxes;
        uint32_t head_dim_max; /* the largest head_dim that there is room for */

        struct logit_summary logit_summary; /* about the logits that head() made in this step */
        struct pick_scratch *pick_scratch;  /* (threads) */
};

static inline struct cpu *cpu_of(struct kernels *k)
{
        return (struct cpu *)k;
}

/*
 * Replaces `*scratch`, a pointer, if it is too small. The old contents are lost: it is scratch
 * memory.
 */
int cpu_scratch_grow(void *scratch, size_t *max, size_t count, size_t bytes);

/* matrix.c */
int cpu_matrix_new(struct kernels *k, const struct matrix_shape *shape, struct matrix **ret_matrix);
void cpu_matrix_free(struct kernels *k, struct matrix *matrix);
int cpu_weights_put(struct kernels *k, struct matrix *matrix, uint32_t part, uint32_t row,
                    uint32_t rows, const void *file_rows);
void cpu_matrix_row(const struct matrix *matrix, uint32_t part, uint32_t row, float *ret_floats);

/* linear.c */

/* Of one panel and some rows of x, with the bias. */
struct result {
        uint32_t part, panel; /* of the part */
        uint32_t width;       /* rows of the panel that are real */
        uint32_t from, rows;  /* rows of x */
        float *sums;          /* (rows, PANEL) */
        float *ups;           /* if `are_pairs`: the same of part 1 */
};

struct product { /* a matrix times `rows` rows of x */
        struct cpu *cpu;
        const struct matrix *w;
        uint32_t rows;
        const float *bias;
        float *out;
        const void *op;
        /* Parts 0 and 1 are as tall as each other, and finished together. */
        bool are_pairs;
        void (*finish)(const struct product *p, const struct result *result);
        const void *acts[ACT_KINDS];
};

/* The most parts whose panels are finished together. */
#define PIECE_PARTS 2u

/*
 * Makes p->acts from x, normed (norm may be NULL): of the rows `which`, or of all rows if it is
 * NULL.
 */
void cpu_act_quantise(struct product *p, const float *x, const struct row_norm *norm,
                      const uint32_t *which);
/* The next product begins `rows` rows later. */
void cpu_acts_skip(struct product *p, uint32_t rows);
/* Calls p->finish() for all panels and all rows. */
void cpu_product(struct product *p);
int cpu_product_init(struct cpu *cpu, uint32_t rows_max);

/*
 * Copies the real rows of a panel. If all rows are real, the size is a constant and the compiler
 * does not call memcpy().
 */
static inline void panel_copy(float *to, const float *panel, uint32_t width)
{
        if (width == PANEL)
                memcpy(to, panel, PANEL * sizeof(*to));
        else
                memcpy(to, panel, width * sizeof(*to));
}

int cpu_embed(struct kernels *k, const struct embed *op, float *x);
int cpu_renorm(struct kernels *k, const struct renorm *op, float *x);
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
