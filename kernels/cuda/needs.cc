/*
 * Estimates how much of the GPU's memory a model will take.  mats.cc, floats.cc and layers.cc
 * each tell how much they will ask for, and this file adds it up.
 */
#include "kernels/cuda/cuda.h"

#include <errno.h>

/* The sum saturates at UINT64_MAX; no GPU has that much. */
static void add(uint64_t *sum, size_t bytes)
{
        bytes = bytes ? device_memory_of(bytes) : 0;
        *sum = bytes > UINT64_MAX - *sum ? UINT64_MAX : *sum + bytes;
}

static int add_mats(const struct cuda *cuda, const kernels_needs *needs, kernels_memory *memory)
{
        mat_room room, all = {};
        int r;

        for (uint32_t i = 0; i < needs->mat_count; i++) {
                r = cuda_mat_room(cuda, &needs->mats[i], &room);
                if (r)
                        return r;
                add(&memory->weights, room.weights);
                add(&memory->weights, room.scales);
                all.narrow = larger(all.narrow, room.narrow);
                all.stacked = larger(all.stacked, room.stacked);
                all.sums = larger(all.sums, room.sums);
                all.arrived = larger(all.arrived, room.arrived);
                all.wide_weights = larger(all.wide_weights, room.wide_weights);
                all.wide_sums = larger(all.wide_sums, room.wide_sums);
        }
        add(&memory->scratch, all.narrow);
        add(&memory->scratch, all.stacked);
        add(&memory->scratch, all.sums);
        add(&memory->scratch, all.arrived);
        add(&memory->scratch, all.wide_weights);
        add(&memory->scratch, all.wide_sums);
        return 0;
}

static int add_attends(const struct cuda *cuda, const kernels_needs *needs, kernels_memory *memory)
{
        attend_bytes bytes, all = {};
        int r;

        for (uint32_t i = 0; i < needs->attend_count; i++) {
                attend_prompt_room prompts;
                attend_room room;
                size_t list;

                if (!attend_serves(needs->attends[i].head_dim, KV_F16)) /* the same for all types */
                        return -ENOTSUP;
                r = cuda_attend_room(cuda, &needs->attends[i], &room, &bytes);
                if (!r)
                        r = cuda_prompt_room(cuda, &room, &prompts, &list);
                if (r)
                        return r;
                add(&memory->scratch, bytes.list);
                add(&memory->scratch, list);
                all.parts = larger(all.parts, bytes.parts);
                all.arrived = larger(all.arrived, bytes.arrived);
        }
        add(&memory->scratch, all.parts);
        add(&memory->scratch, all.arrived);
        return 0;
}

int cuda_memory(struct kernels *k, const kernels_needs *needs, kernels_memory *ret_memory)
{
        const struct cuda *cuda = cuda_of(k);
        kernels_memory memory = {};
        size_t bytes;
        int r;

        memory.left = device_memory_left(cuda->device);
        for (uint32_t i = 0; i < needs->floats_count; i++) {
                if (!cuda_floats_bytes(cuda, needs->floats[i], &bytes))
                        return -ENOMEM;
                add(&memory.floats, bytes);
        }
        r = add_mats(cuda, needs, &memory);
        if (!r)
                r = add_attends(cuda, needs, &memory);
        if (r)
                return r;
        *ret_memory = memory;
        return 0;
}
