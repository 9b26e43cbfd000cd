/*
 * Names, and the blocks that have them.
 *
 * Each named block is in three places: among the children of its parent, in a
 * bucket of `starts`, and once it is whole in a bucket of `wholes`.  If it has no
 * references and no child, it is also a leaf (prefix-leaves.c).
 */
#include "daemon/core/prefix.h"
#include "daemon/core/prefix-anchors.h"
#include "daemon/core/prefix-leaves.h"
#include "daemon/core/prefix-owners.h"
#include "daemon/core/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * How many blocks of a bucket a lookup reads at most, the newest first.
 * If a user has more conversations that diverge within one block, a lookup finds at most
 * fifteen positions less of an older one.
 */
#define LOOKS_MAX 64

int prefix_init(struct prefix *prefix, const struct prefix_conf *conf, uint32_t blocks)
{
        uint32_t buckets = 1;

        *prefix = (struct prefix){ .conf = *conf };
        while (buckets < blocks && buckets < UINT32_C(1) << 31)
                buckets *= 2;
        prefix->bucket_mask = buckets - 1;
        prefix->named = calloc(blocks, sizeof(*prefix->named));
        prefix->starts = malloc(buckets * sizeof(*prefix->starts));
        prefix->wholes = malloc(buckets * sizeof(*prefix->wholes));
        prefix->anchors = calloc((size_t)conf->anchors + 1, sizeof(*prefix->anchors));
        if (!prefix->named || !prefix->starts || !prefix->wholes || !prefix->anchors ||
            owners_init(prefix, blocks) || kvpool_init(&prefix->pool, blocks)) {
                prefix_deinit(prefix);
                return -ENOMEM;
        }
        memset(prefix->starts, 0xff, buckets * sizeof(*prefix->starts)); /* BLOCK_NONE */
        memset(prefix->wholes, 0xff, buckets * sizeof(*prefix->wholes));
        for (uint32_t i = 0; i <= conf->anchors; i++)
                prefix->anchors[i].block = BLOCK_NONE;
        return 0;
}

void prefix_deinit(struct prefix *prefix)
{
        if (!prefix)
                return;
        kvpool_deinit(&prefix->pool);
        owners_deinit(prefix);
        free(prefix->named);
        free(prefix->starts);
        free(prefix->wholes);
        free(prefix->anchors);
        *prefix = (struct prefix){ 0 };
}

/*
 * A name is a hash of fields.  Each field has its kind and its length, so that different
 * lists of fields never give the same bytes.
 */
struct fields {
        unsigned char bytes[128];
        size_t count;
};

static void add_field(struct fields *fields, uint32_t kind, const void *bytes, uint32_t count)
{
        assert(fields->count + sizeof(kind) + sizeof(count) + count <= sizeof(fields->bytes));
        memcpy(fields->bytes + fields->count, &kind, sizeof(kind));
        memcpy(fields->bytes + fields->count + sizeof(kind), &count, sizeof(count));
        memcpy(fields->bytes + fields->count + sizeof(kind) + sizeof(count), bytes, count);
        fields->count += sizeof(kind) + sizeof(count) + count;
}

enum { FIELD_WORLD = 1, FIELD_DOMAIN, FIELD_PARENT, FIELD_TOKENS };

/* The name of the root of a domain: a hash of conf.world and of the domain. */
static void name_root(const struct prefix *prefix, uint64_t domain, uint64_t ret_name[2])
{
        struct fields fields = { .count = 0 };

        add_field(&fields, FIELD_WORLD, &prefix->conf.world, sizeof(prefix->conf.world));
        add_field(&fields, FIELD_DOMAIN, &domain, sizeof(domain));
        siphash(prefix->conf.key, fields.bytes, fields.count, ret_name);
}

/*
 * The name of a whole block.  It includes the domain, so the blocks that different users have below
 * the same public block are in different buckets.
 */
static void name_whole(const struct prefix *prefix, uint64_t domain, const uint64_t parent[2],
                       const uint32_t *tokens, uint64_t ret_name[2])
{
        struct fields fields = { .count = 0 };

        add_field(&fields, FIELD_DOMAIN, &domain, sizeof(domain));
        add_field(&fields, FIELD_PARENT, parent, 2 * sizeof(*parent));
        add_field(&fields, FIELD_TOKENS, tokens, BLOCK_POSITIONS * sizeof(*tokens));
        siphash(prefix->conf.key, fields.bytes, fields.count, ret_name);
        ret_name[0] &= ~prefix->conf.blind[0];
        ret_name[1] &= ~prefix->conf.blind[1];
}

static void name_of_parent(const struct prefix *prefix, uint64_t domain, block_t parent,
                           uint64_t ret_name[2])
{
        if (parent == BLOCK_NONE)
                name_root(prefix, domain, ret_name);
        else
                memcpy(ret_name, prefix->named[parent].name, 2 * sizeof(*ret_name));
}

/* The bucket of the blocks that follow `parent` and begin with this token. */
static block_t *bucket_of_start(const struct prefix *prefix, uint64_t domain, block_t parent,
                                uint32_t token)
{
        uint64_t hash[2], key[2] = { domain, (uint64_t)parent << 32 | token };

        siphash(prefix->conf.key, key, sizeof(key), hash);
        return &prefix->starts[hash[0] & prefix->bucket_mask];
}

static block_t *bucket_of_whole(const struct prefix *prefix, const uint64_t name[2])
{
        return &prefix->wholes[name[0] & prefix->bucket_mask];
}

/* Does this named block follow `parent`, in this domain? */
static bool follows(const struct prefix *prefix, const struct named *block, uint64_t domain,
                    block_t parent)
{
        return block->domain == domain && block->parent == parent &&
               (parent == BLOCK_NONE ||
                block->parent_generation == prefix->named[parent].generation);
}

/*
 * Finds the whole block that follows `parent` with these tokens, or BLOCK_NONE.  *ret_name is its
 * name in either case.
 */
static block_t find_whole(const struct prefix *prefix, uint64_t domain, block_t parent,
                          const uint32_t *tokens, uint64_t ret_name[2])
{
        uint64_t name[2];
        block_t at;

        name_of_parent(prefix, domain, parent, name);
        name_whole(prefix, domain, name, tokens, name);
        memcpy(ret_name, name, sizeof(name));
        at = *bucket_of_whole(prefix, name);
        for (; at != BLOCK_NONE; at = prefix->named[at].whole_next) {
                const struct named *named = &prefix->named[at];

                if (named->name[0] == name[0] && named->name[1] == name[1] &&
                    follows(prefix, named, domain, parent) &&
                    !memcmp(named->tokens, tokens, sizeof(named->tokens)))
                        return at;
        }
        return BLOCK_NONE;
}

/*
 * May the reader find this block?  A block of a public domain that is not published yet is only for
 * requests that publish in this domain.
 */
static bool is_shown(const struct named *named, uint64_t own)
{
        return named->domain == own || named->published;
}

static void find_tail(const struct prefix *prefix, uint64_t own, uint64_t domain, block_t parent,
                      const uint32_t *tokens, uint32_t count, struct prefix_hit *hit)
{
        block_t at = *bucket_of_start(prefix, domain, parent, tokens[0]);

        for (uint32_t looks = 0; at != BLOCK_NONE && looks < LOOKS_MAX; looks++) {
                const struct named *named = &prefix->named[at];
                uint32_t most = count < named->filled ? count : named->filled, same = 0;

                if (follows(prefix, named, domain, parent) && is_shown(named, own))
                        while (same < most && named->tokens[same] == tokens[same])
                                same++;
                if (same > hit->tail_count) {
                        hit->tail_count = same;
                        hit->tail = at;
                }
                at = named->start_next;
        }
}

/*
 * Sets diverged_at, if a block differs from the text right after the part that was found.  Looks at
 * the blocks of the domain that follow `parent`, the newest first.  If a tail was found, it looks
 * only at those that begin with the same token.
 */
static void find_divergence(const struct prefix *prefix, uint64_t own, uint64_t domain,
                            block_t parent, const uint32_t *tokens, uint32_t count,
                            struct prefix_hit *hit)
{
        uint32_t same = hit->tail_count;
        block_t at;

        if (same == count || (parent == BLOCK_NONE && !same))
                return;
        /* Other users' blocks below it would count towards LOOKS_MAX and influence the answer. */
        if (!same && prefix_is_public(prefix->named[parent].domain))
                return;
        at = same ? *bucket_of_start(prefix, domain, parent, *tokens) : prefix->named[parent].child;
        for (uint32_t looks = 0; at != BLOCK_NONE && looks < LOOKS_MAX; looks++) {
                const struct named *named = &prefix->named[at];

                if (follows(prefix, named, domain, parent) && is_shown(named, own) &&
                    named->filled > same &&
                    !memcmp(named->tokens, tokens, same * sizeof(*tokens)) &&
                    named->tokens[same] != tokens[same]) {
                        hit->diverged_at = hit->whole_count * BLOCK_POSITIONS + same;
                        hit->known_token = named->tokens[same];
                        return;
                }
                at = same ? named->start_next : named->sister_next;
        }
}

/* Looks up the path that begins in this domain; `blocks` may be NULL. */
static void walk(const struct prefix *prefix, uint64_t own, uint64_t domain, const uint32_t *tokens,
                 uint32_t count, block_t *blocks, struct prefix_hit *hit)
{
        block_t parent = BLOCK_NONE, block;
        uint64_t name[2];

        *hit = (struct prefix_hit){ .tail = BLOCK_NONE };
        for (; count >= BLOCK_POSITIONS; count -= BLOCK_POSITIONS, tokens += BLOCK_POSITIONS) {
                block = find_whole(prefix, domain, parent, tokens, name);
                if (block != BLOCK_NONE && !is_shown(&prefix->named[block], own))
                        block = BLOCK_NONE;
                if (block == BLOCK_NONE && domain != own && parent != BLOCK_NONE) {
                        block = find_whole(prefix, own, parent, tokens, name);
                        domain = block == BLOCK_NONE ? domain : own;
                }
                if (block == BLOCK_NONE)
                        break;
                if (blocks)
                        blocks[hit->whole_count] = block;
                hit->whole_count++;
                parent = block;
        }
        if (!count)
                return;
        find_tail(prefix, own, domain, parent, tokens, count, hit);
        if (domain != own && parent != BLOCK_NONE)
                find_tail(prefix, own, own, parent, tokens, count, hit);
        find_divergence(prefix, own, domain, parent, tokens, count, hit);
        if (domain != own && parent != BLOCK_NONE && !hit->diverged_at)
                find_divergence(prefix, own, own, parent, tokens, count, hit);
}

void prefix_find(const struct prefix *prefix, const struct prefix_reader *reader,
                 const uint32_t *tokens, uint32_t count, block_t *blocks,
                 struct prefix_hit *ret_hit)
{
        uint64_t own = reader->domains[0], best = own;
        struct prefix_hit hit;

        walk(prefix, own, own, tokens, count, blocks, ret_hit);
        for (uint32_t i = 1; i < reader->count; i++) {
                walk(prefix, own, reader->domains[i], tokens, count, NULL, &hit);
                if (prefix_positions(&hit) <= prefix_positions(ret_hit))
                        continue;
                *ret_hit = hit;
                best = reader->domains[i];
        }
        if (best != own)
                walk(prefix, own, best, tokens, count, blocks, ret_hit);
}

/* Adds a block to its bucket of `starts` and to the children of its parent. */
static void link_start(struct prefix *prefix, block_t block)
{
        struct named *named = &prefix->named[block];
        block_t *bucket = bucket_of_start(prefix, named->domain, named->parent, named->tokens[0]);

        named->start_prev = BLOCK_NONE;
        named->start_next = *bucket;
        if (*bucket != BLOCK_NONE)
                prefix->named[*bucket].start_prev = block;
        *bucket = block;

        named->child = named->sister_prev = named->sister_next = BLOCK_NONE;
        if (named->parent == BLOCK_NONE)
                return;
        named->sister_next = prefix->named[named->parent].child;
        if (named->sister_next != BLOCK_NONE)
                prefix->named[named->sister_next].sister_prev = block;
        prefix->named[named->parent].child = block;
}

static void unlink_start(struct prefix *prefix, block_t block)
{
        struct named *named = &prefix->named[block];

        if (named->start_next != BLOCK_NONE)
                prefix->named[named->start_next].start_prev = named->start_prev;
        if (named->start_prev != BLOCK_NONE)
                prefix->named[named->start_prev].start_next = named->start_next;
        else
                *bucket_of_start(prefix, named->domain, named->parent, named->tokens[0]) =
                        named->start_next;

        if (named->sister_next != BLOCK_NONE)
                prefix->named[named->sister_next].sister_prev = named->sister_prev;
        if (named->sister_prev != BLOCK_NONE)
                prefix->named[named->sister_prev].sister_next = named->sister_next;
        else if (named->parent != BLOCK_NONE)
                prefix->named[named->parent].child = named->sister_next;
}

static void link_whole(struct prefix *prefix, block_t block)
{
        block_t *bucket = bucket_of_whole(prefix, prefix->named[block].name);

        prefix->named[block].whole_next = *bucket;
        *bucket = block;
}

static void unlink_whole(struct prefix *prefix, block_t block)
{
        block_t *at = bucket_of_whole(prefix, prefix->named[block].name);

        while (*at != block) {
                assert(*at != BLOCK_NONE);
                at = &prefix->named[*at].whole_next;
        }
        *at = prefix->named[block].whole_next;
}

/*
 * To be called when a block has lost its last child or its last reference: makes it a leaf, if it
 * has a name and neither children nor references.
 */
static void consider(struct prefix *prefix, block_t block)
{
        const struct named *named = &prefix->named[block];

        if (!prefix->pool.holds[block] && named->filled && named->child == BLOCK_NONE)
                leaves_add(prefix, block);
}

/* Removes the name of a block, which must not have children. */
static void forget(struct prefix *prefix, block_t block)
{
        struct named *named = &prefix->named[block];
        block_t parent = named->parent;

        assert(named->filled && named->child == BLOCK_NONE);
        if (leaves_have(prefix, block))
                leaves_remove(prefix, block);
        anchors_rise(prefix, block);
        unlink_start(prefix, block);
        if (named->filled == BLOCK_POSITIONS)
                unlink_whole(prefix, block);
        named->filled = named->published = 0;
        named->generation++;
        if (parent != BLOCK_NONE)
                consider(prefix, parent);
}

/* Makes a block free that has neither a name nor references. */
static void give_up(struct prefix *prefix, block_t block)
{
        owners_give_up(prefix, block);
        kvpool_give_up(&prefix->pool, block);
}

block_t prefix_take(struct prefix *prefix, uint64_t domain)
{
        block_t block;

        if (!prefix->pool.free_count) {
                block = leaves_first(prefix);
                forget(prefix, block);
                give_up(prefix, block);
                prefix->evictions++;
        }
        block = kvpool_take(&prefix->pool);
        owners_take(prefix, block, domain);
        return block;
}

void prefix_hold(struct prefix *prefix, block_t block)
{
        if (leaves_have(prefix, block))
                leaves_remove(prefix, block);
        if (!prefix->pool.holds[block])
                owners_hold(prefix, block);
        kvpool_hold(&prefix->pool, block);
}

void prefix_drop(struct prefix *prefix, block_t block)
{
        if (!kvpool_drop(&prefix->pool, block))
                return;
        owners_keep(prefix, block);
        prefix->named[block].dropped = ++prefix->drops;
        if (prefix->named[block].filled)
                consider(prefix, block);
        else
                give_up(prefix, block);
}

/* A block may follow one of its own domain; a user's own block may also follow a public one. */
static bool may_follow(const struct prefix *prefix, uint64_t domain, block_t parent)
{
        if (parent == BLOCK_NONE || prefix->named[parent].domain == domain)
                return true;
        return prefix_is_public(prefix->named[parent].domain) && !prefix_is_public(domain);
}

block_t prefix_name(struct prefix *prefix, uint64_t domain, block_t parent, block_t block,
                    const uint32_t *tokens, uint32_t count)
{
        struct named *named = &prefix->named[block];
        bool is_new = !named->filled;

        assert(count > 0 && count <= BLOCK_POSITIONS && count >= named->filled);
        assert(prefix->pool.holds[block] && (parent == BLOCK_NONE || prefix->pool.holds[parent]));
        assert(is_new || (follows(prefix, named, domain, parent) &&
                          !memcmp(named->tokens, tokens, named->filled * sizeof(*tokens))));
        if (parent != BLOCK_NONE && prefix->named[parent].filled < BLOCK_POSITIONS)
                return block;
        assert(named->domain == domain && may_follow(prefix, domain, parent));
        if (count == named->filled)
                return block;

        if (count == BLOCK_POSITIONS) {
                uint64_t name[2];
                block_t same;

                same = find_whole(prefix, domain, parent, tokens, name);
                if (same != BLOCK_NONE) {
                        if (!is_new)
                                forget(prefix, block);
                        return same;
                }
                memcpy(named->name, name, sizeof(name));
                link_whole(prefix, block);
        }
        memcpy(named->tokens, tokens, count * sizeof(*tokens));
        named->filled = count;
        if (is_new) {
                named->parent = parent;
                named->parent_generation =
                        parent == BLOCK_NONE ? 0 : prefix->named[parent].generation;
                link_start(prefix, block);
        }
        return block;
}

/*
 * Goes down to a block without children, removes its name, and goes up again, until the root has no
 * name.  This needs no recursion and no stack.
 */
void prefix_spoil(struct prefix *prefix, block_t root)
{
        block_t at = root;

        while (prefix->named[root].filled) {
                block_t parent = prefix->named[at].parent;

                if (prefix->named[at].child != BLOCK_NONE) {
                        at = prefix->named[at].child;
                        continue;
                }
                forget(prefix, at);
                if (!prefix->pool.holds[at])
                        give_up(prefix, at);
                at = parent;
        }
}

static void check_links(const struct prefix *prefix, block_t block)
{
        const struct named *named = &prefix->named[block], *parent;
        block_t at = *bucket_of_start(prefix, named->domain, named->parent, named->tokens[0]);

        while (at != block) {
                assert(at != BLOCK_NONE);
                at = prefix->named[at].start_next;
        }
        if (named->filled == BLOCK_POSITIONS) {
                uint64_t name[2];

                assert(find_whole(prefix, named->domain, named->parent, named->tokens, name) ==
                       block);
        } else {
                assert(named->child == BLOCK_NONE);
        }
        if (named->parent == BLOCK_NONE)
                return;
        parent = &prefix->named[named->parent];
        assert(parent->filled == BLOCK_POSITIONS);
        assert(may_follow(prefix, named->domain, named->parent));
        assert(parent->generation == named->parent_generation);
        assert(!prefix->pool.holds[block] || prefix->pool.holds[named->parent]);
        if (named->sister_prev == BLOCK_NONE)
                assert(parent->child == block);
        else
                assert(prefix->named[named->sister_prev].sister_next == block);
}

void prefix_check(const struct prefix *prefix)
{
        uint32_t kept = 0;

        kvpool_check(&prefix->pool);
        owners_check(prefix);
        leaves_check(prefix);
        anchors_check(prefix);
        for (block_t block = 0; block < prefix->pool.total; block++) {
                const struct named *named = &prefix->named[block];
                bool is_kept = named->filled && !prefix->pool.holds[block];

                kept += is_kept;
                assert(leaves_have(prefix, block) == (is_kept && named->child == BLOCK_NONE));
                if (named->filled)
                        check_links(prefix, block);
        }
        /* Each kept block has a name, otherwise it could be neither found nor evicted. */
        assert(kept == prefix->pool.kept_count);
}
