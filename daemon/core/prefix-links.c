#include "daemon/core/prefix-links.h"
#include "daemon/core/prefix-windows.h"
#include "daemon/core/eviction.h"
#include "base/siphash.h"

#include <assert.h>
#include <string.h>

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

block_t *prefix_start_bucket(const struct prefix *prefix, uint64_t domain, block_t parent,
                             uint32_t token)
{
        uint64_t hash[2], key[4] = { domain, token };

        if (parent != BLOCK_NONE)
                memcpy(key + 2, prefix->nodes[parent].hash, 2 * sizeof(*key));
        siphash(prefix->conf.key, key, sizeof(key), hash);
        return &prefix->start_buckets[hash[0] & prefix->bucket_mask];
}

static block_t *hash_bucket(const struct prefix *prefix, const uint64_t hash[2])
{
        return &prefix->hash_buckets[hash[0] & prefix->bucket_mask];
}

bool prefix_follows(const struct prefix *prefix, const struct prefix_node *block, uint64_t domain,
                    block_t parent)
{
        return block->domain == domain && block->parent == parent &&
               (parent == BLOCK_NONE ||
                block->parent_generation == prefix->nodes[parent].generation);
}

bool prefix_may_follow(const struct prefix *prefix, uint64_t domain, block_t parent)
{
        if (parent == BLOCK_NONE || prefix->nodes[parent].domain == domain)
                return true;
        return prefix_is_public(prefix->nodes[parent].domain) && !prefix_is_public(domain);
}

block_t prefix_find_block(const struct prefix *prefix, uint64_t domain, block_t parent,
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
                    prefix_follows(prefix, node, domain, parent) &&
                    !memcmp(node->tokens, tokens, sizeof(node->tokens)))
                        return at;
        }
        return BLOCK_NONE;
}

void prefix_link_start(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];
        block_t *bucket = prefix_start_bucket(prefix, node->domain, node->parent, node->tokens[0]);

        node->start_prev = BLOCK_NONE;
        node->start_next = *bucket;
        if (*bucket != BLOCK_NONE)
                prefix->nodes[*bucket].start_prev = block;
        *bucket = block;

        node->child = node->sibling_prev = node->sibling_next = BLOCK_NONE;
        node->pool_children = 0;
        if (node->parent == BLOCK_NONE)
                return;
        node->sibling_next = prefix->nodes[node->parent].child;
        if (node->sibling_next != BLOCK_NONE)
                prefix->nodes[node->sibling_next].sibling_prev = block;
        prefix->nodes[node->parent].child = block;
        prefix->nodes[node->parent].pool_children++;
}

/* In its bucket, `to` takes the place of `block`; BLOCK_NONE: nothing does. */
static void relink_start(struct prefix *prefix, block_t block, block_t to)
{
        const struct prefix_node *node = &prefix->nodes[block];
        bool moves = to != BLOCK_NONE;

        if (node->start_next != BLOCK_NONE)
                prefix->nodes[node->start_next].start_prev = moves ? to : node->start_prev;
        if (node->start_prev != BLOCK_NONE)
                prefix->nodes[node->start_prev].start_next = moves ? to : node->start_next;
        else
                *prefix_start_bucket(prefix, node->domain, node->parent, node->tokens[0]) =
                        moves ? to : node->start_next;
}

/* The same among the children of its parent. */
static void relink_sibling(struct prefix *prefix, block_t block, block_t to)
{
        const struct prefix_node *node = &prefix->nodes[block];
        bool moves = to != BLOCK_NONE;

        if (node->sibling_next != BLOCK_NONE)
                prefix->nodes[node->sibling_next].sibling_prev = moves ? to : node->sibling_prev;
        if (node->sibling_prev != BLOCK_NONE)
                prefix->nodes[node->sibling_prev].sibling_next = moves ? to : node->sibling_next;
        else if (node->parent != BLOCK_NONE)
                prefix->nodes[node->parent].child = moves ? to : node->sibling_next;
        if (node->parent == BLOCK_NONE)
                return;
        prefix->nodes[node->parent].pool_children -= block < prefix->pool.total;
        prefix->nodes[node->parent].pool_children += moves && to < prefix->pool.total;
}

void prefix_link_hash(struct prefix *prefix, block_t block)
{
        block_t *bucket = hash_bucket(prefix, prefix->nodes[block].hash);

        prefix->nodes[block].hash_next = *bucket;
        *bucket = block;
}

static void relink_hash(struct prefix *prefix, block_t block, block_t to)
{
        block_t *at = hash_bucket(prefix, prefix->nodes[block].hash);

        while (*at != block) {
                assert(*at != BLOCK_NONE);
                at = &prefix->nodes[*at].hash_next;
        }
        *at = to == BLOCK_NONE ? prefix->nodes[block].hash_next : to;
}

void prefix_consider_leaf(struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block];
        bool pool = prefix_place(prefix, block) == PREFIX_POOL;

        if (eviction_has(prefix, block) || !node->filled)
                return;
        if (pool ? !prefix->pool.ref_counts[block] && !node->pool_children
                 : node->child == BLOCK_NONE)
                eviction_add(prefix, block);
}

void prefix_leave_heap(struct prefix *prefix, block_t block)
{
        if (block != BLOCK_NONE && eviction_has(prefix, block))
                eviction_remove(prefix, block);
}

static void clear_node(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];

        node->filled = node->published = node->pool_children = 0;
        node->child = BLOCK_NONE;
        node->generation++;
}

void prefix_remove_node(struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block];
        block_t parent = node->parent;

        assert(node->filled && node->child == BLOCK_NONE);
        prefix_leave_heap(prefix, block);
        prefix_leave_heap(prefix, parent);
        eviction_raise_pins(prefix, block);
        relink_start(prefix, block, BLOCK_NONE);
        relink_sibling(prefix, block, BLOCK_NONE);
        if (node->filled == BLOCK_POSITIONS)
                relink_hash(prefix, block, BLOCK_NONE);
        clear_node(prefix, block);
        prefix_drop_window(prefix, block);
        if (parent != BLOCK_NONE)
                prefix_consider_leaf(prefix, parent);
}

void prefix_move_node(struct prefix *prefix, block_t from, block_t to)
{
        const struct prefix_node *node = &prefix->nodes[from];
        struct prefix_node *other = &prefix->nodes[to];
        const struct prefix_node kept = *other;

        assert(node->filled == BLOCK_POSITIONS && !other->filled && node->owner == other->owner);
        prefix_leave_heap(prefix, from);
        prefix_leave_heap(prefix, node->parent);
        relink_start(prefix, from, to);
        relink_sibling(prefix, from, to);
        relink_hash(prefix, from, to);
        *other = *node;
        other->generation = kept.generation;
        other->pin = 0;
        eviction_keep_pins(prefix, from, to);
        for (block_t at = node->child; at != BLOCK_NONE; at = prefix->nodes[at].sibling_next) {
                prefix->nodes[at].parent = to;
                prefix->nodes[at].parent_generation = other->generation;
        }
        clear_node(prefix, from);
        prefix_consider_leaf(prefix, to);
        if (other->parent != BLOCK_NONE)
                prefix_consider_leaf(prefix, other->parent);
}
