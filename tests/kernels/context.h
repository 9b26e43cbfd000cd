/*
 * A long context in the pages of a backend, and rows that attend to it.
 *
 * Its numbers are computed on the host and are the same for every backend.  They reach pages in
 * the way of a model's numbers: qkv() with a matrix of zeros, and a bias that holds one
 * position's numbers.  Positions that were not written hold NaN.
 *
 * Slot 0 has the context.  Slots 1 and 2 have the same pages in another order, so they are
 * different sequences.
 */
#ifndef TESTS_KERNELS_CONTEXT_H
#define TESTS_KERNELS_CONTEXT_H

#include "tests/kernels/small-model.h"

#define CONTEXT_PAGES     197u /* a prime: any smaller stride visits all of them */
#define CONTEXT_LENGTH    (CONTEXT_PAGES * PAGE_POSITIONS)
#define QUERY_ROWS        67u /* different query rows */
#define TEST_BACKENDS_MAX 17u
#define CONTEXT_ROWS      160u

struct context {
        enum kv_type type;
        uint32_t head_dim, kv_heads, heads, window;
        float softcap;
        bool has_sinks, has_slopes;

        float scale;
        float *k, *v;          /* (CONTEXT_LENGTH, kv_heads, head_dim) */
        float *q;              /* (ASKS, heads, head_dim) */
        float *sinks, *slopes; /* (heads) */
};

/* A backend with room for contexts, and its objects for the current one. */
struct test_backend {
        struct kernels *k;
        uint32_t threads;
        uint32_t stride; /* the stride that orders its pages */
        uint64_t number; /* of its last step */
        struct kv *kv;
        struct matrix *zeros;
        float *x, *bias, *q, *out, *sinks, *slopes;
};

/* ref, then the cpu backend: the fastest instruction set with one thread first */
extern struct test_backend test_backends[TEST_BACKENDS_MAX];
extern uint32_t test_backend_count;

/*
 * Opens ref, and the cpu backend with each number of threads.  Where a processor's own
 * instruction for fused sums is not used, only one and three threads are opened, since those
 * runs take long.
 */
void test_backends_open(const uint32_t *threads, uint32_t count);
void test_backends_close(void);

/* Fills in the fields that follow from those already set, with random numbers below 1. */
void context_make(struct context *c);
void context_free(struct context *c);
static inline float *context_at(const struct context *c, float *k_or_v, uint32_t position)
{
        return k_or_v + (size_t)position * c->kv_heads * c->head_dim;
}
/* The query of the row at a position: (heads, head_dim). */
const float *context_ask(const struct context *c, uint32_t slot, uint32_t position);
/* The count of numbers in a row's result. */
static inline size_t context_width(const struct context *c)
{
        return (size_t)c->heads * c->head_dim;
}
/* The first position that a row attends to. */
static inline uint32_t context_first(const struct context *c, uint32_t own)
{
        return c->window && own >= c->window ? own - c->window + 1 : 0;
}

void test_backend_use_context(struct test_backend *s, const struct context *c);
void test_backend_end_step(struct test_backend *s);
/* Writes positions [from, to) of slot 0. */
void test_backend_write(struct test_backend *s, const struct context *c, uint32_t from,
                        uint32_t to);
/* Copies the pages of `from` into those of `s`. */
void test_backend_copy(struct test_backend *s, const struct test_backend *from);
/* Orders the pages of the same context by another stride. */
void test_backend_order_pages(struct test_backend *s, uint32_t stride);
uint32_t test_backend_page(const struct test_backend *s, uint32_t slot, uint32_t index);
/* Removes entries [from, to) of a slot's table, or puts them back if `there`. */
void test_backend_pages(struct test_backend *s, uint32_t slot, uint32_t from, uint32_t to,
                        bool there);
/* ret_out: (rows of all chunks, heads, head_dim) */
void test_backend_attend(struct test_backend *s, const struct context *c,
                         const struct chunk *chunks, uint32_t chunk_count, float *ret_out);

#endif
