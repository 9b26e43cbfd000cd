/*
 * Scenarios of classes and of preemption, in simulated milliseconds; test-stories.c says how to
 * read a line.
 *
 * "preempt b": b is to give up its slot, once its rows are back; "preempted b": it has.  Later it
 * continues from the same place: the part that is still in the pool is found, the rest is read
 * again.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        sim_open_small(&sim, &conf);
}

/* Each request belongs to a user of its own, by its letter. */
static struct sim_request *ask_on(uint32_t channel, enum request_priority priority,
                                  const char *name, uint32_t prompt, uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = (uint32_t)name[0],
                                                   .priority = priority,
                                                   .channel = channel,
                                                   .prompt = prompt,
                                                   .most = most });
}

static struct sim_request *ask(enum request_priority priority, const char *name, uint32_t prompt,
                               uint32_t most)
{
        return ask_on(0, priority, name, prompt, most);
}

static void interactive_preempts_background_which_later_continues_unchanged(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1, .preemptions_max = 1 });
        ask(REQUEST_BACKGROUND, "b", 4, 5);
        sim_run(&sim, 20);
        ask(REQUEST_INTERACTIVE, "i", 4, 2);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill b 0..4*; take 1 drop 0\n"
                         "[ 10] decode b 4\n"
                         "[ 20] prefill i 0..4*; preempted b; take 1 drop 1\n"
                         "[ 30] decode i 4\n"
                         "[ 40] prefill b 5..6*; end i length; retire i; take 1 drop 1; "
                         "share 0 copy 1\n"
                         "[ 50] decode b 6\n"
                         "[ 60] decode b 7\n"
                         "[ 70] end b length; retire b; take 0 drop 1\n");
        assert_int_equal(sim.preempted, 1);
        assert_int_equal(sim.resumed, 1);
        sim_close(&sim);
}

static void preempts_after_rows_in_flight_return_and_keeps_their_results(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1, .preemptions_max = 1, .depth = 2 });
        ask(REQUEST_BACKGROUND, "b", 4, 5);
        sim_run(&sim, 10);
        ask(REQUEST_INTERACTIVE, "i", 4, 1);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill b 0..4*; take 1 drop 0\n"
                         "[  0] decode b 4 of 1/3\n"
                         "[ 10] preempt b\n"
                         "[ 20] prefill i 0..4*; preempted b; take 1 drop 1\n"
                         "[ 30] prefill b 5..6*; end i length; retire i; take 1 drop 1; "
                         "share 0 copy 1\n"
                         "[ 30] decode b 6 of 4/0\n"
                         "[ 40] decode b 7 of 5/0\n"
                         "[ 60] end b length; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

static void never_preempts_a_request_more_often_than_allowed(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1, .preemptions_max = 1 });
        ask(REQUEST_BACKGROUND, "b", 4, 5);
        sim_run(&sim, 20);
        ask(REQUEST_INTERACTIVE, "i", 4, 2);
        sim_run(&sim, 50);
        ask(REQUEST_INTERACTIVE, "k", 4, 2);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill b 0..4*; take 1 drop 0\n"
                         "[ 10] decode b 4\n"
                         "[ 20] prefill i 0..4*; preempted b; take 1 drop 1\n"
                         "[ 30] decode i 4\n"
                         "[ 40] prefill b 5..6*; end i length; retire i; take 1 drop 1; "
                         "share 0 copy 1\n"
                         "[ 50] decode b 6\n"
                         "[ 60] decode b 7\n"
                         "[ 70] prefill k 0..4*; end b length; retire b; take 1 drop 1\n"
                         "[ 80] decode k 4\n"
                         "[ 90] end k length; retire k; take 0 drop 1\n");
        sim_close(&sim);
}

/* Two blocks come free with b, and i needs three. */
static void does_not_preempt_if_too_few_blocks_would_become_free(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 2, .blocks = 4, .rows = 64, .preemptions_max = 1 });
        ask(REQUEST_INTERACTIVE, "x", 20, 6);
        ask(REQUEST_BACKGROUND, "b", 4, 12);
        sim_run(&sim, 10);
        ask(REQUEST_INTERACTIVE, "i", 40, 3);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill x 0..20*; prefill b 0..4*; take 3 drop 0\n"
                         "[ 10] decode x 20; decode b 4\n"
                         "[ 20] decode x 21; decode b 5\n"
                         "[ 30] decode x 22; decode b 6\n"
                         "[ 40] decode x 23; decode b 7\n"
                         "[ 50] decode x 24; decode b 8\n"
                         "[ 60] decode b 9; prefill i 0..40*; end x length; retire x; "
                         "take 3 drop 2\n"
                         "[ 70] decode b 10; decode i 40\n"
                         "[ 80] decode b 11; decode i 41\n"
                         "[ 90] decode b 12; end i length; retire i; take 0 drop 3\n"
                         "[100] decode b 13\n"
                         "[110] decode b 14\n"
                         "[120] end b length; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

/* b and c share four blocks of six, so i has five only if both give way. */
static void preempts_both_requests_that_share_the_needed_blocks(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 2, .blocks = 6, .rows = 100, .preemptions_max = 1 });
        for (int i = 0; i < 2; i++) {
                sim_submit(&sim, &(struct sim_ask){ .name = i ? "c" : "b",
                                                    .priority = REQUEST_BACKGROUND,
                                                    .shared = 64,
                                                    .prompt = i ? 66 : 64,
                                                    .most = i ? 3 : 5 });
                sim_run(&sim, i ? 20 : 10);
        }
        ask(REQUEST_INTERACTIVE, "i", 66, 2);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill b 0..64*; take 4 drop 0\n"
                         "[ 10] decode b 64; prefill c 64..66*; take 2 drop 0; share 4 copy 0\n"
                         "[ 20] prefill i 0..66*; preempted b; preempted c; take 5 drop 6\n"
                         "[ 30] decode i 66\n"
                         "[ 40] prefill b 16..66*; end i length; retire i; take 4 drop 5; "
                         "share 1 copy 0\n"
                         "[ 50] decode b 66; prefill c 64..67*; take 1 drop 0; share 4 copy 0\n"
                         "[ 60] decode b 67; decode c 67\n"
                         "[ 70] end b length; end c length; retire b; retire c; take 0 drop 6\n");
        sim_close(&sim);
}

/* b holds a's two blocks, one of them to copy it, and is promised the third.  i needs all three. */
static void preempting_frees_blocks_that_are_still_to_be_copied(void **state)
{
        struct sim_ask one = { .name = "a", .shared = 20, .prompt = 20, .most = 1 };

        (void)state;
        world((struct sched_conf){ .slots = 2,
                                   .blocks = 3,
                                   .rows = 100,
                                   .preemptions_max = 1,
                                   .stall_timeout_ns = 1000 * SIM_MS });
        sim.channels[1].capacity = 0;
        sim_submit(&sim, &one);
        sim_run(&sim, 10);
        one.name = "b";
        one.channel = 1;
        one.priority = REQUEST_BACKGROUND;
        sim_submit(&sim, &one);
        sim_run(&sim, 20);
        ask(REQUEST_INTERACTIVE, "i", 40, 2);
        sim_run(&sim, 50);
        sim.channels[1].capacity = 100;
        sim_run(&sim, 100);
        sim_expect(&sim,
                   "[  0] prefill a 0..20*; take 2 drop 0\n"
                   "[ 10] stalled 1; end a length; retire a; take 0 drop 2; sleep until 1010\n"
                   "[ 20] prefill i 0..40*; preempted b; stalled 1; take 3 drop 0\n"
                   "[ 30] decode i 40; stalled 1\n"
                   "[ 40] stalled 1; end i length; retire i; take 0 drop 3; "
                   "sleep until 1010\n"
                   "[ 50] prefill b 0..20*; take 2 drop 0\n"
                   "[ 60] end b length; retire b; take 0 drop 2\n");
        sim_close(&sim);
}

/* The user with all slots would be above its half as soon as the preempted request waited. */
static void does_not_preempt_for_a_user_that_would_then_exceed_its_half(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 2, .preemptions_max = 3 });
        ask(REQUEST_INTERACTIVE, "a1", 4, 4);
        ask(REQUEST_BACKGROUND, "b", 4, 6);
        sim_run(&sim, 10);
        ask(REQUEST_INTERACTIVE, "a2", 4, 2);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..4*; prefill b 0..4*; take 2 drop 0\n"
                         "[ 10] decode a1 4; decode b 4\n"
                         "[ 20] decode a1 5; decode b 5\n"
                         "[ 30] decode a1 6; decode b 6\n"
                         "[ 40] decode b 7; prefill a2 0..4*; end a1 length; retire a1; "
                         "take 1 drop 1\n"
                         "[ 50] decode b 8; decode a2 4\n"
                         "[ 60] end b length; end a2 length; retire b; retire a2; take 0 drop 2\n");
        assert_int_equal(sim.preempted, 0);
        sim_close(&sim);
}

/* b begins as equal.  After a step a was served more, and gives up the slot that it got last. */
static void a_user_with_several_slots_gives_one_to_a_user_without(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 2, .preemptions_max = 1 });
        ask(REQUEST_NORMAL, "a1", 4, 8);
        ask(REQUEST_NORMAL, "a2", 4, 8);
        sim_run(&sim, 20);
        ask(REQUEST_NORMAL, "b", 4, 2);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..4*; prefill a2 0..4*; take 2 drop 0\n"
                         "[ 10] decode a1 4; decode a2 4\n"
                         "[ 20] decode a1 5; decode a2 5\n"
                         "[ 30] decode a1 6; prefill b 0..4*; preempted a2; take 1 drop "
                         "1\n"
                         "[ 40] decode a1 7; decode b 4\n"
                         "[ 50] decode a1 8; prefill a2 6..7*; end b length; retire b; "
                         "take 1 drop 1; share 0 copy 1\n"
                         "[ 60] decode a1 9; decode a2 7\n"
                         "[ 70] decode a1 10; decode a2 8\n"
                         "[ 80] decode a2 9; end a1 length; retire a1; take 0 drop 1\n"
                         "[ 90] decode a2 10\n"
                         "[100] end a2 length; retire a2; take 0 drop 1\n");
        sim_close(&sim);
}

/* Class is worth a lead between users, and b is not that far ahead.  Then it is. */
static void gives_up_a_slot_to_a_worse_class_of_a_user_that_was_served_less(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1, .preemptions_max = 1, .lead_ns = 20 * SIM_MS });
        ask(REQUEST_INTERACTIVE, "b", 4, 12);
        sim_run(&sim, 20);
        ask(REQUEST_BACKGROUND, "a", 4, 2);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill b 0..4*; take 1 drop 0\n"
                         "[ 10] decode b 4\n"
                         "[ 20] decode b 5\n"
                         "[ 30] decode b 6\n"
                         "[ 40] decode b 7\n"
                         "[ 50] decode b 8\n"
                         "[ 60] decode b 9\n"
                         "[ 70] decode b 10\n"
                         "[ 80] prefill a 0..4*; preempted b; take 1 drop 1\n"
                         "[ 90] decode a 4\n"
                         "[100] prefill b 11..12*; end a length; retire a; take 1 drop "
                         "1; share 0 copy 1\n"
                         "[110] decode b 12\n"
                         "[120] decode b 13\n"
                         "[130] decode b 14\n"
                         "[140] end b length; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

/* Each has two slots of six.  b was served less than a, and takes the next one that is free. */
static void users_with_as_many_slots_do_not_preempt_each_other(void **state)
{
        static const char *const names[] = { "a1", "a2", "b1", "b2", "c1", "c2" };

        (void)state;
        world((struct sched_conf){
                .slots = 6, .rows = 128, .preemptions_max = 1, .lead_ns = SIM_MS });
        for (int i = 0; i < 6; i++)
                ask(REQUEST_NORMAL, names[i], i < 2 ? 40 : 4, 5);
        ask(REQUEST_NORMAL, "b3", 4, 3);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill b1 0..4*; prefill b2 0..4*; prefill c1 0..4*; "
                         "prefill c2 0..4*; prefill a1 0..40*; prefill a2 0..40*; take "
                         "10 drop 0\n"
                         "[ 10] decode a1 40; decode a2 40; decode b1 4; decode b2 4; "
                         "decode c1 4; decode c2 4\n"
                         "[ 20] decode a1 41; decode a2 41; decode b1 5; decode b2 5; "
                         "decode c1 5; decode c2 5\n"
                         "[ 30] decode a1 42; decode a2 42; decode b1 6; decode b2 6; "
                         "decode c1 6; decode c2 6\n"
                         "[ 40] decode a1 43; decode a2 43; decode b1 7; decode b2 7; "
                         "decode c1 7; decode c2 7\n"
                         "[ 50] prefill b3 0..4*; end a1 length; end a2 length; end b1 "
                         "length; end b2 length; end c1 length; end c2 length; retire "
                         "a1; retire a2; retire b1; retire b2; retire c1; retire c2; "
                         "take 1 drop 10\n"
                         "[ 60] decode b3 4\n"
                         "[ 70] decode b3 5\n"
                         "[ 80] end b3 length; retire b3; take 0 drop 1\n");
        assert_int_equal(sim.preempted, 0);
        sim_close(&sim);
}

static void preempts_a_request_stalled_for_grace_ms_for_any_other(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 1,
                                   .preemptions_max = 1,
                                   .stall_preempt_ns = 20 * SIM_MS,
                                   .stall_timeout_ns = 1000 * SIM_MS });
        sim.channels[1].capacity = 20;
        sim_speed(&sim, 1, 0);
        ask_on(1, REQUEST_INTERACTIVE, "s", 4, 6);
        ask(REQUEST_BACKGROUND, "n", 4, 2);
        sim_run(&sim, 80);
        sim_speed(&sim, 1, SIM_FAST);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill s 0..4*; take 1 drop 0\n"
                         "[ 10] decode s 4\n"
                         "[ 20] stalled 1; sleep until 40\n"
                         "[ 40] prefill n 0..4*; preempted s; stalled 1; take 1 drop 1\n"
                         "[ 50] decode n 4; stalled 1\n"
                         "[ 60] stalled 1; end n length; retire n; take 0 drop 1; "
                         "sleep until 1020\n"
                         "[ 80] prefill s 5..6*; take 1 drop 0; share 0 copy 1\n"
                         "[ 90] decode s 6\n"
                         "[100] decode s 7\n"
                         "[110] decode s 8\n"
                         "[120] end s length; retire s; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * s lacked space when it was preempted, and has it now: it is asked with the others.  So of eight
 * rows two are short, and p has them before l, which came long ago.
 */
static void a_resumed_request_takes_turns_in_prefill_with_the_others(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 3, .rows = 8, .preemptions_max = 1 });
        sim.channels[1].capacity = 20;
        sim_speed(&sim, 1, 0);
        ask_on(1, REQUEST_INTERACTIVE, "s", 4, 6);
        sim_run(&sim, 20);
        ask(REQUEST_INTERACTIVE, "l", 24, 1);
        ask(REQUEST_INTERACTIVE, "m", 1, 2);
        ask(REQUEST_INTERACTIVE, "n", 1, 1);
        sim_run(&sim, 40);
        sim_speed(&sim, 1, SIM_FAST);
        ask(REQUEST_INTERACTIVE, "p", 2, 1);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill s 0..4*; take 1 drop 0\n"
                         "[ 10] decode s 4\n"
                         "[ 20] prefill m 0..1*; prefill l 0..7; stalled 1; take 2 drop 0\n"
                         "[ 30] decode m 1; prefill n 0..1*; prefill l 7..13; preempted s; "
                         "stalled 1; take 1 drop 1\n"
                         "[ 40] prefill s 5..6*; prefill p 0..2*; prefill l 13..18; "
                         "end m length; end n length; retire m; retire n; take 3 drop 2; "
                         "share 0 copy 1\n"
                         "[ 50] decode s 6; prefill l 18..24*; end p length; retire p; "
                         "take 0 drop 1\n"
                         "[ 60] decode s 7; end l length; retire l; take 0 drop 2\n"
                         "[ 70] decode s 8\n"
                         "[ 80] end s length; retire s; take 0 drop 1\n");
        sim_close(&sim);
}

static void a_request_waits_for_an_equal_prompt_in_prefill_and_reuses_it(void **state)
{
        (void)state;
        world((struct sched_conf){ .rows = 64 });
        for (int i = 0; i < 2; i++)
                sim_submit(&sim, &(struct sim_ask){ .name = i ? "b" : "a",
                                                    .text = 1,
                                                    .shared = 40,
                                                    .prompt = 40,
                                                    .most = 2 });
        sim_submit(&sim, &(struct sim_ask){ .name = "c", .prompt = 4, .most = 2 });
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill c 0..4*; prefill a 0..40*; take 4 drop 0\n"
                         "[ 10] decode a 40; decode c 4; prefill b 39..40*; take 1 drop 0; "
                         "share 2 copy 1\n"
                         "[ 20] decode b 40; end a length; end c length; retire a; retire c; "
                         "take 0 drop 2\n"
                         "[ 30] end b length; retire b; take 0 drop 3\n");
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
                story(interactive_preempts_background_which_later_continues_unchanged),
                story(preempts_after_rows_in_flight_return_and_keeps_their_results),
                story(never_preempts_a_request_more_often_than_allowed),
                story(does_not_preempt_if_too_few_blocks_would_become_free),
                story(preempts_both_requests_that_share_the_needed_blocks),
                story(preempting_frees_blocks_that_are_still_to_be_copied),
                story(does_not_preempt_for_a_user_that_would_then_exceed_its_half),
                story(a_user_with_several_slots_gives_one_to_a_user_without),
                story(gives_up_a_slot_to_a_worse_class_of_a_user_that_was_served_less),
                story(users_with_as_many_slots_do_not_preempt_each_other),
                story(preempts_a_request_stalled_for_grace_ms_for_any_other),
                story(a_resumed_request_takes_turns_in_prefill_with_the_others),
                story(a_request_waits_for_an_equal_prompt_in_prefill_and_reuses_it),
        };

        return cmocka_run_group_tests_name("sim-classes", tests, NULL, NULL);
}
