/*
 * The auditor of growth: which running requests are promised one more block, which are preempted
 * for them, and which must wait for a block?
 *
 * It follows sched.h decode by decode, in the order of slots, with the blocks that nobody has and
 * nobody was promised.  Each decode that needs a block gets it if there is one and its user may
 * have it.  Else the victim must be a request that no other one goes before.  Blocks of requests
 * that got a slot and no row so far cannot be seen, so some answers are "perhaps"; then what the
 * requests say about themselves decides.
 */
#include "tests/sim/audit-walk.h"

/* The request was preempted in this plan, and has given up the slot that the books know. */
static bool has_left(const struct walk *walk, const struct sim_request *request)
{
        return request->core.preemptions > walk_spot(walk, request)->preemptions &&
               request->core.state != REQUEST_PREEMPTING;
}

static bool runs(const struct walk *walk, const struct sim_request *request)
{
        const struct walk_spot *spot = walk_spot(walk, request);

        return spot->in && !spot->preempting && !request->decided;
}

static bool is_told_more(const struct walk *walk, const struct sim_request *request)
{
        return !has_left(walk, request) &&
               request->core.promised > walk_spot(walk, request)->promised;
}

/* In this plan it was preempted because blocks ran out. */
static bool is_told_lost(const struct sim_request *request)
{
        return request->core.blocks_lost > request->blocks_lost;
}

static bool is_anybody_told_lost(struct sim *sim)
{
        each_request(sim, r)
        {
                if (is_told_lost(r))
                        return true;
        }
        return false;
}

static bool is_beyond(const struct sim_request *request, uint32_t position)
{
        return position < sim_positions(request) && position / BLOCK_POSITIONS >= request->promised;
}

/* It waits for a mask or for a token, so it has no next row, and lacks no block for that. */
static bool is_waiting(const struct sim_request *request)
{
        return request->unready || request->held;
}

/*
 * Whether its next row needs a block that it was not promised.  A stalled request may have had its
 * row before growth; then the next row is the one after it.
 */
static enum walk_answer needs(const struct walk *walk, const struct sim_request *request)
{
        uint32_t rows = 0;

        if (!runs(walk, request) || !request->moved || is_waiting(request))
                return WALK_NO;
        if (request->planned >= request->known && is_beyond(request, request->planned))
                return WALK_YES;
        if (!request->asked_first || has_left(walk, request))
                return WALK_NO;
        for (uint32_t i = 0; i < walk->sim->plan.row_count; i++)
                rows += walk->sim->plan.rows[i].sequence == &request->core.sequence;
        return rows && request->planned + rows >= request->known &&
                               is_beyond(request, request->planned + rows)
                       ? WALK_PERHAPS
                       : WALK_NO;
}

/*
 * Of those whose order is not known, first those that got a block, last those without one.  One
 * that got a block, and then lost it to another one, was before that one.
 */
static unsigned luck(const struct walk *walk, const struct sim_request *request)
{
        if (is_told_lost(request) && request->core.state == REQUEST_WAITING &&
            request->core.promised > walk_spot(walk, request)->promised)
                return 0;
        return is_told_more(walk, request) ? 1 : is_told_lost(request) ? 2 : 3;
}

static bool grows_before(const struct walk *walk, const struct sim_request *a,
                         const struct sim_request *b)
{
        if (a->turn_open && b->turn_open && a->admitted_step == b->admitted_step &&
            luck(walk, a) != luck(walk, b))
                return luck(walk, a) < luck(walk, b);
        return a->turn < b->turn;
}

static uint32_t list(const struct walk *walk, struct sim_request **ret_requests)
{
        uint32_t count = 0;

        each_request(walk->sim, r)
        {
                uint32_t at = count;

                if (needs(walk, r) == WALK_NO)
                        continue;
                for (; at && grows_before(walk, r, ret_requests[at - 1]); at--)
                        ret_requests[at] = ret_requests[at - 1];
                ret_requests[at] = r;
                count++;
        }
        return count;
}

/* Its user has several slots, and all blocks that it may have. */
static enum walk_answer is_limited(const struct walk *walk, const struct sim_request *request)
{
        uint64_t limit = walk->sim->conf.user_blocks * WALK_PARTS;
        struct walk_charge charge;

        if (!limit || walk_slots_of(walk, request->uid) < 2)
                return WALK_NO;
        charge = walk_charge(walk, request->uid, NULL);
        if (charge.least >= limit)
                return WALK_YES;
        return charge.most + WALK_PARTS > limit ? WALK_PERHAPS : WALK_NO;
}

static enum walk_answer is_none_left(const struct walk *walk)
{
        struct walk_range left = walk_available(walk);

        sim_must(walk->sim, left.most >= 0, "%d blocks are promised twice", -(int)left.most);
        return left.most < 1 ? WALK_YES : left.least < 1 ? WALK_PERHAPS : WALK_NO;
}

/* Whether `a` is surely preempted before `b`, if both may be and both free something or neither. */
static bool is_surely_before(const struct walk *walk, const struct sim_request *a,
                             const struct sim_request *b)
{
        struct walk_charge first, second;

        if (a->uid == b->uid)
                return a->priority != b->priority ? a->priority > b->priority
                                                  : a->arrival > b->arrival;
        first = walk_charge(walk, a->uid, NULL);
        second = walk_charge(walk, b->uid, NULL);
        return first.least > second.most ||
               (first.least == first.most && second.least == second.most &&
                first.least == second.least && a->uid > b->uid);
}

static bool is_better_victim(const struct walk *walk, const struct sim_request *a,
                             const struct sim_request *b)
{
        enum walk_answer first = walk_frees(walk, a), second = walk_frees(walk, b);

        if (first == WALK_YES && second == WALK_NO)
                return true;
        return (first == WALK_YES || second == WALK_NO) && is_surely_before(walk, a, b);
}

static bool may_be_victim(const struct walk *walk, const struct sim_request *request,
                          const struct sim_request *of_user)
{
        return runs(walk, request) && !walk_is_reserved(walk, request) &&
               (!of_user || request->uid == of_user->uid);
}

/* The candidate that goes before this one, or NULL. */
static struct sim_request *better_victim(const struct walk *walk, const struct sim_request *victim,
                                         const struct sim_request *of_user)
{
        each_request(walk->sim, r)
        {
                if (r != victim && may_be_victim(walk, r, of_user) &&
                    is_better_victim(walk, r, victim))
                        return r;
        }
        return NULL;
}

/*
 * One of those that were preempted because blocks ran out: of the same user, if `of_user` is not
 * NULL.  If several may have been first, one with rows in flight was last: after it no other one is
 * chosen.  One that was promised a block in this plan was preempted after that.  Returns NULL if
 * none was, or none in its turn.
 */
static struct sim_request *find_victim(const struct walk *walk, const struct sim_request *of_user)
{
        struct sim_request *victim = NULL;

        each_request(walk->sim, r)
        {
                if (is_told_lost(r) && !is_told_more(walk, r) && may_be_victim(walk, r, of_user) &&
                    !better_victim(walk, r, of_user) && (!victim || walk_is_in_flight(victim)))
                        victim = r;
        }
        return victim;
}

static void lose(struct walk *walk, struct sim_request *victim)
{
        struct sim *sim = walk->sim;
        struct walk_spot *spot = walk_spot(walk, victim);

        victim->preemptions++;
        victim->blocks_lost++;
        spot->preemptions++;
        sim->preempted++;
        sim->blocks_lost++;
        if (walk_is_in_flight(victim)) {
                victim->preempting = spot->preempting = true;
                return;
        }
        audit_release(sim, victim);
        spot->in = spot->moved = spot->reserves = false;
}

/* For whom would a victim be chosen?  Both may be possible, if it cannot be seen. */
static struct sim_request *choose(const struct walk *walk, const struct sim_request *request,
                                  enum walk_answer limited, enum walk_answer none_left)
{
        struct sim_request *victim = NULL;

        if (limited != WALK_NO)
                victim = find_victim(walk, request);
        if (victim)
                walk->sim->limited++;
        if (!victim && limited != WALK_YES && none_left != WALK_NO)
                victim = find_victim(walk, NULL);
        return victim;
}

static void tell_wrong_victim(const struct walk *walk, const struct sim_request *request)
{
        each_request(walk->sim, r)
        {
                if (!is_told_lost(r))
                        continue;
                sim_must(walk->sim, !walk_is_reserved(walk, r),
                         "%s lacks a block, and %s is preempted, which is reserved", request->name,
                         r->name);
                sim_must(walk->sim, false, "%s lacks a block, and %s is preempted before others",
                         request->name, r->name);
        }
        sim_must(walk->sim, false, "%s lacks a block, and nobody is preempted", request->name);
}

static void promise_more(struct walk *walk, struct sim_request *request)
{
        walk_spot(walk, request)->promised++;
        request->promised++;
        request->lacks_block = false;
        walk->sim->grown++;
}

/* One decode that needs a block: it gets it, or others give way, or it waits. */
static void grow(struct walk *walk, struct sim_request *request)
{
        struct sim *sim = walk->sim;

        while (runs(walk, request)) {
                enum walk_answer limited = is_limited(walk, request), none = is_none_left(walk);
                bool told = is_told_more(walk, request);
                struct sim_request *victim;

                if (limited == WALK_NO && none == WALK_NO) {
                        sim_must(sim, told || has_left(walk, request),
                                 "%s is not promised the block that it needs", request->name);
                        promise_more(walk, request);
                        return;
                }
                victim = walk_is_preempting(walk) ? NULL : choose(walk, request, limited, none);
                if (victim) {
                        lose(walk, victim);
                        continue;
                }
                /* There was one left, as it seems; it may have given way to a waiting one since. */
                if ((told || has_left(walk, request)) && limited != WALK_YES && none != WALK_YES) {
                        promise_more(walk, request);
                        return;
                }
                if (walk_is_preempting(walk)) {
                        sim_must(sim, !told, "%s is promised a block, and %s", request->name,
                                 none == WALK_YES ? "none is left" : "its user has too many");
                        request->lacks_block = true;
                        sim->lacked++;
                        return;
                }
                tell_wrong_victim(walk, request);
        }
}

void audit_growth(struct sim *sim)
{
        static struct walk walk; /* large */
        struct sim_request *requests[SIM_REQUESTS];
        bool idle = sim->held || sim->flight_count == sim->conf.depth;
        uint32_t count;

        walk_begin(&walk, sim);
        count = idle ? 0 : list(&walk, requests);
        each_request(sim, r) r->lacks_block &= idle || !is_waiting(r);
        for (uint32_t i = 0; i < count; i++) {
                if (needs(&walk, requests[i]) == WALK_YES || is_told_more(&walk, requests[i]) ||
                    requests[i]->core.lacks_block || is_anybody_told_lost(sim))
                        grow(&walk, requests[i]);
        }
        each_request(sim, r) sim_must(sim, r->core.blocks_lost == r->blocks_lost,
                                      "%s is preempted, and nobody lacks a block", r->name);
}

/* Its own word is that of the books. */
void audit_promises(struct sim *sim)
{
        bool idle = sim->held || sim->flight_count == sim->conf.depth, runs = false;
        uint64_t reserved = 0;

        each_request(sim, r)
        {
                runs |= r->admitted && !r->decided;
                reserved += r->reserves ? r->worst : 0;
                sim_must(sim, r->core.reserves == r->reserves,
                         "%s %s towards the reserved part, it says otherwise", r->name,
                         r->reserves ? "counts" : "does not count");
                sim->beyond += r->admitted && r->admitted_step == sim->step_count && !r->reserves &&
                               !sim->conf.learned[r->priority] && !sim->conf.batch_size &&
                               r->preemptions - r->unanswered < sim->conf.preemptions_max;
        }
        sim_must(sim, !sim->conf.reserve_max || reserved <= sim->conf.reserve_max,
                 "%u blocks are reserved, of at most %u", (unsigned)reserved,
                 sim->conf.reserve_max);
        each_request(sim, r)
        {
                if (r->admitted)
                        sim_must(sim, r->core.promised == r->promised,
                                 "%s was promised %u blocks, it says %u", r->name, r->promised,
                                 r->core.promised);
                if (!r->decided && !r->preempting)
                        sim_must(sim, r->core.lacks_block == r->lacks_block,
                                 "%s %s a block, and says otherwise", r->name,
                                 r->lacks_block ? "lacks" : "does not lack");
                sim_must(sim, r->blocks_lost <= sim->conf.preemptions_max,
                         "%s lost its blocks %u times", r->name, r->blocks_lost);
                if (idle || r->decided || !r->core.held_back)
                        continue;
                sim->held_back++;
                sim_must(sim, !r->admitted && runs, "%s is held back, and has no reason to be",
                         r->name);
        }
}
