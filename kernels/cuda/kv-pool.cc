/*
 * The pool: pages in the device's memory, and swap pages in the host's.
 *
 * All copies of pages are put on the stream of the steps. So a copy is behind the steps that wrote
 * its page and before the operators that read it, and no event has to say so.
 */
#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "kernels/copy-time.h"

/* Copies that are measured together, so that the time of a wait hardly counts. */
#define MEASURED_PAIRS 8u

static int make_swap(struct cuda *cuda, kv *kv)
{
        size_t bytes;
        int r;

        if (!kv->shape.swap_pages)
                return 0;
        if (__builtin_mul_overflow(kv->page_bytes, (size_t)kv->shape.swap_pages, &bytes))
                return -ENOMEM;
        r = device_swap_new(cuda->device, bytes, (void **)&kv->swap_pages);
        return r ? r : device_event_new(cuda->device, &kv->copied);
}

int cuda_kv_new(struct kernels *k, const kv_shape *shape, kv **ret_kv)
{
        struct cuda *cuda = cuda_of(k);
        size_t bytes;
        kv *kv;
        int r;

        if (!kv_shape_is_valid(shape))
                return -EINVAL;
        if (!(KV_SERVED >> shape->type & 1) || !attend_serves(shape->head_dim, shape->type))
                return -ENOTSUP;
        if (__builtin_mul_overflow(kv_page_bytes(shape), (size_t)shape->pages, &bytes))
                return -ENOMEM;
        kv = (struct kv *)calloc(1, sizeof(*kv));
        if (!kv)
                return -ENOMEM;
        kv->shape = *shape;
        kv->page_bytes = kv_page_bytes(shape);
        kv->tile_bytes = kv_tile_bytes(shape);
        r = device_new(cuda->device, bytes, (void **)&kv->pages);
        if (!r)
                r = make_swap(cuda, kv);
        if (r) {
                cuda_kv_free(k, kv);
                return cuda_check_object(cuda, r);
        }
        *ret_kv = kv;
        return 0;
}

void cuda_kv_free(struct kernels *k, kv *kv)
{
        struct device *device = cuda_of(k)->device;

        if (!kv)
                return;
        device_delete(device, kv->pages);
        device_swap_delete(device, kv->swap_pages);
        device_event_delete(device, kv->copied);
        free(kv);
}

int cuda_kv_copy(struct cuda *cuda, const kv *kv, const step_copy *copy)
{
        const uint32_t pages = kv->shape.pages;
        uint8_t *to = kv->pages + copy->to * kv->page_bytes;
        const uint8_t *from = kv->pages + copy->from * kv->page_bytes;

        assert(copy->from != copy->to);
        assert(copy->from < kv_all_pages(&kv->shape) && copy->to < kv_all_pages(&kv->shape));
        if (copy->to >= pages) {
                assert(copy->from < pages);
                to = kv->swap_pages + (copy->to - pages) * kv->page_bytes;
                return device_swap_out(cuda->device, STREAM_STEPS, to, from, kv->page_bytes);
        }
        if (copy->from >= pages) {
                from = kv->swap_pages + (copy->from - pages) * kv->page_bytes;
                return device_swap_in(cuda->device, STREAM_STEPS, to, from, kv->page_bytes);
        }
        return device_copy(cuda->device, STREAM_STEPS, to, from, kv->page_bytes);
}

static int copy_there_and_back(struct cuda *cuda, const kv *kv)
{
        const step_copy there = { 0, kv->shape.pages, kv->shape.group };
        const step_copy back = { kv->shape.pages, 0, kv->shape.group };
        int r = 0;

        for (uint32_t i = 0; i < MEASURED_PAIRS && !r; i++) {
                r = cuda_kv_copy(cuda, kv, &there);
                if (!r)
                        r = cuda_kv_copy(cuda, kv, &back);
        }
        if (!r)
                r = device_event_record(cuda->device, STREAM_STEPS, kv->copied);
        return r ? r : device_event_wait(cuda->device, kv->copied);
}

uint64_t cuda_kv_copy_ns(struct kernels *k, kv *kv)
{
        struct cuda *cuda = cuda_of(k);
        uint64_t rounds[COPY_TIME_ROUNDS];

        assert(kv->shape.swap_pages && !cuda->steps.running);
        for (uint32_t i = 0; i < COPY_TIME_ROUNDS; i++) {
                uint64_t begin = copy_time_now();

                /* If it fails, the backend is lost, and no step will copy anything. */
                if (cuda->lost || cuda_check(cuda, copy_there_and_back(cuda, kv)))
                        return 1;
                rounds[i] = copy_time_now() - begin;
        }
        return copy_time_median(rounds, 2 * MEASURED_PAIRS);
}
