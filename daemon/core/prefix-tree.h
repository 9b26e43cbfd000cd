/*
 * The data of the prefix index (prefix.h has its contract): one node for each block of the pool and
 * of the swap.
 *
 * Private to prefix*.c and eviction.c; the other parts of the scheduler read single members, such
 * as a block's domain.
 */
#ifndef DAEMON_CORE_PREFIX_TREE_H
#define DAEMON_CORE_PREFIX_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/kvpool.h"

/* A domain: a user, or one of the first two.  Users are uids, and principals from the last on. */
#define PREFIX_EVERYONE   (UINT64_C(1) << 32)
#define PREFIX_GROUP(gid) (UINT64_C(2) << 32 | (gid))
#define PREFIX_PRINCIPALS (UINT64_C(3) << 32)

static inline bool prefix_is_public(uint64_t domain)
{
        return domain >= PREFIX_EVERYONE && domain < PREFIX_PRINCIPALS;
}

struct prefix_conf {
        uint64_t key[2];   /* random, so that clients cannot choose inputs that collide */
        uint64_t model_id; /* identifies the model, and the layout and type of its KV */
        /* bits of a block's hash to ignore; 0 except in tests, which want collisions */
        uint64_t ignored_hash_bits[2];
        uint32_t pins; /* number of pins; they are numbered from 1 on */
        /* A user with more cached blocks than this loses its own first; 0: no limit. */
        uint32_t cached_max;
        uint32_t swap_blocks; /* blocks of the swap; 0: there is none */
        uint32_t swap_max;    /* as cached_max, for the blocks of one user in the swap */
        /*
         * Positions that a row sees in layers with a window, its own included; 0: these layers have
         * their keys and values in the blocks, as all others.  There is no swap then.
         */
        uint32_t window;
        uint32_t window_pages;
        uint32_t windows_max; /* as cached_max, for the window pages of one user */
};

enum prefix_place { PREFIX_POOL, PREFIX_SWAP, PREFIX_WINDOWS, PREFIX_PLACES };

/* The links of a block in a heap of its owner. */
struct prefix_leaf {
        block_t up, left, right;
        uint32_t rank; /* 0: it is not in the heap */
};

/* A block.  It is in the index if `filled` is not 0; one of the swap is used only then. */
struct prefix_node {
        uint64_t hash[2];  /* of the block and all before it, if the block is whole */
        uint64_t domain;   /* that it belongs to, whether it is in the index or not */
        uint64_t unref_at; /* value of prefix.unref_serial when its last reference was removed */
        uint32_t tokens[BLOCK_POSITIONS];
        uint32_t owner;  /* index of its domain in `owners` */
        uint32_t filled; /* positions known to hold these tokens; 0: it is not in the index */
        uint32_t generation, parent_generation;
        block_t parent; /* the block before it, or BLOCK_NONE */
        block_t child;  /* the newest of the blocks that follow it; the others by sibling_next */
        uint32_t pool_children; /* how many of these are in the pool */
        block_t sibling_next, sibling_prev;
        block_t start_next, start_prev; /* in its bucket of `start_buckets` */
        block_t hash_next;              /* in its bucket of `hash_buckets` */
        struct prefix_leaf leaf;        /* in the heap of leaves */
        uint32_t pin;                   /* the first of the pins here, or 0 */
        uint32_t published; /* number of pins that publish it: here, or at blocks below it */
};

/* The window page of a block (prefix-windows.h). */
struct prefix_window {
        uint32_t number;   /* 1 + its number; 0: the block has none */
        uint32_t refs;     /* sequences that need it */
        uint64_t unref_at; /* value of prefix.window_unref_serial when refs became 0 */
        uint64_t giver;    /* the sequence that has handed it over, or 0 */
        uint32_t pins;     /* number of pins of texts that end in a window behind this block */
        bool is_invalid;   /* the numbers of its giver are not valid: nobody may find it */
        bool is_useful;    /* a request may go on from a position right after it */
        struct prefix_leaf leaf; /* in the heap of window pages, if it has no references */
};

struct prefix_pin {
        block_t block;       /* BLOCK_NONE: the pin is not set */
        uint32_t next, prev; /* others at the same block, or 0 */
        bool publishes;
};

struct prefix_owner {
        uint64_t domain;
        uint32_t in_use, cached, swapped; /* numbers of its own blocks */
        uint32_t windows; /* ... of those with a window page that has no references */
        uint32_t next;    /* in its bucket, or in the list of unused entries */
        struct prefix_leaves {
                block_t root;        /* of the heap of its leaves, or BLOCK_NONE */
                uint32_t heap_index; /* its index in the heap of owners; or NOT_IN_HEAP */
        } leaves[PREFIX_PLACES];
};

/* Owners that have leaves in a place; the first one loses the next block. */
struct prefix_owner_heap {
        uint32_t *owners;
        uint32_t count;
};

struct prefix {
        struct prefix_conf conf;
        struct kvpool pool;
        struct prefix_node *nodes;     /* per block */
        struct prefix_window *windows; /* per block; NULL: there are no windows */
        block_t *start_buckets;        /* hash table by domain, parent and first token */
        block_t *hash_buckets;         /* hash table by hash, of whole blocks */
        uint32_t bucket_mask;
        struct prefix_owner *owners;
        uint32_t *owner_buckets; /* hash table by domain */
        uint32_t owner_unused;   /* the first of a list; NO_OWNER: it is empty */
        uint32_t owner_fresh;    /* entries of `owners` from this one on were never used */
        struct prefix_owner_heap owner_heaps[PREFIX_PLACES];
        uint64_t unref_serial;
        uint64_t evictions;
        struct prefix_pin *pins;       /* by number */
        struct free_numbers swap_free; /* blocks of the swap that are not used */
        struct block_move *moves;      /* the caller's list */
        uint32_t move_count, move_max;
        bool may_swap;
        uint64_t swapped_out, swapped_in;
        struct free_numbers window_free; /* window pages that no block has */
        uint64_t window_unref_serial;
        uint64_t window_evictions;
};

static inline enum prefix_place prefix_place(const struct prefix *prefix, block_t block)
{
        return block < prefix->pool.total ? PREFIX_POOL : PREFIX_SWAP;
}

/* The number of blocks of pool and swap. */
static inline uint32_t prefix_block_count(const struct prefix *prefix)
{
        return prefix->pool.total + prefix->conf.swap_blocks;
}

#endif
