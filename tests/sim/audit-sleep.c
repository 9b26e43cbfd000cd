/* The auditor of sleep: nothing runs and nothing is in flight, so when must the engine wake? */
#include "tests/sim/audit-walk.h"

static void bring_forward(uint64_t *wake_ns, uint64_t then_ns)
{
        if (then_ns < *wake_ns)
                *wake_ns = then_ns;
}

static uint64_t after(uint64_t since_ns, uint64_t ns)
{
        return ns < SIM_NEVER - since_ns ? since_ns + ns : SIM_NEVER;
}

/*
 * No batch runs, and the queue waits for more of one, until its window is over.  After that it
 * waits only for masks.
 */
static void audit_window(struct sim *sim, struct sim_stalls *stalls)
{
        uint32_t waiting = 0, unready = 0;
        bool over = false;

        each_request(sim, r)
        {
                if (r->admitted)
                        return;
                waiting += !r->decided;
                unready += !r->decided && r->unready;
                over |= !r->decided && after(r->since_ns, sim->conf.batch_window_ns) <= sim->now_ns;
        }
        if (unready && (over || waiting >= sim->conf.batch_size))
                return;
        each_request(sim, r)
        {
                if (r->decided)
                        continue;
                bring_forward(&stalls->wake_first, after(r->since_ns, sim->conf.batch_window_ns));
                bring_forward(&stalls->wake_surely, after(r->since_ns, sim->conf.batch_window_ns));
        }
}

/*
 * A request waits now, but gets a slot as soon as some others have been stalled, or not answered,
 * for the grace period.
 */
static void audit_grace(struct sim *sim, struct sim_stalls *stalls)
{
        static struct walk walk;
        struct sim_request *victims[SIM_REQUESTS];

        walk_begin(&walk, sim);
        each_request(sim, r)
        {
                r->was_stalled = r->core.stalled;
                r->was_stalled_ns = r->core.stalled_ns;
        }
        each_request(sim, r)
        {
                bool asked = r->unready || r->held;
                uint64_t then =
                        after(asked ? r->asked_ns : r->was_stalled_ns, sim->conf.stall_preempt_ns);
                uint32_t count;

                if (!r->admitted || r->decided || !(r->was_stalled || asked) || then <= sim->now_ns)
                        continue;
                bring_forward(&stalls->wake_first, then);
                if (!sim->blocked || then == SIM_NEVER)
                        continue;
                count = walk_victims(&walk, sim->blocked,
                                     walk_is_above_half(&walk, sim->blocked) != WALK_NO, then,
                                     victims);
                for (uint32_t n = 1; n <= count; n++)
                        if (walk_fits(&walk, sim->blocked, victims, n) == WALK_YES &&
                            walk_is_held_back(&walk, sim->blocked, victims, n) == WALK_NO)
                                bring_forward(&stalls->wake_surely, then);
        }
}

/*
 * Another request may be next in line when one of them counts as a class better, unless that one
 * waits for its own client.
 */
static void audit_promotions(struct sim *sim, struct sim_stalls *stalls)
{
        static struct walk walk;

        walk_begin(&walk, sim);
        each_request(sim, r)
        {
                uint64_t turn = walk_turn(&walk, r), then = turn > r->idle_ns ? turn : r->idle_ns;
                uint32_t class = r->priority;

                for (; class && then <= sim->now_ns; class --)
                        then += sim->conf.promote_ns;
                if (r->admitted || r->decided || r->unready || r->held || then <= sim->now_ns)
                        continue;
                bring_forward(&stalls->wake_first, then);
                if (!r->core.stalled)
                        bring_forward(&stalls->wake_surely, then);
        }
}

void audit_deadlines(struct sim *sim)
{
        each_request(sim, r)
        {
                if (r->decided)
                        continue;
                sim_must(sim, sim->plan.wake_ns <= r->deadline_ns,
                         "it sleeps until %llu, and %s is late at %llu",
                         (unsigned long long)sim->plan.wake_ns, r->name,
                         (unsigned long long)r->deadline_ns);
        }
}

void audit_sleep(struct sim *sim, struct sim_stalls *stalls)
{
        if (sim->conf.batch_size)
                audit_window(sim, stalls);
        else if (sim->conf.preemptions_max)
                audit_grace(sim, stalls);
        if (sim->conf.promote_ns && !sim->conf.batch_size)
                audit_promotions(sim, stalls);
        /* The deadline may be of one that is over. */
        bring_forward(&stalls->wake_first, sim->soonest_ns);
        sim_must(sim,
                 sim->plan.wake_ns >= stalls->wake_first &&
                         sim->plan.wake_ns <= stalls->wake_surely,
                 "it sleeps until %llu, not %llu", (unsigned long long)sim->plan.wake_ns,
                 (unsigned long long)stalls->wake_surely);
}
