/*
 * One way in which a plan may have come to its assignment of slots: for audit-*.c alone.
 *
 * The walk follows the queue as sched.h describes, from the books as they stood before
 * the plan.  Some facts cannot be seen from outside, such as how much of a request's prompt is
 * found.  Then there are several ways, and one of them must lead to the plan's result.
 */
#ifndef TESTS_SIM_AUDIT_WALK_H
#define TESTS_SIM_AUDIT_WALK_H

#include "tests/sim/sim.h"

enum walk_answer { WALK_NO, WALK_PERHAPS, WALK_YES };

struct walk_spot {       /* of a request */
        bool in;         /* it has a slot */
        bool preempting; /* ... and is about to give it up */
        bool fresh;      /* ... which it got in this plan */
        bool moved;      /* ... and has had rows since it was admitted */
        /*
         * left: passed over because it begins like another request that is being read; sure: it
         * does not
         */
        bool left, sure;
        bool reserves; /* it has a slot, and counts towards the reserved part of the pool */
        uint32_t preemptions;
        uint32_t unanswered; /* ... of these, because its client did not answer */
        uint32_t promised;   /* blocks that it has or may take */
        uint32_t granted;    /* fresh: the class that it was admitted as */
        uint64_t turn;
};

struct walk_event {
        struct sim_request *request;
        bool in;         /* admitted, or preempted */
        bool unanswered; /* ... because its client did not answer */
        bool open;       /* ... and there were other ways before */
};

struct walk {
        struct sim *sim;
        struct walk_spot spots[SIM_REQUESTS];
        struct walk_event events[3 * SIM_REQUESTS];
        uint32_t event_count;
        uint32_t admitted;     /* the number of requests admitted */
        uint32_t admitted_max; /* of a batch; otherwise the number of slots */
        uint64_t turns;
        bool open;                          /* another way may have led here, in another order */
        bool idle;                          /* no plan can be made, or admission is on hold */
        bool after;                         /* the books are as this plan leaves them */
        uint64_t passed_uids[SIM_REQUESTS]; /* users that are passed over */
        uint32_t passed_count;
        uint64_t grounds[SIM_GROUND_N];
        /* the number of requests for which others gave way, and which were passed over then */
        uint32_t in_vain;
        struct sim_request *blocked;
};

#define walk_spot(walk, r) (&(walk)->spots[(r) - (walk)->sim->requests])

/* audit-slots.c: begins with the books as they are. */
void walk_begin(struct walk *walk, struct sim *sim);

/* Whether it never lacks a block; and how many it is promised when it gets a slot. */
bool walk_is_reserved(const struct walk *walk, const struct sim_request *request);
/* ... and whether that would count towards the part of the pool that may be reserved. */
bool walk_reserves(const struct walk *walk, const struct sim_request *request);
uint32_t walk_promise(const struct walk *walk, const struct sim_request *request);
/*
 * audit-forecast.c: whether it must wait because of the forecast, even if the first `count` victims
 * give up their slots.
 */
enum walk_answer walk_is_held_back(const struct walk *walk, const struct sim_request *request,
                                   struct sim_request *const *victims, uint32_t count);
bool walk_waits(const struct walk *walk, const struct sim_request *request);
/* ... for others, and not for its own mask or token. */
bool walk_waits_for_others(const struct walk *walk, const struct sim_request *request);
uint32_t walk_free_slots(const struct walk *walk);
bool walk_is_passed(const struct walk *walk, uint64_t uid);

/* audit-usage.c: a user's share of the pool, in parts of blocks. */
#define WALK_PARTS UINT64_C(65536)

struct walk_charge {
        uint64_t least, most;
        uint64_t of_public; /* part of `least` */
        uint32_t slots;
        uint32_t hidden; /* blocks that may be held for the user and cannot be seen */
};

void walk_domains(const struct walk *walk);
/*
 * Blocks that nobody has and nobody was promised, at least and at most.
 */
struct walk_range {
        int64_t least, most;
};
struct walk_range walk_available(const struct walk *walk);
/* The most whole blocks that may have been found for a request with a slot. */
uint32_t walk_most_found(const struct walk *walk, const struct sim_request *request);
/* Whether a block comes free if this request, which has a slot, gives it up. */
enum walk_answer walk_frees(const struct walk *walk, const struct sim_request *request);
bool walk_may_share(const struct walk *walk, const struct sim_request *request);
/* ... including the blocks of this request, which this plan admits; or NULL. */
struct walk_charge walk_charge(const struct walk *walk, uint64_t uid,
                               const struct sim_request *with);
/*
 * ... including the blocks that this request would have.  How many would be found cannot be
 * seen.
 */
struct walk_charge walk_then(const struct walk *walk, const struct sim_request *request);

/*
 * audit-queue.c: the next request in line, or NULL.  Doubtful: it cannot be seen whether the
 * request begins like another that is being read.
 */
struct sim_request *walk_next(const struct walk *walk, bool *ret_doubtful);
/* The class that a request counts as, waiting or reading, and its place in line. */
uint32_t walk_class(const struct walk *walk, const struct sim_request *request);
uint64_t walk_rank(const struct walk *walk, const struct sim_request *request);
/* ... and those of a request that has a slot, by which it may have to give way. */
uint32_t walk_held_class(const struct walk *walk, const struct sim_request *request);
uint64_t walk_held_rank(const struct walk *walk, const struct sim_request *request);
uint32_t walk_slots_of(const struct walk *walk, uint64_t uid);
/* When a request of this user and class was admitted last. */
uint64_t walk_turn(const struct walk *walk, const struct sim_request *request);
/* The result of its admission if its user then has this many parts of blocks. */
enum sim_ground walk_ground(const struct walk *walk, const struct sim_request *request,
                            uint64_t then);
enum walk_answer walk_is_over(const struct walk *walk, const struct sim_request *request);
enum walk_answer walk_is_above_half(const struct walk *walk, const struct sim_request *request);
bool walk_is_preempting(const struct walk *walk); /* true if a request is giving up its slot */

/* audit-preemptions.c: whether it fits if the first `count` victims give up their slots. */
enum walk_answer walk_fits(const struct walk *walk, const struct sim_request *request,
                           struct sim_request *const *victims, uint32_t count);
/*
 * Requests that may have to give way to it at now_ns, in this order.  own_only: those of its
 * own user only.
 */
uint32_t walk_victims(const struct walk *walk, const struct sim_request *request, bool own_only,
                      uint64_t now_ns, struct sim_request **ret_victims);
bool walk_may_preempt(const struct walk *walk);
bool walk_gave_way(const struct walk *walk, const struct sim_request *request); /* in this plan */
/* Its client has been asked for so long that it gives way to any other. */
bool walk_is_unanswered(const struct walk *walk, const struct sim_request *request,
                        uint64_t now_ns);
/* ... or it has been stalled for so long: it goes first. */
bool walk_is_stalled_victim(const struct walk *walk, const struct sim_request *request,
                            uint64_t now_ns);
/*
 * Whether rows of it are in flight.  This includes rows of this plan that it got before any
 * request was admitted.
 */
bool walk_is_in_flight(const struct sim_request *request);

#endif
