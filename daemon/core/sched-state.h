/*
 * The scheduler's state, shared by its parts.  sched-events.c takes events in, rank.c has the order
 * of requests, slots.c decides which of them have a slot, and plan-build.c makes plans.
 * cache-insert.c updates the index, usage.c computes the usage of users, charge.c their charges,
 * and sched-check.c checks all.  No other file includes this one.
 *
 * A request is in exactly one of three lists: `waiting` in order of arrival,
 * `running` in the order in which they got their slots, `endings` in the order in which
 * the ends were decided.  `stalled` lists those that are stalled, either running or preempted;
 * the one that has waited longest for free bytes comes first.
 *
 * A slot's page table covers the positions that are in the pool, and no more:
 *
 *      blocks      [ 0 ][ 1 ][ 2 ]                 block_count
 *      positions   0 .... cached                   were found, so no row writes them
 *                  0 ............. planned         position of the next row
 *      tokens      0 ......... token_count         known
 *
 * Once the prompt is planned, planned == token_count - 1 + wanted, and one more if the request is
 * held: the newest token has had no row yet, and each result that is due will add one token.
 * Positions behind `planned` that a draft has had written (drafted) count only as its tokens are
 * confirmed.  So a page table may have blocks behind `planned`, which nobody knows.
 *
 * A slot has references to the window pages of its blocks from `window_begin` on, and to that of
 * its tail (prefix-windows.h).
 *
 * The blocks that were found are referenced from the moment the request gets its slot.  The device
 * learns of them with the first row (`mapped`).  At that time a tail is copied into a block of
 * the slot's own.  The first `inserted` blocks are in the index.  The others follow as soon as
 * their positions are planned and their tokens are known.
 *
 * Blocks that were found in the swap (`swapped`) come to the page table before any row (fetch.c).
 */
#ifndef DAEMON_CORE_SCHED_STATE_H
#define DAEMON_CORE_SCHED_STATE_H

#include <assert.h>

#include "base/free-numbers.h"
#include "daemon/core/sched.h"
#include "daemon/core/prefill-budget.h"
#include "daemon/core/prefix.h"
#include "daemon/core/fair-share.h"
#include "daemon/core/forecast.h"

struct request_list {
        struct request **at;
        uint32_t count, max;
};

struct slot {
        struct request *request; /* NULL: the slot is free */
        block_t *blocks;         /* the page table */
        uint32_t block_count;
        uint32_t reserved;        /* blocks that it may still take: promised to it */
        uint32_t cached;          /* positions that were found, or came from the swap */
        uint32_t swapped;         /* whole blocks after those, which are to come from the swap */
        uint32_t fetched;         /* blocks that came, or that were found later */
        uint32_t fetches_charged; /* ... of these, those that its parts are charged for */
        block_t tail;             /* block with the last of those, to be copied; or BLOCK_NONE */
        uint32_t known;           /* whole blocks of its text that the index had */
        uint32_t window_begin;    /* it needs the window pages of its blocks from this one on */
        uint32_t windows;         /* window pages that it was promised */
        uint32_t inserted;        /* blocks from the front that are in the index */
        bool gave_window;     /* a block that it has not computed may have a window page of it */
        bool mapped;          /* the device knows its page table */
        bool invalid;         /* its content is not valid and must not be inserted */
        uint32_t planned;     /* positions that have had a row */
        uint32_t scores;      /* in flight, each with bytes for a record; none once ENDING */
        uint32_t wanted;      /* results in flight, with bytes for records; none once ENDING */
        uint32_t drafted;     /* ... and those of a draft, which come if its tokens are right */
        uint32_t draft_count; /* tokens that were guessed, for the next plan */
        uint32_t draft[SCHED_DRAFT_MAX]; /* ... or of the run in flight */
        uint32_t plans;                  /* plans in flight with a row of it */
        uint64_t newest_plan;            /* the newest plan with a row of it ... */
        uint32_t newest_row;             /* ... and its last row there */
        uint64_t rank; /* its rank among the prompts of this plan (sched_rank()) */
};

/* The rows of one slot in a plan; the last of them may want a result, or, in a run, all. */
struct part {
        struct request *request;
        uint32_t wanted_row; /* the first that wants a result; PART_NO_ROW: none */
        uint32_t drafted;    /* rows behind it that want one, too: those of a draft */
        uint32_t taken;      /* results that have come */
        uint32_t row_count;
        uint32_t scores;   /* of these, rows that want a score */
        uint32_t fetched;  /* blocks that came from the swap for it, since its part before */
        uint32_t position; /* of its first row */
        bool decode;       /* a decode, perhaps with a draft; otherwise rows of the prompt */
};
#define PART_NO_ROW UINT32_MAX

/* A plan in flight: between sched_next() and its DONE. */
struct flight {
        struct part *parts; /* in the order of rows */
        uint32_t part_count;
        uint32_t next_part; /* the results of all parts before this one have come */
        block_t *sources;   /* blocks that the plan copies from, referenced until it is done */
        uint32_t source_count;
        uint32_t move_count;
        struct prefill_step step;
        uint64_t begun_ns;
};

/* A request that may be preempted. */
struct victim {
        struct request *request;
        uint64_t rank; /* the first to give up its slot has the highest */
};

/* The ring of one channel. */
struct channel_space {
        uint64_t free_bytes;    /* as the engine reported it last */
        uint64_t pending_bytes; /* the part of it that rows in flight, or held tokens, may need */
};

struct sched {
        struct sched_conf conf;
        struct prefix prefix;
        uint32_t reserved;  /* blocks reserved for all slots; per user: fair-share.h */
        uint32_t reserving; /* worst cases of the requests that count towards conf.reserve_max */
        uint32_t windows;   /* window pages promised to all slots */
        uint64_t now_ns;    /* time of the latest call */
        uint64_t done_ns;   /* time of the latest DONE */
        uint64_t arrivals;
        uint64_t deadline_ns; /* no deadline is earlier; 0: there is none */
        bool paused;          /* SCHED_PAUSE: plans have no rows */

        struct slot *slots;
        block_t *tables; /* memory of the page tables, table_max entries per slot */
        uint32_t table_max;
        struct prefill_step step; /* the rows of this plan */
        uint32_t scores_left;     /* rows of this plan that may want a score, besides one a slot */
        uint32_t drafts_left;     /* rows of this plan that may be of drafts */
        struct slot probe;        /* scratch slot: what a waiting request would find */
        uint32_t pages_left; /* pages that this plan can still list, besides those of its rows */
        struct free_numbers free_slots;

        struct request_list waiting, running, stalled;
        const struct slot *last_admitted; /* the slot given last, if nothing else was done since */
        struct victim *victims;           /* requests to be preempted */
        uint32_t *victim_refs;            /* per block: how many of `victims` reference it */
        struct plan_end *endings;         /* first sent_count whose END is sent, then the others */
        uint32_t ending_count, sent_count;

        struct flight *flights; /* by number modulo depth */
        struct part *parts;
        block_t *sources;
        uint64_t plans_made, plans_done;

        struct channel_space *channels;
        struct fair_share fair_share;
        struct prefill_budget prefill_budget;
        struct forecast forecast;
        uint32_t unready;     /* requests, waiting or running, that are sched_is_unready() */
        uint32_t passed_over; /* requests passed over for their user's share, last time */
        uint64_t stalls;      /* times that a request stalled */
        uint64_t preemptions, copies;
        uint64_t blocks_lost; /* preemptions because blocks ran out */
        uint64_t recomputed;  /* positions of preempted requests that were computed again */
        uint64_t restored;    /* ... and that came back from the swap */

        /* Memory in which sched_check() counts again. */
        struct check_counts {
                uint32_t *ref_counts;              /* per block */
                uint32_t *window_refs;             /* per block */
                uint64_t *pending_bytes;           /* per channel */
                uint32_t *plans, *wanted, *scores; /* per slot */
        } check_counts;
};

static inline uint32_t sched_in_flight(const struct sched *sched)
{
        return (uint32_t)(sched->plans_made - sched->plans_done);
}

static inline struct flight *sched_flight(const struct sched *sched, uint64_t number)
{
        assert(number > sched->plans_done && number <= sched->plans_made);
        return &sched->flights[number % sched->conf.depth];
}

/* The slot of a request that has one. */
static inline struct slot *sched_slot(const struct sched *sched, const struct request *request)
{
        assert(request->sequence.slot < sched->conf.slots);
        assert(sched->slots[request->sequence.slot].request == request);
        return &sched->slots[request->sequence.slot];
}

/* The number of its sequence, for window pages that it hands over. */
static inline uint64_t slot_giver(const struct slot *slot)
{
        return slot->request->arrival + 1;
}

/*
 * The number of positions for which a request may need KV.  The last generated token is never an
 * input, so it has no row.
 */
static inline uint32_t request_positions(const struct request *request)
{
        return request->prompt_count + request->max_tokens - (request->max_tokens > 0);
}

/* The worst case of a request, in blocks. */
static inline uint32_t request_worst(const struct request *request)
{
        return blocks_for(request_positions(request));
}

/* Does its next row wait for masks, or for its last token? */
static inline bool sched_is_unready(const struct request *request)
{
        return request->held || (request->awaits && !request->ready);
}

/* The bytes that a held request may still write, when its token has come. */
static inline uint64_t sched_held_bytes(const struct request *request)
{
        return request->record_bytes_max - request->asked_bytes_max;
}

/* Is a token of its prompt still to be scored?  Then the row at position `scored` does that. */
static inline bool request_must_score(const struct request *request)
{
        return request->prompt_logprobs && request->scored + 1 < request->prompt_count;
}

/* How many of its tokens it may find in the index: those whose positions need no row. */
static inline uint32_t request_findable(const struct request *request)
{
        return request_must_score(request) ? request->scored : request->sequence.token_count;
}

/*
 * Was it preempted as often as it may be?  A client that does not answer must not protect its
 * request in this way, so preemptions for that do not count.
 */
static inline bool sched_is_worn(const struct sched *sched, const struct request *request)
{
        return request->preemptions - request->unanswered >= sched->conf.preemptions_max;
}

/* Must its worst case be promised, whatever its class? */
static inline bool sched_must_reserve(const struct sched *sched, const struct request *request)
{
        return sched->conf.batch_size || sched_is_worn(sched, request);
}

/* Its class is promised the worst case; does this request still belong to the part that may be? */
static inline bool sched_may_reserve(const struct sched *sched, const struct request *request)
{
        uint32_t max = sched->conf.reserve_max;

        if (sched->conf.learned[request->priority])
                return false;
        if (request->sequence.slot != SEQUENCE_NO_SLOT)
                return request->reserves;
        return !max || (uint64_t)sched->reserving + request_worst(request) <= max;
}

/* Does this request begin, or did it, only when its worst case could be promised? */
static inline bool sched_is_reserved(const struct sched *sched, const struct request *request)
{
        return sched_must_reserve(sched, request) || sched_may_reserve(sched, request);
}

/* The blocks that it is promised with its slot: at least those of its tokens and of 16 more. */
static inline uint32_t sched_promise(const struct sched *sched, const struct request *request)
{
        uint32_t worst = request_worst(request);
        uint32_t now = blocks_for(request->sequence.token_count + BLOCK_POSITIONS);

        return sched_is_reserved(sched, request) || worst < now ? worst : now;
}

/* The sum of both, or UINT64_MAX (never) if it would overflow. */
static inline uint64_t sched_after(uint64_t since_ns, uint64_t ns)
{
        return since_ns < UINT64_MAX - ns ? since_ns + ns : UINT64_MAX;
}

/* The time from which a request that is stalled, or not ready, may be preempted. */
static inline uint64_t sched_preempt_time(const struct sched *sched, const struct request *request)
{
        return sched_after(request->stalled ? request->stalled_ns : request->asked_ns,
                           sched->conf.stall_preempt_ns);
}

/* Has this request, which has a slot, waited for its masks or its token that long? */
static inline bool sched_is_unanswered(const struct sched *sched, const struct request *request)
{
        return request->asking && sched_is_unready(request) &&
               sched->now_ns >= sched_preempt_time(sched, request);
}

/* rank.c: the order of requests. */

/* The place of a request that waits for a slot or for rows of its prompt; the lowest is first. */
uint64_t sched_rank(const struct sched *sched, const struct request *request);
/* The class that such a request counts as. */
uint32_t sched_class(const struct sched *sched, const struct request *request);
/* The same of a request that has a slot, whether it waits for rows or not. */
uint64_t sched_held_rank(const struct sched *sched, const struct request *request);
uint32_t sched_held_class(const struct sched *sched, const struct request *request);
/* The time at which a request that waits will count as one class better, or UINT64_MAX. */
uint64_t sched_promotion_time(const struct sched *sched, const struct request *request);

/* growth.c: the blocks of requests that grow beyond what they were promised. */

/*
 * Promises the next block to each decode that needs one, and preempts others if none is left.
 * Returns true if a stalled request was promised one.
 */
bool sched_grow(struct sched *sched);
/*
 * The most blocks that will be needed at once, by the forecast, with what this slot has and needs
 * reserved.  The first of sched.victims have given up their slots, and `freed` blocks with them.
 */
uint64_t sched_expected(struct sched *sched, const struct slot *slot, uint32_t victim_count,
                        uint32_t freed);
/* Would the pool become too small for that, some day?  If nothing else runs, it is tried. */
bool sched_excess(struct sched *sched, const struct slot *slot, uint32_t victim_count,
                  uint32_t freed);
/* Is the request without the block that its next row needs? */
bool sched_lacks_block(const struct sched *sched, const struct request *request);

/* slots.c: gives slots to waiting requests, and preempts running ones. */

void sched_fill_slots(struct sched *sched, struct plan *plan);
/* The request waits again once none of its rows is in flight: maybe at once. */
void sched_preempt(struct sched *sched, struct request *request);
/* Preempted requests whose rows have all come back wait again. */
void sched_finish_preempting(struct sched *sched);
/* Frees the slot of a request and everything that the slot has. */
void sched_free_slot(struct sched *sched, struct request *request);

/* windows.c: the window pages of slots (prefix-windows.h). */

/* Takes references to the window pages of the blocks that the slot has found. */
void sched_ref_windows(struct sched *sched, struct slot *slot);
/*
 * Gives back window pages that no row from `position` on sees.  If the index has a block that the
 * slot has computed again, and lacks its window page, the page stays with that block.
 */
void sched_pass_windows(struct sched *sched, struct slot *slot, uint32_t position);
/* Gives back all of them; a request may go on from where this one is. */
void sched_unref_windows(struct sched *sched, struct slot *slot);
/* Removes a reference to a block that is copied from, and to its window page. */
void sched_unref_source(struct sched *sched, block_t block);

/* plan-build.c: pages of a plan. */

/* Entry `index` of the slot's page table is new, or new to the device. */
void sched_list_page(const struct sched *sched, struct plan *plan, const struct slot *slot,
                     uint32_t index);
/* One of the blocks that are reserved for the slot gets into its page table. */
void sched_take_reserved(struct sched *sched, struct slot *slot);

/* fetch.c: brings blocks back from the swap. */

/* Is it quicker to move a block to the swap and back than to compute it? */
bool sched_may_swap(const struct sched *sched);
/*
 * Brings the first `count` of its blocks from there.  The slot is mapped, and `plan` tells the
 * device.  Blocks that are in the pool by now are referenced instead.  If one is in neither place,
 * it and those after it are not awaited any more, and will be computed.  Returns how many came.
 */
uint32_t sched_fetch(struct sched *sched, struct plan *plan, struct slot *slot, uint32_t count);

/* usage.c: the usage of the pool by each user, in parts of blocks (fair-share.h). */

/* The user must have a request alive. */
uint64_t sched_usage(const struct sched *sched, uint64_t uid);
/* The same for the user of this slot, including the blocks that it has and needs reserved. */
uint64_t sched_usage_with(const struct sched *sched, const struct slot *slot);

/* charge.c: charges a step that took `ns`, at most PREFILL_STEP_NS_MAX, to its users. */
void sched_charge(struct sched *sched, const struct flight *flight, uint64_t ns);

/* cache-insert.c: reports to the index what the blocks of a sequence contain. */

/*
 * Names in the index all blocks that plans before this one compute.  If the index already has
 * an equal block, the slot uses that one instead, and `plan` tells the device.  If `plan` is
 * NULL, insertion stops at that block.
 */
void sched_insert(struct sched *sched, struct slot *slot, struct plan *plan);
/*
 * The same for a slot without rows in flight that gets no more rows: no plan needs to tell the
 * device which blocks it uses instead of its own.
 */
void sched_insert_last(struct sched *sched, struct slot *slot);
/* Removes its blocks, which are not valid, from the index, except those that are published. */
void sched_invalidate(struct sched *sched, struct slot *slot);
/* Sets the request's pin at the last block of its prompt in the index; or publishes it. */
void sched_pin(struct sched *sched, struct slot *slot);
/*
 * Drops all blocks of the slot, the last one first; they stay in the index.  Only the names of a
 * publication that was not completed are removed.
 */
void sched_release(struct sched *sched, struct slot *slot);

void request_list_add(struct request_list *list, struct request *request);
void request_list_remove(struct request_list *list, const struct request *request);

/* The domain of a request: says which users may share the blocks that it computes. */
static inline uint64_t request_domain(const struct request *request)
{
        return request->publish ? request->publish : request->uid;
}

/* The domains in which a request may look; a publishing request only looks where it publishes. */
static inline struct prefix_reader request_reader(const struct request *request)
{
        struct prefix_reader reader = { .domains = { request_domain(request) }, .count = 1 };

        static_assert(REQUEST_GROUPS_MAX + 2 <= PREFIX_DOMAINS_MAX, "all domains fit");
        if (request->publish || !request->sees_public)
                return reader;
        for (uint32_t i = 0; i < request->group_count; i++)
                reader.domains[reader.count++] = PREFIX_GROUP(request->groups[i]);
        reader.domains[reader.count++] = PREFIX_EVERYONE;
        return reader;
}

/* The request is ENDING from now on; its END goes out with the next plan. */
void sched_end(struct sched *sched, struct request *request, enum smv_reason reason,
               enum smv_code code);

#endif
