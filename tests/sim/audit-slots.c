/*
 * The auditor of slots: which requests were admitted, which had to give way, which were not
 * admitted, and was there a reason?
 *
 * The auditor follows the queue slot by slot.  It can see the plan's decision about the next in the
 * queue.  Three facts sometimes cannot be seen: how many of the preempted requests were preempted
 * for it, whether it begins like one that is being read, and, if it was not admitted, whether the
 * blocks found for it make it too much for its user.  Then every way is tried, and one of them
 * must lead to the actual result.
 *
 * The way found need not be the real one.  If a request is admitted after a choice whose other
 * ways were not all tried, it may have come in another order.  That is noted.
 */
#include "tests/sim/audit-walk.h"

#include <stdio.h>

/* Why the way that led farthest does not lead there. */
static char reason[256];
static uint32_t reason_at; /* the number of events after which the reason was noted */

#define blame(walk, ...)                                                                           \
        (reason[0] && reason_at >= (walk)->event_count                                             \
                 ? false                                                                           \
                 : (reason_at = (walk)->event_count,                                               \
                    snprintf(reason, sizeof(reason), __VA_ARGS__), false))

static bool is_admitted_now(const struct walk *walk, const struct sim_request *request)
{
        return request->core.state != REQUEST_WAITING ||
               request->core.preemptions > walk_spot(walk, request)->preemptions;
}

static uint32_t count_passed(const struct walk *walk)
{
        uint32_t count = 0;

        each_request(walk->sim, r) count += walk_waits(walk, r) && walk_is_passed(walk, r->uid);
        return count;
}

/* The end of a way. */
static bool is_as_told(const struct walk *walk, struct walk *ret_walk)
{
        uint32_t passed = count_passed(walk);
        struct sim *sim = walk->sim;
        struct sched_counts counts;

        each_request(sim, r)
        {
                const struct walk_spot *spot = walk_spot(walk, r);

                if (r->decided)
                        continue;
                if (spot->in && spot->preempting && r->core.state != REQUEST_PREEMPTING)
                        return blame(walk, "%s is to give way, and is %s", r->name,
                                     request_state_name(r->core.state));
                if (spot->in && !spot->preempting && r->core.state != REQUEST_PREFILL &&
                    r->core.state != REQUEST_DECODE)
                        return blame(walk, "%s keeps its slot, and is %s", r->name,
                                     request_state_name(r->core.state));
                if (!spot->in && r->core.state != REQUEST_WAITING)
                        return blame(walk, "%s is admitted before its turn", r->name);
                if (spot->in && spot->reserves != r->core.reserves)
                        return blame(walk, "%s %s towards the reserved part", r->name,
                                     spot->reserves ? "counts" : "does not count");
                if (spot->preemptions != r->core.preemptions)
                        return blame(walk, "%s was preempted %u times, it says %u", r->name,
                                     spot->preemptions, r->core.preemptions);
        }
        sched_count(sim->sched, &counts);
        if (counts.passed_over != passed && !(walk->idle && counts.passed_over == sim->passed_over))
                return blame(walk, "%u are passed over, it says %u", passed, counts.passed_over);
        *ret_walk = *walk;
        return true;
}

static void preempt(struct walk *walk, struct sim_request *request)
{
        struct walk_spot *spot = walk_spot(walk, request);

        bool unanswered = walk_is_unanswered(walk, request, walk->sim->now_ns);

        walk->events[walk->event_count++] =
                (struct walk_event){ .request = request, .unanswered = unanswered };
        spot->preemptions++;
        spot->unanswered += unanswered;
        if (walk_is_in_flight(request) && !spot->fresh)
                spot->preempting = true;
        else
                spot->in = spot->moved = spot->fresh = spot->reserves = false;
}

static void admit(struct walk *walk, struct sim_request *request)
{
        struct walk_spot *spot = walk_spot(walk, request);
        uint32_t granted = walk_class(walk, request);

        walk->events[walk->event_count++] = (struct walk_event){
                .request = request,
                .in = true,
                .open = walk->open,
        };
        walk->grounds[walk_ground(walk, request, walk_charge(walk, request->uid, request).least)]++;
        spot->granted = granted;
        spot->promised = walk_promise(walk, request);
        spot->reserves = walk_reserves(walk, request);
        spot->in = spot->fresh = true;
        spot->moved = false;
        spot->turn = walk->turns++;
        walk->admitted++;

        each_request(walk->sim, r)
        {
                if (r->uid == request->uid && walk_waits_for_others(walk, r))
                        return;
        }
        /* Its user waits no more, so others may have more than half: all are asked again. */
        walk->passed_count = 0;
        each_request(walk->sim, r) walk_spot(walk, r)->left = false;
}

/* Whether `count` victims may have been preempted for it: one less would not have been enough. */
static bool is_needed(const struct walk *walk, const struct sim_request *request,
                      struct sim_request *const *victims, uint32_t count)
{
        if (!count)
                return true;
        if (count > 1 && walk_is_stalled_victim(walk, victims[count - 1], walk->sim->now_ns))
                return true; /* in which order is not known */
        return walk_fits(walk, request, victims, count - 1) != WALK_YES ||
               walk_is_held_back(walk, request, victims, count - 1) != WALK_NO;
}

static bool walk_on(const struct walk *before, struct walk *ret_walk);

/* With what it holds, which is seen as far as its rows are. */
static bool is_too_much(const struct walk *walk, const struct sim_request *request)
{
        uint64_t then = walk_charge(walk, request->uid, request).least;

        return walk_ground(walk, request, then) >= SIM_OVER_SLOTS;
}

/* Its user gets nothing until the next look at the queue. */
static bool walk_pass(const struct walk *before, struct sim_request *next, struct walk *ret_walk)
{
        struct walk walk = *before;

        walk.grounds[walk_ground(before, next, walk_then(before, next).most)]++;
        walk.passed_uids[walk.passed_count++] = next->uid;
        return walk_on(&walk, ret_walk);
}

/* Lets the next one in, now that the victims it needs are preempted. */
static bool walk_admit(const struct walk *before, struct sim_request *next, struct walk *ret_walk)
{
        struct walk walk = *before;

        if (is_too_much(before, next))
                return blame(before, "%s is admitted, and its user has too much", next->name);
        if (!walk_free_slots(before)) /* the victims still have rows in flight */
                return blame(before, "%s is admitted, and there is no slot for it", next->name);
        if (walk_is_held_back(before, next, NULL, 0) == WALK_YES)
                return blame(before, "%s is admitted, and the pool will not hold it", next->name);
        admit(&walk, next);
        return walk_on(&walk, ret_walk);
}

#define GROUP_MOST 10u /* stalled that long, of which every choice is tried; 8 have been seen */

/*
 * The possible choices among requests that gave way.  They are taken in their order, as many as
 * needed.  Requests that were stalled that long come first, and no order of them is promised,
 * so any subset of them is tried.  Returns how many are chosen; 0: there is no such choice.
 */
static uint32_t choose(const struct walk *walk, struct sim_request *const *victims, uint32_t count,
                       uint32_t choice, struct sim_request **ret_chosen)
{
        uint32_t group = 0, chosen = 0, all;

        while (group < count && group < GROUP_MOST &&
               walk_is_stalled_victim(walk, victims[group], walk->sim->now_ns) &&
               walk_gave_way(walk, victims[group]) && !walk_is_in_flight(victims[group]))
                group++;
        all = choice >> group ? group + 1 + choice - (1u << group) : group;
        /* a victim with rows in flight may not be needed after all */
        if (all > count || !walk_gave_way(walk, victims[all - 1]))
                return 0;
        for (uint32_t i = 0; i < all; i++)
                if (choice >> group || choice >> i & 1)
                        ret_chosen[chosen++] = victims[i];
        return chosen;
}

/* Victims that may have given way to a request that is admitted; choice 0: none. */
struct gave {
        bool own_only;
        uint32_t choice;
};
#define GAVE_MOST (1 + 2 * ((1u << GROUP_MOST) + SIM_REQUESTS))

static uint32_t list_gave(const struct walk *walk, struct sim_request *next, bool own_only,
                          struct gave *ret_gave)
{
        struct sim_request *victims[SIM_REQUESTS], *chosen[SIM_REQUESTS];
        uint32_t most = walk_victims(walk, next, own_only, walk->sim->now_ns, victims);
        uint32_t count = 0, n;

        for (uint32_t choice = 1; most && (n = choose(walk, victims, most, choice, chosen));
             choice++)
                if (walk_fits(walk, next, chosen, n) != WALK_NO && is_needed(walk, next, chosen, n))
                        ret_gave[count++] = (struct gave){ own_only, choice };
        return count;
}

static void preempt_chosen(struct walk *walk, struct sim_request *next, const struct gave *gave)
{
        struct sim_request *victims[SIM_REQUESTS], *chosen[SIM_REQUESTS];
        uint32_t most = walk_victims(walk, next, gave->own_only, walk->sim->now_ns, victims);
        uint32_t count = gave->choice ? choose(walk, victims, most, gave->choice, chosen) : 0;

        for (uint32_t i = 0; i < count; i++)
                preempt(walk, chosen[i]);
}

/* The next was admitted: with a slot that was free, or instead of others. */
static bool walk_in(const struct walk *before, struct sim_request *next, struct walk *ret_walk)
{
        enum walk_answer above = walk_is_above_half(before, next);
        struct gave gave[GAVE_MOST];
        uint32_t count = 0;

        if (walk_fits(before, next, NULL, 0) != WALK_NO)
                gave[count++] = (struct gave){ 0 };
        if (walk_may_preempt(before) && above != WALK_YES)
                count += list_gave(before, next, false, &gave[count]);
        if (walk_may_preempt(before) && above != WALK_NO)
                count += list_gave(before, next, true, &gave[count]);
        for (uint32_t i = 0; i < count; i++) {
                struct walk walk = *before;

                walk.open |= count > 1;
                preempt_chosen(&walk, next, &gave[i]);
                if (walk_admit(&walk, next, ret_walk))
                        return true;
        }
        return blame(before, "%s is admitted, and there is no space for it", next->name);
}

/* It holds something that is public, or may. */
static bool has_public(const struct walk *walk, const struct sim_request *request)
{
        if (!walk_spot(walk, request)->moved)
                return request->core.publish || request->core.sees_public;
        for (uint32_t i = 0; i < request->block_count; i++)
                if (prefix_is_public(walk->sim->queue_domain[request->blocks[i]]))
                        return true;
        return false;
}

/*
 * The victims gave way, and just by that it became too much for its user: they no longer share
 * public blocks, or they took back what they were about to publish.
 */
static bool walk_in_vain(const struct walk *before, struct sim_request *next,
                         struct sim_request *const *victims, uint32_t count, struct walk *ret_walk)
{
        struct walk walk = *before;
        bool public = false;

        walk.open = true; /* it may be the end of the queue as well */
        for (uint32_t n = 1; n <= count; n++) {
                public |= has_public(before, victims[n - 1]);
                preempt(&walk, victims[n - 1]);
                if (!public || walk_fits(before, next, victims, n) == WALK_NO ||
                    !is_needed(before, next, victims, n) || walk_is_over(&walk, next) == WALK_NO ||
                    !walk_pass(&walk, next, ret_walk))
                        continue;
                ret_walk->in_vain++;
                return true;
        }
        return false;
}

/* The next waits for others to give way, or there is none; and all behind it. */
static bool walk_no_further(const struct walk *before, struct sim_request *next, bool own_only,
                            struct walk *ret_walk)
{
        struct sim_request *victims[SIM_REQUESTS];
        uint32_t count = 0, n = 0;
        struct walk walk = *before;
        bool is_held_back =
                next->core.held_back && walk_is_held_back(before, next, NULL, 0) != WALK_NO;
        bool in_flight = false;

        if (walk_may_preempt(before))
                count = walk_victims(before, next, own_only, before->sim->now_ns, victims);
        walk.blocked = next;
        if (walk_fits(before, next, victims, 0) == WALK_YES && !is_held_back)
                return blame(before, "%s may have a slot, and waits", next->name);
        while (n < count && walk_gave_way(before, victims[n])) {
                in_flight |= walk_is_in_flight(victims[n]);
                preempt(&walk, victims[n++]);
        }
        if (n && walk_in_vain(before, next, victims, n, ret_walk))
                return true;
        if (!n) {
                for (uint32_t i = 1; i <= count; i++)
                        if (walk_fits(before, next, victims, i) == WALK_YES &&
                            walk_is_held_back(before, next, victims, i) == WALK_NO)
                                return blame(before, "%s waits, and %s could give way", next->name,
                                             victims[i - 1]->name);
        } else if (!in_flight) {
                return blame(before, "%s gives way, and %s is not admitted", victims[0]->name,
                             next->name);
        } else if (walk_fits(before, next, victims, n) == WALK_NO ||
                   !is_needed(before, next, victims, n)) {
                return blame(before, "%u give way to %s in vain", n, next->name);
        }
        return is_as_told(&walk, ret_walk);
}

/*
 * Enough requests could give way to it.  But then it would be reserved and be promised more, which
 * is too much for its user, with those of its own that would give way.
 */
static bool would_be_over(const struct walk *before, const struct sim_request *next, bool own_only)
{
        struct sim_request *victims[SIM_REQUESTS];
        struct walk then = *before;
        uint32_t count = 0;

        if (walk_may_preempt(before) && before->sim->conf.reserve_max)
                count = walk_victims(before, next, own_only, before->sim->now_ns, victims);
        for (uint32_t n = 1; n <= count; n++) {
                walk_spot(&then, victims[n - 1])->reserves = false;
                if (walk_fits(before, next, victims, n) != WALK_NO &&
                    walk_is_held_back(before, next, victims, n) != WALK_YES &&
                    walk_is_over(&then, next) != WALK_NO)
                        return true;
        }
        return false;
}

/*
 * Handles one request: passed over, admitted, or the end of the queue.  Some of this cannot be
 * seen from outside.  While another way remains untried, requests from here on may have come in
 * another order.
 */
static bool walk_ask(const struct walk *before, struct sim_request *next, struct walk *ret_walk)
{
        enum walk_answer over = walk_is_over(before, next),
                         above = walk_is_above_half(before, next);
        struct walk walk = *before;

        if (over == WALK_YES)
                return walk_pass(before, next, ret_walk);
        if ((above != WALK_YES && would_be_over(before, next, false)) ||
            (above != WALK_NO && would_be_over(before, next, true)))
                over = WALK_PERHAPS;
        walk.open |= over == WALK_PERHAPS;
        if (is_admitted_now(before, next)) {
                if (walk_in(&walk, next, ret_walk))
                        return true;
        } else {
                if (above != WALK_YES && walk_no_further(&walk, next, false, ret_walk))
                        return true;
                if (above != WALK_NO && walk_no_further(&walk, next, true, ret_walk))
                        return true;
        }
        return over == WALK_PERHAPS && walk_pass(before, next, ret_walk);
}

static bool walk_on(const struct walk *before, struct walk *ret_walk)
{
        struct walk walk = *before;
        struct sim_request *next = NULL;
        bool doubtful = false;

        if (walk.admitted < walk.admitted_max)
                next = walk_next(&walk, &doubtful);
        if (!next)
                return is_as_told(&walk, ret_walk);
        if (doubtful) {
                walk_spot(&walk, next)->left = walk.open = true;
                if (walk_on(&walk, ret_walk))
                        return true;
                walk = *before;
                walk_spot(&walk, next)->sure = true;
                return walk_on(&walk, ret_walk);
        }
        return walk_ask(&walk, next, ret_walk);
}

/*
 * A batch begins when no request has a slot, and either enough wait or one has waited long
 * enough.
 */
static uint32_t batch_of(struct sim *sim)
{
        uint32_t waiting = 0;
        bool over = false;

        each_request(sim, r)
        {
                if (r->admitted)
                        return 0;
                waiting += !r->decided;
                over |= !r->decided && sim->now_ns - r->since_ns >= sim->conf.batch_window_ns;
        }
        return over || waiting >= sim->conf.batch_size ? sim->conf.batch_size : 0;
}

void audit_release(struct sim *sim, struct sim_request *request)
{
        for (uint32_t i = 0; i < request->block_count; i++)
                sim->block_table_count[request->blocks[i]]--;
        if (request->slot != SEQUENCE_NO_SLOT)
                sim->slot_owner[request->slot] = NULL;
        if (request->moved && request->planned > request->computed)
                request->computed = request->planned;
        if (request->computed_most < (request->moved ? request->planned : request->known))
                request->computed_most = request->moved ? request->planned : request->known;
        request->fetched = 0;
        request->admitted = request->moved = request->preempting = request->reserves = false;
        request->block_count = request->planned = request->promised = 0;
        request->lacks_block = false;
        request->idle_ns = sim->now_ns;
        request->slot = SEQUENCE_NO_SLOT;
}

/* Enters the findings of the walk into the books. */
static void take_over(struct sim *sim, const struct walk *walk)
{
        for (uint32_t i = 0; i < walk->event_count; i++) {
                struct sim_request *request = walk->events[i].request;

                if (walk->events[i].in) {
                        request->admitted = true;
                        request->turn = sim->turns++;
                        request->turn_open = walk->events[i].open;
                        request->admitted_step = sim->step_count;
                        request->idle_ns = request->slot_ns = sim->now_ns;
                        request->granted = walk_spot(walk, request)->granted;
                        audit_account(sim, request)->turn_ns[request->priority] = sim->now_ns;
                        request->promised = walk_spot(walk, request)->promised;
                        request->reserves = walk_spot(walk, request)->reserves;
                        request->known = request->core.sequence.token_count;
                        request->planned = request->came = 0;
                        request->came_since = sim->swapped_in;
                        request->slot = SEQUENCE_NO_SLOT;
                        /* There was space, or it would not be admitted. */
                        request->stalled_first = request->stalled_surely = SIM_NEVER;
                        if (!request->preemptions)
                                request->cached = request->core.sequence.cached_count;
                        sim->resumed += request->preemptions > 0;
                } else {
                        bool unanswered = walk->events[i].unanswered;

                        sim->worn += !unanswered && request->preemptions - request->unanswered >=
                                                            sim->conf.preemptions_max;
                        sim->unanswered += unanswered;
                        request->unanswered += unanswered;
                        request->preemptions++;
                        sim->preempted++;
                        if (walk_spot(walk, request)->preempting)
                                request->preempting = true;
                        else
                                audit_release(sim, request);
                }
        }
        for (int ground = 0; ground < SIM_GROUND_N; ground++)
                sim->ground_counts[ground] += walk->grounds[ground];
        sim->late_over += walk->in_vain;
        sim->blocked = walk->blocked;
        each_request(sim, r)
        {
                if (!r->admitted || r->slot != SEQUENCE_NO_SLOT)
                        continue;
                r->slot = r->core.sequence.slot;
                sim_must(sim, r->slot < sim->conf.slots && !sim->slot_owner[r->slot],
                         "%s gets slot %u, which is taken", r->name, r->slot);
                sim->slot_owner[r->slot] = r;
        }
}

void walk_begin(struct walk *walk, struct sim *sim)
{
        *walk = (struct walk){ .sim = sim, .turns = sim->turns, .admitted_max = UINT32_MAX };
        each_request(sim, r)
        {
                *walk_spot(walk, r) = (struct walk_spot){
                        .in = r->admitted,
                        .preempting = r->preempting,
                        .moved = r->moved,
                        .preemptions = r->preemptions,
                        .unanswered = r->unanswered,
                        .promised = r->promised,
                        .reserves = r->reserves,
                        .turn = r->turn,
                };
        }
        walk_domains(walk);
}

static void audit_line(struct sim *sim)
{
        static struct walk walk, way; /* large */

        walk_begin(&walk, sim);
        if (sim->flight_count == sim->conf.depth || sim->held)
                walk.admitted_max = 0, walk.idle = true;
        else if (sim->conf.batch_size)
                walk.admitted_max = batch_of(sim);
        reason[0] = 0;
        sim_must(sim, walk_on(&walk, &way), "%s", reason);
        if (!way.idle)
                sim->passed_over = count_passed(&way);
        take_over(sim, &way);
}

void audit_slots(struct sim *sim)
{
        sim->blocked = NULL;
        each_request(sim, r)
        {
                /* Blocks that were awaited from the swap may have left it, or come back by now. */
                if (r->admitted && !r->moved && sim->conf.prefix.swap_blocks && !r->preemptions)
                        r->cached = r->core.sequence.cached_count;
                if (r->preempting && !r->in_flight && !r->decided)
                        audit_release(sim, r);
        }
        audit_growth(sim);
        audit_line(sim);
        audit_promises(sim);
        each_request(sim, r)
        {
                if (!r->admitted && !r->decided)
                        sim_must(sim, !r->in_flight, "%s waits with rows in flight", r->name);
                sim_must(sim, r->core.sequence.slot == (r->admitted ? r->slot : SEQUENCE_NO_SLOT),
                         "the slot of %s moves", r->name);
                sim_must(sim, r->core.preemptions == r->preemptions,
                         "%s was preempted %u times, it says %u", r->name, r->preemptions,
                         r->core.preemptions);
                sim_must(sim, r->core.unanswered == r->unanswered,
                         "%s was preempted %u times without an answer, it says %u", r->name,
                         r->unanswered, r->core.unanswered);
                sim_must(sim,
                         !(r->admitted || r->preemptions) ||
                                 r->core.sequence.cached_count == r->cached,
                         "what %s found first was %u, not %u", r->name, r->cached,
                         r->core.sequence.cached_count);
        }
}
