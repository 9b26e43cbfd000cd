/*
 * The auditor of preemption: which requests may have to give up their slots, in which order, and
 * does it help?
 */
#include "tests/sim/audit-walk.h"

/* The first `count` of the victims have given up. */
static bool is_victim(const struct sim_request *request, struct sim_request *const *victims,
                      uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                if (victims[i] == request)
                        return true;
        return false;
}

/* Tails that are held to be copied, and those of plans in flight, need blocks of their own. */
static uint32_t count_tails(const struct walk *walk)
{
        struct sim *sim = walk->sim;
        uint32_t tails = 0;

        for (uint32_t i = 0; i < sim->flight_count; i++)
                tails += sim->flights[i].copy_count;
        each_request(sim, r)
        {
                const struct walk_spot *spot = walk_spot(walk, r);

                tails += spot->in && !spot->moved && walk_may_share(walk, r);
        }
        return tails;
}

/* Blocks that requests asked before the queue gave up for another's. */
static uint32_t count_swaps(const struct sim *sim)
{
        uint32_t swaps = 0;

        for (uint32_t i = 0; i < sim->plan.page_count; i++) {
                const struct plan_page *page = &sim->plan.pages[i];
                const struct sim_request *owner =
                        page->slot < sim->conf.slots ? sim->slot_owner[page->slot] : NULL;

                swaps += owner && owner->asked_first && page->index < owner->block_count;
        }
        return swaps;
}

/* Blocks that those with a slot hold or may still take, at least. */
static uint32_t count_least(const struct walk *walk, struct sim_request *const *victims,
                            uint32_t count)
{
        struct sim *sim = walk->sim;
        uint32_t blocks = 0;

        for (block_t block = 0; block < sim->conf.blocks; block++) {
                bool held = false;

                if (!sim->block_table_count[block])
                        continue;
                each_request(sim, r)
                {
                        if (held || !walk_spot(walk, r)->moved || is_victim(r, victims, count))
                                continue;
                        for (uint32_t i = 0; i < r->block_count && !held; i++)
                                held = r->blocks[i] == block;
                }
                blocks += held;
        }
        each_request(sim, r)
        {
                const struct walk_spot *spot = walk_spot(walk, r);
                uint32_t has = spot->moved ? r->block_count
                                           : r->core.sequence.token_count / BLOCK_POSITIONS;

                if (spot->in && !is_victim(r, victims, count))
                        blocks += spot->promised - (has < spot->promised ? has : spot->promised);
        }
        return blocks;
}

/* Can its window pages be promised to it, once the victims have given theirs back? */
static bool has_windows(const struct walk *walk, const struct sim_request *request,
                        struct sim_request *const *victims, uint32_t count)
{
        uint64_t promised = sim_windows_of(walk->sim, request);

        each_request(walk->sim, r)
        {
                if (walk_spot(walk, r)->in && !is_victim(r, victims, count))
                        promised += sim_windows_of(walk->sim, r);
        }
        return promised <= sim_windows_promised_max(walk->sim);
}

/*
 * The blocks that are promised to it, once the victims have given up their slots.  If one of them
 * fills the reserved part of the pool and did not answer, the request may get into that part.
 */
static uint32_t promise_after(const struct walk *walk, const struct sim_request *request,
                              struct sim_request *const *victims, uint32_t count)
{
        static struct walk then; /* large */

        if (!walk->sim->conf.reserve_max)
                return walk_promise(walk, request);
        then = *walk;
        for (uint32_t i = 0; i < count; i++)
                walk_spot(&then, victims[i])->reserves = false;
        return walk_promise(&then, request);
}

enum walk_answer walk_fits(const struct walk *walk, const struct sim_request *request,
                           struct sim_request *const *victims, uint32_t count)
{
        struct sim *sim = walk->sim;
        uint64_t most = 0, found = request->core.sequence.token_count / BLOCK_POSITIONS;
        uint32_t promise = promise_after(walk, request, victims, count);

        if (!walk_free_slots(walk) && !count)
                return WALK_NO;
        if (!has_windows(walk, request, victims, count))
                return WALK_NO;
        each_request(sim, r)
        {
                if (walk_spot(walk, r)->in && !is_victim(r, victims, count))
                        most += walk_spot(walk, r)->promised;
        }
        if (most + promise + count_tails(walk) <= sim->conf.blocks)
                return WALK_YES;
        if (!sim->shares)
                return most + promise <= sim->conf.blocks ? WALK_PERHAPS : WALK_NO;
        found += count_swaps(sim); /* ... or came free before the queue */
        return count_least(walk, victims, count) + promise <= sim->conf.blocks + found
                       ? WALK_PERHAPS
                       : WALK_NO;
}

bool walk_is_in_flight(const struct sim_request *request)
{
        return request->in_flight || (request->asked_first && request->first_row != SIM_NO_ROW);
}

/*
 * It is stalled for lack of space: with space it would have been asked before the queue and would
 * have a row.  The exception is that only pages were lacking.
 */
static bool is_stalled_long(const struct sim *sim, const struct sim_request *request,
                            uint64_t now_ns)
{
        return request->was_stalled && request->core.stalled && request->first_row == SIM_NO_ROW &&
               now_ns - request->was_stalled_ns >= sim->conf.stall_preempt_ns;
}

bool walk_is_unanswered(const struct walk *walk, const struct sim_request *request, uint64_t now_ns)
{
        return walk_spot(walk, request)->in && !walk_spot(walk, request)->fresh &&
               (request->unready || request->held) &&
               now_ns - request->asked_ns >= walk->sim->conf.stall_preempt_ns;
}

bool walk_is_stalled_victim(const struct walk *walk, const struct sim_request *request,
                            uint64_t now_ns)
{
        const struct walk_spot *spot = walk_spot(walk, request);

        if (walk_is_unanswered(walk, request, now_ns))
                return true;
        return !spot->fresh &&
               spot->preemptions - spot->unanswered < walk->sim->conf.preemptions_max &&
               is_stalled_long(walk->sim, request, now_ns);
}

bool walk_gave_way(const struct walk *walk, const struct sim_request *request)
{
        return request->core.state == REQUEST_PREEMPTING ||
               request->core.state == REQUEST_WAITING ||
               request->core.preemptions > walk_spot(walk, request)->preemptions;
}

bool walk_is_preempting(const struct walk *walk)
{
        bool preempting = false;

        each_request(walk->sim, r)
        {
                const struct walk_spot *spot = walk_spot(walk, r);

                preempting |= spot->in && spot->preempting && !r->decided;
        }
        return preempting;
}

bool walk_may_preempt(const struct walk *walk)
{
        const struct sched_conf *conf = &walk->sim->conf;

        return conf->preemptions_max && !conf->batch_size && !walk_is_preempting(walk);
}

/* Let in by one plan, in an order that could not be seen (audit-order.c). */
static bool came_together(const struct walk *walk, const struct sim_request *a,
                          const struct sim_request *b)
{
        return !walk_spot(walk, a)->fresh && !walk_spot(walk, b)->fresh && a->turn_open &&
               b->turn_open && a->admitted_step == b->admitted_step;
}

/*
 * No order is promised among requests that have been stalled that long, and the order of
 * requests that came together is unknown.  Requests that did give way go first here.
 */
static bool gives_way_before(const struct walk *walk, const struct sim_request *a,
                             const struct sim_request *b, uint64_t now_ns)
{
        bool first = walk_is_stalled_victim(walk, a, now_ns);
        bool second = walk_is_stalled_victim(walk, b, now_ns);

        if (first != second)
                return first;
        if (first && walk_gave_way(walk, a) != walk_gave_way(walk, b))
                return walk_gave_way(walk, a);
        if (walk_held_rank(walk, a) != walk_held_rank(walk, b))
                return walk_held_rank(walk, a) > walk_held_rank(walk, b);
        if (came_together(walk, a, b) && walk_gave_way(walk, a) != walk_gave_way(walk, b))
                return walk_gave_way(walk, a);
        return walk_spot(walk, a)->turn > walk_spot(walk, b)->turn;
}

/*
 * Within a user, class decides.  Another user must have more slots, and its request must be a lead
 * behind in line.  If it has several slots and the other one has none, it need only be behind, and
 * does not count how often it had to.
 */
static bool must_yield(const struct walk *walk, const struct sim_request *request,
                       const struct sim_request *to)
{
        const struct sched_conf *conf = &walk->sim->conf;
        const struct walk_spot *spot = walk_spot(walk, request);
        bool often = spot->preemptions - spot->unanswered >= conf->preemptions_max;

        if (request->uid == to->uid)
                return !often && walk_held_class(walk, request) > walk_class(walk, to);
        if (walk_slots_of(walk, request->uid) <= walk_slots_of(walk, to->uid))
                return false;
        if (!often && walk_held_rank(walk, request) >= walk_rank(walk, to) + conf->lead_ns)
                return true;
        return !walk_slots_of(walk, to->uid) && walk_slots_of(walk, request->uid) >= 2 &&
               walk_held_rank(walk, request) > walk_rank(walk, to);
}

uint32_t walk_victims(const struct walk *walk, const struct sim_request *request, bool own_only,
                      uint64_t now_ns, struct sim_request **ret_victims)
{
        struct sim *sim = walk->sim;
        uint32_t count = 0;

        each_request(sim, r)
        {
                const struct walk_spot *spot = walk_spot(walk, r);
                uint32_t at = count;
                bool is_stalled = walk_is_stalled_victim(walk, r, now_ns);
                bool is_unanswered = walk_is_unanswered(walk, r, now_ns);

                if (!spot->in || spot->preempting || r->decided)
                        continue;
                if ((own_only && r->uid != request->uid && !is_unanswered) ||
                    (!is_stalled && !must_yield(walk, r, request)))
                        continue;
                /* Does it fill the part of the pool that `request` does not get into? */
                if (spot->reserves && !is_unanswered && !walk_is_reserved(walk, request) &&
                    !sim->conf.learned[request->priority])
                        continue;
                for (; at && gives_way_before(walk, r, ret_victims[at - 1], now_ns); at--)
                        ret_victims[at] = ret_victims[at - 1];
                ret_victims[at] = r;
                count++;
        }
        return count;
}
