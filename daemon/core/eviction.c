#include "daemon/core/eviction.h"
#include "base/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define NO_OWNER    UINT32_MAX
#define NOT_IN_HEAP UINT32_MAX

int eviction_init(struct prefix *prefix, uint32_t blocks)
{
        prefix->owners = calloc(blocks, sizeof(*prefix->owners));
        prefix->owner_buckets =
                malloc(((size_t)prefix->bucket_mask + 1) * sizeof(*prefix->owner_buckets));
        if (!prefix->owners || !prefix->owner_buckets)
                return -ENOMEM;
        for (int place = 0; place < PREFIX_PLACES; place++) {
                const uint32_t most[PREFIX_PLACES] = { blocks, prefix->conf.swap_blocks,
                                                       prefix->conf.window ? blocks : 0 };
                uint32_t max = most[place];

                prefix->owner_heaps[place].owners = calloc((size_t)max + 1, sizeof(uint32_t));
                if (!prefix->owner_heaps[place].owners)
                        return -ENOMEM;
        }
        for (uint32_t i = 0; i <= prefix->bucket_mask; i++)
                prefix->owner_buckets[i] = NO_OWNER;
        prefix->owner_unused = NO_OWNER;
        return 0;
}

void eviction_deinit(struct prefix *prefix)
{
        free(prefix->owners);
        for (int place = 0; place < PREFIX_PLACES; place++)
                free(prefix->owner_heaps[place].owners);
        free(prefix->owner_buckets);
}

/* ---- the leaves of one owner ---- */

/* The links of a block in the heap of this place, which must be where the block is. */
static struct prefix_leaf *leaf_at(const struct prefix *prefix, enum prefix_place place,
                                   block_t block)
{
        return place == PREFIX_WINDOWS ? &prefix->windows[block].leaf : &prefix->nodes[block].leaf;
}

/* Leaves of the lowest value are evicted first. */
static uint32_t value_of(const struct prefix *prefix, enum prefix_place place, block_t block)
{
        if (place != PREFIX_WINDOWS)
                return prefix->nodes[block].pin ? 1 : 0;
        return prefix->windows[block].pins ? 2 : prefix->windows[block].is_useful;
}

static bool leaf_is_before(const struct prefix *prefix, enum prefix_place place, block_t a,
                           block_t b)
{
        uint32_t value = value_of(prefix, place, a), other_value = value_of(prefix, place, b);

        if (value != other_value)
                return value < other_value;
        if (place == PREFIX_WINDOWS)
                return prefix->windows[a].unref_at < prefix->windows[b].unref_at;
        return prefix->nodes[a].unref_at < prefix->nodes[b].unref_at;
}

/* The number of nodes on the path to the right, beginning with this one. */
static uint32_t rank(const struct prefix *prefix, enum prefix_place place, block_t block)
{
        return block == BLOCK_NONE ? 0 : leaf_at(prefix, place, block)->rank;
}

/* Puts the shorter path on the right.  Returns true if the rank of this node has changed. */
static bool update_rank(struct prefix *prefix, enum prefix_place place, block_t block)
{
        struct prefix_leaf *leaf = leaf_at(prefix, place, block);
        block_t left = leaf->left;
        uint32_t before = leaf->rank;

        if (rank(prefix, place, left) < rank(prefix, place, leaf->right)) {
                leaf->left = leaf->right;
                leaf->right = left;
        }
        leaf->rank = rank(prefix, place, leaf->right) + 1;
        return leaf->rank != before;
}

/*
 * Merges two heaps, which may be empty, and returns the root.  It goes down the right paths of
 * both, always takes the node that comes first, and then updates the ranks on the way up.
 */
static block_t merge_heaps(struct prefix *prefix, enum prefix_place place, block_t a, block_t b)
{
        block_t root = BLOCK_NONE, last = BLOCK_NONE;

        while (a != BLOCK_NONE || b != BLOCK_NONE) {
                if (a == BLOCK_NONE || (b != BLOCK_NONE && leaf_is_before(prefix, place, b, a))) {
                        block_t other = a;

                        a = b;
                        b = other;
                }
                if (last == BLOCK_NONE)
                        root = a;
                else
                        leaf_at(prefix, place, last)->right = a;
                leaf_at(prefix, place, a)->up = last;
                last = a;
                if (b == BLOCK_NONE)
                        break;
                a = leaf_at(prefix, place, a)->right;
        }
        for (; last != BLOCK_NONE; last = leaf_at(prefix, place, last)->up)
                update_rank(prefix, place, last);
        return root;
}

/* ---- the heap of owners, one for each place ---- */

static bool has_too_many(const struct prefix *prefix, enum prefix_place place,
                         const struct prefix_owner *owner)
{
        const uint32_t count[PREFIX_PLACES] = { owner->cached, owner->swapped, owner->windows };
        const uint32_t max[PREFIX_PLACES] = { prefix->conf.cached_max, prefix->conf.swap_max,
                                              prefix->conf.windows_max };

        return max[place] && count[place] > max[place] && !prefix_is_public(owner->domain);
}

static bool owner_is_before(const struct prefix *prefix, enum prefix_place place, uint32_t a,
                            uint32_t b)
{
        const struct prefix_owner *one = &prefix->owners[a], *other = &prefix->owners[b];
        block_t leaf = one->leaves[place].root, other_leaf = other->leaves[place].root;
        bool too_many = has_too_many(prefix, place, one);

        if (value_of(prefix, place, leaf) == value_of(prefix, place, other_leaf) &&
            too_many != has_too_many(prefix, place, other))
                return too_many;
        return leaf_is_before(prefix, place, leaf, other_leaf);
}

static void set_heap_entry(struct prefix *prefix, enum prefix_place place, uint32_t at,
                           uint32_t owner)
{
        prefix->owner_heaps[place].owners[at] = owner;
        prefix->owners[owner].leaves[place].heap_index = at;
}

/*
 * Index `at` of the owners' heap is empty.  Moves parents down until `owner` may be put at `at` or
 * above it, and returns that index.
 */
static uint32_t sift_up(struct prefix *prefix, enum prefix_place place, uint32_t at, uint32_t owner)
{
        const uint32_t *heap = prefix->owner_heaps[place].owners;

        while (at && owner_is_before(prefix, place, owner, heap[(at - 1) / 2])) {
                set_heap_entry(prefix, place, at, heap[(at - 1) / 2]);
                at = (at - 1) / 2;
        }
        return at;
}

/* The same in the other direction: moves children up, and returns an index at or below `at`. */
static uint32_t sift_down(struct prefix *prefix, enum prefix_place place, uint32_t at,
                          uint32_t owner)
{
        const struct prefix_owner_heap *heap = &prefix->owner_heaps[place];

        for (;;) {
                uint32_t next = 2 * at + 1;

                if (next + 1 < heap->count &&
                    owner_is_before(prefix, place, heap->owners[next + 1], heap->owners[next]))
                        next++;
                if (next >= heap->count ||
                    !owner_is_before(prefix, place, heap->owners[next], owner))
                        return at;
                set_heap_entry(prefix, place, at, heap->owners[next]);
                at = next;
        }
}

static void sift(struct prefix *prefix, enum prefix_place place, uint32_t at, uint32_t owner)
{
        at = sift_up(prefix, place, at, owner);
        set_heap_entry(prefix, place, sift_down(prefix, place, at, owner), owner);
}

static void update_owner(struct prefix *prefix, enum prefix_place place, uint32_t number)
{
        struct prefix_leaves *leaves = &prefix->owners[number].leaves[place];
        struct prefix_owner_heap *heap = &prefix->owner_heaps[place];
        uint32_t at = leaves->heap_index, last;

        if (leaves->root != BLOCK_NONE) {
                sift(prefix, place, at == NOT_IN_HEAP ? heap->count++ : at, number);
        } else if (at != NOT_IN_HEAP) {
                leaves->heap_index = NOT_IN_HEAP;
                last = heap->owners[--heap->count];
                if (last != number)
                        sift(prefix, place, at, last);
        }
}

/* ---- leaves of all owners ---- */

static void add_to_heap(struct prefix *prefix, enum prefix_place place, block_t block)
{
        uint32_t owner = prefix->nodes[block].owner;
        struct prefix_leaves *leaves = &prefix->owners[owner].leaves[place];

        assert(!leaf_at(prefix, place, block)->rank);
        *leaf_at(prefix, place, block) =
                (struct prefix_leaf){ BLOCK_NONE, BLOCK_NONE, BLOCK_NONE, 1 };
        leaves->root = merge_heaps(prefix, place, leaves->root, block);
        update_owner(prefix, place, owner);
}

static void remove_from_heap(struct prefix *prefix, enum prefix_place place, block_t block)
{
        struct prefix_leaf *leaf = leaf_at(prefix, place, block);
        uint32_t owner = prefix->nodes[block].owner;
        block_t up = leaf->up, rest;

        assert(leaf->rank);
        rest = merge_heaps(prefix, place, leaf->left, leaf->right);
        if (rest != BLOCK_NONE)
                leaf_at(prefix, place, rest)->up = up;
        if (up == BLOCK_NONE)
                prefix->owners[owner].leaves[place].root = rest;
        else if (leaf_at(prefix, place, up)->left == block)
                leaf_at(prefix, place, up)->left = rest;
        else
                leaf_at(prefix, place, up)->right = rest;
        leaf->rank = 0;
        while (up != BLOCK_NONE && update_rank(prefix, place, up))
                up = leaf_at(prefix, place, up)->up;
        update_owner(prefix, place, owner);
}

void eviction_add(struct prefix *prefix, block_t block)
{
        add_to_heap(prefix, prefix_place(prefix, block), block);
}

void eviction_remove(struct prefix *prefix, block_t block)
{
        remove_from_heap(prefix, prefix_place(prefix, block), block);
}

void eviction_add_window(struct prefix *prefix, block_t block)
{
        prefix->owners[prefix->nodes[block].owner].windows++;
        add_to_heap(prefix, PREFIX_WINDOWS, block);
}

void eviction_remove_window(struct prefix *prefix, block_t block)
{
        prefix->owners[prefix->nodes[block].owner].windows--;
        remove_from_heap(prefix, PREFIX_WINDOWS, block);
}

block_t eviction_next(const struct prefix *prefix, enum prefix_place place)
{
        const struct prefix_owner_heap *heap = &prefix->owner_heaps[place];

        return heap->count ? prefix->owners[heap->owners[0]].leaves[place].root : BLOCK_NONE;
}

/* ---- the table of owners ---- */

static uint32_t *owner_bucket(const struct prefix *prefix, uint64_t domain)
{
        uint64_t hash[2];

        siphash(prefix->conf.key, &domain, sizeof(domain), hash);
        return &prefix->owner_buckets[hash[0] & prefix->bucket_mask];
}

static uint32_t find_owner(const struct prefix *prefix, uint64_t domain)
{
        uint32_t at = *owner_bucket(prefix, domain);

        while (at != NO_OWNER && prefix->owners[at].domain != domain)
                at = prefix->owners[at].next;
        return at;
}

/* An entry that was used before, or else the next that never was: its memory is touched first. */
static uint32_t take_unused_owner(struct prefix *prefix)
{
        uint32_t number = prefix->owner_unused;

        if (number == NO_OWNER)
                return prefix->owner_fresh++;
        prefix->owner_unused = prefix->owners[number].next;
        return number;
}

static uint32_t find_or_add_owner(struct prefix *prefix, uint64_t domain)
{
        uint32_t number = find_owner(prefix, domain), *bucket = owner_bucket(prefix, domain);

        if (number != NO_OWNER)
                return number;
        number = take_unused_owner(prefix);
        prefix->owners[number] = (struct prefix_owner){
                .domain = domain,
                .leaves = { { BLOCK_NONE, NOT_IN_HEAP },
                            { BLOCK_NONE, NOT_IN_HEAP },
                            { BLOCK_NONE, NOT_IN_HEAP } },
                .next = *bucket,
        };
        *bucket = number;
        return number;
}

static void remove_owner(struct prefix *prefix, uint32_t number)
{
        struct prefix_owner *owner = &prefix->owners[number];
        uint32_t *at = owner_bucket(prefix, owner->domain);

        for (int place = 0; place < PREFIX_PLACES; place++)
                assert(owner->leaves[place].root == BLOCK_NONE &&
                       owner->leaves[place].heap_index == NOT_IN_HEAP);
        while (*at != number) {
                assert(*at != NO_OWNER);
                at = &prefix->owners[*at].next;
        }
        *at = owner->next;
        *owner = (struct prefix_owner){ .next = prefix->owner_unused };
        prefix->owner_unused = number;
}

void eviction_note_allocated(struct prefix *prefix, block_t block, uint64_t domain)
{
        prefix->nodes[block].domain = domain;
        prefix->nodes[block].owner = find_or_add_owner(prefix, domain);
        prefix->owners[prefix->nodes[block].owner].in_use++;
}

void eviction_note_in_use(struct prefix *prefix, block_t block)
{
        struct prefix_owner *owner = &prefix->owners[prefix->nodes[block].owner];

        assert(owner->cached);
        owner->cached--;
        owner->in_use++;
        update_owner(prefix, PREFIX_POOL, prefix->nodes[block].owner);
}

void eviction_note_cached(struct prefix *prefix, block_t block)
{
        struct prefix_owner *owner = &prefix->owners[prefix->nodes[block].owner];

        assert(owner->in_use);
        owner->in_use--;
        owner->cached++;
        update_owner(prefix, PREFIX_POOL, prefix->nodes[block].owner);
}

static void drop_unused(struct prefix *prefix, uint32_t number)
{
        const struct prefix_owner *owner = &prefix->owners[number];

        if (!owner->cached && !owner->in_use && !owner->swapped)
                remove_owner(prefix, number);
}

void eviction_note_freed(struct prefix *prefix, block_t block)
{
        uint32_t number = prefix->nodes[block].owner;

        assert(prefix->owners[number].cached);
        prefix->owners[number].cached--;
        update_owner(prefix, PREFIX_POOL, number);
        drop_unused(prefix, number);
}

void eviction_note_swapped(struct prefix *prefix, block_t block, uint64_t domain)
{
        uint32_t number = find_owner(prefix, domain);

        assert(number != NO_OWNER);
        prefix->nodes[block].domain = domain;
        prefix->nodes[block].owner = number;
        prefix->owners[number].swapped++;
        update_owner(prefix, PREFIX_SWAP, number);
}

void eviction_note_left_swap(struct prefix *prefix, block_t block)
{
        uint32_t number = prefix->nodes[block].owner;

        assert(prefix->owners[number].swapped);
        prefix->owners[number].swapped--;
        update_owner(prefix, PREFIX_SWAP, number);
        drop_unused(prefix, number);
}

const struct prefix_owner *eviction_owner(const struct prefix *prefix, uint64_t domain)
{
        uint32_t number = find_owner(prefix, domain);

        return number == NO_OWNER ? NULL : &prefix->owners[number];
}

/* ---- pins ---- */

/*
 * A text with a pin needs the window pages at its end, as a request does that goes on from there.
 * The pin at `block` is new, or removed (`by` is -1).
 */
static void count_window_pins(struct prefix *prefix, block_t block, int by)
{
        uint32_t left = prefix->conf.window ? blocks_for(prefix->conf.window) + 1 : 0;

        for (; left && block != BLOCK_NONE; left--, block = prefix->nodes[block].parent) {
                bool is_leaf = eviction_has_window(prefix, block);

                if (is_leaf)
                        remove_from_heap(prefix, PREFIX_WINDOWS, block);
                prefix->windows[block].pins += (uint32_t)by;
                if (is_leaf)
                        add_to_heap(prefix, PREFIX_WINDOWS, block);
        }
}

static void attach_pin(struct prefix *prefix, uint32_t number, block_t block)
{
        struct prefix_pin *pin = &prefix->pins[number];
        struct prefix_node *node = &prefix->nodes[block];

        pin->block = block;
        pin->next = node->pin;
        if (node->pin)
                prefix->pins[node->pin].prev = number;
        node->pin = number;
        count_window_pins(prefix, block, 1);
}

static void detach_pin(struct prefix *prefix, uint32_t number)
{
        struct prefix_pin *pin = &prefix->pins[number];

        count_window_pins(prefix, pin->block, -1);
        if (pin->prev)
                prefix->pins[pin->prev].next = pin->next;
        else
                prefix->nodes[pin->block].pin = pin->next;
        if (pin->next)
                prefix->pins[pin->next].prev = pin->prev;
        pin->block = BLOCK_NONE;
        pin->next = pin->prev = 0;
}

/*
 * The place of a leaf in its heap depends on its pins, so it is taken out while they change.
 * Returns whether the block was a leaf.
 */
static bool remove_leaf(struct prefix *prefix, block_t block)
{
        bool is_leaf = eviction_has(prefix, block);

        if (is_leaf)
                eviction_remove(prefix, block);
        return is_leaf;
}

void eviction_move_pin(struct prefix *prefix, uint32_t number, block_t block)
{
        block_t from;
        bool is_leaf;

        assert(number && number <= prefix->conf.pins);
        from = prefix->pins[number].block;
        if (from != BLOCK_NONE) {
                is_leaf = remove_leaf(prefix, from);
                detach_pin(prefix, number);
                if (is_leaf)
                        eviction_add(prefix, from);
        }
        if (block != BLOCK_NONE) {
                assert(prefix->nodes[block].filled);
                is_leaf = remove_leaf(prefix, block);
                attach_pin(prefix, number, block);
                if (is_leaf)
                        eviction_add(prefix, block);
        }
}

void eviction_keep_pins(struct prefix *prefix, block_t from, block_t to)
{
        assert(!eviction_has(prefix, from) && !eviction_has(prefix, to) && !prefix->nodes[to].pin);
        prefix->nodes[to].pin = prefix->nodes[from].pin;
        prefix->nodes[from].pin = 0;
        for (uint32_t at = prefix->nodes[to].pin; at; at = prefix->pins[at].next)
                prefix->pins[at].block = to;
}

void eviction_raise_pins(struct prefix *prefix, block_t block)
{
        block_t parent = prefix->nodes[block].parent;
        uint32_t number;

        assert(!eviction_has(prefix, block));
        assert(parent == BLOCK_NONE || !eviction_has(prefix, parent));
        while ((number = prefix->nodes[block].pin)) {
                detach_pin(prefix, number);
                if (parent != BLOCK_NONE)
                        attach_pin(prefix, number, parent);
        }
}

/* ---- checks ---- */

/* Checks a leaf against its two children in the heap. */
static void check_leaf(const struct prefix *prefix, enum prefix_place place, block_t block)
{
        const struct prefix_leaf *leaf = leaf_at(prefix, place, block);
        const block_t below[] = { leaf->left, leaf->right };

        for (int i = 0; i < 2; i++) {
                const struct prefix_leaf *child;

                if (below[i] == BLOCK_NONE)
                        continue;
                child = leaf_at(prefix, place, below[i]);
                assert(child->rank && child->up == block);
                assert(prefix->nodes[below[i]].owner == prefix->nodes[block].owner);
                assert(prefix_place(prefix, below[i]) == prefix_place(prefix, block));
                assert(!leaf_is_before(prefix, place, below[i], block));
        }
        assert(rank(prefix, place, below[0]) >= rank(prefix, place, below[1]));
        assert(leaf->rank == rank(prefix, place, below[1]) + 1);
        if (leaf->up == BLOCK_NONE)
                assert(prefix->owners[prefix->nodes[block].owner].leaves[place].root == block);
        else
                assert(leaf_at(prefix, place, leaf->up)->left == block ||
                       leaf_at(prefix, place, leaf->up)->right == block);
}

static void check_owner_heap(const struct prefix *prefix, enum prefix_place place)
{
        const struct prefix_owner_heap *heap = &prefix->owner_heaps[place];

        for (uint32_t i = 0; i < heap->count; i++) {
                const struct prefix_leaves *leaves = &prefix->owners[heap->owners[i]].leaves[place];

                assert(leaves->heap_index == i && leaves->root != BLOCK_NONE);
                assert(!i ||
                       !owner_is_before(prefix, place, heap->owners[i], heap->owners[(i - 1) / 2]));
        }
}

static void check_heaps(const struct prefix *prefix)
{
        assert(!prefix->pool.cached_count || prefix->owner_heaps[PREFIX_POOL].count);
        for (block_t block = 0; block < prefix_block_count(prefix); block++) {
                if (eviction_has(prefix, block))
                        check_leaf(prefix, prefix_place(prefix, block), block);
                if (eviction_has_window(prefix, block))
                        check_leaf(prefix, PREFIX_WINDOWS, block);
        }
        for (int place = 0; place < PREFIX_PLACES; place++)
                check_owner_heap(prefix, place);
}

/* The counts of all owners together must be the counts of the pool and of the swap. */
static void check_owners(const struct prefix *prefix)
{
        uint32_t in_use = 0, cached = 0, swapped = 0, windows = 0;

        for (uint32_t i = 0; i <= prefix->bucket_mask; i++) {
                for (uint32_t at = prefix->owner_buckets[i]; at != NO_OWNER;
                     at = prefix->owners[at].next) {
                        const struct prefix_owner *owner = &prefix->owners[at];

                        assert(owner->in_use || owner->cached || owner->swapped);
                        assert(find_owner(prefix, owner->domain) == at);
                        in_use += owner->in_use;
                        cached += owner->cached;
                        swapped += owner->swapped;
                        windows += owner->windows;
                }
        }
        for (block_t block = 0; block < prefix_block_count(prefix); block++)
                windows -= eviction_has_window(prefix, block);
        assert(!windows);
        assert(in_use == kvpool_in_use(&prefix->pool) && cached == prefix->pool.cached_count);
        assert(swapped == prefix->conf.swap_blocks - prefix->swap_free.count);
}

static void check_pins(const struct prefix *prefix)
{
        uint32_t set = 0, listed = 0;

        for (uint32_t number = 1; number <= prefix->conf.pins; number++)
                set += prefix->pins[number].block != BLOCK_NONE;
        for (block_t block = 0; block < prefix_block_count(prefix); block++) {
                uint32_t before = 0;

                for (uint32_t at = prefix->nodes[block].pin; at; at = prefix->pins[at].next) {
                        assert(prefix->nodes[block].filled);
                        assert(prefix->pins[at].block == block && prefix->pins[at].prev == before);
                        before = at;
                        listed++;
                }
        }
        assert(listed == set);
}

void eviction_check(const struct prefix *prefix)
{
        check_owners(prefix);
        check_heaps(prefix);
        check_pins(prefix);
}
