/*
 * What the scheduler keeps, for its parts: sched.c takes events in, enter.c says who
 * has a slot, deal.c makes plans of that, settle.c tells the index, charge.c counts.  Nobody else
 * includes this.
 *
 * A request is in exactly one of three lists: `waiting` in order of arrival,
 * `running` in order of their slots, `endings` in the order they were decided.
 * `stalled` are some of those who run, or did before they were parked; who has waited
 * longest for room first.
 *
 * A slot's page table covers the positions that are in the pool, and no more:
 *
 *      blocks      [ 0 ][ 1 ][ 2 ]                 block_count
 *      positions   0 .... cached                   were found, so no row writes them
 *                  0 ............. planned         the next row goes there
 *      tokens      0 ......... token_count         known
 *
 * Once the prompt is planned, planned == token_count - 1 + wanted: the newest
 * token has had no row yet, and each result due will bring one more.
 *
 * What was found is held from the moment a slot is given.  The device is told with
 * the first row (`moved`); a tail is copied then into a block that is its own.
 * `named` blocks from the front are in the index, and the rest follows as
 * positions are planned whose tokens are known.
 */
#ifndef DAEMON_CORE_SCHED_STATE_H
#define DAEMON_CORE_SCHED_STATE_H

#include <assert.h>

#include "daemon/core/sched.h"
#include "daemon/core/pace.h"
#include "daemon/core/prefix.h"
#include "daemon/core/share.h"

struct roster {
        struct request **at;
        uint32_t count, max;
};

struct slot {
        struct request *request; /* NULL: the slot is free */
        block_t *blocks;         /* its page table */
        uint32_t block_count;
        uint32_t promised;    /* blocks it may still take */
        uint32_t cached;      /* positions that were found */
        block_t tail;         /* ... the last of them in here, to be copied; or BLOCK_NONE */
        uint32_t named;       /* blocks whose names are said */
        bool moved;           /* the device knows its page table */
        bool spoilt;          /* what it computed is worth nothing, to nobody */
        uint32_t planned;     /* positions that have had their row */
        uint32_t wanted;      /* results due, each with room for a record; none once ENDING */
        uint32_t plans;       /* in flight, with a row of it */
        uint64_t newest_plan; /* with a row of it ... */
        uint32_t newest_row;  /* ... the last of them */
};

/* The part of one slot in a plan: its rows, of which the last may want a result. */
struct part {
        struct request *request;
        uint32_t wanted_row; /* PART_NO_ROW: none */
};
#define PART_NO_ROW UINT32_MAX

struct flight {             /* a plan between sched_next() and its DONE */
        struct part *parts; /* in the order of rows */
        uint32_t part_count;
        uint32_t next_part; /* results of those before it have come */
        block_t *sources;   /* blocks that it copies, held until it is done */
        uint32_t source_count;
        struct pace_step step;
        uint64_t begun_ns;
};

struct room {          /* of one channel, in bytes */
        uint64_t told; /* by the engine, last */
        uint64_t owed; /* of this, to rows in flight */
};

struct sched {
        struct sched_conf conf;
        struct prefix prefix;
        uint32_t promised; /* blocks, to all slots; to each user's: share.h */
        uint64_t now_ns;   /* of the latest call */
        uint64_t done_ns;  /* of the latest DONE */
        uint64_t arrivals;
        uint64_t deadline_ns; /* none is earlier; 0: there is none */
        bool held;            /* nothing begins */

        struct slot *slots;
        block_t *tables; /* where the page tables are, table_max entries a slot */
        uint32_t table_max;
        uint32_t decodes;    /* rows of this plan that are none of prompts */
        uint64_t before;     /* the sum of the positions of the others */
        struct slot probe;   /* what one would find who waits for a slot */
        uint32_t moves_left; /* pages that this plan can still tell of, beside those of its rows */
        uint32_t *free_slots;
        uint32_t free_slot_count;

        struct roster waiting, running, stalled;
        const struct slot *newest; /* who was let in last, while nothing else is done; or NULL */
        struct request **chosen;   /* to be parked */
        uint32_t *drops;           /* per block: how many of those hold it */
        struct plan_end *endings;  /* ENDING: told_count whose END is out, then the others */
        uint32_t ending_count, told_count;

        struct flight *flights; /* by number modulo depth */
        struct part *parts;
        block_t *sources;
        uint64_t plans_made, plans_done;

        struct room *rooms;
        struct shares shares;
        struct pace pace;
        uint32_t passed_over; /* when slots were dealt last, for their users' shares */
        uint64_t parks, copies;

        struct tally {                    /* for sched_check() to count anew */
                uint32_t *holds;          /* per block */
                uint64_t *owed;           /* per channel */
                uint32_t *plans, *wanted; /* per slot */
        } tally;
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

/* Positions it may need KV for: the last token that it makes is never read back, so it has no row. */
static inline uint32_t request_positions(const struct request *request)
{
        return request->prompt_count + request->max_tokens - (request->max_tokens > 0);
}

static inline uint64_t sched_after(uint64_t since_ns, uint64_t ns) /* UINT64_MAX: never */
{
        return since_ns < UINT64_MAX - ns ? since_ns + ns : UINT64_MAX;
}

/* When one that is stalled has been so for long. */
static inline uint64_t sched_grace_end(const struct sched *sched, const struct request *request)
{
        return sched_after(request->stalled_ns, sched->conf.grace_ns);
}

/* enter.c: slots for those who wait, and who gives his up. */

void sched_enter(struct sched *sched, struct plan *plan);
/* Those whose rows have all come back wait again. */
void sched_clear_parked(struct sched *sched);
/* With all that it held. */
void sched_free_slot(struct sched *sched, struct request *request);

/* charge.c: what users have of the pool, in parts of blocks (share.h). */

uint64_t sched_charge(const struct sched *sched, uint32_t uid); /* who has a request alive */
/* ... of this one's user, with what it holds, and with what is to be promised to it. */
uint64_t sched_charge_with(const struct sched *sched, const struct slot *slot);

/* settle.c: what a sequence has in the pool, told to the index. */

/*
 * Names all that it has computed by plans before this one.  Where the index has
 * the same block already that one is taken instead, and the device is told; with
 * no plan to tell it by, naming stops there.
 */
void sched_name(struct sched *sched, struct slot *slot, struct plan *plan);
void sched_spoil(struct sched *sched, struct slot *slot);
/* Where what it has read ends in the index, there its anchor goes. */
void sched_anchor(struct sched *sched, struct slot *slot);
/* Drops all that it has, its end first, and leaves it in the index. */
void sched_let_go(struct sched *sched, struct slot *slot);

void roster_add(struct roster *roster, struct request *request);
void roster_remove(struct roster *roster, const struct request *request);

/* The domain of a request: who may share what it computes. */
static inline uint64_t request_domain(const struct request *request)
{
        return request->publish ? request->publish : request->uid;
}

/* What it may find: who publishes, only what is public there already. */
static inline struct prefix_reader request_reader(const struct request *request)
{
        struct prefix_reader reader = { .domains = { request_domain(request) }, .count = 1 };

        static_assert(REQUEST_GROUPS_MAX + 2 <= PREFIX_DOMAINS_MAX, "there is room for all");
        if (request->publish || !request->sees_public)
                return reader;
        for (uint32_t i = 0; i < request->group_count; i++)
                reader.domains[reader.count++] = PREFIX_GROUP(request->groups[i]);
        reader.domains[reader.count++] = PREFIX_EVERYONE;
        return reader;
}

/* From now on it is ENDING; its END goes out with the next plan. */
void sched_end(struct sched *sched, struct request *request, enum smv_reason reason,
               enum smv_code code);

#endif
