/*
 * Admission to slots: a waiting request gets a slot, and blocks are promised to it: those of its
 * worst case, or those that it needs now (sched_promise()).  In the latter case it also waits if
 * the forecast says that the pool would not hold what it and the running requests will need
 * (sched_excess()).
 *
 * The next request is the one with the lowest rank (rank.c), of equals the one that arrived first.
 * So the user that was served least comes first, and class orders the requests of a user.
 *
 * The next request waits until its blocks can be promised, and all requests behind it wait too,
 * even one that would fit.  Otherwise a stream of small requests could pass a large one for ever.
 * Every request with a slot ends sooner or later, and each step brings the users before this one
 * closer to it; so every request gets a slot.  Skipped for now are
 *
 *      requests of a user that has its share, while other users wait   (fair-share.h)
 *      a request that begins like one that is being read at the moment: it will find
 *      the blocks in the index a few steps later instead of computing them
 *      a preempted request whose client does not read
 *      a request whose masks, or whose last token, are not there
 *
 * Preemption.  If the first request in the queue cannot get a slot or its blocks, other
 * requests may have to give up their slots.  These are requests of a lower class of the same user,
 * requests of users that were served more, and those whose clients do not read, or do not answer,
 * for long.  A preempted request waits again, in its old place in the queue, and keeps its tokens.
 * Its blocks are found again in the pool, or computed again.  Its random draws depend on the
 * position only, so it continues with the same result.  Requests are preempted only if that is
 * enough for the new request.  Each is preempted preemptions_max times at most, and more often only
 * for a user that has no slot, if its own user has several, or because its client does not answer.
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
static const struct slot *find_identical(const struct sched *sched, const struct request *request)
{
        const struct request *other = sched->last_admitted ? sched->last_admitted->request : NULL;

        if (!other || other->preemptions || request->preemptions || request_must_score(other) ||
            request_must_score(request) || !is_same_reader(other, request) ||
            other->sequence.token_count != request->sequence.token_count ||
            !begins_alike(&other->sequence, &request->sequence, request->sequence.token_count))
                return NULL;
        return sched->last_admitted;
}

static void find_cached(const struct sched *sched, struct slot *slot, struct prefix_hit *ret_hit)
{
        const struct request *request = slot->request;
        const struct prefix_reader reader = request_reader(request);
        const struct slot *same = find_identical(sched, request);

        if (!same) {
                prefix_find(&sched->prefix, &reader, request->sequence.tokens,
                            request_findable(request), slot->blocks, ret_hit);
                return;
        }
        memcpy(slot->blocks, same->blocks, same->block_count * sizeof(*slot->blocks));
        *ret_hit = (struct prefix_hit){
                .whole_count = same->block_count,
                .tail = same->tail,
                .tail_count = same->cached - same->block_count * BLOCK_POSITIONS,
                .swap_count = same->swapped,
                .known_count = same->known,
                .diverged_at = same->request->sequence.diverged_at,
                .diverged_cached_token = same->request->sequence.diverged_cached_token,
        };
}

/*
 * Finds the blocks that the pool already has for a request, and references them.  So
 * they are not evicted when its other blocks are allocated.
 */
static void ref_cached(struct sched *sched, struct slot *slot)
{
        const struct request *request = slot->request;
        struct prefix_hit hit;

        find_cached(sched, slot, &hit);
        for (uint32_t i = 0; i < hit.whole_count; i++)
                prefix_ref(&sched->prefix, slot->blocks[i]);
        if (!request->preemptions) { /* the client is told the values of the first start */
                slot->request->sequence.diverged_at = hit.diverged_at;
                slot->request->sequence.diverged_cached_token = hit.diverged_cached_token;
        }
        slot->block_count = hit.whole_count;
        slot->tail = hit.tail;
        if (hit.tail != BLOCK_NONE)
                prefix_ref(&sched->prefix, hit.tail);
        slot->known = hit.known_count;
        slot->cached = hit.whole_count * BLOCK_POSITIONS + hit.tail_count;
        slot->swapped = sched_may_swap(sched) ? hit.swap_count : 0;
        sched_ref_windows(sched, slot);
}

static void unref_cached(struct sched *sched, struct slot *slot)
{
        sched_unref_windows(sched, slot);
        if (slot->tail != BLOCK_NONE)
                prefix_unref(&sched->prefix, slot->tail);
        slot->tail = BLOCK_NONE;
        while (slot->block_count)
                prefix_unref(&sched->prefix, slot->blocks[--slot->block_count]);
}

/* The number of blocks that are missing if `blocks` more are to be reserved. */
static uint32_t missing(const struct sched *sched, uint32_t blocks)
{
        uint64_t wanted = sched->reserved + (uint64_t)blocks;
        uint32_t left = prefix_available(&sched->prefix);

        return wanted > left ? (uint32_t)(wanted - left) : 0;
}

/* Are there too few window pages for it, after `given_back` that others were promised? */
static bool lacks_windows(const struct sched *sched, const struct request *request,
                          uint32_t given_back)
{
        uint64_t wanted = sched_windows_of(&sched->conf, request_worst(request));

        return sched->windows - given_back + wanted > sched_windows_max(&sched->conf);
}

static void clear(struct slot *slot, struct request *request)
{
        assert(!slot->block_count && !slot->plans && !slot->wanted && !slot->scores);
        *slot = (struct slot){ .request = request, .blocks = slot->blocks, .tail = BLOCK_NONE };
}

/*
 * Would its user exceed its share, with this slot and the blocks that are to be reserved for it?
 */
static bool exceeds_share(const struct sched *sched, const struct slot *slot)
{
        return !fair_share_may_take_slot(&sched->fair_share, slot->request->uid,
                                         sched_usage_with(sched, slot));
}

/* Does the forecast say that the pool will not hold it, once these have been preempted for it? */
static bool is_too_much(struct sched *sched, const struct slot *slot, uint32_t victim_count,
                        uint32_t freed)
{
        return !sched_is_reserved(sched, slot->request) &&
               sched_excess(sched, slot, victim_count, freed);
}

/*
 * References the blocks that are in the pool and sets how many have to be reserved.  Returns how
 * many blocks are missing for that.  A tail is referenced in addition to the block that it will be
 * copied to.  If that is one block too many, for the user, or in the pool now or some day, the tail
 * is not used.
 */
static uint32_t prepare(struct sched *sched, struct slot *slot, struct request *request)
{
        clear(slot, request);
        ref_cached(sched, slot);
        slot->reserved = sched_promise(sched, request) - slot->block_count;
        if (slot->tail != BLOCK_NONE &&
            (missing(sched, slot->reserved) || exceeds_share(sched, slot) ||
             is_too_much(sched, slot, 0, 0))) {
                sched_unref_source(sched, slot->tail);
                slot->tail = BLOCK_NONE;
                slot->cached = slot->block_count * BLOCK_POSITIONS;
        }
        return missing(sched, slot->reserved);
}

static void unprepare(struct sched *sched, struct slot *slot)
{
        unref_cached(sched, slot);
        clear(slot, NULL);
}

/* The blocks that it needs in addition if all that it may find is found. */
static uint32_t least_blocks(const struct sched *sched, const struct request *request)
{
        return sched_promise(sched, request) - request_findable(request) / BLOCK_POSITIONS;
}

/*
 * Gives a request a slot.  Returns false if there is no slot, if there are not enough blocks, or
 * if its user would have too many.  If all tokens were found, the last row is computed again.
 */
static bool admit(struct sched *sched, struct request *request)
{
        uint32_t last = request->sequence.token_count - 1, number;
        struct slot *slot;

        /* Some blocks may be missing even if all of its tokens are found. */
        if (!sched->free_slots.count || lacks_windows(sched, request, 0) ||
            missing(sched, least_blocks(sched, request)))
                return false;
        number = free_numbers_next(&sched->free_slots);
        slot = &sched->slots[number];
        assert(!slot->request);
        if (prepare(sched, slot, request) || exceeds_share(sched, slot) ||
            (request->held_back = is_too_much(sched, slot, 0, 0))) {
                unprepare(sched, slot);
                return false;
        }
        request->reserves =
                !sched_must_reserve(sched, request) && sched_may_reserve(sched, request);
        sched->reserving += request->reserves ? request_worst(request) : 0;
        sched->reserved += slot->reserved;
        slot->windows = sched_windows_of(&sched->conf, request_worst(request));
        sched->windows += slot->windows;
        request->promised = slot->block_count + slot->reserved;
        fair_share_reserve(&sched->fair_share, request->uid, slot->reserved);
        slot->inserted = slot->block_count;
        slot->planned = slot->cached < last ? slot->cached : last;
        if (!request->preemptions)
                request->sequence.cached_count = slot->planned;
        sched->last_admitted = slot;
        free_numbers_take(&sched->free_slots);
        request->granted = sched_class(sched, request);
        request->since_ns = request->slot_ns = sched->now_ns;
        fair_share_take_slot(&sched->fair_share, request->uid, request->priority, sched->now_ns);
        request->sequence.slot = number;
        request_tell_wait(request, REQUEST_WAITS_FOR_NOTHING);
        request_move(request, REQUEST_PREFILL);
        request_list_remove(&sched->waiting, request);
        request_list_add(&sched->running, request);
        return true;
}

void sched_free_slot(struct sched *sched, struct request *request)
{
        struct slot *slot = sched_slot(sched, request);

        sched_release(sched, slot);
        sched->windows -= slot->windows;
        sched->reserving -= request->reserves ? request_worst(request) : 0;
        request->reserves = false;
        fair_share_return_slot(&sched->fair_share, request->uid);
        clear(slot, NULL);
        free_numbers_give_back(&sched->free_slots, request->sequence.slot);
        request->sequence.slot = SEQUENCE_NO_SLOT;
}

/* ---- preemption ---- */

/* All its rows have come back: it waits again, at its old place in the queue. */
static void requeue(struct sched *sched, struct request *request)
{
        struct request_list *waiting = &sched->waiting;
        uint32_t at;

        sched->last_admitted = NULL; /* its blocks may have been inserted just now */
        if (request->computed < sched_slot(sched, request)->planned)
                request->computed = sched_slot(sched, request)->planned;
        sched_free_slot(sched, request);
        request_list_remove(&sched->running, request);
        if (!sched_is_unready(request))
                fair_share_add_waiting(&sched->fair_share, request->uid);
        request_move(request, REQUEST_WAITING);
        request_tell_wait(request, REQUEST_WAITS_FOR_TURN);
        request->lacks_block = false;
        request->since_ns = sched->now_ns;
        request_list_add(waiting, request);
        for (at = waiting->count - 1; at && waiting->at[at - 1]->arrival > request->arrival; at--)
                waiting->at[at] = waiting->at[at - 1];
        waiting->at[at] = request;
}

void sched_preempt(struct sched *sched, struct request *request)
{
        request_move(request, REQUEST_PREEMPTING);
        request->preemptions++;
        sched->preemptions++;
        request_tell_pauses(request);
        if (!sched_slot(sched, request)->plans)
                requeue(sched, request);
}

void sched_finish_preempting(struct sched *sched)
{
        for (uint32_t i = sched->running.count; i > 0; i--) {
                struct request *request = sched->running.at[i - 1];

                if (request->state == REQUEST_PREEMPTING && !sched_slot(sched, request)->plans)
                        requeue(sched, request);
        }
}

#define VICTIM_STALLED UINT64_MAX /* the rank of a request whose client is awaited for long */

/*
 * May a request of `rank` be preempted for one of another user, to make the users equal?  Its user
 * must have more slots.  Users that have as many become equal as their requests end, and this
 * costs nothing.  It must be behind in rank, so that it does not get the slot back at once, and by
 * a lead, so that two users do not preempt each other all the time.  That cannot happen if the
 * other user has no slot and this one has several.  Then the lead does not matter, nor how often
 * the request was preempted (`worn`): otherwise a user could fill all slots with such requests.
 */
static bool is_behind(const struct sched *sched, const struct request *request,
                      const struct request *to, uint64_t rank, bool worn)
{
        uint32_t slots = fair_share_slots(&sched->fair_share, request->uid);
        uint32_t others = fair_share_slots(&sched->fair_share, to->uid);

        if (slots <= others)
                return false;
        if (!others && slots > 1)
                return rank > sched_rank(sched, to);
        return !worn && rank >= sched_rank(sched, to) + sched->conf.lead_ns;
}

/*
 * May this request be preempted for `to`, and in which order?  Within a user, class decides;
 * between users, their shares.  A user may exceed its half only while no other user waits.  A user
 * that would exceed it must not preempt requests of others: they would then wait, and its limit
 * would apply.  If `to` would be reserved, but for others that fill the part of the pool for
 * that, none of these gives way: `to` would be reserved then, and might need more than they free.
 * None of this is for requests whose clients do not answer: they do not count as waiting, and
 * nothing else would end that they keep their slots.
 */
static bool is_victim(const struct sched *sched, const struct request *request,
                      const struct request *to, bool within, uint64_t *ret_rank)
{
        bool own = request->uid == to->uid;
        bool worn = sched_is_worn(sched, request);

        *ret_rank = VICTIM_STALLED;
        if (sched_is_unanswered(sched, request))
                return true;
        if (!own && !within)
                return false;
        if (request->reserves && !sched->conf.learned[to->priority] &&
            !sched_is_reserved(sched, to))
                return false;
        if (!worn && request->stalled && sched->now_ns >= sched_preempt_time(sched, request))
                return true;
        *ret_rank = sched_held_rank(sched, request);
        if (own)
                return !worn && sched_held_class(sched, request) > sched_class(sched, to);
        return is_behind(sched, request, to, *ret_rank, worn);
}

/*
 * The number of blocks that could be reserved for others if this slot were preempted as well, after
 * those chosen before.  Of its blocks those count that no other sequence would still reference.
 */
static uint32_t freed_blocks(const struct sched *sched, const struct slot *slot)
{
        const uint32_t *ref_counts = sched->prefix.pool.ref_counts;
        uint32_t blocks = slot->reserved;

        for (uint32_t i = 0; i < slot->block_count; i++)
                blocks += ++sched->victim_refs[slot->blocks[i]] == ref_counts[slot->blocks[i]];
        if (slot->tail != BLOCK_NONE)
                blocks += ++sched->victim_refs[slot->tail] == ref_counts[slot->tail];
        return blocks;
}

/*
 * Lists the requests that may be preempted for `to`: those whose clients are awaited for long come
 * first, then by rank, the highest first; of equals the one that got its slot last.  Returns 0
 * while another request is still being preempted.
 */
static uint32_t list_victims(struct sched *sched, const struct request *to, bool within)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                struct victim victim = { .request = sched->running.at[i] };
                uint32_t at = count;

                if (victim.request->state == REQUEST_PREEMPTING)
                        return 0;
                if (!is_victim(sched, victim.request, to, within, &victim.rank))
                        continue;
                for (; at && sched->victims[at - 1].rank <= victim.rank; at--)
                        sched->victims[at] = sched->victims[at - 1];
                sched->victims[at] = victim;
                count++;
        }
        return count;
}

/*
 * Writes the requests to preempt to the front of `victims`, so that this slot can begin.  Returns
 * how many, or 0 if even all of them together would not be enough.  Without those that count
 * towards conf.reserve_max, the slot may be reserved; then it needs more blocks.
 */
static uint32_t choose_victims(struct sched *sched, struct slot *slot, bool within)
{
        uint32_t listed = list_victims(sched, slot->request, within), count = 0, got = 0;
        uint32_t windows = 0, reserving = sched->reserving;

        memset(sched->victim_refs, 0, sched->conf.blocks * sizeof(*sched->victim_refs));
        while ((!sched->free_slots.count && !count) || got < missing(sched, slot->reserved) ||
               lacks_windows(sched, slot->request, windows) ||
               is_too_much(sched, slot, count, got)) {
                const struct request *victim;

                if (count == listed) {
                        count = 0;
                        break;
                }
                victim = sched->victims[count++].request;
                windows += sched_slot(sched, victim)->windows;
                got += freed_blocks(sched, sched_slot(sched, victim));
                sched->reserving -= victim->reserves ? request_worst(victim) : 0;
                slot->reserved = sched_promise(sched, slot->request) - slot->block_count;
        }
        sched->reserving = reserving;
        return count;
}

static void tell_windows(const struct sched *sched, struct request *request)
{
        request_tell_fact(request, REQUEST_NEEDS,
                          sched_windows_of(&sched->conf, request_worst(request)));
        request_tell_fact(request, REQUEST_FREE, sched_windows_max(&sched->conf) - sched->windows);
        request_tell_wait(request, REQUEST_WAITS_FOR_WINDOWS);
}

/* It waits because its user would be charged with `parts`. */
static void tell_share(const struct sched *sched, struct request *request, uint64_t parts)
{
        const struct fair_share_excess excess =
                fair_share_excess(&sched->fair_share, request->uid, parts);

        request_tell_fact(request, REQUEST_USER_SLOTS, excess.slots);
        request_tell_fact(request, REQUEST_USER_SLOTS_MAX, excess.slots_max);
        request_tell_fact(request, REQUEST_USER_BLOCKS, excess.blocks);
        request_tell_fact(request, REQUEST_USER_BLOCKS_MAX, excess.blocks_max);
        request_tell_wait(request, REQUEST_WAITS_FOR_SHARE);
}

/*
 * The blocks that it has found are referenced, so they count as in use here.  If others have been
 * promised some of them, it needs as many more.
 */
static void tell_blocks(const struct sched *sched, const struct slot *probe, uint32_t lacking)
{
        uint32_t available = prefix_available(&sched->prefix);
        uint32_t spare = available > sched->reserved ? available - sched->reserved : 0;
        uint32_t cached = sched->prefix.pool.cached_count;
        uint32_t own = prefix_cached_by(&sched->prefix, probe->request->uid);

        cached = cached < spare ? cached : spare;
        request_tell_fact(probe->request, REQUEST_NEEDS, lacking + spare);
        request_tell_fact(probe->request, REQUEST_FREE, spare);
        request_tell_fact(probe->request, REQUEST_CACHED, cached);
        request_tell_fact(probe->request, REQUEST_OWN, own < cached ? own : cached);
        request_tell_wait(probe->request, REQUEST_WAITS_FOR_BLOCKS);
}

static void tell_forecast(struct sched *sched, const struct slot *probe)
{
        uint64_t expected = sched_expected(sched, probe, 0, 0);

        request_tell_fact(probe->request, REQUEST_EXPECTED,
                          expected < UINT32_MAX ? (uint32_t)expected : UINT32_MAX);
        request_tell_fact(probe->request, REQUEST_POOL, sched->conf.blocks);
        request_tell_wait(probe->request, REQUEST_WAITS_FOR_FORECAST);
}

/* Says why this request does not get its slot now. */
static void tell_wait(struct sched *sched, const struct slot *probe, bool over, uint32_t blocks)
{
        if (over)
                tell_share(sched, probe->request, sched_usage_with(sched, probe));
        else if (!sched->free_slots.count)
                request_tell_wait(probe->request, REQUEST_WAITS_FOR_SLOT);
        else if (lacks_windows(sched, probe->request, 0))
                tell_windows(sched, probe->request);
        else if (blocks)
                tell_blocks(sched, probe, blocks);
        else
                tell_forecast(sched, probe);
}

/*
 * Preempts as few requests as are needed for `to`.  Or it passes the user of `to` over, if that
 * user would exceed its share with the blocks that the request finds.  Those blocks are referenced
 * meanwhile, as preempting other requests does not make them free.  The share is asked again for
 * what is promised to `to` once the chosen ones are gone: then it may be reserved, and need more.
 * Returns false if it did neither; then no request behind `to` gets a slot.
 */
static bool preempt_for(struct sched *sched, struct request *to)
{
        struct slot *probe = &sched->probe;
        uint32_t blocks = prepare(sched, probe, to), count = 0;
        bool over = exceeds_share(sched, probe);
        bool within = fair_share_is_within_half(&sched->fair_share, to->uid,
                                                sched_usage_with(sched, probe));

        tell_wait(sched, probe, over, blocks);
        if (!over && !sched->conf.batch_size && sched->conf.preemptions_max)
                count = choose_victims(sched, probe, within);
        if (count && exceeds_share(sched, probe)) {
                count = 0;
                over = true;
                tell_wait(sched, probe, over, blocks);
        }
        if (over)
                fair_share_pass_over(&sched->fair_share, to->uid, sched_usage_with(sched, probe));
        unprepare(sched, probe);
        for (uint32_t i = 0; i < count; i++) {
                struct request *victim = sched->victims[i].request;

                victim->unanswered += sched_is_unanswered(sched, victim);
                sched_preempt(sched, victim);
        }
        return over || count;
}

/* ---- the queue ---- */

/* Will a running request compute at least one more block that this request needs as well? */
static bool is_being_prefilled(const struct sched *sched, const struct request *request)
{
        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *other = sched->running.at[i];
                uint32_t count = sched_slot(sched, other)->planned + BLOCK_POSITIONS;

                if (other->state == REQUEST_PREFILL && !other->stalled &&
                    request_findable(request) >= count &&
                    sched_rank(sched, other) <= sched_rank(sched, request) &&
                    request_domain(other) == request_domain(request) &&
                    begins_alike(&other->sequence, &request->sequence, count))
                        return true;
        }
        return false;
}

/* The first request in the queue that is not skipped, or NULL. */
static struct request *next_waiting(struct sched *sched)
{
        const struct fair_share *fair_share = &sched->fair_share;
        struct request *best = NULL;
        uint64_t best_rank = 0;

        for (uint32_t i = 0; i < sched->waiting.count; i++) {
                struct request *request = sched->waiting.at[i];
                uint64_t rank;

                if (request->stalled || sched_is_unready(request) ||
                    request->skipped_in_pass == fair_share->pass ||
                    fair_share_is_passed_over(fair_share, request->uid))
                        continue;
                rank = sched_rank(sched, request);
                if (!best || rank < best_rank) {
                        best = request;
                        best_rank = rank;
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

        if (sched->free_slots.count < sched->conf.slots || !sched->waiting.count)
                return false;
        for (uint32_t i = 0; i < sched->waiting.count; i++) {
                uint64_t due =
                        sched_after(sched->waiting.at[i]->since_ns, sched->conf.batch_window_ns);

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
               sched->conf.slots - sched->free_slots.count >= sched->conf.batch_size;
}

/* Does a slot of this user stand still because of a client? */
static bool holds_stalled(const struct sched *sched, uint64_t uid)
{
        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];

                if (request->uid == uid &&
                    (request->stalled || sched_is_unanswered(sched, request)))
                        return true;
        }
        return false;
}

/* Returns false if no request behind this one gets a slot, either. */
static bool try_admit(struct sched *sched, struct request *request)
{
        uint64_t parts =
                sched_usage(sched, request->uid) + least_blocks(sched, request) * BLOCK_PARTS;

        fair_share_note_stalled_slots(&sched->fair_share, request->uid,
                                      holds_stalled(sched, request->uid));

        if (!sched->conf.batch_size && is_being_prefilled(sched, request)) {
                request->skipped_in_pass = sched->fair_share.pass;
                request_tell_wait(request, REQUEST_WAITS_FOR_PREFIX);
                return true;
        }
        if (!fair_share_may_take_slot(&sched->fair_share, request->uid, parts)) {
                tell_share(sched, request, parts);
                fair_share_pass_over(&sched->fair_share, request->uid, parts);
                return true;
        }
        if (!admit(sched, request))
                return preempt_for(sched, request);
        /* One user less waits, so the half may no longer apply to others: begin a new pass. */
        if (!fair_share_is_waiting(&sched->fair_share, request->uid))
                fair_share_begin_pass(&sched->fair_share);
        return true;
}

static uint32_t count_passed_over(const struct sched *sched)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < sched->waiting.count; i++)
                count += fair_share_is_passed_over(&sched->fair_share, sched->waiting.at[i]->uid);
        return count;
}

/* The reasons that the last plan gave are over. */
static void forget_waits(struct sched *sched)
{
        for (uint32_t i = 0; i < sched->waiting.count; i++) {
                struct request *request = sched->waiting.at[i];

                request->held_back = false;
                request_tell_wait(request, request->stalled ? REQUEST_WAITS_FOR_READER
                                                            : REQUEST_WAITS_FOR_TURN);
        }
}

void sched_fill_slots(struct sched *sched, struct plan *plan)
{
        struct request *request;

        fair_share_begin_pass(&sched->fair_share);
        sched->last_admitted = NULL;
        sched->passed_over = 0;
        forget_waits(sched);
        if (sched->conf.batch_size && !batch_may_begin(sched, plan))
                return;
        while (!is_batch_full(sched) && (request = next_waiting(sched)))
                if (!try_admit(sched, request))
                        break;
        sched->passed_over = count_passed_over(sched);
}
