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
#include "kernels/page.h"

#define LOGITS_BLOCK PANEL /* logits that are looked at together: what a panel of the head makes */
#define QUERIES      32u   /* that are walked together: of one KV head, or of several */

/* Attention takes positions by tiles, and tiles by spans, which begin at their own multiples. */
#define TILE_POSITIONS 64u
#define TILE_PAGES     (TILE_POSITIONS / PAGE_POSITIONS)
#define SPAN_POSITIONS 1024u

/* One query of attention: a row and a head. */
struct query {
        const float *q;
        uint32_t first, own; /* the positions it sees, both included */
        float slope;         /* 0: none */
};

/* What lies behind a block of queries: the K tile of the first of its KV heads in each page, by
 * position / 16.  One that no query of the block sees may be anything. */
struct past {
        const uint8_t **pages;
        uint32_t page_count;
        uint32_t heads; /* each asked by its share of the queries, those of the first one first */
        size_t head_offset;             /* from a head's K tile to the next one's */
        size_t v_offset, scales_offset; /* from a K tile to its V tile, from either to its scales */
        uint32_t head_dim;
        enum kv_type type;
        float scale, softcap;
};

/* The softmax over some positions: the largest score, the sum of e^(score - largest), and of that
 * times v. */
struct softmax {
        float largest, sum;
        float unused[14];
        float values[]; /* head_dim, rounded up to 16 */
};

struct split {
        float largest, factor;
        float least, above;
};

/* What has the same bits on each of them. */
struct loops {
        /* out = x / rms(x) * weight; out may be x */
        void (*norm)(float *out, const float *x, const float *weight, uint32_t count, float eps);
        /* out = act(g) * u; count a multiple of 16 */
        void (*activate)(enum activation act, float *out, const float *g, const float *u,
                         uint32_t count);
        /* x = cap * tanh(x / cap); count a multiple of 16 */
        void (*soften)(float *x, float cap, uint32_t count);
        /* of each block of LOGITS_BLOCK numbers the largest; INFINITY: one of them is that, or NaN */
        void (*maxima)(float *ret_maxima, const float *x, uint32_t blocks);
        /* ret_each = e^((x - largest) * factor), to about a unit in the last place; of each block the sum */
        void (*weigh)(float *ret_each, float *ret_sums, const float *x, uint32_t blocks,
                      float largest, float factor);
        /* ret_sums: what of each block's numbers weigh, as weigh() says, that are at->above or more.  Those that are
         * less, and at->least or more, are listed in order: which ones, counted from `first` on, and what they
         * weigh.  Returns how many; up to 15 more are written to. */
        uint32_t (*split)(const struct split *at, float *ret_sums, uint32_t *ret_where,
                          float *ret_each, const float *x, uint32_t blocks, uint32_t first);
        void (*to_half)(uint16_t *out, const float *x, uint32_t count);

        /* ret_found[i]: of queries[i] over the span that begins at `span`; nothing that may be
         * joined if it sees none of that */
        void (*attend)(const struct past *past, uint32_t span, const struct query *queries,
                       uint32_t count, struct softmax *const *ret_found);
        /* `all`, of earlier positions, takes up what the next ones gave */
        void (*attend_join)(struct softmax *all, const struct softmax *next, uint32_t head_dim);
        /* sink: NULL, or one more score, without a value */
        void (*attend_out)(float *out, const struct softmax *all, uint32_t head_dim,
                           const float *sink);
};

struct isa {
        const char *name; /* "cpu/avx512" */

        /* out[t][0..31] = panel x[t], of rows that are act_kind_of(type), `stride` bytes apart */
        void (*product)(enum row_type type, float *out, const void *panel, uint32_t columns,
                        const void *acts, size_t stride, uint32_t tokens);
        /* a row of x: ACT_BFLOATS or ACT_BYTES */
        void (*act)(enum act_kind kind, void *to, const float *x, uint32_t columns);

        const struct loops *loops; /* avx512bf16 has those of avx512 */
};

extern const struct loops loops_avx512, loops_avx2, loops_plain;
extern const struct isa isa_avx512bf16, isa_avx512, isa_avx2, isa_plain;

static inline uint32_t round_up(uint32_t n, uint32_t to)
{
        return (n + to - 1) / to * to;
}

static inline size_t softmax_bytes(uint32_t head_dim)
{
        return sizeof(struct softmax) + round_up(head_dim, 16) * sizeof(float);
}

#endif
