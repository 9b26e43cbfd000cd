/*
 * The tree of blocks: lookup, insertion and removal.
 *
 * Each block of the index is in three lists: the children of its parent, a bucket of
 * `start_buckets`, and once it is whole a bucket of `hash_buckets`.  If it has no references
 * and no child in its place, it is also a leaf, which may be evicted (eviction.h).
 *
 * The buckets depend on the hash of the parent, not on its number.  So a block that moves between
 * pool and swap gets another number, and all blocks below it stay where they are (move_node()).
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
        uint32_t buckets = 1, all = blocks + conf->swap_blocks;
        uint32_t *swap_free = calloc(conf->swap_blocks + 1, sizeof(*swap_free));

        assert(all >= blocks && all < BLOCK_NONE);
        *prefix = (struct prefix){ .conf = *conf };
        while (buckets < all && buckets < UINT32_C(1) << 31)
                buckets *= 2;
        prefix->bucket_mask = buckets - 1;
        free_numbers_init(&prefix->swap_free, swap_free, blocks, swap_free ? conf->swap_blocks : 0);
        prefix->nodes = calloc(all, sizeof(*prefix->nodes));
        prefix->start_buckets = malloc(buckets * sizeof(*prefix->start_buckets));
        prefix->hash_buckets = malloc(buckets * sizeof(*prefix->hash_buckets));
        prefix->pins = calloc((size_t)conf->pins + 1, sizeof(*prefix->pins));
        if (!swap_free || !prefix->nodes || !prefix->start_buckets || !prefix->hash_buckets ||
            !prefix->pins || eviction_init(prefix, all) || kvpool_init(&prefix->pool, blocks)) {
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
        free(prefix->swap_free.numbers);
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

                if (prefix_place(prefix, at) == PREFIX_POOL &&
                    follows(prefix, node, domain, parent) && is_visible(node, own))
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
                        hit->diverged_at = prefix_hit_positions(hit);
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
                        blocks[hit->whole_count + hit->swap_count] = block;
                if (prefix_place(prefix, block) == PREFIX_POOL)
                        hit->whole_count++;
                else
                        hit->swap_count++;
                parent = block;
        }
        if (!count)
                return;
        /* A copy of a tail needs a reference to it, and blocks of the swap have none. */
        if (!hit->swap_count) {
                find_tail(prefix, own, domain, parent, tokens, count, hit);
                if (domain != own && parent != BLOCK_NONE)
                        find_tail(prefix, own, own, parent, tokens, count, hit);
        }
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

/* Adds a block of the pool to its bucket of `start_buckets` and to the children of its parent. */
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
                *start_bucket(prefix, node->domain, node->parent, node->tokens[0]) =
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

static void link_hash(struct prefix *prefix, block_t block)
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

/*
 * To be called when a block has lost its last child or its last reference, or has come to the swap:
 * makes it a leaf, if it is in the index, without references, and without a child in its place.
 */
static void consider_leaf(struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block];
        bool pool = prefix_place(prefix, block) == PREFIX_POOL;

        if (eviction_has(prefix, block) || !node->filled)
                return;
        if (pool ? !prefix->pool.ref_counts[block] && !node->pool_children
                 : node->child == BLOCK_NONE)
                eviction_add(prefix, block);
}

/* The block is no leaf for now, so that its number, pins and children may change. */
static void leave_heap(struct prefix *prefix, block_t block)
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

/* Removes a block, which must not have children, from the index. */
static void remove_node(struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block];
        block_t parent = node->parent;

        assert(node->filled && node->child == BLOCK_NONE);
        leave_heap(prefix, block);
        leave_heap(prefix, parent);
        eviction_raise_pins(prefix, block);
        relink_start(prefix, block, BLOCK_NONE);
        relink_sibling(prefix, block, BLOCK_NONE);
        if (node->filled == BLOCK_POSITIONS)
                relink_hash(prefix, block, BLOCK_NONE);
        clear_node(prefix, block);
        if (parent != BLOCK_NONE)
                consider_leaf(prefix, parent);
}

/* Makes a block free that is not in the index and has no references. */
static void free_block(struct prefix *prefix, block_t block)
{
        if (prefix_place(prefix, block) == PREFIX_SWAP) {
                eviction_note_left_swap(prefix, block);
                free_numbers_give_back(&prefix->swap_free, block);
        } else {
                eviction_note_freed(prefix, block);
                kvpool_free_cached(&prefix->pool, block);
        }
}

/* Removes a block without children from the index; it is free if it has no references. */
static void forget(struct prefix *prefix, block_t block)
{
        remove_node(prefix, block);
        if (prefix_place(prefix, block) == PREFIX_SWAP || !prefix->pool.ref_counts[block])
                free_block(prefix, block);
}

/*
 * Forgets all blocks below this one: goes down to a block without children, forgets it, and goes up
 * again.  This needs no recursion and no stack.
 */
static void forget_below(struct prefix *prefix, block_t root)
{
        block_t at = root;

        while (prefix->nodes[root].child != BLOCK_NONE) {
                block_t parent = prefix->nodes[at].parent;

                if (prefix->nodes[at].child != BLOCK_NONE) {
                        at = prefix->nodes[at].child;
                        continue;
                }
                forget(prefix, at);
                at = parent;
        }
}

/*
 * The number `to`, which is in use for the same domain and not in the index, takes the place of a
 * whole block.  What was said about `from` holds for `to` now: tokens, parent, children, pins.
 */
static void move_node(struct prefix *prefix, block_t from, block_t to)
{
        const struct prefix_node *node = &prefix->nodes[from];
        struct prefix_node *other = &prefix->nodes[to];
        const struct prefix_node kept = *other;

        assert(node->filled == BLOCK_POSITIONS && !other->filled && node->owner == other->owner);
        leave_heap(prefix, from);
        leave_heap(prefix, node->parent);
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
        consider_leaf(prefix, to);
        if (other->parent != BLOCK_NONE)
                consider_leaf(prefix, other->parent);
}

static void list_move(struct prefix *prefix, block_t from, block_t to)
{
        assert(prefix->move_count < prefix->move_max);
        prefix->moves[prefix->move_count++] = (struct block_move){ .from = from, .to = to };
}

void prefix_list_moves(struct prefix *prefix, struct block_move *moves, uint32_t max, bool may_swap)
{
        prefix->moves = moves;
        prefix->move_max = max;
        prefix->move_count = 0;
        prefix->may_swap = may_swap && prefix->conf.swap_blocks;
}

/*
 * Takes a block of the swap; if there is none, another text loses its last one there.  Returns
 * BLOCK_NONE if that is not possible: all others have to stay.
 */
static block_t take_swap_block(struct prefix *prefix)
{
        if (!prefix->swap_free.count) {
                block_t leaf = eviction_next(prefix, PREFIX_SWAP);

                if (leaf == BLOCK_NONE)
                        return BLOCK_NONE;
                forget(prefix, leaf);
        }
        return free_numbers_take(&prefix->swap_free);
}

/* Moves a leaf of the pool to the swap, if that is allowed.  Returns whether it was. */
static bool swap_out(struct prefix *prefix, block_t block)
{
        block_t to;

        if (!prefix->may_swap || prefix->nodes[block].filled < BLOCK_POSITIONS)
                return false;
        to = take_swap_block(prefix);
        if (to == BLOCK_NONE)
                return false;
        eviction_note_swapped(prefix, to, prefix->nodes[block].domain);
        move_node(prefix, block, to);
        list_move(prefix, block, to);
        prefix->swapped_out++;
        return true;
}

/* Makes the leaf free that is evicted next. */
static void evict(struct prefix *prefix)
{
        block_t block = eviction_next(prefix, PREFIX_POOL);

        assert(block != BLOCK_NONE);
        if (!swap_out(prefix, block)) {
                forget_below(prefix, block);
                remove_node(prefix, block);
        }
        free_block(prefix, block);
        prefix->evictions++;
}

block_t prefix_allocate(struct prefix *prefix, uint64_t domain)
{
        block_t block;

        if (!prefix->pool.free.count)
                evict(prefix);
        block = kvpool_allocate(&prefix->pool);
        eviction_note_allocated(prefix, block, domain);
        return block;
}

/* A block that has left the swap is not used any more. */
static void leave_swap(struct prefix *prefix, block_t block)
{
        assert(prefix_place(prefix, block) == PREFIX_SWAP && !prefix->nodes[block].filled);
        free_block(prefix, block);
}

block_t prefix_fetch(struct prefix *prefix, block_t block)
{
        block_t to;

        assert(prefix_place(prefix, block) == PREFIX_SWAP && prefix->nodes[block].filled);
        /* It must not be dropped for the block that is evicted now. */
        leave_heap(prefix, block);
        to = prefix_allocate(prefix, prefix->nodes[block].domain);
        assert(prefix->nodes[block].filled);
        move_node(prefix, block, to);
        leave_swap(prefix, block);
        list_move(prefix, block, to);
        prefix->swapped_in++;
        return to;
}

bool prefix_is_swapped(const struct prefix *prefix, uint64_t own, block_t block, block_t parent,
                       const uint32_t *tokens)
{
        const struct prefix_node *node = &prefix->nodes[block];

        return prefix_place(prefix, block) == PREFIX_SWAP && node->filled &&
               node->parent == parent && is_visible(node, own) &&
               !memcmp(node->tokens, tokens, sizeof(node->tokens));
}

void prefix_ref(struct prefix *prefix, block_t block)
{
        leave_heap(prefix, block);
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

/* The index has an equal block.  If that is in the swap, `block` takes its place. */
static block_t use_equal(struct prefix *prefix, block_t block, block_t same)
{
        if (prefix_place(prefix, same) == PREFIX_POOL)
                return same;
        move_node(prefix, same, block);
        leave_swap(prefix, same);
        return block;
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
                        return use_equal(prefix, block, same);
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

void prefix_invalidate(struct prefix *prefix, block_t root)
{
        if (!prefix->nodes[root].filled)
                return;
        forget_below(prefix, root);
        forget(prefix, root);
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
        assert(prefix_place(prefix, block) == PREFIX_SWAP ||
               prefix_place(prefix, node->parent) == PREFIX_POOL);
        assert(may_follow(prefix, node->domain, node->parent));
        assert(parent->generation == node->parent_generation);
        assert(prefix_place(prefix, block) == PREFIX_SWAP || !prefix->pool.ref_counts[block] ||
               prefix->pool.ref_counts[node->parent]);
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

static void check_children(const struct prefix *prefix, block_t block)
{
        uint32_t pool_children = 0;
        block_t at = prefix->nodes[block].child;

        for (; at != BLOCK_NONE; at = prefix->nodes[at].sibling_next)
                pool_children += prefix_place(prefix, at) == PREFIX_POOL;
        assert(prefix->nodes[block].pool_children == pool_children);
}

/* A block of the swap is either in the index, and whole, or free. */
static void check_swap(const struct prefix *prefix)
{
        uint32_t used = 0;

        for (block_t block = prefix->pool.total; block < prefix_block_count(prefix); block++) {
                const struct prefix_node *node = &prefix->nodes[block];

                assert(!node->filled || node->filled == BLOCK_POSITIONS);
                assert(eviction_has(prefix, block) == (node->filled && node->child == BLOCK_NONE));
                used += node->filled > 0;
        }
        for (uint32_t i = 0; i < prefix->swap_free.count; i++)
                assert(!prefix->nodes[prefix->swap_free.numbers[i]].filled);
        assert(used + prefix->swap_free.count == prefix->conf.swap_blocks);
}

void prefix_check(const struct prefix *prefix)
{
        uint32_t cached = 0;

        kvpool_check(&prefix->pool);
        eviction_check(prefix);
        for (block_t block = 0; block < prefix_block_count(prefix); block++) {
                check_published(prefix, block);
                if (!prefix->nodes[block].filled)
                        continue;
                check_links(prefix, block);
                check_children(prefix, block);
        }
        for (block_t block = 0; block < prefix->pool.total; block++) {
                const struct prefix_node *node = &prefix->nodes[block];
                bool is_cached = node->filled && !prefix->pool.ref_counts[block];

                cached += is_cached;
                assert(eviction_has(prefix, block) == (is_cached && !node->pool_children));
        }
        /* Each cached block is in the index, otherwise it could be neither found nor evicted. */
        assert(cached == prefix->pool.cached_count);
        check_swap(prefix);
}
