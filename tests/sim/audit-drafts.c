/*
 * The auditor of drafts: rows of tokens that were guessed.
 *
 * The world knows what was guessed for each request, so it knows which rows of a draft a plan may
 * have: behind the row of the decode, one for each token from the first on, each with a result.
 * They are for nobody else.  So audit-left-out.c and audit-order.c check rows of decodes and
 * prompts as if those of drafts, and the space for their records, were not there; audit-growth.c
 * and audit-slots.c check promises and preemptions from books that do not have them.  Positions
 * behind the row of the decode count only as their results come: the books, and so all other
 * checks, have the text that was accepted.
 *
 * Nothing that was only guessed is ever named in the index.  A request that begins with such a text
 * is not found more of it than was said before (`unsaid_from`).
 */
#include "tests/sim/sim.h"

#include <assert.h>

#include "daemon/core/pool-map.h"

static void note_cached(struct sim *sim)
{
        struct pool_map *map = pool_map_new(sim->conf.blocks);

        assert(map);
        pool_map_begin(map);
        while (!sched_map(sim->sched, map))
                ;
        for (uint32_t i = 0; i < map->blocks; i++)
                sim->was_cached[i] =
                        map->at[i].state == POOL_CACHED || map->at[i].state == POOL_PINNED;
        pool_map_free(map);
}

/* May a draft need a block?  The map takes time, so it is drawn only then. */
static bool may_take_blocks(struct sim *sim)
{
        each_request(sim, r)
        {
                if (r->guess_count &&
                    (r->planned + r->guess_count) / BLOCK_POSITIONS >= r->block_count)
                        return true;
        }
        return false;
}

void audit_drafts_before(struct sim *sim)
{
        struct sched_counts counts;

        sched_count(sim->sched, &counts);
        sim->evictions = counts.evictions;
        if (may_take_blocks(sim))
                note_cached(sim);
}

bool audit_is_drafted(const struct sim_request *owner, bool first)
{
        return !first && owner->planned_before >= owner->known;
}

void audit_draft_row(struct sim *sim, const struct plan_row *row, struct sim_request *owner)
{
        uint32_t number = owner->drafted++;

        sim_must(sim, number < owner->guess_count, "%s has %u rows of a draft of %u", owner->name,
                 number + 1, owner->guess_count);
        sim_must(sim, owner->planned == owner->planned_before + 1, "%s has a draft behind %u rows",
                 owner->name, owner->planned - owner->planned_before);
        sim_must(sim, row->position == owner->planned + number, "token %u of the draft of %s at %u",
                 number, owner->name, row->position);
        sim_must(sim, row->from_row == PLAN_TOKEN && row->token == owner->guess[number],
                 "%s at %u has another token than its draft", owner->name, row->position);
        sim_must(sim, row->want == PLAN_LOGITS && row->write,
                 "%s at %u is of a draft, and wants no result, or does not write", owner->name,
                 row->position);
        sim_must(sim, row->position < sim_positions(owner), "%s at %u is of a draft, and too many",
                 owner->name, row->position);
        sim_must(sim, row->position / BLOCK_POSITIONS < owner->block_count,
                 "%s at %u is of a draft, and has no block", owner->name, row->position);
        sim_must(sim, sim->block_table_count[owner->blocks[row->position / BLOCK_POSITIONS]] == 1,
                 "the draft of %s writes at %u into a block that others read", owner->name,
                 row->position);
}

uint32_t audit_draft_rows(const struct sim *sim)
{
        uint32_t count = 0;

        each_request(sim, r) count += r->drafted;
        return count;
}

uint64_t audit_draft_bytes(const struct sim *sim, uint32_t channel)
{
        uint64_t bytes = 0;

        each_request(sim, r)
        {
                if (r->channel == channel)
                        bytes += r->drafted * (uint64_t)r->core.record_bytes_max;
        }
        return bytes;
}

bool audit_has_run(const struct sim *sim, const struct sim_request *request)
{
        for (uint32_t i = 0; i < sim->flight_count; i++)
                for (uint32_t row = 0; row < sim->flights[i].row_count; row++) {
                        const struct sim_row *at = &sim->flights[i].rows[row];

                        if (at->owner == request && at->drafted && at->pending)
                                return true;
                }
        return false;
}

void audit_pending_bytes(struct sim *sim, uint32_t channel)
{
        uint64_t told = sched_pending_bytes(sim->sched, channel);
        uint64_t charged = audit_charged(sim, channel);

        sim_must(sim, told == charged, "%llu bytes of channel %u are reserved, it says %llu",
                 (unsigned long long)charged, channel, (unsigned long long)told);
}

/* Is it the page of a block that only rows of a draft write? */
static bool is_for_draft(const struct sim *sim, const struct plan_page *page)
{
        const struct sim_request *owner = sim->slot_owner[page->slot];
        uint32_t begin = page->index * BLOCK_POSITIONS;

        return owner->drafted && begin >= owner->planned && begin < owner->planned + owner->drafted;
}

/*
 * The block was free: it was in use, or free, before the plan, and not one of the index.  Blocks of
 * a publication that has failed leave the index in a plan.
 */
static void audit_page(struct sim *sim, const struct plan_page *page)
{
        const struct sim_request *owner = sim->slot_owner[page->slot];

        sim_must(sim, !audit_page_is_found(sim, page), "the draft of %s writes into a found block",
                 owner->name);
        sim_must(sim, !sim->conf.prefix.window, "the draft of %s takes a window page", owner->name);
        sim_must(sim, !sim->was_cached[page->block] || sim->public_texts,
                 "the draft of %s takes block %u, which was cached", owner->name, page->block);
        for (uint32_t i = 0; i < sim->plan.copy_count; i++)
                sim_must(sim, sim->plan.copies[i].to != page->block,
                         "a block is copied for the draft of %s", owner->name);
        for (uint32_t i = 0; i < sim->plan.move_count; i++)
                sim_must(sim,
                         sim->plan.moves[i].from != page->block &&
                                 sim->plan.moves[i].to != page->block,
                         "a block moves for the draft of %s", owner->name);
        sim->draft_pages++;
}

/* Blocks are evicted only for pages of others. */
static void audit_taken(struct sim *sim, const struct sched_counts *counts)
{
        uint32_t taken = 0, others = 0;

        for (uint32_t i = 0; i < sim->plan.page_count; i++) {
                const struct plan_page *page = &sim->plan.pages[i];

                if (is_for_draft(sim, page)) {
                        audit_page(sim, page);
                        taken++;
                } else {
                        others += !audit_page_is_found(sim, page) ||
                                  audit_is_fetched(sim, page->block);
                }
        }
        sim_must(sim, !taken || counts->evictions - sim->evictions <= others,
                 "%u blocks are evicted for %u pages, and %u of drafts",
                 (unsigned)(counts->evictions - sim->evictions), others, taken);
}

/* What becomes free in a ring is for the request that is stalled there, and not for drafts. */
static void audit_stalled(struct sim *sim, const struct sim_request *request)
{
        each_request(sim, r)
        {
                sim_must(sim,
                         r->channel != request->channel || r->decided || !r->was_stalled ||
                                 !r->core.stalled || !request->drafted,
                         "%s has a draft, and %s is stalled at the same ring", request->name,
                         r->name);
        }
}

/* A draft is for the next plan only, if that may have rows. */
static void forget_guesses(struct sim *sim)
{
        if (sim->held || sim->flight_count == sim->conf.depth)
                return;
        each_request(sim, r) r->guess_count = 0;
}

void audit_drafts(struct sim *sim, const struct sched_counts *counts)
{
        uint32_t rows = audit_draft_rows(sim);

        sim_must(sim, rows <= sim->conf.drafts, "%u rows are of drafts, of at most %u", rows,
                 sim->conf.drafts);
        each_request(sim, r)
        {
                bool has_rows = r->planned > r->planned_before;

                sim_must(sim, !has_rows || !audit_has_run(sim, r),
                         "%s has a row, and its run is in flight", r->name);
                sim_must(sim,
                         !has_rows || !r->core.drafts || audit_reads(r) || !audit_pending(sim, r),
                         "%s has a row, and its last token is not known", r->name);
                audit_stalled(sim, r);
                sim->runs += r->drafted > 0;
        }
        sim->drafted += rows;
        audit_taken(sim, counts);
        forget_guesses(sim);
}
