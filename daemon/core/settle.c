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

/*
 * The first of its blocks that nobody publishes: what is published was read to its end by who
 * published it, and was numbers.
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
        /* Who has found one of them and is about to copy it would name it anew. */
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                struct slot *other = &sched->slots[i];

                if (other->request && other->tail != BLOCK_NONE &&
                    !sched->prefix.named[other->tail].filled)
                        other->spoilt = true;
        }
}

/* What it has read itself, or somebody who publishes it: not what another is still reading. */
static bool is_shown_by(const struct sched *sched, const struct slot *slot, uint32_t index,
                        block_t block)
{
        return block == slot->blocks[index] || sched->prefix.named[block].published;
}

static bool may_publish(const struct sched *sched, const struct slot *slot, const block_t *blocks,
                        const struct prefix_hit *hit)
{
        if (prefix_positions(hit) < slot->request->prompt_count)
                return false; /* all of it or nothing */
        for (uint32_t i = 0; i < hit->whole_count; i++)
                if (!is_shown_by(sched, slot, i, blocks[i]))
                        return false;
        return hit->tail == BLOCK_NONE || is_shown_by(sched, slot, hit->whole_count, hit->tail);
}

/*
 * What it has read may be another's, who named it first; so it is looked up.  And of what it
 * has named in public the names may be gone, with those of one who was before it and has given up.
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

/* What it has named in public, and has not published. */
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
