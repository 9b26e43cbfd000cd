#include "kernels/kv.h"

#include <errno.h>
#include <string.h>

#include "kernels/copy-time.h"
#include "kernels/memory.h"

int kv_pool_new(const struct kv_shape *shape, struct kv **ret_kv)
{
        struct kv *kv;
        size_t bytes;

        if (!kv_shape_is_valid(shape))
                return -EINVAL;

        kv = memory_new(1, sizeof(*kv));
        if (!kv)
                return -ENOMEM;
        kv->shape = *shape;
        kv->page_bytes = kv_page_bytes(shape);
        kv->tile_bytes = kv_tile_bytes(shape);
        if (!__builtin_mul_overflow(kv->page_bytes, kv_all_pages(shape), &bytes) &&
            !__builtin_add_overflow(bytes, KV_BEYOND, &bytes))
                kv->pages = memory_new(1, bytes);
        if (!kv->pages) {
                kv_pool_free(kv);
                return -ENOMEM;
        }
        *ret_kv = kv;
        return 0;
}

struct kv *kv_pool_free(struct kv *kv)
{
        if (!kv)
                return NULL;
        memory_free(kv->pages);
        memory_free(kv);
        return NULL;
}

static void page_copy(struct kv *kv, uint32_t from, uint32_t to)
{
        assert(from < kv_all_pages(&kv->shape) && to < kv_all_pages(&kv->shape));
        assert(from != to && (from < kv->shape.pages || to < kv->shape.pages));
        memcpy(kv->pages + to * kv->page_bytes, kv->pages + from * kv->page_bytes, kv->page_bytes);
}

void kv_copy(struct kv *const *pools, const struct step_copy *copies, uint32_t count)
{
        for (uint32_t pool = 0; pool < KV_POOLS_MAX; pool++)
                for (uint32_t i = 0; pools[pool] && i < count; i++)
                        if (copies[i].group == pools[pool]->shape.group)
                                page_copy(pools[pool], copies[i].from, copies[i].to);
}

uint64_t kv_copy_time(struct kv *kv)
{
        uint64_t rounds[COPY_TIME_ROUNDS];

        assert(kv->shape.swap_pages);
        for (uint32_t i = 0; i < COPY_TIME_ROUNDS; i++) {
                uint64_t begin = copy_time_now();

                page_copy(kv, 0, kv->shape.pages);
                page_copy(kv, kv->shape.pages, 0);
                rounds[i] = copy_time_now() - begin;
        }
        return copy_time_median(rounds, 2);
}
