/*
 * One walk (run) of several clients down the road (the pipeline): the memory that the daemon, its
 * clients and the test share, and the result that must come of it.
 */
#ifndef TESTS_ROAD_WALK_H
#define TESTS_ROAD_WALK_H

#include "bench/road.h"
#include "bench/walker.h"

#define WALKERS 4u

struct way {
        const char *name;
        enum smv_transport transport;
        enum smv_doorbell doorbell;
        enum walker_wait wait;
        size_t batch;
};

/* Zeroed, in memory that processes share. */
struct walk {
        struct road_facts road;
        struct walker_facts walkers[WALKERS];
        char directory[64], socket[96];
};

struct walk *walk_new(void);
struct walk *walk_free(struct walk *walk);

struct road_conf walk_road_conf(struct walk *walk, const struct way *way);
struct walker_conf walk_walker_conf(const struct walk *walk, const struct way *way, uint32_t number,
                                    uint64_t tokens);

/* SMV_ROAD_TOKENS, or `initial` if it is unset. */
uint64_t walk_tokens(uint64_t initial);

/* Prints one line of counts; fails the test unless the clients read everything that was shown. */
void walk_check(const struct walk *walk, const struct way *way, uint64_t ns);

#endif
