/*
 * Each guess of a draft model, in random worlds, compared with a model that computes everything
 * again.
 *
 * A scheduler that does everything at random deals with the blocks of the served model: streams
 * begin alike, share whole blocks and parts of blocks, write to copies, lose their slots and come
 * back to others, and find blocks in the pool or in a swap.
 */
#include <string.h>

#include "tests/unit/draft-asks.h"

#define WORLDS 400u
#define TURNS  240u

/* ---- streams come and find blocks ---- */

/* Another request, whose text may begin as that of another one. */
static void begin(struct stream *s)
{
        const struct stream *other = &world.streams[any(world.stream_count)];
        uint32_t most = world.sched.context / 2, same;

        for (uint32_t i = 0; i < world.sched.slots; i++)
                if (world.seats[i].serial == s->serial)
                        world.seats[i].serial = 0;
        same = other == s || chance(30) ? 0 : any(least(other->count, most) + 1);
        s->serial = ++world.serials;
        s->slot = NONE;
        s->count = 0;
        s->asks = any(2) ? 30 : 90;
        for (uint32_t i = 0; i < same; i++)
                stream_append(s, other->tokens[i]);
        for (uint32_t i = any(chance(70) ? 40 : 8) + 1; i && s->count < most; i--)
                stream_append(s, any_token());
}

/* How many tokens behind `at` are the stream's, too; it computes its last one in any case. */
static uint32_t alike(const struct stream *s, uint32_t at, const uint32_t *tokens, uint32_t count)
{
        uint32_t same = 0;

        while (same < count && at + same + 1 < s->count && s->tokens[at + same] == tokens[same])
                same++;
        return same;
}

/* The block that some stream is about to fill, or a known one, whose beginning is the next part. */
static uint32_t find_part(const struct stream *s, uint32_t *ret_same)
{
        uint32_t at = s->computed, i = any(world.stream_count);
        const struct stream *other = &world.streams[i];

        *ret_same = 0;
        if (other != s && other->computed > at && other->served[at] == s->served[at])
                *ret_same = alike(s, at, other->tokens + at, least(16, other->computed - at));
        if (*ret_same)
                return other->blocks[at / 16];
        for (i = 0; i < world.sched.blocks && !*ret_same; i++)
                if (world.blocks[i].known && world.blocks[i].before == s->served[at])
                        *ret_same = alike(s, at, world.blocks[i].tokens, 16);
        return i - 1;
}

/* A copy now, or a copy when somebody writes to it while others have it. */
static void share_part(struct stream *s)
{
        uint32_t same, block = find_part(s, &same), to = block;

        if (!same)
                return;
        world.blocks[block].refs++;
        if (any(2)) {
                deeds.shared_parts++;
        } else if (blocks_unused()) {
                to = block_take();
                block_copy(block, to);
                world.blocks[block].refs--;
                deeds.parts++;
        }
        stream_set_block(s, s->block_count, to);
        s->computed += same;
}

/* A window page may be missing for a block that was found: its rows are computed again. */
static void enter(struct stream *s, uint32_t slot)
{
        s->slot = slot;
        deeds.returned += world.seats[slot].serial == s->serial && world.seats[slot].begun;
        stream_find_blocks(s, chance(20) ? any(TABLE_MAX) : TABLE_MAX);
        if (world.windows && s->computed && chance(30)) {
                s->again = s->computed;
                s->computed = any(s->again);
                deeds.again++;
        } else if (chance(80)) {
                share_part(s);
        }
}

/* A whole block is another one with the same content from now on. */
static void replace(struct stream *s)
{
        uint32_t whole = s->computed / 16, index, to;

        if (!whole)
                return;
        index = any(whole);
        to = block_find(0, world.sched.blocks, s->served[(index + 1) * 16], s->blocks[index]);
        if (to != NONE) {
                world.blocks[to].refs++;
        } else if (blocks_unused()) {
                to = block_take();
                block_copy(s->blocks[index], to);
        } else {
                return;
        }
        stream_set_block(s, index, to);
        deeds.replaced++;
}

/* ---- turns ---- */

static void ask_some(void)
{
        uint32_t first = any(world.stream_count);
        struct round round;

        round_begin(&round);
        for (uint32_t i = 0; i < world.stream_count; i++) {
                struct stream *s = &world.streams[(first + i) % world.stream_count];

                if (stream_can_ask(s) && chance(s->asks))
                        round_add(&round, s, 1 + any(DRAFT_MAX));
        }
        for (uint32_t i = 1; i < round.count; i++)
                if (chance(10)) {
                        round.late[i] = true;
                        round.asks[i].more = false;
                }
        round_ask_all(&round);
}

static uint32_t free_slot(void)
{
        bool used[SLOTS_MAX] = { false };
        uint32_t first = any(world.sched.slots);

        for (uint32_t i = 0; i < world.stream_count; i++)
                if (world.streams[i].slot != NONE)
                        used[world.streams[i].slot] = true;
        for (uint32_t i = 0; i < world.sched.slots; i++)
                if (!used[(first + i) % world.sched.slots])
                        return (first + i) % world.sched.slots;
        return NONE;
}

static void happen(struct stream *s)
{
        if (s->count + DRAFT_MAX + 1 > world.sched.context || chance(1)) {
                stream_leave(s);
                begin(s);
                deeds.ended++;
        } else if (s->slot != NONE && chance(3)) {
                stream_leave(s);
                deeds.left++;
        }
}

static void turn(void)
{
        uint32_t count = world.stream_count, first = any(count), slot;

        world_begin_step();
        for (uint32_t i = 0; i < count; i++)
                happen(&world.streams[i]);
        for (uint32_t i = 0; i < count; i++) {
                struct stream *s = &world.streams[(first + i) % count];

                if (s->slot != NONE && chance(4))
                        replace(s);
                else if (s->slot == NONE && chance(50) && (slot = free_slot()) != NONE)
                        enter(s, slot);
        }
        for (uint32_t i = 0; i < count; i++)
                if (world.streams[(first + i) % count].slot != NONE && chance(90))
                        stream_plan(&world.streams[(first + i) % count]);
        world_run_step();
        for (uint32_t i = 0; i < count; i++)
                stream_name_blocks(&world.streams[i], 50);
        for (uint32_t i = any(3); i; i--)
                ask_some();
}

static void live(uint32_t seed)
{
        static const uint32_t own_vocabs[] = { VOCAB - 3, VOCAB, VOCAB + 7 };
        uint32_t slots = 1 + seed % 6, context = 100 + 37 * (seed % 5);
        struct sched_conf sched = { .slots = slots,
                                    .context = context,
                                    .blocks = 12 + seed % 7 * 3 + 4 * slots };

        world_open(&sched, seed % 4 ? context : context / 2 + seed % 16, own_vocabs[seed % 3]);
        world.random = world.seed = seed;
        world.swap = seed / 2 % 2 ? SWAP_MAX : 0;
        world.windows = seed / 3 % 2;
        world.stream_count = slots + WAITING_MAX;
        for (uint32_t i = 0; i < world.stream_count; i++)
                begin(&world.streams[i]);
        for (uint32_t i = 0; i < TURNS; i++)
                turn();
        world_close();
}

static void each_guess_follows_the_whole_sequence(void **state)
{
        (void)state;
        memset(&deeds, 0, sizeof(deeds));
        for (uint32_t seed = 0; seed < WORLDS; seed++)
                live(seed);
        assert_true(deeds.guesses > 100000 && deeds.right > 10000 && deeds.waits > 1000);
        assert_true(deeds.failed > 1000 && deeds.beyond > 1000 && deeds.too_long > 1000);
        assert_true(deeds.foreign > 1000 && deeds.left > 1000 && deeds.ended > 1000);
        assert_true(deeds.returned > 500 && deeds.found > 5000 && deeds.replaced > 500);
        assert_true(deeds.parts > 500 && deeds.shared_parts > 500 && deeds.written_copies > 200);
        assert_true(deeds.rewritten > 200 && deeds.again > 200 && deeds.evicted > 5000);
        assert_true(deeds.swapped_out > 1000 && deeds.swapped_in > 200);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(each_guess_follows_the_whole_sequence, world_end),
        };

        return cmocka_run_group_tests_name("draft-worlds", tests, NULL, NULL);
}
