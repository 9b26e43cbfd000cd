/*
 * The tree of blocks: lookup and insertion.  prefix-links.h says how the blocks are linked.
 */
#include "daemon/core/prefix.h"
#include "daemon/core/eviction.h"
#include "daemon/core/prefix-links.h"

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
            !prefix->pins || eviction_init(prefix, all) || kvpool_init(&prefix->pool, blocks) ||
            prefix_windows_init(prefix)) {
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
        prefix_windows_deinit(prefix);
        free(prefix->swap_free.numbers);
        free(prefix->nodes);
        free(prefix->start_buckets);
        free(prefix->hash_buckets);
        free(prefix->pins);
        *prefix = (struct prefix){ 0 };
}

/*
 * May the reader find this block?  A block of a public domain that is not published yet is only for
 * requests that publish in this domain.
 */
static bool is_visible(const struct prefix_node *node, uint64_t own)
{
        return node->domain == own || node->published;
}

/*
 * Are the window pages there that a row after the first `count` blocks of a path needs?  The last
 * `windows` of these blocks have theirs.
 */
static bool may_go_on(const struct prefix *prefix, const struct prefix_reader *reader,
                      uint32_t count, uint32_t windows)
{
        return reader->needs_no_windows || !prefix->conf.window ||
               count - windows <= prefix_window_begin(prefix, count * BLOCK_POSITIONS);
}

/* May the reader copy this block?  Blocks of the swap have no references, which a copy needs. */
static bool may_copy(const struct prefix *prefix, const struct prefix_reader *reader, block_t block)
{
        return prefix_place(prefix, block) == PREFIX_POOL &&
               (reader->needs_no_windows || !prefix->conf.window ||
                prefix_has_window(prefix, block));
}

static void find_tail(const struct prefix *prefix, const struct prefix_reader *reader,
                      uint64_t domain, block_t parent, const uint32_t *tokens, uint32_t count,
                      struct prefix_hit *hit)
{
        block_t at = *prefix_start_bucket(prefix, domain, parent, tokens[0]);

        for (uint32_t lookups = 0; at != BLOCK_NONE && lookups < LOOKUPS_MAX; lookups++) {
                const struct prefix_node *node = &prefix->nodes[at];
                uint32_t most = count < node->filled ? count : node->filled, same = 0;

                if (may_copy(prefix, reader, at) && prefix_follows(prefix, node, domain, parent) &&
                    is_visible(node, reader->domains[0]))
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
        at = same ? *prefix_start_bucket(prefix, domain, parent, *tokens)
                  : prefix->nodes[parent].child;
        for (uint32_t lookups = 0; at != BLOCK_NONE && lookups < LOOKUPS_MAX; lookups++) {
                const struct prefix_node *node = &prefix->nodes[at];

                if (prefix_follows(prefix, node, domain, parent) && is_visible(node, own) &&
                    node->filled > same && !memcmp(node->tokens, tokens, same * sizeof(*tokens)) &&
                    node->tokens[same] != tokens[same]) {
                        hit->diverged_at = prefix_hit_positions(hit);
                        hit->diverged_cached_token = node->tokens[same];
                        return;
                }
                at = same ? node->start_next : node->sibling_next;
        }
}

/*
 * Looks up the path that begins in this domain; `blocks` may be NULL.  Of a path that begins in a
 * public domain, blocks from `public_max` on are the reader's own.
 */
static void find_path(const struct prefix *prefix, const struct prefix_reader *reader,
                      uint64_t domain, uint32_t public_max, const uint32_t *tokens, uint32_t count,
                      block_t *blocks, struct prefix_hit *hit)
{
        uint64_t own = reader->domains[0];
        uint32_t windows = 0, may_end = 0;
        block_t parent = BLOCK_NONE, block;
        uint64_t hash[2];

        *hit = (struct prefix_hit){ .tail = BLOCK_NONE };
        for (; count >= BLOCK_POSITIONS; count -= BLOCK_POSITIONS, tokens += BLOCK_POSITIONS) {
                block = prefix_find_block(prefix, domain, parent, tokens, hash);
                if (block != BLOCK_NONE && (!is_visible(&prefix->nodes[block], own) ||
                                            (domain != own && hit->known_count >= public_max)))
                        block = BLOCK_NONE;
                if (block == BLOCK_NONE && domain != own && parent != BLOCK_NONE) {
                        block = prefix_find_block(prefix, own, parent, tokens, hash);
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
                windows = prefix_has_window(prefix, block) ? windows + 1 : 0;
                hit->known_count = hit->whole_count + hit->swap_count;
                if (may_go_on(prefix, reader, hit->known_count, windows))
                        may_end = hit->known_count;
        }
        if (may_end < hit->known_count)
                hit->whole_count = may_end; /* with windows there is no swap */
        if (!count || may_end < hit->known_count)
                return;
        if (!hit->swap_count) {
                find_tail(prefix, reader, domain, parent, tokens, count, hit);
                if (domain != own && parent != BLOCK_NONE)
                        find_tail(prefix, reader, own, parent, tokens, count, hit);
        }
        find_divergence(prefix, own, domain, parent, tokens, count, hit);
        if (domain != own && parent != BLOCK_NONE && !hit->diverged_at)
                find_divergence(prefix, own, own, parent, tokens, count, hit);
}

/*
 * Looks up the better of two paths: the public blocks, or the public blocks up to those without
 * window pages and then the reader's own.  Returns the `public_max` of that path.
 */
static uint32_t find_public(const struct prefix *prefix, const struct prefix_reader *reader,
                            uint64_t domain, const uint32_t *tokens, uint32_t count,
                            struct prefix_hit *hit)
{
        struct prefix_hit mixed;
        uint32_t whole;

        find_path(prefix, reader, domain, UINT32_MAX, tokens, count, NULL, hit);
        whole = hit->whole_count;
        if (hit->known_count == whole + hit->swap_count)
                return UINT32_MAX;
        find_path(prefix, reader, domain, whole, tokens, count, NULL, &mixed);
        if (prefix_hit_positions(&mixed) <= prefix_hit_positions(hit))
                return UINT32_MAX;
        *hit = mixed;
        return whole;
}

void prefix_find(const struct prefix *prefix, const struct prefix_reader *reader,
                 const uint32_t *tokens, uint32_t count, block_t *blocks,
                 struct prefix_hit *ret_hit)
{
        uint64_t own = reader->domains[0], best = own;
        uint32_t best_max = UINT32_MAX;
        struct prefix_hit hit;

        find_path(prefix, reader, own, UINT32_MAX, tokens, count, blocks, ret_hit);
        for (uint32_t i = 1; i < reader->count; i++) {
                uint32_t max = find_public(prefix, reader, reader->domains[i], tokens, count, &hit);

                if (prefix_hit_positions(&hit) <= prefix_hit_positions(ret_hit))
                        continue;
                *ret_hit = hit;
                best = reader->domains[i];
                best_max = max;
        }
        if (best != own)
                find_path(prefix, reader, best, best_max, tokens, count, blocks, ret_hit);
}

bool prefix_is_swapped(const struct prefix *prefix, uint64_t own, block_t block, block_t parent,
                       const uint32_t *tokens)
{
        const struct prefix_node *node = &prefix->nodes[block];

        return prefix_place(prefix, block) == PREFIX_SWAP && node->filled &&
               node->parent == parent && is_visible(node, own) &&
               !memcmp(node->tokens, tokens, sizeof(node->tokens));
}

/* The index has an equal block.  If that is in the swap, `block` takes its place. */
static block_t use_equal(struct prefix *prefix, block_t block, block_t same)
{
        if (prefix_place(prefix, same) == PREFIX_POOL)
                return same;
        prefix_move_node(prefix, same, block);
        prefix_leave_swap(prefix, same);
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
        assert(is_new || (prefix_follows(prefix, node, domain, parent) &&
                          !memcmp(node->tokens, tokens, node->filled * sizeof(*tokens))));
        if (parent != BLOCK_NONE && prefix->nodes[parent].filled < BLOCK_POSITIONS)
                return block;
        assert(node->domain == domain && prefix_may_follow(prefix, domain, parent));
        if (count == node->filled)
                return block;

        if (count == BLOCK_POSITIONS) {
                uint64_t hash[2];
                block_t same;

                same = prefix_find_block(prefix, domain, parent, tokens, hash);
                if (same != BLOCK_NONE) {
                        if (!is_new)
                                prefix_remove_node(prefix, block);
                        return use_equal(prefix, block, same);
                }
                memcpy(node->hash, hash, sizeof(hash));
                prefix_link_hash(prefix, block);
        }
        memcpy(node->tokens, tokens, count * sizeof(*tokens));
        node->filled = count;
        if (is_new) {
                node->parent = parent;
                node->parent_generation =
                        parent == BLOCK_NONE ? 0 : prefix->nodes[parent].generation;
                prefix_link_start(prefix, block);
        }
        return block;
}
