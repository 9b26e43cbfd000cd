/*
 * The prefix index: what is in the blocks, so that nothing is computed twice.
 *
 * Keys and values of a position depend on its token and on all before it.  So what
 * a block holds is named by its tokens and by the block before, and the blocks
 * that have names form trees, one below each domain: a domain is who may share.
 *
 *      domain 1000  -> [You are a he] -> [lpful urn. W] -> [hat is tea?..]
 *                                     -> [lpful pot, a]           <- a tail: 13 of 16
 *      everyone's   -> [You are a ta] -> [ble of units,]
 *                                     -> [ble of kings,]          <- this one is 1000's own
 *
 * A user's domain is his uid, and nothing in it is found by anybody else.  Besides there are
 * public ones, everyone's and those of groups, where a name gets only by being published.
 * Below a public block users have their own, each for himself; below a user's own there is
 * nothing public.
 *
 * A whole block is found by its name, a keyed hash (siphash.h) of the name of the
 * block before and of its tokens; what is found is compared: token by token, the
 * block before by number and generation, the domain.  A part of a block is found
 * among those that follow the same block with the same first token; the caller
 * copies it, as only one may write there.
 *
 * A block keeps its name when the last who held it drops it: it is kept.  The pool
 * has a block to deal as long as one is free or kept, for then one is evicted:
 * the leaf that was dropped longest ago.  Who holds a block holds those before
 * it, so what is kept has leaves, and what is held is never evicted.
 *
 * A block is somebody's own from when it is dealt, with or without a name: of the domain that it
 * was dealt for.  Where there is a limit to what one user may keep, who keeps more gives way
 * first: of the leaves without an anchor, his are evicted before those of anybody else.  So nobody can
 * drive out by what he asks what others have, and as long as there is room nobody loses anything.
 *
 * An anchor makes a text stay longer than others.  It is put at the text's last block, and
 * that is enough for all before it: leaves go first.  It binds nobody: leaves with an anchor are
 * evicted as well, when there are no others; then the anchor rises to the block before.  So
 * whatever is promised of the pool holds as if there were no anchors.
 *
 * What is published has an anchor, too.  Before, it is named in public and found by none but
 * those who publish there themselves; from then on it is public as long as one of those that published it, or
 * something that begins with it, has not been taken away.  Then the names go, with all below
 * them, the users' own included; what they hold is read on by who holds it.
 *
 * One owner's own tokens name his blocks: whoever could name a block by tokens
 * that are not in it could have others read what he likes.  Engine thread only;
 * nothing here allocates after prefix_init().
 */
#ifndef DAEMON_CORE_PREFIX_H
#define DAEMON_CORE_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/kvpool.h"

/* Whose a name is: a uid, or one of these. */
#define PREFIX_EVERYONE   (UINT64_C(1) << 32)
#define PREFIX_GROUP(gid) (UINT64_C(2) << 32 | (gid))

static inline bool prefix_is_public(uint64_t domain)
{
        return domain >> 32;
}

/* Who looks: in his own domain, which is the first, and in these. */
#define PREFIX_DOMAINS_MAX 18u

struct prefix_reader {
        uint64_t domains[PREFIX_DOMAINS_MAX];
        uint32_t count;
};

struct prefix_conf {
        uint64_t key[2];   /* random: nobody outside can choose what collides */
        uint64_t world;    /* whose KV this is: a number of the model, its layout and type */
        uint64_t blind[2]; /* of a name's bits, those that do not count: none, but in a test */
        uint32_t anchors;  /* there are so many, numbered from 1 on */
        uint32_t keeps;    /* blocks: what one user may keep, as long as others need some; 0: all */
};

struct named {
        uint64_t name[2]; /* of a whole block */
        uint64_t domain;  /* whose own it is, also while it has no name */
        uint32_t owner;   /* ... in the table of owners */
        uint64_t dropped; /* when the last dropped it: drops are counted */
        uint32_t tokens[BLOCK_POSITIONS];
        uint32_t filled; /* positions that are known to hold those; 0: it has no name */
        uint32_t generation, parent_generation;
        block_t parent; /* the block before, or BLOCK_NONE */
        block_t child;  /* one of those that follow, the newest; the others by sister */
        block_t sister_next, sister_prev;
        block_t start_next, start_prev;         /* in its bucket of `starts` */
        block_t whole_next;                     /* ... of `wholes` */
        block_t leaf_up, leaf_left, leaf_right; /* among its owner's leaves, if it is one */
        uint32_t leaf_rank;                     /* 0: it is none */
        uint32_t anchor;                        /* one of those that are here, or 0 */
        uint32_t published; /* anchors that publish it: here, and at what follows */
};

struct anchor {
        block_t block;       /* BLOCK_NONE: it is nowhere */
        uint32_t next, prev; /* others at the same block, or 0 */
        bool publishes;
};

struct owner {
        uint64_t domain;
        uint32_t held, kept; /* blocks of his own */
        block_t leaves;      /* the first of those that are kept, and nothing follows */
        uint32_t giver_at;   /* his place among those who have leaves, or NO_GIVER */
        uint32_t next;       /* in his bucket, or of those that are unused */
};

struct prefix {
        struct prefix_conf conf;
        struct kvpool pool;
        struct named *named; /* per block */
        block_t *starts;     /* buckets: the block before and the first token */
        block_t *wholes;     /* ... by name */
        uint32_t bucket_mask;
        struct owner *owners;
        uint32_t *owner_buckets;
        uint32_t owner_unused;
        uint32_t *givers; /* a heap of the owners who have leaves: who gives the next */
        uint32_t giver_count;
        uint64_t drops;
        uint64_t evictions;
        struct anchor *anchors; /* by number */
};

/* What is known of a text. */
struct prefix_hit {
        uint32_t whole_count; /* blocks, written to the caller's array */
        block_t tail;         /* the next block begins as this one, or BLOCK_NONE */
        uint32_t tail_count;  /* ... so many positions: 1 to 15 */
        uint32_t diverged_at; /* behind all that, something known goes on otherwise; 0: nothing */
        uint32_t known_token; /* ... with this token there */
};

static inline uint32_t prefix_positions(const struct prefix_hit *hit)
{
        return hit->whole_count * BLOCK_POSITIONS + hit->tail_count;
}

int prefix_init(struct prefix *prefix, const struct prefix_conf *conf, uint32_t blocks);
void prefix_deinit(struct prefix *prefix);

/* A block to write, held once, this domain's own.  There must be one free or kept. */
block_t prefix_take(struct prefix *prefix, uint64_t domain);
void prefix_hold(struct prefix *prefix, block_t block);
/* Of a sequence, its last block first: so its leaf is evicted first. */
void prefix_drop(struct prefix *prefix, block_t block);

/* Blocks that prefix_take() can have. */
static inline uint32_t prefix_left(const struct prefix *prefix)
{
        return prefix->pool.free_count + prefix->pool.kept_count;
}

/* Of a domain's own blocks: those that anybody holds, and those that nobody does. */
uint32_t prefix_held_by(const struct prefix *prefix, uint64_t domain);
uint32_t prefix_kept_by(const struct prefix *prefix, uint64_t domain);

/*
 * The longest beginning of these tokens that blocks hold; only where more than 64
 * blocks follow one with the same token the tail is the longest among the newest.
 * Nothing is held by it: hold what is wanted before anything else is taken.
 * `blocks` has room for count / BLOCK_POSITIONS.
 *
 * There is one way for each of the reader's domains: as far as its names go, and where that is a
 * public one, on in his own.  The longest counts; of equal ones the first.
 *
 * Why it is no longer: at `diverged_at`, the first position that is not found, a
 * block of this way has another token than the text.  Of several, a public one or else
 * the one that was named last says which, and of more than 64 the newest are asked.  There is
 * no such position where the text ends, where nothing more was ever named or all of
 * it was evicted, and at 0: that one begins otherwise is no news.  Nor is there one right
 * behind a whole public block, for what follows it is many users'.  What another
 * domain holds changes nothing: the answer would give it away token by token.
 */
void prefix_find(const struct prefix *prefix, const struct prefix_reader *reader,
                 const uint32_t *tokens, uint32_t count, block_t *blocks,
                 struct prefix_hit *ret_hit);

/*
 * The first `count` positions of `block`, which is this domain's own, hold these tokens, after those
 * of `parent`, which the caller holds, too, or after nothing.  More than were said before, never
 * others.  Behind a block without a name there are no names.  Returns the block
 * that has this name: another one, if it was there before.
 */
block_t prefix_name(struct prefix *prefix, uint64_t domain, block_t parent, block_t block,
                    const uint32_t *tokens, uint32_t count);

/* From wherever it is to this block, which has a name; or with BLOCK_NONE, away. */
void prefix_anchor(struct prefix *prefix, uint32_t anchor, block_t block);
/* The same for what is published by it, to a block of a public domain. */
void prefix_publish(struct prefix *prefix, uint32_t anchor, block_t block);

/* Takes the names of this block and of all that follow: what they hold is not to be trusted. */
void prefix_spoil(struct prefix *prefix, block_t block);

/* Walks everything and asserts what must hold. */
void prefix_check(const struct prefix *prefix);

#endif
