/*
 * Requests with a slot whose clients do not answer, in simulated milliseconds: what others lose by
 * them.
 *
 * Lines are those of test-stories.c, and "held" and "unready" those of test-held.c and
 * test-guided.c.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        if (!conf.stall_preempt_ns)
                conf.stall_preempt_ns = 30 * SIM_MS;
        if (!conf.preemptions_max)
                conf.preemptions_max = 1;
        for (int i = 0; i < REQUEST_PRIORITY_N; i++)
                conf.learned[i] = !conf.reserve_max;
        sim_open_small(&sim, &conf);
}

static struct sim_request *ask(const char *name, uint64_t uid, uint32_t prompt, uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){
                                        .name = name, .uid = uid, .prompt = prompt, .most = most });
}

static struct sim_request *ask_held(struct sim_ask ask)
{
        ask.alone = ask.outside = true;
        return sim_submit(&sim, &ask);
}

/* b is of a worse class of the same user.  It gets the slot when h has waited for 30 ms. */
static void gives_up_its_slot_for_any_request_that_waits(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1 });
        ask_held((struct sim_ask){ .name = "h", .prompt = 4, .most = 2, .token_ns = 65 * SIM_MS });
        sim_run(&sim, 20);
        sim_submit(&sim, &(struct sim_ask){
                                 .name = "b",
                                 .priority = REQUEST_BACKGROUND,
                                 .prompt = 4,
                                 .most = 2,
                         });
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill h 0..4*; take 1 drop 0\n"
                         "[ 10] held 1\n"
                         "[ 20] held 1; sleep until 40\n"
                         "[ 40] prefill b 0..4*; preempted h; held 1; take 1 drop 1\n"
                         "[ 50] decode b 4; held 1\n"
                         "[ 60] held 1; end b length; retire b; take 0 drop 1\n"
                         "[ 75] prefill h 4..5*; take 1 drop 0; share 0 copy 1\n"
                         "[ 85] held 1\n"
                         "[150] end h length; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/* The same when a mask is awaited. */
static void gives_up_its_slot_when_its_mask_does_not_come(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1 });
        sim_submit(&sim, &(struct sim_ask){ .name = "g",
                                            .prompt = 4,
                                            .most = 3,
                                            .guided = true,
                                            .mask_ns = 45 * SIM_MS });
        sim_run(&sim, 50);
        ask("b", 0, 4, 2);
        sim_run(&sim, 300);
        sim_expect(&sim,
                   "[  0] unready 1\n"
                   "[ 45] prefill g 0..4*; take 1 drop 0\n"
                   "[ 55] unready 1; sleep until 85\n"
                   "[ 85] prefill b 0..4*; preempted g; unready 1; take 1 drop 1\n"
                   "[ 95] decode b 4; unready 1\n"
                   "[105] prefill g 4..5*; end b length; retire b; take 1 drop 1; share 0 copy 1\n"
                   "[115] unready 1\n"
                   "[160] decode g 5\n"
                   "[170] end g length; retire g; take 0 drop 1\n");
        sim_close(&sim);
}

/* Nobody waits for the slot but w, whose mask never comes, so the engine sleeps. */
static void keeps_its_slot_while_no_request_could_have_it(void **state)
{
        struct sim_request *waits;

        (void)state;
        world((struct sched_conf){ .slots = 1 });
        ask_held((struct sim_ask){ .name = "h", .prompt = 4, .most = 2, .token_ns = 65 * SIM_MS });
        waits = sim_submit(&sim, &(struct sim_ask){ .name = "w",
                                                    .prompt = 4,
                                                    .most = 2,
                                                    .guided = true,
                                                    .mask_ns = SIM_NEVER });
        sim_run(&sim, 100);
        sim_cancel(&sim, waits);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill h 0..4*; unready 1; take 1 drop 0\n"
                         "[ 10] unready 1; held 1\n"
                         "[ 75] decode h 4; unready 1\n"
                         "[ 85] unready 1; held 1\n"
                         "[100] held 1; end w cancelled; retire w\n"
                         "[150] end h length; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * h may be preempted once.  It gives up its slot three times, for users that were served more, and
 * is not promised its worst case of four blocks for that.
 */
static void gives_up_its_slot_as_often_as_its_client_does_not_answer(void **state)
{
        struct sim_request *held;

        (void)state;
        world((struct sched_conf){ .slots = 1 });
        ask("b", 2, 12, 1);
        sim_run(&sim, 10);
        held = ask_held((struct sim_ask){
                .name = "h", .uid = 1, .prompt = 1, .most = 60, .token_ns = 45 * SIM_MS });
        for (int i = 0; i < 3; i++) {
                ask("b", 2, 4, 1);
                sim_run(&sim, 70 + i * 60);
                assert_int_equal(held->core.preemptions, i + 1);
        }
        assert_int_equal(held->core.unanswered, 3);
        sim_run(&sim, 205);
        assert_int_equal(held->core.promised, 2);
        sim_cancel(&sim, held);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill b 0..12*; take 1 drop 0\n"
                         "[ 10] prefill h 0..1*; end b length; retire b; take 1 drop 1\n"
                         "[ 20] held 1; sleep until 50\n"
                         "[ 50] prefill b 0..4*; preempted h; held 1; take 1 drop 1\n"
                         "[ 60] held 1; end b length; retire b; take 0 drop 1\n"
                         "[ 65] prefill h 1..2*; take 1 drop 0; share 0 copy 1\n"
                         "[ 75] held 1; sleep until 105\n"
                         "[105] prefill b 0..4*; preempted h; held 1; take 1 drop 1\n"
                         "[115] held 1; end b length; retire b; take 0 drop 1\n"
                         "[120] prefill h 2..3*; take 1 drop 0; share 0 copy 1\n"
                         "[130] held 1; sleep until 160\n"
                         "[160] prefill b 0..4*; preempted h; held 1; take 1 drop 1\n"
                         "[170] held 1; end b length; retire b; take 0 drop 1\n"
                         "[175] prefill h 3..4*; take 1 drop 0; share 0 copy 1\n"
                         "[185] held 1\n"
                         "[205] end h cancelled; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * Three of four blocks may be reserved.  h has two of them, and a the other two blocks of the pool.
 * Both c and b are not reserved while h is, and would be without h.  Then c would need three
 * blocks, which is more than h gives up.  b needs one.
 */
static void gives_up_the_reserved_part_of_the_pool_if_that_is_enough(void **state)
{
        struct sim_request *held, *other, *large;

        (void)state;
        world((struct sched_conf){ .slots = 2, .blocks = 4, .reserve_max = 3 });
        held = ask_held(
                (struct sim_ask){ .name = "h", .prompt = 4, .most = 20, .token_ns = SIM_NEVER });
        other = ask("a", 0, 4, 18);
        sim_run(&sim, 20);
        large = ask("c", 0, 4, 40);
        sim_run(&sim, 60);
        sim_cancel(&sim, large);
        ask("b", 0, 4, 5);
        sim_run(&sim, 120);
        sim_cancel(&sim, held);
        sim_cancel(&sim, other);
        sim_run(&sim, 130);
        sim_expect(&sim,
                   "[  0] prefill h 0..4*; prefill a 0..4*; take 2 drop 0\n"
                   "[ 10] decode a 4; held 1\n"
                   "[ 20] decode a 5; held 1\n"
                   "[ 30] decode a 6; held 1\n"
                   "[ 40] decode a 7; held 1\n"
                   "[ 50] decode a 8; held 1\n"
                   "[ 60] decode a 9; prefill b 0..4*; preempted h; held 1; end c cancelled; "
                   "retire c; take 1 drop 1\n"
                   "[ 70] decode a 10; decode b 4; held 1\n"
                   "[ 80] decode a 11; decode b 5; held 1\n"
                   "[ 90] decode a 12; decode b 6; held 1\n"
                   "[100] decode a 13; decode b 7; held 1\n"
                   "[110] decode a 14; held 1; end b length; retire b; take 0 drop 1\n"
                   "[120] end h cancelled; end a cancelled; retire h; retire a; take 0 drop 1\n");
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
                STORY(gives_up_its_slot_for_any_request_that_waits),
                STORY(gives_up_its_slot_when_its_mask_does_not_come),
                STORY(keeps_its_slot_while_no_request_could_have_it),
                STORY(gives_up_its_slot_as_often_as_its_client_does_not_answer),
                STORY(gives_up_the_reserved_part_of_the_pool_if_that_is_enough),
        };

        return cmocka_run_group_tests_name("sim-unanswered", tests, NULL, NULL);
}
