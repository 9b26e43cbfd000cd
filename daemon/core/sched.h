/*
 * The scheduler: who runs in the next step.
 *
 * A pure state machine.  sched_note() as often as things happen, sched_next()
 * once a step; time arrives as an argument, duties leave as a plan; nothing else
 * goes in or out.  It reads no clock, owns no thread, does no I/O and allocates
 * nothing after sched_new(), so it is simulated, replayed and fuzzed.
 *
 * Continuous batching under a token budget: every running decode that may go on
 * gets its row first, then prompts fill the rest of conf.rows in chunks: by class,
 * short ones first up to half, then in the order in which they got their slots; and
 * no more of them than keep decodes waiting for conf.gap_ns (pace.h).  With
 * conf.batch_size nobody joins what runs: for comparison.
 *
 * Slots.  One goes to the next in line: of the best class, of the user who was served
 * least, who came first; once the blocks of its worst case can be promised, so nothing
 * that runs ever lacks one.  While somebody else waits, nobody gets more than half of
 * the slots or blocks, and never more than conf.user_blocks; shared ones are charged in
 * parts (share.h, charge.c).  Who runs may be parked for one of a better class, or
 * when it has been stalled for conf.grace_ns: it is WAITING again, with its tokens, and
 * goes on later as if nothing had been, conf.parks_max times at most.
 *
 * Sharing.  What has been computed stays in the pool as long as there is room, and
 * who begins with the same tokens, in the same domain, holds those blocks instead of
 * computing them (prefix.h): of all whole blocks, and of one that is a part of them
 * a copy, because a block that is written has one holder.  Its last token is
 * computed again in any case, without being written, for that gives the first of its own.
 *
 * Reading only.  With max_tokens 0 the prompt is computed and nothing is drawn: its last
 * row still wants a result, as that is how numbers that are none are noticed, but the token is
 * nobody's, needs no room, and ends it.  Then its anchor is set (prefix.h): what it has read
 * is evicted after all else, until SCHED_LIFT.
 *
 * Publishing is reading for a public domain: such a one finds nothing of its user's own, and what
 * it computes is named there, for others who publish the same.  Once all of it is read, and was
 * numbers, everybody finds it, until SCHED_LIFT.  If somebody publishes the same beginning at the
 * same time it may end as BUSY, and later it will work.
 *
 * Room.  A token is computed only if its record is sure to fit: a channel has
 * the room the engine last told (it tells before every sched_next), less what
 * rows in flight may still write.  A request without room is stalled and left
 * out; plan.stalled counts them.  Stalled for conf.stall_ns, it ends.  Who has
 * been stalled longest is asked first, so that those who share a channel share
 * its room.
 *
 * Deadlines.  A request that is not over at its deadline ends, wherever it stands.
 *
 * Ends.  Every request submitted gets exactly one plan_end and later exactly one
 * `retired`, in this order, possibly of one plan.  From the event that decides
 * its end on, its state is ENDING, and results that still come for it are
 * counted and ignored.  Its blocks and its slot are free again when no plan in
 * flight has a row of it: cancelled in one step, free by the next.
 *
 * Always:
 *      promised + blocks in page tables == those of all with a slot, in the worst case
 *      promised <= free + kept
 *      plans noted done + plans in flight == plans made
 * sched_check() proves these and the pool's.  Engine thread only.
 */
#ifndef DAEMON_CORE_SCHED_H
#define DAEMON_CORE_SCHED_H

#include "daemon/core/plan.h"
#include "daemon/core/prefix.h"

struct sched_conf {
        uint32_t blocks;       /* of the pool */
        uint32_t user_blocks;  /* ... that one user's running requests may have; 0: all */
        uint32_t slots;        /* sequences that run at once */
        uint32_t rows;         /* of a step: the token budget, at least slots */
        uint32_t context;      /* positions of a sequence, at most */
        uint32_t depth;        /* plans in flight, 1 or 2 */
        uint32_t requests_max; /* alive at once, waiting ones counted */
        uint32_t channels;     /* numbered 0 .. channels - 1 */
        uint64_t stall_ns;     /* a request without room this long ends */
        uint64_t grace_ns;     /* ... and this long, gives its slot up to one who waits */
        uint32_t parks_max;    /* so often a request may have to give its slot up */
        uint64_t gap_ns;       /* prompts may hold decodes up this long; 0: as long as they like */
        uint32_t batch_size; /* 0: who comes joins at once.  Else batches of so many at most ... */
        uint64_t window_ns;  /* ... the first of which waits so long at most for the others */
        struct prefix_conf prefix;
};

enum sched_event_kind {
        SCHED_SUBMIT, /* request, channel; it is WAITING from now on */
        SCHED_CANCEL, /* request; reason and code of its END.  Ending already: nothing */
        SCHED_ROOM,   /* channel, room: bytes that fit beyond what ENDs need, now */
        SCHED_RESULT, /* plan, row: token and verdict; in the order of rows */
        SCHED_DONE,   /* plan: it has run; after its results, plans in order.  Results
                         of requests that are ending may be missing */
        SCHED_LIFT,   /* anchor: what was read for it is as all else in the pool */
        SCHED_HOLD,   /* there is no model yet: plans have ends and no rows, until: */
        SCHED_GO,
};

/* What the engine saw in a token; the core adds "max_tokens reached". */
enum sched_verdict {
        SCHED_GO_ON,
        SCHED_EOS, /* ends it; the token counts, its text is not shown */
        SCHED_STOP,
        SCHED_NUMERIC, /* no token: this request fails, nobody else */
};

struct sched_event {
        enum sched_event_kind kind;
        struct request *request;
        uint32_t channel;
        uint64_t room;
        enum smv_reason reason;
        enum smv_code code;
        uint64_t plan;
        uint32_t row;
        uint32_t token;
        enum sched_verdict verdict;
        uint32_t anchor;
};

/* What `status` shows of the core. */
struct sched_counts {
        uint32_t blocks_total, blocks_free, blocks_kept, blocks_held, blocks_promised;
        uint32_t waiting, running, stalled, ending;
        uint32_t passed_over; /* waiting behind others, for their user has his half */
        uint32_t plans_in_flight;
        uint64_t parks;         /* so often somebody gave his slot up */
        uint64_t prompt_row_ns; /* what a row of a prompt takes; 0: not known yet */
        uint64_t prompt_far_ns; /* ... and more, for each PACE_FAR positions before it */
        uint64_t evictions;     /* of blocks, so far */
        uint64_t copies;        /* ... a part of which somebody had found, and goes on from there */
};

/* ... and of one user. */
struct sched_user {
        uint32_t uid;
        uint32_t blocks; /* that his requests have, shared ones in parts; rounded up */
        uint32_t cached; /* his own that nobody holds */
};

/* No sequence has more blocks than its context or the pool. */
static inline uint32_t sched_table_max(const struct sched_conf *conf)
{
        uint32_t blocks = blocks_for(conf->context);

        return blocks < conf->blocks ? blocks : conf->blocks;
}

/* Pages of a plan: a row opens at most one, and what one sequence has found fits beside. */
static inline uint32_t sched_page_max(const struct sched_conf *conf)
{
        return conf->rows + sched_table_max(conf);
}

struct sched;

int sched_new(const struct sched_conf *conf, struct sched **ret_sched); /* 0 or -ENOMEM */
struct sched *sched_free(struct sched *sched);

/*
 * A result of a request that is ending is counted and ignored, but that what made
 * no numbers is shared with nobody.  Time never goes back.
 */
void sched_note(struct sched *sched, const struct sched_event *event, uint64_t now_ns);

/* At most conf.depth plans may be in flight: with that many, the plan has no rows. */
void sched_next(struct sched *sched, uint64_t now_ns, struct plan *ret_plan);

/* Of a channel's room: what rows in flight may still write. */
uint64_t sched_owed(const struct sched *sched, uint32_t channel);

void sched_count(const struct sched *sched, struct sched_counts *ret_counts);

/* Those who have a request alive, then all others who have something cached; at most so many. */
uint32_t sched_users(const struct sched *sched, struct sched_user *users, uint32_t max);

/* Does this request fit, ever?  For admission, on any thread: 0 or the code to refuse with. */
enum smv_code sched_fits(const struct sched_conf *conf, uint32_t prompt_count, uint32_t max_tokens);

/* Walks everything and asserts what must hold. */
void sched_check(const struct sched *sched);

#endif
