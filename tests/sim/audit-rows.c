/*
 * The auditor of rows: each is the next row of its request, and each token it reads is known or
 * named.
 */
#include "tests/sim/sim.h"

/*
 * The reported divergence must lie where the found part ends, and must be true of the same
 * user's texts.
 */
static void audit_divergence(struct sim *sim, const struct sim_request *owner)
{
        const struct sequence *sequence = &owner->core.sequence;
        uint32_t at = sequence->diverged_at;

        if (!at)
                return;
        sim_must(sim, at >= sequence->cached_count && at < owner->core.prompt_count,
                 "%s of %u diverges at %u, and %u were found", owner->name,
                 owner->core.prompt_count, at, sequence->cached_count);
        sim_must(sim, sequence->diverged_cached_token != owner->truth[at],
                 "%s has at %u the token that is known", owner->name, at);
        sim_must(sim, sim_was_said(sim, owner, at, sequence->diverged_cached_token),
                 "%s is told of token %u at %u, which its user never said", owner->name,
                 sequence->diverged_cached_token, at);
        sim->divergences++;
}

/*
 * A row of a request that begins, or comes back after it was preempted: the positions before it
 * were found.  The last known position is computed in any case, but is not written if all was
 * found.
 */
static void audit_beginning(struct sim *sim, struct sim_request *owner, const struct plan_row *row)
{
        const struct sequence *sequence = &owner->core.sequence;
        uint32_t last = owner->known - 1;

        sim_must(sim,
                 (owner->preemptions || row->position == sequence->cached_count) &&
                         row->position <= last,
                 "%s begins at %u, and %u were found", owner->name, row->position,
                 sequence->cached_count);
        owner->moved = true;
        owner->moved_step = sim->step_count;
        owner->found_late = audit_came_for_others(sim, owner);
        if (owner->preemptions)
                owner->restored_most += owner->found_late * BLOCK_POSITIONS;
        owner->planned = owner->planned_before = row->position;
        owner->found = row->position + !row->write;
        sim_must(sim, row->write || row->position == last, "%s at %u does not write", owner->name,
                 row->position);
        sim_must(sim, blocks_for(owner->found) <= owner->block_count,
                 "%u positions of %s were found, in %u blocks", owner->found, owner->name,
                 owner->block_count);
        sim_must(sim, owner->preemptions || owner->found <= owner->unsaid_from,
                 "%u positions of %s were found, and %u of them were ever said", owner->found,
                 owner->name, owner->unsaid_from);
        sim->found_rows += owner->found;
        if (!owner->preemptions)
                audit_divergence(sim, owner);
}

/* A token that the host knows is sent along; otherwise the row that makes it is named. */
static void audit_token(struct sim *sim, const struct plan_row *row,
                        const struct sim_request *owner)
{
        if (row->position < owner->core.sequence.token_count) {
                sim_must(sim,
                         row->from_row == PLAN_TOKEN && row->token == owner->truth[row->position],
                         "%s at %u is not given its token", owner->name, row->position);
                return;
        }
        for (uint32_t i = 0; i < sim->flight_count; i++) {
                const struct sim_flight *flight = &sim->flights[i];
                const struct sim_row *from;

                if (flight->number != row->from_plan || row->from_row >= flight->row_count)
                        continue;
                from = &flight->rows[row->from_row];
                if (from->owner == owner && from->pending && from->position + 1 == row->position)
                        return;
        }
        sim_must(sim, false, "%s at %u is to read row %u of plan %u, which is not it", owner->name,
                 row->position, row->from_row, (unsigned)row->from_plan);
}

void audit_rows(struct sim *sim)
{
        const struct plan *plan = &sim->plan;

        each_request(sim, r)
        {
                r->planned_before = r->planned;
                r->drafted = 0;
        }
        for (uint32_t i = 0; i < plan->row_count; i++) {
                const struct plan_row *row = &plan->rows[i];
                struct sim_request *owner = sim_of(sim, row->sequence->request);
                bool first = !i || row[-1].slot != row->slot;

                sim_must(sim, owner->alive && row->sequence == &owner->core.sequence,
                         "a row of one who is not there");
                sim_must(sim, owner->admitted && !owner->decided && row->slot == owner->slot,
                         "a row of %s, which is not running", owner->name);
                sim_must(sim, !owner->preempting || owner->was_stalled,
                         "a row of %s, which is to give way", owner->name);
                if (!owner->moved)
                        audit_beginning(sim, owner, row);
                if (audit_is_drafted(owner, first)) {
                        audit_draft_row(sim, row, owner);
                        continue;
                }
                sim_must(sim, first == (owner->planned == owner->planned_before),
                         "the rows of %s are not neighbours", owner->name);
                sim_must(sim, row->position == owner->planned, "%s at %u, but it stands at %u",
                         owner->name, row->position, owner->planned);
                sim_must(sim, row->position < sim_positions(owner), "%s at %u is a row too many",
                         owner->name, row->position);
                sim_must(sim, row->position / BLOCK_POSITIONS < owner->block_count,
                         "%s at %u has no block", owner->name, row->position);
                sim_must(sim, row->write == (row->position >= owner->found),
                         "%s at %u writes, or does not, and %u were found", owner->name,
                         row->position, owner->found);
                sim_must(sim,
                         !row->write || sim->block_table_count[owner->blocks[row->position /
                                                                             BLOCK_POSITIONS]] == 1,
                         "%s writes at %u into a block that others read", owner->name,
                         row->position);
                sim_must(sim,
                         row->want ==
                                 (row->position + 1 < owner->known ? PLAN_NOTHING : PLAN_LOGITS),
                         "%s at %u wants the wrong thing", owner->name, row->position);
                audit_token(sim, row, owner);
                owner->recomputed += row->position < owner->computed;
                owner->recomputed_most += row->position < owner->computed_most;
                owner->planned++;
        }
        each_request(sim, r)
        {
                sim_must(sim, r->core.state != REQUEST_DECODE || r->planned >= r->known,
                         "%s decodes, and its prompt is not read", r->name);
                sim_must(sim,
                         r->core.state != REQUEST_PREFILL || !r->moved || r->planned < r->known,
                         "the prompt of %s is read, and it does not decode", r->name);
        }
}
