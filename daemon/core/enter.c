/*
 * Admission to slots: a waiting request gets a slot, and the blocks of its worst case promised.
 *
 * The next request is of the best class; within it, of the user that was served least;
 * within that user, the one that arrived first.  It waits until its blocks can be promised, and
 * all requests behind it wait too, even one that would fit.  Otherwise a stream of small requests
 * could pass a large one for ever.  Every request with a slot ends sooner or later, so
 * no request of a class starves because of others of that class.  Skipped for now are
 *
 *      requests of a user that has its share, while other users wait   (share.h)
 *      a request that begins like one that is being read at the moment: it will find
 *      the blocks in the index a few steps later instead of computing them
 *      a preempted request whose client does not read
 *
 * Parking (preemption).  If the first request in the queue cannot get a slot or its blocks, other
 * requests may have to give up their slots.  These are requests of a lower class, and those that
 * have been stalled for long.  A preempted request waits again, in its old place in the queue,
 * and keeps its tokens.  Its blocks are found again in the pool, or computed again.  Its random
 * draws depend on the position only, so it continues with the same result.  Requests are preempted
 * only if that is enough for the new request, and only parks_max times each.
 *
 * Batches exist for comparison: a new request does not join a running batch.
 */
#include "daemon/core/sched-state.h"

#include <string.h>

static bool begins_alike(const struct sequence *a, const struct sequence *b, uint32_t count)
{
        return a->token_count >= count && b->token_count >= count &&
               !memcmp(a->tokens, b->tokens, count * sizeof(*a->tokens));
}

/* Do both requests look in the same domains? */
static bool is_same_reader(const struct request *a, const struct request *b)
{
        const struct prefix_reader one = request_reader(a), other = request_reader(b);

        return one.count == other.count &&
               !memcmp(one.domains, other.domains, one.count * sizeof(*one.domains));
}

/*
 * Forks come one after the other, all with the same tokens.  So the blocks that the one before
 * found are used again without a look-up.  Returns NULL if this request is not such a fork.
 */
static const struct slot *find_twin(const struct sched *sched, const struct request *request)
{
        const struct request *other = sched->newest ? sched->newest->request : NULL;

        if (!other || other->parks || request->parks || !is_same_reader(other, request) ||
            other->sequence.token_count != request->sequence.token_count ||
            !begins_alike(&other->sequence, &request->sequence, request->sequence.token_count))
                return NULL;
        return sched->newest;
}

static void find_known(const struct sched *sched, struct slot *slot, struct prefix_hit *ret_hit)
{
        const struct request *request = slot->request;
        const struct prefix_reader reader = request_reader(request);
        const struct slot *twin = find_twin(sched, request);

        if (!twin) {
                prefix_find(&sched->prefix, &reader, request->sequence.tokens,
                            request->sequence.token_count, slot->blocks, ret_hit);
                return;
        }
        memcpy(slot->blocks, twin->blocks, twin->block_count * sizeof(*slot->blocks));
        *ret_hit = (struct prefix_hit){
                .whole_count = twin->block_count,
                .tail = twin->tail,
                .tail_count = twin->cached - twin->block_count * BLOCK_POSITIONS,
                .diverged_at = twin->request->sequence.diverged_at,
                .known_token = twin->request->sequence.known_token,
        };
}

/*
 * Finds the blocks that the pool already has for a request, and holds them.  So they are not
 * evicted to make room for its other blocks.
 */
static void hold_known(struct sched *sched, struct slot *slot)
{
        const struct request *request = slot->request;
        struct prefix_hit hit;

        find_known(sched, slot, &hit);
        for (uint32_t i = 0; i < hit.whole_count; i++)
                prefix_hold(&sched->prefix, slot->blocks[i]);
        if (!request->parks) { /* the client is told the values of the first start */
                slot->request->sequence.diverged_at = hit.diverged_at;
                slot->request->sequence.known_token = hit.known_token;
        }
        slot->block_count = hit.whole_count;
        slot->tail = hit.tail;
        if (hit.tail != BLOCK_NONE)
                prefix_hold(&sched->prefix, hit.tail);
        slot->cached = hit.whole_count * BLOCK_POSITIONS + hit.tail_count;
}

static void drop_known(struct sched *sched, struct slot *slot)
{
        if (slot->tail != BLOCK_NONE)
                prefix_drop(&sched->prefix, slot->tail);
        slot->tail = BLOCK_NONE;
        while (slot->block_count)
                prefix_drop(&sched->prefix, slot->blocks[--slot->block_count]);
}

/* The number of blocks that are missing if `blocks` more are to be promised. */
static uint32_t missing(const struct sched *sched, uint32_t blocks)
{
        uint64_t wanted = sched->promised + (uint64_t)blocks;
        uint32_t left = prefix_left(&sched->prefix);

        return wanted > left ? (uint32_t)(wanted - left) : 0;
}

static void clear(struct slot *slot, struct request *request)
{
        assert(!slot->block_count && !slot->plans && !slot->wanted);
        *slot = (struct slot){ .request = request, .blocks = slot->blocks, .tail = BLOCK_NONE };
}

/*
 * Would its user exceed its share, with this slot and the blocks that are to be promised to it?
 */
static bool is_over(const struct sched *sched, const struct slot *slot)
{
        return !share_may_take(&sched->shares, slot->request->uid, sched_charge_with(sched, slot));
}

/*
 * Holds the blocks that are in the pool and sets how many have to be promised.  Returns how many
 * blocks are missing for that promise.  A tail is held in addition to the block that it will be
 * copied to.  If that is one block too many, in the pool or for the user, the tail is not used.
 */
static uint32_t provide(struct sched *sched, struct slot *slot, struct request *request)
{
        clear(slot, request);
        hold_known(sched, slot);
        slot->promised = blocks_for(request_positions(request)) - slot->block_count;
        if (slot->tail != BLOCK_NONE && (missing(sched, slot->promised) || is_over(sched, slot))) {
                prefix_drop(&sched->prefix, slot->tail);
                slot->tail = BLOCK_NONE;
                slot->cached = slot->block_count * BLOCK_POSITIONS;
        }
        return missing(sched, slot->promised);
}

static void withdraw(struct sched *sched, struct slot *slot)
{
        drop_known(sched, slot);
        clear(slot, NULL);
}

/* The blocks that it needs in addition if all of its tokens are found. */
static uint32_t least_blocks(const struct request *request)
{
        return blocks_for(request_positions(request)) -
               request->sequence.token_count / BLOCK_POSITIONS;
}

/*
 * Gives a request a slot.  Returns false if there is no slot, if there are not enough blocks, or
 * if its user would have too many.  If all tokens were found, the last row is computed again.
 */
static bool let_in(struct sched *sched, struct request *request)
{
        uint32_t last = request->sequence.token_count - 1, number;
        struct slot *slot;

        if (!sched->free_slot_count || missing(sched, least_blocks(request)))
                return false; /* even if all of its tokens are found */
        number = sched->free_slots[sched->free_slot_count - 1];
        slot = &sched->slots[number];
        assert(!slot->request);
        if (provide(sched, slot, request) || is_over(sched, slot)) {
                withdraw(sched, slot);
                return false;
        }
        sched->promised += slot->promised;
        share_promise(&sched->shares, request->uid, slot->promised);
        slot->named = slot->block_count;
        slot->planned = slot->cached < last ? slot->cached : last;
        if (!request->parks)
                request->sequence.cached_count = slot->planned;
        sched->newest = slot;
        sched->free_slot_count--;
        share_take(&sched->shares, request->uid);
        request->sequence.slot = number;
        request_move(request, REQUEST_PREFILL);
        roster_remove(&sched->waiting, request);
        roster_add(&sched->running, request);
        return true;
}

void sched_free_slot(struct sched *sched, struct request *request)
{
        struct slot *slot = sched_slot(sched, request);

        sched_let_go(sched, slot);
        share_give_back(&sched->shares, request->uid);
        clear(slot, NULL);
        sched->free_slots[sched->free_slot_count++] = request->sequence.slot;
        request->sequence.slot = SEQUENCE_NO_SLOT;
}

/* ---- parking: preemption ---- */

/* All its rows have come back: it waits again, at its old place in the queue. */
static void wait_again(struct sched *sched, struct request *request)
{
        struct roster *waiting = &sched->waiting;
        uint32_t at;

        sched->newest = NULL; /* its blocks may have been named just now */
        sched_free_slot(sched, request);
        roster_remove(&sched->running, request);
        share_wait_again(&sched->shares, request->uid);
        request_move(request, REQUEST_WAITING);
        request->waiting_ns = sched->now_ns;
        roster_add(waiting, request);
        for (at = waiting->count - 1; at && waiting->at[at - 1]->arrival > request->arrival; at--)
                waiting->at[at] = waiting->at[at - 1];
        waiting->at[at] = request;
}

static void park(struct sched *sched, struct request *request)
{
        request_move(request, REQUEST_PARKING);
        request->parks++;
        sched->parks++;
        if (!sched_slot(sched, request)->plans)
                wait_again(sched, request);
}

void sched_clear_parked(struct sched *sched)
{
        for (uint32_t i = sched->running.count; i > 0; i--) {
                struct request *request = sched->running.at[i - 1];

                if (request->state == REQUEST_PARKING && !sched_slot(sched, request)->plans)
                        wait_again(sched, request);
        }
}

/*
 * The order of preemption; GIVE_NOTHING: the request keeps its slot.  A user may exceed its half
 * only while no other user waits.  A user that would exceed it must not preempt requests of
 * others: they would then wait, and its limit would apply.
 */
enum give { GIVE_STALLED, GIVE_BACKGROUND, GIVE_NORMAL, GIVE_NOTHING };

static enum give gives_way(const struct sched *sched, const struct request *request,
                           const struct request *to, bool within)
{
        if (request->parks >= sched->conf.parks_max)
                return GIVE_NOTHING;
        if (request->uid != to->uid && !within)
                return GIVE_NOTHING;
        if (request->stalled && sched->now_ns >= sched_grace_end(sched, request))
                return GIVE_STALLED;
        if (request->class <= to->class)
                return GIVE_NOTHING;
        return request->class == REQUEST_BACKGROUND ? GIVE_BACKGROUND : GIVE_NORMAL;
}

/*
 * The number of blocks that could be promised to others if this slot were preempted as well, after
 * those chosen before.  Of its blocks those count that no other sequence would still hold.
 */
static uint32_t gain(const struct sched *sched, const struct slot *slot)
{
        const uint32_t *holds = sched->prefix.pool.holds;
        uint32_t blocks = slot->promised;

        for (uint32_t i = 0; i < slot->block_count; i++)
                blocks += ++sched->drops[slot->blocks[i]] == holds[slot->blocks[i]];
        if (slot->tail != BLOCK_NONE)
                blocks += ++sched->drops[slot->tail] == holds[slot->tail];
        return blocks;
}

/*
 * Writes the requests to preempt for a slot and `blocks` blocks to `chosen`.  Returns
 * how many, or 0 if even all of them together would not be enough.
 */
static uint32_t choose(struct sched *sched, const struct request *to, bool within, uint32_t blocks)
{
        uint32_t count = 0, got = 0;

        memset(sched->drops, 0, sched->conf.blocks * sizeof(*sched->drops));
        for (enum give order = GIVE_STALLED; order < GIVE_NOTHING; order++) {
                for (uint32_t i = sched->running.count; i > 0; i--) {
                        struct request *request = sched->running.at[i - 1];

                        if ((sched->free_slot_count || count) && got >= blocks)
                                return count;
                        if (gives_way(sched, request, to, within) != order)
                                continue;
                        sched->chosen[count++] = request;
                        got += gain(sched, sched_slot(sched, request));
                }
        }
        return (sched->free_slot_count || count) && got >= blocks ? count : 0;
}

/* Can any request be preempted now?  Not while another one is still being preempted. */
static bool may_make_way(const struct sched *sched, const struct request *to, bool within)
{
        bool may = false;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];

                if (request->state == REQUEST_PARKING)
                        return false;
                may |= gives_way(sched, request, to, within) != GIVE_NOTHING;
        }
        return may;
}

/*
 * Preempts as few requests as are needed for `to`.  Or it passes the user of `to` over, if that
 * user would exceed its share with the blocks that the request finds.  Those blocks are held
 * meanwhile, as preempting other requests does not make them free.
 * Returns false if it did neither; then no request behind `to` gets a slot.
 */
static bool make_way(struct sched *sched, struct request *to)
{
        struct slot *probe = &sched->probe;
        uint32_t blocks = provide(sched, probe, to), count = 0;
        bool over = is_over(sched, probe);
        bool within = share_is_within(&sched->shares, to->uid, sched_charge_with(sched, probe));

        if (over)
                share_pass_over(&sched->shares, to->uid);
        else if (!sched->conf.batch_size && may_make_way(sched, to, within))
                count = choose(sched, to, within, blocks);
        withdraw(sched, probe);
        for (uint32_t i = 0; i < count; i++)
                park(sched, sched->chosen[i]);
        return over || count;
}

/* ---- the queue ---- */

/* Will a running request compute at least one more block that this request needs as well? */
static bool is_being_read(const struct sched *sched, const struct request *request)
{
        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *other = sched->running.at[i];

                if (other->state == REQUEST_PREFILL && !other->stalled &&
                    other->class <= request->class &&
                    request_domain(other) == request_domain(request) &&
                    begins_alike(&other->sequence, &request->sequence,
                                 sched_slot(sched, other)->planned + BLOCK_POSITIONS))
                        return true;
        }
        return false;
}

/* The first request in the queue that is not skipped, or NULL. */
static struct request *next_in_line(struct sched *sched)
{
        const struct shares *shares = &sched->shares;
        struct request *best = NULL;
        uint64_t best_served = 0;

        for (uint32_t i = 0; i < sched->waiting.count; i++) {
                struct request *request = sched->waiting.at[i];
                uint64_t served;

                if (request->stalled || request->skipped == shares->look ||
                    share_is_passed_over(shares, request->uid))
                        continue;
                served = share_served(shares, request->uid, request->class);
                if (!best || request->class < best->class ||
                    (request->class == best->class && served < best_served)) {
                        best = request;
                        best_served = served;
                }
        }
        return best;
}

/*
 * A batch begins when no request has a slot, and the batch is full or its first request has waited
 * long enough.
 */
static bool batch_may_begin(const struct sched *sched, struct plan *plan)
{
        uint64_t end = UINT64_MAX;

        if (sched->free_slot_count < sched->conf.slots || !sched->waiting.count)
                return false;
        for (uint32_t i = 0; i < sched->waiting.count; i++) {
                uint64_t due = sched_after(sched->waiting.at[i]->waiting_ns, sched->conf.window_ns);

                end = due < end ? due : end;
        }
        if (sched->waiting.count >= sched->conf.batch_size || sched->now_ns >= end)
                return true;
        plan_wake(plan, end);
        return false;
}

static bool is_batch_full(const struct sched *sched)
{
        return sched->conf.batch_size &&
               sched->conf.slots - sched->free_slot_count >= sched->conf.batch_size;
}

/* Returns false if no request behind this one gets a slot, either. */
static bool ask_next(struct sched *sched, struct request *request)
{
        uint64_t parts = sched_charge(sched, request->uid) + least_blocks(request) * SHARE_PARTS;

        if (!sched->conf.batch_size && is_being_read(sched, request)) {
                request->skipped = sched->shares.look;
                return true;
        }
        if (!share_may_take(&sched->shares, request->uid, parts)) {
                share_pass_over(&sched->shares, request->uid);
                return true;
        }
        if (!let_in(sched, request))
                return make_way(sched, request);
        /* Now one user waits only: the half does not apply any more, so begin a new pass. */
        if (sched->shares.waiting_users == 1)
                share_look(&sched->shares);
        return true;
}

static uint32_t count_passed_over(const struct sched *sched)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < sched->waiting.count; i++)
                count += share_is_passed_over(&sched->shares, sched->waiting.at[i]->uid);
        return count;
}

void sched_enter(struct sched *sched, struct plan *plan)
{
        struct request *request;

        share_look(&sched->shares);
        sched->newest = NULL;
        sched->passed_over = 0;
        if (sched->conf.batch_size && !batch_may_begin(sched, plan))
                return;
        while (!is_batch_full(sched) && (request = next_in_line(sched)))
                if (!ask_next(sched, request))
                        break;
        sched->passed_over = count_passed_over(sched);
}
