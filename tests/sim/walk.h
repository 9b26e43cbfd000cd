/*
 * One way in which a plan may have come to who has a slot: for audit-*.c alone.
 *
 * The line is walked as sched.h says, from the books as they stood before the
 * plan.  Where outside eyes cannot see (how much of it is found for one who begins)
 * there are several ways; one of them must lead to what the plan did.
 */
#ifndef TESTS_SIM_WALK_H
#define TESTS_SIM_WALK_H

#include "tests/sim/sim.h"

enum walk_answer { WALK_NO, WALK_PERHAPS, WALK_YES };

struct walk_spot {       /* of a request */
        bool in;         /* it has a slot */
        bool parking;    /* ... and is to give it up */
        bool fresh;      /* ... which it got in this plan */
        bool moved;      /* ... and has had rows since it was let in */
        bool left, sure; /* taken for one that begins as another that is read; or that does not */
        uint32_t parks;
        uint64_t turn;
};

struct walk_event {
        struct sim_request *request;
        bool in;   /* let in, or parked */
        bool open; /* ... and there were other ways before */
};

struct walk {
        struct sim *sim;
        struct walk_spot spots[SIM_REQUESTS];
        struct walk_event events[3 * SIM_REQUESTS];
        uint32_t event_count;
        uint32_t let_in;     /* so many */
        uint32_t let_in_max; /* of a batch; else so many as there are slots */
        uint64_t turns;
        bool open;                          /* another way may have led here, in another order */
        bool idle;                          /* no plan can be made, or nobody may begin */
        bool after;                         /* the books are as this plan leaves them */
        uint32_t passed_uids[SIM_REQUESTS]; /* users who are passed over */
        uint32_t passed_count;
        uint64_t grounds[SIM_GROUND_N];
        uint32_t in_vain; /* for so many others gave way, who were passed over then */
        struct sim_request *blocked;
};

#define walk_spot(walk, r) (&(walk)->spots[(r) - (walk)->sim->requests])

/* audit-slots.c: as the books stand. */
void walk_begin(struct walk *walk, struct sim *sim);

bool walk_waits(const struct walk *walk, const struct sim_request *request);
uint32_t walk_free_slots(const struct walk *walk);
bool walk_is_passed(const struct walk *walk, uint32_t uid);

/* audit-charges.c: what a user has of the pool, in parts of blocks. */
#define WALK_PARTS UINT64_C(65536)

struct walk_charge {
        uint64_t least, most;
        uint64_t of_public; /* of the least */
        uint32_t slots;
        uint32_t hidden; /* blocks that may be held for him and cannot be seen */
};

void walk_domains(const struct walk *walk);
bool walk_may_share(const struct walk *walk, const struct sim_request *request);
/* ... with what this one holds, which is let in by this plan; or NULL. */
struct walk_charge walk_charge(const struct walk *walk, uint32_t uid,
                               const struct sim_request *with);
/* ... with what this one would have, of which it cannot be seen what would be found. */
struct walk_charge walk_then(const struct walk *walk, const struct sim_request *request);

/*
 * audit-line.c: the next who is asked, or NULL.  Doubtful: whether he begins as another that is
 * read cannot be seen.
 */
struct sim_request *walk_next(const struct walk *walk, bool *ret_doubtful);
/* What comes of it, if its user has so many parts of blocks then. */
enum sim_ground walk_ground(const struct walk *walk, const struct sim_request *request,
                            uint64_t then);
enum walk_answer walk_is_over(const struct walk *walk, const struct sim_request *request);
enum walk_answer walk_is_above_half(const struct walk *walk, const struct sim_request *request);
bool walk_is_parking(const struct walk *walk); /* somebody is on his way out */

/* audit-parks.c: does it fit, if the first `count` of those give up their slots? */
enum walk_answer walk_fits(const struct walk *walk, const struct sim_request *request,
                           struct sim_request *const *victims, uint32_t count);
/* Those who may have to give way to it, in this order, by `now_ns`; of its own user only, or all. */
uint32_t walk_victims(const struct walk *walk, const struct sim_request *request, bool own_only,
                      uint64_t now_ns, struct sim_request **ret_victims);
bool walk_may_park(const struct walk *walk);
bool walk_gave_way(const struct walk *walk, const struct sim_request *request); /* in this plan */
bool walk_is_stalled_long(const struct sim *sim, const struct sim_request *request,
                          uint64_t now_ns);
/* Rows of it are in flight, those of this plan included that it got before anybody was let in. */
bool walk_is_in_flight(const struct sim_request *request);

#endif
