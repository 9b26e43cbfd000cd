/*
 * The auditor of slots: who was let in, who was not, and was there a reason?
 *
 * Slot by slot, the line is walked in order of arrival, as it stood before the
 * plan: the next goes to the first who may have one by then.  Nothing is carried
 * along: what its user has, and whether somebody else waits, is counted anew for
 * each from the books of who has what.  So a share that the core forgot to give
 * back, or a user that it still believes to wait, shows in the next plan.
 */
#include "tests/sim/sim.h"

static bool waits(const struct sim_request *request)
{
        return request->alive && !request->admitted && !request->decided;
}

static bool is_let_in(const struct sim_request *request)
{
        return request->core.state != REQUEST_WAITING;
}

/* Nobody gets above half of the slots or the blocks, unless he is alone or has nothing. */
static enum sim_ground ground_of(struct sim *sim, const struct sim_request *request)
{
        uint64_t slots = 1, blocks = request->worst; /* if it were let in */
        bool others_wait = false;

        each_request(sim, r)
        {
                if (r->uid != request->uid) {
                        others_wait |= waits(r);
                } else if (r->admitted) {
                        slots++;
                        blocks += r->worst;
                }
        }
        if (2 * slots <= sim->conf.slots && 2 * blocks <= sim->conf.blocks)
                return SIM_WITHIN_HALF;
        if (!others_wait)
                return SIM_ALONE;
        if (slots == 1)
                return SIM_BEGINS;
        return 2 * slots > sim->conf.slots ? SIM_OVER_SLOTS : SIM_OVER_BLOCKS;
}

static uint32_t line_up(struct sim *sim, struct sim_request **line)
{
        uint32_t count = 0;

        each_request(sim, r)
        {
                uint32_t at = count;

                if (!waits(r))
                        continue;
                for (; at && line[at - 1]->arrival > r->arrival; at--)
                        line[at] = line[at - 1];
                line[at] = r;
                count++;
        }
        return count;
}

/* Slots that are free, and blocks that nobody needs even if nobody shared. */
struct left {
        uint32_t slots, blocks;
};

static struct left count_left(struct sim *sim)
{
        struct left left = { .slots = sim->conf.slots, .blocks = sim->conf.blocks };

        each_request(sim, r)
        {
                if (!r->admitted)
                        continue;
                sim_must(sim, left.slots, "more slots are taken than there are");
                sim_must(sim, sim->shares || r->worst <= left.blocks,
                         "more blocks are promised than there are");
                left.slots--;
                left.blocks -= r->worst < left.blocks ? r->worst : left.blocks;
        }
        return left;
}

/* Tails that are held to be copied, and those of plans in flight, are blocks beside all that. */
static uint32_t count_tails(struct sim *sim)
{
        uint32_t tails = 0;

        for (uint32_t i = 0; i < sim->flight_count; i++)
                tails += sim->flights[i].copy_count;
        each_request(sim, r) tails += sim->shares && r->admitted && !r->moved;
        return tails;
}

static void let_in(struct sim *sim, struct sim_request *request)
{
        request->slot = request->core.sequence.slot;
        sim_must(sim, request->slot < sim->conf.slots && !sim->slot_owner[request->slot],
                 "%s gets slot %u, which is taken", request->name, request->slot);
        sim->slot_owner[request->slot] = request;
        request->admitted = true;
        request->turn = sim->turns++;
}

static bool is_entitled(enum sim_ground ground)
{
        return ground != SIM_OVER_SLOTS && ground != SIM_OVER_BLOCKS;
}

/* The first in line who may have a slot now.  Behind one who may not, his user's others wait. */
static uint32_t next_in_line(struct sim *sim, struct sim_request *const *line, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                bool behind = false;

                for (uint32_t j = 0; j < i; j++)
                        behind |= waits(line[j]) && line[j]->uid == line[i]->uid;
                if (waits(line[i]) && !behind && is_entitled(ground_of(sim, line[i])))
                        return i;
        }
        return count;
}

/*
 * Slot by slot: each goes to the first in line who may have it then, until there
 * is none left, nobody may, or he has to wait for blocks and all with him.
 */
static void audit_line(struct sim *sim, struct sim_request *const *line, uint32_t count)
{
        uint32_t reach = 0; /* who stands before was passed over */
        struct left left;

        while (left = count_left(sim), left.slots && !sim->held) {
                uint32_t next = next_in_line(sim, line, count);

                reach = next;
                if (next == count)
                        break;
                sim->ground_counts[ground_of(sim, line[next])]++;
                /* What is shared may leave room that is not seen here, and a tail takes some. */
                if (line[next]->worst + count_tails(sim) > left.blocks &&
                    !(sim->shares && is_let_in(line[next])))
                        break;
                sim_must(sim, is_let_in(line[next]), "%s may have a slot, and waits",
                         line[next]->name);
                let_in(sim, line[next]);
        }
        sim->passed_over = 0;
        for (uint32_t i = 0; i < count; i++) {
                enum sim_ground ground = ground_of(sim, line[i]);

                if (!waits(line[i]))
                        continue;
                sim_must(sim, !is_let_in(line[i]), "%s is let in before its turn", line[i]->name);
                sim->passed_over += i < reach;
                sim->ground_counts[ground] += i < reach && !is_entitled(ground);
        }
}

/* Whose user has nothing may wait, but nobody who came later is let in before it. */
static void audit_newcomers(struct sim *sim, struct sim_request *const *line, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                bool has = false;

                each_request(sim, r) has |= r->admitted && r->uid == line[i]->uid;
                for (uint32_t later = i + 1; later < count && !has; later++)
                        sim_must(sim, !line[later]->admitted, "%s overtakes %s, who has nothing",
                                 line[later]->name, line[i]->name);
        }
}

void audit_slots(struct sim *sim)
{
        struct sim_request *line[SIM_REQUESTS];
        uint32_t count = line_up(sim, line);

        if (sim->flight_count < sim->conf.depth) {
                audit_line(sim, line, count);
                audit_newcomers(sim, line, count);
        }
        each_request(sim, r)
        {
                sim_must(sim, r->decided || is_let_in(r) == r->admitted,
                         "%s is let in, and no plan can be made", r->name);
                sim_must(sim, r->core.sequence.slot == (r->admitted ? r->slot : SEQUENCE_NO_SLOT),
                         "the slot of %s moves", r->name);
        }
        count_left(sim);
}
