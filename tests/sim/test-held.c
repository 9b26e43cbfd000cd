/*
 * Requests whose tokens come from outside, some time after their rows, in simulated milliseconds.
 *
 * Lines are those of test-stories.c.  "held" counts the requests whose rows have run, and whose
 * tokens are not there.
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

static struct sim_request *ask_held(struct sim_ask ask)
{
        ask.alone = ask.outside = true;
        return sim_submit(&sim, &ask);
}

/* Lets time pass, and compares nothing of it. */
static void run_unseen(uint64_t ms)
{
        sim_run(&sim, sim.now_ns / SIM_MS + ms);
        sim.trace_count = 0;
        sim.trace[0] = 0;
}

/* Answers are known to have two tokens, so no request is held back. */
static void teach(void)
{
        for (int i = 0; i < 16; i++) {
                ask("t", 1, 2);
                run_unseen(40);
        }
        sim.now_ns = 1000 * SIM_MS;
}

/* a decodes while h waits for each of its tokens; the last of these is an EOS. */
static void leaves_a_request_out_until_its_token_comes(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask_held((struct sim_ask){ .name = "h",
                                   .prompt = 4,
                                   .most = 9,
                                   .token_ns = 15 * SIM_MS,
                                   .end_at = 3,
                                   .verdict = SCHED_EOS });
        ask("a", 4, 4);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill h 0..4*; prefill a 0..4*; take 2 drop 0\n"
                         "[ 10] decode a 4; held 1\n"
                         "[ 20] decode a 5; held 1\n"
                         "[ 30] decode h 4; decode a 6\n"
                         "[ 40] held 1; end a length; retire a; take 0 drop 1\n"
                         "[ 55] decode h 5\n"
                         "[ 65] held 1\n"
                         "[ 80] end h eos; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/* With two plans in flight; each token of h comes in the middle of a step. */
static void has_no_row_while_it_is_held_with_two_plans_in_flight(void **state)
{
        (void)state;
        world((struct sched_conf){ .depth = 2 });
        ask_held((struct sim_ask){ .name = "h", .prompt = 4, .most = 3, .token_ns = 5 * SIM_MS });
        ask("a", 4, 6);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill h 0..4*; prefill a 0..4*; take 2 drop 0\n"
                         "[  0] decode a 4 of 1/7\n"
                         "[ 10] decode a 5 of 2/0; held 1\n"
                         "[ 20] decode h 4; decode a 6 of 3/0\n"
                         "[ 30] decode a 7 of 4/1\n"
                         "[ 40] decode a 8 of 5/0; held 1\n"
                         "[ 50] decode h 5\n"
                         "[ 60] end a length; retire a; take 0 drop 1\n"
                         "[ 70] held 1\n"
                         "[ 75] end h length; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/* The mask of a token is there before its row, and the token comes after it. */
static void waits_for_its_mask_and_then_for_its_token(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask_held((struct sim_ask){ .name = "h",
                                   .prompt = 4,
                                   .most = 3,
                                   .guided = true,
                                   .mask_ns = 25 * SIM_MS,
                                   .token_ns = 40 * SIM_MS });
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] unready 1\n"
                         "[ 25] prefill h 0..4*; take 1 drop 0\n"
                         "[ 35] held 1\n"
                         "[ 75] unready 1\n"
                         "[100] decode h 4\n"
                         "[110] held 1\n"
                         "[150] unready 1\n"
                         "[175] decode h 5\n"
                         "[185] held 1\n"
                         "[225] end h length; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/* Nothing can run before the token comes, and no time is set to wake at. */
static void the_engine_sleeps_until_a_token_comes(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask_held((struct sim_ask){ .name = "h", .prompt = 4, .most = 2, .token_ns = SIM_NEVER });
        sim_run(&sim, 10);
        sim_step(&sim);
        assert_int_equal(sim.plan.wake_ns, PLAN_SLEEP);
        sim.masks_hurry = true;
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill h 0..4*; take 1 drop 0\n"
                         "[ 10] held 1\n"
                         "[ 10] decode h 4\n"
                         "[ 20] end h length; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/* No token of l comes before 45, when it is late, and none of c before it is cancelled. */
static void ends_a_held_request_when_it_is_late_or_cancelled(void **state)
{
        struct sim_request *cancelled;

        (void)state;
        world((struct sched_conf){ 0 });
        ask_held((struct sim_ask){ .name = "l",
                                   .prompt = 4,
                                   .most = 3,
                                   .token_ns = SIM_NEVER,
                                   .deadline_ns = 45 * SIM_MS });
        cancelled = ask_held(
                (struct sim_ask){ .name = "c", .prompt = 4, .most = 3, .token_ns = SIM_NEVER });
        sim_run(&sim, 60);
        sim_cancel(&sim, cancelled);
        sim_run(&sim, 100);
        assert_int_equal(sim.tokens_in_vain, 2);
        sim_expect(&sim, "[  0] prefill l 0..4*; prefill c 0..4*; take 2 drop 0\n"
                         "[ 10] held 2; sleep until 45\n"
                         "[ 45] held 1; end l late; retire l; take 0 drop 1\n"
                         "[ 60] end c cancelled; retire c; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * The ring has space for two records, and nobody reads.  h is held, so a makes one token and is
 * stalled.  The record of h takes the space that was kept for it.
 */
static void keeps_the_space_for_the_record_of_a_held_request(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[1].capacity = 20;
        sim_speed(&sim, 1, 0);
        ask_held((struct sim_ask){
                .name = "h", .channel = 1, .prompt = 4, .most = 1, .token_ns = 45 * SIM_MS });
        sim_submit(&sim, &(struct sim_ask){ .name = "a", .channel = 1, .prompt = 4, .most = 9 });
        sim_run(&sim, 60);
        assert_int_equal(sim.channels[1].used, 20);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill h 0..4*; prefill a 0..4*; take 2 drop 0\n"
                         "[ 10] stalled 1; held 1; sleep until 60\n"
                         "[ 55] stalled 1; end h length; retire h; take 0 drop 1; sleep until 60\n"
                         "[ 60] end a stalled; retire a; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * The ring has 23 bytes, and nobody reads before 55.  Of 10 bytes for a record, 7 are written when
 * the row has run.  Then 3 are kept for each of h and i, and a has the other 3.
 */
static void keeps_no_space_for_what_it_wrote_before_it_was_held(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[1].capacity = 23;
        sim_speed(&sim, 1, 0);
        for (int i = 0; i < 2; i++) {
                ask_held((struct sim_ask){ .name = i ? "i" : "h",
                                           .channel = 1,
                                           .prompt = 4,
                                           .most = 2,
                                           .asked_bytes = 7,
                                           .token_ns = 25 * SIM_MS });
        }
        sim_run(&sim, 20);
        assert_int_equal(sim.channels[1].used, 14);
        assert_int_equal(sched_pending_bytes(sim.sched, 1), 6);
        sim_submit(&sim, &(struct sim_ask){
                                 .name = "a",
                                 .channel = 1,
                                 .prompt = 4,
                                 .most = 1,
                                 .record_bytes = 3,
                         });
        sim_run(&sim, 55);
        assert_int_equal(sim.channels[1].used, 23);
        sim_speed(&sim, 1, SIM_FAST);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill h 0..4*; prefill i 0..4*; take 2 drop 0\n"
                         "[ 10] held 2\n"
                         "[ 20] prefill a 0..4*; held 2; take 1 drop 0\n"
                         "[ 30] held 2; end a length; retire a; take 0 drop 1\n"
                         "[ 35] stalled 2; sleep until 85\n"
                         "[ 55] decode h 4; decode i 4\n"
                         "[ 65] held 2\n"
                         "[ 90] end h length; end i length; retire h; retire i; take 0 drop 2\n");
        sim_close(&sim);
}

/*
 * Its record has space, so h is not stalled while it is held, although that takes longer than a
 * stall may.  Its next record has none.
 */
static void a_held_request_is_not_stalled(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[1].capacity = 10;
        sim_speed(&sim, 1, 0);
        ask_held((struct sim_ask){
                .name = "h", .channel = 1, .prompt = 4, .most = 9, .token_ns = 90 * SIM_MS });
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill h 0..4*; take 1 drop 0\n"
                         "[ 10] held 1\n"
                         "[100] stalled 1; sleep until 150\n"
                         "[150] end h stalled; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/* h gives way to a at once.  Its token comes when b runs, so h is next after b. */
static void a_held_request_is_preempted_and_comes_back_when_its_token_has_come(void **state)
{
        (void)state;
        world((struct sched_conf){
                .slots = 1, .preemptions_max = 3, .learned = { true, true, true } });
        ask_held((struct sim_ask){ .name = "h",
                                   .priority = REQUEST_BACKGROUND,
                                   .prompt = 4,
                                   .most = 3,
                                   .token_ns = 45 * SIM_MS });
        sim_run(&sim, 20);
        ask("a", 4, 2);
        ask("b", 4, 2);
        sim_run(&sim, 300);
        sim_expect(&sim,
                   "[  0] prefill h 0..4*; take 1 drop 0\n"
                   "[ 10] held 1\n"
                   "[ 20] prefill a 0..4*; preempted h; held 1; take 1 drop 1\n"
                   "[ 30] decode a 4; held 1\n"
                   "[ 40] prefill b 0..4*; held 1; end a length; retire a; take 1 drop 1\n"
                   "[ 50] decode b 4; held 1\n"
                   "[ 60] prefill h 4..5*; end b length; retire b; take 1 drop 1; share 0 copy 1\n"
                   "[ 70] held 1\n"
                   "[115] decode h 5\n"
                   "[125] held 1\n"
                   "[170] end h length; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/* The token comes while h waits for the slot of a, and it is its last. */
static void a_request_ends_with_a_token_that_comes_while_it_waits_for_a_slot(void **state)
{
        (void)state;
        world((struct sched_conf){
                .slots = 1, .preemptions_max = 3, .learned = { true, true, true } });
        ask_held((struct sim_ask){ .name = "h",
                                   .priority = REQUEST_BACKGROUND,
                                   .prompt = 4,
                                   .most = 3,
                                   .end_at = 1,
                                   .verdict = SCHED_STOP,
                                   .token_ns = 25 * SIM_MS });
        sim_run(&sim, 20);
        ask("a", 4, 6);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill h 0..4*; take 1 drop 0\n"
                         "[ 10] held 1\n"
                         "[ 20] prefill a 0..4*; preempted h; held 1; take 1 drop 1\n"
                         "[ 30] decode a 4; held 1\n"
                         "[ 40] decode a 5; end h stop; retire h\n"
                         "[ 50] decode a 6\n"
                         "[ 60] decode a 7\n"
                         "[ 70] decode a 8\n"
                         "[ 80] end a length; retire a; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * The ring has space for two records, and nobody reads.  h has given its slot to a, and waits for
 * its token.  When h is cancelled, its space is free, and a is not stalled any more.
 */
static void frees_the_space_of_a_held_request_that_ends_in_the_queue(void **state)
{
        struct sim_request *held;

        (void)state;
        world((struct sched_conf){
                .slots = 1, .preemptions_max = 3, .learned = { true, true, true } });
        sim.channels[1].capacity = 20;
        sim_speed(&sim, 1, 0);
        held = ask_held((struct sim_ask){ .name = "h",
                                          .priority = REQUEST_BACKGROUND,
                                          .channel = 1,
                                          .prompt = 4,
                                          .most = 3,
                                          .token_ns = SIM_NEVER });
        sim_run(&sim, 20);
        sim_submit(&sim, &(struct sim_ask){ .name = "a", .channel = 1, .prompt = 4, .most = 2 });
        sim_run(&sim, 45);
        sim_cancel(&sim, held);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill h 0..4*; take 1 drop 0\n"
                         "[ 10] held 1\n"
                         "[ 20] prefill a 0..4*; preempted h; held 1; take 1 drop 1\n"
                         "[ 30] stalled 1; held 1; sleep until 80\n"
                         "[ 45] decode a 4; end h cancelled; retire h\n"
                         "[ 55] end a length; retire a; take 0 drop 1\n");
        sim_close(&sim);
}

/* Without a slot h waits for its token first, and then for its mask. */
static void a_preempted_request_waits_for_its_token_and_then_for_its_mask(void **state)
{
        (void)state;
        world((struct sched_conf){
                .slots = 1, .preemptions_max = 3, .learned = { true, true, true } });
        ask_held((struct sim_ask){ .name = "h",
                                   .priority = REQUEST_BACKGROUND,
                                   .prompt = 4,
                                   .most = 2,
                                   .guided = true,
                                   .mask_ns = 10 * SIM_MS,
                                   .token_ns = 65 * SIM_MS });
        sim_run(&sim, 30);
        ask("a", 4, 2);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] unready 1\n"
                         "[ 10] prefill h 0..4*; take 1 drop 0\n"
                         "[ 20] held 1\n"
                         "[ 30] prefill a 0..4*; preempted h; held 1; take 1 drop 1\n"
                         "[ 40] decode a 4; held 1\n"
                         "[ 50] held 1; end a length; retire a; take 0 drop 1\n"
                         "[ 85] unready 1\n"
                         "[ 95] prefill h 4..5*; take 1 drop 0; share 0 copy 1\n"
                         "[105] held 1\n"
                         "[170] end h length; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/* h is the last of its batch, and b waits for it. */
static void a_batch_lasts_while_a_request_of_it_is_held(void **state)
{
        (void)state;
        world((struct sched_conf){ .batch_size = 2, .batch_window_ns = 20 * SIM_MS });
        ask_held((struct sim_ask){ .name = "h", .prompt = 4, .most = 2, .token_ns = 45 * SIM_MS });
        ask("a", 4, 2);
        ask("b", 4, 2);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill h 0..4*; prefill a 0..4*; take 2 drop 0\n"
                         "[ 10] decode a 4; held 1\n"
                         "[ 20] held 1; end a length; retire a; take 0 drop 1\n"
                         "[ 55] decode h 4\n"
                         "[ 65] held 1\n"
                         "[110] prefill b 0..4*; end h length; retire h; take 1 drop 1\n"
                         "[120] decode b 4\n"
                         "[130] end b length; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * The pool has four blocks.  d needs a third one for its row at 32, when h is held.  h came later,
 * so it gives up its slot, and d does not wait for the client of h.
 */
static void a_held_request_gives_up_its_blocks_at_once(void **state)
{
        struct sim_request *held;

        (void)state;
        world((struct sched_conf){
                .blocks = 4, .preemptions_max = 3, .learned = { true, true, true } });
        teach();
        ask("d", 14, 22);
        held = ask_held((struct sim_ask){
                .name = "h", .prompt = 14, .most = 20, .token_ns = 290 * SIM_MS });
        run_unseen(170);
        sim_run(&sim, 1340);
        sim_cancel(&sim, held);
        sim_run(&sim, 1400);
        sim_expect(&sim, "[1170] decode d 30; held 1\n"
                         "[1180] decode d 31; held 1\n"
                         "[1190] decode d 32; preempted h; held 1; take 1 drop 1\n"
                         "[1200] decode d 33; held 1\n"
                         "[1210] decode d 34; held 1\n"
                         "[1220] held 1; end d length; retire d; take 0 drop 3\n"
                         "[1310] prefill h 14..15*; take 1 drop 0; share 0 copy 1\n"
                         "[1320] held 1\n"
                         "[1340] end h cancelled; retire h; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * The same pool.  h needs a third block for its row at 32, but its token is not there yet.  So d
 * goes on until that comes, and only then gives way.
 */
static void others_give_way_to_a_held_request_only_when_its_token_has_come(void **state)
{
        struct sim_request *held;

        (void)state;
        world((struct sched_conf){ .blocks = 4,
                                   .preemptions_max = 3,
                                   .stall_preempt_ns = SIM_NEVER,
                                   .learned = { true, true, true } });
        teach();
        held = ask_held(
                (struct sim_ask){ .name = "h", .prompt = 14, .most = 20, .token_ns = 20 * SIM_MS });
        run_unseen(510);
        ask("d", 14, 14);
        held->token_ns = 50 * SIM_MS;
        sim_run(&sim, 1800);
        sim_expect(
                &sim,
                "[1510] decode h 30; prefill d 0..14*; take 1 drop 0\n"
                "[1520] decode d 14; held 1\n"
                "[1530] decode d 15; held 1\n"
                "[1540] decode d 16; held 1; take 1 drop 0\n"
                "[1550] decode d 17; held 1\n"
                "[1560] decode d 18; held 1\n"
                "[1570] decode h 31; decode d 19\n"
                "[1580] decode d 20; held 1\n"
                "[1590] decode d 21; held 1\n"
                "[1600] decode d 22; held 1\n"
                "[1610] decode d 23; held 1\n"
                "[1620] decode d 24; held 1\n"
                "[1630] decode h 32; preempted d; take 1 drop 2\n"
                "[1640] held 1\n"
                "[1690] prefill d 16..26*; end h length; retire h; take 1 drop 3; share 1 copy 0\n"
                "[1700] decode d 26\n"
                "[1710] end d length; retire d; take 0 drop 2\n");
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
                STORY(leaves_a_request_out_until_its_token_comes),
                STORY(has_no_row_while_it_is_held_with_two_plans_in_flight),
                STORY(waits_for_its_mask_and_then_for_its_token),
                STORY(the_engine_sleeps_until_a_token_comes),
                STORY(ends_a_held_request_when_it_is_late_or_cancelled),
                STORY(keeps_the_space_for_the_record_of_a_held_request),
                STORY(keeps_no_space_for_what_it_wrote_before_it_was_held),
                STORY(a_held_request_is_not_stalled),
                STORY(a_held_request_is_preempted_and_comes_back_when_its_token_has_come),
                STORY(a_request_ends_with_a_token_that_comes_while_it_waits_for_a_slot),
                STORY(frees_the_space_of_a_held_request_that_ends_in_the_queue),
                STORY(a_preempted_request_waits_for_its_token_and_then_for_its_mask),
                STORY(a_batch_lasts_while_a_request_of_it_is_held),
                STORY(a_held_request_gives_up_its_blocks_at_once),
                STORY(others_give_way_to_a_held_request_only_when_its_token_has_come),
        };

        return cmocka_run_group_tests_name("sim-held", tests, NULL, NULL);
}
