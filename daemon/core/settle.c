/*
 * What a sequence has in the pool, told to the index.
 *
 * A block may be named as soon as a plan has been made that fills it and its
 * tokens are known: plans run one after the other, so whoever finds it reads it
 * in a later one.  That is how a prompt is shared while its first owner still
 * runs.  The block that a decode writes into is named as far as it is known; who
 * finds it copies it.
 *
 * Two that begin alike in one plan compute the same twice, as neither can find
 * the other.  Whoever is named second takes the first one's block instead of his
 * own, so that the two go on as one and nothing is in the pool twice.
 */
#include "daemon/core/sched-state.h"

/* From now on this block is the slot's, and its own is free. */
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
 * Not if that takes a block that is promised: what is kept would be held, and one's
 * own not yet be free, because somebody copies from it.
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

void sched_spoil(struct sched *sched, struct slot *slot)
{
        slot->spoilt = true;
        if (!slot->block_count)
                return;
        prefix_spoil(&sched->prefix, slot->blocks[0]);
        /* Who has found one of them and is about to copy it would name it anew. */
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                struct slot *other = &sched->slots[i];

                if (other->request && other->tail != BLOCK_NONE &&
                    !sched->prefix.named[other->tail].filled)
                        other->spoilt = true;
        }
}

/* What it has read may be another's, who named it first; so it is looked up. */
void sched_anchor(struct sched *sched, struct slot *slot)
{
        struct request *request = slot->request;
        block_t *blocks = sched->probe.blocks, last;
        struct prefix_hit hit;

        sched_name(sched, slot, NULL);
        prefix_find(&sched->prefix, request_domain(request), request->sequence.tokens,
                    request->prompt_count, blocks, &hit);
        last = hit.whole_count ? blocks[hit.whole_count - 1] : BLOCK_NONE;
        if (hit.tail != BLOCK_NONE)
                last = hit.tail;
        prefix_anchor(&sched->prefix, request->anchor, last);
        request->anchored = last != BLOCK_NONE;
}

void sched_let_go(struct sched *sched, struct slot *slot)
{
        sched_name(sched, slot, NULL);
        if (slot->tail != BLOCK_NONE)
                prefix_drop(&sched->prefix, slot->tail);
        while (slot->block_count)
                prefix_drop(&sched->prefix, slot->blocks[--slot->block_count]);
        assert(sched->promised >= slot->promised);
        sched->promised -= slot->promised;
}
