/*
 * How much each user is served.  There is one slot, so that every turn belongs to one user.  A
 * row is one unit, a row that makes a token two.
 */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

static struct sim sim;
static char order[1024]; /* names, as they were admitted */

static void world(uint32_t requests_max)
{
        const struct sched_conf conf = { .slots = 1, .rows = 64, .requests_max = requests_max };

        order[0] = 0;
        sim_open_small(&sim, &conf);
}

static void ask(const char *name, uint32_t prompt)
{
        assert_non_null(sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                            .uid = (uint32_t)name[0],
                                                            .prompt = prompt,
                                                            .most = 1 }));
}

static void run(uint64_t until_ms)
{
        while (sim.now_ns < until_ms * SIM_MS) {
                uint64_t turns = sim.turns;

                sim_turn(&sim, until_ms * SIM_MS);
                each_request(&sim, r)
                {
                        if (sim.turns > turns && r->admitted && r->turn == turns)
                                snprintf(order + strlen(order), sizeof(order) - strlen(order),
                                         "%s ", r->name);
                }
        }
}

static uint32_t count_alive(uint32_t uid)
{
        uint32_t count = 0;

        each_request(&sim, r) count += r->uid == uid;
        return count;
}

static void keep_asking(uint32_t uid, uint32_t alive, uint32_t prompt, uint32_t most)
{
        while (count_alive(uid) < alive)
                sim_submit(&sim, &(struct sim_ask){
                                         .name = "r", .uid = uid, .prompt = prompt, .most = most });
}

static uint64_t served(uint32_t uid)
{
        each_request(&sim, r)
        {
                if (r->uid == uid)
                        return audit_served(&sim, r);
        }
        return 0;
}

/* 4 prompt rows, 4 tokens: 3 + 4 * 2 units.  For the other: 19 + 2 * 2. */
static void a_user_with_100_requests_is_served_as_much_as_one_with_2(void **state)
{
        (void)state;
        world(102);
        while (sim.now_ns < 5000 * SIM_MS) {
                keep_asking(1, 100, 4, 4);
                keep_asking(2, 2, 20, 2); /* the next is there before the last has gone */
                sim_turn(&sim, SIM_NEVER - 1);
        }
        assert_true(served(1) > 1000);
        assert_true(served(1) <= served(2) + 23 && served(2) <= served(1) + 23);
        sim_run(&sim, 15000);
        sim_close(&sim);
}

static void a_new_user_is_not_compensated_for_the_past(void **state)
{
        (void)state;
        world(12);
        for (int i = 1; i <= 6; i++)
                ask((const char *const[]){ "", "a1", "a2", "a3", "a4", "a5", "a6" }[i], 2);
        run(30);
        ask("b1", 2);
        ask("b2", 2);
        ask("b3", 2);
        run(200);
        assert_string_equal(order, "a1 a2 a3 a4 b1 a5 b2 a6 b3 ");
        sim_close(&sim);
}

/* A long prompt of a is 19 + 2 units, a short one of b 1 + 2. */
static void long_prompts_count_towards_usage(void **state)
{
        (void)state;
        world(12);
        ask("a1", 20);
        ask("a2", 20);
        ask("a3", 20);
        for (int i = 0; i < 8; i++)
                ask((const char *const[]){ "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8" }[i], 2);
        run(300);
        assert_string_equal(order, "a1 b1 b2 b3 b4 b5 b6 b7 a2 b8 a3 ");
        sim_close(&sim);
}

/*
 * A request of b is 2 units, one of a is 21.  When b has had one, a has had nothing; when a has
 * had one, b has had less.
 */
static void users_alternate_between_their_first_and_second_requests(void **state)
{
        (void)state;
        world(12);
        ask("b1", 1);
        ask("b2", 1);
        ask("a1", 20);
        ask("a2", 20);
        run(200);
        assert_string_equal(order, "b1 a1 b2 a2 ");
        sim_close(&sim);
}

static int clear(void **state)
{
        (void)state;
        sim_free(&sim);
        return 0;
}

#define story(name) cmocka_unit_test_teardown(name, clear)

int main(void)
{
        const struct CMUnitTest tests[] = {
                story(a_user_with_100_requests_is_served_as_much_as_one_with_2),
                story(a_new_user_is_not_compensated_for_the_past),
                story(long_prompts_count_towards_usage),
                story(users_alternate_between_their_first_and_second_requests),
        };

        return cmocka_run_group_tests_name("sim-fairness", tests, NULL, NULL);
}
