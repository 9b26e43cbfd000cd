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

void sched_pass_windows(struct sched *sched, struct slot *slot, uint32_t position)
{
        uint32_t begin = prefix_window_begin(&sched->prefix, position + 1);
        uint32_t read = slot->request->prompt_count / BLOCK_POSITIONS;

        for (; slot->window_begin < begin && slot->window_begin < slot->block_count;
             slot->window_begin++) {
                uint32_t index = slot->window_begin;

                prefix_unref_window(&sched->prefix, slot->blocks[index],
                                    is_seen_after(sched, read, index) ||
                                            is_seen_after(sched, slot->known, index));
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
