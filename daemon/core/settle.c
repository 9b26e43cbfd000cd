/*
 * Reports to the index what the blocks of a sequence contain.
 *
 * A block may be named as soon as a plan has been made that fills it and its
 * tokens are known.  Plans run one after the other, so a request that finds the block reads it
 * in a later plan.  That is how a prompt is shared while its first owner still
 * runs.  The block that a decode writes to is named as far as its tokens are known; a request
 * that finds it copies it.
 *
 * Two requests that begin alike in one plan compute the same blocks twice, as neither can find
 * the blocks of the other.  The request whose block is named second takes the first one's block
 * instead of its own.  So both continue with the same block, and the pool has no duplicates.
 */
#include "daemon/core/sched-state.h"

/* Replaces a block of the slot by an equal one, and drops its own. */
static void take_instead(struct sched *sched, struct slot *slot, uint32_t index, block_t block,
                         struct plan *plan)
{
        assert(plan->page_count < plan->page_max);
        sched->moves_left--;
        prefix_hold(&sched->prefix, block);
        prefix_drop(&sched->prefix, slot->blocks[index]);
        slot->blocks[index] = block;
        plan->pages[plan->page_count++] = (struct plan_page){ .slot = slot->request->sequence.slot,
                                                              .index = index,
                                                              .block = block };
}

/*
 * Replacing is not allowed if it would use up a promised block.  That happens if the other block
 * is kept and would become held, while another sequence still holds the slot's own block to copy
 * from it.
 */
static bool may_take_instead(const struct sched *sched, block_t own, block_t other)
{
        const struct kvpool *pool = &sched->prefix.pool;

        return pool->holds[other] || pool->holds[own] == 1 ||
               prefix_left(&sched->prefix) > sched->promised;
}

void sched_name(struct sched *sched, struct slot *slot, struct plan *plan)
{
        const struct sequence *sequence = &slot->request->sequence;
        uint64_t domain = request_domain(slot->request);
        uint32_t known = slot->planned;

        if (!slot->moved || slot->spoilt)
                return;
        if (known > sequence->token_count)
                known = sequence->token_count;
        while (slot->named * BLOCK_POSITIONS < known) {
                uint32_t index = slot->named, begin = index * BLOCK_POSITIONS;
                uint32_t count = known - begin < BLOCK_POSITIONS ? known - begin : BLOCK_POSITIONS;
                block_t parent = index ? slot->blocks[index - 1] : BLOCK_NONE;
                block_t same = prefix_name(&sched->prefix, domain, parent, slot->blocks[index],
                                           sequence->tokens + begin, count);

                if (same != slot->blocks[index]) {
                        if (!plan || !sched->moves_left ||
                            !may_take_instead(sched, slot->blocks[index], same))
                                return;
                        take_instead(sched, slot, index, same, plan);
                }
                if (count < BLOCK_POSITIONS)
                        return;
                slot->named++;
        }
}

/*
 * The first of its blocks that is not published.  Published blocks are valid: the request that
 * published them was computed to its end, and its numbers were valid.
 */
static block_t first_unpublished(const struct sched *sched, const struct slot *slot)
{
        for (uint32_t i = 0; i < slot->block_count; i++)
                if (!sched->prefix.named[slot->blocks[i]].published)
                        return slot->blocks[i];
        return BLOCK_NONE;
}

void sched_spoil(struct sched *sched, struct slot *slot)
{
        block_t first = first_unpublished(sched, slot);

        slot->spoilt = true;
        if (first == BLOCK_NONE)
                return;
        prefix_spoil(&sched->prefix, first);
        /* A slot that has found one of them as a tail, and will copy it, would name it again. */
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                struct slot *other = &sched->slots[i];

                if (other->request && other->tail != BLOCK_NONE &&
                    !sched->prefix.named[other->tail].filled)
                        other->spoilt = true;
        }
}

/*
 * A publication may include blocks that the request itself has computed, or that are published
 * already, but no block that another request is still computing.
 */
static bool is_shown_by(const struct sched *sched, const struct slot *slot, uint32_t index,
                        block_t block)
{
        return block == slot->blocks[index] || sched->prefix.named[block].published;
}

static bool may_publish(const struct sched *sched, const struct slot *slot, const block_t *blocks,
                        const struct prefix_hit *hit)
{
        if (prefix_positions(hit) < slot->request->prompt_count)
                return false; /* the whole prompt or nothing */
        for (uint32_t i = 0; i < hit->whole_count; i++)
                if (!is_shown_by(sched, slot, i, blocks[i]))
                        return false;
        return hit->tail == BLOCK_NONE || is_shown_by(sched, slot, hit->whole_count, hit->tail);
}

/*
 * Another request may have named equal blocks first, so the prompt is looked up in the index.
 * A publishing request names its blocks again: the names may be gone, if they were below the names
 * of an earlier publication that was not completed.
 */
void sched_anchor(struct sched *sched, struct slot *slot)
{
        struct request *request = slot->request;
        const struct prefix_reader reader = request_reader(request);
        block_t *blocks = sched->probe.blocks, last;
        struct prefix_hit hit;

        if (request->publish)
                slot->named = 0;
        sched_name(sched, slot, NULL);
        prefix_find(&sched->prefix, &reader, request->sequence.tokens, request->prompt_count,
                    blocks, &hit);
        last = hit.whole_count ? blocks[hit.whole_count - 1] : BLOCK_NONE;
        if (hit.tail != BLOCK_NONE)
                last = hit.tail;
        request->anchored = last != BLOCK_NONE;
        if (!request->publish)
                prefix_anchor(&sched->prefix, request->anchor, last);
        else if (!may_publish(sched, slot, blocks, &hit))
                request->anchored = false;
        else
                prefix_publish(&sched->prefix, request->anchor, last);
}

/* Removes the names that it has given in a public domain without publishing them. */
static void take_names_back(struct sched *sched, struct slot *slot)
{
        block_t first = first_unpublished(sched, slot);

        if (first != BLOCK_NONE)
                prefix_spoil(&sched->prefix, first);
}

void sched_let_go(struct sched *sched, struct slot *slot)
{
        if (!slot->request->publish)
                sched_name(sched, slot, NULL);
        else if (!slot->request->anchored)
                take_names_back(sched, slot);
        if (slot->tail != BLOCK_NONE)
                prefix_drop(&sched->prefix, slot->tail);
        while (slot->block_count)
                prefix_drop(&sched->prefix, slot->blocks[--slot->block_count]);
        assert(sched->promised >= slot->promised);
        sched->promised -= slot->promised;
        share_redeem(&sched->shares, slot->request->uid, slot->promised);
}
