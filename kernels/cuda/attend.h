/*
 * Attention of all rows of a step over the pages of their slots: decodes, chunks of prompts, and
 * what follows a prefix that was found, in one kernel.
 *
 *      s(p)  = cap(q k(p) * scale) + slope * (p - own)         cap(x) = softcap * tanh(x / softcap)
 *      out   = sum of exp(s(p)) v(p) / (sum of exp(s(p)) + exp(sink))
 *      p     from own - window + 1, or 0, to own
 *
 *      q       (rows, heads * head_dim) halves; bfloats, where pages have these
 *      out     (rows, width) bfloats, width = heads * head_dim padded to 64 with zeros
 *      pages   KV_LAYOUT_NATURAL, any type but KV_F32 (attend-kv.h); this step's own K and V
 *              are there already
 *      grid    room.blocks of 4 warps (head_dim 256: 2), whatever the step is
 *      moves   4 * head_dim bytes, or 2 * head_dim + 8 of bytes, for each tile, KV head and
 *              position that the tile sees, q and out once; for what is cut (below) 8 * head_dim for each split and pair
 *
 * A tensor core multiplies 16 rows, so what shares K and V is packed: a tile is 16 pairs (row of a
 * run, head of the group that has one KV head), in that order.  A decode has one tile of a
 * few pairs, a chunk of a prompt many full ones.  An item is a tile, a KV head, and some splits:
 *
 *      split   256 positions from a multiple of 256 on
 *      slice   16 positions, a page's; slice i of a split belongs to warp i % 4 (2)
 *
 * attend_plan() lists the items of a step once, before its layers: tiles that would keep a block
 * busy for much longer than others have to work are cut, an item for each split; all others
 * are one item.  Blocks step over the list.
 *
 * Weights are rounded to what V is multiplied as before they are multiplied with it, by 2^-12 of
 * themselves as halves, 2^-9 as bfloats, but not in the sum that divides.
 *
 * Order of sums: a warp takes its slices of a split in ascending order, from nothing; warps are
 * added in order and make the split's sum; splits are added in ascending order, each time scaled to
 * the largest score so far.  Where a tile was cut, the splits' sums wait in memory, and whoever
 * comes last adds them all: a kernel of its own would cost each layer another launch.  Whole
 * tiles are added in registers, by the same operations.  So how a tile is cut changes no
 * bit, and neither do its other pairs: a slice or split that a pair does not see gives it factors
 * of 1 and sums of 0, exactly.
 *
 * What lies in pages where no row looks may be anything, NaN included, and table entries that
 * nobody sees are not read.  A row that sees a V that is not finite, or a K that is NaN, or a scale
 * that is, is not finite itself; rows that do not see it are as if it were not there.
 *
 * It can not: serve other head dimensions, multiply floats (KV_F32), and be quick for long
 * prompts: each tile fetches K and V for itself, out of the L2 cache.  Where bits need not be a
 * row's own, attend-prompt.h is.
 */
#ifndef KERNELS_CUDA_ATTEND_H
#define KERNELS_CUDA_ATTEND_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/step.h"

#define ATTEND_SPLIT 256u /* positions */
#define ATTEND_PAIRS 16u  /* of a tile */

/* 32, 64, 80, 96, 128 and 256, of all types but KV_F32.  Others have no kernel here. */
bool attend_serves(uint32_t head_dim, kv_type type);

struct attend_item {
        seen_run run;
        uint32_t tile;       /* of the run */
        uint32_t begin, end; /* splits */
        uint32_t part;       /* first place of the tile's, in units of kv_heads; ATTEND_WHOLE */
};
#define ATTEND_WHOLE UINT32_MAX

struct attend_list {
        uint32_t count, reserved[7];
        attend_item items[];
};

/*
 * What it needs on the device.  Layers with another window have a list of their own; `parts` and
 * `arrived` can be the same for all that run one after the other.
 */
struct attend_room {
        uint32_t heads, kv_heads, head_dim;
        uint32_t window;     /* 0: none */
        uint32_t rows_below; /* only runs of fewer rows (attend-prompt.h); 0: all */
        uint32_t blocks;
        uint32_t cuts_max; /* splits of tiles that are cut */
        attend_list *list;
        float *parts;
        unsigned *arrived; /* zeros, and left so */
};

struct attend_bytes {
        size_t list, parts, arrived;
};

/*
 * Sets blocks and cuts_max from what is above them, for a device of so many multiprocessors, steps
 * of so many rows, page tables of so many entries; says what must be made.  -EOVERFLOW: it cannot.
 */
int attend_room_of(attend_room *room, uint32_t processors, uint32_t rows_max, uint32_t pages_max,
                   attend_bytes *ret_bytes);

/* Once a step, when its rows and tables are on the device. */
int attend_plan(device *device, const step_view *view, const attend_room *room);

struct attend_args {
        step_view view;
        attend_room room;
        const uint16_t *q;
        uint16_t *out;
        const uint8_t *pages; /* of the pool, where this layer's tiles begin in page 0 */
        size_t page_bytes;
        kv_type type;        /* of their numbers */
        float scale;         /* more than 0 */
        float softcap;       /* 0: none */
        const float *sinks;  /* (heads) or NULL */
        const float *slopes; /* (heads) or NULL */
};

/* The operator is called as the struct that describes it (kernels.h); here nobody makes one. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
int attend(device *device, const attend_args *args);
#pragma GCC diagnostic pop

#endif
