/*
 * The auditor of charges: how much of the pool does each user have?
 *
 * A user's charge has three terms:
 *
 *      - the blocks that are promised to its slots;
 *      - its own blocks that any request holds, each counted once;
 *      - a part of each public block that its slots hold: the user's holds divided by all holds.
 *
 * Holds are page tables, tails that are still to be copied, and sources of copies in flight.  A
 * user's own blocks are those that were given out for it.
 *
 *      a1: [ x ][ y ][ 1 ]      x, y are everyone's, 1, 2 and 3 user a's own:
 *      a2: [ x ][ y ][ 1 ][ 2 ]     a has 2/3 of each, and three: 4 1/3 blocks
 *      b1: [ x ][ y ][ 4 ]          b has 1/3 of each, and one:   1 2/3
 *      a1's plan in flight copies from 3
 *
 * The page table of a request cannot be seen until its first row after it was admitted.  Until
 * then the request has something between nothing and all that could be found for it.  So
 * charges have a least and a most value.  They are equal once all requests have moved in.
 */
#include "tests/sim/audit-walk.h"

#include <string.h>

/* A page of a request that was asked before the queue, and has kept its slot. */
static bool is_asked_first(const struct sim *sim, const struct plan_page *page)
{
        const struct sim_request *owner =
                page->slot < sim->conf.slots ? sim->slot_owner[page->slot] : NULL;

        return owner && owner->asked_first && owner->core.sequence.slot == page->slot &&
               (owner->core.preemptions == owner->preemptions ||
                owner->core.state == REQUEST_PREEMPTING);
}

/* The domains of blocks that were given out to requests asked before the queue. */
void walk_domains(const struct walk *walk)
{
        struct sim *sim = walk->sim;

        memcpy(sim->queue_domain, sim->block_domain, sim->conf.blocks * sizeof(*sim->queue_domain));
        for (uint32_t i = 0; i < sim->plan.page_count && !walk->after; i++) {
                const struct plan_page *page = &sim->plan.pages[i];

                if (is_asked_first(sim, page) && page->block < sim->conf.blocks &&
                    !audit_page_is_found(sim, page))
                        sim->queue_domain[page->block] = sim_domain(sim->slot_owner[page->slot]);
                else if (is_asked_first(sim, page) && page->block < sim->conf.blocks)
                        sim->queue_domain[page->block] =
                                sim->block_domain[audit_moved_from(sim, page->block)];
        }
}

bool walk_may_share(const struct walk *walk, const struct sim_request *request)
{
        return walk->sim->shares || walk_spot(walk, request)->preemptions;
}

/*
 * The plan's pages for its slot concern its present admission: it was not preempted and admitted
 * again since.
 */
static bool is_this_life(const struct walk *walk, const struct sim_request *request)
{
        uint32_t preemptions = walk_spot(walk, request)->preemptions;

        return !walk->after && request->core.sequence.slot != SEQUENCE_NO_SLOT &&
               (request->core.preemptions == preemptions ||
                request->core.state == REQUEST_PREEMPTING);
}

static bool was_asked_first(const struct walk *walk, const struct sim_request *request)
{
        const struct walk_spot *spot = walk_spot(walk, request);

        return request->asked_first && spot->in && !spot->fresh && is_this_life(walk, request);
}

static bool has_moved(const struct walk *walk, const struct sim_request *request)
{
        return walk_spot(walk, request)->in && walk_spot(walk, request)->moved;
}

/* Can its page table be seen? */
static bool is_seen(const struct walk *walk, const struct sim_request *request)
{
        return has_moved(walk, request) ||
               (is_this_life(walk, request) && request->first_row != SIM_NO_ROW);
}

static void hold(struct sim *sim, block_t block, bool his)
{
        sim_must(sim, block < sim->conf.blocks, "there is no block %u", block);
        sim->block_refs[block]++;
        sim->user_refs[block] += his;
}

/*
 * The block at this index of its page table, if this plan replaced it before any request was
 * admitted.
 */
static block_t is_now(const struct walk *walk, const struct sim_request *request, uint32_t index)
{
        const struct plan *plan = &walk->sim->plan;
        block_t block = index < request->block_count ? request->blocks[index] : BLOCK_NONE;

        if (!was_asked_first(walk, request) || index >= walk_spot(walk, request)->promised)
                return block;
        for (uint32_t i = 0; i < plan->page_count; i++)
                if (plan->pages[i].slot == request->core.sequence.slot &&
                    plan->pages[i].index == index)
                        block = plan->pages[i].block;
        return block;
}

static const struct plan_copy *copy_to(const struct sim *sim, block_t block)
{
        for (uint32_t i = 0; i < sim->plan.copy_count; i++)
                if (sim->plan.copies[i].to == block)
                        return &sim->plan.copies[i];
        return NULL;
}

/*
 * For a request that moves in by this plan: before that, it holds the blocks found and the tail.
 * Blocks from the swap come later; some may have come in earlier plans.
 */
static uint32_t ref_found(const struct walk *walk, const struct sim_request *request, bool his)
{
        struct sim *sim = walk->sim;
        uint32_t count = 0;

        if (walk_spot(walk, request)->in && !walk_spot(walk, request)->fresh)
                for (; count < request->block_count; count++)
                        hold(sim, request->blocks[count], his);
        for (uint32_t i = 0; i < sim->plan.page_count; i++) {
                const struct plan_page *page = &sim->plan.pages[i];
                const struct plan_copy *copy = copy_to(sim, page->block);

                if (page->slot != request->core.sequence.slot)
                        continue;
                if (copy)
                        hold(sim, copy->from, his);
                if (!audit_page_is_found(sim, page) || audit_is_fetched(sim, page->block))
                        continue;
                hold(sim, page->block, his);
                count++;
        }
        return count;
}

/* Returns how many blocks it has, without the tail that it copies. */
static uint32_t hold_table(const struct walk *walk, const struct sim_request *request, bool his)
{
        uint32_t count = 0;
        block_t block;

        if (!has_moved(walk, request) && !was_asked_first(walk, request))
                return ref_found(walk, request, his);
        for (; (block = is_now(walk, request, count)) != BLOCK_NONE; count++)
                hold(walk->sim, block, his);
        return count;
}

/* Sources of copies in flight, including those of this plan that came before the queue. */
static void ref_sources(const struct walk *walk)
{
        struct sim *sim = walk->sim;

        for (uint32_t i = 0; i < sim->flight_count; i++)
                for (uint32_t j = 0; j < sim->flights[i].copy_count; j++)
                        hold(sim, sim->flights[i].sources[j], false);
        for (uint32_t i = 0; i < sim->plan.page_count; i++) {
                const struct plan_page *page = &sim->plan.pages[i];
                const struct plan_copy *copy = copy_to(sim, page->block);

                if (copy && (walk->after || is_asked_first(sim, page)))
                        hold(sim, copy->from, false);
        }
}

/*
 * The most whole blocks of it that may have been found, and whether a tail may have been found,
 * too.  A request that is in for the first time reports how many positions were found.
 */
static uint32_t most_found(const struct walk *walk, const struct sim_request *request, bool in,
                           bool *ret_tail)
{
        uint32_t known = request->core.sequence.token_count, cached = known;

        *ret_tail = walk_may_share(walk, request);
        if (!*ret_tail)
                return 0;
        if (in && !walk_spot(walk, request)->preemptions)
                cached = request->core.sequence.cached_count;
        if (cached + 1 < known) /* else the last may have been found, and is computed again */
                *ret_tail = cached % BLOCK_POSITIONS;
        else
                cached = known;
        return cached / BLOCK_POSITIONS;
}

uint32_t walk_most_found(const struct walk *walk, const struct sim_request *request)
{
        bool tail;

        return most_found(walk, request, true, &tail);
}

struct walk_charge walk_charge(const struct walk *walk, uint64_t uid,
                               const struct sim_request *with)
{
        struct sim *sim = walk->sim;
        struct walk_charge charge = { 0 };
        uint32_t unseen = 0;

        memset(sim->block_refs, 0, sim->conf.blocks * sizeof(*sim->block_refs));
        memset(sim->user_refs, 0, sim->conf.blocks * sizeof(*sim->user_refs));
        ref_sources(walk);
        each_request(sim, r)
        {
                bool in = walk_spot(walk, r)->in, his = r->uid == uid, tail;
                uint32_t promised = in ? walk_spot(walk, r)->promised : walk_promise(walk, r),
                         count;

                if (!in && r != with)
                        continue;
                charge.slots += his;
                if (is_seen(walk, r)) {
                        count = hold_table(walk, r, his);
                        sim_must(sim, count <= promised, "%s has more blocks than promised",
                                 r->name);
                        charge.least += his ? (promised - count) * WALK_PARTS : 0;
                        charge.most += his ? (promised - count) * WALK_PARTS : 0;
                        continue;
                }
                count = most_found(walk, r, true, &tail);
                charge.least += his ? (promised - count) * WALK_PARTS : 0;
                charge.most += his ? (promised + tail) * WALK_PARTS : 0;
                charge.hidden += his ? count + tail : 0;
                unseen += tail || count;
        }
        for (block_t block = 0; block < sim->conf.blocks; block++) {
                uint64_t block_refs = sim->block_refs[block], his = sim->user_refs[block];

                if (block_refs && sim->queue_domain[block] == uid) {
                        charge.least += WALK_PARTS;
                        charge.most += WALK_PARTS;
                } else if (his) {
                        charge.least += his * (WALK_PARTS / (block_refs + unseen));
                        charge.of_public += his * (WALK_PARTS / (block_refs + unseen));
                        charge.most += his * (WALK_PARTS / block_refs);
                        sim->parts += his < block_refs;
                }
        }
        return charge;
}

struct walk_charge walk_then(const struct walk *walk, const struct sim_request *request)
{
        struct walk_charge charge = walk_charge(walk, request->uid, NULL);
        bool tail;
        uint32_t found = most_found(walk, request, false, &tail);

        charge.least += (walk_promise(walk, request) - found) * WALK_PARTS;
        charge.most += (walk_promise(walk, request) + tail) * WALK_PARTS;
        charge.slots++;
        return charge;
}

/* Requests whose tables cannot be seen may have found blocks that others hold as well. */
struct walk_range walk_available(const struct walk *walk)
{
        struct sim *sim = walk->sim;
        int64_t taken = 0, unseen_least = 0, unseen_most = 0;

        memset(sim->block_refs, 0, sim->conf.blocks * sizeof(*sim->block_refs));
        ref_sources(walk);
        each_request(sim, r)
        {
                uint32_t promised = walk_spot(walk, r)->promised, found;
                bool tail;

                if (!walk_spot(walk, r)->in)
                        continue;
                if (is_seen(walk, r)) {
                        taken += promised - hold_table(walk, r, false);
                        continue;
                }
                found = most_found(walk, r, true, &tail);
                unseen_least += promised - found;
                unseen_most += promised + tail;
        }
        for (block_t block = 0; block < sim->conf.blocks; block++)
                taken += sim->block_refs[block] > 0;
        return (struct walk_range){ .least = (int64_t)sim->conf.blocks - taken - unseen_most,
                                    .most = (int64_t)sim->conf.blocks - taken - unseen_least };
}

/*
 * sched.h leaves open whether a block that was promised and not taken comes free, and one that is
 * still to be copied from.
 */
enum walk_answer walk_frees(const struct walk *walk, const struct sim_request *request)
{
        struct sim *sim = walk->sim;
        uint32_t promised = walk_spot(walk, request)->promised, count;
        bool unseen = !is_seen(walk, request), others = false, perhaps = false;

        if (unseen)
                return WALK_PERHAPS;
        memset(sim->block_refs, 0, sim->conf.blocks * sizeof(*sim->block_refs));
        memset(sim->user_refs, 0, sim->conf.blocks * sizeof(*sim->user_refs));
        each_request(sim, r)
        {
                if (!walk_spot(walk, r)->in || r == request)
                        continue;
                if (is_seen(walk, r))
                        hold_table(walk, r, false);
                else
                        others |= walk_may_share(walk, r);
        }
        memcpy(sim->user_refs, sim->block_refs, sim->conf.blocks * sizeof(*sim->user_refs));
        ref_sources(walk);
        for (count = 0; count < promised; count++) {
                block_t block = is_now(walk, request, count);

                if (block == BLOCK_NONE)
                        break;
                if (!sim->block_refs[block] && !others)
                        return WALK_YES;
                perhaps |= !sim->user_refs[block];
        }
        return perhaps || count < promised ? WALK_PERHAPS : WALK_NO;
}

/* ---- reports about users ---- */

static uint32_t blocks_of(uint64_t parts) /* rounded up */
{
        return (uint32_t)((parts + WALK_PARTS - 1) / WALK_PARTS);
}

static uint32_t count_copies(const struct sim *sim)
{
        uint32_t count = sim->plan.copy_count;

        for (uint32_t i = 0; i < sim->flight_count; i++)
                count += sim->flights[i].copy_count;
        return count;
}

/*
 * A user's own block that no request holds is either cached or free, which cannot be seen from
 * outside.  It is cached as long as it has a name.
 */
static void audit_cached(struct sim *sim, const struct sched_counts *counts,
                         const struct sched_user *user, const struct walk_charge *charge)
{
        uint32_t most = 0;

        for (block_t block = 0; block < sim->conf.blocks; block++)
                most += sim->block_domain[block] == user->uid && !sim->block_refs[block];
        sim_must(sim,
                 user->cached <= most &&
                         user->cached + counts->blocks_free + charge->hidden >= most,
                 "user %llu has %u blocks that nobody holds, it says %u, and %u are free",
                 (unsigned long long)user->uid, most, user->cached, counts->blocks_free);
}

/*
 * No user has more than the maximum for one user, with two exceptions.  One is a user that
 * began with one request that needs the maximum, and had a tail to copy.  The other is a user
 * that was given another's block as its own while that block was still to be copied.
 */
static void audit_most(struct sim *sim, uint64_t uid, const struct walk_charge *charge)
{
        uint32_t most = sim->conf.user_blocks ? sim->conf.user_blocks : sim->conf.blocks;
        uint64_t more = count_copies(sim) + charge->hidden + (charge->slots == 1);

        sim_must(sim, charge->least - charge->of_public <= (most + more) * WALK_PARTS,
                 "user %llu has %u blocks, and may have %u", (unsigned long long)uid,
                 blocks_of(charge->least), most);
}

static void audit_user(struct sim *sim, const struct walk *walk, const struct sched_counts *counts,
                       const struct sched_user *user)
{
        struct walk_charge charge = walk_charge(walk, user->uid, NULL);

        sim_must(sim,
                 user->blocks >= blocks_of(charge.least) && user->blocks <= blocks_of(charge.most),
                 "user %llu has %llu to %llu parts of blocks, it says %u blocks",
                 (unsigned long long)user->uid, (unsigned long long)charge.least,
                 (unsigned long long)charge.most, user->blocks);
        sim_must(sim, user->running == charge.slots, "user %llu has %u slots, it says %u",
                 (unsigned long long)user->uid, charge.slots, user->running);
        audit_cached(sim, counts, user, &charge);
        audit_most(sim, user->uid, &charge);
}

static bool has_requests(struct sim *sim, uint64_t uid)
{
        each_request(sim, r)
        {
                if (r->uid == uid)
                        return true;
        }
        return false;
}

/* All users who have requests, then all others who left something in the pool; each once. */
static void audit_list(struct sim *sim, uint32_t count)
{
        const struct sched_user *users = sim->users;
        bool others = false;

        for (uint32_t i = 0; i < count; i++) {
                bool here = has_requests(sim, users[i].uid);

                for (uint32_t j = 0; j < i; j++)
                        sim_must(sim, users[j].uid != users[i].uid, "user %llu is told twice",
                                 (unsigned long long)users[i].uid);
                sim_must(sim, !here || !others, "user %llu is there, and comes after who is not",
                         (unsigned long long)users[i].uid);
                sim_must(sim, here || (users[i].cached && !users[i].blocks),
                         "user %llu is not there, and has nothing cached",
                         (unsigned long long)users[i].uid);
                others |= !here;
        }
        each_request(sim, r)
        {
                bool told = false;

                for (uint32_t i = 0; i < count; i++)
                        told |= users[i].uid == r->uid;
                sim_must(sim, told, "nothing is told of user %llu", (unsigned long long)r->uid);
        }
}

/* Less space for them shows as many as it holds, the same. */
static void audit_first_users(struct sim *sim, uint32_t count)
{
        struct sched_user first[4];
        uint32_t max = (uint32_t)(sim->step_count % 4), most = max < count ? max : count;

        sim_must(sim, sched_users(sim->sched, first, max) == most, "not %u users of %u are told",
                 most, count);
        for (uint32_t i = 0; i < most; i++)
                sim_must(sim,
                         first[i].uid == sim->users[i].uid &&
                                 first[i].blocks == sim->users[i].blocks &&
                                 first[i].cached == sim->users[i].cached &&
                                 first[i].served_ns == sim->users[i].served_ns,
                         "the first %u users are others", most);
}

void audit_users(struct sim *sim, const struct sched_counts *counts)
{
        static struct walk walk; /* large */
        uint32_t max = sim->conf.requests_max + sim->conf.blocks;
        uint32_t count = sched_users(sim->sched, sim->users, max);
        uint64_t blocks = 0, cached = 0, all = counts->blocks_in_use + counts->blocks_reserved;
        uint32_t published = 0;

        sim_must(sim, count <= max, "there are %u users, and space for %u", count, max);
        walk_begin(&walk, sim);
        walk.after = true;
        walk_domains(&walk);
        audit_list(sim, count);
        audit_accounts(sim);
        audit_first_users(sim, count);
        for (uint32_t i = 0; i < count; i++) {
                audit_user(sim, &walk, counts, &sim->users[i]);
                blocks += sim->users[i].blocks;
                cached += sim->users[i].cached;
        }
        for (block_t block = 0; block < sim->conf.blocks; block++)
                published += sim->block_domain[block] != SIM_NO_DOMAIN &&
                             prefix_is_public(sim->block_domain[block]);
        sim_must(sim, blocks + count_copies(sim) >= all && blocks <= all + count,
                 "users have %llu blocks, and %llu are held or promised",
                 (unsigned long long)blocks, (unsigned long long)all);
        sim_must(sim,
                 cached <= counts->blocks_cached && cached + published >= counts->blocks_cached,
                 "users have %llu blocks cached, and %u are kept", (unsigned long long)cached,
                 counts->blocks_cached);
}
