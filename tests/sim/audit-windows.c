/*
 * The auditor of window pages: which request still sees which page, and is there one wherever a row
 * looks?
 *
 * It knows the window page of each block of each request, as the plans told it.  The position of a
 * request's next row says which of them the request still needs.  A page that is needed belongs to
 * one block, and no other block may get it.  The reported numbers of pages are checked against
 * that.  sim.c checks the content of a page when a row reads it, and empties a page that is given
 * to a new block.
 *
 * Pages that were found for a request without a row so far cannot be seen.
 */
#include "tests/sim/sim.h"

/* It may get more rows, so its pages from its next row's window on are needed. */
static bool goes_on(const struct sim_request *request)
{
        return request->admitted && request->moved && !request->decided;
}

static uint32_t first_needed(const struct sim *sim, const struct sim_request *request)
{
        return sim_window_begin(sim, request->planned_before);
}

static bool is_copied(const struct sim *sim, uint32_t page)
{
        for (uint32_t i = 0; i < sim->flight_count; i++)
                if (sim->flights[i].number == sim->windows[page].copied)
                        return true;
        return false;
}

static void audit_new(struct sim *sim, const struct sim_request *owner,
                      const struct plan_page *page)
{
        struct sim_window *window = &sim->windows[page->window];

        sim_must(sim, page->window != WINDOW_NONE, "block %u for %s has no window page",
                 page->block, owner->name);
        sim_must(sim, !is_copied(sim, page->window), "window page %u for %s is still to be copied",
                 page->window, owner->name);
        *window = (struct sim_window){ .writer = owner->arrival, .invalid = SIM_NEVER };
}

/* audit_needed() checks which block the page belongs to, once all pages are listed. */
static void audit_found(struct sim *sim, const struct sim_request *owner,
                        const struct plan_page *page)
{
        if (page->window == WINDOW_NONE) {
                sim->windows_unseen++;
                return;
        }
        sim_must(sim, owner->turn < sim->windows[page->window].invalid,
                 "%s is served from window page %u, which is invalid", owner->name, page->window);
}

/* Returns the number of pages for new blocks. */
static uint32_t audit_window_pages(struct sim *sim)
{
        uint32_t fresh = 0;

        for (uint32_t i = 0; i < sim->plan.page_count; i++) {
                const struct plan_page *page = &sim->plan.pages[i];
                struct sim_request *owner = sim->slot_owner[page->slot];

                sim_must(sim,
                         page->window == WINDOW_NONE ||
                                 page->window < sim->conf.prefix.window_pages,
                         "there is no window page %u", page->window);
                if (audit_page_is_found(sim, page)) {
                        audit_found(sim, owner, page);
                } else {
                        audit_new(sim, owner, page);
                        fresh++;
                }
                owner->windows[page->index] = page->window;
        }
        return fresh;
}

static uint32_t page_of(const struct sim *sim, block_t block)
{
        for (uint32_t i = 0; i < sim->plan.page_count; i++)
                if (sim->plan.pages[i].block == block)
                        return sim->plan.pages[i].window;
        return WINDOW_NONE;
}

static bool is_fresh(const struct sim *sim, uint32_t window)
{
        for (uint32_t i = 0; i < sim->plan.page_count; i++)
                if (sim->plan.pages[i].window == window &&
                    !audit_page_is_found(sim, &sim->plan.pages[i]))
                        return true;
        return false;
}

/* Only a block with its window page is copied, and both go to the block that is new. */
static void audit_window_copies(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->plan.copy_count; i++) {
                const struct plan_copy *copy = &sim->plan.copies[i];
                uint32_t from = copy->window_from, to = copy->window_to;

                sim_must(sim, from < sim->conf.prefix.window_pages && from != to,
                         "a copy of window page %u", from);
                sim_must(sim, to == page_of(sim, copy->to),
                         "a copy into window page %u, which block %u has not", to, copy->to);
                sim_must(sim, !is_fresh(sim, from), "window page %u is copied, and given away",
                         from);
                sim->windows[to].invalid = sim->windows[from].invalid;
                sim->windows[from].copied = sim->plan.number;
        }
}

/* A page that is needed is that of one block, and a block has one page. */
static void audit_needed(struct sim *sim, const struct sim_request *request)
{
        for (uint32_t i = first_needed(sim, request); i < request->block_count; i++) {
                uint32_t page = request->windows[i];
                block_t block = request->blocks[i];

                sim_must(sim, page != WINDOW_NONE, "%s at %u sees block %u, without a window page",
                         request->name, request->planned_before, i);
                sim_must(sim,
                         sim->windows[page].block == BLOCK_NONE ||
                                 sim->windows[page].block == block,
                         "window page %u of %s, for block %u, is needed for block %u as well", page,
                         request->name, block, sim->windows[page].block);
                sim_must(sim,
                         sim->block_window[block] == WINDOW_NONE ||
                                 sim->block_window[block] == page,
                         "block %u of %s has window pages %u and %u", block, request->name, page,
                         sim->block_window[block]);
                sim->windows[page].block = block;
                sim->block_window[block] = page;
        }
}

static void forget_owners(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->conf.prefix.window_pages; i++)
                sim->windows[i].block = BLOCK_NONE;
        for (block_t block = 0; block < sim->conf.blocks; block++)
                sim->block_window[block] = WINDOW_NONE;
}

/* When a plan is made, the pages that are behind the window of the next row are given back. */
static void pass(struct sim *sim, struct sim_request *request)
{
        uint32_t begin = first_needed(sim, request);
        uint32_t whole = request->planned_before / BLOCK_POSITIONS * BLOCK_POSITIONS;
        bool fresh = request->moved_step == sim->step_count;

        if (sim->flight_count == sim->conf.depth || request->preempting)
                return;
        if (fresh) /* it has the window of a row right behind the whole blocks that it found */
                begin = whole ? sim_window_begin(sim, whole - 1) : 0;
        else
                sim->windows_passed += begin - request->window_begin;
        request->window_begin = begin;
}

/*
 * The most that may be in use and is not in the books: the windows of requests without a row, with
 * their tails, and the sources of copies.
 */
static uint32_t count_hidden(const struct sim *sim)
{
        uint32_t hidden = sim->plan.copy_count;

        for (uint32_t i = 0; i < sim->flight_count; i++)
                hidden += sim->flights[i].copy_count;
        each_request(sim, r)
        {
                if (r->admitted && !r->moved && (sim->shares || r->preemptions))
                        hidden += blocks_for(sim->conf.prefix.window) + 2;
        }
        return hidden;
}

/*
 * Pages that are needed are in use.  Others may be only if their request could not give them back
 * so far.
 */
static void audit_in_use(struct sim *sim, const struct sched_counts *counts)
{
        uint32_t in_use = counts->windows_total - counts->windows_free - counts->windows_cached;
        uint32_t least = 0, most = 0, limit = blocks_for(sim->conf.rows);

        for (uint32_t i = 0; i < sim->conf.prefix.window_pages; i++)
                least += sim->windows[i].block != BLOCK_NONE;
        most = least + count_hidden(sim);
        each_request(sim, r)
        {
                uint32_t end = goes_on(r) ? first_needed(sim, r) : r->block_count;

                if (r->admitted && r->moved && r->window_begin < end)
                        most += end - r->window_begin;
                limit += r->admitted ? sim_windows_of(sim, r) : 0;
        }
        sim_must(sim, counts->windows_free + counts->windows_cached <= counts->windows_total,
                 "%u window pages are free and %u cached, of %u", counts->windows_free,
                 counts->windows_cached, counts->windows_total);
        sim_must(sim, in_use >= least && in_use <= most,
                 "%u to %u window pages are in use, it says %u", least, most, in_use);
        sim_must(sim, in_use <= limit, "%u window pages are in use, and %u are said to do", in_use,
                 limit);
}

uint32_t sim_windows_of(const struct sim *sim, const struct sim_request *request)
{
        uint32_t window = sim->conf.prefix.window;
        uint32_t most = (window + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS + 3;

        if (!window)
                return 0;
        return request->worst + 1 < most ? request->worst + 1 : most;
}

uint64_t sim_windows_promised_max(const struct sim *sim)
{
        uint32_t rows = (sim->conf.rows + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
        uint32_t pages = sim->conf.prefix.window_pages;

        if (!sim->conf.prefix.window || pages >= sim->conf.blocks)
                return UINT64_MAX;
        return pages - rows;
}

/* Pages are evicted only if none is free. */
static void audit_evicted(struct sim *sim, const struct sched_counts *counts, uint32_t fresh)
{
        uint64_t evicted = counts->window_evictions - sim->window_evictions;

        sim_must(sim, evicted <= (fresh > sim->windows_free ? fresh - sim->windows_free : 0),
                 "%u window pages were evicted for %u, and %u were free", (unsigned)evicted, fresh,
                 sim->windows_free);
        sim->window_evictions = counts->window_evictions;
        sim->windows_free = counts->windows_free;
}

static void audit_none(struct sim *sim, const struct sched_counts *counts)
{
        for (uint32_t i = 0; i < sim->plan.page_count; i++)
                sim_must(sim, sim->plan.pages[i].window == WINDOW_NONE,
                         "a window page, without windows");
        for (uint32_t i = 0; i < sim->plan.copy_count; i++)
                sim_must(sim,
                         sim->plan.copies[i].window_from == WINDOW_NONE &&
                                 sim->plan.copies[i].window_to == WINDOW_NONE,
                         "a copy of a window page, without windows");
        sim_must(sim,
                 !counts->windows_total && !counts->windows_free && !counts->windows_cached &&
                         !counts->window_evictions,
                 "it counts window pages, without windows");
}

void audit_windows(struct sim *sim, const struct sched_counts *counts)
{
        uint32_t fresh;

        if (!sim->conf.prefix.window) {
                audit_none(sim, counts);
                return;
        }
        sim_must(sim, counts->windows_total == sim->conf.prefix.window_pages,
                 "there are %u window pages", counts->windows_total);
        fresh = audit_window_pages(sim);
        audit_window_copies(sim);
        forget_owners(sim);
        each_request(sim, r)
        {
                if (!goes_on(r))
                        continue;
                audit_needed(sim, r);
                pass(sim, r);
        }
        audit_in_use(sim, counts);
        audit_evicted(sim, counts, fresh);
}

/* Only pages that it has written itself. */
void audit_windows_invalidate(struct sim *sim, const struct sim_request *request)
{
        for (uint32_t i = 0; sim->conf.prefix.window && i < request->block_count; i++) {
                uint32_t page = request->windows[i];

                if (page != WINDOW_NONE && sim->windows[page].writer == request->arrival &&
                    sim->windows[page].invalid == SIM_NEVER)
                        sim->windows[page].invalid = sim->turns;
        }
}

void audit_windows_sound(struct sim *sim, const struct sim_request *request)
{
        for (uint32_t i = 0; sim->conf.prefix.window && i < request->block_count; i++) {
                uint32_t page = request->windows[i];

                /* One that it has given back may be another's by now. */
                if (page != WINDOW_NONE &&
                    (i >= request->window_begin || sim->windows[page].writer == request->arrival))
                        sim->windows[page].invalid = SIM_NEVER;
        }
}
