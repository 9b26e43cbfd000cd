/* Scenarios of deadlines, in simulated milliseconds; test-stories.c says how to read a line. */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        sim_open_small(&sim, &conf);
}

/* Each request belongs to a user of its own, by its letter. */
static void ask(const char *name, enum request_priority priority, uint32_t most,
                uint64_t deadline_ms)
{
        sim_submit(&sim, &(struct sim_ask){ .name = name,
                                            .uid = (uint32_t)name[0],
                                            .priority = priority,
                                            .prompt = 4,
                                            .most = most,
                                            .deadline_ns = deadline_ms * SIM_MS });
}

static void ends_a_request_at_its_deadline_waiting_or_running(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1 });
        ask("a", REQUEST_INTERACTIVE, 10, 25);
        ask("b", REQUEST_INTERACTIVE, 10, 15);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] decode a 4\n"
                         "[ 20] decode a 5; end b late; retire b\n"
                         "[ 30] end a late; retire a; take 0 drop 1\n");
        assert_int_equal(sim.late, 2);
        sim_close(&sim);
}

static void discards_rows_in_flight_of_a_request_past_its_deadline(void **state)
{
        (void)state;
        world((struct sched_conf){ .depth = 2 });
        ask("a", REQUEST_INTERACTIVE, 10, 15);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[  0] decode a 4 of 1/3\n"
                         "[ 10] decode a 5 of 2/0\n"
                         "[ 20] end a late\n"
                         "[ 30] retire a; take 0 drop 1\n");
        sim_close(&sim);
}

static void a_request_that_finishes_at_its_deadline_is_not_late(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", REQUEST_INTERACTIVE, 2, 20);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] decode a 4\n"
                         "[ 20] end a length; retire a; take 0 drop 1\n");
        sim_close(&sim);
}

static void wakes_for_the_deadline_of_a_stalled_request(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[0].capacity = 20;
        sim_speed(&sim, 0, 0);
        ask("a", REQUEST_INTERACTIVE, 10, 40);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] decode a 4\n"
                         "[ 20] stalled 1; sleep until 40\n"
                         "[ 40] end a late; retire a; take 0 drop 1\n");
        sim_close(&sim);
}

static void ends_a_preempted_request_at_its_deadline(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1, .preemptions_max = 1 });
        ask("b", REQUEST_BACKGROUND, 10, 35);
        sim_run(&sim, 20);
        ask("i", REQUEST_INTERACTIVE, 3, 0);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill b 0..4*; take 1 drop 0\n"
                         "[ 10] decode b 4\n"
                         "[ 20] prefill i 0..4*; preempted b; take 1 drop 1\n"
                         "[ 30] decode i 4\n"
                         "[ 40] decode i 5; end b late; retire b\n"
                         "[ 50] end i length; retire i; take 0 drop 1\n");
        sim_close(&sim);
}

static void ends_a_request_at_its_deadline_while_the_model_loads(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim_pause(&sim, true);
        ask("a", REQUEST_INTERACTIVE, 10, 15);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] sleep until 15\n"
                         "[ 15] end a late; retire a\n");
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
                story(ends_a_request_at_its_deadline_waiting_or_running),
                story(discards_rows_in_flight_of_a_request_past_its_deadline),
                story(a_request_that_finishes_at_its_deadline_is_not_late),
                story(wakes_for_the_deadline_of_a_stalled_request),
                story(ends_a_preempted_request_at_its_deadline),
                story(ends_a_request_at_its_deadline_while_the_model_loads),
        };

        return cmocka_run_group_tests_name("sim-deadlines", tests, NULL, NULL);
}
