/*
 * A small world with drafts, and its turns, for the stories of drafts.
 *
 * Lines are those of test-stories.c.  "decode a 4+3" is a run: the row at 4, and those of a draft
 * of three tokens.
 */
#ifndef TESTS_SIM_DRAFT_STORIES_H
#define TESTS_SIM_DRAFT_STORIES_H

#include "tests/sim/sim.h"

static struct sim sim;

static inline void world(struct sched_conf conf)
{
        conf.drafts = conf.drafts ? conf.drafts : 8;
        sim_open_small(&sim, &conf);
}

static inline struct sim_request *ask(struct sim_ask ask)
{
        return sim_submit(&sim, &ask);
}

static inline struct sim_request *ask_drafted(struct sim_ask ask)
{
        ask.drafts = true;
        return sim_submit(&sim, &ask);
}

static inline void turn(void)
{
        sim_turn(&sim, sim.now_ns + 100 * SIM_MS);
}

/* One turn with a draft of so many tokens, of which the first ones are right. */
static inline void turn_with(struct sim_request *request, uint32_t count, uint32_t right)
{
        assert_true(sim_may_draft(&sim, request));
        sim_draft(&sim, request, count, right);
        turn();
}

static inline void finish(void)
{
        while (sim_alive(&sim) || sim.flight_count)
                turn();
        sim_close(&sim);
}

#endif
