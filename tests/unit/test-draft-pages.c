/*
 * A draft model reads few tokens again, and all streams get guesses: single facts, each in a small
 * world.  test-draft-worlds.c compares the guesses of random worlds.
 */
#include <string.h>

#include "tests/unit/draft-asks.h"

static void open_plain(uint32_t slots, uint32_t blocks, uint32_t context, uint32_t draft_context)
{
        world_open(&(struct sched_conf){ .slots = slots, .blocks = blocks, .context = context },
                   draft_context, VOCAB);
        fake.plain = world.windows = true;
        world.random = context + slots;
        world.stream_count = slots;
        for (uint32_t i = 0; i < slots; i++)
                world.streams[i] = (struct stream){ .serial = ++world.serials, .slot = NONE };
}

static void append_any(struct stream *s, uint32_t count)
{
        while (count--)
                stream_append(s, any_token());
}

/* The served model computes it, in the slot of its own number. */
static void settle(struct stream *s)
{
        while (!stream_can_ask(s)) {
                world_begin_step();
                if (s->slot == NONE) {
                        s->slot = (uint32_t)(s - world.streams);
                        stream_find_blocks(s, TABLE_MAX);
                }
                stream_plan(s);
                world_run_step();
                stream_name_blocks(s, 100);
        }
}

/* A stream asks again and again.  Returns after how many steps it has its first guess. */
static uint32_t ask_alone(struct stream *s, uint32_t *ret_rows)
{
        uint32_t steps = 0;

        for (*ret_rows = 0;;) {
                struct round round;

                round_begin(&round);
                round_add(&round, s, 1);
                round_ask_all(&round);
                *ret_rows += round.rows;
                if (s->guess_count || !round.rows)
                        return steps + (s->guess_count > 0);
                steps += round.steps;
        }
}

static void a_lone_sequence_is_read_128_rows_at_once(void **state)
{
        uint32_t rows;

        (void)state;
        for (uint32_t count = 1; count < 600; count += count < 40 ? 1 : 7) {
                struct stream *s = world.streams;

                open_plain(1, TABLE_MAX, CONTEXT_MAX, CONTEXT_MAX);
                append_any(s, count);
                settle(s);
                assert_int_equal(draft_model_missing(world.draft_model, 0, s->count), s->count - 1);
                assert_true(ask_alone(s, &rows) <= (s->count + 127) / 128);
                assert_int_equal(rows, s->count);
                assert_int_equal(draft_model_missing(world.draft_model, 0, s->count), 0);
                world_close();
        }
}

static void a_sibling_reads_no_whole_block_again(void **state)
{
        uint32_t rows;

        (void)state;
        for (uint32_t count = 1; count < 300; count += count < 40 ? 1 : 7) {
                struct stream *first = world.streams, *second = first + 1;

                open_plain(2, TABLE_MAX, CONTEXT_MAX, CONTEXT_MAX);
                append_any(first, count);
                settle(first);
                assert_true(ask_alone(first, &rows));
                for (uint32_t i = 0; i < count; i++)
                        stream_append(second, first->tokens[i]);
                settle(second);
                assert_true(draft_model_missing(world.draft_model, 1, second->count) <= 16);
                assert_int_equal(ask_alone(second, &rows), 1);
                assert_true(rows <= 17);
                world_close();
        }
}

/* The served model computes its newest token and its guesses. */
static void answer(struct stream *s)
{
        world_begin_step();
        stream_plan(s);
        world_run_step();
        stream_name_blocks(s, 100);
}

/*
 * The rows that are missing after an answer of which so many of `guesses` were right.  The last
 * guess has no row.  A block that is whole by now, but for a position, is computed again.
 */
static uint32_t missing(const struct stream *s, uint32_t before, uint32_t guesses)
{
        uint32_t right = s->count - before - 1, tail = (s->count - 1) / 16 * 16;
        uint32_t done = before + least(right, guesses - 1);

        return s->count - (done < tail ? done / 16 * 16 : done);
}

static void a_right_guess_is_not_computed_again(void **state)
{
        struct stream *s = world.streams, *second = s + 1;
        uint32_t rows;

        (void)state;
        open_plain(2, 2 * TABLE_MAX, CONTEXT_MAX, CONTEXT_MAX);
        append_any(s, 3);
        settle(s);
        assert_true(ask_alone(s, &rows));
        while (s->count < CONTEXT_MAX - 2 * DRAFT_MAX) {
                uint32_t guesses = s->guess_count, before = s->count;
                struct round round;

                answer(s);
                round_begin(&round);
                round_add(&round, s, 1 + any(DRAFT_MAX));
                assert_int_equal(round_ask_once(&round), missing(s, before, guesses));
                round.asks[0].more = round.most[0] > 1;
                round_ask_all(&round);
                assert_int_equal(s->guess_count, round.most[0]);
        }
        /* ... and whole blocks of the answer are there for others. */
        for (uint32_t i = 0; i < s->count; i++)
                stream_append(second, s->tokens[i]);
        settle(second);
        assert_int_equal(ask_alone(second, &rows), 1);
        assert_true(rows <= 17);
        world_close();
}

/* Its text is the guess at the end of the last one's text. */
static void another_request_in_a_slot_begins_with_nothing(void **state)
{
        struct stream *s = world.streams;
        struct round round;
        uint32_t rows;

        (void)state;
        open_plain(1, TABLE_MAX, CONTEXT_MAX, CONTEXT_MAX);
        append_any(s, 17);
        settle(s);
        round_begin(&round);
        round_add(&round, s, DRAFT_MAX);
        round_ask_all(&round);
        stream_leave(s);
        s->serial = ++world.serials;
        for (s->count = 0; s->count < 10;)
                stream_append(s, s->guess[s->count]);
        settle(s);
        assert_int_equal(ask_alone(s, &rows), 1);
        assert_int_equal(rows, s->count);
        world_close();
}

/* It comes first in the list, and more than a step of it is missing. */
static void a_long_prompt_takes_no_row_from_a_guess(void **state)
{
        struct stream *s = world.streams;
        struct round round;

        (void)state;
        open_plain(2, TABLE_MAX, CONTEXT_MAX, CONTEXT_MAX);
        append_any(s, 400);
        append_any(s + 1, 20);
        settle(s);
        settle(s + 1);
        round_begin(&round);
        round_add(&round, s, DRAFT_MAX);
        round_add(&round, s + 1, DRAFT_MAX);
        round.asks[0].more = false;
        assert_int_equal(round_ask_once(&round), s[1].count);
        round.asks[0].more = true;
        assert_in_range(round_ask_once(&round), 100, fake.conf.rows_max);
        assert_int_equal(round.asks[1].count, 2);
        assert_true(round.asks[1].more && !round.asks[0].more && round.asks[0].reads);
        world_close();
}

/* Others, which come before it in the list, have two rows each, and leave none. */
static void a_guess_without_space_for_its_row_is_the_last(void **state)
{
        struct round round;
        uint32_t others;

        (void)state;
        open_plain(SLOTS_MAX, 2 * SLOTS_MAX, 48, 48);
        others = fake.conf.rows_max / 2;
        assert_true(fake.conf.rows_max % 2 == 0 && others < SLOTS_MAX);
        round_begin(&round);
        for (uint32_t i = 0; i <= others; i++) {
                append_any(&world.streams[i], 1);
                settle(&world.streams[i]);
                round_add(&round, &world.streams[i], DRAFT_MAX);
                round.asks[i].more = i == others;
        }
        assert_int_equal(round_ask_once(&round), 2);
        for (uint32_t i = 0; i < others; i++)
                round.asks[i].more = true;
        assert_int_equal(round_ask_once(&round), fake.conf.rows_max);
        assert_int_equal(round.asks[others].count, 1);
        assert_false(round.asks[others].more);
        world_close();
}

/* Every second block becomes another one, which has the same content and is not read. */
static void gaps_between_whole_blocks_are_read(void **state)
{
        uint32_t rows;

        (void)state;
        for (uint32_t count = 40; count < 500; count += 23) {
                struct stream *s = world.streams;

                open_plain(1, 2 * TABLE_MAX, CONTEXT_MAX, CONTEXT_MAX);
                append_any(s, count);
                settle(s);
                assert_true(ask_alone(s, &rows));
                world_begin_step();
                for (uint32_t i = count % 2; (i + 1) * 16 <= s->computed; i += 2) {
                        uint32_t to = block_take();

                        block_copy(s->blocks[i], to);
                        stream_set_block(s, i, to);
                }
                world_run_step();
                assert_true(ask_alone(s, &rows) <= s->count / 16 + 2);
                assert_int_equal(s->guess_count, 1);
                assert_true(rows <= (s->count / 16 + 1) / 2 * 16 + 16);
                world_close();
        }
}

static void a_sequence_has_no_guesses_beyond_the_context_of_the_draft_model(void **state)
{
        (void)state;
        for (uint32_t count = 20; count < 60; count++) {
                struct stream *s = world.streams;
                struct round round;

                open_plain(1, TABLE_MAX, CONTEXT_MAX, 40);
                append_any(s, count);
                settle(s);
                round_begin(&round);
                round_add(&round, s, DRAFT_MAX);
                round_ask_all(&round);
                assert_int_equal(s->guess_count,
                                 s->count > 40 ? 0 : least(40 - s->count + 1, DRAFT_MAX));
                assert_true(s->count <= 40 || !round.rows);
                if (s->count > 40)
                        assert_int_equal(draft_model_missing(world.draft_model, 0, s->count),
                                         UINT32_MAX);
                world_close();
        }
}

/* Returns how many have the guesses that they wanted. */
static uint32_t ask_each(uint32_t most)
{
        uint32_t full = 0;
        struct round round;

        round_begin(&round);
        for (uint32_t i = 0; i < world.stream_count; i++)
                round_add(&round, &world.streams[i], most);
        round_ask_all(&round);
        for (uint32_t i = 0; i < world.stream_count; i++)
                full += world.streams[i].guess_count == most;
        return full;
}

/* Though all others ask again and again, each is read sooner or later. */
static void all_slots_together_get_guesses(void **state)
{
        uint32_t rounds = 0;

        (void)state;
        open_plain(SLOTS_MAX, 2 * SLOTS_MAX, 48, 48);
        for (uint32_t i = 0; i < SLOTS_MAX; i++) {
                append_any(&world.streams[i], 1 + i % 25);
                settle(&world.streams[i]);
        }
        while (ask_each(DRAFT_MAX) < SLOTS_MAX)
                assert_true(++rounds < SLOTS_MAX);
        assert_true(rounds > 2);
        world_close();
}

/* The changes of their page tables do not fit in one step. */
static void long_sequences_that_begin_alike_are_guessed_for_together(void **state)
{
        struct stream *first = world.streams;
        uint32_t rounds = 0, rows;

        (void)state;
        memset(&deeds, 0, sizeof(deeds));
        open_plain(12, 200, CONTEXT_MAX, CONTEXT_MAX);
        append_any(first, 60 * 16 + 3);
        settle(first);
        assert_true(ask_alone(first, &rows));
        for (uint32_t i = 1; i < 12; i++) {
                for (uint32_t j = 0; j < 60 * 16 + 2; j++)
                        stream_append(first + i, first->tokens[j]);
                settle(first + i);
        }
        while (ask_each(DRAFT_MAX) < 12)
                assert_true(++rounds < 12);
        assert_true(rounds > 1 && deeds.waits > 11);
        world_close();
}

static void a_lost_model_is_an_error(void **state)
{
        struct round round;

        (void)state;
        open_plain(1, TABLE_MAX, CONTEXT_MAX, CONTEXT_MAX);
        append_any(world.streams, 20);
        settle(world.streams);
        round_begin(&round);
        round_add(&round, world.streams, 1);
        fake.lost = true;
        assert_true(draft_model_step(world.draft_model, round.asks, round.count) < 0);
        world_close();
}

#define TEST(name) cmocka_unit_test_teardown(name, world_end)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_lone_sequence_is_read_128_rows_at_once),
                TEST(a_sibling_reads_no_whole_block_again),
                TEST(a_right_guess_is_not_computed_again),
                TEST(another_request_in_a_slot_begins_with_nothing),
                TEST(a_guess_without_space_for_its_row_is_the_last),
                TEST(a_long_prompt_takes_no_row_from_a_guess),
                TEST(gaps_between_whole_blocks_are_read),
                TEST(a_sequence_has_no_guesses_beyond_the_context_of_the_draft_model),
                TEST(all_slots_together_get_guesses),
                TEST(long_sequences_that_begin_alike_are_guessed_for_together),
                TEST(a_lost_model_is_an_error),
        };

        return cmocka_run_group_tests_name("draft-pages", tests, NULL, NULL);
}
