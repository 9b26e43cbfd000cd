/*
 * A pool of pages in plain memory, zeroed when made: the CPU backends' definition of struct kv.
 * Swap pages follow the pages of the pool in the same memory. Each backend chooses the order of
 * numbers inside a tile.
 */
#ifndef KERNELS_KV_H
#define KERNELS_KV_H

#include <assert.h>
#include <stdint.h>

#include "kernels/kernels.h"

struct kv {
        struct kv_shape shape;
        size_t page_bytes;
        size_t tile_bytes;
        uint8_t *pages; /* and the swap pages after them */
};

/* A vector load may read this many bytes beyond the end of the last page. */
#define KV_BEYOND 64u

/* -EINVAL: kv_shape_is_valid() says no; -ENOMEM. */
int kv_pool_new(const struct kv_shape *shape, struct kv **ret_kv);
struct kv *kv_pool_free(struct kv *kv);

/*
 * Copies whole pages, in order: a later copy sees the result of an earlier one.  Of KV_POOLS_MAX
 * pools, each may be NULL.
 */
void kv_copy(struct kv *const *pools, const struct step_copy *copies, uint32_t count);
/* kv_copy_ns() of the backends (kernels.h). */
uint64_t kv_copy_time(struct kv *kv);

/* KV_INT8, KV_FP8: the scales of a tile, one for each position. */
static inline float *kv_scales(const struct kv *kv, const uint8_t *tile)
{
        return (float *)(tile + kv_scales_offset(&kv->shape));
}

/* Number 0 of the K tile of a layer and head; its V tile is kv->tile_bytes further. */
static inline uint8_t *kv_tile(const struct kv *kv, uint32_t page, uint32_t layer, uint32_t head)
{
        assert(page < kv->shape.pages);
        return kv->pages + page * kv->page_bytes + kv_tile_offset(&kv->shape, layer, head);
}

#endif
