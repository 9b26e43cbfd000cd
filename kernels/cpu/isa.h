/*
 * The loops that are compiled once for each instruction set.
 *
 * body.h is the source; avx512.c, avx2.c and plain.c compile it with vectors of
 * 16, 8 and 4 floats.  All do the same operations on each number in the same
 * order, multiply and add fused only where it is written so (-ffp-contract=off), so that an
 * instruction set changes the speed and not one bit; but for products of bfloats where the
 * processor has its own way of them (avx512bf16.c).
 *
 * How weights lie is said in panel.h, how rows of x do in acts.h.
 */
#ifndef KERNELS_CPU_ISA_H
#define KERNELS_CPU_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/acts.h"
#include "kernels/cpu/panel.h"
#include "kernels/kernels.h"

#define MAXIMA_BLOCK 64u
#define QUERIES      32u /* a block of queries that share a KV head */

/* One query of attention: a row and a head. */
struct query {
        const float *q;
        float *out;
        uint32_t first, own; /* the positions it sees, both included */
        float slope;         /* 0: none */
        const float *sink;   /* NULL: none */
};

/* What a thread needs to attend with a block of queries; head_dim padded to 16 in `wide`. */
struct attend_scratch {
        float *k;   /* (head_dim, 16) */
        float *v;   /* (16, wide) */
        float *acc; /* (QUERIES, wide): the sum of p * v */
        float sum[QUERIES][PAGE_POSITIONS];
        float max[QUERIES];
};

struct attend_tile {
        const void *k, *v;
        const float *k_scales, *v_scales; /* KV_INT8: of its positions */
        uint32_t base;                    /* the tile's first position */
        uint32_t head_dim;
        enum kv_type type;
        float scale, softcap;
};

struct isa {
        const char *name; /* "cpu/avx512" */

        /* out[t][0..31] = panel x[t], of rows that are act_kind_of(type), `stride` bytes apart */
        void (*product)(enum row_type type, float *out, const void *panel, uint32_t columns,
                        const void *acts, size_t stride, uint32_t tokens);
        /* a row of x: ACT_BFLOATS or ACT_BYTES */
        void (*act)(enum act_kind kind, void *to, const float *x, uint32_t columns);
        /* out = x / rms(x) * weight; out may be x */
        void (*norm)(float *out, const float *x, const float *weight, uint32_t count, float eps);
        /* out = act(g) * u; count a multiple of 16 */
        void (*activate)(enum activation act, float *out, const float *g, const float *u,
                         uint32_t count);
        /* x = cap * tanh(x / cap); count a multiple of 16 */
        void (*soften)(float *x, float cap, uint32_t count);
        /* the largest of each MAXIMA_BLOCK numbers; false: one is NaN or plus infinity */
        bool (*maxima)(float *ret_maxima, const float *x, uint32_t count);
        /* the sum of e^((x - largest) * factor), each to about a unit in the last place */
        double (*exp_sum)(const float *x, uint32_t count, float largest, float factor);
        void (*to_half)(uint16_t *out, const float *x, uint32_t count);

        /* begin, then every tile that any query sees in ascending order, then end */
        void (*attend_begin)(struct attend_scratch *s, uint32_t head_dim, uint32_t queries);
        void (*attend_tile)(struct attend_scratch *s, const struct attend_tile *tile,
                            const struct query *queries, uint32_t count);
        void (*attend_end)(struct attend_scratch *s, uint32_t head_dim, const struct query *queries,
                           uint32_t count);
};

extern const struct isa isa_avx512bf16, isa_avx512, isa_avx2, isa_plain;

static inline uint32_t round_up(uint32_t n, uint32_t to)
{
        return (n + to - 1) / to * to;
}

#endif
