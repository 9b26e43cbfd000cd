/*
 * Scenarios of blocks that move to the swap and back, in simulated milliseconds; test-stories.c
 * says how to read a line.  "swap out 2 in 1": two blocks move to the swap, and one moves back.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        sim_open_small(&sim, &conf);
}

/* Its first `shared` tokens are those of a text that all requests with this number know. */
static struct sim_request *say(const char *name, uint64_t uid, uint32_t text, uint32_t prompt,
                               uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = uid,
                                                   .text = text,
                                                   .shared = prompt,
                                                   .prompt = prompt,
                                                   .most = most });
}

/* The same for user 1, in the background: others of its user come first. */
static struct sim_request *say_later(const char *name, uint32_t text, uint32_t prompt,
                                     uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = 1,
                                                   .priority = REQUEST_BACKGROUND,
                                                   .text = text,
                                                   .shared = prompt,
                                                   .prompt = prompt,
                                                   .most = most });
}

static struct sched_counts counts(void)
{
        struct sched_counts counts;

        sched_count(sim.sched, &counts);
        return counts;
}

/* Lets time pass, and compares nothing of it. */
static void run_unseen(uint64_t ms)
{
        sim_run(&sim, sim.now_ns / SIM_MS + ms);
        sim.trace_count = 0;
        sim.trace[0] = 0;
}

/* The users 1 and 2 are known for answers of two tokens, so the forecast holds nobody back. */
static void teach_short(void)
{
        for (uint32_t i = 0; i < 48; i++) {
                say("t", 1 + i % 2, 100, 1, 2);
                if (i % 4 == 3)
                        run_unseen(100);
        }
}

/*
 * c's client does not read.  If both blocks came, only a row with a record would follow.  So one
 * comes, and c is stalled once it has computed the other.
 */
static void a_prompt_without_record_space_computes_its_last_block_in_the_swap(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 6, .rows = 64, .prefix.swap_blocks = 6 });
        say("a", 1, 2, 33, 1);
        sim_run(&sim, 20);
        say("b", 2, 4, 96, 1);
        sim_run(&sim, 40);
        assert_int_equal(counts().swapped_out, 2);
        sim.channels[0].capacity = 5;
        say("c", 1, 2, 33, 2);
        sim_submit(&sim, &(struct sim_ask){
                                 .name = "d", .uid = 1, .channel = 1, .prompt = 20, .most = 1 });
        sim_run(&sim, 60);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a 0..33*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill b 0..64; take 4 drop 0\n"
                         "[ 30] prefill b 64..96*; take 2 drop 0; swap out 2 in 0\n"
                         "[ 40] prefill c 16..32; prefill d 0..20*; end b length; retire b; "
                         "take 3 drop 6; share 1 copy 0; swap out 4 in 1\n"
                         "[ 50] stalled 1; end d length; retire d; take 0 drop 2; "
                         "sleep until 100\n"
                         "[ 60] stalled 1; sleep until 100\n"
                         "[100] end c stalled; retire c; take 0 drop 2\n");
        sim_close(&sim);
}

/* Reads a text and nothing else, and lets the time for it pass. */
static void read_text(uint64_t uid, uint32_t text, uint32_t count, uint32_t pin, uint64_t publish)
{
        sim_submit(&sim, &(struct sim_ask){ .name = "read",
                                            .uid = uid,
                                            .text = text,
                                            .shared = count,
                                            .prompt = count,
                                            .pin = pin,
                                            .publish = publish });
        run_unseen(100);
}

/* The blocks of this many positions are taken by one who was never there before. */
static void take_blocks(uint64_t uid, uint32_t text, uint32_t positions)
{
        say("take", uid, text, positions, 1);
        run_unseen(100);
}

/* The positions that a user finds of a text, in pool and swap. */
static uint32_t find(uint64_t uid, uint32_t text, uint32_t count)
{
        const struct sim_request *request = say("find", uid, text, count, 1);
        uint32_t found;

        sim_step(&sim);
        found = request->core.sequence.cached_count;
        run_unseen(100);
        return found;
}

/* a has computed 64 positions and three more.  b takes all blocks, and a continues after the 64. */
static void a_preempted_request_continues_from_the_swap(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){
                .blocks = 6, .rows = 128, .preemptions_max = 1, .prefix.swap_blocks = 6 });
        a = sim_submit(&sim, &(struct sim_ask){ .name = "a",
                                                .uid = 1,
                                                .priority = REQUEST_BACKGROUND,
                                                .prompt = 64,
                                                .most = 20 });
        sim_run(&sim, 40);
        say("b", 1, 4, 80, 3);
        sim_run(&sim, 90);
        sim_expect(&sim, "[  0] prefill a 0..64*; take 4 drop 0\n"
                         "[ 10] decode a 64; take 1 drop 0\n"
                         "[ 20] decode a 65\n"
                         "[ 30] decode a 66\n"
                         "[ 40] prefill b 0..80*; preempted a; take 5 drop 5; swap out 3 in 0\n"
                         "[ 50] decode b 80; take 1 drop 0; swap out 1 in 0\n"
                         "[ 60] decode b 81\n"
                         "[ 70] prefill a 64..68*; end b length; retire b; take 1 drop 6; "
                         "share 4 copy 0; swap out 4 in 4\n"
                         "[ 80] decode a 68\n");
        assert_int_equal(a->core.restored, 64);
        assert_int_equal(a->core.recomputed, 3);
        assert_int_equal(counts().restored, 64);
        sim_run(&sim, 2000);
        assert_int_equal(sim.end_counts[SMV_END_LENGTH], 2);
        sim_close(&sim);
}

/* a had read 32 positions.  b read all 96, and c took all blocks before a came back. */
static void only_positions_that_a_request_had_count_as_restored(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){
                .blocks = 7, .rows = 32, .preemptions_max = 1, .prefix.swap_blocks = 14 });
        a = say_later("a", 2, 97, 9);
        sim_run(&sim, 10);
        say("b", 1, 2, 97, 1);
        say("c", 1, 4, 111, 1);
        while (!a->moved || a->core.preemptions == 0)
                sim_turn(&sim, SIM_NEVER);
        assert_int_equal(counts().swapped_in, 6);
        assert_int_equal(a->core.restored, 32);
        run_unseen(1000);
        assert_int_equal(sim.end_counts[SMV_END_LENGTH], 3);
        sim_close(&sim);
}

static void a_conversation_that_others_evicted_is_found_again(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 6, .rows = 128, .prefix.swap_blocks = 6 });
        say("a", 1, 2, 33, 1);
        sim_run(&sim, 20);
        say("b", 2, 4, 96, 1);
        sim_run(&sim, 40);
        say("c", 1, 2, 49, 1);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..33*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill b 0..96*; take 6 drop 0; swap out 2 in 0\n"
                         "[ 30] end b length; retire b; take 0 drop 6\n"
                         "[ 40] prefill c 32..49*; take 2 drop 0; share 2 copy 0; "
                         "swap out 4 in 2\n"
                         "[ 50] end c length; retire c; take 0 drop 4\n");
        sim_close(&sim);
}

/* Of the first text one block is left: the other was the oldest leaf when the third block came. */
static void a_full_swap_drops_its_oldest_leaf(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 4, .rows = 64, .prefix.swap_blocks = 3 });
        read_text(1, 2, 32, 0, 0);
        read_text(1, 4, 32, 0, 0);
        take_blocks(2, 6, 32);
        assert_int_equal(counts().swap_used, 2);
        take_blocks(2, 8, 32);
        assert_int_equal(counts().swap_used, 3);
        assert_int_equal(counts().swapped_out, 4);
        assert_int_equal(find(1, 2, 32), 16);
        sim_close(&sim);
}

/* The time of a row is known, and two copies take longer than sixteen rows. */
static void nothing_moves_while_copies_are_dearer_than_rows(void **state)
{
        (void)state;
        for (uint64_t copy_ns = SIM_MS; copy_ns <= 1000 * SIM_MS; copy_ns *= 1000) {
                bool dearer = copy_ns > SIM_MS;

                world((struct sched_conf){ .blocks = 8,
                                           .rows = 64,
                                           .prefix.swap_blocks = 8,
                                           .swap_copy_ns = copy_ns });
                sim.row_ns = SIM_MS;
                for (uint32_t i = 0; i < 8; i++)
                        read_text(9, 100 + i, 1 + 4 * i, 0, 0);
                assert_true(counts().prompt_row_ns);
                assert_int_equal(2 * copy_ns > BLOCK_POSITIONS * counts().prompt_row_ns, dearer);
                read_text(1, 2, 32, 0, 0);
                take_blocks(2, 4, 128);
                assert_int_equal(counts().swapped_out > 0, !dearer);
                assert_int_equal(find(1, 2, 33), dearer ? 0 : 32);
                assert_int_equal(counts().swapped_in, dearer ? 0 : 2);
                sim_close(&sim);
        }
}

/* d has all rows and takes five blocks, for which others push both of c's out of the swap. */
static void blocks_that_leave_the_swap_before_the_first_row_are_computed(void **state)
{
        const struct sim_request *c;

        (void)state;
        world((struct sched_conf){ .blocks = 8, .rows = 16, .prefix.swap_blocks = 2 });
        read_text(1, 2, 32, 0, 0);
        take_blocks(1, 4, 128);
        assert_int_equal(counts().swap_used, 2);
        say("d", 1, 6, 80, 1);
        c = say_later("c", 2, 33, 1);
        sim_turn(&sim, SIM_NEVER);
        assert_int_equal(c->core.state, REQUEST_PREFILL);
        run_unseen(70);
        assert_int_equal(c->core.sequence.cached_count, 0);
        run_unseen(200);
        assert_int_equal(counts().swapped_in, 0);
        assert_int_equal(sim.end_counts[SMV_END_LENGTH], 4);
        sim_close(&sim);
}

/* c awaits two blocks behind d's prompt.  e, of a better class, brings them first. */
static void blocks_that_another_request_brought_are_shared(void **state)
{
        struct sim_request *c, *e;

        (void)state;
        world((struct sched_conf){ .blocks = 16, .rows = 16, .prefix.swap_blocks = 64 });
        read_text(1, 2, 32, 0, 0);
        for (uint32_t text = 4; text < 12; text += 2)
                take_blocks(1, text, 80);
        assert_int_equal(counts().swap_used, 6);
        say("d", 1, 12, 80, 1);
        c = say_later("c", 2, 33, 20);
        sim_turn(&sim, SIM_NEVER);
        assert_int_equal(c->core.state, REQUEST_PREFILL);
        e = say("e", 1, 2, 33, 20);
        run_unseen(100);
        assert_int_equal(c->core.sequence.cached_count, 32);
        assert_int_equal(e->core.sequence.cached_count, 32);
        assert_int_equal(counts().swapped_in, 2);
        run_unseen(1000);
        assert_int_equal(sim.end_counts[SMV_END_LENGTH], 8);
        sim_close(&sim);
}

/* The same, and a was preempted before: it has lost and brought nothing. */
static void blocks_that_another_request_brought_are_not_restored(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){
                .blocks = 14, .rows = 16, .preemptions_max = 1, .prefix.swap_blocks = 64 });
        a = say_later("a", 2, 33, 20);
        run_unseen(40);
        say("b", 1, 4, 220, 2);
        run_unseen(20);
        say("d", 1, 12, 80, 1);
        while (!sim.end_counts[SMV_END_LENGTH])
                sim_turn(&sim, SIM_NEVER);
        sim_turn(&sim, SIM_NEVER);
        assert_int_equal(a->core.preemptions, 1);
        assert_int_equal(a->core.state, REQUEST_PREFILL);
        assert_int_equal(counts().swapped_in, 0);
        say("e", 1, 2, 33, 20);
        run_unseen(100);
        assert_true(a->moved);
        assert_int_equal(counts().swapped_in, 2);
        assert_int_equal(a->core.restored, 0);
        assert_int_equal(counts().restored, 0);
        run_unseen(1000);
        assert_int_equal(sim.end_counts[SMV_END_LENGTH], 4);
        sim_close(&sim);
}

/* ... and without the pin it does not. */
static void a_pinned_text_outlives_others_in_the_swap(void **state)
{
        (void)state;
        for (uint32_t pin = 0; pin <= 1; pin++) {
                world((struct sched_conf){ .blocks = 4, .rows = 64, .prefix.swap_blocks = 3 });
                read_text(1, 2, 32, pin, 0);
                read_text(1, 4, 32, 0, 0);
                for (uint32_t text = 6; text < 16; text += 2)
                        take_blocks(2, text, 64);
                assert_int_equal(find(1, 4, 32), 0);
                assert_int_equal(find(1, 2, 32), pin ? 31 : 0);
                sim_close(&sim);
        }
}

static uint32_t find_public(uint32_t text, uint32_t count)
{
        const struct sim_request *request = sim_submit(&sim, &(struct sim_ask){ .name = "find",
                                                                                .uid = 7,
                                                                                .text = text,
                                                                                .shared = count,
                                                                                .prompt = count,
                                                                                .sees_public = true,
                                                                                .most = 1 });
        uint32_t found;

        sim_step(&sim);
        found = request->core.sequence.cached_count;
        run_unseen(100);
        return found;
}

static void an_unpublished_text_leaves_the_swap(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 4, .rows = 64, .prefix.swap_blocks = 8 });
        read_text(1, 2, 32, 1, PREFIX_EVERYONE);
        take_blocks(2, 4, 64);
        assert_int_equal(counts().swap_used, 2);
        assert_int_equal(find_public(2, 32), 31);
        take_blocks(2, 6, 64);
        assert_int_equal(find(2, 6, 64), 63);
        take_blocks(2, 8, 64);
        assert_int_equal(counts().swap_used, 8);
        sim_unpin(&sim, 1);
        assert_int_equal(counts().swap_used, 6);
        assert_int_equal(find_public(2, 32), 0);
        sim_close(&sim);
}

/* User 2 has more than two blocks there, so the next one takes the place of one of its own. */
static void a_user_above_its_part_of_the_swap_drops_its_own_blocks(void **state)
{
        (void)state;
        for (uint32_t most = 0; most <= 2; most += 2) {
                world((struct sched_conf){ .blocks = 4,
                                           .rows = 64,
                                           .prefix.swap_blocks = 5,
                                           .prefix.swap_max = most });
                read_text(1, 2, 32, 0, 0);
                for (uint32_t text = 4; text < 20; text += 2)
                        take_blocks(2, text, 64);
                assert_int_equal(counts().swap_used, 5);
                assert_int_equal(find(1, 2, 32), most ? 31 : 0);
                sim_close(&sim);
        }
}

/* s decodes.  c awaits six blocks: four take all rows of a plan, two leave two rows of the next. */
static void beside_decodes_blocks_come_over_several_plans(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 12, .rows = 5, .prefix.swap_blocks = 12 });
        read_text(1, 2, 96, 0, 0);
        run_unseen(200);
        take_blocks(2, 4, 191);
        run_unseen(500);
        assert_int_equal(counts().swap_used, 6);
        say("s", 3, 6, 1, 30);
        sim_run(&sim, sim.now_ns / SIM_MS + 20);
        sim.trace_count = 0;
        say("c", 1, 2, 100, 1);
        sim_run(&sim, sim.now_ns / SIM_MS + 30);
        sim_expect(&sim, "[920] decode s 2; take 0 drop 0; share 4 copy 0; swap out 4 in 4\n"
                         "[930] decode s 3; prefill c 96..98; take 1 drop 0; share 2 copy 0; "
                         "swap out 3 in 2\n"
                         "[940] decode s 4; prefill c 98..100*\n");
        run_unseen(1000);
        sim_close(&sim);
}

/* Only one row of c's follows its six blocks, so it goes before d, which came first. */
static void a_prompt_is_short_by_the_blocks_that_come(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 16, .rows = 16, .prefix.swap_blocks = 16 });
        read_text(1, 2, 96, 0, 0);
        take_blocks(2, 4, 255);
        run_unseen(500);
        say("d", 1, 6, 100, 1);
        say("c", 1, 2, 97, 1);
        sim_turn(&sim, SIM_NEVER);
        sim_expect(&sim, "[700] prefill c 96..97*; prefill d 0..15; take 2 drop 0; share 6 copy 0; "
                         "swap out 7 in 6\n");
        run_unseen(500);
        sim_close(&sim);
}

static uint64_t served(uint64_t uid)
{
        struct sched_user users[8];
        uint32_t count = sched_users(sim.sched, users, 8);

        for (uint32_t i = 0; i < count; i++)
                if (users[i].uid == uid)
                        return users[i].served_ns;
        return 0;
}

/*
 * User 2 reads 20 tokens, and user 1 as many as `rest`: after 64 that are in the swap, or after
 * none.  The next two steps charge them this much.
 */
static void read_beside(bool swapped, uint32_t rest, uint64_t charged[2][2])
{
        world((struct sched_conf){
                .blocks = 10, .rows = 24, .prefix.swap_blocks = 16, .swap_copy_ns = 5 * SIM_MS });
        sim.row_ns = SIM_MS;
        for (uint32_t i = 0; i < 8; i++)
                read_text(9, 100 + i, 1 + 4 * i, 0, 0);
        read_text(1, 2, 64, 0, 0);
        if (swapped)
                take_blocks(3, 4, 159);
        run_unseen(2000);
        say("c", 1, swapped ? 2 : 20, rest + (swapped ? 64 : 0), 2);
        say("e", 2, 6, 20, 2);
        for (uint32_t step = 0; step < 2; step++) {
                uint64_t before[2] = { served(1), served(2) };

                sim_turn(&sim, SIM_NEVER);
                for (uint32_t i = 0; i < 2; i++)
                        charged[step][i] = served(1 + i) - before[i];
        }
        assert_int_equal(counts().swapped_in, swapped ? 4 : 0);
        run_unseen(1000);
        sim_close(&sim);
}

/*
 * Of 20 rows and 4, the former cost five times as much, and with four copies eight times.  The step
 * after the one in which blocks came is charged as if none had come.
 */
static void copies_are_charged_once_to_the_user_whose_blocks_come(void **state)
{
        uint64_t with[2][2], without[2][2];

        (void)state;
        read_beside(false, 20, without);
        read_beside(true, 20, with);
        assert_in_range(without[0][0], 4 * without[0][1], 6 * without[0][1]);
        assert_in_range(with[0][0], 7 * with[0][1], 9 * with[0][1]);
        read_beside(false, 40, without);
        read_beside(true, 40, with);
        assert_true(with[1][0] && with[1][1]);
        assert_in_range(with[1][0], without[1][0] - without[1][0] / 4,
                        without[1][0] + without[1][0] / 4);
        assert_in_range(with[1][1], without[1][1] - without[1][1] / 4,
                        without[1][1] + without[1][1] / 4);
}

/*
 * Eight streams that begin with two blocks each and need seven each, in a pool of sixteen, which
 * holds two whole ones.  The auditor compares every token with those that a stream makes alone.
 */
static void half_of_the_streams_are_preempted_and_all_make_their_tokens(void **state)
{
        (void)state;
        for (uint32_t swap = 0; swap <= 64; swap += 64) {
                struct sim_request *streams[8];
                bool lost[8] = { false };
                uint32_t preempted = 0;

                world((struct sched_conf){ .blocks = 16,
                                           .slots = 8,
                                           .rows = 64,
                                           .preemptions_max = 8,
                                           .learned = { true, true, true },
                                           .prefix.swap_blocks = swap });
                teach_short();
                sim.end_counts[SMV_END_LENGTH] = 0;
                for (uint32_t i = 0; i < 8; i++)
                        streams[i] = say("s", 1 + i % 2, 2 * i, 16, 96);
                while (sim_alive(&sim)) {
                        sim_turn(&sim, SIM_NEVER);
                        for (uint32_t i = 0; i < 8; i++)
                                lost[i] |= streams[i]->blocks_lost > 0;
                }
                for (uint32_t i = 0; i < 8; i++)
                        preempted += lost[i];
                assert_true(2 * preempted >= 8);
                assert_int_equal(sim.end_counts[SMV_END_LENGTH], 8);
                assert_int_equal(counts().restored > 0, swap > 0);
                sim_close(&sim);
        }
}

static int clear(void **state)
{
        (void)state;
        sim_free(&sim);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(
                        a_prompt_without_record_space_computes_its_last_block_in_the_swap, clear),
                cmocka_unit_test_teardown(a_preempted_request_continues_from_the_swap, clear),
                cmocka_unit_test_teardown(only_positions_that_a_request_had_count_as_restored,
                                          clear),
                cmocka_unit_test_teardown(a_conversation_that_others_evicted_is_found_again, clear),
                cmocka_unit_test_teardown(a_full_swap_drops_its_oldest_leaf, clear),
                cmocka_unit_test_teardown(nothing_moves_while_copies_are_dearer_than_rows, clear),
                cmocka_unit_test_teardown(
                        blocks_that_leave_the_swap_before_the_first_row_are_computed, clear),
                cmocka_unit_test_teardown(blocks_that_another_request_brought_are_shared, clear),
                cmocka_unit_test_teardown(blocks_that_another_request_brought_are_not_restored,
                                          clear),
                cmocka_unit_test_teardown(a_pinned_text_outlives_others_in_the_swap, clear),
                cmocka_unit_test_teardown(an_unpublished_text_leaves_the_swap, clear),
                cmocka_unit_test_teardown(a_user_above_its_part_of_the_swap_drops_its_own_blocks,
                                          clear),
                cmocka_unit_test_teardown(beside_decodes_blocks_come_over_several_plans, clear),
                cmocka_unit_test_teardown(
                        half_of_the_streams_are_preempted_and_all_make_their_tokens, clear),
                cmocka_unit_test_teardown(copies_are_charged_once_to_the_user_whose_blocks_come,
                                          clear),
                cmocka_unit_test_teardown(a_prompt_is_short_by_the_blocks_that_come, clear),
        };

        return cmocka_run_group_tests_name("sim-swapping", tests, NULL, NULL);
}
