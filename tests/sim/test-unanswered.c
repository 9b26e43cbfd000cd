/*
 * Requests whose clients do not answer, in simulated milliseconds: what others lose by them.
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

/* Only w waits for the slot, whose mask never comes, so the engine sleeps. */
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

/*
 * As above, and a user may have four blocks.  Without h, c would be promised three blocks, and the
 * two of a are its user's as well.  So its user is passed over, and h keeps its slot.
 */
static void keeps_the_reserved_part_if_the_other_user_would_have_too_much(void **state)
{
        struct sim_request *held, *other, *large;

        (void)state;
        world((struct sched_conf){ .slots = 3, .blocks = 5, .reserve_max = 3, .user_blocks = 4 });
        held = ask_held((struct sim_ask){
                .name = "h", .uid = 1, .prompt = 4, .most = 20, .token_ns = SIM_NEVER });
        other = ask("a", 2, 4, 18);
        sim_run(&sim, 20);
        large = ask("c", 2, 4, 40);
        sim_run(&sim, 60);
        sim_cancel(&sim, large);
        sim_cancel(&sim, held);
        sim_cancel(&sim, other);
        sim_run(&sim, 130);
        sim_expect(&sim, "[  0] prefill h 0..4*; prefill a 0..4*; take 2 drop 0\n"
                         "[ 10] decode a 4; held 1\n"
                         "[ 20] decode a 5; held 1\n"
                         "[ 30] decode a 6; held 1\n"
                         "[ 40] decode a 7; pass over 1; held 1\n"
                         "[ 50] decode a 8; pass over 1; held 1\n"
                         "[ 60] end c cancelled; end h cancelled; end a cancelled; retire c; "
                         "retire h; retire a; take 0 drop 2\n");
        sim_close(&sim);
}

static struct sim_request *ask_guided(const char *name, uint64_t uid, uint64_t mask_ns)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = uid,
                                                   .prompt = 4,
                                                   .most = 2,
                                                   .guided = true,
                                                   .mask_ns = mask_ns });
}

/* Both slots are with user 1, whose clients do not answer.  User 2 gets both. */
static void a_user_gets_more_than_half_if_others_do_not_answer(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 2 });
        for (int i = 0; i < 2; i++)
                ask_held((struct sim_ask){ .name = i ? "i" : "h",
                                           .uid = 1,
                                           .prompt = 4,
                                           .most = 2,
                                           .token_ns = SIM_NEVER });
        sim_run(&sim, 20);
        ask("a", 2, 4, 3);
        ask("b", 2, 4, 3);
        sim_run(&sim, 80);
        sim.masks_hurry = true;
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill h 0..4*; prefill i 0..4*; take 2 drop 0\n"
                         "[ 10] held 2\n"
                         "[ 20] held 2; sleep until 40\n"
                         "[ 40] prefill a 0..4*; prefill b 0..4*; preempted h; preempted i; held "
                         "2; take 2 drop 2\n"
                         "[ 50] decode a 4; decode b 4; held 2\n"
                         "[ 60] decode a 5; decode b 5; held 2\n"
                         "[ 70] held 2; end a length; end b length; retire a; retire b; take 0 "
                         "drop 2\n"
                         "[ 80] prefill h 4..5*; prefill i 4..5*; take 2 drop 0; share 0 copy 2\n"
                         "[ 90] end h length; end i length; retire h; retire i; take 0 drop 2\n");
        sim_close(&sim);
}

/* The mask of w never comes, so user 2 gets all four slots. */
static void a_request_without_its_mask_does_not_halve_the_slots_of_others(void **state)
{
        struct sim_request *waits;

        (void)state;
        world((struct sched_conf){ 0 });
        waits = ask_guided("w", 1, SIM_NEVER);
        for (int i = 0; i < 4; i++)
                ask("a", 2, 2, 2);
        sim_run(&sim, 15);
        sim_cancel(&sim, waits);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..2*; prefill a 0..2*; prefill a 0..2*; prefill a "
                         "0..2*; unready 1; take 4 drop 0\n"
                         "[ 10] decode a 2; decode a 2; decode a 2; decode a 2; unready 1\n"
                         "[ 20] end a length; end a length; end a length; end a length; end w "
                         "cancelled; retire a; retire a; retire a; retire a; retire w; take 0 "
                         "drop 4\n");
        sim_close(&sim);
}

/* Accounts may differ by 10 ms times 10.  User 2 is served for 300 ms while the mask is awaited. */
static void a_user_saves_up_no_time_while_its_mask_is_awaited(void **state)
{
        struct sim_request *waits;
        struct sched_user users[2];

        (void)state;
        world((struct sched_conf){ .lead_ns = 10 * SIM_MS });
        waits = ask_guided("w", 1, SIM_NEVER);
        ask("a", 2, 1, 30);
        sim_run(&sim, 295);
        assert_int_equal(sched_users(sim.sched, users, 2), 2);
        assert_int_equal(users[0].uid, 1);
        assert_int_equal(users[1].served_ns - users[0].served_ns, 100 * SIM_MS);
        sim_cancel(&sim, waits);
        sim_run(&sim, 400);
        sim_close(&sim);
}

/* A class is worth 60 ms.  The mask of w comes after 100 ms, and n of a better class waits, too. */
static void is_not_promoted_while_its_mask_is_awaited(void **state)
{
        (void)state;
        world((struct sched_conf){
                .slots = 1, .promote_ns = 60 * SIM_MS, .stall_preempt_ns = SIM_NEVER });
        ask("a", 0, 1, 12);
        sim_submit(&sim, &(struct sim_ask){ .name = "w",
                                            .priority = REQUEST_NORMAL,
                                            .prompt = 4,
                                            .most = 1,
                                            .guided = true,
                                            .mask_ns = 100 * SIM_MS });
        sim_run(&sim, 110);
        ask("n", 0, 4, 1);
        sim_run(&sim, 300);
        sim_expect(&sim, "[  0] prefill a 0..1*; unready 1; take 1 drop 0\n"
                         "[ 10] decode a 1; unready 1\n"
                         "[ 20] decode a 2; unready 1\n"
                         "[ 30] decode a 3; unready 1\n"
                         "[ 40] decode a 4; unready 1\n"
                         "[ 50] decode a 5; unready 1\n"
                         "[ 60] decode a 6; unready 1\n"
                         "[ 70] decode a 7; unready 1\n"
                         "[ 80] decode a 8; unready 1\n"
                         "[ 90] decode a 9; unready 1\n"
                         "[100] decode a 10\n"
                         "[110] decode a 11\n"
                         "[120] prefill n 0..4*; end a length; retire a; take 1 drop 1\n"
                         "[130] prefill w 0..4*; end n length; retire n; take 1 drop 1\n"
                         "[140] end w length; retire w; take 0 drop 1\n");
        sim_close(&sim);
}

/* h has the slot, and r waits for it.  That w would be promoted does not wake the engine. */
static void the_engine_sleeps_while_a_mask_is_awaited_in_the_queue(void **state)
{
        struct sim_request *waits;

        (void)state;
        world((struct sched_conf){
                .slots = 1, .promote_ns = 60 * SIM_MS, .stall_preempt_ns = SIM_NEVER });
        ask_held((struct sim_ask){ .name = "h", .prompt = 4, .most = 1, .token_ns = 200 * SIM_MS });
        ask("r", 0, 4, 1);
        waits = sim_submit(&sim, &(struct sim_ask){ .name = "w",
                                                    .priority = REQUEST_NORMAL,
                                                    .prompt = 4,
                                                    .most = 1,
                                                    .guided = true,
                                                    .mask_ns = SIM_NEVER });
        sim_run(&sim, 20);
        assert_int_equal(sim.plan.wake_ns, PLAN_SLEEP);
        sim_cancel(&sim, waits);
        sim_run(&sim, 300);
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
                STORY(keeps_the_reserved_part_if_the_other_user_would_have_too_much),
                STORY(a_user_gets_more_than_half_if_others_do_not_answer),
                STORY(a_request_without_its_mask_does_not_halve_the_slots_of_others),
                STORY(a_user_saves_up_no_time_while_its_mask_is_awaited),
                STORY(is_not_promoted_while_its_mask_is_awaited),
                STORY(the_engine_sleeps_while_a_mask_is_awaited_in_the_queue),
        };

        return cmocka_run_group_tests_name("sim-unanswered", tests, NULL, NULL);
}
