/*
 * The sizes and limits of a scheduler, and the sizes of plans that follow from them.
 */
#ifndef DAEMON_CORE_SCHED_CONF_H
#define DAEMON_CORE_SCHED_CONF_H

#include <stdint.h>

#include "daemon/core/prefix.h"
#include "daemon/core/request.h"

struct sched_conf {
        uint32_t blocks;       /* blocks of the pool */
        uint64_t swap_copy_ns; /* time to copy a block between the pool and the swap, if any */
        uint32_t user_blocks;  /* limit of blocks for the running requests of one user; 0: all */
        uint32_t slots;        /* sequences that can run at once */
        uint32_t rows;         /* of a step: the token budget; at least `slots` */
        uint32_t context;      /* maximum of positions of a sequence */
        uint32_t depth;        /* plans in flight, 1 or 2 */
        uint32_t requests_max; /* maximum of requests alive, including waiting ones */
        uint32_t channels;     /* numbered 0 .. channels - 1 */
        uint64_t stall_timeout_ns; /* a request that is stalled this long ends */
        uint64_t stall_preempt_ns; /* one stalled this long may be preempted for a waiting one */
        uint32_t preemptions_max;  /* how often one request may be preempted; 0: never */
        /*
         * The classes whose requests begin when what they need now is there, and the forecast says
         * that the rest will be.  Others begin when all that they may need can be promised.
         */
        bool learned[REQUEST_PRIORITY_N];
        /*
         * All requests of the others together are promised this many blocks at most; those beyond
         * begin as the learned ones.  0: all blocks.
         */
        uint32_t reserve_max;
        uint32_t preempt_target; /* learned: requests to be preempted of 1,000, at most */
        uint64_t lead_ns;        /* users that were served less than this more are nearly equal */
        uint64_t promote_ns; /* requests that wait this long count as one class better; 0: never */
        uint64_t token_gap_ns;    /* how long prompts may delay decodes; 0: no limit */
        uint32_t batch_size;      /* 0: new requests join at once; else the maximum of a batch */
        uint64_t batch_window_ns; /* how long the first request of a batch waits for others */
        struct prefix_conf prefix;
};

/* No sequence has more blocks than its context or the pool. */
static inline uint32_t sched_table_max(const struct sched_conf *conf)
{
        uint32_t blocks = blocks_for(conf->context);

        return blocks < conf->blocks ? blocks : conf->blocks;
}

/*
 * The window pages that are in use at most.  When a plan is made, each slot has those of its window
 * and of a block that it has begun, and it may have a tail.  The rows of the plan begin blocks, and
 * the copies of plans in flight have sources.  No more than there are blocks are ever in use.
 */
static inline uint32_t sched_window_pages_least(const struct sched_conf *conf)
{
        uint64_t each = blocks_for(conf->prefix.window) + UINT64_C(3) + conf->depth;
        uint64_t all = conf->slots * each + blocks_for(conf->rows);

        return all < conf->blocks ? (uint32_t)all : conf->blocks;
}

/*
 * Maximum of moves of a plan.  Each page that is new in a plan may evict a block to the swap, and
 * those of one sequence may all come from there.
 */
static inline uint32_t sched_move_max(const struct sched_conf *conf)
{
        return conf->prefix.swap_blocks ? conf->rows + conf->slots + 2 * sched_table_max(conf) : 0;
}

/*
 * Maximum of pages of a plan: each row needs at most one new page, and there is space for as many
 * more as one sequence can have found in the index.
 */
static inline uint32_t sched_page_max(const struct sched_conf *conf)
{
        return conf->rows + sched_table_max(conf);
}

#endif
