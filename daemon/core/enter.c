/*
 * Who waits is let in: gets a slot, and the blocks of its worst case promised.
 *
 * The next in line is of the best class; in it, of the user who was served least;
 * of his, who came first.  It waits until its blocks can be promised, and everybody
 * behind it waits too, even one that would fit: else a stream of small requests
 * could pass a large one for ever.  Whoever has a slot ends sooner or later, so
 * within a class nobody starves.  Left where they stand are
 *
 *      those of a user who has his share, while others wait   (share.h)
 *      one that begins like one that is being read just now: what it would compute
 *      it will find, a few steps later
 *      one that was parked and whose reader does not read
 *
 * Parking.  Who stands in front of a full house may have others give up their
 * slots: those of a lower class, and those who have been stalled for long.  A
 * parked one waits again, in its old place, and keeps its tokens; what it had in
 * the pool is found again, or computed again.  Its draws are keyed by position, so it
 * goes on as if nothing had been.  Nobody is parked in vain, or for ever again.
 *
 * Batches are for comparison: who comes does not join what runs.
 */
#include "daemon/core/sched-state.h"

#include <string.h>

static bool begins_alike(const struct sequence *a, const struct sequence *b, uint32_t count)
{
        return a->token_count >= count && b->token_count >= count &&
               !memcmp(a->tokens, b->tokens, count * sizeof(*a->tokens));
}

/* Where they look is the same. */
static bool is_same_reader(const struct request *a, const struct request *b)
{
        const struct prefix_reader one = request_reader(a), other = request_reader(b);

        return one.count == other.count &&
               !memcmp(one.domains, other.domains, one.count * sizeof(*one.domains));
}

/* Forks come in a row, each with all tokens of the one before: what that has found is not looked for
 * again.  NULL: this one is no such. */
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

/* What the pool has of its tokens, held, so that nothing of it is evicted for the rest. */
static void hold_known(struct sched *sched, struct slot *slot)
{
        const struct request *request = slot->request;
        struct prefix_hit hit;

        find_known(sched, slot, &hit);
        for (uint32_t i = 0; i < hit.whole_count; i++)
                prefix_hold(&sched->prefix, slot->blocks[i]);
        if (!request->parks) { /* what is said of it is what was so when it first began */
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

/* Blocks that are missing for so many to be promised. */
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

/* Would its user have more than he may, with this slot and what is to be promised to it? */
static bool is_over(const struct sched *sched, const struct slot *slot)
{
        return !share_may_take(&sched->shares, slot->request->uid, sched_charge_with(sched, slot));
}

/*
 * Holds what is there of it and says what has to be promised; returns how many
 * blocks are missing for that.  A tail is held beside the block it will be copied
 * to; where that is one block too many, in the pool or for its user, there is no tail.
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

/* What it needs more than is there, if all of its tokens are found. */
static uint32_t least_blocks(const struct request *request)
{
        return blocks_for(request_positions(request)) -
               request->sequence.token_count / BLOCK_POSITIONS;
}

/* False: there is no slot, not enough blocks, or too many for its user.  Of what was found, the last
 * row is computed again. */
static bool let_in(struct sched *sched, struct request *request)
{
        uint32_t last = request->sequence.token_count - 1, number;
        struct slot *slot;

        if (!sched->free_slot_count || missing(sched, least_blocks(request)))
                return false; /* whatever is there */
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

/* ---- parking ---- */

/* Its rows have come back: it waits again, where it stood. */
static void wait_again(struct sched *sched, struct request *request)
{
        struct roster *waiting = &sched->waiting;
        uint32_t at;

        sched->newest = NULL; /* what it had may have been named just now */
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
 * The order of giving way; GIVE_NOTHING: it keeps its slot.  Who would be above his half, because
 * nobody else waits, gets nothing of others: they would wait then, and bind him.
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
 * Blocks that could be promised to others if this one gave way, too, after those who did
 * already: of what it has, all that nobody is left to hold.
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
 * Those who have to give way for a slot and so many blocks, into `chosen`; returns
 * how many, or 0: all together would not do.
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

/* Could anybody give way now?  Not while one is on his way out. */
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
 * Parks as few as will do for this one, or passes its user over, if with what it would find
 * he had too much.  What that is, is held meanwhile: it comes free by nobody's parking.
 * False: neither, and nobody behind it is let in.
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

/* ---- the line ---- */

/* Is somebody about to compute at least one more block that this one needs as well? */
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

/* The first among those who are not left where they stand; NULL: nobody. */
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

/* A batch begins in an empty house, when it is full or its first has waited long enough. */
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

/* False: nobody behind it is let in, either. */
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
        if (sched->shares.waiting_users == 1)
                share_look(&sched->shares); /* who bound the others has his slot */
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
