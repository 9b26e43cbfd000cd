/*
 * A small random model, loaded into any backend, and every way the cpu backend can be opened on
 * this machine.  Shared by the programs in this directory that compare backends.
 *
 * Pools are filled with NaN when they are made, so a position that is read before it is written
 * shows in any result.  Random numbers come from a seed that is printed; SEED=... repeats a
 * run.
 */
#ifndef TESTS_KERNELS_SMALL_MODEL_H
#define TESTS_KERNELS_SMALL_MODEL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/convert.h"
#include "kernels/kernels.h"
#include "kernels/kv.h"

#define ROWS_MAX     200u
#define SLOTS        3u
#define SLOT_PAGES   8u
#define PAGES        32u
#define SWAP_PAGES   8u /* numbered from PAGES on */
#define VOCAB_MAX    300u
#define VARIANTS_MAX 18u

void random_seed(void);
uint32_t random_next(void);
uint32_t random_below(uint32_t n);
float random_float(void); /* -1 .. 1 */
float *random_floats(size_t count);
/* Sets the scale of a block of IQ1_M. */
void iq1_m_scale_put(uint8_t *block, uint16_t half);

/* ref, and the cpu backend for each instruction set with 1, 2 and 3 threads */
extern struct kernels *ref;
extern struct kernels *variants[VARIANTS_MAX];
extern uint32_t variant_threads[VARIANTS_MAX];
extern uint32_t variant_count;

/*
 * Whether results are equal bit by bit.  Where a processor has the instruction for products of
 * bfloats (kind 1), or tiles (kind 2), such a product has other bits than elsewhere (kind 0).  All
 * other results have the same bits in all variants.  Variants of one kind have the same bits, and
 * the first variant is of kind 0.
 */
#define VARIANT_KINDS 3u
uint32_t kind_of(const struct kernels *k);
uint32_t variant_kind(uint32_t variant);

/* Those of the cpu backend, upwards; this machine may not have all. The last one is NULL. */
extern const char *const isa_names[];

int variants_open(void **state);
int variants_close(void **state);

/* A matrix on the host. */
struct host_matrix {
        struct matrix_shape shape;
        uint32_t rows;
        uint8_t *file[MATRIX_PARTS_MAX];
        float *w; /* (rows, columns), the values of the file's numbers ... */
        /*
         * ... and the magnitudes of the parts that are summed separately: of a scale and of a
         * least value
         */
        float *parts;
};

/*
 * Bounds the rounding error of a float sum of n products, and of the operations on it
 * afterwards, as a part of the sum of absolute products.
 */
#define SLACK(n) (((n) + 16) * 0x1p-24)

bool has_bfloats(const struct host_matrix *m);

struct shape {
        uint32_t columns, heads, kv_heads, head_dim, ff, vocab;
        enum kv_type kv;
        enum rope_pairing pairing;
        uint32_t rope_dims, window;
        float softcap;
        float scale; /* a factor of scores besides the usual one; 0: none */
        bool norm, bias, head_norm, sinks, slopes;
        bool layer_norm; /* norms are NORM_LAYER and have biases */
        bool bare_norm;  /* norms have neither weights nor biases */
        bool positions;  /* embed() adds a row for the position, and norms if `norm` is set */
        bool add_norm;   /* project() norms its results */
        bool plain;      /* gate() has one part */
        bool head_bias;
        bool two_ropes; /* layer 1 rotates by frequencies of its own */
        enum head_norm_span span;
        float clip, add_scale, logit_scale; /* 0: none */
        float query_beta;
        uint32_t query_length;
        enum activation act;
        const enum row_type *types; /* of q, k, v, o, gate, up, down, head; NULL: any */
};

/* Vectors of the model, each by its name and all together. */
#define VECTORS 16u
#define NAMED_VECTORS                                                                              \
        union {                                                                                    \
                struct {                                                                           \
                        float *norm, *norm_bias, *add_norm, *add_norm_bias;                        \
                        float *q_norm, *q_norm_bias, *k_norm, *k_norm_bias; /* of all heads */     \
                        float *qkv_bias, *o_bias, *gate_bias, *head_bias;                          \
                        float *frequency, *frequency_2, *sinks, *slopes;                           \
                };                                                                                 \
                float *vectors[VECTORS];                                                           \
        }

#define FIRST_POSITION 2u
#define NORM_EPS       1e-5f

struct host {
        struct shape s;
        struct host_matrix qkv, o, gate, down, head, positions;
        NAMED_VECTORS;
};

void host_make(struct host *h, const struct shape *s);
void host_free(struct host *h);

/*
 * x = norm(x) as the shape has it, with these weights and biases, without the roundings of floats.
 * ret_size, or NULL: the sizes of the terms that a result is the sum of.
 */
void host_norm(const struct shape *s, const float *weight, const float *bias, uint32_t count,
               double *x, double *ret_size);

/*
 * For each weight row, its product with a row of x, bias included, and the sum of absolute
 * products.
 */
void products(const struct host *h, const struct host_matrix *w, const float *x, bool norm,
              const float *bias, double *ret_sums, double *ret_abs);

/*
 * The error bound of the cpu backend's products: the most that rounding the row of x can cost
 * (kernels/cpu/act-quant.h), by the type of each part, plus the cost of rounding the sums.
 */
void products_off(const struct host *h, const struct host_matrix *w, const float *x, bool norm,
                  const float *bias, double *ret_off);

struct matrix *host_matrix_load(struct kernels *k, const struct host_matrix *m);

/* The model in a backend. */
struct model {
        struct kernels *k;
        const struct host *host;
        struct matrix *qkv, *o, *gate, *down, *head, *positions;
        NAMED_VECTORS;
        float *x, *q, *a, *g, *logits;
        struct kv *kv;
        uint64_t step;
        /* Pages that the next step copies; it empties the list. */
        struct step_copy copies[PAGES];
        uint32_t copy_count;
};

void model_open(struct model *m, struct kernels *k, const struct host *h);
void model_close(struct model *m);

void model_embed(struct model *m, float scale);                              /* x */
void model_qkv(struct model *m, uint32_t layer);                             /* x -> q, pages */
void model_attend(struct model *m, uint32_t layer);                          /* q -> a */
void model_project(struct model *m, const struct matrix *w, const float *y); /* x += */
void model_gate(struct model *m);                                            /* x -> g */
void model_head(struct model *m);                                            /* x -> logits */

struct chunk { /* a run of a step: rows of a slot, with tokens that follow from their positions */
        uint32_t slot, position, count;
        bool again; /* k and v are in the pages already: not written */
};

/* Page i of slot s: scattered over the pool, and no page is used twice. */
uint32_t page_of(uint32_t slot, uint32_t index);
/* 0, or STEP_REPLAYED. */
int model_begin(struct model *m, const struct chunk *chunks, uint32_t chunk_count);
void model_end(struct model *m);

#endif
