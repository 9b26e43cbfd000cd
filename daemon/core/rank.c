/*
 * The order of requests: which one comes first, for a slot or for the rows of a prompt?
 *
 * The rank of a request is the account of its user, and a lead (conf.lead_ns) more for each class
 * behind the first.  The lowest rank comes first.  So the user that was served least comes first,
 * whatever its requests declare, and class orders the requests of a user.  Between users a class
 * is worth a lead: as much as accounts may differ if users are nearly equal.  A user whose requests
 * are all `interactive` is two leads ahead of one whose requests are all `background`, never more.
 *
 * Waiting promotes: a request counts as one class better for each conf.promote_ns in which no
 * request of its user and class got a slot.  So those that came before it get their slots, one by
 * one, and requests of a better class of its own user cannot keep it waiting for ever.  Time in
 * which it waited for its own masks or token does not count.  Where a prompt is being read, the
 * time counts in which it got no rows.
 */
#include "daemon/core/sched-state.h"

/* How many classes better a request counts as that has waited since then. */
static uint64_t classes_gained(const struct sched *sched, uint64_t since_ns)
{
        return sched->conf.promote_ns ? (sched->now_ns - since_ns) / sched->conf.promote_ns : 0;
}

/*
 * If it got the slot because it had waited, it keeps that class for as long as one promotion takes.
 * Otherwise it would be preempted at once, for the next of the requests that it has waited for.
 */
uint32_t sched_held_class(const struct sched *sched, const struct request *request)
{
        return sched->now_ns - request->slot_ns < sched->conf.promote_ns ? request->granted
                                                                         : request->priority;
}

/*
 * A waiting request is promoted if none of its class and its user has got a slot for long.  So of a
 * thousand background requests one comes in between, and not all of them.
 */
static uint64_t waits_since(const struct sched *sched, const struct request *request)
{
        uint64_t turn_ns = fair_share_turn(&sched->fair_share, request->uid, request->priority);
        uint64_t since_ns = request->since_ns;

        if (request->state != REQUEST_WAITING)
                return since_ns;
        since_ns = turn_ns > since_ns ? turn_ns : since_ns;
        return request->asked_ns > since_ns ? request->asked_ns : since_ns;
}

uint32_t sched_class(const struct sched *sched, const struct request *request)
{
        uint64_t gained = classes_gained(sched, waits_since(sched, request));
        uint32_t class = request->priority;

        if (request->state != REQUEST_WAITING)
                class = sched_held_class(sched, request);
        return gained < class ? class - (uint32_t)gained : 0;
}

static uint64_t rank_of(const struct sched *sched, const struct request *request, uint32_t class)
{
        return fair_share_served(&sched->fair_share, request->uid) + class * sched->conf.lead_ns;
}

uint64_t sched_rank(const struct sched *sched, const struct request *request)
{
        return rank_of(sched, request, sched_class(sched, request));
}

uint64_t sched_held_rank(const struct sched *sched, const struct request *request)
{
        return rank_of(sched, request, sched_held_class(sched, request));
}

uint64_t sched_promotion_time(const struct sched *sched, const struct request *request)
{
        uint64_t since_ns = waits_since(sched, request);
        uint64_t gained = classes_gained(sched, since_ns);

        if (!sched->conf.promote_ns || gained >= request->priority || sched_is_unready(request))
                return UINT64_MAX;
        return sched_after(since_ns, (gained + 1) * sched->conf.promote_ns);
}
