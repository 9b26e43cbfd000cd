/*
 * Growth: running requests take more blocks than they were promised with their slots.
 *
 * A request is promised the blocks of the tokens that it has and of some more (sched_promise()).
 * When its next row needs another block, it is promised one more, as long as the pool has any that
 * nobody was promised.  A request that waits for masks or for a token has no next row yet, so no
 * other one gives way to it.  If there is no such block, a running request is preempted and waits
 * again:
 *
 *      one of the user that has most of the pool, as usage.c counts it;
 *      of this user's requests one of the last class, and of these the youngest.
 *
 * This may be the request itself.  Requests with a full promise are left alone: they never lack a
 * block.  A request whose preemption frees nothing is left alone as well, if there is another one.
 * The blocks of a preempted request are cached, so they are usually found when it comes back.
 *
 * Everybody ends.  A request that was preempted conf.preemptions_max times comes back with a full
 * promise.  So each is preempted only so often, and one that runs alone always has space.
 */
#include "daemon/core/sched-state.h"

bool sched_lacks_block(const struct sched *sched, const struct request *request)
{
        const struct slot *slot = sched_slot(sched, request);

        return request->state == REQUEST_DECODE && slot->planned < request_positions(request) &&
               slot->planned / BLOCK_POSITIONS >= slot->block_count + slot->reserved;
}

/* Only its own requests can make room for a user that has all it may have. */
static bool is_over_limit(const struct sched *sched, uint64_t uid)
{
        uint64_t limit = sched->conf.user_blocks * BLOCK_PARTS;

        return limit && fair_share_slots(&sched->fair_share, uid) > 1 &&
               sched_usage(sched, uid) + BLOCK_PARTS > limit;
}

static void promise_block(struct sched *sched, struct request *request)
{
        sched_slot(sched, request)->reserved++;
        sched->reserved++;
        request->promised++;
        fair_share_reserve(&sched->fair_share, request->uid, 1);
}

static bool frees_blocks(const struct sched *sched, const struct request *request)
{
        const uint32_t *ref_counts = sched->prefix.pool.ref_counts;
        const struct slot *slot = sched_slot(sched, request);

        for (uint32_t i = slot->block_count; i; i--)
                if (ref_counts[slot->blocks[i - 1]] == 1)
                        return true;
        return slot->reserved > 0;
}

/* Is `a` preempted rather than `b`? */
static bool goes_first(const struct sched *sched, const struct request *a, const struct request *b)
{
        uint64_t usage_a = sched_usage(sched, a->uid), usage_b = sched_usage(sched, b->uid);
        bool frees_a = frees_blocks(sched, a), frees_b = frees_blocks(sched, b);

        if (frees_a != frees_b)
                return frees_a;
        if (a->uid != b->uid && usage_a != usage_b)
                return usage_a > usage_b;
        if (a->uid != b->uid)
                return a->uid > b->uid;
        if (a->priority != b->priority)
                return a->priority > b->priority;
        return a->arrival > b->arrival;
}

/* The request to be preempted for one that lacks a block, or NULL while another one still is. */
static struct request *find_victim(const struct sched *sched, const struct request *to,
                                   bool own_only)
{
        struct request *victim = NULL;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                struct request *request = sched->running.at[i];

                if (request->state == REQUEST_PREEMPTING)
                        return NULL;
                if (sched_is_reserved(sched, request) || (own_only && request->uid != to->uid))
                        continue;
                if (!victim || goes_first(sched, request, victim))
                        victim = request;
        }
        return victim;
}

/* Promises it its next block.  Returns false if it has to wait, or was preempted itself. */
static bool grow(struct sched *sched, struct request *request)
{
        for (;;) {
                bool own_only = is_over_limit(sched, request->uid);
                struct request *victim;

                if (!own_only && prefix_available(&sched->prefix) > sched->reserved) {
                        promise_block(sched, request);
                        return true;
                }
                victim = find_victim(sched, request, own_only);
                if (!victim)
                        return false;
                victim->blocks_lost++;
                sched->blocks_lost++;
                sched_preempt(sched, victim);
                if (victim == request)
                        return false;
        }
}

bool sched_grow(struct sched *sched)
{
        bool stalled = false;

        /* A preempted request leaves the list, and those behind it come nearer. */
        for (uint32_t i = 0; i < sched->running.count;) {
                struct request *request = sched->running.at[i];

                request->lacks_block = false;
                if (sched_lacks_block(sched, request) && !sched_is_unready(request)) {
                        bool grown = grow(sched, request);

                        request->lacks_block = !grown && request->state == REQUEST_DECODE;
                        stalled |= grown && request->stalled;
                }
                if (i < sched->running.count && sched->running.at[i] == request)
                        i++;
                else
                        i = 0;
        }
        return stalled;
}

static void add_stream(struct sched *sched, const struct slot *slot)
{
        const struct request *request = slot->request;
        uint32_t made = request->sequence.token_count - request->prompt_count;
        uint32_t blocks = slot->block_count + slot->reserved;
        uint32_t found = slot->cached / BLOCK_POSITIONS - slot->fetched;
        uint32_t room = blocks * BLOCK_POSITIONS, known = request->sequence.token_count;

        if (sched_is_reserved(sched, request))
                return; /* it keeps what it was promised */
        forecast_add(&sched->forecast,
                     &(struct forecast_stream){
                             .rest = forecast_rest(&sched->forecast, request->uid,
                                                   request->priority, made, request->max_tokens),
                             .spare = room - (known - 1), /* the last token has no position yet */
                             .own = blocks - (found < blocks ? found : blocks),
                     });
}

static bool is_victim(const struct sched *sched, const struct request *request, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                if (sched->victims[i].request == request)
                        return true;
        return false;
}

uint64_t sched_expected(struct sched *sched, const struct slot *slot, uint32_t victim_count,
                        uint32_t freed)
{
        uint64_t in_use = (uint64_t)kvpool_in_use(&sched->prefix.pool) + sched->reserved;

        forecast_clear(&sched->forecast);
        for (uint32_t i = 0; i < sched->running.count; i++)
                if (sched->running.at[i]->state != REQUEST_PREEMPTING &&
                    !is_victim(sched, sched->running.at[i], victim_count))
                        add_stream(sched, sched_slot(sched, sched->running.at[i]));
        add_stream(sched, slot);
        return forecast_most(&sched->forecast, in_use + slot->reserved - freed);
}

bool sched_excess(struct sched *sched, const struct slot *slot, uint32_t victim_count,
                  uint32_t freed)
{
        if (sched->running.count == victim_count || sched->conf.batch_size)
                return false;
        return sched_expected(sched, slot, victim_count, freed) > sched->conf.blocks;
}
