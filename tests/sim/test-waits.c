/* Why a request waits: the numbers that it tells, in small worlds where one can count them. */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        sim_open_small(&sim, &conf);
}

/* Each request belongs to a user of its own, by its letter. */
static struct sim_request *ask(const char *name, uint32_t prompt, uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = (uint32_t)name[0],
                                                   .priority = REQUEST_NORMAL,
                                                   .prompt = prompt,
                                                   .most = most });
}

static void run(uint64_t ms)
{
        sim_run(&sim, sim.now_ns / SIM_MS + ms);
}

static void assert_fact(const struct sim_request *request, enum request_fact fact, uint32_t value)
{
        assert_int_equal(request_fact(&request->core, fact), value);
}

/*
 * Of 16 blocks a and b leave 4 cached, two each.  c takes 10 blocks: it is promised the 12 that are
 * empty first.
 */
static void tells_how_many_blocks_are_free_and_whose_text_they_hold(void **state)
{
        struct sim_request *other, *own;

        (void)state;
        world((struct sched_conf){ .slots = 4, .blocks = 16 });
        ask("a", 31, 2);
        ask("b", 31, 2);
        run(100);
        ask("c", 20, 140);
        other = ask("d", 20, 140);
        own = ask("a2", 20, 140);
        run(30);
        assert_int_equal(request_waits_for(&other->core), REQUEST_WAITS_FOR_BLOCKS);
        assert_fact(other, REQUEST_NEEDS, 10);
        assert_fact(other, REQUEST_FREE, 6);
        assert_fact(other, REQUEST_CACHED, 4);
        assert_fact(other, REQUEST_OWN, 0);
        assert_int_equal(request_waits_for(&own->core), REQUEST_WAITS_FOR_TURN);
        sim_cancel(&sim, other);
        run(30);
        assert_int_equal(request_waits_for(&own->core), REQUEST_WAITS_FOR_BLOCKS);
        assert_fact(own, REQUEST_NEEDS, 10);
        assert_fact(own, REQUEST_FREE, 6);
        assert_fact(own, REQUEST_CACHED, 4);
        assert_fact(own, REQUEST_OWN, 2);
        run(9000);
        sim_close(&sim);
}

/*
 * a leaves two blocks cached.  b is promised all of the pool, so these, too.  a2 would find both,
 * and they count as in use then: it needs them besides the one that comes new.
 */
static void counts_blocks_that_were_found_but_promised_to_others_as_needed(void **state)
{
        const struct sim_ask known = {
                .name = "a", .uid = 'a', .prompt = 33, .most = 2, .text = 5, .shared = 33
        };
        struct sim_request *again;

        (void)state;
        world((struct sched_conf){ .slots = 4, .blocks = 8 });
        sim_submit(&sim, &known);
        run(100);
        ask("b", 4, 125);
        run(20);
        again = sim_submit(&sim, &known);
        run(20);
        assert_int_equal(request_waits_for(&again->core), REQUEST_WAITS_FOR_BLOCKS);
        assert_fact(again, REQUEST_NEEDS, 3);
        assert_fact(again, REQUEST_FREE, 0);
        assert_fact(again, REQUEST_CACHED, 0);
        run(9000);
        sim_close(&sim);
}

/* By the first guess each makes 100 tokens more, so both need seven blocks some day. */
static void tells_how_many_blocks_the_pool_is_expected_to_need(void **state)
{
        struct sim_request *second;

        (void)state;
        world((struct sched_conf){
                .slots = 4, .blocks = 12, .preemptions_max = 1, .learned = { true, true, true } });
        ask("a", 4, 100);
        second = ask("b", 4, 100);
        run(5);
        assert_int_equal(request_waits_for(&second->core), REQUEST_WAITS_FOR_FORECAST);
        assert_fact(second, REQUEST_EXPECTED, 14);
        assert_fact(second, REQUEST_POOL, 12);
        run(9000);
        sim_close(&sim);
}

/* The user's own limit is four blocks. */
static void tells_which_share_its_user_would_exceed(void **state)
{
        struct sim_request *wide, *third;

        (void)state;
        world((struct sched_conf){ .slots = 8, .blocks = 64, .user_blocks = 4 });
        ask("a1", 20, 13); /* 2 blocks */
        wide = ask("a2", 20, 29);
        run(5);
        assert_int_equal(request_waits_for(&wide->core), REQUEST_WAITS_FOR_SHARE);
        assert_fact(wide, REQUEST_USER_BLOCKS, 5);
        assert_fact(wide, REQUEST_USER_BLOCKS_MAX, 4);
        assert_fact(wide, REQUEST_USER_SLOTS, 0);
        assert_fact(wide, REQUEST_USER_SLOTS_MAX, 0);
        run(9000);
        sim_close(&sim);

        /* c waits for a slot, so no user gets more than half of them. */
        world((struct sched_conf){ .slots = 4, .blocks = 64, .lead_ns = 9000 * SIM_MS });
        ask("a1", 4, 100);
        ask("a2", 4, 100);
        ask("b1", 4, 100);
        third = ask("a3", 4, 10);
        ask("b2", 4, 100);
        ask("c", 4, 10);
        run(5);
        assert_int_equal(request_waits_for(&third->core), REQUEST_WAITS_FOR_SHARE);
        assert_fact(third, REQUEST_USER_SLOTS, 3);
        assert_fact(third, REQUEST_USER_SLOTS_MAX, 2);
        assert_fact(third, REQUEST_USER_BLOCKS, 0);
        run(9000);
        sim_close(&sim);
}

static int free_sim(void **state)
{
        (void)state;
        sim_free(&sim);
        return 0;
}

#define story(name) cmocka_unit_test_teardown(name, free_sim)

int main(void)
{
        const struct CMUnitTest tests[] = {
                story(tells_how_many_blocks_are_free_and_whose_text_they_hold),
                story(counts_blocks_that_were_found_but_promised_to_others_as_needed),
                story(tells_how_many_blocks_the_pool_is_expected_to_need),
                story(tells_which_share_its_user_would_exceed),
        };

        return cmocka_run_group_tests_name("sim-waits", tests, NULL, NULL);
}
