/*
 * The prefix index, compared with a list that has the whole text of each block.
 *
 * Readers come and go.  Each finds the known part of its text and holds it, takes blocks for
 * the rest, inserts them as it goes, and releases all, its last block first.  Pins are set and
 * removed at random.  One of the readers is the public, whose blocks no limit binds.  In most
 * worlds there is a limit to the blocks that users keep.
 *
 * The list is searched from one end to the other, and compares texts from their first token, so
 * it is too simple to be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"

enum {
        BLOCKS_MAX = 40,
        TEXT_BLOCKS = 6,
        TEXT_MAX = TEXT_BLOCKS * 16,
        READERS = 8,
        DOMAINS = 4,
        PINS = 5,
        KINDS = 4, /* of blocks that texts are made of */
        WORLD_STEPS = 6000,
};

static const uint64_t domains[DOMAINS] = { 1000, 0, PREFIX_EVERYONE, UINT32_MAX };

/* The known facts about a block. */
struct record {
        bool inserted, dealt;
        uint64_t domain;                /* its owner, once it was given out */
        uint32_t text[TEXT_MAX], count; /* from the beginning, so far as it was inserted */
        uint32_t holders;
        uint64_t released, since; /* its last release, its first insertion: both counted */
};

struct reader {
        uint64_t domain;
        uint32_t text[TEXT_MAX], count;
        uint32_t written, inserted; /* positions, and whole blocks that it is done with */
        block_t blocks[TEXT_BLOCKS], tail;
        uint32_t block_count;
        bool runs, is_quiet; /* is_quiet: it names nothing */
};

/* Counts events, so that a test that did nothing is noticed. */
struct deeds {
        uint64_t steps, wholes, tails, evictions, inner_evictions, same, instead, invalidated,
                nameless;
        uint64_t ties, across;
        uint64_t border, inside, several, ended, across_diverged;
        uint64_t spared, dragged, risen;
        uint64_t over_first, over_anchored, over_spared; /* for what users keep */
};

static struct world {
        struct prefix prefix;
        struct record records[BLOCKS_MAX];
        struct reader readers[READERS];
        block_t pins[PINS]; /* where they are, or BLOCK_NONE */
        uint32_t kinds[KINDS][16];
        uint32_t cached_max; /* the number of blocks that each user keeps; 0: no limit */
        uint64_t random, releases, names, evictions;
        uint64_t digest; /* of all that was answered */
} world;

static struct deeds deeds;

static uint32_t any(uint32_t below)
{
        world.random = world.random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        return (uint32_t)((world.random >> 33) % below);
}

static void note(uint64_t answer)
{
        world.digest = (world.digest ^ answer) * UINT64_C(0x100000001b3);
        world.digest ^= world.digest >> 29;
}

static bool same_text(const uint32_t *a, const uint32_t *b, uint32_t count)
{
        return !memcmp(a, b, count * sizeof(*a));
}

/* The block that holds exactly this text's end, or BLOCK_NONE. */
static block_t model_find_whole(uint64_t domain, const uint32_t *text, uint32_t count)
{
        for (block_t block = 0; block < world.prefix.pool.total; block++) {
                const struct record *record = &world.records[block];

                if (record->inserted && record->domain == domain && record->count == count &&
                    same_text(record->text, text, count))
                        return block;
        }
        return BLOCK_NONE;
}

/* How much of the text behind `begin` is in this block, if it is the one after `begin`. */
static uint32_t model_alike(const struct record *record, uint64_t domain, const uint32_t *text,
                            uint32_t begin, uint32_t count)
{
        uint32_t same = begin;

        if (!record->inserted || record->domain != domain || record->count <= begin ||
            record->count > begin + 16 || !same_text(record->text, text, begin))
                return 0;
        while (same < count && same < record->count && record->text[same] == text[same])
                same++;
        return same - begin;
}

/*
 * The number of tokens that this text and a block's known text have in common, from the
 * beginning on.
 */
static uint32_t model_common(const struct record *record, uint64_t domain, const uint32_t *text,
                             uint32_t count)
{
        uint32_t same = 0;

        if (!record->inserted || record->domain != domain)
                return 0;
        while (same < count && same < record->count && record->text[same] == text[same])
                same++;
        return same;
}

/*
 * Where a text diverges from the known texts.  Its longest known beginning is followed, in some
 * block, by another token than its own.  Returns that position.  Returns 0 if the text ends
 * there, or if nothing more or nothing at all is known.  Of several blocks, the one that was
 * inserted last counts.
 */
static uint32_t model_diverges(uint64_t domain, const uint32_t *text, uint32_t count,
                               uint32_t *ret_known)
{
        const struct record *newest = NULL;
        uint32_t at = 0, others = 0;

        for (block_t block = 0; block < world.prefix.pool.total; block++) {
                uint32_t same = model_common(&world.records[block], domain, text, count);

                at = same > at ? same : at;
        }
        deeds.ended += at && at == count;
        if (!at || at == count)
                return 0;
        /* the blocks behind a public block have many users */
        if (at % 16 == 0 && prefix_is_public(domain))
                return 0;
        for (block_t block = 0; block < world.prefix.pool.total; block++) {
                const struct record *record = &world.records[block];

                if (model_common(record, domain, text, count) < at || record->count <= at ||
                    (record->count - 1) / 16 != at / 16)
                        continue;
                others += newest && record->text[at] != newest->text[at];
                if (!newest || record->since > newest->since)
                        newest = record;
        }
        if (!newest)
                return 0;
        deeds.border += at % 16 == 0;
        deeds.inside += at % 16 != 0;
        deeds.several += others > 0;
        *ret_known = newest->text[at];
        return at;
}

static bool model_follows(const struct record *child, const struct record *parent)
{
        return child->inserted && parent->inserted && child->domain == parent->domain &&
               parent->count % 16 == 0 && child->count > parent->count &&
               child->count <= parent->count + 16 &&
               same_text(child->text, parent->text, parent->count);
}

static bool model_has_children(block_t block)
{
        for (block_t child = 0; child < world.prefix.pool.total; child++)
                if (model_follows(&world.records[child], &world.records[block]))
                        return true;
        return false;
}

static bool model_is_anchored(block_t block)
{
        for (uint32_t i = 0; i < PINS; i++)
                if (world.pins[i] == block)
                        return true;
        return false;
}

static uint32_t model_kept_by(uint64_t domain)
{
        uint32_t count = 0;

        for (block_t block = 0; block < world.prefix.pool.total; block++)
                count += world.records[block].dealt && world.records[block].domain == domain &&
                         world.records[block].inserted && !world.records[block].holders;
        return count;
}

static uint32_t model_held_by(uint64_t domain)
{
        uint32_t count = 0;

        for (block_t block = 0; block < world.prefix.pool.total; block++)
                count += world.records[block].domain == domain && world.records[block].holders > 0;
        return count;
}

/* Does its owner keep more than one user may, now? */
static bool model_is_over(block_t block)
{
        uint64_t domain = world.records[block].domain;

        return world.cached_max && domain <= UINT32_MAX && model_kept_by(domain) > world.cached_max;
}

/*
 * A number for each reason to keep a block, the strongest first.  Otherwise the block that was
 * released first goes first.
 */
static uint32_t model_stays(block_t block, bool limited)
{
        return 2 * model_is_anchored(block) + !(limited && model_is_over(block));
}

static block_t model_first(bool limited)
{
        block_t victim = BLOCK_NONE;

        for (block_t block = 0; block < world.prefix.pool.total; block++) {
                const struct record *record = &world.records[block];
                uint32_t stays, others;

                if (record->holders || !record->inserted || model_has_children(block))
                        continue;
                stays = model_stays(block, limited);
                others = victim == BLOCK_NONE ? UINT32_MAX : model_stays(victim, limited);
                if (stays < others ||
                    (stays == others && record->released < world.records[victim].released))
                        victim = block;
        }
        return victim;
}

/* Is there a leaf that was released before this one, and has, or has not, a pin? */
static bool model_is_older(block_t than, bool pinned)
{
        for (block_t block = 0; block < world.prefix.pool.total; block++) {
                const struct record *record = &world.records[block];

                if (!record->holders && record->inserted && !model_has_children(block) &&
                    model_is_anchored(block) == pinned &&
                    record->released < world.records[than].released)
                        return true;
        }
        return false;
}

static block_t model_victim(void)
{
        block_t victim = model_first(true);
        bool pinned = model_is_anchored(victim), over = model_is_over(victim);

        deeds.dragged += pinned;
        deeds.spared += !pinned && model_is_older(victim, true);
        deeds.over_first += over && !pinned && model_first(false) != victim;
        deeds.over_anchored += over && pinned && model_first(false) != victim;
        for (block_t block = 0; block < world.prefix.pool.total && !pinned && !over; block++)
                if (!world.records[block].holders && world.records[block].inserted &&
                    !model_has_children(block) && model_is_over(block)) {
                        deeds.over_spared++; /* for its pin */
                        break;
                }
        return victim;
}

/*
 * Forgets the text of this block: its pins move to the nearest block before it that is still
 * known.
 */
static void model_unname(block_t block)
{
        struct record *record = &world.records[block];

        if (!record->inserted)
                return;
        record->inserted = false;
        for (uint32_t i = 0; i < PINS; i++) {
                uint32_t count = (record->count - 1) / 16 * 16;

                if (world.pins[i] != block)
                        continue;
                world.pins[i] = BLOCK_NONE;
                for (; count && world.pins[i] == BLOCK_NONE; count -= 16)
                        world.pins[i] = model_find_whole(record->domain, record->text, count);
                deeds.risen += world.pins[i] != BLOCK_NONE;
        }
}

static uint32_t model_free(void)
{
        uint32_t count = 0;

        for (block_t block = 0; block < world.prefix.pool.total; block++)
                count += !world.records[block].holders && !world.records[block].inserted;
        return count;
}

static void compare(void)
{
        uint32_t in_use = 0, cached = 0;

        for (block_t block = 0; block < world.prefix.pool.total; block++) {
                const struct record *record = &world.records[block];

                in_use += record->holders > 0;
                cached += record->inserted && !record->holders;
                assert_int_equal(world.prefix.pool.ref_counts[block], record->holders);
                assert_int_equal(world.prefix.nodes[block].filled,
                                 record->inserted ? (record->count - 1) % 16 + 1 : 0);
        }
        assert_int_equal(world.prefix.pool.cached_count, cached);
        assert_int_equal(kvpool_in_use(&world.prefix.pool), in_use);
        assert_int_equal(world.prefix.pool.free.count, model_free());
        assert_int_equal(prefix_available(&world.prefix), world.prefix.pool.total - in_use);
        assert_int_equal(world.prefix.evictions, world.evictions);
        for (uint32_t i = 0; i < DOMAINS; i++) {
                assert_int_equal(prefix_in_use_by(&world.prefix, domains[i]),
                                 model_held_by(domains[i]));
                assert_int_equal(prefix_cached_by(&world.prefix, domains[i]),
                                 model_kept_by(domains[i]));
        }
        assert_int_equal(prefix_in_use_by(&world.prefix, 1), 0); /* a user that was never there */
        assert_int_equal(prefix_cached_by(&world.prefix, 1), 0);
        for (uint32_t i = 0; i < PINS; i++)
                assert_int_equal(world.prefix.pins[i + 1].block, world.pins[i]);
}

static void hold(block_t block)
{
        prefix_ref(&world.prefix, block);
        world.records[block].holders++;
}

static void release(block_t block)
{
        prefix_unref(&world.prefix, block);
        assert_true(world.records[block].holders > 0);
        if (--world.records[block].holders == 0)
                world.records[block].released = ++world.releases;
}

static block_t take(uint64_t domain)
{
        block_t victim = model_free() ? BLOCK_NONE : model_victim();
        block_t block = prefix_allocate(&world.prefix, domain);

        note(block);
        if (victim != BLOCK_NONE) {
                assert_int_equal(block, victim);
                world.evictions++;
                deeds.evictions++;
                deeds.inner_evictions += world.records[victim].count % 16 == 0;
        }
        assert_int_equal(world.records[block].holders, 0);
        assert_true(victim != BLOCK_NONE || !world.records[block].inserted);
        model_unname(block);
        world.records[block].holders = 1;
        world.records[block].dealt = true;
        world.records[block].domain = domain;
        return block;
}

static void compare_divergence(uint64_t domain, const uint32_t *text, uint32_t count,
                               const struct prefix_hit *hit)
{
        uint32_t known = 0, at = model_diverges(domain, text, count, &known);

        assert_int_equal(hit->diverged_at, at);
        note(at);
        for (uint32_t other = 0; other < DOMAINS && !at; other++)
                deeds.across_diverged += model_diverges(domains[other], text, count, &known) > 0;
        if (!at)
                return;
        assert_int_equal(hit->diverged_cached_token, known);
        assert_int_not_equal(known, text[at]);
        note(known);
}

static struct prefix_hit find(uint64_t domain, const uint32_t *text, uint32_t count,
                              block_t *blocks)
{
        uint32_t longest = 0, ties = 0, whole = 0;
        struct prefix_hit hit;

        prefix_find(&world.prefix, &(struct prefix_reader){ .domains = { domain }, .count = 1 },
                    text, count, blocks, &hit);
        for (; whole < count / 16; whole++) {
                block_t block = model_find_whole(domain, text, whole * 16 + 16);

                if (block == BLOCK_NONE)
                        break;
                assert_true(whole < hit.whole_count);
                assert_int_equal(blocks[whole], block);
                note(block);
        }
        assert_int_equal(hit.whole_count, whole);

        for (block_t block = 0; block < world.prefix.pool.total; block++) {
                uint32_t alike =
                        model_alike(&world.records[block], domain, text, whole * 16, count);

                ties = alike == longest ? ties + 1 : alike > longest ? 0 : ties;
                longest = alike > longest ? alike : longest;
        }
        assert_int_equal(hit.tail_count, longest);
        if (!longest)
                assert_int_equal(hit.tail, BLOCK_NONE);
        else /* which of several is open */
                assert_int_equal(
                        model_alike(&world.records[hit.tail], domain, text, whole * 16, count),
                        longest);
        note(longest);
        compare_divergence(domain, text, count, &hit);
        deeds.wholes += whole;
        deeds.tails += longest > 0;
        deeds.ties += longest && ties;
        for (uint32_t other = 0; other < DOMAINS; other++)
                deeds.across += !whole && domains[other] != domain && count >= 16 &&
                                model_find_whole(domains[other], text, 16) != BLOCK_NONE;
        return hit;
}

/* Texts of few kinds of blocks, some of them with one token that is another. */
static uint32_t make_text(uint32_t text[TEXT_MAX])
{
        for (uint32_t i = 0; i < TEXT_BLOCKS; i++) {
                memcpy(text + 16 * i, world.kinds[any(any(2) ? 2 : KINDS)], sizeof(*world.kinds));
                if (!any(6))
                        text[16 * i + any(16)] = any(3);
        }
        return 1 + any(TEXT_MAX);
}

static void begin(struct reader *reader)
{
        struct prefix_hit hit;

        *reader = (struct reader){ .domain = domains[any(DOMAINS)],
                                   .tail = BLOCK_NONE,
                                   .runs = true };
        reader->count = make_text(reader->text);
        reader->is_quiet = !any(8);
        /* Of some, only a beginning is known when they come. */
        hit = find(reader->domain, reader->text, any(4) ? reader->count : 1 + any(reader->count),
                   reader->blocks);
        for (uint32_t i = 0; i < hit.whole_count; i++)
                hold(reader->blocks[i]);
        reader->block_count = reader->inserted = hit.whole_count;
        reader->written = hit.whole_count * 16;
        if (hit.tail != BLOCK_NONE && any(8)) {
                reader->tail = hit.tail;
                hold(hit.tail);
        }
}

static void drop_tail(struct reader *reader)
{
        if (reader->tail != BLOCK_NONE)
                release(reader->tail);
        reader->tail = BLOCK_NONE;
}

static void end(struct reader *reader)
{
        drop_tail(reader);
        while (reader->block_count)
                release(reader->blocks[--reader->block_count]);
        reader->runs = false;
}

/* The result that prefix_insert() must return, and its effect on the list. */
static block_t model_name(const struct reader *reader, uint32_t index, uint32_t count)
{
        struct record *own = &world.records[reader->blocks[index]];
        uint32_t whole = index * 16 + count;
        block_t same;

        if (index) {
                const struct record *parent = &world.records[reader->blocks[index - 1]];

                if (!parent->inserted || parent->count != index * 16) {
                        deeds.nameless++;
                        return reader->blocks[index];
                }
        }
        if (own->inserted && own->count == whole)
                return reader->blocks[index];
        if (count == 16) {
                same = model_find_whole(reader->domain, reader->text, whole);
                if (same != BLOCK_NONE) {
                        model_unname(reader->blocks[index]);
                        return same;
                }
        }
        if (!own->inserted)
                own->since = ++world.names;
        own->inserted = true;
        own->count = whole;
        memcpy(own->text, reader->text, sizeof(own->text));
        return reader->blocks[index];
}

static void name(struct reader *reader)
{
        while (reader->inserted * 16 < reader->written) {
                uint32_t index = reader->inserted, count = reader->written - index * 16;
                block_t parent = index ? reader->blocks[index - 1] : BLOCK_NONE;
                block_t own = reader->blocks[index], same;

                count = count < 16 ? count : 16;
                same = prefix_insert(&world.prefix, reader->domain, parent, own,
                                     reader->text + index * 16, count);
                assert_int_equal(same, model_name(reader, index, count));
                note(same);
                if (same != own) {
                        deeds.same++;
                        /* to ask again */
                        if (!any(4))
                                return;
                        if (any(4)) { /* else it goes on with its own, which has no name */
                                hold(same);
                                release(own);
                                reader->blocks[index] = same;
                                deeds.instead++;
                        }
                }
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
                        if (!prefix_available(&world.prefix)) {
                                end(reader);
                                return;
                        }
                        reader->blocks[reader->block_count++] = take(reader->domain);
                }
                reader->written++;
        }
        if (any(2))
                drop_tail(reader);
        if (!reader->is_quiet && any(4))
                name(reader);
        if (reader->written == reader->count && !any(4))
                end(reader);
}

static void invalidate(block_t root)
{
        struct record old = world.records[root];

        prefix_invalidate(&world.prefix, root);
        if (!old.inserted)
                return;
        deeds.invalidated++;
        for (block_t block = 0; block < world.prefix.pool.total; block++) {
                struct record *record = &world.records[block];

                /* A part of a block has no others behind it, whatever begins alike. */
                if (block == root ||
                    (old.count % 16 == 0 && record->domain == old.domain &&
                     record->count > old.count && same_text(record->text, old.text, old.count)))
                        model_unname(block);
        }
}

static void pin(uint32_t index)
{
        block_t block = any(world.prefix.pool.total);

        if (!world.records[block].inserted)
                block = BLOCK_NONE;
        prefix_set_pin(&world.prefix, index + 1, block);
        world.pins[index] = block;
}

static void step(void)
{
        struct reader *reader = &world.readers[any(READERS)];
        block_t blocks[TEXT_BLOCKS];
        uint32_t text[TEXT_MAX], count;

        switch (any(16)) {
        case 0:
                count = make_text(text);
                find(domains[any(DOMAINS)], text, count, blocks);
                break;
        case 1:
                if (!any(6))
                        invalidate(any(world.prefix.pool.total));
                break;
        case 3:
                if (!any(4))
                        pin(any(PINS));
                break;
        case 2:
                if (reader->runs && !any(2))
                        end(reader);
                break;
        default:
                if (reader->runs)
                        go_on(reader);
                else
                        begin(reader);
        }
        deeds.steps++;
}

/* Returns a digest of all answers. */
static uint64_t live(uint32_t blocks, uint32_t cached_max, uint64_t seed, uint64_t mask0,
                     uint64_t mask1)
{
        struct prefix_conf conf = { .key = { seed, ~seed },
                                    .ignored_hash_bits = { ~mask0, ~mask1 },
                                    .pins = PINS,
                                    .cached_max = cached_max };

        memset(&world, 0, sizeof(world));
        for (uint32_t i = 0; i < PINS; i++)
                world.pins[i] = BLOCK_NONE;
        world.random = seed;
        world.cached_max = cached_max;
        assert_int_equal(prefix_init(&world.prefix, &conf, blocks), 0);
        for (uint32_t i = 0; i < KINDS * 16; i++)
                world.kinds[i / 16][i % 16] = any(3);
        memcpy(world.kinds[1], world.kinds[0], 4 * sizeof(**world.kinds)); /* two begin alike */

        for (uint32_t i = 0; i < WORLD_STEPS; i++) {
                step();
                compare();
                if (i % 8 == 0)
                        prefix_check(&world.prefix);
        }
        for (uint32_t i = 0; i < READERS; i++)
                end(&world.readers[i]);
        prefix_check(&world.prefix);
        compare();
        prefix_deinit(&world.prefix);
        return world.digest;
}

static void random_operations_match_a_linear_list(void **state)
{
        (void)state;
        memset(&deeds, 0, sizeof(deeds));
        for (uint32_t blocks = 1; blocks <= BLOCKS_MAX; blocks++)
                live(blocks, blocks % 4 ? 1 + blocks / (4 * (blocks % 4)) : 0, blocks, UINT64_MAX,
                     UINT64_MAX);
        assert_true(deeds.steps >= 200000);
        assert_true(deeds.wholes > 5000 && deeds.tails > 5000 && deeds.ties > 1000);
        assert_true(deeds.across > 5000); /* queries about another domain's blocks */
        assert_true(deeds.evictions > 10000 && deeds.inner_evictions > 5000);
        assert_true(deeds.same > 500 && deeds.instead > 250);
        assert_true(deeds.invalidated > 500 && deeds.nameless > 500);
        assert_true(deeds.inside > 1000 && deeds.border > 500 && deeds.several > 500);
        assert_true(deeds.ended > 500 && deeds.across_diverged > 500);
        assert_true(deeds.spared > 500 && deeds.dragged > 100 && deeds.risen > 500);
        assert_true(deeds.over_first > 500 && deeds.over_anchored > 10 && deeds.over_spared > 50);
}

/* Where all names, or half of them, collide, everything is as where none do. */
static void hash_collisions_change_no_result(void **state)
{
        static const uint64_t masks[][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 } };

        (void)state;
        for (uint32_t i = 0; i < 6; i++) {
                uint32_t blocks = i < 3 ? 40 - i : 3 + 4 * i;
                uint64_t digest = live(blocks, i, 100 + i, UINT64_MAX, UINT64_MAX);

                assert_true(live(blocks, i, 100 + i, masks[i % 3][0], masks[i % 3][1]) == digest);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_operations_match_a_linear_list),
                cmocka_unit_test(hash_collisions_change_no_result),
        };

        return cmocka_run_group_tests_name("prefix-random", tests, NULL, NULL);
}
