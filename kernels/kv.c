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

void kv_copy(struct kv *kv, const struct step_copy *copies, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                uint32_t from = copies[i].from, to = copies[i].to;

                assert(from < kv_all_pages(&kv->shape) && to < kv_all_pages(&kv->shape));
                assert(from != to && (from < kv->shape.pages || to < kv->shape.pages));
                memcpy(kv->pages + to * kv->page_bytes, kv->pages + from * kv->page_bytes,
                       kv->page_bytes);
        }
}

uint64_t kv_copy_time(struct kv *kv)
{
        const struct step_copy there_and_back[] = { { 0, kv->shape.pages },
                                                    { kv->shape.pages, 0 } };
        uint64_t rounds[COPY_TIME_ROUNDS];

        assert(kv->shape.swap_pages);
        for (uint32_t i = 0; i < COPY_TIME_ROUNDS; i++) {
                uint64_t begin = copy_time_now();

                kv_copy(kv, there_and_back, 2);
                rounds[i] = copy_time_now() - begin;
        }
        return copy_time_median(rounds, 2);
}
