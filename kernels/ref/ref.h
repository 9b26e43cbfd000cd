/*
 * The reference backend: it defines what each operator means.
 *
 * It uses one thread, plain loops, and double sums in ascending order; every result is rounded
 * once, when it is stored. Weights are floats, row after row, whatever type the file has; pages
 * are KV_LAYOUT_NATURAL. Nothing here is fast, and nothing here should be made fast.
 */
#ifndef KERNELS_REF_REF_H
#define KERNELS_REF_REF_H

#include "kernels/kernels.h"
#include "kernels/kv.h"
#include "kernels/steps.h"

struct matrix {
        struct matrix_shape shape;
        uint32_t rows; /* of all parts */
        float *w;      /* (rows, columns), the parts one below the other */
};

struct ref {
        struct kernels table; /* first: a struct kernels of ours is a struct ref */
        struct steps steps;
        uint32_t vocab_max;
        size_t columns_max, rows_max; /* of any matrix so far */
        double *in;                   /* (columns_max): one normed row */
        double *sums;                 /* (rows_max): one row of results */
        double *scores;               /* (pages_max * PAGE_POSITIONS) */
        uint32_t *ids;                /* (vocab_max): candidates */
        double *chances;              /* (vocab_max): the candidates' probabilities */
        float *edited;                /* (vocab_max): a row after edits and mask */
};

static inline struct ref *ref_of(struct kernels *k)
{
        return (struct ref *)k;
}

/* Row `row` of part `part`. */
static inline float *matrix_row(const struct matrix *matrix, uint32_t part, uint32_t row)
{
        assert(part < matrix->shape.parts && row < matrix->shape.rows[part]);
        for (uint32_t p = 0; p < part; p++)
                row += matrix->shape.rows[p];
        return matrix->w + (size_t)row * matrix->shape.columns;
}

/* linear.c */
/* x = norm(x) */
void ref_norm(double *x, const struct row_norm *norm, uint32_t count);
/* in = norm(x) */
void ref_norm_row(double *in, const float *x, const struct row_norm *norm, uint32_t columns);
double ref_dot(const float *w, const double *in, uint32_t columns);
int ref_embed(struct kernels *k, const struct embed *op, float *x);
int ref_renorm(struct kernels *k, const struct renorm *op, float *x);
int ref_project(struct kernels *k, const struct linear *op, float *x, const float *y);
int ref_gate(struct kernels *k, const struct gate *op, float *out, const float *x);
int ref_head(struct kernels *k, const struct head *op, float *logits, const float *x);

/* qkv.c */
int ref_qkv(struct kernels *k, const struct qkv *op, float *q, const float *x);

/* attend.c */
int ref_attend(struct kernels *k, const struct attend *op, float *out, const float *q);

/* pick.c */
int ref_pick(struct kernels *k, const float *logits, uint32_t vocab);

#endif
