/*
 * The prefix index with a swap, compared with a plain list of texts and their places.
 *
 * Readers come and go.  Each finds the known part of its text, fetches what is in the swap, as far
 * as it likes, takes blocks for the rest and inserts them, and releases all.  Pins are set, texts
 * are published and forgotten, and at times nothing may move.  Before each block is given out, the
 * list names the one that is evicted, and the one that the swap drops for it.
 *
 * The list is searched from one end to the other, so it is too simple to be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"

enum {
        PLACES_MAX = 48,
        TEXT_BLOCKS = 5,
        TEXT_MAX = TEXT_BLOCKS * 16,
        READERS = 5,
        DOMAINS = 4,
        PINS = 4,
        KINDS = 3, /* of blocks that texts are made of */
        MOVES_MAX = 2,
        WORLD_STEPS = 5000,
};

static const uint64_t domains[DOMAINS] = { 1000, 0, UINT32_MAX, PREFIX_EVERYONE };

/* The known facts about a place. */
struct record {
        bool named; /* its text is in the index */
        uint64_t domain;
        uint32_t tokens[16], count;
        block_t parent; /* of a named one */
        uint32_t holders;
        uint64_t released;
};

struct pin {
        block_t place;
        bool publishes;
};

struct reader {
        bool runs;
        uint64_t domain;
        uint32_t text[TEXT_MAX], count;
        block_t blocks[TEXT_BLOCKS];
        uint32_t block_count;
};

static struct world {
        struct prefix prefix;
        struct prefix_conf conf;
        uint32_t blocks;
        struct record records[PLACES_MAX];
        struct reader readers[READERS];
        struct pin pins[PINS + 1];
        struct block_move moves[MOVES_MAX];
        uint32_t kinds[KINDS][16];
        bool may_swap;
        uint64_t random, releases;
} world;

/* Counts events, so that a test that did nothing is noticed. */
static struct deeds {
        uint64_t out, in, dropped, lost_below, replaced, pinned, over, over_there, unpublished,
                invalidated, found;
} deeds;

static uint32_t any(uint32_t below)
{
        world.random = world.random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        return (uint32_t)((world.random >> 33) % below);
}

static uint32_t places(void)
{
        return world.blocks + world.conf.swap_blocks;
}

static bool is_in(block_t place, enum prefix_place where)
{
        return (place < world.blocks) == (where == PREFIX_POOL);
}

static bool is_pinned(block_t place)
{
        for (uint32_t i = 1; i <= PINS; i++)
                if (world.pins[i].place == place)
                        return true;
        return false;
}

/* A pin publishes it, or a text that begins with it. */
static bool is_published(block_t place)
{
        for (uint32_t i = 1; i <= PINS; i++)
                for (block_t at = world.pins[i].place; at != BLOCK_NONE && world.pins[i].publishes;
                     at = world.records[at].parent)
                        if (at == place)
                                return true;
        return false;
}

/* Blocks of a domain that nobody holds. */
static uint32_t count_kept(uint64_t domain, enum prefix_place where)
{
        uint32_t count = 0;

        for (block_t at = 0; at < places(); at++)
                count += world.records[at].named && world.records[at].domain == domain &&
                         !world.records[at].holders && is_in(at, where);
        return count;
}

static bool is_over(block_t place)
{
        uint64_t domain = world.records[place].domain;
        bool pool = is_in(place, PREFIX_POOL);
        uint32_t max = pool ? world.conf.cached_max : world.conf.swap_max;

        return max && !prefix_is_public(domain) &&
               count_kept(domain, pool ? PREFIX_POOL : PREFIX_SWAP) > max;
}

static bool has_child(block_t place, bool in_pool_only)
{
        for (block_t at = 0; at < places(); at++)
                if (world.records[at].named && world.records[at].parent == place &&
                    (!in_pool_only || is_in(at, PREFIX_POOL)))
                        return true;
        return false;
}

static bool goes_before(block_t a, block_t b)
{
        if (is_pinned(a) != is_pinned(b))
                return !is_pinned(a);
        if (is_over(a) != is_over(b))
                return is_over(a);
        return world.records[a].released < world.records[b].released;
}

/* The leaf that this place loses next, except for one; or BLOCK_NONE. */
static block_t next_to_go(enum prefix_place where, block_t except)
{
        block_t next = BLOCK_NONE;

        for (block_t at = 0; at < places(); at++)
                if (world.records[at].named && !world.records[at].holders && is_in(at, where) &&
                    at != except && !has_child(at, where == PREFIX_POOL) &&
                    (next == BLOCK_NONE || goes_before(at, next)))
                        next = at;
        return next;
}

static bool is_swap_full(void)
{
        for (block_t at = world.blocks; at < places(); at++)
                if (!world.records[at].named)
                        return false;
        return true;
}

/* It leaves the index, and all that follows it. */
static void forget(block_t place)
{
        for (block_t at = 0; at < places(); at++)
                if (world.records[at].named && world.records[at].parent == place) {
                        deeds.lost_below++;
                        forget(at);
                }
        for (uint32_t i = 1; i <= PINS; i++)
                if (world.pins[i].place == place)
                        world.pins[i].place = world.records[place].parent;
        world.records[place].named = false;
}

static void move(block_t from, block_t to)
{
        uint32_t holders = world.records[to].holders;

        assert_true(world.records[from].named && !world.records[to].named);
        world.records[to] = world.records[from];
        world.records[to].holders = holders;
        world.records[from] = (struct record){ 0 };
        for (block_t at = 0; at < places(); at++)
                if (world.records[at].named && world.records[at].parent == from)
                        world.records[at].parent = to;
        for (uint32_t i = 1; i <= PINS; i++)
                if (world.pins[i].place == from)
                        world.pins[i].place = to;
}

static void list_moves(void)
{
        prefix_list_moves(&world.prefix, world.moves, MOVES_MAX, world.may_swap);
}

/* The list makes room for a block, as the index did, which gave out this one. */
static void make_room(block_t given, block_t except)
{
        const struct block_move *moved = world.prefix.move_count ? &world.moves[0] : NULL;
        block_t leaf = next_to_go(PREFIX_POOL, BLOCK_NONE), dropped;
        bool moves;

        for (block_t at = 0; at < world.blocks; at++)
                if (!world.records[at].named && !world.records[at].holders) {
                        assert_true(!world.records[given].named && !world.records[given].holders);
                        assert_true(!moved || moved->to == given);
                        return;
                }
        assert_int_equal(given, leaf);
        deeds.over += is_over(leaf);
        dropped = is_swap_full() ? next_to_go(PREFIX_SWAP, except) : BLOCK_NONE;
        moves = world.may_swap && world.conf.swap_blocks && world.records[leaf].count == 16 &&
                (!is_swap_full() || dropped != BLOCK_NONE);
        if (!moves) {
                assert_true(!moved || moved->to == given);
                forget(leaf);
                return;
        }
        assert_true(moved && moved->from == leaf && is_in(moved->to, PREFIX_SWAP));
        if (dropped != BLOCK_NONE) {
                deeds.over_there += is_over(dropped);
                forget(dropped);
                deeds.dropped++;
        }
        deeds.pinned += is_pinned(leaf);
        move(leaf, moved->to);
        deeds.out++;
}

static block_t take(uint64_t domain)
{
        block_t block;

        list_moves();
        block = prefix_allocate(&world.prefix, domain);
        make_room(block, BLOCK_NONE);
        world.records[block] = (struct record){ .domain = domain, .holders = 1 };
        return block;
}

static block_t fetch(block_t place)
{
        block_t block;

        list_moves();
        block = prefix_fetch(&world.prefix, place);
        assert_true(world.prefix.move_count >= 1);
        assert_int_equal(world.moves[world.prefix.move_count - 1].from, place);
        assert_int_equal(world.moves[world.prefix.move_count - 1].to, block);
        make_room(block, place);
        world.records[block].holders = 1;
        move(place, block);
        deeds.in++;
        return block;
}

static void hold(block_t block)
{
        prefix_ref(&world.prefix, block);
        world.records[block].holders++;
}

static void release(block_t block)
{
        prefix_unref(&world.prefix, block);
        if (!--world.records[block].holders)
                world.records[block].released = ++world.releases;
}

static block_t find_whole(uint64_t own, uint64_t domain, block_t parent, const uint32_t *tokens)
{
        for (block_t at = 0; at < places(); at++) {
                const struct record *record = &world.records[at];

                if (record->named && record->count == 16 && record->domain == domain &&
                    record->parent == parent && (domain == own || is_published(at)) &&
                    !memcmp(record->tokens, tokens, sizeof(record->tokens)))
                        return at;
        }
        return BLOCK_NONE;
}

static uint32_t find_path(const struct reader *reader, uint64_t domain, block_t *blocks)
{
        uint64_t own = reader->domain;
        uint32_t count = 0;

        for (block_t parent = BLOCK_NONE; (count + 1) * 16 <= reader->count; count++) {
                block_t block = find_whole(own, domain, parent, reader->text + count * 16);

                if (block == BLOCK_NONE && domain != own && parent != BLOCK_NONE) {
                        domain = own;
                        block = find_whole(own, domain, parent, reader->text + count * 16);
                }
                if (block == BLOCK_NONE)
                        break;
                blocks[count] = parent = block;
        }
        return count;
}

static void draw_text(struct reader *reader)
{
        reader->count = 1 + any(TEXT_MAX);
        for (uint32_t i = 0; i < TEXT_BLOCKS; i++)
                memcpy(reader->text + 16 * i, world.kinds[any(KINDS)], sizeof(*world.kinds));
}

/* References what is found in the pool, and fetches some of what is in the swap. */
static void find(struct reader *reader)
{
        struct prefix_reader who = { .domains = { reader->domain, PREFIX_EVERYONE }, .count = 2 };
        block_t found[TEXT_BLOCKS], own[TEXT_BLOCKS], everyones[TEXT_BLOCKS], *best = own;
        uint32_t count, most, fetches;
        struct prefix_hit hit;

        if (reader->domain == PREFIX_EVERYONE)
                who.count = 1;
        prefix_find(&world.prefix, &who, reader->text, reader->count, found, &hit);
        count = find_path(reader, reader->domain, own);
        most = who.count > 1 ? find_path(reader, PREFIX_EVERYONE, everyones) : 0;
        if (hit.whole_count + hit.swap_count != count || (most > count && count)) {
                assert_true(most >= count);
                best = everyones;
                count = most;
        }
        assert_int_equal(hit.whole_count + hit.swap_count, count);
        if (memcmp(found, best, count * sizeof(*found)))
                best = everyones; /* as long: its tail is longer */
        assert_memory_equal(found, best, count * sizeof(*found));
        for (uint32_t i = 0; i < count; i++)
                assert_int_equal(is_in(found[i], PREFIX_POOL), i < hit.whole_count);
        for (; reader->block_count < hit.whole_count; reader->block_count++)
                hold(reader->blocks[reader->block_count] = found[reader->block_count]);
        deeds.found += hit.whole_count;
        fetches = any(hit.swap_count + 1);
        for (; fetches && prefix_available(&world.prefix); fetches--) {
                uint32_t at = reader->block_count;
                block_t parent = at ? reader->blocks[at - 1] : BLOCK_NONE;
                bool is_there = world.records[found[at]].named &&
                                world.records[found[at]].parent == parent &&
                                !memcmp(world.records[found[at]].tokens, reader->text + at * 16,
                                        16 * sizeof(uint32_t));

                assert_int_equal(prefix_is_swapped(&world.prefix, reader->domain, found[at], parent,
                                                   reader->text + at * 16),
                                 is_there);
                if (!is_there)
                        break;
                reader->blocks[reader->block_count++] = fetch(found[at]);
        }
}

/* Takes the next block of its text, and names it; if the index has it, it uses that one. */
static void go_on(struct reader *reader)
{
        uint32_t at = reader->block_count, count = reader->count - at * 16;
        block_t parent = at ? reader->blocks[at - 1] : BLOCK_NONE, block, same, used;
        const uint32_t *tokens = reader->text + at * 16;
        struct record *record;
        /* Below blocks of its own nothing of it is public; and below public ones all is its own. */
        uint64_t domain = reader->domain;

        if (at * 16 >= reader->count || !prefix_available(&world.prefix))
                return;
        block = take(domain);
        reader->blocks[reader->block_count++] = block;
        count = count < 16 ? count : 16;
        if (parent != BLOCK_NONE &&
            !(world.records[parent].named && world.records[parent].count == 16)) {
                assert_int_equal(prefix_insert(&world.prefix, domain, parent, block, tokens, count),
                                 block);
                return;
        }
        same = count == 16 ? find_whole(domain, domain, parent, tokens) : BLOCK_NONE;
        used = prefix_insert(&world.prefix, domain, parent, block, tokens, count);
        record = &world.records[block];
        if (same == BLOCK_NONE) {
                assert_int_equal(used, block);
                record->named = true;
                record->parent = parent;
                record->count = count;
                memcpy(record->tokens, tokens, count * sizeof(*tokens));
        } else if (is_in(same, PREFIX_SWAP)) {
                assert_int_equal(used, block);
                move(same, block);
                deeds.replaced++;
        } else {
                assert_int_equal(used, same);
                hold(same);
                release(block);
                reader->blocks[at] = same;
        }
}

static void end(struct reader *reader)
{
        while (reader->block_count)
                release(reader->blocks[--reader->block_count]);
        reader->runs = false;
}

/* Blocks that no pin publishes any more leave the index.  The highest takes the others along. */
static void forget_unpublished(block_t from)
{
        block_t last = BLOCK_NONE;

        for (; from != BLOCK_NONE; from = world.records[from].parent)
                if (!is_published(from))
                        last = from;
        if (last == BLOCK_NONE)
                return;
        forget(last);
        deeds.unpublished++;
}

static void set_pin(uint32_t number, block_t block)
{
        struct pin *pin = &world.pins[number], before = *pin;

        prefix_set_pin(&world.prefix, number, block);
        *pin = (struct pin){ .place = block };
        if (before.publishes)
                forget_unpublished(before.place);
}

/* At the last block of a reader, if that is in the index and will not leave it for this. */
static void pin_or_publish(struct reader *reader)
{
        uint32_t number = 1 + any(PINS);
        block_t block = reader->block_count ? reader->blocks[reader->block_count - 1] : BLOCK_NONE;

        if (world.pins[number].publishes || !any(4))
                block = BLOCK_NONE;
        else if (block == BLOCK_NONE || !world.records[block].named)
                return;
        if (block == BLOCK_NONE || reader->domain != PREFIX_EVERYONE || any(2)) {
                set_pin(number, block);
                return;
        }
        prefix_publish(&world.prefix, number, block);
        world.pins[number] = (struct pin){ .place = block, .publishes = true };
}

static void invalidate(void)
{
        block_t block = any(world.blocks);

        prefix_invalidate(&world.prefix, block);
        if (!world.records[block].named)
                return;
        forget(block);
        deeds.invalidated++;
}

static void step(void)
{
        struct reader *reader = &world.readers[any(READERS)];

        if (!any(50))
                world.may_swap = any(4);
        if (!any(60)) {
                invalidate();
        } else if (!any(12)) {
                pin_or_publish(reader);
        } else if (!reader->runs) {
                *reader = (struct reader){ .runs = true, .domain = domains[any(DOMAINS)] };
                draw_text(reader);
                find(reader);
        } else if (any(TEXT_BLOCKS)) {
                go_on(reader);
        } else {
                end(reader);
        }
}

static void compare(void)
{
        uint32_t swapped = 0, available = 0;

        prefix_check(&world.prefix);
        for (block_t at = 0; at < places(); at++) {
                const struct prefix_node *node = &world.prefix.nodes[at];
                const struct record *record = &world.records[at];

                assert_int_equal(node->filled, record->named ? record->count : 0);
                swapped += record->named && is_in(at, PREFIX_SWAP);
                available += !record->holders && is_in(at, PREFIX_POOL);
                if (!record->named)
                        continue;
                assert_int_equal(node->domain, record->domain);
                assert_int_equal(node->parent, record->parent);
                assert_int_equal(!node->published, !is_published(at));
                assert_memory_equal(node->tokens, record->tokens, record->count * sizeof(uint32_t));
        }
        assert_int_equal(world.conf.swap_blocks - world.prefix.swap_free.count, swapped);
        assert_int_equal(prefix_available(&world.prefix), available);
        for (uint32_t i = 0; i < DOMAINS; i++)
                assert_int_equal(prefix_cached_by(&world.prefix, domains[i]),
                                 count_kept(domains[i], PREFIX_POOL));
        for (uint32_t i = 1; i <= PINS; i++)
                assert_int_equal(world.prefix.pins[i].block, world.pins[i].place);
}

static void live(uint64_t seed, uint32_t blocks, uint32_t swap_blocks)
{
        world = (struct world){ .random = seed, .blocks = blocks, .may_swap = true };
        world.conf =
                (struct prefix_conf){ .key = { seed }, .pins = PINS, .swap_blocks = swap_blocks };
        world.conf.cached_max = seed % 3 ? 0 : 1 + blocks / 4;
        world.conf.swap_max = seed % 2 ? 1 + swap_blocks / 4 : 0;
        if (seed % 4 == 3) /* half of all names collide */
                world.conf.ignored_hash_bits[0] = UINT64_MAX - 1;
        for (uint32_t i = 1; i <= PINS; i++)
                world.pins[i].place = BLOCK_NONE;
        for (uint32_t i = 0; i < KINDS * 16; i++)
                world.kinds[i / 16][i % 16] = any(3);
        assert_int_equal(prefix_init(&world.prefix, &world.conf, blocks), 0);
        for (uint32_t i = 0; i < WORLD_STEPS; i++) {
                step();
                compare();
        }
        for (uint32_t i = 0; i < READERS; i++)
                end(&world.readers[i]);
        compare();
        prefix_deinit(&world.prefix);
}

static void random_operations_with_a_swap_match_a_list_of_texts(void **state)
{
        (void)state;
        for (uint64_t seed = 1; seed <= 24; seed++)
                live(seed, 3 + (uint32_t)seed, 1 + (uint32_t)(seed * 7 % 20));
        assert_true(deeds.out > 1000 && deeds.in > 1000 && deeds.dropped > 1000);
        assert_true(deeds.found > 1000 && deeds.replaced > 100 && deeds.lost_below > 100);
        assert_true(deeds.pinned > 100 && deeds.over > 100 && deeds.over_there > 100);
        assert_true(deeds.unpublished > 10 && deeds.invalidated > 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_operations_with_a_swap_match_a_list_of_texts),
        };

        return cmocka_run_group_tests_name("prefix-swap", tests, NULL, NULL);
}
