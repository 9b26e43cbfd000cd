/*
 * The loops that are compiled once for each instruction set.
 *
 * loops.inc is the source; avx512.c, avx2.c and portable.c compile it with vectors of 16, 8 and 4
 * floats. All do the same operations on each number in the same order. Multiply and add are fused
 * only where the source says so (-ffp-contract=off). So an instruction set changes the speed and
 * no bit of the result. The only exception is products of bfloats on processors that have
 * instructions for them (avx512bf16.c, amx.c).
 *
 * panel.h describes how weights lie in memory, act-quant.h how rows of x do.
 */
#ifndef KERNELS_CPU_ISA_H
#define KERNELS_CPU_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/act-quant.h"
#include "kernels/cpu/panel.h"
#include "kernels/draw.h"
#include "kernels/kernels.h"
#include "kernels/page.h"

/* Logits that are handled together: the output of one panel of the head. */
#define LOGITS_BLOCK PANEL
_Static_assert(LOGITS_BLOCK == DRAW_SPAN, "a block of logits is a span of draws");
/* Queries that are walked together: of one KV head, or of several. */
#define QUERIES 32u

/*
 * Attention handles positions in tiles, and tiles in spans. Both begin at multiples of their
 * length.
 */
#define TILE_POSITIONS 64u
#define TILE_PAGES     (TILE_POSITIONS / PAGE_POSITIONS)
#define SPAN_POSITIONS 1024u

/* One query of attention: a row and a head. */
struct query {
        const float *q;
        uint32_t first, own; /* the positions it sees, both included */
        float slope;         /* 0: none */
};

/*
 * The past positions of a block of queries. `pages` has the K tile of the block's first KV head
 * in each page, by position / 16. Entries of pages that no query of the block sees may be
 * anything.
 */
struct past {
        const uint8_t **pages;
        uint32_t page_count;
        /*
         * KV heads; each has an equal share of the queries, and the first head's queries come
         * first.
         */
        uint32_t heads;
        size_t head_offset; /* from a head's K tile to that of the next head */
        /* From a K tile to its V tile, and from either tile to its scales. */
        size_t v_offset, scales_offset;
        uint32_t head_dim;
        enum kv_type type;
        float scale, softcap;
};

/*
 * The softmax over some positions: the largest score, the sum of e^(score - largest), and the sum
 * of that times v.
 */
struct softmax {
        float largest, sum;
        float unused[14];
        float values[]; /* head_dim, rounded up to 16 */
};

struct split {
        float largest, factor;
        float least, above;
};

/* Of a row whose token is drawn. */
struct bounding {
        struct draw_key key;
        float largest, factor;
};

/* The loops that give the same bits on all instruction sets. */
struct loops {
        /* out = norm(x), of any kind but NORM_NONE; out may be x */
        void (*norm)(float *out, const float *x, const struct row_norm *norm, uint32_t count);
        /* out = act(g) * u, or act(g) if u is NULL; count a multiple of 16; out may be g */
        void (*activate)(enum activation act, float *out, const float *g, const float *u,
                         uint32_t count);
        /* x = cap * tanh(x / cap); count a multiple of 16 */
        void (*softcap)(float *x, float cap, uint32_t count);
        /*
         * The largest of each block of LOGITS_BLOCK numbers; INFINITY if one of them is INFINITY
         * or NaN.
         */
        void (*maxima)(float *ret_maxima, const float *x, uint32_t blocks);
        /*
         * ret_each = e^((x - largest) * factor), to about a unit in the last place. ret_sums: the
         * sum of each block.
         */
        void (*weigh)(float *ret_each, float *ret_sums, const float *x, uint32_t blocks,
                      float largest, float factor);
        /*
         * ret_sums: for each block, the weight (as in weigh()) of its numbers that are at->above
         * or more. Numbers below at->above, but at->least or more, are listed in order: ret_where
         * gets their indexes, counted from `first`, and ret_each their weights. Returns how many
         * are listed. Up to 15 more entries are overwritten.
         */
        uint32_t (*split)(const struct split *at, float *ret_sums, uint32_t *ret_where,
                          float *ret_each, const float *x, uint32_t blocks, uint32_t first);
        /*
         * ret_bounds: for each block, a number that no score of its tokens exceeds (score-bound.h).
         * `largest` has the blocks' largest logits.
         */
        void (*bound)(const struct bounding *of, float *ret_bounds, const float *largest,
                      uint32_t blocks);
        void (*to_half)(uint16_t *out, const float *x, uint32_t count);

        /*
         * ret_found[i]: the softmax of queries[i] over the span that begins at `span`. If the
         * query sees nothing of the span, the result must not be joined.
         */
        void (*attend)(const struct past *past, uint32_t span, const struct query *queries,
                       uint32_t count, struct softmax *const *ret_found);
        /*
         * Adds `next`, the softmax of the next positions, to `all`, that of the positions before.
         */
        void (*attend_join)(struct softmax *all, const struct softmax *next, uint32_t head_dim);
        /* sink: NULL, or one more score, without a value */
        void (*attend_out)(float *out, const struct softmax *all, uint32_t head_dim,
                           const float *sink);
};

/* A part of a product: some panels of weights, and some rows of x. */
struct piece {
        enum row_type type;
        uint32_t columns;
        const uint8_t *panels;
        size_t panel_stride; /* from one panel to the next */
        uint32_t panel_count;
        const uint8_t *acts; /* rows of x, of kind act_kind_of(type) */
        size_t act_stride;
        uint32_t rows;
        /*
         * How many bytes ahead a panel and what follows it are prefetched, if one pass has all
         * rows: one row of any type, or a few rows of numbers or bytes with 16 lanes. 0: they are
         * not. fetch_ahead() has all other cases.
         */
        uint32_t lone_ahead;
};

/* The most panels of a piece, and the most rows that are fast. */
struct piece_size {
        uint32_t rows, panels;
};

struct isa {
        const char *name; /* "cpu/avx512" */

        /* out[panel][row][0..31] = the sums of a panel and a row of x */
        void (*product)(const struct piece *piece, float *out);
        /* Converts a row of x to ACT_BFLOATS or ACT_BYTES. */
        void (*act_quantise)(enum act_kind kind, void *to, const float *x, uint32_t columns);

        /* NULL, or by type: the number of rows of x from which tiles multiply; 0: they never do. */
        const uint16_t *tiled_from;
        /* Or NULL. A thread that has called product() calls it before it sleeps. */
        void (*rest)(void);

        const struct loops *loops; /* avx512bf16 and amx use those of avx512 */
};

extern const struct loops loops_avx512, loops_avx2, loops_portable;
extern const struct isa isa_amx, isa_avx512bf16, isa_avx512, isa_avx2, isa_portable;
extern const struct isa isa_amx_emulated;

/*
 * Few rows, and all rows without tiles, are multiplied with one panel after the other: memory sees
 * one stream, and these rows and the panels of an item of work stay in the L2 cache. Tiles multiply
 * many rows with a few columns of several panels: the weights stay in the L1 cache, and the columns
 * of all rows in the L2 cache (product-tiles.h).
 */
#define PIECE_FEW    48u /* rows of a piece of one panel */
#define PIECE_ROWS   512u
#define PIECE_PANELS 8u

static inline bool isa_is_tiled(const uint16_t *tiled_from, enum row_type type, uint32_t rows)
{
        return tiled_from && tiled_from[type] && rows >= tiled_from[type];
}

static inline struct piece_size isa_piece(const struct isa *isa, enum row_type type, uint32_t rows)
{
        if (rows > PIECE_FEW && isa_is_tiled(isa->tiled_from, type, rows))
                return (struct piece_size){ PIECE_ROWS, PIECE_PANELS };
        return (struct piece_size){ PIECE_FEW, 1 };
}

static inline uint32_t round_up(uint32_t n, uint32_t to)
{
        return (n + to - 1) / to * to;
}

static inline size_t softmax_bytes(uint32_t head_dim)
{
        return sizeof(struct softmax) + round_up(head_dim, 16) * sizeof(float);
}

#endif
