/*
 * A small random model, loaded into any backend, and every way the cpu backend
 * can be opened on this machine.  Shared by the programs in this directory that
 * compare backends.
 *
 * Pools are filled with NaN when they are made, so that a position read before
 * it is written shows in any result.  Random numbers come from a seed that is
 * printed; SEED=... repeats a run.
 */
#ifndef TESTS_KERNELS_WORLD_H
#define TESTS_KERNELS_WORLD_H

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

#include "kernels/kernels.h"
#include "kernels/kv.h"
#include "kernels/rows.h"

#define ROWS_MAX   200u
#define SLOTS      3u
#define SLOT_PAGES 8u
#define PAGES      32u
#define VOCAB_MAX  300u
#define SETS_MAX   12u

void random_seed(void);
uint32_t random_next(void);
uint32_t random_below(uint32_t n);
float random_float(void); /* -1 .. 1 */
float *random_floats(size_t count);

/* ref, and the cpu backend for each instruction set with 1, 2 and 3 threads */
extern struct kernels *ref;
extern struct kernels *sets[SETS_MAX];
extern uint32_t set_threads[SETS_MAX];
extern uint32_t set_count;

/*
 * Bits.  A product with bfloats has those of the instruction for it, where there is one, and others
 * elsewhere; everything else has the same in all sets.  0 or 1: sets of one kind have the same.
 */
#define SET_KINDS 2u
uint32_t set_kind(uint32_t set);

int sets_open(void **state);
int sets_close(void **state);

/* on the host */
struct host_mat {
        struct mat_shape shape;
        uint32_t rows;
        uint8_t *file[MAT_PARTS_MAX];
        float *w; /* (rows, columns), what the file's numbers mean ... */
        float *parts; /* ... and what of them is summed apart: of a scale and a least value, magnitudes */
};

/* Rounding a float sum of n products costs at most so much of their absolute sum, and what is done with
 * it afterwards. */
#define SLACK(n) (((n) + 16) * 0x1p-24)

bool has_bfloats(const struct host_mat *m);

struct shape {
        uint32_t columns, heads, kv_heads, head_dim, ff, vocab;
        enum kv_type kv;
        enum rope_pairing pairing;
        uint32_t rope_dims, window;
        float softcap;
        float scale; /* of scores, beside the usual; 0: none */
        bool norm, bias, head_norm, sinks, slopes;
        enum activation act;
        const enum row_type *types; /* of q, k, v, o, gate, up, down, head; NULL: any */
};

struct host {
        struct shape s;
        struct host_mat qkv, o, gate, down, head;
        float *norm, *qkv_bias, *q_norm, *k_norm, *frequency, *sinks, *slopes, *gate_bias, *o_bias;
};

void host_make(struct host *h, const struct shape *s);
void host_free(struct host *h);

/* Each weight row's product with a row of x, bias and all, and the sum of absolute products. */
void products(const struct host *h, const struct host_mat *w, const float *x, bool norm,
              const float *bias, double *ret_sums, double *ret_abs);

/*
 * By how much the products of the cpu backend may be off: what rounding the row of x costs at most
 * (kernels/cpu/acts.h) by the type of each part, and what rounding the sums does.
 */
void products_off(const struct host *h, const struct host_mat *w, const float *x, bool norm,
                  const float *bias, double *ret_off);

/* in a backend */
struct model {
        struct kernels *k;
        const struct host *host;
        struct mat *qkv, *o, *gate, *down, *head;
        float *norm, *qkv_bias, *q_norm, *k_norm, *frequency, *sinks, *slopes, *gate_bias, *o_bias;
        float *x, *q, *a, *g, *logits;
        struct kv *kv;
        uint64_t step;
};

void model_open(struct model *m, struct kernels *k, const struct host *h);
void model_close(struct model *m);

void model_qkv(struct model *m, uint32_t layer);                          /* x -> q, pages */
void model_attend(struct model *m, uint32_t layer);                       /* q -> a */
void model_project(struct model *m, const struct mat *w, const float *y); /* x += */
void model_gate(struct model *m);                                         /* x -> g */
void model_head(struct model *m);                                         /* x -> logits */

struct chunk { /* a run of a step: rows of a slot, with tokens that follow from their places */
        uint32_t slot, position, count;
        bool again; /* k and v are in the pages already: not written */
};

/* Page i of slot s: scattered over the pool, and no page is used twice. */
uint32_t page_of(uint32_t slot, uint32_t index);
/* 0, or STEP_REHEARSED. */
int model_begin(struct model *m, const struct chunk *chunks, uint32_t chunk_count);
void model_end(struct model *m);

#endif
