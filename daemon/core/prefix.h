/*
 * The prefix index: knows the content of the blocks, so that nothing is computed twice.
 *
 * Keys and values of a position depend on its token and on all tokens before it.  So the
 * content of a block is named by its tokens and by the block before it (its parent).
 * The blocks that have names form trees, below one root for each domain.  A domain says
 * which users may share a block.
 *
 *      domain 1000  -> [You are a ki] -> [ndly urn. Wh] -> [at is tea? ..]
 *                                     -> [ndly pot, an]           <- a tail: 13 of 16
 *      everyone's   -> [You are a ta] -> [ble of units,]
 *                                     -> [ble of kings,]          <- this one is 1000's own
 *
 * A user's domain is the uid, and no other user can find anything in it.  There are also
 * public domains: one for everyone and one for each group.  A name gets into a public domain
 * only by being published.  Below a public block users have their own blocks, each user
 * separately.  Below a user's own block there are no public blocks.
 *
 * A whole block is found by its name.  The name is a keyed hash (siphash.h) of the parent's
 * name and of the block's tokens.  A block found by hash is then compared: token by token, the
 * parent by number and generation, and the domain.  A part of a block is found among the
 * blocks that have the same parent and the same first token.  The caller copies such a block,
 * because only one sequence may write to a block.
 *
 * A block keeps its name when its last reference is dropped: it is kept (cached).  The pool
 * can supply a block as long as one is free or kept.  If none is free, the index evicts the
 * leaf that was dropped longest ago.  A sequence that holds a block also holds all blocks
 * before it.  So if blocks are kept, some of them are leaves, and a held block is never
 * evicted.
 *
 * A block belongs to a domain from the moment it is taken, with or without a name: to the
 * domain that it was taken for.  There may be a limit (`keeps`) to the blocks that one user may
 * keep.  A user above that limit gives way first: of the leaves without an anchor, those of this
 * user are evicted before those of any other.  So a user cannot evict the blocks of others by
 * sending many requests, and while there is room nothing is evicted.
 *
 * An anchor (a pin of low priority) makes a text stay longer than others.  It is set at the last
 * block of the text.  That protects all blocks before it, because leaves are evicted first.
 * An anchor guarantees nothing: if there are no other leaves, leaves with an anchor are
 * evicted as well, and the anchor moves to the parent.  So all promises about the pool
 * hold as if there were no anchors.
 *
 * A published text has an anchor, too.  Before it is published, its blocks are named in a
 * public domain, and only requests that publish there themselves find them.  Then it is public
 * until the anchors of all publications of it, or of a text that begins with it, are taken away.
 * At that point the names are removed, and the names of all blocks below, including the users'
 * own.  A sequence that holds such blocks goes on reading them.
 *
 * A block must be named only by the tokens that it really contains, by its owner.  Otherwise
 * a user who could name a block by other tokens could make other users read arbitrary content.
 * Engine thread only; nothing here allocates after prefix_init().
 */
#ifndef DAEMON_CORE_PREFIX_H
#define DAEMON_CORE_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/kvpool.h"

/* A domain: a uid, or one of these. */
#define PREFIX_EVERYONE   (UINT64_C(1) << 32)
#define PREFIX_GROUP(gid) (UINT64_C(2) << 32 | (gid))

static inline bool prefix_is_public(uint64_t domain)
{
        return domain >> 32;
}

/* The domains in which a request may look: its own first, then the public ones. */
#define PREFIX_DOMAINS_MAX 18u

struct prefix_reader {
        uint64_t domains[PREFIX_DOMAINS_MAX];
        uint32_t count;
};

struct prefix_conf {
        uint64_t key[2];   /* random, so that clients cannot choose inputs that collide */
        uint64_t world;    /* identifies the model, and the layout and type of its KV */
        uint64_t blind[2]; /* bits of a name to ignore; 0 except in tests, which want collisions */
        uint32_t anchors;  /* number of anchors; they are numbered from 1 on */
        uint32_t keeps;    /* kept blocks above which a user's are evicted first; 0: no limit */
};

struct named {
        uint64_t name[2]; /* if the block is whole */
        uint64_t domain;  /* the domain it belongs to, also while it has no name */
        uint32_t owner;   /* index of that domain in the table of owners */
        uint64_t dropped; /* serial number of the drop of its last reference (prefix.drops) */
        uint32_t tokens[BLOCK_POSITIONS];
        uint32_t filled; /* positions known to hold these tokens; 0: it has no name */
        uint32_t generation, parent_generation;
        block_t parent; /* the block before it, or BLOCK_NONE */
        block_t child;  /* the newest of the blocks that follow it; the others by sister_next */
        block_t sister_next, sister_prev;
        block_t start_next, start_prev;         /* in its bucket of `starts` */
        block_t whole_next;                     /* in its bucket of `wholes` */
        block_t leaf_up, leaf_left, leaf_right; /* in its owner's heap, if it is a leaf */
        uint32_t leaf_rank;                     /* 0: it is not a leaf */
        uint32_t anchor;                        /* the first of the anchors here, or 0 */
        uint32_t published; /* number of anchors that publish it: here, or at blocks below it */
};

struct anchor {
        block_t block;       /* BLOCK_NONE: the anchor is not set */
        uint32_t next, prev; /* others at the same block, or 0 */
        bool publishes;
};

struct owner {
        uint64_t domain;
        uint32_t held, kept; /* numbers of its own blocks */
        block_t leaves;      /* root of the heap of its leaves, or BLOCK_NONE */
        uint32_t giver_at;   /* its index in prefix.givers, or NO_GIVER if it has no leaves */
        uint32_t next;       /* in its bucket, or in the list of unused entries */
};

struct prefix {
        struct prefix_conf conf;
        struct kvpool pool;
        struct named *named; /* per block */
        block_t *starts;     /* hash buckets by domain, parent and first token */
        block_t *wholes;     /* hash buckets by name */
        uint32_t bucket_mask;
        struct owner *owners;
        uint32_t *owner_buckets;
        uint32_t owner_unused;
        uint32_t *givers; /* heap of the owners that have leaves: the first gives the next block */
        uint32_t giver_count;
        uint64_t drops;
        uint64_t evictions;
        struct anchor *anchors; /* by number */
};

/* The result of looking a text up. */
struct prefix_hit {
        uint32_t whole_count; /* whole blocks found, written to the caller's array */
        block_t tail;         /* block that begins like the rest of the text, or BLOCK_NONE */
        uint32_t tail_count;  /* number of its positions that are equal: 1 to 15 */
        uint32_t diverged_at; /* first position not found, if a known text differs there; or 0 */
        uint32_t known_token; /* the token of that known text at diverged_at */
};

static inline uint32_t prefix_positions(const struct prefix_hit *hit)
{
        return hit->whole_count * BLOCK_POSITIONS + hit->tail_count;
}

int prefix_init(struct prefix *prefix, const struct prefix_conf *conf, uint32_t blocks);
void prefix_deinit(struct prefix *prefix);

/*
 * Takes a block to write to, with one reference; it belongs to `domain`.  At least one block must
 * be free or kept; if none is free, one is evicted.
 */
block_t prefix_take(struct prefix *prefix, uint64_t domain);
/* Adds a reference. */
void prefix_hold(struct prefix *prefix, block_t block);
/*
 * Removes a reference.  A caller that drops the blocks of a sequence starts with the last one, so
 * that the end of the sequence is evicted first.
 */
void prefix_drop(struct prefix *prefix, block_t block);

/* The number of blocks that prefix_take() can supply. */
static inline uint32_t prefix_left(const struct prefix *prefix)
{
        return prefix->pool.free_count + prefix->pool.kept_count;
}

/* The number of a domain's own blocks with references (held), and without (kept). */
uint32_t prefix_held_by(const struct prefix *prefix, uint64_t domain);
uint32_t prefix_kept_by(const struct prefix *prefix, uint64_t domain);

/*
 * Finds the longest prefix of these tokens that blocks contain.  If more than 64 blocks with
 * the same parent begin with the same token, the tail is only the longest among the newest.
 * No references are taken: hold the blocks before taking any other block.
 * `blocks` has room for count / BLOCK_POSITIONS.
 *
 * The search follows one path for each of the reader's domains: as far as the names in that
 * domain go, and from a public domain on in the reader's own.  The longest path is used; of
 * equal ones the first.
 *
 * `diverged_at` tells why the path is no longer.  It is the first position that was not found, if
 * a block of this path has another token there than the text.  If there are several such blocks,
 * a public one is used, or else the one named last; of more than 64 only the newest are looked at.
 * diverged_at is 0 in these cases:
 *      - the whole text was found;
 *      - nothing was ever named after the part that was found, or all of it was evicted;
 *      - the difference is at position 0: different first tokens tell the client nothing;
 *      - the position comes right after a whole public block, as many users' blocks follow it.
 * The content of other domains has no influence: the answer would reveal it token by token.
 */
void prefix_find(const struct prefix *prefix, const struct prefix_reader *reader,
                 const uint32_t *tokens, uint32_t count, block_t *blocks,
                 struct prefix_hit *ret_hit);

/*
 * Records that the first `count` positions of `block` contain these tokens, after those of `parent`
 * (BLOCK_NONE: after nothing).  The block belongs to `domain`.  The caller holds both blocks.
 * A later call may add tokens to the same block, never change them.  If the parent has no name as a
 * whole block, nothing is recorded.  Returns the block that has this name: normally `block`,
 * or another block that had the name before.
 */
block_t prefix_name(struct prefix *prefix, uint64_t domain, block_t parent, block_t block,
                    const uint32_t *tokens, uint32_t count);

/*
 * Moves the anchor to this block, which must have a name.  With BLOCK_NONE it is removed.  If the
 * anchor published a text, that publication ends.
 */
void prefix_anchor(struct prefix *prefix, uint32_t anchor, block_t block);
/*
 * The same, and publishes the text that ends with this block, which is in a public domain.  The
 * anchor must not publish anything yet.
 */
void prefix_publish(struct prefix *prefix, uint32_t anchor, block_t block);

/* Removes the names of this block and of all blocks below it: their content is not valid. */
void prefix_spoil(struct prefix *prefix, block_t block);

/* Checks every block and asserts all invariants. */
void prefix_check(const struct prefix *prefix);

#endif
