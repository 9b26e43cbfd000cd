/*
 * The page: the bytes of one KV block, in the layers of a pool.
 *
 * The layers of a model are in one group or in two, and each slot has a page table for each group.
 * So layers that see a window only can have their pages for the last positions, while other layers
 * have pages for all.  All layers of a pool have the same shape, so a group has a pool for each
 * shape of its layers.  Page n of a group is page n in each of its pools.
 *
 *      page     [layer][kv head] K tile | V tile
 *      tile     16 positions x head_dim numbers; KV_INT8, KV_FP8: followed by 16 scales, floats
 *
 * Offsets are the same for every backend, so that a page moves between GPU, host and disk in one
 * copy. The order of numbers inside a tile is the backend's own and has an id, the layout. Pages
 * of another layout are never read. Numbers of positions that were not written yet may be
 * anything, NaN included: they are masked, never multiplied.
 *
 * KV_INT8: a number is a signed byte times the scale of its position. The scale belongs to one
 * head at one position, and K and V have scales of their own. Scales are in the order of
 * positions, in every layout.
 *
 *      scale    max |x| / 127 of the head's numbers x; 0 where that is less than 2^-126,
 *               NaN (of bits 0x7fc00000) where some x is not finite
 *      integer  x / scale to nearest, ties to even: -127 .. 127; 0 where scale is 0 or NaN
 *
 * KV_FP8: the same, with E4M3 (convert.h) in place of integers. An E4M3 number always keeps four
 * significant bits. An integer keeps fewer bits the smaller it is beside the head's largest
 * number.
 *
 *      scale    max |x| / 448; 0 where that is less than 2^-126, NaN where some x is not finite
 *      number   float_to_e4m3(x / scale); +0 where scale is 0 or NaN
 *
 * The largest x / scale may be slightly above 448, because scale was rounded. E4M3 rounds numbers
 * up to 464 to 448. So no stored number is E4M3's NaN, and a reader may give that code any
 * meaning.
 *
 * x, scale and quotient are floats, each rounded to nearest, so the bits are defined. With
 * scales, a number that is not finite makes its whole head NaN. f16 and bf16 round to nearest,
 * ties to even. They keep a number that is not finite in its place, and f16 turns a number that
 * is too large into infinity.
 *
 * The offset of a tile is a multiple of the bytes of 16 of its numbers, so at least of 16 bytes,
 * whatever head_dim is. The same holds for its scales.
 */
#ifndef KERNELS_PAGE_H
#define KERNELS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_POSITIONS 16u

enum kv_type { KV_F16 = 0, KV_BF16 = 1, KV_INT8 = 2, KV_F32 = 3, KV_FP8 = 4 };
#define KV_TYPES 5

/* Types whose numbers are bytes that mean nothing without the scale of their position. */
#define KV_HAS_SCALES(type) ((type) == KV_INT8 || (type) == KV_FP8)

#define KV_GROUPS_MAX 2u
#define KV_POOLS_MAX  2u

enum kv_layout {
        KV_LAYOUT_NATURAL = 1, /* K and V: [position][head_dim] */
        KV_LAYOUT_LANES = 2,   /* K: [head_dim][position], V: [position][head_dim] */
};

struct kv_shape {
        uint32_t layers;
        uint32_t kv_heads;
        uint32_t head_dim;
        uint32_t pages;
        enum kv_type type;
        /*
         * Pages in the host's memory, numbered from `pages` on. Only copies of steps use them, to
         * and from pages of the pool.
         */
        uint32_t swap_pages;
        uint32_t group; /* which of the page tables of a slot its pages are in */
};

/* No size is zero, except that of the swap, and every page has a number. */
static inline bool kv_shape_is_valid(const struct kv_shape *shape)
{
        return shape->group < KV_GROUPS_MAX && shape->layers && shape->kv_heads &&
               shape->head_dim && shape->pages && shape->swap_pages <= UINT32_MAX - shape->pages;
}

/* Pages of the pool and swap pages; their numbers are below this. */
static inline uint32_t kv_all_pages(const struct kv_shape *shape)
{
        return shape->pages + shape->swap_pages;
}

static inline size_t kv_number_bytes(enum kv_type type)
{
        return type == KV_F32 ? 4 : KV_HAS_SCALES(type) ? 1 : 2;
}

/* Where the scales begin in a tile, if it has any. */
static inline size_t kv_scales_offset(const struct kv_shape *shape)
{
        return (size_t)PAGE_POSITIONS * shape->head_dim * kv_number_bytes(shape->type);
}

static inline size_t kv_tile_bytes(const struct kv_shape *shape)
{
        return kv_scales_offset(shape) +
               (KV_HAS_SCALES(shape->type) ? PAGE_POSITIONS * sizeof(float) : 0);
}

static inline size_t kv_page_bytes(const struct kv_shape *shape)
{
        return (size_t)shape->layers * shape->kv_heads * 2 * kv_tile_bytes(shape);
}

/* Where the K tile of a layer and head begins in a page; its V tile follows. */
static inline size_t kv_tile_offset(const struct kv_shape *shape, uint32_t layer, uint32_t head)
{
        return ((size_t)layer * shape->kv_heads + head) * 2 * kv_tile_bytes(shape);
}

#endif
