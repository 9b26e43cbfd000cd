/*
 * The auditor of slots: who was let in, who had to give way, who was not let in,
 * and was there a reason?
 *
 * The line is walked slot by slot.  What a plan did to the next in line is seen; how
 * many had to be parked for it, among those that were, is sometimes not, nor whether it
 * begins as one that is being read.  Then every way is tried, and one must lead to
 * what is.
 */
#include "tests/sim/walk.h"

#include <stdio.h>

/* Why the way that led farthest does not lead there. */
static char reason[256];
static uint32_t reason_at; /* after so many events */

#define blame(walk, ...)                                                                           \
        (reason[0] && reason_at >= (walk)->event_count                                             \
                 ? false                                                                           \
                 : (reason_at = (walk)->event_count,                                               \
                    snprintf(reason, sizeof(reason), __VA_ARGS__), false))

static bool is_let_in(const struct walk *walk, const struct sim_request *request)
{
        return request->core.state != REQUEST_WAITING ||
               request->core.parks > walk_spot(walk, request)->parks;
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
                if (spot->in && spot->parking && r->core.state != REQUEST_PARKING)
                        return blame(walk, "%s is to give way, and is %s", r->name,
                                     request_state_name(r->core.state));
                if (spot->in && !spot->parking && r->core.state != REQUEST_PREFILL &&
                    r->core.state != REQUEST_DECODE)
                        return blame(walk, "%s keeps its slot, and is %s", r->name,
                                     request_state_name(r->core.state));
                if (!spot->in && r->core.state != REQUEST_WAITING)
                        return blame(walk, "%s is let in before its turn", r->name);
                if (spot->parks != r->core.parks)
                        return blame(walk, "%s was parked %u times, it says %u", r->name,
                                     spot->parks, r->core.parks);
        }
        sched_count(sim->sched, &counts);
        if (counts.passed_over != passed && !(walk->idle && counts.passed_over == sim->passed_over))
                return blame(walk, "%u are passed over, it says %u", passed, counts.passed_over);
        *ret_walk = *walk;
        return true;
}

static void park(struct walk *walk, struct sim_request *request)
{
        struct walk_spot *spot = walk_spot(walk, request);

        walk->events[walk->event_count++] = (struct walk_event){ .request = request };
        spot->parks++;
        if (walk_is_in_flight(request) && !spot->fresh)
                spot->parking = true;
        else
                spot->in = spot->moved = false;
}

static void let_in(struct walk *walk, struct sim_request *request)
{
        struct walk_spot *spot = walk_spot(walk, request);
        uint32_t uid = 0, users = 0;

        walk->events[walk->event_count++] = (struct walk_event){ .request = request, .in = true };
        walk->grounds[walk_ground(walk, request)]++;
        spot->in = spot->fresh = true;
        spot->moved = false;
        spot->turn = walk->turns++;
        walk->let_in++;

        each_request(walk->sim, r)
        {
                if (!walk_waits(walk, r) || (users && uid == r->uid))
                        continue;
                uid = r->uid;
                users++;
        }
        if (users == 1)
                walk->passed_count = 0;
}

/* May so many of them have been parked for it?  One less had not been enough. */
static bool is_needed(const struct walk *walk, const struct sim_request *request,
                      struct sim_request *const *victims, uint32_t count)
{
        if (!count)
                return true;
        if (count > 1 && walk_is_stalled_long(walk->sim, victims[count - 1], walk->sim->now_ns))
                return true; /* in which order is not known */
        return walk_fits(walk, request, victims, count - 1) != WALK_YES;
}

static bool walk_on(const struct walk *before, struct walk *ret_walk);

/* The next was let in: with a slot that was free, or instead of others. */
static bool walk_in(const struct walk *before, struct sim_request *next, struct walk *ret_walk)
{
        struct sim_request *victims[SIM_REQUESTS];
        uint32_t count = walk_may_park(before)
                                 ? walk_victims(before, next, before->sim->now_ns, victims)
                                 : 0;

        for (uint32_t n = 0; n <= count; n++) {
                struct walk walk = *before;

                if (n && !walk_gave_way(before, victims[n - 1]))
                        break; /* one whose rows are in flight may not be needed after all */
                if (walk_fits(before, next, victims, n) == WALK_NO ||
                    !is_needed(before, next, victims, n))
                        continue;
                for (uint32_t i = 0; i < n; i++)
                        park(&walk, victims[i]);
                let_in(&walk, next);
                if (walk_on(&walk, ret_walk))
                        return true;
        }
        /* Of those who are stalled that long, it may have been any one. */
        for (uint32_t i = 1; i < count; i++) {
                struct walk walk = *before;

                if (!walk_is_stalled_long(before->sim, victims[i], before->sim->now_ns) ||
                    !walk_gave_way(before, victims[i]) || walk_is_in_flight(victims[i]) ||
                    walk_fits(before, next, &victims[i], 1) == WALK_NO ||
                    !is_needed(before, next, &victims[i], 1))
                        continue;
                park(&walk, victims[i]);
                let_in(&walk, next);
                if (walk_on(&walk, ret_walk))
                        return true;
        }
        return blame(before, "%s is let in, and there is no room for it", next->name);
}

/* The next waits for others to give way, or there is none; and all behind it. */
static bool walk_no_further(const struct walk *before, struct sim_request *next,
                            struct walk *ret_walk)
{
        struct sim_request *victims[SIM_REQUESTS];
        uint32_t count = walk_may_park(before)
                                 ? walk_victims(before, next, before->sim->now_ns, victims)
                                 : 0;
        struct walk walk = *before;
        bool flying = false;
        uint32_t n = 0;

        walk.blocked = next;
        if (walk_fits(before, next, victims, 0) == WALK_YES)
                return blame(before, "%s may have a slot, and waits", next->name);
        while (n < count && walk_gave_way(before, victims[n])) {
                flying |= walk_is_in_flight(victims[n]);
                park(&walk, victims[n++]);
        }
        if (!n) {
                for (uint32_t i = 1; i <= count; i++)
                        if (walk_fits(before, next, victims, i) == WALK_YES)
                                return blame(before, "%s waits, and %s could give way", next->name,
                                             victims[i - 1]->name);
        } else if (!flying) {
                return blame(before, "%s gives way, and %s is not let in", victims[0]->name,
                             next->name);
        } else if (walk_fits(before, next, victims, n) == WALK_NO ||
                   !is_needed(before, next, victims, n)) {
                return blame(before, "%u give way to %s in vain", n, next->name);
        }
        return is_as_told(&walk, ret_walk);
}

static bool walk_on(const struct walk *before, struct walk *ret_walk)
{
        struct walk walk = *before;
        struct sim_request *next = NULL;
        bool doubtful = false;

        if (walk.let_in < walk.let_in_max)
                next = walk_next(&walk, &doubtful);
        if (!next)
                return is_as_told(&walk, ret_walk);
        if (doubtful) {
                walk_spot(&walk, next)->left = true;
                if (walk_on(&walk, ret_walk))
                        return true;
                walk = *before;
                walk_spot(&walk, next)->sure = true;
                return walk_on(&walk, ret_walk);
        }
        if (is_let_in(&walk, next))
                return walk_in(&walk, next, ret_walk);
        return walk_no_further(&walk, next, ret_walk);
}

/* A batch begins when nobody has a slot, and enough wait, or somebody has waited long enough. */
static uint32_t batch_of(struct sim *sim)
{
        uint32_t waiting = 0;
        bool over = false;

        each_request(sim, r)
        {
                if (r->admitted)
                        return 0;
                waiting += !r->decided;
                over |= !r->decided && sim->now_ns - r->since_ns >= sim->conf.window_ns;
        }
        return over || waiting >= sim->conf.batch_size ? sim->conf.batch_size : 0;
}

static void release(struct sim *sim, struct sim_request *request)
{
        for (uint32_t i = 0; i < request->block_count; i++)
                sim->block_holders[request->blocks[i]]--;
        if (request->slot != SEQUENCE_NO_SLOT)
                sim->slot_owner[request->slot] = NULL;
        request->admitted = request->moved = request->parking = false;
        request->block_count = request->dealt = 0;
        request->slot = SEQUENCE_NO_SLOT;
}

/* What the walk has found goes into the books. */
static void take_over(struct sim *sim, const struct walk *walk)
{
        for (uint32_t i = 0; i < walk->event_count; i++) {
                struct sim_request *request = walk->events[i].request;

                if (walk->events[i].in) {
                        request->admitted = true;
                        request->turn = sim->turns++;
                        request->let_in_step = sim->step_count;
                        request->known = request->core.sequence.token_count;
                        request->dealt = 0;
                        request->slot = SEQUENCE_NO_SLOT;
                        /* There was room, or it would not be let in. */
                        request->stalled_first = request->stalled_surely = SIM_NEVER;
                        if (!request->parks)
                                request->cached = request->core.sequence.cached_count;
                        sim->resumed += request->parks > 0;
                } else {
                        request->parks++;
                        sim->parked++;
                        if (walk_spot(walk, request)->parking)
                                request->parking = true;
                        else
                                release(sim, request);
                }
        }
        for (int ground = 0; ground < SIM_GROUND_N; ground++)
                sim->ground_counts[ground] += walk->grounds[ground];
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
        *walk = (struct walk){ .sim = sim, .turns = sim->turns, .let_in_max = UINT32_MAX };
        each_request(sim, r)
        {
                *walk_spot(walk, r) = (struct walk_spot){
                        .in = r->admitted,
                        .parking = r->parking,
                        .moved = r->moved,
                        .parks = r->parks,
                        .turn = r->turn,
                };
        }
}

static void audit_line(struct sim *sim)
{
        static struct walk walk, way; /* large */

        walk_begin(&walk, sim);
        if (sim->flight_count == sim->conf.depth || sim->held)
                walk.let_in_max = 0, walk.idle = true;
        else if (sim->conf.batch_size)
                walk.let_in_max = batch_of(sim);
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
                if (r->parking && !r->flying && !r->decided)
                        release(sim, r);
        }
        audit_line(sim);
        each_request(sim, r)
        {
                if (!r->admitted && !r->decided)
                        sim_must(sim, !r->flying, "%s waits with rows in flight", r->name);
                sim_must(sim, r->core.sequence.slot == (r->admitted ? r->slot : SEQUENCE_NO_SLOT),
                         "the slot of %s moves", r->name);
                sim_must(sim, r->core.parks == r->parks, "%s was parked %u times, it says %u",
                         r->name, r->parks, r->core.parks);
                sim_must(sim,
                         !(r->admitted || r->parks) || r->core.sequence.cached_count == r->cached,
                         "what %s found first was %u, not %u", r->name, r->cached,
                         r->core.sequence.cached_count);
        }
}
