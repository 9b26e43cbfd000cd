/* The pairs of a tile of attention (attend.h), and which positions the tile sees. */
#ifndef KERNELS_CUDA_ATTEND_TILE_H
#define KERNELS_CUDA_ATTEND_TILE_H

#include "kernels/cuda/attend.h"
#include "kernels/cuda/intrinsics.h"

struct tile {
        /* Its first pair among the run's; the number of its pairs. */
        uint32_t pair, pairs;
        /* Positions that at least one pair sees. */
        uint32_t first, last;
        /* Positions that all pairs see, if there are any. */
        uint32_t common_first, common_last;
};

DEVICE uint32_t first_visible(uint32_t own, uint32_t window)
{
        return window && own >= window ? own - window + 1 : 0;
}

DEVICE tile tile_of(const view_run *run, uint32_t number, uint32_t group, uint32_t window)
{
        uint32_t all = run->count * group, pair = number * ATTEND_PAIRS;
        uint32_t pairs = all - pair < ATTEND_PAIRS ? all - pair : ATTEND_PAIRS;
        uint32_t low = run->position + pair / group;
        uint32_t high = run->position + (pair + pairs - 1) / group;

        return { pair, pairs, first_visible(low, window), high, first_visible(high, window), low };
}

#endif
