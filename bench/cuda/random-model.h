/*
 * A model with random weights and the shape of a real model, made in a backend without a file,
 * and its forward pass: the operators that daemon/engine/model.c calls for such a model, in that
 * order.
 */
#ifndef BENCH_CUDA_RANDOM_MODEL_H
#define BENCH_CUDA_RANDOM_MODEL_H

#include <stdbool.h>

#include "kernels/kernels.h"

struct random_shape {
        uint32_t layers, columns, ff, heads, kv_heads, head_dim, vocab;
        enum row_type type; /* of all matrices: ROW_BF16, Q8_0, Q4_0, Q4_K or F8_E4M3 */
        bool tied;          /* the head's matrix is also the token table */
        bool head_norms;    /* of q and k */
};

struct random_layer {
        struct matrix *qkv, *o, *gate, *down;
};

#define RANDOM_LAYERS_MAX 32u

struct random_model {
        struct kernels *k;
        struct random_shape shape;
        struct matrix *table, *head; /* the same if tied */
        struct random_layer layers[RANDOM_LAYERS_MAX];
        float *norm, *head_norm, *frequency; /* of all layers */
        float *x, *q, *a, *g, *logits;
        struct kv *kv;
};

/*
 * random_numbers(): how many weights are multiplied for a row of a step whose logits are wanted.
 * random_bytes_of_number(): the bytes of one weight.
 */
double random_numbers(const struct random_shape *shape);
double random_bytes_of_number(enum row_type type);

/*
 * Makes the model with `threads` threads, with the rows and wants of `conf`.  Returns 0 or a
 * negative errno.  In both cases the caller must call random_close(), before it closes the
 * backend.
 */
int random_open(struct random_model *m, struct kernels *k, const struct random_shape *shape,
                const struct kernels_conf *conf, uint32_t pages, unsigned threads);
void random_close(struct random_model *m);

/*
 * Warms up and captures the operators. From here on, a step is one call for the host instead of one
 * for each kernel.
 */
int random_warm_up(struct random_model *m);

/* Runs a step, from step_begin() to step_end(). */
int random_forward(struct random_model *m, const struct step *step);

#endif
