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
        uint32_t drafts;       /* rows of drafts in a plan, at most; 0: no request has any */
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
 * The window pages that a sequence of `worst` blocks has at once, besides those of the blocks that
 * one plan fills: those of its window, of the block before and of the one that it has begun, and a
 * block that it copies from.
 */
static inline uint32_t sched_windows_of(const struct sched_conf *conf, uint32_t worst)
{
        uint32_t most = blocks_for(conf->prefix.window) + 3;

        if (!conf->prefix.window)
                return 0;
        return worst < most ? worst + 1 : most;
}

/*
 * How many of the window pages can be promised to sequences.  The others are for the rows of a
 * plan.  If each block can have one, nobody needs a promise.
 */
static inline uint32_t sched_windows_max(const struct sched_conf *conf)
{
        uint32_t rows = blocks_for(conf->rows), pages = conf->prefix.window_pages;

        if (pages >= conf->blocks)
                return UINT32_MAX;
        return pages > rows ? pages - rows : 0;
}

/* The window pages that so many sequences need at most, at full length. */
static inline uint64_t sched_window_pages_for(const struct sched_conf *conf, uint32_t sequences)
{
        return sequences * (uint64_t)sched_windows_of(conf, blocks_for(conf->context)) +
               blocks_for(conf->rows);
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
