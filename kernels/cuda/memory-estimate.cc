/*
 * Estimates how much of the GPU's memory a model will take.  matrix.cc, floats.cc and operators.cc
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

static int add_matrices(const struct cuda *cuda, const kernels_objects *objects,
                        kernels_memory *memory)
{
        matrix_memory matrix_bytes, all = {};
        int r;

        for (uint32_t i = 0; i < objects->matrix_count; i++) {
                r = cuda_matrix_memory(cuda, &objects->matrices[i], &matrix_bytes);
                if (r)
                        return r;
                add(&memory->weights, matrix_bytes.weights);
                add(&memory->weights, matrix_bytes.scales);
                all.bfloat_rows = larger(all.bfloat_rows, matrix_bytes.bfloat_rows);
                all.stacked = larger(all.stacked, matrix_bytes.stacked);
                all.sums = larger(all.sums, matrix_bytes.sums);
                all.arrived = larger(all.arrived, matrix_bytes.arrived);
                all.blas_weights = larger(all.blas_weights, matrix_bytes.blas_weights);
                all.blas_sums = larger(all.blas_sums, matrix_bytes.blas_sums);
        }
        add(&memory->scratch, all.bfloat_rows);
        add(&memory->scratch, all.stacked);
        add(&memory->scratch, all.sums);
        add(&memory->scratch, all.arrived);
        add(&memory->scratch, all.blas_weights);
        add(&memory->scratch, all.blas_sums);
        return 0;
}

static int add_attends(const struct cuda *cuda, const kernels_objects *objects,
                       kernels_memory *memory)
{
        attend_scratch_bytes bytes, all = {};
        int r;

        for (uint32_t i = 0; i < objects->attend_count; i++) {
                attend_prompt_scratch prompts;
                attend_scratch scratch;
                size_t list;

                if (!attend_serves(objects->attends[i].head_dim,
                                   KV_F16)) /* the same for all types */
                        return -ENOTSUP;
                r = cuda_attend_scratch(cuda, &objects->attends[i], &scratch, &bytes);
                if (!r)
                        r = cuda_prompt_scratch(cuda, &scratch, &prompts, &list);
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

int cuda_memory(struct kernels *k, const kernels_objects *objects, kernels_memory *ret_memory)
{
        const struct cuda *cuda = cuda_of(k);
        kernels_memory memory = {};
        size_t bytes;
        int r;

        memory.left = device_memory_left(cuda->device);
        for (uint32_t i = 0; i < objects->floats_count; i++) {
                if (!cuda_floats_bytes(cuda, objects->floats[i], &bytes))
                        return -ENOMEM;
                add(&memory.floats, bytes);
        }
        r = add_matrices(cuda, objects, &memory);
        if (!r)
                r = add_attends(cuda, objects, &memory);
        if (r)
                return r;
        *ret_memory = memory;
        return 0;
}
