/*
 * The device of the world: it carries out plans, and computes their rows.
 *
 * The row of a draft computes as if its token were right.  So what it reads and writes behind the
 * first wrong token is not what its request would have alone; and nobody may read it later.
 */
#include "tests/sim/sim.h"

#include <string.h>

#define NOT_DRAFTED UINT32_MAX

/* The token that a row reads: it was sent along, or it lies on the device. */
static uint32_t token_of(struct sim *sim, const struct plan_row *row)
{
        if (row->from_row == PLAN_TOKEN)
                return row->token;
        for (uint32_t i = 0; i < sim->flight_count; i++)
                if (sim->flights[i].number == row->from_plan)
                        return sim->flights[i].rows[row->from_row].result;
        sim_fault(sim, __FILE__, __LINE__, "from_plan", "names a plan that is not in flight");
}

static uint64_t *window_cell(struct sim *sim, uint32_t slot, uint32_t position)
{
        uint32_t page =
                sim->window_tables[(size_t)slot * sim->table_blocks + position / BLOCK_POSITIONS];

        sim_must(sim, page < sim->conf.prefix.window_pages,
                 "the row of slot %u sees %u in its window, and there is no page", slot, position);
        return &sim->window_cells[page * BLOCK_POSITIONS + position % BLOCK_POSITIONS];
}

/* The KV that a row reads or writes at this position: that of its request alone, or of its run. */
static uint64_t expected(const struct sim_request *owner, uint32_t at, bool drafted)
{
        return drafted && at >= owner->run_from ? owner->run_chain[at - owner->run_from]
                                                : owner->chain[at];
}

/* Notes what the row of a draft computes. */
static void extend_run(struct sim_request *owner, const struct plan_row *row, uint32_t number)
{
        uint64_t before;

        if (!number)
                owner->run_from = row->position;
        before = expected(owner, row->position - 1, number > 0);
        owner->run_chain[number] = sim_cell_of(before, row->token, row->position);
}

/* It sees itself and the positions before it in its window, and none that are before these. */
static void run_windows(struct sim *sim, const struct plan_row *row, uint64_t own, bool drafted)
{
        const struct sim_request *owner = sim_of(sim, row->sequence->request);
        uint32_t window = sim->conf.prefix.window;
        uint32_t at = row->position >= window ? row->position + 1 - window : 0;

        if (row->write)
                *window_cell(sim, row->slot, row->position) = own;
        for (; at <= row->position; at++)
                sim_must(sim, *window_cell(sim, row->slot, at) == expected(owner, at, drafted),
                         "the row of %s at %u reads in its window at %u what is not its own",
                         owner->name, row->position, at);
}

/*
 * Every row reads all positions before its own, as attention does.  `drafted`: the number of its
 * token in the draft of its request, or NOT_DRAFTED.
 */
static void run_row(struct sim *sim, const struct plan_row *row, uint32_t drafted,
                    struct sim_row *ret_row)
{
        struct sim_request *owner = sim_of(sim, row->sequence->request);
        const block_t *table = sim->tables + (size_t)row->slot * sim->table_blocks;
        bool guessed = drafted != NOT_DRAFTED;
        uint64_t *cell, before = 0;

        if (guessed)
                extend_run(owner, row, drafted);
        for (uint32_t at = 0; at <= row->position; at++) {
                cell = &sim->cells[table[at / BLOCK_POSITIONS] * BLOCK_POSITIONS +
                                   at % BLOCK_POSITIONS];
                if (at == row->position)
                        break;
                sim_must(sim, *cell == expected(owner, at, guessed),
                         "the row of %s at %u reads at %u what is not its own", owner->name,
                         row->position, at);
                before = *cell;
        }
        if (row->write)
                *cell = sim_cell_of(before, token_of(sim, row), row->position);
        sim_must(sim, *cell == expected(owner, row->position, guessed),
                 "%s at %u is not what it would be alone", owner->name, row->position);
        if (sim->conf.prefix.window)
                run_windows(sim, row, *cell, guessed);
        *ret_row = (struct sim_row){ .owner = owner,
                                     .position = row->position,
                                     .decode = row->position >= owner->known,
                                     .pending = row->want == PLAN_LOGITS,
                                     .result = sim_token_after(*cell),
                                     .drafted = guessed,
                                     .guess = row->token,
                                     .fetched = owner->fetched };
        owner->fetched = 0;
}

static uint64_t step_takes(const struct sim *sim)
{
        uint64_t ns = sim->step_ns + sim->plan.row_count * sim->row_ns + sim->lag_ns +
                      sim->plan.move_count * sim->conf.swap_copy_ns;

        for (uint32_t i = 0; i < sim->plan.row_count; i++) {
                const struct plan_row *row = &sim->plan.rows[i];

                if (row->position < row->sequence->request->prompt_count)
                        ns += row->position * sim->far_ns / 1024;
                else
                        ns += row->position * sim->decode_far_ns / 1024;
        }
        return ns;
}

/*
 * A block that is written from its beginning is empty before, with its window page; a copy fills
 * them.  The moves of the plan were carried out when they were audited.
 */
static void change_pages(struct sim *sim)
{
        const struct plan *plan = &sim->plan;

        for (uint32_t i = 0; i < plan->page_count; i++) {
                const struct plan_page *page = &plan->pages[i];

                sim->tables[page->slot * sim->table_blocks + page->index] = page->block;
                sim->window_tables[page->slot * sim->table_blocks + page->index] = page->window;
                if (audit_page_is_found(sim, page))
                        continue;
                memset(&sim->cells[page->block * BLOCK_POSITIONS], 0,
                       BLOCK_POSITIONS * sizeof(*sim->cells));
                if (sim->conf.prefix.window)
                        memset(&sim->window_cells[page->window * BLOCK_POSITIONS], 0,
                               BLOCK_POSITIONS * sizeof(*sim->window_cells));
        }
}

static void copy_blocks(struct sim *sim, struct sim_flight *flight)
{
        const struct plan *plan = &sim->plan;

        for (uint32_t i = 0; i < plan->copy_count; i++) {
                const struct plan_copy *copy = &plan->copies[i];

                memcpy(&sim->cells[copy->to * BLOCK_POSITIONS],
                       &sim->cells[copy->from * BLOCK_POSITIONS],
                       BLOCK_POSITIONS * sizeof(*sim->cells));
                flight->sources[i] = copy->from;
                if (sim->conf.prefix.window)
                        memcpy(&sim->window_cells[copy->window_to * BLOCK_POSITIONS],
                               &sim->window_cells[copy->window_from * BLOCK_POSITIONS],
                               BLOCK_POSITIONS * sizeof(*sim->window_cells));
        }
}

/* Its rows are one that it has in any case, and those of a draft. */
static bool is_drafted(struct sim *sim, const struct plan_row *row, uint32_t before)
{
        return before && sim_of(sim, row->sequence->request)->drafted;
}

void sim_launch(struct sim *sim)
{
        const struct plan *plan = &sim->plan;
        struct sim_flight *flight = &sim->flights[sim->flight_count];
        uint64_t begin = sim->now_ns;

        change_pages(sim);
        copy_blocks(sim, flight);
        for (uint32_t i = 0, drafted = 0; i < plan->row_count; i++) {
                const struct plan_row *row = &plan->rows[i];

                drafted = i && row[-1].slot == row->slot ? drafted + 1 : 0;
                run_row(sim, row, is_drafted(sim, row, drafted) ? drafted - 1 : NOT_DRAFTED,
                        &flight->rows[i]);
                flight->rows[i].owner->in_flight++;
        }
        if (sim->flight_count && sim->flights[sim->flight_count - 1].done_ns > begin)
                begin = sim->flights[sim->flight_count - 1].done_ns;
        flight->number = plan->number;
        flight->made_ns = sim->now_ns;
        flight->row_count = plan->row_count;
        flight->copy_count = plan->copy_count;
        sim->took_ns = step_takes(sim);
        flight->done_ns = begin + sim->took_ns;
        sim->flight_count++;
}
