/* Makes the list of a step's attention items: one small kernel before its layers (attend.h). */
#include "kernels/cuda/attend-tile.h"

#define PLAN_THREADS 256u
#define PLAN_WARPS   (PLAN_THREADS / LANES)

struct plan_job {
        const step_counts *counts;
        const view_run *runs;
        attend_list *list;
        uint32_t group, places, window, blocks, cuts_max, rows_below;
};

/*
 * Returns the sum of `mine` over the threads before this one; *ret_all gets the sum over all
 * threads.  `warps` is shared memory that all threads use.
 */
DEVICE uint32_t sum_before(uint32_t mine, uint32_t *warps, uint32_t *ret_all)
{
        unsigned lane = lane_number(), warp = threadIdx.x / LANES;
        uint32_t sum = mine, before = 0, all = 0;

        for (unsigned step = 1; step < LANES; step *= 2) {
                uint32_t other = shuffle_from(sum, lane >= step ? lane - step : lane);

                if (lane >= step)
                        sum += other;
        }
        if (lane == LANES - 1)
                warps[warp] = sum;
        block_sync();
        for (unsigned w = 0; w < PLAN_WARPS; w++) {
                if (w < warp)
                        before += warps[w];
                all += warps[w];
        }
        block_sync();
        *ret_all = all;
        return before + sum - mine;
}

/* The last run whose first tile is not after `tile`. */
DEVICE uint32_t run_of(const uint32_t *first_tiles, uint32_t runs, uint32_t tile)
{
        uint32_t low = 0, high = runs;

        while (high - low > 1) {
                uint32_t middle = (low + high) / 2;

                if (first_tiles[middle] <= tile)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

/*
 * The item of tile `number` among all tiles, not yet cut.  begin == end: there is no such tile.
 */
DEVICE attend_item whole_item(const plan_job *a, const uint32_t *first_tiles, uint32_t tiles,
                              uint32_t number)
{
        attend_item item = {};
        uint32_t run;
        tile tile;

        if (number >= tiles)
                return item;
        run = run_of(first_tiles, a->counts->runs, number);
        item.run = a->runs[run];
        item.tile = number - first_tiles[run];
        item.part = ATTEND_WHOLE;
        tile = tile_of(&item.run, item.tile, a->group, a->window);
        item.begin = tile.first / ATTEND_SPLIT;
        item.end = tile.last / ATTEND_SPLIT + 1;
        return item;
}

DEVICE void put_items(attend_item *to, attend_item item)
{
        uint32_t end = item.end;

        if (item.part == ATTEND_WHOLE) {
                *to = item;
                return;
        }
        for (; item.begin < end; item.begin++) {
                item.end = item.begin + 1;
                *to++ = item;
        }
}

/* Runs as one block, because the place of an item depends on all items before it. */
KERNEL(PLAN_THREADS) make_list(plan_job a)
{
        uint32_t *warps = (uint32_t *)shared(), *first_tiles = warps + PLAN_WARPS;
        uint32_t tiles = 0, splits = 0, wanted = 0, count = 0, some, runs, whole_max;

        wait_for_predecessor();
        runs = a.counts->runs;
        for (uint32_t base = 0; base < runs; base += PLAN_THREADS) {
                uint32_t i = base + threadIdx.x;
                uint32_t rows = i < runs ? a.runs[i].count : 0;
                uint32_t pairs = !a.rows_below || rows < a.rows_below ? rows * a.group : 0;
                uint32_t before =
                        sum_before((pairs + ATTEND_PAIRS - 1) / ATTEND_PAIRS, warps, &some);

                if (i < runs)
                        first_tiles[i] = tiles + before;
                tiles += some;
        }
        block_sync();
        for (uint32_t i = threadIdx.x; i < tiles; i += PLAN_THREADS) {
                const attend_item item = whole_item(&a, first_tiles, tiles, i);

                splits += item.end - item.begin;
        }
        sum_before(splits, warps, &some);
        /*
         * Half of a block's average work.  So at most that much work can be left over at the end.
         */
        whole_max = (uint32_t)((uint64_t)some * a.places / (2 * a.blocks));
        for (uint32_t base = 0; base < tiles; base += PLAN_THREADS) {
                attend_item item = whole_item(&a, first_tiles, tiles, base + threadIdx.x);
                uint32_t n = item.end - item.begin, wants = n > 1 && n > whole_max ? n : 0;
                uint32_t part = wanted + sum_before(wants, warps, &some), before;

                wanted += some;
                if (wants && part <= a.cuts_max && n <= a.cuts_max - part)
                        item.part = part;
                before = sum_before(!n ? 0 : item.part == ATTEND_WHOLE ? 1 : n, warps, &some);
                if (n)
                        put_items(&a.list->items[count + before], item);
                count += some;
        }
        if (!threadIdx.x)
                a.list->count = count;
}

int attend_plan(device *device, const step_view *view, const attend_scratch *scratch)
{
        const uint32_t places = scratch->kv_heads * attend_shares(scratch->head_dim);
        const plan_job job = { view->counts,
                               view->runs,
                               scratch->list,
                               scratch->heads / scratch->kv_heads,
                               places,
                               scratch->window,
                               scratch->blocks,
                               scratch->cuts_max,
                               scratch->rows_below };
        size_t shared = ((size_t)PLAN_WARPS + view->rows_max) * sizeof(uint32_t);

        return device_launch(device, STREAM_STEPS, { 1, 1, 1, PLAN_THREADS, shared, true },
                             make_list, job);
}
