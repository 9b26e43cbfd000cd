/*
 * A long context in the pages of a backend, and rows that attend to it.
 *
 * Its numbers are the host's, the same for every backend.  They come into pages as a model's do: by
 * qkv(), of a matrix of zeros and a bias that is one position's numbers.  What was not written is NaN.
 *
 * Slot 0 has the context; slots 1 and 2 have the same pages in another order, which makes them
 * sequences of their own.
 */
#ifndef TESTS_KERNELS_CONTEXT_H
#define TESTS_KERNELS_CONTEXT_H

#include "tests/kernels/world.h"

#define CONTEXT_PAGES  197u /* a prime: any stride below it orders them */
#define CONTEXT_LENGTH (CONTEXT_PAGES * PAGE_POSITIONS)
#define ASKS           67u /* rows that ask differently */
#define SEATS_MAX      17u
#define CONTEXT_ROWS   160u

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

/* A backend with room for contexts, and its objects for the one that it has. */
struct seat {
        struct kernels *k;
        uint32_t threads;
        uint32_t stride; /* how its pages are ordered */
        uint64_t number; /* of its last step */
        struct kv *kv;
        struct mat *zeros;
        float *x, *bias, *q, *out, *sinks, *slopes;
};

/* ref, then the cpu backend: the fastest instruction set with one thread first */
extern struct seat seats[SEATS_MAX];
extern uint32_t seat_count;

/* The cpu backend with each number of threads; only one and three, where a processor's own instruction for
 * fused sums is not used, which takes long. */
void seats_open(const uint32_t *threads, uint32_t count);
void seats_close(void);

/* Makes everything that follows from what it has already: random numbers below 1. */
void context_make(struct context *c);
void context_free(struct context *c);
static inline float *context_at(const struct context *c, float *k_or_v, uint32_t position)
{
        return k_or_v + (size_t)position * c->kv_heads * c->head_dim;
}
/* (heads, head_dim): what the row of a position asks with */
const float *context_ask(const struct context *c, uint32_t slot, uint32_t position);
/* Numbers in a row's result. */
static inline size_t context_width(const struct context *c)
{
        return (size_t)c->heads * c->head_dim;
}
/* The first position that a row sees. */
static inline uint32_t context_first(const struct context *c, uint32_t own)
{
        return c->window && own >= c->window ? own - c->window + 1 : 0;
}

void seat_take(struct seat *s, const struct context *c);
void seat_leave(struct seat *s);
/* Positions [from, to) of slot 0 are written. */
void seat_write(struct seat *s, const struct context *c, uint32_t from, uint32_t to);
/* `s` has in its pages what `from` has. */
void seat_copy(struct seat *s, const struct seat *from);
/* The same context, its pages ordered otherwise. */
void seat_order(struct seat *s, uint32_t stride);
uint32_t seat_page(const struct seat *s, uint32_t slot, uint32_t index);
/* Entries [from, to) of a slot's table are taken away, or there again. */
void seat_pages(struct seat *s, uint32_t slot, uint32_t from, uint32_t to, bool there);
/* ret_out: (rows of all chunks, heads, head_dim) */
void seat_attend(struct seat *s, const struct context *c, const struct chunk *chunks,
                 uint32_t chunk_count, float *ret_out);

#endif
