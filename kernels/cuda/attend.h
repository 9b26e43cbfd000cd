/*
 * Attention of all rows of a step over the pages of their slots, in one kernel: decodes, chunks
 * of prompts, and rows that follow a cached prefix.
 *
 *      s(p)  = cap(q k(p) * scale) + slope * (p - own)         cap(x) = softcap * tanh(x / softcap)
 *      out   = sum of exp(s(p)) v(p) / (sum of exp(s(p)) + exp(sink))
 *      p     from own - window + 1, or 0, to own
 *
 *      q       (rows, heads * head_dim) halves; bfloats, where pages have bfloats
 *      out     (rows, width) bfloats, width = heads * head_dim padded to 64 with zeros
 *      pages   KV_LAYOUT_NATURAL, any type but KV_F32 (attend-kv.h); this step's own K and V
 *              are there already
 *      grid    scratch.blocks of 4 warps (head_dim 256: 2, 512: 1), for any step
 *      moves   for each tile, KV head and position that the tile sees: 4 * head_dim bytes, or
 *              2 * head_dim + 8 where numbers are bytes; q and out once; for tiles that are cut
 *              (below) 8 * head_dim for each split and pair.  With head_dim 512, K, q and 8 bytes
 *              of scales move twice
 *
 * A tensor core multiplies 16 rows, so rows that share K and V are packed: a tile is 16 pairs
 * (row of a run, head of the group that shares one KV head), in that order.  A decode has one
 * tile of a few pairs; a chunk of a prompt has many full tiles.  An item is a tile, a KV head, a
 * share, and some splits:
 *
 *      share   256 numbers of a head of V: a warp has no registers for the sums of 512.  Heads of
 *              up to 256 have one share, those of 512 have two.  For each share all scores are
 *              computed, by the same operations
 *      split   256 positions, from a multiple of 256 on
 *      slice   16 positions, a page's; slice i of a split belongs to warp i % 4 (2, 1)
 *
 * attend_plan() lists the items of a step once, before its layers.  Tiles that would keep a block
 * busy for much longer than other blocks are cut into an item for each split; every other tile is
 * one item.  Blocks step over the list.
 *
 * Weights are rounded to the type that V is multiplied as, by 2^-12 of their value as halves and
 * 2^-9 as bfloats.  The sum that divides uses the weights before rounding.
 *
 * Order of sums: a warp takes its slices of a split in ascending order, starting from zero.
 * Warps are added in order and make the split's sum.  Splits are added in ascending order, each
 * time scaled to the largest score so far.  Where a tile was cut, the sums of its splits wait in
 * memory, and the block that ends last adds them all; a separate kernel would cost each layer
 * another launch.  Whole tiles are added in registers, by the same operations.  So the way a tile
 * is cut changes no bit, and its other pairs change none either: a slice or split that a pair
 * does not see contributes factors of 1 and sums of 0, exactly.
 *
 * Parts of pages that no row sees may hold anything, NaN included, and table entries that no row
 * needs are not read.  A row becomes non-finite if it sees a V that is not finite, a K that is
 * NaN, or a scale that is.  Rows that do not see that position are not affected.
 *
 * Limits: it serves no other head dimensions, cannot multiply floats (KV_F32), and is not quick
 * for long prompts: each tile fetches K and V for itself, out of the L2 cache.  attend-prompt.h
 * is quicker for these, where a row's bits may depend on the other rows.
 */
#ifndef KERNELS_CUDA_ATTEND_H
#define KERNELS_CUDA_ATTEND_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/step-view.h"

#define ATTEND_SPLIT 256u /* positions */
#define ATTEND_PAIRS 16u  /* in a tile */
#define ATTEND_SHARE 256u /* the most numbers of a head of V */

/*
 * Head dimensions 32, 64, 80, 96, 128, 256 and 512, all types but KV_F32.  Others have no kernel
 * here.
 */
bool attend_serves(uint32_t head_dim, kv_type type);

/* The number of shares of a head dimension that is served. */
static inline uint32_t attend_shares(uint32_t head_dim)
{
        return head_dim > ATTEND_SHARE ? head_dim / ATTEND_SHARE : 1;
}

struct attend_item {
        view_run run;
        uint32_t tile;       /* of the run */
        uint32_t begin, end; /* splits */
        /*
         * The tile's first place in `parts`, in units of all shares of all KV heads; or
         * ATTEND_WHOLE, if it is not cut.
         */
        uint32_t part;
};
#define ATTEND_WHOLE UINT32_MAX

struct attend_list {
        uint32_t count, reserved[7];
        attend_item items[];
};

/*
 * The memory that attention needs on the device.  Layers with another window have a list of their
 * own.  `parts` and `arrived` can be shared by all layers that run one after the other.
 */
struct attend_scratch {
        uint32_t heads, kv_heads, head_dim;
        uint32_t window; /* 0: none */
        /* Only runs of fewer rows are done here, the others by attend-prompt.h; 0: all runs. */
        uint32_t rows_below;
        uint32_t blocks;
        uint32_t cuts_max; /* most splits of tiles that are cut */
        attend_list *list;
        float *parts;
        unsigned *arrived; /* zeros before and after each call */
};

struct attend_scratch_bytes {
        size_t list, parts, arrived;
};

/*
 * Sets blocks and cuts_max from the fields above them, for a device with `processors`
 * multiprocessors.  Steps have up to `rows_max` rows, and page tables have `pages_max` entries.
 * Returns in *ret_bytes how much memory must be allocated.  -EOVERFLOW: the sizes are too large.
 */
int attend_scratch_of(attend_scratch *scratch, uint32_t processors, uint32_t rows_max,
                      uint32_t pages_max, attend_scratch_bytes *ret_bytes);

/* Called once a step, when its rows and tables are on the device. */
int attend_plan(device *device, const step_view *view, const attend_scratch *scratch);

struct attend_args {
        step_view view;
        attend_scratch scratch;
        const uint16_t *q;
        uint16_t *out;
        const uint8_t *pages; /* in the pool, where this layer's tiles begin in page 0 */
        size_t page_bytes;
        kv_type type;        /* of the numbers in pages */
        float scale;         /* greater than 0 */
        float softcap;       /* 0: none */
        const float *sinks;  /* (heads) or NULL */
        const float *slopes; /* (heads) or NULL */
};

/*
 * The name `attend` is also that of the struct that describes the operator (kernels.h).  No
 * struct of that name is used here.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
int attend(device *device, const attend_args *args);
#pragma GCC diagnostic pop

#endif
