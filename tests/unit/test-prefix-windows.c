/*
 * The window pages of the prefix index, compared with a list that has the whole text of each block.
 *
 * Readers of a few texts come and go, as sequences do: each finds the known part of its text, takes
 * blocks and window pages for the rest, inserts the blocks, and gives back the window pages that
 * its next position does not see.  Pins move at random.  The list is searched from one end to the
 * other.  Which *block* is evicted is left to the index: test-prefix-random.c checks that.
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
        BLOCKS_MAX = 40,
        TEXT_BLOCKS = 6,
        TEXT_MAX = TEXT_BLOCKS * 16,
        READERS = 6,
        DOMAINS = 3,
        PINS = 4,
        KINDS = 3, /* of blocks that texts are made of */
        WORLD_STEPS = 3000,
};

/* Blocks in the domain of everyone are not published here, so only this domain finds them. */
static const uint64_t domains[DOMAINS] = { 1000, 1001, PREFIX_EVERYONE };

struct record {
        bool inserted, page, useful;
        uint64_t domain;
        uint32_t text[TEXT_MAX], count; /* from the beginning, so far as it was inserted */
        uint32_t holders, page_holders;
        uint64_t passed; /* when the last of the page's holders left it */
};

struct reader {
        uint64_t domain;
        uint32_t text[TEXT_MAX], count;
        uint32_t written, inserted; /* positions, and whole blocks */
        block_t blocks[TEXT_BLOCKS], tail;
        uint32_t block_count, window_begin;
        bool runs;
};

/* Counts events, so that a test that did nothing is noticed. */
static struct deeds {
        uint64_t steps, hits, shortened, none, tails, evictions, useful_stayed, pinned_stayed,
                pinned_went, over_first, handed, refused, shared, lost;
} deeds;

static struct world {
        struct prefix prefix;
        struct record records[BLOCKS_MAX];
        struct reader readers[READERS];
        block_t pins[PINS];
        uint32_t kinds[KINDS][16];
        uint64_t random, passes, evictions;
} world;

#define each_block(block) for (block_t block = 0; block < world.prefix.pool.total; block++)

static uint32_t any(uint32_t below)
{
        world.random = world.random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        return (uint32_t)((world.random >> 33) % below);
}

static uint32_t window_size(void)
{
        return world.prefix.conf.window;
}

/* The first block with a position that the position before this one sees. */
static uint32_t first_seen(uint32_t position)
{
        return position <= window_size() ? 0 : (position - window_size()) / 16;
}

static bool begins(const struct record *record, uint64_t domain, const uint32_t *text,
                   uint32_t count)
{
        return record->inserted && record->domain == domain && record->count >= count &&
               !memcmp(record->text, text, count * sizeof(*text));
}

static block_t model_find_whole(uint64_t domain, const uint32_t *text, uint32_t count)
{
        each_block(block) if (world.records[block].count == count &&
                              begins(&world.records[block], domain, text, count)) return block;
        return BLOCK_NONE;
}

/* Is a pin at this block, or at one of the next that are in its window? */
static bool is_pinned(block_t block)
{
        const struct record *record = &world.records[block];

        for (uint32_t i = 0; i < PINS; i++) {
                const struct record *end;

                if (world.pins[i] == BLOCK_NONE)
                        continue;
                end = &world.records[world.pins[i]];
                if (world.pins[i] == block)
                        return true;
                if (record->count % 16 == 0 &&
                    begins(end, record->domain, record->text, record->count) &&
                    blocks_for(end->count) - record->count / 16 <= blocks_for(window_size()))
                        return true;
        }
        return false;
}

static bool is_cached(const struct record *record)
{
        return record->page && !record->page_holders;
}

static bool is_over(uint64_t domain)
{
        uint32_t count = 0, max = world.prefix.conf.windows_max;

        each_block(block) count +=
                world.records[block].domain == domain && is_cached(&world.records[block]);
        return max && !prefix_is_public(domain) && count > max;
}

/* Pages with a smaller number are evicted first. */
static uint32_t group_of(block_t block, bool limited)
{
        const struct record *record = &world.records[block];
        uint32_t group = is_pinned(block) ? 2 : record->useful;

        return 2 * group + !(limited && is_over(record->domain));
}

static block_t model_victim(bool limited)
{
        block_t victim = BLOCK_NONE;

        each_block(block)
        {
                uint32_t group, best;

                if (!is_cached(&world.records[block]))
                        continue;
                group = group_of(block, limited);
                best = victim == BLOCK_NONE ? UINT32_MAX : group_of(victim, limited);
                if (group < best ||
                    (group == best && world.records[block].passed < world.records[victim].passed))
                        victim = block;
        }
        return victim;
}

static void lose_page(struct record *record)
{
        record->page = record->useful = false;
}

static uint32_t free_pages(void)
{
        uint32_t count = world.prefix.conf.window_pages;

        each_block(block) count -= world.records[block].page;
        return count;
}

/* Pages that nobody needs. */
static uint32_t pages_left(void)
{
        uint32_t count = free_pages();

        each_block(block) count += is_cached(&world.records[block]);
        return count;
}

/* Forgets the text of a block: its pins move to the nearest block before it that is known. */
static void model_unname(block_t block)
{
        struct record *record = &world.records[block];

        if (!record->inserted)
                return;
        record->inserted = false;
        if (is_cached(record)) {
                lose_page(record);
                deeds.lost++;
        }
        for (uint32_t i = 0; i < PINS; i++) {
                uint32_t count = (record->count - 1) / 16 * 16;

                if (world.pins[i] != block)
                        continue;
                world.pins[i] = BLOCK_NONE;
                for (; count && world.pins[i] == BLOCK_NONE; count -= 16)
                        world.pins[i] = model_find_whole(record->domain, record->text, count);
        }
}

static void compare(void)
{
        bool seen[BLOCKS_MAX] = { false };
        uint32_t cached = 0, in_use = 0;

        each_block(block)
        {
                const struct record *record = &world.records[block];
                uint32_t page = prefix_window(&world.prefix, block);

                assert_int_equal(page != WINDOW_NONE, record->page);
                assert_int_equal(world.prefix.windows[block].refs, record->page_holders);
                cached += is_cached(record);
                in_use += record->page_holders > 0;
                if (page == WINDOW_NONE)
                        continue;
                assert_true(page < world.prefix.conf.window_pages && !seen[page]);
                seen[page] = true;
        }
        assert_int_equal(prefix_windows_cached(&world.prefix), cached);
        assert_int_equal(world.prefix.window_free.max - world.prefix.window_free.count -
                                 prefix_windows_cached(&world.prefix),
                         in_use);
        assert_int_equal(world.prefix.window_evictions, world.evictions);
}

static void hold(block_t block)
{
        prefix_ref(&world.prefix, block);
        world.records[block].holders++;
}

static void release(block_t block)
{
        prefix_unref(&world.prefix, block);
        world.records[block].holders--;
}

static void hold_page(block_t block)
{
        prefix_ref_window(&world.prefix, block);
        world.records[block].page_holders++;
}

static void model_last_holder_left(struct record *record)
{
        record->passed = ++world.passes;
        if (!record->inserted)
                lose_page(record);
}

static void release_page(block_t block, bool useful)
{
        struct record *record = &world.records[block];

        prefix_unref_window(&world.prefix, block, useful);
        record->useful |= useful;
        if (--record->page_holders == 0)
                model_last_holder_left(record);
}

static void count_victim(block_t victim)
{
        bool useful = false, pinned = false;

        each_block(block)
        {
                const struct record *record = &world.records[block];

                if (!is_cached(record) || record->passed > world.records[victim].passed)
                        continue;
                pinned |= is_pinned(block);
                useful |= record->useful;
        }
        deeds.evictions++;
        deeds.useful_stayed += useful && !world.records[victim].useful;
        deeds.pinned_stayed += pinned && !is_pinned(victim);
        deeds.pinned_went += is_pinned(victim);
        deeds.over_first += victim != model_victim(false);
}

static void take_page(block_t block)
{
        block_t victim = free_pages() ? BLOCK_NONE : model_victim(true);

        if (victim != BLOCK_NONE) {
                count_victim(victim);
                lose_page(&world.records[victim]);
                world.evictions++;
        }
        prefix_take_window(&world.prefix, block);
        world.records[block].page = true;
        world.records[block].page_holders = 1;
        compare();
}

static block_t take(uint64_t domain)
{
        block_t block = prefix_allocate(&world.prefix, domain);

        assert_int_equal(world.records[block].holders, 0);
        model_unname(block);
        world.records[block].holders = 1;
        world.records[block].domain = domain;
        take_page(block);
        return block;
}

/* The blocks that a reader may go on behind, and those that are known. */
static uint32_t model_find(uint64_t domain, const uint32_t *text, uint32_t count,
                           uint32_t *ret_known)
{
        uint32_t known = 0, end = 0;
        bool pages[TEXT_BLOCKS];

        for (; known < count / 16; known++) {
                block_t block = model_find_whole(domain, text, known * 16 + 16);
                bool all = true;

                if (block == BLOCK_NONE)
                        break;
                pages[known] = world.records[block].page;
                for (uint32_t i = first_seen(known * 16 + 16); i <= known; i++)
                        all &= pages[i];
                end = all ? known + 1 : end;
        }
        *ret_known = known;
        return end;
}

/* The most positions behind `begin` that a block with a window page has in common with the text. */
static uint32_t model_tail(uint64_t domain, const uint32_t *text, uint32_t begin, uint32_t count)
{
        uint32_t longest = 0;

        each_block(block)
        {
                const struct record *record = &world.records[block];
                uint32_t same = begin;

                if (!record->page || record->count <= begin || record->count > begin + 16 ||
                    !begins(record, domain, text, begin))
                        continue;
                while (same < count && same < record->count && record->text[same] == text[same])
                        same++;
                longest = same - begin > longest ? same - begin : longest;
        }
        return longest;
}

static struct prefix_hit find(uint64_t domain, const uint32_t *text, uint32_t count,
                              block_t *blocks)
{
        struct prefix_reader reader = { .domains = { domain }, .count = 1 };
        uint32_t known, whole = model_find(domain, text, count, &known);
        struct prefix_hit hit;

        reader.needs_no_windows = true;
        prefix_find(&world.prefix, &reader, text, count, blocks, &hit);
        assert_int_equal(hit.whole_count, known);
        assert_int_equal(hit.known_count, known);

        reader.needs_no_windows = false;
        prefix_find(&world.prefix, &reader, text, count, blocks, &hit);
        assert_int_equal(hit.whole_count, whole);
        assert_int_equal(hit.known_count, known);
        for (uint32_t i = 0; i < whole; i++)
                assert_int_equal(blocks[i], model_find_whole(domain, text, i * 16 + 16));
        assert_int_equal(hit.tail != BLOCK_NONE, hit.tail_count > 0);
        if (hit.tail != BLOCK_NONE)
                assert_true(world.records[hit.tail].page);
        if (whole == known)
                assert_int_equal(hit.tail_count, model_tail(domain, text, whole * 16, count));
        else
                assert_int_equal(hit.diverged_at, 0);
        deeds.hits += whole;
        deeds.shortened += whole && whole < known;
        deeds.none += !whole && known;
        deeds.tails += hit.tail_count > 0;
        return hit;
}

/* Texts of few kinds of blocks, some of them with one token that is another. */
static uint32_t make_text(uint32_t text[TEXT_MAX])
{
        for (uint32_t i = 0; i < TEXT_BLOCKS; i++) {
                memcpy(text + 16 * i, world.kinds[any(3) ? 0 : any(KINDS)], sizeof(*world.kinds));
                if (!any(8))
                        text[16 * i + any(16)] = any(3);
        }
        return 1 + any(TEXT_MAX);
}

static void begin(struct reader *reader)
{
        struct prefix_hit hit;

        *reader = (struct reader){ .domain = domains[any(DOMAINS)], .runs = true };
        reader->count = make_text(reader->text);
        hit = find(reader->domain, reader->text, reader->count, reader->blocks);
        reader->block_count = reader->inserted = hit.whole_count;
        reader->written = hit.whole_count * 16;
        reader->window_begin = first_seen(reader->written);
        reader->tail = hit.tail;
        for (uint32_t i = 0; i < hit.whole_count; i++)
                hold(reader->blocks[i]);
        for (uint32_t i = reader->window_begin; i < hit.whole_count; i++)
                hold_page(reader->blocks[i]);
        if (hit.tail == BLOCK_NONE)
                return;
        hold(hit.tail);
        hold_page(hit.tail);
}

static void drop_tail(struct reader *reader)
{
        if (reader->tail == BLOCK_NONE)
                return;
        release_page(reader->tail, any(2));
        release(reader->tail);
        reader->tail = BLOCK_NONE;
}

static void pass(struct reader *reader, uint32_t end)
{
        for (; reader->window_begin < end; reader->window_begin++)
                release_page(reader->blocks[reader->window_begin], any(2));
}

static void end(struct reader *reader)
{
        if (!reader->runs)
                return;
        drop_tail(reader);
        pass(reader, reader->block_count);
        while (reader->block_count)
                release(reader->blocks[--reader->block_count]);
        reader->runs = false;
}

static bool model_hand(struct record *own, struct record *same, bool held)
{
        if (!own->page || (!held && same->page))
                return true;
        if (same->page) {
                same->page_holders++;
                deeds.shared++;
                if (--own->page_holders == 0)
                        model_last_holder_left(own);
                return true;
        }
        if (own->page_holders != held) {
                deeds.refused++;
                return !held;
        }
        same->page = true;
        same->useful = own->useful;
        same->page_holders = own->page_holders;
        own->page_holders = 0;
        lose_page(own);
        if (!same->page_holders)
                model_last_holder_left(same);
        deeds.handed++;
        return true;
}

/* The reader goes on with the block `same` instead of its own, if the window page allows that. */
static bool use_instead(struct reader *reader, uint32_t index, block_t same)
{
        block_t own = reader->blocks[index];
        bool held = index >= reader->window_begin, may;

        hold(same);
        may = prefix_hand_window(&world.prefix, own, same, held, 1);
        assert_int_equal(may, model_hand(&world.records[own], &world.records[same], held));
        compare();
        release(may ? own : same);
        if (may)
                reader->blocks[index] = same;
        return may;
}

static void note_inserted(const struct reader *reader, uint32_t index, uint32_t count, block_t same)
{
        block_t own = reader->blocks[index];
        struct record *record = &world.records[own];

        if (same != own) {
                assert_int_equal(same, model_find_whole(reader->domain, reader->text, count));
                model_unname(own);
                return;
        }
        record->inserted = true;
        record->count = count;
        memcpy(record->text, reader->text, sizeof(record->text));
}

static bool is_named(const struct reader *reader, uint32_t index)
{
        return world.records[reader->blocks[index]].inserted &&
               world.records[reader->blocks[index]].count == 16 * (index + 1);
}

static void insert(struct reader *reader)
{
        while (reader->inserted * 16 < reader->written) {
                uint32_t index = reader->inserted, count = reader->written - index * 16;
                block_t parent = index ? reader->blocks[index - 1] : BLOCK_NONE, same;

                if (index && !is_named(reader, index - 1))
                        return;
                count = count < 16 ? count : 16;
                same = prefix_insert(&world.prefix, reader->domain, parent, reader->blocks[index],
                                     reader->text + index * 16, count);
                note_inserted(reader, index, index * 16 + count, same);
                compare();
                if (same != reader->blocks[index] && !use_instead(reader, index, same))
                        return;
                if (count < 16)
                        return;
                reader->inserted++;
        }
}

static void go_on(struct reader *reader)
{
        uint32_t left = reader->count - reader->written, more = 1 + any(any(2) ? 4 : 40);

        for (more = more < left ? more : left; more; more--) {
                if (reader->written == reader->block_count * 16) {
                        if (!prefix_available(&world.prefix) || !pages_left()) {
                                end(reader);
                                return;
                        }
                        reader->blocks[reader->block_count] = take(reader->domain);
                        reader->block_count++;
                }
                reader->written++;
        }
        if (any(2))
                drop_tail(reader);
        if (any(4))
                insert(reader);
        if (any(4)) {
                uint32_t seen = first_seen(reader->written + 1);

                pass(reader, seen < reader->block_count ? seen : reader->block_count);
        }
        if (reader->written == reader->count && !any(4))
                end(reader);
}

static void invalidate(block_t root)
{
        struct record old = world.records[root];

        prefix_invalidate(&world.prefix, root);
        each_block(block) if (old.inserted &&
                              (block == root ||
                               (old.count % 16 == 0 && world.records[block].count > old.count &&
                                begins(&world.records[block], old.domain, old.text, old.count))))
                model_unname(block);
}

static void move_pin(uint32_t number)
{
        block_t block = any(world.prefix.pool.total);

        if (!world.records[block].inserted)
                block = BLOCK_NONE;
        prefix_set_pin(&world.prefix, number + 1, block);
        world.pins[number] = block;
}

static void step(void)
{
        struct reader *reader = &world.readers[any(READERS)];

        switch (any(16)) {
        case 0:
                if (!any(8))
                        invalidate(any(world.prefix.pool.total));
                break;
        case 1:
                if (!any(4))
                        move_pin(any(PINS));
                break;
        case 2:
                if (!any(2))
                        end(reader);
                break;
        default:
                if (reader->runs)
                        go_on(reader);
                else
                        begin(reader);
        }
        deeds.steps++;
        compare();
}

static void live(uint32_t blocks, uint32_t pages, uint32_t window, uint32_t windows_max)
{
        struct prefix_conf conf = { .key = { blocks, pages },
                                    .pins = PINS,
                                    .window = window,
                                    .window_pages = pages,
                                    .windows_max = windows_max };

        memset(&world, 0, sizeof(world));
        for (uint32_t i = 0; i < PINS; i++)
                world.pins[i] = BLOCK_NONE;
        world.random = blocks * UINT64_C(1000) + pages;
        assert_int_equal(prefix_init(&world.prefix, &conf, blocks), 0);
        for (uint32_t i = 0; i < KINDS * 16; i++)
                world.kinds[i / 16][i % 16] = any(3);
        for (uint32_t i = 0; i < WORLD_STEPS; i++) {
                step();
                if (i % 8 == 0)
                        prefix_check(&world.prefix);
        }
        for (uint32_t i = 0; i < READERS; i++)
                end(&world.readers[i]);
        compare();
        prefix_check(&world.prefix);
        assert_int_equal(world.prefix.window_free.max - world.prefix.window_free.count -
                                 prefix_windows_cached(&world.prefix),
                         0);
        prefix_deinit(&world.prefix);
}

static void random_operations_match_a_linear_list(void **state)
{
        const uint32_t windows[] = { 1, 5, 16, 17, 33, 40, 200 };

        (void)state;
        memset(&deeds, 0, sizeof(deeds));
        for (uint32_t i = 0; i < 56; i++) {
                uint32_t blocks = BLOCKS_MAX - i / 7 * 4, pages = 4 + 5 * (i % 8);

                pages = pages < blocks ? pages : blocks;
                live(blocks, pages, windows[i % 7], i % 3 ? 0 : 1 + pages / 4);
        }
        assert_true(deeds.steps >= 150000);
        assert_true(deeds.hits > 5000 && deeds.tails > 2000);
        assert_true(deeds.shortened > 300 && deeds.none > 1000);
        assert_true(deeds.evictions > 5000 && deeds.useful_stayed > 1000);
        assert_true(deeds.pinned_stayed > 500 && deeds.pinned_went > 100);
        assert_true(deeds.over_first > 100 && deeds.lost > 500);
        assert_true(deeds.handed > 200 && deeds.refused > 50 && deeds.shared > 50);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_operations_match_a_linear_list),
        };

        return cmocka_run_group_tests_name("prefix-windows", tests, NULL, NULL);
}
