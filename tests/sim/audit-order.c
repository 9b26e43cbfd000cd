/*
 * The auditor of order: which prompts are read first, when there are not enough rows for all?
 *
 * Prompts are read rank by rank: first those of the user who was served least, and of these the
 * best class, as in the queue.  In a rank short prompts come first, as long as they
 * take no more than half of the rows.  The others follow in the order in which they were let
 * in.  A stalled request that has a slot was asked earlier.  A request that was preempted and is
 * admitted now that there is space is asked like all others.
 *
 * The order in which one plan admits requests is known as long as the queue leaves no choice.
 * It leaves a choice where not enough can be seen from outside.  A request may have been left
 * for another look because it begins like one that is being read.  It may have been passed over
 * because too much was found for it.  It may be unknown which request gave way to which.
 * Requests that the same plan admits after such a choice form a *set*.  They may stand in any
 * order, then and later, as long as one order explains the plan.
 *
 * There are too many orders to try each, and it is not necessary.  A request that was taken as
 * a short one may as well stand before the rest of its set: the more were taken, the less was
 * left for the others.  So the auditor tries which requests were taken.  A short one that was
 * not taken must be too much at the end of its set.  Of the remaining requests, some are read
 * whole, then one in part, then none.
 */
#include "tests/sim/sim.h"

/* Cases that sched.h leaves open, one bit each. */
enum {
        QUARTER_OF_WHAT_IS_LEFT = 1, /* for this rank, or of all that prompts may have */
        HALF_FOR_EACH_RANK = 2,
        SHORT_ONES_END_WITH_THE_FIRST_TOO_MANY = 4,
        /*
         * requests that come back, or whose blocks may be in the swap, and had no row: how much was
         * found is unknown
         */
        UNSEEN_ARE_SHORT = 8,
        SHORT_ONES_FIT_AS_THEY_ARE = 16,  /* into the rest of the rows */
        WHAT_HAS_NO_ROOM_COUNTS_NOT = 32, /* towards the half */
        READINGS = 64,
};

enum part { WHOLE, IN_PART, NONE }; /* of what there is space for */

struct share {
        struct sim_request *request;
        uint32_t due;  /* rows that it could have, or what of them is known */
        uint32_t most; /* ... for which there is space */
        uint32_t got;
        uint32_t moves; /* rows that blocks from the swap may have taken of it */
        enum part part;
        uint32_t set;
        uint64_t rank;
        bool unseen, taken; /* taken among the short ones */
};

/* One reading of how rows are dealt, as far as it has come. */
struct deal {
        struct share *shares;
        uint32_t count, rows;
        unsigned reading;
        uint64_t rank;
        /*
         * left: rows to give out; of: the rows of which a quarter is short, and a half goes to
         * short ones
         */
        uint32_t left, of;
        uint32_t taken; /* by short ones */
        bool ended;     /* no more of them are */
};

/* It had a slot, and was asked before any request was admitted. */
static bool was_asked(const struct sim *sim, const struct sim_request *request)
{
        return request->asked_first && request->admitted_step != sim->step_count;
}

/* swaps: some of what was found may be in the swap, and may leave it before any row comes. */
static struct share share_of(struct sim_request *request, uint64_t space, bool swaps)
{
        struct share share = { .request = request,
                               .got = request->planned - request->planned_before };
        bool has_space = space >= request->core.record_bytes_max;

        share.unseen = !request->moved && (request->preemptions || swaps);
        if (share.unseen)
                share.due = request->known;
        else
                share.due = request->known - (request->moved ? request->planned_before
                                                             : request->core.sequence.cached_count);
        share.most = share.due;
        if (!has_space && share.unseen)
                share.most = 0;
        else if (!has_space && share.got + 1 == share.due)
                share.most--;
        share.part = share.got >= share.most ? WHOLE : share.got ? IN_PART : NONE;
        return share;
}

static bool is_of_one_set(const struct sim_request *a, const struct sim_request *b)
{
        return a == b || (a->turn_open && b->turn_open && a->admitted_step == b->admitted_step);
}

/*
 * In the order of admission.  In a set, requests that got all they could stand before those
 * that did not.  Of the former, those that are due more than they take come first: then taken
 * rows count less.
 */
static bool is_before(const struct share *a, const struct share *b)
{
        if (!is_of_one_set(a->request, b->request))
                return a->request->turn < b->request->turn;
        if (a->part != b->part)
                return a->part < b->part;
        return a->due - a->most > b->due - b->most;
}

static uint32_t list(struct sim *sim, const uint64_t *space, struct share *ret_shares)
{
        uint32_t count = 0;

        each_request(sim, r)
        {
                struct share share =
                        share_of(r, space[r->channel], sim->conf.prefix.swap_blocks > 0);
                uint32_t at = count;

                share.rank = audit_prompt_rank(sim, r);
                if (audit_rows_for_moves(sim) && r->moved_step == sim->step_count)
                        share.moves = r->known / BLOCK_POSITIONS;

                if (!r->admitted || r->decided || r->preempting || was_asked(sim, r) ||
                    !audit_reads(r))
                        continue;
                for (; at && is_before(&share, &ret_shares[at - 1]); at--)
                        ret_shares[at] = ret_shares[at - 1];
                ret_shares[at] = share;
                count++;
        }
        for (uint32_t i = 1; i < count; i++)
                ret_shares[i].set =
                        ret_shares[i - 1].set +
                        !is_of_one_set(ret_shares[i - 1].request, ret_shares[i].request);
        return count;
}

static uint32_t due_of(const struct deal *deal, const struct share *share)
{
        return share->unseen && deal->reading & UNSEEN_ARE_SHORT ? 1 : share->due;
}

static bool is_short(const struct deal *deal, const struct share *share)
{
        return share->rank == deal->rank && 4 * (uint64_t)due_of(deal, share) <= deal->of;
}

static bool fits(const struct deal *deal, const struct share *share)
{
        return due_of(deal, share) <= deal->left || !(deal->reading & SHORT_ONES_FIT_AS_THEY_ARE);
}

static bool is_one_too_many(const struct deal *deal, const struct share *share)
{
        return 2 * (deal->taken + (uint64_t)due_of(deal, share)) > deal->of;
}

/*
 * It would now get exactly the rows that it got; or all that are left, less those that blocks from
 * the swap took.
 */
static bool is_given(const struct deal *deal, const struct share *share)
{
        uint32_t most = share->most < deal->left ? share->most : deal->left;

        return share->got <= most && share->got + share->moves >= most;
}

static uint32_t left_after(const struct deal *deal, const struct share *share)
{
        bool gets_less = share->got < share->most && share->got < deal->left;

        return gets_less ? 0 : deal->left - share->got;
}

/*
 * Checks the end of a set: its short requests that were not taken did not fit, or were too
 * many.  If the reading says that none is taken after the first of those, that one also stands
 * before the others for the rest.
 */
static bool ends_set(struct deal *deal, uint32_t end)
{
        bool ends = deal->reading & SHORT_ONES_END_WITH_THE_FIRST_TOO_MANY, too_many = deal->ended;
        const struct share *first = NULL;
        uint32_t begin = end;

        while (begin && deal->shares[begin - 1].set == deal->shares[end - 1].set)
                begin--;
        for (uint32_t i = begin; i < end; i++) {
                const struct share *share = &deal->shares[i];

                if (!is_short(deal, share) || share->taken || !fits(deal, share))
                        continue;
                if (!ends && !is_one_too_many(deal, share))
                        return false;
                first = first ? first : share;
                too_many |= share->part == first->part && is_one_too_many(deal, share);
        }
        deal->ended = ends && (deal->ended || first);
        return !first || too_many;
}

static bool deals_rank(struct deal deal, uint64_t from);

/* Deals to all requests of the rank that were not taken, in order; then to the next rank. */
static bool deals_rest(struct deal deal)
{
        for (uint32_t i = 0; i < deal.count; i++) {
                const struct share *share = &deal.shares[i];

                if (share->rank != deal.rank || share->taken)
                        continue;
                if (!is_given(&deal, share))
                        return false;
                deal.left = left_after(&deal, share);
        }
        return deals_rank(deal, deal.rank + 1);
}

/* The short ones from here on, and all that comes after them. */
static bool deals_short(struct deal deal, uint32_t at)
{
        struct share *share = &deal.shares[at];
        struct deal next;

        if (at && (at == deal.count || share->set != share[-1].set) && !ends_set(&deal, at))
                return false;
        if (at == deal.count)
                return deals_rest(deal);
        if (deal.ended || !is_short(&deal, share) || !fits(&deal, share) ||
            is_one_too_many(&deal, share) || !is_given(&deal, share))
                return deals_short(deal, at + 1);

        next = deal;
        next.left = left_after(&deal, share);
        next.taken +=
                deal.reading & WHAT_HAS_NO_ROOM_COUNTS_NOT ? share->got : due_of(&deal, share);
        share->taken = true;
        if (deals_short(next, at + 1))
                return true;
        share->taken = false;
        return deals_short(deal, at + 1); /* others of its set were before it */
}

/* Whether this reading explains the rows of the first rank from here on, and of those after it. */
static bool deals_rank(struct deal deal, uint64_t from)
{
        deal.rank = SIM_NEVER;
        for (uint32_t i = 0; i < deal.count; i++)
                if (deal.shares[i].rank >= from && deal.shares[i].rank < deal.rank)
                        deal.rank = deal.shares[i].rank;
        if (deal.rank == SIM_NEVER)
                return true;
        deal.of = deal.reading & QUARTER_OF_WHAT_IS_LEFT ? deal.left : deal.rows;
        if (deal.reading & HALF_FOR_EACH_RANK)
                deal.taken = 0;
        deal.ended = false;
        return deals_short(deal, 0);
}

static bool is_in_order(struct share *shares, uint32_t count, uint32_t rows)
{
        for (unsigned reading = 0; reading < READINGS; reading++) {
                struct deal deal = {
                        .shares = shares,
                        .count = count,
                        .rows = rows,
                        .reading = reading,
                        .left = rows,
                };

                if (deals_rank(deal, 0))
                        return true;
        }
        return false;
}

void audit_order(struct sim *sim, const uint64_t *space)
{
        struct share shares[SIM_REQUESTS];
        uint32_t count = list(sim, space, shares), rows = sim->conf.rows, used = 0, most;
        bool anybody = false, decodes = false, shrunk = false, fetched = false;

        each_request(sim, r)
        {
                if (!r->admitted || r->decided)
                        continue;
                if (!audit_reads(r) || was_asked(sim, r))
                        rows -= r->planned - r->planned_before;
                decodes |= !audit_reads(r) && r->planned > r->planned_before;
                shrunk |= r->planned < r->known && audit_seemed_short(sim, r);
        }
        for (uint32_t i = 0; i < sim->plan.move_count; i++)
                fetched |= sim->plan.moves[i].to < sim->conf.blocks;
        /*
         * A request that waits for blocks from the swap leaves rows to others, and whether it is
         * short before they come is open.
         */
        if (fetched || shrunk)
                return;
        for (uint32_t i = 0; i < count; i++) {
                if (audit_no_page_left(sim, shares[i].request))
                        return;
                anybody |= shares[i].part != WHOLE;
                used += shares[i].got;
        }
        if (!anybody)
                return;
        most = rows;
        if ((sim->conf.token_gap_ns && decodes) || audit_rows_for_moves(sim))
                rows = used;
        if (!audit_rows_for_moves(sim))
                most = rows;
        for (; rows <= most; rows++) /* blocks from the swap may have taken the others */
                if (is_in_order(shares, count, rows))
                        return;
        sim_must(sim, false, "prompts are not read in their order; %s is left with %u of %u rows",
                 shares[0].request->name, shares[0].got, shares[0].due);
}
