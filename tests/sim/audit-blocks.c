/*
 * The auditor of blocks: which request owns each block, which requests read it, and which write
 * it?
 *
 * For each block it counts the page tables that contain it, and notes the domain for which it
 * was taken.  A block that is found must contain what its request would have computed itself; if a
 * row reads anything else, sim.c finds that when the row runs.
 */
#include "tests/sim/sim.h"

/* Is a block, at this place of its owner's page table, to be written by this plan? */
static bool is_written(const struct sim *sim, const struct plan_page *page)
{
        for (uint32_t i = 0; i < sim->plan.row_count; i++) {
                const struct plan_row *row = &sim->plan.rows[i];

                if (row->slot == page->slot && row->write &&
                    row->position / BLOCK_POSITIONS == page->index)
                        return true;
        }
        return false;
}

static const struct plan_copy *copy_to(const struct sim *sim, block_t block)
{
        for (uint32_t i = 0; i < sim->plan.copy_count; i++)
                if (sim->plan.copies[i].to == block)
                        return &sim->plan.copies[i];
        return NULL;
}

bool audit_page_is_found(const struct sim *sim, const struct plan_page *page)
{
        return !is_written(sim, page) && !copy_to(sim, page->block);
}

bool audit_is_copied(const struct sim *sim, block_t block)
{
        for (uint32_t i = 0; i < sim->flight_count; i++)
                if (sim->flights[i].number == sim->block_copied[block])
                        return true;
        return false;
}

/* True for a copy of this plan or of one in flight: a write to the block may come too early. */
static bool is_copied(const struct sim *sim, block_t block)
{
        for (uint32_t i = 0; i < sim->plan.copy_count; i++)
                if (sim->plan.copies[i].from == block)
                        return true;
        return audit_is_copied(sim, block);
}

/* A block to write: no request has it, and it is the next one of its owner. */
static void audit_new_page(struct sim *sim, struct sim_request *owner, const struct plan_page *page)
{
        sim_must(sim, !sim->block_table_count[page->block], "block %u for %s is somebody's",
                 page->block, owner->name);
        sim_must(sim, !is_copied(sim, page->block), "block %u for %s is still to be copied",
                 page->block, owner->name);
        sim_must(sim, page->index == owner->block_count, "page %u of %s, which has %u", page->index,
                 owner->name, owner->block_count);
        sim->block_invalid[page->block] = SIM_NEVER;
        sim->block_shown[page->block] = SIM_NEVER;
        sim->block_domain[page->block] = sim_domain(owner);
        audit_swap_written(sim, owner, page->block, page->index);
}

void audit_invalidate(struct sim *sim, const struct sim_request *request)
{
        uint32_t i = 0;

        audit_swap_invalidate(sim, request);
        audit_windows_invalidate(sim, request);
        /* Published blocks hold valid numbers, whichever request found them. */
        while (i < request->block_count && audit_is_published(sim, request, request->blocks[i], i))
                i++;
        for (; i < request->block_count; i++)
                if (sim->block_invalid[request->blocks[i]] == SIM_NEVER)
                        sim->block_invalid[request->blocks[i]] = sim->turns;
}

/*
 * A request that read its prompt to the end and got finite numbers has shown that all its
 * blocks hold finite numbers, even if another request failed on them.  So they may be
 * published.
 */
void audit_sound(struct sim *sim, const struct sim_request *request)
{
        audit_windows_sound(sim, request);
        for (uint32_t i = 0; i < request->block_count; i++) {
                block_t block = request->blocks[i];

                sim->block_invalid[block] = SIM_NEVER;
                if (sim->block_shown[block] == SIM_NEVER)
                        sim->block_shown[block] = sim->step_count;
        }
}

/*
 * A request that was admitted earlier may have found the block earlier.  It holds the block then,
 * and the page is reported later.
 */
static void audit_valid(struct sim *sim, const struct sim_request *owner, block_t block)
{
        sim_must(sim, owner->turn < sim->block_invalid[block],
                 "%s is served from block %u, which is invalid", owner->name, block);
}

/* A block that is found is whole, and is what its request would compute itself. */
static void audit_content(struct sim *sim, const struct sim_request *owner,
                          const struct plan_page *page)
{
        for (uint32_t i = 0; i < BLOCK_POSITIONS; i++) {
                uint32_t at = page->index * BLOCK_POSITIONS + i;

                sim_must(sim,
                         at < sim->conf.context &&
                                 sim->cells[page->block * BLOCK_POSITIONS + i] == owner->chain[at],
                         "block %u is given to %s, and contains something else at %u", page->block,
                         owner->name, at);
        }
        if (!prefix_is_public(sim->block_domain[page->block]) &&
            owner->turn >= sim->contents[page->block].doubted)
                sim->contents[page->block].indexed = true;
}

/*
 * A block to read: it belongs to the same user, or is public.  Its contents are checked when
 * they are read.  Either its owner begins with it, or it replaces a block that no other request
 * has.
 */
static void audit_found_page(struct sim *sim, struct sim_request *owner,
                             const struct plan_page *page)
{
        audit_valid(sim, owner, page->block);
        audit_content(sim, owner, page);
        sim_must(sim, audit_may_see(sim, owner, page->block, page->index),
                 "block %u of domain %llx is shown to %s of %llu", page->block,
                 (unsigned long long)sim->block_domain[page->block], owner->name,
                 (unsigned long long)owner->uid);
        sim->found_public += sim->block_domain[page->block] != sim_domain(owner);
        if (page->index < owner->block_count) {
                block_t mine = owner->blocks[page->index];

                sim_must(sim, owner->moved && sim->block_table_count[mine] == 1,
                         "block %u of %s is taken away", mine, owner->name);
                sim_must(sim, mine != page->block, "%s is given block %u, which it has",
                         owner->name, page->block);
                sim->block_table_count[mine]--;
                sim->swaps++;
                return;
        }
        sim_must(sim, !owner->moved && page->index == owner->block_count,
                 "page %u of %s is found, which has %u", page->index, owner->name,
                 owner->block_count);
}

/*
 * A found block is of the same user, or public, and pages come in order.  A block that is
 * written is in a single page table.
 */
void audit_pages(struct sim *sim)
{
        const struct plan *plan = &sim->plan;
        bool shared = false;

        for (uint32_t i = 0; i < plan->page_count; i++) {
                const struct plan_page *page = &plan->pages[i];
                struct sim_request *owner;

                sim_must(sim, page->slot < sim->conf.slots && sim->slot_owner[page->slot],
                         "a page for slot %u, which nobody has", page->slot);
                owner = sim->slot_owner[page->slot];
                sim_must(sim, page->block < sim->conf.blocks, "there is no block %u", page->block);
                sim_must(sim, page->index < owner->promised, "page %u of %s, which was promised %u",
                         page->index, owner->name, owner->promised);
                if (audit_page_is_found(sim, page))
                        audit_found_page(sim, owner, page);
                else
                        audit_new_page(sim, owner, page);
                sim->block_table_count[page->block]++;
                owner->blocks[page->index] = page->block;
                if (page->index == owner->block_count)
                        owner->block_count++;
        }
        for (block_t block = 0; block < sim->conf.blocks; block++)
                shared |= sim->block_table_count[block] > 1;
        sim->steps_shared += shared;
}

static const struct plan_page *page_of(const struct sim *sim, block_t block)
{
        for (uint32_t i = 0; i < sim->plan.page_count; i++)
                if (sim->plan.pages[i].block == block)
                        return &sim->plan.pages[i];
        return NULL;
}

/* A copy is of what its owner may see, into a block that is new in this plan. */
void audit_copies(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->plan.copy_count; i++) {
                const struct plan_copy *copy = &sim->plan.copies[i];
                const struct plan_page *page = page_of(sim, copy->to);

                if (page) {
                        audit_valid(sim, sim->slot_owner[page->slot], copy->from);
                        sim->block_invalid[copy->to] = sim->block_invalid[copy->from];
                }
                sim_must(sim, page && sim->block_table_count[copy->to] == 1,
                         "a copy into block %u, which is not new", copy->to);
                sim_must(sim, copy->from < sim->conf.blocks && copy->from != copy->to,
                         "a copy of block %u", copy->from);
                sim_must(sim,
                         audit_may_see(sim, sim->slot_owner[page->slot], copy->from, page->index),
                         "block %u of domain %llx is copied for %s", copy->from,
                         (unsigned long long)sim->block_domain[copy->from],
                         sim->slot_owner[page->slot]->name);
                sim->found_public += sim->block_domain[copy->from] != sim->block_domain[copy->to];
                for (uint32_t j = 0; j < sim->plan.copy_count; j++)
                        sim_must(sim,
                                 j == i || (sim->plan.copies[j].to != copy->from &&
                                            sim->plan.copies[j].to != copy->to),
                                 "copies of block %u depend on each other", copy->from);
                sim->block_copied[copy->from] = sim->plan.number;
                sim->copies++;
        }
}

/*
 * Blocks in page tables are held.  So are blocks that were found for a request without a row so
 * far, and blocks that a plan in flight copies; these two cannot be seen here.
 */
void audit_blocks(struct sim *sim, const struct sched_counts *counts)
{
        uint32_t held = 0, promised = 0, listed = 0, hidden = 0;

        for (block_t block = 0; block < sim->conf.blocks; block++)
                held += sim->block_table_count[block] > 0;
        hidden += sim->plan.copy_count;
        for (uint32_t i = 0; i < sim->flight_count; i++)
                hidden += sim->flights[i].copy_count;
        each_request(sim, r)
        {
                if (!r->admitted)
                        continue;
                promised += r->promised;
                listed += r->block_count;
                if (!r->moved && (sim->shares || r->preemptions))
                        hidden += blocks_for(r->known);
        }
        sim_must(sim, counts->blocks_total == sim->conf.blocks, "the pool has another size");
        sim_must(sim,
                 counts->blocks_free + counts->blocks_cached + counts->blocks_in_use ==
                         counts->blocks_total,
                 "free, kept and held are not all");
        sim_must(sim, counts->blocks_in_use >= held && counts->blocks_in_use <= held + hidden,
                 "%u blocks are held, it says %u", held, counts->blocks_in_use);
        sim_must(sim,
                 counts->blocks_reserved <= promised - listed &&
                         counts->blocks_reserved + hidden >= promised - listed,
                 "%u are promised, it says %u", promised - listed, counts->blocks_reserved);
        sim_must(sim, counts->blocks_reserved <= counts->blocks_free + counts->blocks_cached,
                 "%u are promised, and not so many are there", counts->blocks_reserved);
}
