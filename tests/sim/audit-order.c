/*
 * The auditor of order: whose prompt is read first, when there are not rows for all?
 *
 * Class by class; short ones first, as long as they take no more than half; then in
 * the order in which they were let in.  Who was stalled has been asked before.
 */
#include "tests/sim/sim.h"

#include <string.h>

/* What sched.h leaves open, one bit each. */
enum {
        QUARTER_OF_WHAT_IS_LEFT = 1, /* for this class, or of all that prompts may have */
        HALF_FOR_EACH_CLASS = 2,
        SHORT_ONES_END_WITH_THE_FIRST_TOO_MANY = 4,
        UNSEEN_ARE_SHORT = 8, /* who comes back and had no row: how much is found is not known */
        SHORT_ONES_FIT_AS_THEY_ARE = 16,  /* into what is left */
        WHAT_HAS_NO_ROOM_COUNTS_NOT = 32, /* towards the half */
        READINGS = 64,
};

#define NEW_MOST 5u /* let in by one plan, whose orders are tried */

struct share {
        struct sim_request *request;
        uint32_t due;   /* rows that it could have, or what of them is known */
        uint32_t most;  /* ... for which there is room */
        uint32_t given; /* rows, as this reading would have it */
        bool unseen, has;
};

static bool is_left_out(const struct share *share)
{
        return share->request->dealt - share->request->dealt_then < share->most;
}

/* In the order of being let in. */
static uint32_t list(struct sim *sim, const uint64_t *room, struct share *ret_shares)
{
        uint32_t count = 0;

        each_request(sim, r)
        {
                uint32_t at = count, rows = r->dealt - r->dealt_then;
                struct share share = { .request = r };

                if (!r->admitted || r->decided || r->parking || r->was_stalled || !audit_reads(r))
                        continue;
                share.unseen = !r->moved && r->parks;
                share.due = r->known - (r->moved ? r->dealt_then : r->core.sequence.cached_count);
                if (share.unseen)
                        share.due = r->known;
                share.most = share.due;
                if (rows + 1 == share.due && room[r->channel] < r->core.record_bytes_max)
                        share.most--;
                if (share.unseen && room[r->channel] < r->core.record_bytes_max)
                        share.most = 0;
                for (; at && ret_shares[at - 1].request->turn > r->turn; at--)
                        ret_shares[at] = ret_shares[at - 1];
                ret_shares[at] = share;
                count++;
        }
        return count;
}

static uint32_t give(struct share *share, uint32_t left)
{
        share->has = true;
        share->given = share->most < left ? share->most : left;
        return left - share->given;
}

static void deal(struct share *shares, uint32_t count, uint32_t rows, unsigned reading)
{
        uint32_t left = rows, taken = 0;

        for (uint32_t class = 0; class < REQUEST_CLASS_N; class ++) {
                uint64_t of = reading & QUARTER_OF_WHAT_IS_LEFT ? left : rows;

                if (reading & HALF_FOR_EACH_CLASS)
                        taken = 0;
                for (uint32_t i = 0; i < count; i++) {
                        struct share *share = &shares[i];
                        uint64_t due = share->due;

                        if (share->unseen && reading & UNSEEN_ARE_SHORT)
                                due = 1;
                        if (share->request->class != class || 4 * due > of)
                                continue;
                        if (due > left && reading & SHORT_ONES_FIT_AS_THEY_ARE)
                                continue;
                        if (2 * (taken + due) <= of) {
                                left = give(share, left);
                                taken += reading & WHAT_HAS_NO_ROOM_COUNTS_NOT ? share->given
                                                                               : (uint32_t)due;
                        } else if (reading & SHORT_ONES_END_WITH_THE_FIRST_TOO_MANY) {
                                break;
                        }
                }
                for (uint32_t i = 0; i < count; i++)
                        if (shares[i].request->class == class && !shares[i].has)
                                left = give(&shares[i], left);
        }
}

/* Is it what some reading has, of these in this order? */
static bool is_so(struct share *shares, uint32_t count, uint32_t rows)
{
        for (unsigned reading = 0; reading < READINGS; reading++) {
                bool same = true;

                for (uint32_t i = 0; i < count; i++)
                        shares[i].given = shares[i].has = 0;
                deal(shares, count, rows, reading);
                for (uint32_t i = 0; i < count; i++)
                        same &= shares[i].given ==
                                shares[i].request->dealt - shares[i].request->dealt_then;
                if (same)
                        return true;
        }
        return false;
}

/*
 * Those who were let in by this very plan came in some order that the auditor of the line has found
 * possible; where it was in doubt (who begins like one that is being read may have been left for
 * another look), others are.  So they may stand in any.
 */
static bool is_in_some_order(struct share *shares, uint32_t count, uint32_t from, uint32_t rows)
{
        if (from + 1 >= count)
                return is_so(shares, count, rows);
        for (uint32_t i = from; i < count; i++) {
                struct share share = shares[i];

                shares[i] = shares[from];
                shares[from] = share;
                if (is_in_some_order(shares, count, from + 1, rows))
                        return true;
                shares[from] = shares[i];
                shares[i] = share;
        }
        return false;
}

/* ... which begin here; nowhere, if there are too many to try. */
static uint32_t first_of_this_step(const struct sim *sim, const struct share *shares,
                                   uint32_t count)
{
        uint32_t first = count;

        while (first && shares[first - 1].request->let_in_step == sim->step_count)
                first--;
        return count - first <= NEW_MOST ? first : count;
}

void audit_order(struct sim *sim, const uint64_t *room)
{
        struct share shares[SIM_REQUESTS];
        uint32_t count = list(sim, room, shares), rows = sim->conf.rows, used = 0;
        bool anybody = false, decodes = false;

        each_request(sim, r)
        {
                if (!r->admitted || r->decided)
                        continue;
                if (!audit_reads(r) || r->was_stalled)
                        rows -= r->dealt - r->dealt_then;
                decodes |= !audit_reads(r) && r->dealt > r->dealt_then;
        }
        for (uint32_t i = 0; i < count; i++) {
                if (audit_no_page_left(sim, shares[i].request))
                        return;
                anybody |= is_left_out(&shares[i]);
                used += shares[i].request->dealt - shares[i].request->dealt_then;
        }
        if (!anybody)
                return;
        if (sim->conf.gap_ns && decodes)
                rows = used;
        if (is_in_some_order(shares, count, first_of_this_step(sim, shares, count), rows))
                return;
        sim_must(sim, false, "prompts are not read in their order; %s is left with %u of %u rows",
                 shares[0].request->name, shares[0].request->dealt - shares[0].request->dealt_then,
                 shares[0].due);
}
