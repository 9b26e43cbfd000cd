/*
 * Scenarios of admission by need, in simulated milliseconds; test-stories.c says how to read a
 * line.
 *
 * "preempt b", "preempted b": as in test-preemption.c, here because blocks ran out.
 * "lack 1": so many decodes have no row, because they lack a block.
 * "hold back 1": so many requests wait because of the forecast.
 */
#include "tests/sim/sim.h"

#include <stdio.h>

static struct sim sim;

#define ALL_LEARNED                                                                                \
        {                                                                                          \
                true, true, true                                                                   \
        }

static void world(struct sched_conf conf)
{
        sim_open_small(&sim, &conf);
}

/* Lets time pass, and compares nothing of it. */
static void run_unseen(uint64_t ms)
{
        sim_run(&sim, sim.now_ns / SIM_MS + ms);
        sim.trace_count = 0;
        sim.trace[0] = 0;
}

/* Every class and user is known for answers of two tokens, so nobody is held back. */
static void teach(void)
{
        for (int i = 0; i < REQUEST_PRIORITY_N * 16; i++) {
                sim_submit(&sim, &(struct sim_ask){ .name = "t",
                                                    .uid = 't',
                                                    .priority = (enum request_priority)(i / 16),
                                                    .prompt = 1,
                                                    .most = 2 });
                if (i % 4 == 3)
                        run_unseen(100);
        }
}

/* Each request belongs to a user of its own, by its letter. */
static struct sim_request *ask(enum request_priority priority, const char *name, uint32_t prompt,
                               uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = (uint32_t)name[0],
                                                   .priority = priority,
                                                   .prompt = prompt,
                                                   .most = most });
}

/* Its answer ends by itself after so many tokens. */
static struct sim_request *ask_short(const char *name, uint32_t prompt, uint32_t most,
                                     uint32_t end_at)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = (uint32_t)name[0],
                                                   .priority = REQUEST_NORMAL,
                                                   .prompt = prompt,
                                                   .most = most,
                                                   .end_at = end_at,
                                                   .verdict = SCHED_EOS });
}

static void large_world(uint32_t blocks, bool learned)
{
        const struct sched_conf conf = {
                .blocks = blocks,
                .slots = 32,
                .rows = 512,
                .context = 4096,
                .depth = 2,
                .requests_max = 64,
                .channels = 1,
                .stall_timeout_ns = 1000 * SIM_MS,
                .preemptions_max = 2,
                .learned = { learned, learned, learned },
                .preempt_target = 20,
                .lead_ns = 1000 * SIM_MS,
                .prefix.pins = 1,
        };

        sim_open(&sim, &conf, 1, false);
}

static uint32_t count_running(void)
{
        struct sched_counts counts;

        sched_count(sim.sched, &counts);
        return counts.running;
}

/* The worst case of each is 220 blocks, so two of them could be promised theirs. */
static void requests_run_together_that_ask_for_much_more_than_they_get(void **state)
{
        char name[4];

        (void)state;
        large_world(512, true);
        for (int i = 0; i < 24; i++) {
                snprintf(name, sizeof(name), "a%d", i);
                ask_short(name, 20, 3500, 40);
        }
        sim_run(&sim, 100);
        assert_int_equal(count_running(), 24);
        sim_run(&sim, 2000);
        assert_int_equal(sim.end_counts[SMV_END_EOS], 24);
        assert_int_equal(sim.preempted, 0);
        sim_close(&sim);
}

static void reserved_requests_do_not(void **state)
{
        char name[4];

        (void)state;
        large_world(512, false);
        for (int i = 0; i < 24; i++) {
                snprintf(name, sizeof(name), "a%d", i);
                ask_short(name, 20, 3500, 40);
        }
        sim_run(&sim, 100);
        assert_int_equal(count_running(), 2);
        sim_run(&sim, 20000);
        assert_int_equal(sim.end_counts[SMV_END_EOS], 24);
        sim_close(&sim);
}

/* Of the first guess, 256 tokens, fewer than eight fit 128 blocks; of 40 tokens, 24 do. */
static void more_run_together_once_the_lengths_of_answers_are_known(void **state)
{
        char name[4];

        (void)state;
        large_world(128, true);
        for (int i = 0; i < 16; i++) {
                snprintf(name, sizeof(name), "a%d", i);
                ask_short(name, 20, 1500, 40);
        }
        sim_run(&sim, 100);
        assert_true(count_running() <= 8);
        sim_run(&sim, 5000);
        assert_int_equal(sim.end_counts[SMV_END_EOS], 16);
        for (int i = 0; i < 24; i++) {
                snprintf(name, sizeof(name), "b%d", i);
                ask_short(name, 20, 1500, 40);
        }
        sim_run(&sim, 5100);
        assert_int_equal(count_running(), 24);
        sim_run(&sim, 8000);
        assert_int_equal(sim.end_counts[SMV_END_EOS], 40);
        assert_int_equal(sim.preempted, 0);
        sim_close(&sim);
}

/* a1 needs a third block, and b has most of the pool.  c, a background request, is left alone. */
static void preempts_for_a_block_the_last_class_of_the_user_with_most_blocks(void **state)
{
        (void)state;
        world((struct sched_conf){
                .blocks = 8, .rows = 64, .preemptions_max = 1, .learned = ALL_LEARNED });
        teach();
        ask(REQUEST_NORMAL, "a1", 15, 50);
        ask(REQUEST_BACKGROUND, "b1", 1, 60);
        ask(REQUEST_NORMAL, "b2", 1, 60);
        ask(REQUEST_BACKGROUND, "c", 1, 60);
        run_unseen(170);
        sim_run(&sim, sim.now_ns / SIM_MS + 40);
        sim_expect(&sim,
                   "[1370] decode a1 31; decode b2 17; decode b1 17; decode c 17\n"
                   "[1380] decode a1 32; decode b2 18; decode c 18; preempted b1; take 1 drop 2\n"
                   "[1390] decode a1 33; decode b2 19; decode c 19\n"
                   "[1400] decode a1 34; decode b2 20; decode c 20\n");
        sim_run(&sim, 9000);
        sim_close(&sim);
}

static void preempts_for_a_block_the_youngest_of_a_class(void **state)
{
        (void)state;
        world((struct sched_conf){
                .blocks = 6, .rows = 64, .preemptions_max = 1, .learned = ALL_LEARNED });
        teach();
        ask(REQUEST_NORMAL, "a1", 15, 50);
        ask(REQUEST_NORMAL, "b1", 1, 60);
        ask(REQUEST_NORMAL, "b2", 1, 60);
        run_unseen(170);
        sim_run(&sim, sim.now_ns / SIM_MS + 40);
        sim_expect(&sim, "[1370] decode a1 31; decode b1 17; decode b2 17\n"
                         "[1380] decode a1 32; decode b1 18; preempted b2; take 1 drop 2\n"
                         "[1390] decode a1 33; decode b1 19\n"
                         "[1400] decode a1 34; decode b1 20\n");
        sim_run(&sim, 9000);
        sim_close(&sim);
}

/* Of users that have as many blocks, it is the one with the largest number. */
static void a_request_that_lacks_a_block_may_be_preempted_itself(void **state)
{
        (void)state;
        world((struct sched_conf){
                .blocks = 4, .rows = 64, .preemptions_max = 1, .learned = ALL_LEARNED });
        teach();
        ask(REQUEST_NORMAL, "b", 15, 40);
        ask(REQUEST_NORMAL, "a", 1, 40);
        run_unseen(170);
        sim_run(&sim, sim.now_ns / SIM_MS + 40);
        sim_expect(&sim, "[1370] decode b 31; decode a 17\n"
                         "[1380] decode a 18; preempted b; take 0 drop 2\n"
                         "[1390] decode a 19\n"
                         "[1400] decode a 20\n");
        sim_run(&sim, 9000);
        sim_close(&sim);
}

/* b has a row in flight when it is preempted, so a is left out once. */
static void a_request_lacks_a_block_while_the_preempted_one_is_in_flight(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 4,
                                   .rows = 64,
                                   .depth = 2,
                                   .preemptions_max = 1,
                                   .learned = ALL_LEARNED });
        teach();
        ask(REQUEST_NORMAL, "a", 15, 40);
        ask(REQUEST_NORMAL, "b", 1, 40);
        run_unseen(150);
        sim_run(&sim, sim.now_ns / SIM_MS + 60);
        sim_expect(&sim, "[1350] decode a 30 of 40/0; decode b 16 of 40/1; take 1 drop 0\n"
                         "[1360] decode a 31 of 41/0; decode b 17 of 41/1\n"
                         "[1370] preempt b; lack 1\n"
                         "[1380] decode a 32; preempted b; take 1 drop 2\n"
                         "[1380] decode a 33 of 43/0\n"
                         "[1390] decode a 34 of 44/0\n"
                         "[1400] decode a 35 of 45/0\n");
        sim_run(&sim, 9000);
        sim_close(&sim);
}

/*
 * b was preempted for a, and comes back with all blocks that it may need.  Then c lacks a block.
 * By its usage b would be the next to be preempted.
 */
static void a_request_preempted_as_often_as_allowed_comes_back_reserved(void **state)
{
        struct sim_request *b;

        (void)state;
        world((struct sched_conf){
                .blocks = 7, .rows = 64, .preemptions_max = 1, .learned = ALL_LEARNED });
        teach();
        ask(REQUEST_NORMAL, "a", 31, 50);
        b = ask(REQUEST_NORMAL, "b", 32, 48);
        run_unseen(250);
        assert_int_equal(b->core.state, REQUEST_WAITING);
        assert_int_equal(b->core.blocks_lost, 1);
        run_unseen(280);
        assert_int_equal(b->core.state, REQUEST_DECODE);
        assert_int_equal(b->core.promised, 5);
        ask(REQUEST_NORMAL, "c", 16, 40);
        run_unseen(150);
        sim_run(&sim, sim.now_ns / SIM_MS + 50);
        sim_expect(&sim, "[1880] decode b 67; decode c 30\n"
                         "[1890] decode b 68; decode c 31\n"
                         "[1900] decode b 69; preempted c; take 0 drop 2\n"
                         "[1910] decode b 70\n"
                         "[1920] decode b 71\n");
        sim_run(&sim, 9000);
        sim_close(&sim);
}

/* Each has the whole pool as its worst case. */
static void two_requests_do_not_preempt_each_other_for_ever(void **state)
{
        (void)state;
        world((struct sched_conf){
                .blocks = 8, .rows = 64, .preemptions_max = 3, .learned = ALL_LEARNED });
        teach();
        ask(REQUEST_NORMAL, "a", 8, 120);
        ask(REQUEST_NORMAL, "b", 8, 120);
        sim_run(&sim, 20000);
        assert_int_equal(sim_alive(&sim), 0);
        assert_in_range(sim.blocks_lost, 1, 2 * 3);
        sim_close(&sim);
}

/*
 * b1 and b2 share four blocks, and their reader does not read.  If one of them is preempted,
 * nothing comes free.
 */
static void spares_requests_whose_preemption_frees_nothing(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 7,
                                   .rows = 80,
                                   .preemptions_max = 1,
                                   .stall_preempt_ns = 900 * SIM_MS,
                                   .stall_timeout_ns = 1000 * SIM_MS,
                                   .learned = ALL_LEARNED });
        teach();
        sim.channels[1].capacity = 5;
        for (int i = 0; i < 3; i++) {
                char name[] = { 'b', (char)('0' + i), 0 };

                sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                    .uid = 'b',
                                                    .priority = REQUEST_NORMAL,
                                                    .channel = i > 0,
                                                    .prompt = i ? 64 : 65,
                                                    .shared = 64,
                                                    .most = 1 });
                run_unseen(100);
        }
        ask(REQUEST_NORMAL, "a", 31, 40);
        sim_run(&sim, sim.now_ns / SIM_MS + 20);
        sim_expect(&sim, "[1500] prefill a 0..31*; stalled 2; take 2 drop 0\n"
                         "[1510] decode a 31; stalled 2\n");
        run_unseen(140);
        sim_run(&sim, sim.now_ns / SIM_MS + 40);
        sim_expect(&sim, "[1660] decode a 46; stalled 2\n"
                         "[1670] decode a 47; stalled 2\n"
                         "[1680] preempted a; stalled 2; take 0 drop 3; sleep until 2200\n");
        sim_run(&sim, 9000);
        sim_close(&sim);
}

/* b has more, and blocks are free; but a may have no more than five. */
static void a_user_with_all_blocks_it_may_have_preempts_its_own(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 30,
                                   .rows = 128,
                                   .user_blocks = 5,
                                   .preemptions_max = 1,
                                   .learned = ALL_LEARNED });
        teach();
        ask(REQUEST_NORMAL, "a1", 15, 50);
        ask(REQUEST_NORMAL, "a2", 15, 50);
        ask(REQUEST_NORMAL, "b", 60, 20);
        run_unseen(160);
        sim_run(&sim, sim.now_ns / SIM_MS + 40);
        sim_expect(&sim,
                   "[1360] decode a1 30; decode a2 30; decode b 75\n"
                   "[1370] decode a1 31; decode a2 31; decode b 76\n"
                   "[1380] decode a1 32; decode b 77; preempted a2; pass over 1; take 1 drop 2\n"
                   "[1390] decode a1 33; decode b 78; pass over 1\n");
        sim_run(&sim, 9000);
        sim_close(&sim);
}

/* Each is expected to make 40 tokens, and then both have eight blocks.  c comes after b. */
static void holds_back_what_the_pool_will_not_hold_and_all_behind_it(void **state)
{
        (void)state;
        world((struct sched_conf){
                .blocks = 6, .rows = 128, .preemptions_max = 1, .learned = ALL_LEARNED });
        ask(REQUEST_NORMAL, "a", 20, 40);
        ask(REQUEST_NORMAL, "b", 10, 40);
        ask(REQUEST_NORMAL, "c", 1, 2);
        sim_run(&sim, 20);
        sim_expect(&sim, "[  0] prefill a 0..20*; hold back 1; take 2 drop 0\n"
                         "[ 10] decode a 20; hold back 1\n");
        run_unseen(180);
        sim_run(&sim, 250);
        sim_expect(&sim, "[200] decode a 39; decode b 12\n"
                         "[210] decode a 40; decode b 13\n"
                         "[220] decode a 41; decode b 14\n"
                         "[230] decode a 42; decode b 15\n"
                         "[240] decode a 43; decode b 16; take 1 drop 0\n");
        sim_run(&sim, 9000);
        sim_close(&sim);
}

static int clear(void **state)
{
        (void)state;
        sim_free(&sim);
        return 0;
}

#define story(name) cmocka_unit_test_teardown(name, clear)

/*
 * Nine blocks, of which four may be reserved.  a is promised its worst case.  b and c begin as
 * learned requests do; else c would have to wait.
 */
static void requests_beyond_the_reserved_part_begin_as_learned_ones(void **state)
{
        struct sim_request *a, *b, *c;

        (void)state;
        world((struct sched_conf){ .blocks = 9, .preemptions_max = 1, .reserve_max = 4 });
        teach();
        sim.beyond = 0;
        a = ask(REQUEST_NORMAL, "a", 16, 48);
        b = ask(REQUEST_NORMAL, "b", 16, 48);
        c = ask(REQUEST_NORMAL, "c", 16, 32);
        run_unseen(20);
        assert_true(a->core.reserves && !b->core.reserves && !c->core.reserves);
        assert_int_equal(a->core.promised, 4);
        assert_int_equal(b->core.promised, 2);
        assert_int_equal(c->core.promised, 2);
        run_unseen(5000);
        assert_int_equal(sim_alive(&sim), 0);
        assert_true(sim.beyond >= 2); /* one may have been preempted, and begun again */
        sim_close(&sim);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                story(requests_run_together_that_ask_for_much_more_than_they_get),
                story(reserved_requests_do_not),
                story(more_run_together_once_the_lengths_of_answers_are_known),
                story(preempts_for_a_block_the_last_class_of_the_user_with_most_blocks),
                story(preempts_for_a_block_the_youngest_of_a_class),
                story(a_request_that_lacks_a_block_may_be_preempted_itself),
                story(a_request_lacks_a_block_while_the_preempted_one_is_in_flight),
                story(a_request_preempted_as_often_as_allowed_comes_back_reserved),
                story(two_requests_do_not_preempt_each_other_for_ever),
                story(spares_requests_whose_preemption_frees_nothing),
                story(a_user_with_all_blocks_it_may_have_preempts_its_own),
                story(holds_back_what_the_pool_will_not_hold_and_all_behind_it),
                story(requests_beyond_the_reserved_part_begin_as_learned_ones),
        };

        return cmocka_run_group_tests_name("sim-growth", tests, NULL, NULL);
}
