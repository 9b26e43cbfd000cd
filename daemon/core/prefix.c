/*
 * The tree of blocks: lookup, insertion and removal.
 *
 * Each block of the index is in three places: among the children of its parent, in a bucket of
 * `start_buckets`, and once it is whole in a bucket of `hash_buckets`.  If it has no references
 * and no child, it is also a leaf, which may be evicted (eviction.h).
 */
#include "daemon/core/prefix.h"
#include "daemon/core/eviction.h"
#include "daemon/base/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * How many blocks of a bucket a lookup reads at most, the newest first.
 * If a user has more conversations that diverge within one block, a lookup finds at most
 * fifteen positions less of an older one.
 */
#define LOOKUPS_MAX 64

int prefix_init(struct prefix *prefix, const struct prefix_conf *conf, uint32_t blocks)
{
        uint32_t buckets = 1;

        *prefix = (struct prefix){ .conf = *conf };
        while (buckets < blocks && buckets < UINT32_C(1) << 31)
                buckets *= 2;
        prefix->bucket_mask = buckets - 1;
        prefix->nodes = calloc(blocks, sizeof(*prefix->nodes));
        prefix->start_buckets = malloc(buckets * sizeof(*prefix->start_buckets));
        prefix->hash_buckets = malloc(buckets * sizeof(*prefix->hash_buckets));
        prefix->pins = calloc((size_t)conf->pins + 1, sizeof(*prefix->pins));
        if (!prefix->nodes || !prefix->start_buckets || !prefix->hash_buckets || !prefix->pins ||
            eviction_init(prefix, blocks) || kvpool_init(&prefix->pool, blocks)) {
                prefix_deinit(prefix);
                return -ENOMEM;
        }
        /* BLOCK_NONE */
        memset(prefix->start_buckets, 0xff, buckets * sizeof(*prefix->start_buckets));
        memset(prefix->hash_buckets, 0xff, buckets * sizeof(*prefix->hash_buckets));
        for (uint32_t i = 0; i <= conf->pins; i++)
                prefix->pins[i].block = BLOCK_NONE;
        return 0;
}

void prefix_deinit(struct prefix *prefix)
{
        if (!prefix)
                return;
        kvpool_deinit(&prefix->pool);
        eviction_deinit(prefix);
        free(prefix->nodes);
        free(prefix->start_buckets);
        free(prefix->hash_buckets);
        free(prefix->pins);
        *prefix = (struct prefix){ 0 };
}

/*
 * A block's hash is a hash of fields.  Each field has its kind and its length, so that different
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

enum { FIELD_MODEL = 1, FIELD_DOMAIN, FIELD_PARENT, FIELD_TOKENS };

/* The hash of the root of a domain: of conf.model_id and of the domain. */
static void hash_root(const struct prefix *prefix, uint64_t domain, uint64_t ret_hash[2])
{
        struct fields fields = { .count = 0 };

        add_field(&fields, FIELD_MODEL, &prefix->conf.model_id, sizeof(prefix->conf.model_id));
        add_field(&fields, FIELD_DOMAIN, &domain, sizeof(domain));
        siphash(prefix->conf.key, fields.bytes, fields.count, ret_hash);
}

/*
 * The hash of a whole block.  It includes the domain, so the blocks that different users have below
 * the same public block are in different buckets.
 */
static void hash_block(const struct prefix *prefix, uint64_t domain, const uint64_t parent[2],
                       const uint32_t *tokens, uint64_t ret_hash[2])
{
        struct fields fields = { .count = 0 };

        add_field(&fields, FIELD_DOMAIN, &domain, sizeof(domain));
        add_field(&fields, FIELD_PARENT, parent, 2 * sizeof(*parent));
        add_field(&fields, FIELD_TOKENS, tokens, BLOCK_POSITIONS * sizeof(*tokens));
        siphash(prefix->conf.key, fields.bytes, fields.count, ret_hash);
        ret_hash[0] &= ~prefix->conf.ignored_hash_bits[0];
        ret_hash[1] &= ~prefix->conf.ignored_hash_bits[1];
}

static void hash_of_parent(const struct prefix *prefix, uint64_t domain, block_t parent,
                           uint64_t ret_hash[2])
{
        if (parent == BLOCK_NONE)
                hash_root(prefix, domain, ret_hash);
        else
                memcpy(ret_hash, prefix->nodes[parent].hash, 2 * sizeof(*ret_hash));
}

/* The bucket of the blocks that follow `parent` and begin with this token. */
static block_t *start_bucket(const struct prefix *prefix, uint64_t domain, block_t parent,
                             uint32_t token)
{
        uint64_t hash[2], key[2] = { domain, (uint64_t)parent << 32 | token };

        siphash(prefix->conf.key, key, sizeof(key), hash);
        return &prefix->start_buckets[hash[0] & prefix->bucket_mask];
}

static block_t *hash_bucket(const struct prefix *prefix, const uint64_t hash[2])
{
        return &prefix->hash_buckets[hash[0] & prefix->bucket_mask];
}

/* Does this block of the index follow `parent`, in this domain? */
static bool follows(const struct prefix *prefix, const struct prefix_node *block, uint64_t domain,
                    block_t parent)
{
        return block->domain == domain && block->parent == parent &&
               (parent == BLOCK_NONE ||
                block->parent_generation == prefix->nodes[parent].generation);
}

/*
 * Finds the whole block that follows `parent` with these tokens, or BLOCK_NONE.  *ret_hash is its
 * hash in either case.
 */
static block_t find_block(const struct prefix *prefix, uint64_t domain, block_t parent,
                          const uint32_t *tokens, uint64_t ret_hash[2])
{
        uint64_t hash[2];
        block_t at;

        hash_of_parent(prefix, domain, parent, hash);
        hash_block(prefix, domain, hash, tokens, hash);
        memcpy(ret_hash, hash, sizeof(hash));
        at = *hash_bucket(prefix, hash);
        for (; at != BLOCK_NONE; at = prefix->nodes[at].hash_next) {
                const struct prefix_node *node = &prefix->nodes[at];

                if (node->hash[0] == hash[0] && node->hash[1] == hash[1] &&
                    follows(prefix, node, domain, parent) &&
                    !memcmp(node->tokens, tokens, sizeof(node->tokens)))
                        return at;
        }
        return BLOCK_NONE;
}

/*
 * May the reader find this block?  A block of a public domain that is not published yet is only for
 * requests that publish in this domain.
 */
static bool is_visible(const struct prefix_node *node, uint64_t own)
{
        return node->domain == own || node->published;
}

static void find_tail(const struct prefix *prefix, uint64_t own, uint64_t domain, block_t parent,
                      const uint32_t *tokens, uint32_t count, struct prefix_hit *hit)
{
        block_t at = *start_bucket(prefix, domain, parent, tokens[0]);

        for (uint32_t lookups = 0; at != BLOCK_NONE && lookups < LOOKUPS_MAX; lookups++) {
                const struct prefix_node *node = &prefix->nodes[at];
                uint32_t most = count < node->filled ? count : node->filled, same = 0;

                if (follows(prefix, node, domain, parent) && is_visible(node, own))
                        while (same < most && node->tokens[same] == tokens[same])
                                same++;
                if (same > hit->tail_count) {
                        hit->tail_count = same;
                        hit->tail = at;
                }
                at = node->start_next;
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
        /* Other users' blocks below it would count towards LOOKUPS_MAX and influence the answer. */
        if (!same && prefix_is_public(prefix->nodes[parent].domain))
                return;
        at = same ? *start_bucket(prefix, domain, parent, *tokens) : prefix->nodes[parent].child;
        for (uint32_t lookups = 0; at != BLOCK_NONE && lookups < LOOKUPS_MAX; lookups++) {
                const struct prefix_node *node = &prefix->nodes[at];

                if (follows(prefix, node, domain, parent) && is_visible(node, own) &&
                    node->filled > same && !memcmp(node->tokens, tokens, same * sizeof(*tokens)) &&
                    node->tokens[same] != tokens[same]) {
                        hit->diverged_at = hit->whole_count * BLOCK_POSITIONS + same;
                        hit->diverged_cached_token = node->tokens[same];
                        return;
                }
                at = same ? node->start_next : node->sibling_next;
        }
}

/* Looks up the path that begins in this domain; `blocks` may be NULL. */
static void find_path(const struct prefix *prefix, uint64_t own, uint64_t domain,
                      const uint32_t *tokens, uint32_t count, block_t *blocks,
                      struct prefix_hit *hit)
{
        block_t parent = BLOCK_NONE, block;
        uint64_t hash[2];

        *hit = (struct prefix_hit){ .tail = BLOCK_NONE };
        for (; count >= BLOCK_POSITIONS; count -= BLOCK_POSITIONS, tokens += BLOCK_POSITIONS) {
                block = find_block(prefix, domain, parent, tokens, hash);
                if (block != BLOCK_NONE && !is_visible(&prefix->nodes[block], own))
                        block = BLOCK_NONE;
                if (block == BLOCK_NONE && domain != own && parent != BLOCK_NONE) {
                        block = find_block(prefix, own, parent, tokens, hash);
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

        find_path(prefix, own, own, tokens, count, blocks, ret_hit);
        for (uint32_t i = 1; i < reader->count; i++) {
                find_path(prefix, own, reader->domains[i], tokens, count, NULL, &hit);
                if (prefix_hit_positions(&hit) <= prefix_hit_positions(ret_hit))
                        continue;
                *ret_hit = hit;
                best = reader->domains[i];
        }
        if (best != own)
                find_path(prefix, own, best, tokens, count, blocks, ret_hit);
}

/* Adds a block to its bucket of `start_buckets` and to the children of its parent. */
static void link_start(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];
        block_t *bucket = start_bucket(prefix, node->domain, node->parent, node->tokens[0]);

        node->start_prev = BLOCK_NONE;
        node->start_next = *bucket;
        if (*bucket != BLOCK_NONE)
                prefix->nodes[*bucket].start_prev = block;
        *bucket = block;

        node->child = node->sibling_prev = node->sibling_next = BLOCK_NONE;
        if (node->parent == BLOCK_NONE)
                return;
        node->sibling_next = prefix->nodes[node->parent].child;
        if (node->sibling_next != BLOCK_NONE)
                prefix->nodes[node->sibling_next].sibling_prev = block;
        prefix->nodes[node->parent].child = block;
}

static void unlink_start(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];

        if (node->start_next != BLOCK_NONE)
                prefix->nodes[node->start_next].start_prev = node->start_prev;
        if (node->start_prev != BLOCK_NONE)
                prefix->nodes[node->start_prev].start_next = node->start_next;
        else
                *start_bucket(prefix, node->domain, node->parent, node->tokens[0]) =
                        node->start_next;

        if (node->sibling_next != BLOCK_NONE)
                prefix->nodes[node->sibling_next].sibling_prev = node->sibling_prev;
        if (node->sibling_prev != BLOCK_NONE)
                prefix->nodes[node->sibling_prev].sibling_next = node->sibling_next;
        else if (node->parent != BLOCK_NONE)
                prefix->nodes[node->parent].child = node->sibling_next;
}

static void link_hash(struct prefix *prefix, block_t block)
{
        block_t *bucket = hash_bucket(prefix, prefix->nodes[block].hash);

        prefix->nodes[block].hash_next = *bucket;
        *bucket = block;
}

static void unlink_hash(struct prefix *prefix, block_t block)
{
        block_t *at = hash_bucket(prefix, prefix->nodes[block].hash);

        while (*at != block) {
                assert(*at != BLOCK_NONE);
                at = &prefix->nodes[*at].hash_next;
        }
        *at = prefix->nodes[block].hash_next;
}

/*
 * To be called when a block has lost its last child or its last reference: makes it a leaf, if it
 * is in the index and has neither children nor references.
 */
static void consider_leaf(struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block];

        if (!prefix->pool.ref_counts[block] && node->filled && node->child == BLOCK_NONE)
                eviction_add(prefix, block);
}

/* Removes a block, which must not have children, from the index. */
static void remove_node(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];
        block_t parent = node->parent;

        assert(node->filled && node->child == BLOCK_NONE);
        if (eviction_has(prefix, block))
                eviction_remove(prefix, block);
        eviction_raise_pins(prefix, block);
        unlink_start(prefix, block);
        if (node->filled == BLOCK_POSITIONS)
                unlink_hash(prefix, block);
        node->filled = node->published = 0;
        node->generation++;
        if (parent != BLOCK_NONE)
                consider_leaf(prefix, parent);
}

/* Makes a block free that is not in the index and has no references. */
static void free_block(struct prefix *prefix, block_t block)
{
        eviction_note_freed(prefix, block);
        kvpool_free_cached(&prefix->pool, block);
}

block_t prefix_allocate(struct prefix *prefix, uint64_t domain)
{
        block_t block;

        if (!prefix->pool.free.count) {
                block = eviction_next(prefix);
                remove_node(prefix, block);
                free_block(prefix, block);
                prefix->evictions++;
        }
        block = kvpool_allocate(&prefix->pool);
        eviction_note_allocated(prefix, block, domain);
        return block;
}

void prefix_ref(struct prefix *prefix, block_t block)
{
        if (eviction_has(prefix, block))
                eviction_remove(prefix, block);
        if (!prefix->pool.ref_counts[block])
                eviction_note_in_use(prefix, block);
        kvpool_ref(&prefix->pool, block);
}

void prefix_unref(struct prefix *prefix, block_t block)
{
        if (!kvpool_unref(&prefix->pool, block))
                return;
        eviction_note_cached(prefix, block);
        prefix->nodes[block].unref_at = ++prefix->unref_serial;
        if (prefix->nodes[block].filled)
                consider_leaf(prefix, block);
        else
                free_block(prefix, block);
}

uint32_t prefix_in_use_by(const struct prefix *prefix, uint64_t domain)
{
        const struct prefix_owner *owner = eviction_owner(prefix, domain);

        return owner ? owner->in_use : 0;
}

uint32_t prefix_cached_by(const struct prefix *prefix, uint64_t domain)
{
        const struct prefix_owner *owner = eviction_owner(prefix, domain);

        return owner ? owner->cached : 0;
}

/* A block may follow one of its own domain; a user's own block may also follow a public one. */
static bool may_follow(const struct prefix *prefix, uint64_t domain, block_t parent)
{
        if (parent == BLOCK_NONE || prefix->nodes[parent].domain == domain)
                return true;
        return prefix_is_public(prefix->nodes[parent].domain) && !prefix_is_public(domain);
}

block_t prefix_insert(struct prefix *prefix, uint64_t domain, block_t parent, block_t block,
                      const uint32_t *tokens, uint32_t count)
{
        struct prefix_node *node = &prefix->nodes[block];
        bool is_new = !node->filled;

        assert(count > 0 && count <= BLOCK_POSITIONS && count >= node->filled);
        assert(prefix->pool.ref_counts[block] &&
               (parent == BLOCK_NONE || prefix->pool.ref_counts[parent]));
        assert(is_new || (follows(prefix, node, domain, parent) &&
                          !memcmp(node->tokens, tokens, node->filled * sizeof(*tokens))));
        if (parent != BLOCK_NONE && prefix->nodes[parent].filled < BLOCK_POSITIONS)
                return block;
        assert(node->domain == domain && may_follow(prefix, domain, parent));
        if (count == node->filled)
                return block;

        if (count == BLOCK_POSITIONS) {
                uint64_t hash[2];
                block_t same;

                same = find_block(prefix, domain, parent, tokens, hash);
                if (same != BLOCK_NONE) {
                        if (!is_new)
                                remove_node(prefix, block);
                        return same;
                }
                memcpy(node->hash, hash, sizeof(hash));
                link_hash(prefix, block);
        }
        memcpy(node->tokens, tokens, count * sizeof(*tokens));
        node->filled = count;
        if (is_new) {
                node->parent = parent;
                node->parent_generation =
                        parent == BLOCK_NONE ? 0 : prefix->nodes[parent].generation;
                link_start(prefix, block);
        }
        return block;
}

/*
 * Goes down to a block without children, removes it, and goes up again, until the root is removed.
 * This needs no recursion and no stack.
 */
void prefix_invalidate(struct prefix *prefix, block_t root)
{
        block_t at = root;

        while (prefix->nodes[root].filled) {
                block_t parent = prefix->nodes[at].parent;

                if (prefix->nodes[at].child != BLOCK_NONE) {
                        at = prefix->nodes[at].child;
                        continue;
                }
                remove_node(prefix, at);
                if (!prefix->pool.ref_counts[at])
                        free_block(prefix, at);
                at = parent;
        }
}

static void check_links(const struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block], *parent;
        block_t at = *start_bucket(prefix, node->domain, node->parent, node->tokens[0]);

        while (at != block) {
                assert(at != BLOCK_NONE);
                at = prefix->nodes[at].start_next;
        }
        if (node->filled == BLOCK_POSITIONS) {
                uint64_t hash[2];

                assert(find_block(prefix, node->domain, node->parent, node->tokens, hash) == block);
        } else {
                assert(node->child == BLOCK_NONE);
        }
        if (node->parent == BLOCK_NONE)
                return;
        parent = &prefix->nodes[node->parent];
        assert(parent->filled == BLOCK_POSITIONS);
        assert(may_follow(prefix, node->domain, node->parent));
        assert(parent->generation == node->parent_generation);
        assert(!prefix->pool.ref_counts[block] || prefix->pool.ref_counts[node->parent]);
        if (node->sibling_prev == BLOCK_NONE)
                assert(parent->child == block);
        else
                assert(prefix->nodes[node->sibling_prev].sibling_next == block);
}

/* `published` must count the publishing pins at this block and at all blocks below it. */
static void check_published(const struct prefix *prefix, block_t block)
{
        uint32_t published = 0;

        for (uint32_t at = prefix->nodes[block].pin; at; at = prefix->pins[at].next)
                published += prefix->pins[at].publishes;
        if (prefix->nodes[block].filled == BLOCK_POSITIONS)
                for (block_t at = prefix->nodes[block].child; at != BLOCK_NONE;
                     at = prefix->nodes[at].sibling_next)
                        published += prefix->nodes[at].published;
        assert(prefix->nodes[block].published == published);
        assert(!published || prefix_is_public(prefix->nodes[block].domain));
}

void prefix_check(const struct prefix *prefix)
{
        uint32_t cached = 0;

        kvpool_check(&prefix->pool);
        eviction_check(prefix);
        for (block_t block = 0; block < prefix->pool.total; block++) {
                const struct prefix_node *node = &prefix->nodes[block];
                bool is_cached = node->filled && !prefix->pool.ref_counts[block];

                check_published(prefix, block);
                cached += is_cached;
                assert(eviction_has(prefix, block) == (is_cached && node->child == BLOCK_NONE));
                if (node->filled)
                        check_links(prefix, block);
        }
        /* Each cached block is in the index, otherwise it could be neither found nor evicted. */
        assert(cached == prefix->pool.cached_count);
}
