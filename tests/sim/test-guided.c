/*
 * Requests whose next row needs the tokens before it, or a mask, in simulated milliseconds.
 *
 * Lines are those of test-stories.c.  "unready" counts the requests whose masks are not there.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        sim_open_small(&sim, &conf);
}

static struct sim_request *ask(const char *name, uint32_t prompt, uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name, .prompt = prompt, .most = most });
}

static struct sim_request *ask_guided(const char *name, uint32_t prompt, uint32_t most,
                                      uint64_t mask_ns)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .prompt = prompt,
                                                   .most = most,
                                                   .guided = true,
                                                   .mask_ns = mask_ns });
}

/* a is read and decodes while g waits for each of its masks. */
static void leaves_a_request_out_while_its_mask_is_not_there(void **state)
{
        (void)state;
        world((struct sched_conf){ .rows = 16 });
        ask_guided("g", 4, 3, 25 * SIM_MS);
        ask("a", 20, 4);
        sim_run(&sim, 120);
        sim_expect(&sim, "[  0] prefill a 0..16; unready 1; take 1 drop 0\n"
                         "[ 10] prefill a 16..20*; unready 1; take 1 drop 0\n"
                         "[ 20] decode a 20; unready 1\n"
                         "[ 30] decode a 21; prefill g 0..4*; take 1 drop 0\n"
                         "[ 40] decode a 22; unready 1\n"
                         "[ 50] unready 1; end a length; retire a; take 0 drop 2\n"
                         "[ 65] decode g 4\n"
                         "[ 75] unready 1\n"
                         "[100] decode g 5\n"
                         "[110] end g length; retire g; take 0 drop 1\n");
        sim_close(&sim);
}

/* The only slot goes to a, which came later; g is ready when a ends, and comes before b. */
static void skips_a_request_in_the_queue_while_its_mask_is_not_there(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1 });
        ask_guided("g", 4, 2, 15 * SIM_MS);
        ask("a", 4, 2);
        ask("b", 4, 2);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; unready 1; take 1 drop 0\n"
                         "[ 10] decode a 4; unready 1\n"
                         "[ 20] prefill g 0..4*; end a length; retire a; take 1 drop 1\n"
                         "[ 30] unready 1\n"
                         "[ 45] decode g 4\n"
                         "[ 55] prefill b 0..4*; end g length; retire g; take 1 drop 1\n"
                         "[ 65] decode b 4\n"
                         "[ 75] end b length; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

/* With two plans in flight, o and g are in every other one, and a is in all of them. */
static void has_one_row_of_an_alone_or_guided_request_in_flight(void **state)
{
        (void)state;
        world((struct sched_conf){ .depth = 2 });
        ask_guided("g", 4, 3, 0);
        sim_submit(&sim, &(struct sim_ask){ .name = "o", .prompt = 4, .most = 3, .alone = true });
        ask("a", 4, 4);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill g 0..4*; prefill o 0..4*; prefill a 0..4*; take 3 drop 0\n"
                         "[  0] decode a 4 of 1/11\n"
                         "[ 10] decode g 4; decode o 4; decode a 5 of 2/0\n"
                         "[ 20] decode a 6 of 3/2\n"
                         "[ 30] decode g 5; decode o 5\n"
                         "[ 40] end a length; retire a; take 0 drop 1\n"
                         "[ 50] end g length; end o length; retire g; retire o; take 0 drop 2\n");
        sim_close(&sim);
}

static void ends_a_request_whose_mask_never_comes_when_it_is_late_or_cancelled(void **state)
{
        struct sim_request *cancelled;

        (void)state;
        world((struct sched_conf){ 0 });
        sim_submit(&sim, &(struct sim_ask){ .name = "n",
                                            .prompt = 4,
                                            .most = 3,
                                            .guided = true,
                                            .mask_ns = SIM_NEVER,
                                            .deadline_ns = 35 * SIM_MS });
        cancelled = ask_guided("c", 4, 3, SIM_NEVER);
        sim_run(&sim, 60);
        sim_cancel(&sim, cancelled);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] unready 2; sleep until 35\n"
                         "[ 35] unready 1; end n late; retire n\n"
                         "[ 60] end c cancelled; retire c\n");
        sim_close(&sim);
}

/* No token is legal in s at 41.  Its numbers are valid, so t finds all of its blocks. */
static void keeps_the_blocks_of_a_request_that_is_stuck(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim_submit(&sim, &(struct sim_ask){ .name = "s",
                                            .prompt = 40,
                                            .most = 9,
                                            .guided = true,
                                            .end_at = 2,
                                            .verdict = SCHED_STUCK,
                                            .text = 5,
                                            .shared = 40 });
        sim_run(&sim, 60);
        sim_submit(&sim, &(struct sim_ask){
                                 .name = "t", .prompt = 40, .most = 2, .text = 5, .shared = 40 });
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill s 0..16; take 1 drop 0\n"
                         "[ 10] prefill s 16..32; take 1 drop 0\n"
                         "[ 20] prefill s 32..40*; take 1 drop 0\n"
                         "[ 30] decode s 40\n"
                         "[ 40] end s stuck; retire s; take 0 drop 3\n"
                         "[ 60] prefill t 39..40*; take 1 drop 0; share 2 copy 1\n"
                         "[ 70] decode t 40\n"
                         "[ 80] end t length; retire t; take 0 drop 3\n");
        sim_close(&sim);
}

/* The ring has space for one record.  The time in which s waits for its mask is not a stall. */
static void a_request_without_a_mask_is_not_stalled(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[1].capacity = 10;
        sim_speed(&sim, 1, 0);
        sim_submit(&sim, &(struct sim_ask){ .name = "s",
                                            .channel = 1,
                                            .prompt = 4,
                                            .most = 9,
                                            .guided = true,
                                            .mask_ns = 25 * SIM_MS });
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] unready 1\n"
                         "[ 25] prefill s 0..4*; take 1 drop 0\n"
                         "[ 35] unready 1\n"
                         "[ 60] stalled 1; sleep until 110\n"
                         "[110] end s stalled; retire s; take 0 drop 1\n");
        sim_close(&sim);
}

/* g gives way to a while its mask is open.  It comes when b runs, so g is next after b. */
static void a_request_is_preempted_while_its_mask_is_open(void **state)
{
        (void)state;
        world((struct sched_conf){
                .slots = 1, .preemptions_max = 3, .learned = { true, true, true } });
        sim_submit(&sim, &(struct sim_ask){ .name = "g",
                                            .priority = REQUEST_BACKGROUND,
                                            .prompt = 4,
                                            .most = 3,
                                            .guided = true,
                                            .mask_ns = 40 * SIM_MS });
        sim_run(&sim, 60);
        ask("a", 4, 2);
        ask("b", 4, 2);
        sim_run(&sim, 200);
        sim_expect(&sim,
                   "[  0] unready 1\n"
                   "[ 40] prefill g 0..4*; take 1 drop 0\n"
                   "[ 50] unready 1\n"
                   "[ 60] prefill a 0..4*; preempted g; unready 1; take 1 drop 1\n"
                   "[ 70] decode a 4; unready 1\n"
                   "[ 80] prefill b 0..4*; unready 1; end a length; retire a; take 1 drop 1\n"
                   "[ 90] decode b 4\n"
                   "[100] prefill g 4..5*; end b length; retire b; take 1 drop 1; share 0 copy 1\n"
                   "[110] unready 1\n"
                   "[150] decode g 5\n"
                   "[160] end g length; retire g; take 0 drop 1\n");
        sim_close(&sim);
}

static void a_batch_begins_when_a_mask_comes_after_its_window(void **state)
{
        (void)state;
        world((struct sched_conf){ .batch_size = 2, .batch_window_ns = 20 * SIM_MS });
        ask_guided("g", 4, 2, 45 * SIM_MS);
        sim_run(&sim, 120);
        sim_expect(&sim, "[  0] unready 1; sleep until 20\n"
                         "[ 20] unready 1\n"
                         "[ 45] prefill g 0..4*; take 1 drop 0\n"
                         "[ 55] unready 1\n"
                         "[100] decode g 4\n"
                         "[110] end g length; retire g; take 0 drop 1\n");
        sim_close(&sim);
}

static int clear(void **state)
{
        (void)state;
        sim_free(&sim);
        return 0;
}

#define STORY(name) cmocka_unit_test_teardown(name, clear)

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(leaves_a_request_out_while_its_mask_is_not_there),
                STORY(skips_a_request_in_the_queue_while_its_mask_is_not_there),
                STORY(has_one_row_of_an_alone_or_guided_request_in_flight),
                STORY(ends_a_request_whose_mask_never_comes_when_it_is_late_or_cancelled),
                STORY(keeps_the_blocks_of_a_request_that_is_stuck),
                STORY(a_request_without_a_mask_is_not_stalled),
                STORY(a_request_is_preempted_while_its_mask_is_open),
                STORY(a_batch_begins_when_a_mask_comes_after_its_window),
        };

        return cmocka_run_group_tests_name("sim-guided", tests, NULL, NULL);
}
