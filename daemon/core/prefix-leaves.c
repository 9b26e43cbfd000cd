#include "daemon/core/prefix-leaves.h"
#include "daemon/core/prefix-owners.h"

#include <assert.h>

/* ---- the leaves of one owner ---- */

static bool is_before(const struct prefix *prefix, block_t a, block_t b)
{
        const struct named *one = &prefix->named[a], *other = &prefix->named[b];

        if (!one->anchor != !other->anchor)
                return !one->anchor;
        return one->dropped < other->dropped;
}

/* The number of nodes on the path to the right, beginning with this one. */
static uint32_t rank(const struct prefix *prefix, block_t block)
{
        return block == BLOCK_NONE ? 0 : prefix->named[block].leaf_rank;
}

/* Puts the shorter path on the right.  Returns true if the rank of this node has changed. */
static bool weigh(struct prefix *prefix, block_t block)
{
        struct named *named = &prefix->named[block];
        block_t left = named->leaf_left;
        uint32_t before = named->leaf_rank;

        if (rank(prefix, left) < rank(prefix, named->leaf_right)) {
                named->leaf_left = named->leaf_right;
                named->leaf_right = left;
        }
        named->leaf_rank = rank(prefix, named->leaf_right) + 1;
        return named->leaf_rank != before;
}

/*
 * Merges two heaps, which may be empty, and returns the root.  It goes down the right paths of
 * both, always takes the node that comes first, and then updates the ranks on the way up.
 */
static block_t merge(struct prefix *prefix, block_t a, block_t b)
{
        block_t root = BLOCK_NONE, last = BLOCK_NONE;

        while (a != BLOCK_NONE || b != BLOCK_NONE) {
                if (a == BLOCK_NONE || (b != BLOCK_NONE && is_before(prefix, b, a))) {
                        block_t other = a;

                        a = b;
                        b = other;
                }
                if (last == BLOCK_NONE)
                        root = a;
                else
                        prefix->named[last].leaf_right = a;
                prefix->named[a].leaf_up = last;
                last = a;
                if (b == BLOCK_NONE)
                        break;
                a = prefix->named[a].leaf_right;
        }
        for (; last != BLOCK_NONE; last = prefix->named[last].leaf_up)
                weigh(prefix, last);
        return root;
}

/* ---- the owners ---- */

static bool has_too_much(const struct prefix *prefix, const struct owner *owner)
{
        return prefix->conf.keeps && owner->kept > prefix->conf.keeps &&
               !prefix_is_public(owner->domain);
}

static bool goes_before(const struct prefix *prefix, uint32_t a, uint32_t b)
{
        const struct owner *one = &prefix->owners[a], *other = &prefix->owners[b];

        if (!prefix->named[one->leaves].anchor == !prefix->named[other->leaves].anchor &&
            has_too_much(prefix, one) != has_too_much(prefix, other))
                return has_too_much(prefix, one);
        return is_before(prefix, one->leaves, other->leaves);
}

static void put(struct prefix *prefix, uint32_t at, uint32_t owner)
{
        prefix->givers[at] = owner;
        prefix->owners[owner].giver_at = at;
}

/*
 * Index `at` of the owners' heap is empty.  Moves parents down until `owner` may be put at `at` or
 * above it, and returns that index.
 */
static uint32_t rise(struct prefix *prefix, uint32_t at, uint32_t owner)
{
        while (at && goes_before(prefix, owner, prefix->givers[(at - 1) / 2])) {
                put(prefix, at, prefix->givers[(at - 1) / 2]);
                at = (at - 1) / 2;
        }
        return at;
}

/* The same in the other direction: moves children up, and returns an index at or below `at`. */
static uint32_t sink(struct prefix *prefix, uint32_t at, uint32_t owner)
{
        for (;;) {
                uint32_t next = 2 * at + 1;

                if (next + 1 < prefix->giver_count &&
                    goes_before(prefix, prefix->givers[next + 1], prefix->givers[next]))
                        next++;
                if (next >= prefix->giver_count ||
                    !goes_before(prefix, prefix->givers[next], owner))
                        return at;
                put(prefix, at, prefix->givers[next]);
                at = next;
        }
}

static void place(struct prefix *prefix, uint32_t at, uint32_t owner)
{
        put(prefix, sink(prefix, rise(prefix, at, owner), owner), owner);
}

void leaves_settle(struct prefix *prefix, uint32_t number)
{
        struct owner *owner = &prefix->owners[number];
        uint32_t at = owner->giver_at, last;

        if (owner->leaves != BLOCK_NONE) {
                place(prefix, at == NO_GIVER ? prefix->giver_count++ : at, number);
        } else if (at != NO_GIVER) {
                owner->giver_at = NO_GIVER;
                last = prefix->givers[--prefix->giver_count];
                if (last != number)
                        place(prefix, at, last);
        }
}

/* ---- both ---- */

void leaves_add(struct prefix *prefix, block_t block)
{
        struct named *named = &prefix->named[block];
        struct owner *owner = &prefix->owners[named->owner];

        assert(!named->leaf_rank);
        named->leaf_left = named->leaf_right = named->leaf_up = BLOCK_NONE;
        named->leaf_rank = 1;
        owner->leaves = merge(prefix, owner->leaves, block);
        leaves_settle(prefix, named->owner);
}

void leaves_remove(struct prefix *prefix, block_t block)
{
        struct named *named = &prefix->named[block];
        struct owner *owner = &prefix->owners[named->owner];
        block_t up = named->leaf_up, rest;

        assert(named->leaf_rank);
        rest = merge(prefix, named->leaf_left, named->leaf_right);
        if (rest != BLOCK_NONE)
                prefix->named[rest].leaf_up = up;
        if (up == BLOCK_NONE)
                owner->leaves = rest;
        else if (prefix->named[up].leaf_left == block)
                prefix->named[up].leaf_left = rest;
        else
                prefix->named[up].leaf_right = rest;
        named->leaf_rank = 0;
        while (up != BLOCK_NONE && weigh(prefix, up))
                up = prefix->named[up].leaf_up;
        leaves_settle(prefix, named->owner);
}

block_t leaves_first(const struct prefix *prefix)
{
        assert(prefix->giver_count);
        return prefix->owners[prefix->givers[0]].leaves;
}

/* Checks a leaf against its two children in the heap. */
static void check_leaf(const struct prefix *prefix, block_t block)
{
        const struct named *named = &prefix->named[block];
        const block_t below[] = { named->leaf_left, named->leaf_right };

        for (int i = 0; i < 2; i++) {
                if (below[i] == BLOCK_NONE)
                        continue;
                assert(prefix->named[below[i]].leaf_rank);
                assert(prefix->named[below[i]].leaf_up == block);
                assert(prefix->named[below[i]].owner == named->owner);
                assert(!is_before(prefix, below[i], block));
        }
        assert(rank(prefix, below[0]) >= rank(prefix, below[1]));
        assert(named->leaf_rank == rank(prefix, below[1]) + 1);
        if (named->leaf_up == BLOCK_NONE)
                assert(prefix->owners[named->owner].leaves == block);
        else
                assert(prefix->named[named->leaf_up].leaf_left == block ||
                       prefix->named[named->leaf_up].leaf_right == block);
}

void leaves_check(const struct prefix *prefix)
{
        assert(!prefix->pool.kept_count || prefix->giver_count);
        for (block_t block = 0; block < prefix->pool.total; block++)
                if (leaves_have(prefix, block))
                        check_leaf(prefix, block);
        for (uint32_t i = 0; i < prefix->giver_count; i++) {
                uint32_t owner = prefix->givers[i];

                assert(prefix->owners[owner].giver_at == i);
                assert(prefix->owners[owner].leaves != BLOCK_NONE);
                assert(!i || !goes_before(prefix, owner, prefix->givers[(i - 1) / 2]));
        }
}
