/*
 * The auditor of the swap: which blocks move to the host's memory and back, what do they contain,
 * and what is said about it?
 *
 * It plays the device: it carries out the moves, one after the other, before anything else of the
 * plan.  A block that is moved takes along what the auditor knows of it: the KV of its positions,
 * its domain, since when it is public, and since when it is invalid.  The block that it leaves is
 * empty.  So if the scheduler takes a wrong block, the request that gets it reads something else
 * than it would compute itself.
 *
 * Of each block the auditor also knows the text before it, as the KV at the end of each block of
 * that text.  A block that some request found was surely in the index then.  It stays there until
 * it is evicted, or until something happens to its text: rows of the text are not valid, it is no
 * longer public, or a request computes it again.  As long as none of these may have happened, the
 * block must move to the swap when its place in the pool is given away, and there it must count as
 * used until it is fetched, or until the swap is full.
 */
#include "tests/sim/sim.h"

#include <string.h>

uint32_t sim_places(const struct sim *sim)
{
        return sim->conf.blocks + sim->conf.prefix.swap_blocks;
}

static uint64_t *line_of(const struct sim *sim, block_t place)
{
        return sim->lines + (size_t)place * sim->table_blocks;
}

static bool is_swap(const struct sim *sim, block_t place)
{
        return place >= sim->conf.blocks;
}

/* Does it contain this text's block `index`, or a block of a text that begins with it? */
static bool is_of_text(const struct sim *sim, block_t place, const uint64_t *chain, uint32_t index)
{
        return sim->contents[place].full && sim->contents[place].index >= index &&
               line_of(sim, place)[index] == chain[(index + 1) * BLOCK_POSITIONS - 1];
}

void audit_swap_forget(struct sim *sim, const uint64_t *chain, uint32_t count)
{
        for (block_t place = 0; place < sim_places(sim) && count >= BLOCK_POSITIONS; place++)
                if (is_of_text(sim, place, chain, 0)) {
                        sim->contents[place].indexed = false;
                        sim->contents[place].doubted = sim->turns;
                }
}

void audit_swap_invalidate(struct sim *sim, const struct sim_request *request)
{
        block_t first = request->block_count ? request->blocks[0] : BLOCK_NONE;
        uint32_t count = request->core.prompt_count + request->core.max_tokens;

        if (first == BLOCK_NONE || count < BLOCK_POSITIONS)
                return;
        /* It is in the index, so this takes along all that follows it there. */
        for (block_t place = sim->conf.blocks;
             place < sim_places(sim) && sim->contents[first].indexed &&
             sim->block_domain[first] == request->uid;
             place++)
                if (is_of_text(sim, place, request->chain, 0) &&
                    sim->block_domain[place] == request->uid &&
                    sim->block_invalid[place] == SIM_NEVER)
                        sim->block_invalid[place] = sim->turns;
        audit_swap_forget(sim, request->chain, count);
}

/* The time of the rows that would compute a block, compared with that of two copies of it. */
static enum { CHEAPER, OPEN, DEARER } price(const struct sim *sim)
{
        uint64_t copies = 2 * sim->conf.swap_copy_ns, rows;
        struct sched_counts counts;

        if (!copies)
                return CHEAPER;
        sched_count(sim->sched, &counts);
        rows = BLOCK_POSITIONS * counts.prompt_row_ns;
        if (!rows)
                return OPEN;
        if (copies <= rows)
                return CHEAPER;
        rows += BLOCK_POSITIONS * (counts.prompt_far_ns * sim->conf.context / 1024 + 1);
        return copies > rows ? DEARER : OPEN;
}

/* Plans with decodes may have to go without some moves. */
static bool has_all_moves(struct sim *sim)
{
        const struct plan *plan = &sim->plan;

        for (uint32_t i = 0; i < plan->row_count; i++)
                if (plan->rows[i].position + 1 >=
                    sim_of(sim, plan->rows[i].sequence->request)->known)
                        return !sim->conf.token_gap_ns &&
                               plan->row_count + plan->move_count < sim->conf.rows;
        return true;
}

void audit_swap_given_away(struct sim *sim, block_t block)
{
        bool must_move = sim->contents[block].indexed && sim->conf.prefix.swap_blocks > 1 &&
                         price(sim) == CHEAPER && has_all_moves(sim);

        sim_must(sim, !must_move, "block %u is given away, and not moved to the swap", block);
        /* All blocks below it in the swap are dropped. */
        for (block_t place = sim->conf.blocks; place < sim_places(sim) && sim->contents[block].full;
             place++)
                sim->contents[place].indexed = false;
        sim->contents[block] = (struct sim_content){ 0 };
}

void audit_swap_written(struct sim *sim, const struct sim_request *owner, block_t block,
                        uint32_t index)
{
        uint32_t count = owner->core.prompt_count + owner->core.max_tokens;
        uint64_t *line = line_of(sim, block);

        audit_swap_given_away(sim, block);
        if ((index + 1) * BLOCK_POSITIONS > count)
                return; /* it will never be whole */
        for (uint32_t i = 0; i <= index; i++)
                line[i] = owner->chain[(i + 1) * BLOCK_POSITIONS - 1];
        sim->contents[block].full = true;
        sim->contents[block].index = index;
        /* A block of the swap with the same content leaves the index for this one. */
        for (block_t place = sim->conf.blocks; place < sim_places(sim); place++)
                if (is_of_text(sim, place, owner->chain, index))
                        sim->contents[place].indexed = false;
}

/* The block of this plan's page, before any move of this plan. */
block_t audit_moved_from(const struct sim *sim, block_t block)
{
        for (uint32_t i = sim->plan.move_count; i--;)
                if (sim->plan.moves[i].to == block)
                        block = sim->plan.moves[i].from;
        return block;
}

bool audit_is_fetched(const struct sim *sim, block_t block)
{
        for (uint32_t i = 0; i < sim->plan.move_count; i++)
                if (sim->plan.moves[i].to == block)
                        return true;
        return false;
}

uint32_t audit_came_for_others(const struct sim *sim, const struct sim_request *request)
{
        return (uint32_t)(sim->swapped_in - request->came_since) - request->came;
}

static uint32_t count_full(const struct sim *sim)
{
        uint32_t count = 0;

        for (block_t place = sim->conf.blocks; place < sim_places(sim); place++)
                count += sim->contents[place].full;
        return count;
}

static bool has_page(const struct sim *sim, block_t block)
{
        for (uint32_t i = 0; i < sim->plan.page_count; i++)
                if (sim->plan.pages[i].block == block)
                        return true;
        return false;
}

/* Is it in a page table, unless this plan replaces it there? */
static bool is_somebodys(const struct sim *sim, block_t block)
{
        uint32_t count = sim->block_table_count[block];

        for (uint32_t i = 0; i < sim->plan.page_count; i++) {
                const struct plan_page *page = &sim->plan.pages[i];
                const struct sim_request *owner =
                        page->slot < sim->conf.slots ? sim->slot_owner[page->slot] : NULL;

                count -= owner && page->index < owner->block_count &&
                         owner->blocks[page->index] == block;
        }
        return count;
}

/* No request has it, it is whole, and another block gets its place. */
static void audit_out(struct sim *sim, const struct block_move *move)
{
        const uint64_t *cells = &sim->cells[move->from * BLOCK_POSITIONS];

        sim_must(sim, !is_somebodys(sim, move->from), "block %u is somebody's, and moves out",
                 move->from);
        sim_must(sim, !audit_is_copied(sim, move->from), "block %u is to be copied, and moves out",
                 move->from);
        sim_must(sim, sim->contents[move->from].full, "block %u is not whole, and moves out",
                 move->from);
        for (uint32_t i = 0; i < BLOCK_POSITIONS; i++)
                sim_must(sim, cells[i], "block %u moves out, and %u of it is not computed",
                         move->from, i);
        sim_must(sim,
                 cells[BLOCK_POSITIONS - 1] ==
                         line_of(sim, move->from)[sim->contents[move->from].index],
                 "block %u moves out, and is not the text of its request", move->from);
        sim_must(sim, sim->block_invalid[move->from] == SIM_NEVER,
                 "block %u is invalid, and moves out", move->from);
        sim_must(sim, has_page(sim, move->from), "block %u moves out, and nobody gets its place",
                 move->from);
        if (sim->contents[move->to].full) {
                sim_must(sim,
                         !sim->contents[move->to].indexed ||
                                 count_full(sim) == sim->conf.prefix.swap_blocks,
                         "block %u of the swap is dropped, and another one is free", move->to);
                sim->swap_dropped++;
        }
        sim->contents[move->from].indexed = true; /* else it could not be evicted */
        sim->swapped_out++;
}

static struct sim_request *owner_of_page(struct sim *sim, block_t block, uint32_t *ret_index)
{
        struct sim_request *owner = NULL;

        for (uint32_t i = 0; i < sim->plan.page_count; i++) {
                const struct plan_page *page = &sim->plan.pages[i];

                if (page->block != block || page->slot >= sim->conf.slots)
                        continue;
                if (!owner || page->index >= owner->block_count)
                        owner = sim->slot_owner[page->slot];
                *ret_index = page->index;
        }
        return owner;
}

/* Has the pool, or will it have, a block with the content of this one of the swap? */
static bool is_written_again(const struct sim *sim, block_t place)
{
        uint32_t index = sim->contents[place].index;

        for (block_t block = 0; block < sim->conf.blocks; block++)
                if (sim->contents[block].full && sim->contents[block].index >= index &&
                    line_of(sim, block)[index] == line_of(sim, place)[index])
                        return true;
        return false;
}

/* The positions of block `index` that are before this one. */
static uint32_t part_before(uint32_t index, uint32_t position)
{
        uint32_t begin = index * BLOCK_POSITIONS;

        if (position <= begin)
                return 0;
        return position - begin < BLOCK_POSITIONS ? position - begin : BLOCK_POSITIONS;
}

/* It goes into a block that nobody has, and that a request gets which writes nothing there. */
static void audit_in(struct sim *sim, const struct block_move *move)
{
        uint32_t index = 0;
        struct sim_request *owner = owner_of_page(sim, move->to, &index);

        sim_must(sim, sim->contents[move->from].full, "block %u of the swap is empty, and moves in",
                 move->from);
        sim_must(sim, sim->block_invalid[move->from] == SIM_NEVER,
                 "block %u of the swap is invalid, and moves in", move->from);
        sim_must(sim, !is_somebodys(sim, move->to) && !audit_is_copied(sim, move->to),
                 "block %u is somebody's, and is overwritten from the swap", move->to);
        sim_must(sim, owner, "block %u comes from the swap, and nobody gets it", move->to);
        sim_must(sim, index == sim->contents[move->from].index,
                 "block %u of %s comes from the swap, where it was number %u", index, owner->name,
                 sim->contents[move->from].index);
        for (uint32_t i = 0; i < sim->plan.row_count; i++) {
                const struct plan_row *row = &sim->plan.rows[i];

                sim_must(sim,
                         !row->write || row->slot != owner->slot ||
                                 row->position / BLOCK_POSITIONS != index,
                         "%s writes at %u, and that came from the swap", owner->name,
                         row->position);
        }
        audit_swap_given_away(sim, move->to);
        owner->fetched++;
        owner->came++;
        if (owner->preemptions) {
                owner->restored += part_before(index, owner->computed);
                owner->restored_most += part_before(index, owner->computed_most);
        }
        sim->contents[move->from].indexed = true; /* it was found */
        sim->swapped_in++;
}

static void carry_out(struct sim *sim, const struct block_move *move)
{
        uint64_t *to = &sim->cells[move->to * BLOCK_POSITIONS],
                 *from = &sim->cells[move->from * BLOCK_POSITIONS];

        memcpy(to, from, BLOCK_POSITIONS * sizeof(*to));
        memset(from, 0, BLOCK_POSITIONS * sizeof(*from));
        memcpy(line_of(sim, move->to), line_of(sim, move->from),
               sim->table_blocks * sizeof(*sim->lines));
        sim->contents[move->to] = sim->contents[move->from];
        sim->contents[move->from] = (struct sim_content){ 0 };
        sim->block_domain[move->to] = sim->block_domain[move->from];
        sim->block_domain[move->from] = SIM_NO_DOMAIN;
        sim->block_invalid[move->to] = sim->block_invalid[move->from];
        sim->block_shown[move->to] = sim->block_shown[move->from];
        sim->block_copied[move->to] = 0;
}

/* Of a plan with decodes, moves to the pool and rows of prompts share what prompts may have. */
static void audit_move_count(struct sim *sim)
{
        const struct plan *plan = &sim->plan;
        uint32_t in = 0;
        bool decodes = false;

        for (uint32_t i = 0; i < plan->move_count; i++)
                in += is_swap(sim, plan->moves[i].from);
        each_request(sim, r)
        {
                if (r->moved && !r->decided && r->first_row != SIM_NO_ROW &&
                    r->first_row >= r->known)
                        decodes = true;
        }
        sim_must(sim, !decodes || !in || in + plan->row_count <= sim->conf.rows,
                 "%u blocks come from the swap beside %u rows, and some of them decode", in,
                 plan->row_count);
        sim_must(sim, !plan->move_count || price(sim) != DEARER,
                 "%u blocks move, and it is dearer than to compute them", plan->move_count);
}

void audit_moves(struct sim *sim)
{
        const struct plan *plan = &sim->plan;

        for (uint32_t i = 0; i < plan->move_count; i++) {
                const struct block_move *move = &plan->moves[i];

                sim_must(sim, move->from < sim_places(sim) && move->to < sim_places(sim),
                         "a move from %u to %u, of %u", move->from, move->to, sim_places(sim));
                sim_must(sim, is_swap(sim, move->from) != is_swap(sim, move->to),
                         "a move from %u to %u, which is the same place", move->from, move->to);
                if (is_swap(sim, move->to))
                        audit_out(sim, move);
                else
                        audit_in(sim, move);
                carry_out(sim, move);
                /* Another request may be computing the same. */
                if (is_swap(sim, move->to) && is_written_again(sim, move->to))
                        sim->contents[move->to].indexed = false;
        }
        audit_move_count(sim);
}

static void audit_told(struct sim *sim, const struct sim_request *request, const char *what,
                       uint32_t told, uint32_t least, uint32_t most)
{
        sim_must(sim, told >= least && told <= most, "%u to %u positions of %s were %s, it says %u",
                 least, most, request->name, what, told);
}

/* Its words of what was lost and what came back, and their sums. */
static void audit_restored(struct sim *sim, struct sim_request *request)
{
        const struct request *core = &request->core;

        audit_told(sim, request, "restored", core->restored, request->restored,
                   request->restored_most);
        audit_told(sim, request, "computed again", core->recomputed, request->recomputed,
                   request->recomputed_most);
        sim->restored += core->restored - request->restored_told;
        sim->recomputed += core->recomputed - request->recomputed_told;
        request->restored_told = core->restored;
        request->recomputed_told = core->recomputed;
}

void audit_swap(struct sim *sim, const struct sched_counts *counts)
{
        uint32_t surely = 0, full = count_full(sim);

        for (block_t place = sim->conf.blocks; place < sim_places(sim); place++)
                surely += sim->contents[place].full && sim->contents[place].indexed;
        each_request(sim, r) audit_restored(sim, r);
        sim_must(sim, counts->swap_total == sim->conf.prefix.swap_blocks,
                 "the swap has another size");
        sim_must(sim, counts->swap_used >= surely && counts->swap_used <= full,
                 "%u to %u blocks of the swap are used, it says %u", surely, full,
                 counts->swap_used);
        sim_must(sim,
                 counts->swapped_out == sim->swapped_out && counts->swapped_in == sim->swapped_in,
                 "%u blocks moved out and %u in, it says %u and %u", (unsigned)sim->swapped_out,
                 (unsigned)sim->swapped_in, (unsigned)counts->swapped_out,
                 (unsigned)counts->swapped_in);
        sim_must(sim, counts->evictions >= counts->swapped_out, "more moved out than was evicted");
        sim_must(sim, counts->restored == sim->restored && counts->recomputed == sim->recomputed,
                 "%u were restored and %u recomputed, it says %u and %u", (unsigned)sim->restored,
                 (unsigned)sim->recomputed, (unsigned)counts->restored,
                 (unsigned)counts->recomputed);
}
