/*
 * A model of the time of a step, for benches that simulate time:
 *
 *      base + rows * row + positions * position
 *
 * `positions` is the sum of the context lengths of the sequences in the step: attention reads the
 * KV of each sequence once, however many rows of it the step has.  The products of attention,
 * which grow with rows times positions, are left out.
 */
#ifndef BENCH_STEP_COST_H
#define BENCH_STEP_COST_H

#include <stdint.h>

struct step_cost {
        double base_ns, row_ns, position_ns;
};

/*
 * Llama-3.1-8B in bf16 on one H100 SXM.  NVIDIA's data sheet gives 3.35 TB/s and 989 TFLOPS
 * (dense bf16); the model card gives 8.03 billion weights, 32 layers, and 8 KV heads of 128.  We
 * assume that kernels reach 80 % of the bandwidth and 60 % of the products.
 *
 *      base      16.06 GB of weights are read in 6.0 ms
 *      row       2 * 8.03e9 operations take 27 us
 *      position  131,072 bytes of KV (32 * 2 * 8 * 128 * 2) are read in 49 ns
 */
#define STEP_COST_8B_H100                                                                          \
        (struct step_cost)                                                                         \
        {                                                                                          \
                .base_ns = 6e6, .row_ns = 27e3, .position_ns = 49                                  \
        }

/* In whole ns, and at least 1, so that time goes on. */
static inline uint64_t step_cost_ns(const struct step_cost *cost, uint32_t rows, uint64_t positions)
{
        double ns = cost->base_ns + rows * cost->row_ns + (double)positions * cost->position_ns;

        return ns < 1 ? 1 : (uint64_t)(ns + 0.5);
}

#endif
