/*
 * Batches, and their cost: a request waits for others to come, and then for the slowest request
 * of the batch before.
 */
#include "tests/sim/sim.h"

#include <stdio.h>

static struct sim sim;

static void world(struct sched_conf conf)
{
        sim_open_small(&sim, &conf);
}

static struct sim_request *ask(const char *name, uint32_t prompt, uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name, .prompt = prompt, .most = most });
}

static void starts_a_batch_when_it_is_full_or_its_window_is_over(void **state)
{
        (void)state;
        world((struct sched_conf){ .batch_size = 2, .batch_window_ns = 30 * SIM_MS });
        ask("a", 2, 4);
        sim_run(&sim, 10);
        ask("b", 2, 2);
        sim_run(&sim, 20);
        ask("c", 2, 2);
        sim_run(&sim, 80);
        ask("d", 2, 2);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] sleep until 30\n"
                         "[ 10] prefill a 0..2*; prefill b 0..2*; take 2 drop 0\n"
                         "[ 20] decode a 2; decode b 2\n"
                         "[ 30] decode a 3; end b length; retire b; take 0 drop 1\n"
                         "[ 40] decode a 4\n"
                         "[ 50] prefill c 0..2*; end a length; retire a; take 1 drop 1\n"
                         "[ 60] decode c 2\n"
                         "[ 70] end c length; retire c; take 0 drop 1\n"
                         "[ 80] sleep until 110\n"
                         "[110] prefill d 0..2*; take 1 drop 0\n"
                         "[120] decode d 2\n"
                         "[130] end d length; retire d; take 0 drop 1\n");
        sim_close(&sim);
}

static void never_exceeds_batch_size_although_slots_are_free(void **state)
{
        (void)state;
        world((struct sched_conf){ .batch_size = 2, .batch_window_ns = 30 * SIM_MS });
        ask("a", 2, 1);
        ask("b", 2, 2);
        ask("c", 2, 1);
        ask("d", 2, 1);
        ask("e", 2, 1);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a 0..2*; prefill b 0..2*; take 2 drop 0\n"
                         "[ 10] decode b 2; end a length; retire a; take 0 drop 1\n"
                         "[ 20] prefill c 0..2*; prefill d 0..2*; end b length; retire b; "
                         "take 2 drop 1\n"
                         "[ 30] prefill e 0..2*; end c length; end d length; retire c; retire d; "
                         "take 1 drop 2\n"
                         "[ 40] end e length; retire e; take 0 drop 1\n");
        sim_close(&sim);
}

/* The same twelve requests, one every 60 ms; returns how long they wait for slots in all, in ms. */
static uint64_t waited(uint32_t batch_size, uint64_t batch_window_ns)
{
        static const uint32_t most[] = { 3, 12, 2, 7, 1, 5, 16, 4, 2, 9, 3, 6 };
        uint64_t total = 0, turns;

        world((struct sched_conf){
                .requests_max = 12, .batch_size = batch_size, .batch_window_ns = batch_window_ns });
        for (uint32_t next = 0; next < 12 || sim_alive(&sim);) {
                while (next < 12 && sim.now_ns >= next * 60 * SIM_MS)
                        ask("r", 2, most[next++]);
                turns = sim.turns;
                sim_step(&sim);
                each_request(&sim, r)
                {
                        if (r->admitted && r->turn >= turns)
                                total += sim.now_ns - r->since_ns;
                }
                if (sim.flight_count) {
                        sim.now_ns = sim.flights[0].done_ns;
                        sim_collect(&sim);
                } else {
                        sim.now_ns += 5 * SIM_MS;
                }
        }
        sim_step(&sim);
        sim_close(&sim);
        return total / SIM_MS;
}

static void continuous_batching_waits_least_and_full_batches_most(void **state)
{
        uint64_t fixed = waited(4, SIM_NEVER), dynamic = waited(4, 20 * SIM_MS);
        uint64_t continuous = waited(0, 0);

        (void)state;
        print_message("waited: %u ms in batches of four, %u ms in those of a window, %u ms\n",
                      (unsigned)fixed, (unsigned)dynamic, (unsigned)continuous);
        assert_true(continuous < dynamic && dynamic < fixed);
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
                story(starts_a_batch_when_it_is_full_or_its_window_is_over),
                story(never_exceeds_batch_size_although_slots_are_free),
                story(continuous_batching_waits_least_and_full_batches_most),
        };

        return cmocka_run_group_tests_name("sim-batches", tests, NULL, NULL);
}
