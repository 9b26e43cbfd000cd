/*
 * Brings blocks back from the swap.
 *
 * A request that finds blocks in the swap is promised as many blocks of the pool, and awaits them
 * (slot.swapped).  Meanwhile they may leave the swap: they are dropped for others, or another
 * request brings them to the pool.  So they are looked up again when they are to come.
 */
#include "daemon/core/sched-state.h"

#include <string.h>

/* Until a prompt row is measured, computing counts as slow. */
bool sched_may_swap(const struct sched *sched)
{
        uint64_t row_ns = sched->prefill_budget.row_ns;

        return !row_ns || sched->conf.swap_copy_ns <= row_ns * BLOCK_POSITIONS / 2;
}

/* The next block of the page table takes the place of one that was promised. */
static void add_block(struct sched *sched, struct plan *plan, struct slot *slot, block_t block)
{
        uint32_t last = slot->request->sequence.token_count - 1;

        sched_take_reserved(sched, slot);
        slot->blocks[slot->block_count] = block;
        sched_list_page(sched, plan, slot, slot->block_count);
        slot->inserted = ++slot->block_count;
        slot->cached = slot->block_count * BLOCK_POSITIONS;
        slot->planned = slot->cached < last ? slot->cached : last;
        slot->fetched++;
}

/* The positions from `from` on came back from the swap.  Those that had rows before the request was
 * preempted count. */
static void count_restored(struct sched *sched, struct request *request, uint32_t from, uint32_t to)
{
        if (to > request->computed)
                to = request->computed;
        if (!request->preemptions || to <= from)
                return;
        request->restored += to - from;
        sched->restored += to - from;
}

/* Looks up where its blocks are now.  Returns how many follow those that it has. */
static uint32_t look_up(const struct sched *sched, const struct slot *slot)
{
        const struct request *request = slot->request;
        const struct prefix_reader reader = request_reader(request);
        block_t *blocks = sched->probe.blocks;
        struct prefix_hit hit;
        uint32_t count;

        prefix_find(&sched->prefix, &reader, request->sequence.tokens, request_findable(request),
                    blocks, &hit);
        count = hit.whole_count + hit.swap_count;
        if (count <= slot->block_count ||
            memcmp(blocks, slot->blocks, slot->block_count * sizeof(*blocks)))
                return 0;
        return count - slot->block_count;
}

/* The next block, now in the pool and referenced; or BLOCK_NONE if it is there no more.  Another
 * request may have brought or computed it; otherwise it moves now. */
static block_t fetch_next(struct sched *sched, const struct slot *slot, bool *ret_moves)
{
        const struct request *request = slot->request;
        uint32_t index = slot->block_count;
        block_t block = sched->probe.blocks[index];
        block_t parent = index ? slot->blocks[index - 1] : BLOCK_NONE;

        *ret_moves = false;
        if (block < sched->conf.blocks) {
                prefix_ref(&sched->prefix, block);
                return block;
        }
        /* One that came before may have pushed it out of the swap. */
        if (!prefix_is_swapped(&sched->prefix, request_domain(request), block, parent,
                               request->sequence.tokens + index * BLOCK_POSITIONS))
                return BLOCK_NONE;
        *ret_moves = true;
        return prefix_fetch(&sched->prefix, block);
}

uint32_t sched_fetch(struct sched *sched, struct plan *plan, struct slot *slot, uint32_t count)
{
        uint32_t there = sched_may_swap(sched) ? look_up(sched, slot) : 0;
        uint32_t had = slot->block_count;

        assert(slot->mapped && count <= slot->swapped);
        for (; count; count--) {
                uint32_t from = slot->planned;
                bool moves = false;
                block_t block = there ? fetch_next(sched, slot, &moves) : BLOCK_NONE;

                if (block == BLOCK_NONE) {
                        slot->swapped = 0;
                        break;
                }
                add_block(sched, plan, slot, block);
                slot->swapped--;
                there--;
                if (moves)
                        count_restored(sched, slot->request, from, slot->planned);
        }
        if (!slot->request->preemptions)
                slot->request->sequence.cached_count = slot->planned;
        return slot->block_count - had;
}
