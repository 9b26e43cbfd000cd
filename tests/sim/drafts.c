/*
 * Drafts of the world: it knows the tokens that will be made, and guesses some of them.
 *
 * As the engine does, it tells the results of a run up to the first that is not the token of the
 * draft, or that ends the request or makes it wait.
 */
#include "tests/sim/sim.h"

#include <string.h>

bool sim_may_draft(const struct sim *sim, const struct sim_request *request)
{
        return request->alive && request->admitted && !request->decided && request->moved &&
               request->planned >= request->known && request->core.max_tokens && !request->held &&
               !audit_pending(sim, request);
}

static uint32_t token_at(struct sim *sim, const struct sim_request *request, uint32_t position)
{
        if (position < request->core.prompt_count + request->core.max_tokens)
                return request->truth[position];
        return sim_below(sim, 50000);
}

/* The core takes what it needs from `tokens` at once. */
static void note(struct sim *sim, struct sim_request *request, const uint32_t *guess,
                 uint32_t count)
{
        uint32_t tokens[SCHED_DRAFT_MAX] = { 0 };

        memcpy(tokens, guess, count * sizeof(*tokens));
        sim_note(sim, &(struct sched_event){ .kind = SCHED_DRAFT,
                                             .request = &request->core,
                                             .tokens = tokens,
                                             .draft_count = count });
        memset(tokens, 0xa5, sizeof(tokens));
}

void sim_draft(struct sim *sim, struct sim_request *request, uint32_t count, uint32_t right)
{
        uint32_t at = request->core.prompt_count + request->made;

        request->guess_count = request->last_guess_count = count;
        request->guess_at = at;
        for (uint32_t i = 0; i < count; i++) {
                bool is_right = i < right || (i > right && sim_below(sim, 2));

                request->guess[i] = token_at(sim, request, at + i) + !is_right;
        }
        note(sim, request, request->guess, count);
}

/* All right, all wrong, or wrong somewhere. */
static void draft_some(struct sim *sim, struct sim_request *request)
{
        uint32_t kind = sim_below(sim, 4), count = sim_below(sim, request->guesses + 1);

        sim_draft(sim, request, count,
                  kind == 0   ? 0
                  : kind == 1 ? sim_below(sim, count + 1)
                              : count);
}

/* A draft for a request that is over changes nothing. */
static void draft_in_vain(struct sim *sim, struct sim_request *request)
{
        uint32_t guess[SCHED_DRAFT_MAX] = { 1, 2, 3 };

        if (request->core.sequence.slot != SEQUENCE_NO_SLOT && !sim_below(sim, 8))
                note(sim, request, guess, 3);
}

/* Now and then none is guessed, or two are noted, or runs of one row are planned without one. */
void sim_draft_all(struct sim *sim)
{
        each_request(sim, r)
        {
                if (!r->guesses)
                        continue;
                if (sim->ragged && !sim_below(sim, 32))
                        r->core.drafts = !r->core.drafts;
                if (r->decided)
                        draft_in_vain(sim, r);
                else if (sim_may_draft(sim, r) && (!sim->ragged || sim_below(sim, 8)))
                        draft_some(sim, r);
        }
}

static bool goes_on(struct sim *sim, const struct sim_flight *flight, uint32_t row, bool told,
                    enum sched_verdict verdict)
{
        const struct sim_row *at = &flight->rows[row];

        if (row + 1 == flight->row_count || !at[1].drafted || at[1].owner != at->owner)
                return false;
        return at[1].guess == at->result && verdict == SCHED_CONTINUE &&
               (told || sim_below(sim, 2));
}

void sim_end_run(struct sim *sim, struct sim_flight *flight, uint32_t row, bool told,
                 enum sched_verdict verdict)
{
        struct sim_request *owner = flight->rows[row].owner;

        if (goes_on(sim, flight, row, told, verdict)) {
                if (owner->unready) /* whoever guessed the token has made its masks */
                        audit_tell_mask(sim, owner);
                return;
        }
        for (row++; row < flight->row_count && flight->rows[row].owner == owner; row++) {
                sim->rejected += flight->rows[row].pending;
                flight->rows[row].pending = false;
        }
        if (owner->guesses && sim->ragged && !sim_below(sim, 4) && sim_may_draft(sim, owner))
                draft_some(sim, owner);
}
