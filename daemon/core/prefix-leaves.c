#include "daemon/core/prefix-leaves.h"

#include <assert.h>

static bool is_before(const struct prefix *prefix, block_t a, block_t b)
{
        const struct named *one = &prefix->named[a], *other = &prefix->named[b];

        if (!one->anchor != !other->anchor)
                return !one->anchor;
        return one->dropped < other->dropped;
}

static void put(struct prefix *prefix, uint32_t at, block_t block)
{
        prefix->leaves[at] = block;
        prefix->named[block].leaf_at = at;
}

/* A place is empty: where does this block belong, at it or above it? */
static uint32_t rise(struct prefix *prefix, uint32_t at, block_t block)
{
        while (at && is_before(prefix, block, prefix->leaves[(at - 1) / 2])) {
                put(prefix, at, prefix->leaves[(at - 1) / 2]);
                at = (at - 1) / 2;
        }
        return at;
}

/* ... at it or below it? */
static uint32_t sink(struct prefix *prefix, uint32_t at, block_t block)
{
        for (;;) {
                uint32_t next = 2 * at + 1;

                if (next + 1 < prefix->leaf_count &&
                    is_before(prefix, prefix->leaves[next + 1], prefix->leaves[next]))
                        next++;
                if (next >= prefix->leaf_count || !is_before(prefix, prefix->leaves[next], block))
                        return at;
                put(prefix, at, prefix->leaves[next]);
                at = next;
        }
}

void leaves_add(struct prefix *prefix, block_t block)
{
        assert(prefix->named[block].leaf_at == LEAF_NONE);
        assert(prefix->leaf_count < prefix->pool.total);
        put(prefix, rise(prefix, prefix->leaf_count++, block), block);
}

void leaves_remove(struct prefix *prefix, block_t block)
{
        uint32_t at = prefix->named[block].leaf_at;
        block_t last = prefix->leaves[--prefix->leaf_count];

        assert(at <= prefix->leaf_count && prefix->leaves[at] == block);
        prefix->named[block].leaf_at = LEAF_NONE;
        if (last == block)
                return;
        put(prefix, sink(prefix, rise(prefix, at, last), last), last);
}

block_t leaves_first(const struct prefix *prefix)
{
        assert(prefix->leaf_count);
        return prefix->leaves[0];
}

void leaves_check(const struct prefix *prefix)
{
        assert(prefix->leaf_count <= prefix->pool.kept_count);
        assert(!prefix->pool.kept_count || prefix->leaf_count);
        for (uint32_t i = 0; i < prefix->leaf_count; i++) {
                assert(prefix->named[prefix->leaves[i]].leaf_at == i);
                assert(!i || !is_before(prefix, prefix->leaves[i], prefix->leaves[(i - 1) / 2]));
        }
}
