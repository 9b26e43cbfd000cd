/*
 * The window pages of slots: which ones a sequence needs, and which are worth keeping behind it.
 *
 * A request may go on from the end of a prompt, as the next turn of a conversation does; from the
 * place where a sequence is when it ends or is preempted; and from the place up to which a text was
 * known when a request came that was different from there on.  So window pages that such a request
 * would see are useful, and are evicted after the others.
 */
#include "daemon/core/sched-state.h"

void sched_ref_windows(struct sched *sched, struct slot *slot)
{
        if (!sched->conf.prefix.window)
                return;
        slot->window_begin =
                prefix_window_begin(&sched->prefix, slot->block_count * BLOCK_POSITIONS);
        for (uint32_t i = slot->window_begin; i < slot->block_count; i++)
                prefix_ref_window(&sched->prefix, slot->blocks[i]);
        if (slot->tail != BLOCK_NONE)
                prefix_ref_window(&sched->prefix, slot->tail);
}

/* Does a row that comes after the first `count` blocks see this one? */
static bool is_seen_after(const struct sched *sched, uint32_t count, uint32_t index)
{
        return index < count &&
               index >= prefix_window_begin(&sched->prefix, count * BLOCK_POSITIONS);
}

/*
 * Finds the blocks of the index that are equal to the first `count` blocks of the slot, with window
 * pages or without.  Writes them to sched->probe.blocks and returns how many there are.
 */
static uint32_t find_equal(struct sched *sched, const struct slot *slot, uint32_t count)
{
        const struct sequence *sequence = &slot->request->sequence;
        struct prefix_reader reader = request_reader(slot->request);
        uint32_t positions = count * BLOCK_POSITIONS;
        struct prefix_hit hit;

        if (positions > sequence->token_count)
                positions = sequence->token_count;
        reader.needs_no_windows = true;
        prefix_find(&sched->prefix, &reader, sequence->tokens, positions, sched->probe.blocks,
                    &hit);
        return hit.whole_count;
}

/* Gives back the window page of a block; or, if `same` has no page, gives it to that block. */
static void pass(struct sched *sched, struct slot *slot, uint32_t index, block_t same)
{
        uint32_t read = slot->request->prompt_count / BLOCK_POSITIONS;
        block_t own = slot->blocks[index];
        bool useful = is_seen_after(sched, read, index) || is_seen_after(sched, slot->known, index);

        if (same == BLOCK_NONE || prefix_window(&sched->prefix, same) != WINDOW_NONE) {
                prefix_unref_window(&sched->prefix, own, useful);
                return;
        }
        prefix_ref(&sched->prefix, same);
        if (prefix_hand_window(&sched->prefix, own, same, true, slot_giver(slot))) {
                slot->gave_window = true;
                own = same;
        }
        prefix_unref_window(&sched->prefix, own, useful);
        prefix_unref(&sched->prefix, same);
}

void sched_pass_windows(struct sched *sched, struct slot *slot, uint32_t position)
{
        uint32_t begin = prefix_window_begin(&sched->prefix, position + 1), known = 0;
        const block_t *blocks = sched->probe.blocks;

        if (begin > slot->block_count)
                begin = slot->block_count;
        if (slot->window_begin < begin && slot->inserted < begin && !slot->invalid)
                known = find_equal(sched, slot, begin);
        for (; slot->window_begin < begin; slot->window_begin++) {
                uint32_t index = slot->window_begin;
                bool computed = index >= slot->inserted && index < known;

                pass(sched, slot, index, computed ? blocks[index] : BLOCK_NONE);
        }
}

void sched_unref_windows(struct sched *sched, struct slot *slot)
{
        if (!sched->conf.prefix.window)
                return;
        if (slot->tail != BLOCK_NONE)
                prefix_unref_window(&sched->prefix, slot->tail, true);
        for (uint32_t i = slot->block_count; i > slot->window_begin; i--)
                prefix_unref_window(&sched->prefix, slot->blocks[i - 1], true);
        slot->window_begin = slot->block_count;
}

void sched_unref_source(struct sched *sched, block_t block)
{
        if (sched->conf.prefix.window)
                prefix_unref_window(&sched->prefix, block, true);
        prefix_unref(&sched->prefix, block);
}
