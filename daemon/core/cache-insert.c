/*
 * Inserts the computed blocks of a sequence into the prefix index.
 *
 * A block may be inserted as soon as a plan has been made that fills it and its tokens are known.
 * Plans run one after the other, so a request that finds the block reads it in a later plan.
 * That is how a prompt is shared while its first owner still runs.  The block that a decode writes
 * to is inserted as far as its tokens are known; a request that finds it copies it.
 *
 * Two requests that begin alike in one plan compute the same blocks twice, as neither can find
 * the blocks of the other.  The request whose block is inserted second takes the first one's block
 * instead of its own.  So both continue with the same block, and the pool has no duplicates.
 */
#include "daemon/core/sched-state.h"

#include <assert.h>

/*
 * Replaces a block of the slot by an equal one, and releases its own.  Returns false if the slot
 * needs the window page of its own block.  Without a plan no row reads the page table any more.
 */
static bool use_duplicate(struct sched *sched, struct slot *slot, uint32_t index, block_t block,
                          struct plan *plan)
{
        bool held = sched->conf.prefix.window && index >= slot->window_begin;

        prefix_ref(&sched->prefix, block);
        if (!prefix_hand_window(&sched->prefix, slot->blocks[index], block, held,
                                slot_giver(slot))) {
                prefix_unref(&sched->prefix, block);
                return false;
        }
        slot->gave_window |= held;
        prefix_unref(&sched->prefix, slot->blocks[index]);
        slot->blocks[index] = block;
        if (plan) {
                sched->pages_left--;
                sched_list_page(sched, plan, slot, index);
        }
        return true;
}

/*
 * Replacing is not allowed if it would use up a reserved block.  That happens if the other block
 * is cached and would be in use, while another sequence still references the slot's own block to
 * copy from it.
 */
static bool may_use_duplicate(const struct sched *sched, block_t own, block_t other)
{
        const struct kvpool *pool = &sched->prefix.pool;

        return pool->ref_counts[other] || pool->ref_counts[own] == 1 ||
               prefix_available(&sched->prefix) > sched->reserved;
}

enum duplicates { USE_NONE, LIST_IN_PLAN, USE_ALL };

static bool may_use_duplicates(const struct sched *sched, enum duplicates duplicates)
{
        return duplicates == USE_ALL || (duplicates == LIST_IN_PLAN && sched->pages_left);
}

static void insert(struct sched *sched, struct slot *slot, struct plan *plan,
                   enum duplicates duplicates)
{
        const struct sequence *sequence = &slot->request->sequence;
        uint64_t domain = request_domain(slot->request);
        uint32_t known = slot->planned;

        if (!slot->mapped || slot->invalid)
                return;
        if (known > sequence->token_count)
                known = sequence->token_count;
        while (slot->inserted * BLOCK_POSITIONS < known) {
                uint32_t index = slot->inserted, begin = index * BLOCK_POSITIONS;
                uint32_t count = known - begin < BLOCK_POSITIONS ? known - begin : BLOCK_POSITIONS;
                block_t parent = index ? slot->blocks[index - 1] : BLOCK_NONE;
                block_t same = prefix_insert(&sched->prefix, domain, parent, slot->blocks[index],
                                             sequence->tokens + begin, count);

                if (same != slot->blocks[index]) {
                        if (!may_use_duplicates(sched, duplicates) ||
                            !may_use_duplicate(sched, slot->blocks[index], same) ||
                            !use_duplicate(sched, slot, index, same, plan))
                                return;
                }
                if (count < BLOCK_POSITIONS)
                        return;
                slot->inserted++;
        }
}

void sched_insert(struct sched *sched, struct slot *slot, struct plan *plan)
{
        insert(sched, slot, plan, plan ? LIST_IN_PLAN : USE_NONE);
}

void sched_insert_last(struct sched *sched, struct slot *slot)
{
        assert(!slot->plans);
        insert(sched, slot, NULL, USE_ALL);
}

/*
 * The first of its blocks that is not published.  Published blocks are valid: the request that
 * published them was computed to its end, and its numbers were valid.
 */
static block_t first_unpublished(const struct sched *sched, const struct slot *slot)
{
        for (uint32_t i = 0; i < slot->block_count; i++)
                if (!sched->prefix.nodes[slot->blocks[i]].published)
                        return slot->blocks[i];
        return BLOCK_NONE;
}

/* Blocks that the slot has not computed may have got window pages of it. */
static void invalidate_windows(struct sched *sched, const struct slot *slot)
{
        for (block_t block = 0; block < sched->conf.blocks; block++)
                prefix_invalidate_window(&sched->prefix, block, slot_giver(slot));
}

void sched_invalidate(struct sched *sched, struct slot *slot)
{
        block_t first = first_unpublished(sched, slot);

        slot->invalid = true;
        if (slot->gave_window)
                invalidate_windows(sched, slot);
        if (first == BLOCK_NONE)
                return;
        prefix_invalidate(&sched->prefix, first);
        /* A slot that has found one of them as a tail, and will copy it, would insert it again. */
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                struct slot *other = &sched->slots[i];

                if (other->request && other->tail != BLOCK_NONE &&
                    !sched->prefix.nodes[other->tail].filled)
                        other->invalid = true;
        }
}

/*
 * A publication may include blocks that the request itself has computed, or that are published
 * already, but no block that another request is still computing.
 */
static bool may_publish_block(const struct sched *sched, const struct slot *slot, uint32_t index,
                              block_t block)
{
        return block == slot->blocks[index] || sched->prefix.nodes[block].published;
}

static bool may_publish(const struct sched *sched, const struct slot *slot, const block_t *blocks,
                        const struct prefix_hit *hit)
{
        if (prefix_hit_positions(hit) < slot->request->prompt_count)
                return false; /* the whole prompt or nothing */
        for (uint32_t i = 0; i < hit->whole_count; i++)
                if (!may_publish_block(sched, slot, i, blocks[i]))
                        return false;
        return hit->tail == BLOCK_NONE ||
               may_publish_block(sched, slot, hit->whole_count, hit->tail);
}

/*
 * Another request may have inserted equal blocks first, so the prompt is looked up in the index.
 * A publishing request inserts its blocks again: they may have left the index, if they were below
 * the blocks of an earlier publication that was not completed.
 */
void sched_pin(struct sched *sched, struct slot *slot)
{
        struct request *request = slot->request;
        struct prefix_reader reader = request_reader(request);
        block_t *blocks = sched->probe.blocks, last;
        struct prefix_hit hit;

        reader.needs_no_windows = true;
        if (request->publish)
                slot->inserted = 0;
        sched_insert(sched, slot, NULL);
        prefix_find(&sched->prefix, &reader, request->sequence.tokens, request->prompt_count,
                    blocks, &hit);
        last = hit.whole_count ? blocks[hit.whole_count - 1] : BLOCK_NONE;
        if (hit.tail != BLOCK_NONE)
                last = hit.tail;
        request->pinned = last != BLOCK_NONE;
        if (!request->publish)
                prefix_set_pin(&sched->prefix, request->pin, last);
        else if (!may_publish(sched, slot, blocks, &hit))
                request->pinned = false;
        else
                prefix_publish(&sched->prefix, request->pin, last);
}

/* Removes the blocks that it has inserted in a public domain without publishing them. */
static void remove_unpublished(struct sched *sched, struct slot *slot)
{
        block_t first = first_unpublished(sched, slot);

        if (first != BLOCK_NONE)
                prefix_invalidate(&sched->prefix, first);
}

void sched_release(struct sched *sched, struct slot *slot)
{
        if (!slot->request->publish)
                sched_insert_last(sched, slot);
        else if (!slot->request->pinned)
                remove_unpublished(sched, slot);
        sched_unref_windows(sched, slot);
        if (slot->tail != BLOCK_NONE)
                prefix_unref(&sched->prefix, slot->tail);
        while (slot->block_count)
                prefix_unref(&sched->prefix, slot->blocks[--slot->block_count]);
        assert(sched->reserved >= slot->reserved);
        sched->reserved -= slot->reserved;
        fair_share_release(&sched->fair_share, slot->request->uid, slot->reserved);
}
