/*
 * Scenarios of several users, in simulated milliseconds; test-stories.c says how to read a
 * line.
 *
 * The letter in a request's name is its user.  "pass over 2": two requests were not admitted,
 * because their users have their half and another user waits.  The line is examined even when
 * no slot is free.  The user that was served least comes first.  A block holds 16 positions,
 * and the last token needs none.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        conf.rows = 128;
        conf.requests_max = 10;
        sim_open_small(&sim, &conf);
}

static struct sim_request *ask_on(uint32_t channel, const char *name, uint32_t prompt,
                                  uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = (uint32_t)name[0],
                                                   .channel = channel,
                                                   .prompt = prompt,
                                                   .most = most });
}

static struct sim_request *ask(const char *name, uint32_t prompt, uint32_t most)
{
        return ask_on(0, name, prompt, most);
}

/* Of a class behind the others, so it is served last.  The line keeps the order of arrival. */
static struct sim_request *ask_after(const char *name, uint32_t prompt, uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = (uint32_t)name[0],
                                                   .priority = REQUEST_NORMAL,
                                                   .prompt = prompt,
                                                   .most = most });
}

static void many_requests_of_one_user_do_not_delay_another(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 4 });
        ask("a1", 2, 4);
        ask("a2", 2, 4);
        ask("a3", 2, 2);
        ask("a4", 2, 2);
        ask("a5", 2, 2);
        ask("b1", 2, 2);
        ask("b2", 2, 4);
        sim_run(&sim, 10);
        ask("b3", 2, 3);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..2*; prefill a2 0..2*; prefill b1 0..2*; "
                         "prefill b2 0..2*; take 4 drop 0\n"
                         "[ 10] decode a1 2; decode a2 2; decode b1 2; decode b2 2; "
                         "pass over 4\n"
                         "[ 20] decode a1 3; decode a2 3; decode b2 3; prefill b3 0..2*; "
                         "end b1 length; retire b1; take 1 drop 1\n"
                         "[ 30] decode a1 4; decode a2 4; decode b2 4; decode b3 2\n"
                         "[ 40] decode b3 3; prefill a3 0..2*; prefill a4 0..2*; "
                         "prefill a5 0..2*; end a1 length; end a2 length; end b2 length; "
                         "retire a1; retire a2; retire b2; take 3 drop 3\n"
                         "[ 50] decode a3 2; decode a4 2; decode a5 2; end b3 length; "
                         "retire b3; take 0 drop 1\n"
                         "[ 60] end a3 length; end a4 length; end a5 length; retire a3; "
                         "retire a4; retire a5; take 0 drop 3\n");
        sim_close(&sim);
}

static void a_user_gets_everything_alone_and_yields_later(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 4 });
        ask("a1", 2, 2);
        ask("a2", 2, 3);
        ask("a3", 2, 4);
        ask("a4", 2, 5);
        sim_run(&sim, 10);
        ask("a5", 2, 2);
        ask("b1", 2, 6);
        ask("b2", 2, 6);
        ask("b3", 2, 2);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..2*; prefill a2 0..2*; prefill a3 0..2*; "
                         "prefill a4 0..2*; take 4 drop 0\n"
                         "[ 10] decode a1 2; decode a2 2; decode a3 2; decode a4 2; "
                         "pass over 1\n"
                         "[ 20] decode a2 3; decode a3 3; decode a4 3; prefill b1 0..2*; "
                         "end a1 length; retire a1; take 1 drop 1\n"
                         "[ 30] decode a3 4; decode a4 4; decode b1 2; prefill b2 0..2*; "
                         "pass over 2; end a2 length; retire a2; take 1 drop 1\n"
                         "[ 40] decode a4 5; decode b1 3; decode b2 2; prefill a5 0..2*; "
                         "end a3 length; retire a3; take 1 drop 1\n"
                         "[ 50] decode b1 4; decode b2 3; decode a5 2; prefill b3 0..2*; "
                         "end a4 length; retire a4; take 1 drop 1\n"
                         "[ 60] decode b1 5; decode b2 4; decode b3 2; end a5 length; "
                         "retire a5; take 0 drop 1\n"
                         "[ 70] decode b1 6; decode b2 5; end b3 length; retire b3; "
                         "take 0 drop 1\n"
                         "[ 80] decode b2 6; end b1 length; retire b1; take 0 drop 1\n"
                         "[ 90] end b2 length; retire b2; take 0 drop 1\n");
        sim_close(&sim);
}

static void limits_a_user_to_half_of_the_blocks_while_another_waits(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 8, .blocks = 8 });
        ask("a1", 20, 2); /* 2 blocks */
        ask("a2", 20, 2); /* ... half of them */
        ask("a3", 2, 2);
        ask("b1", 40, 3); /* 3 blocks */
        ask("b2", 20, 2);
        ask("c1", 2, 3);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..20*; prefill a2 0..20*; prefill c1 0..2*; "
                         "prefill b1 0..40*; pass over 2; take 8 drop 0\n"
                         "[ 10] decode a1 20; decode a2 20; decode b1 40; decode c1 2; "
                         "pass over 2\n"
                         "[ 20] decode b1 41; decode c1 3; prefill b2 0..20*; prefill a3 "
                         "0..2*; end a1 length; end a2 length; retire a1; retire a2; "
                         "take 3 drop 4\n"
                         "[ 30] decode a3 2; decode b2 20; end b1 length; end c1 length; "
                         "retire b1; retire c1; take 0 drop 4\n"
                         "[ 40] end a3 length; end b2 length; retire a3; retire b2; take "
                         "0 drop 3\n");
        sim_close(&sim);
}

static void a_user_without_slots_may_exceed_half_and_others_wait_behind_it(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 4, .blocks = 8 });
        ask("a1", 16, 3); /* 2 blocks */
        ask("b1", 96, 8); /* 7 blocks: above half, and more than there are now */
        ask("a2", 4, 2);
        ask("c1", 4, 2);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..16*; take 1 drop 0\n"
                         "[ 10] decode a1 16; take 1 drop 0\n"
                         "[ 20] decode a1 17\n"
                         "[ 30] prefill c1 0..4*; prefill b1 0..96*; end a1 length; retire a1; "
                         "take 7 drop 2\n"
                         "[ 40] decode b1 96; decode c1 4; take 1 drop 0\n"
                         "[ 50] decode b1 97; prefill a2 0..4*; end c1 length; retire c1; "
                         "take 1 drop 1\n"
                         "[ 60] decode b1 98; decode a2 4\n"
                         "[ 70] decode b1 99; end a2 length; retire a2; take 0 drop 1\n"
                         "[ 80] decode b1 100\n"
                         "[ 90] decode b1 101\n"
                         "[100] decode b1 102\n"
                         "[110] end b1 length; retire b1; take 0 drop 7\n");
        sim_close(&sim);
}

static void a_request_that_ends_returns_its_share(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 2 });
        ask("a1", 2, 6);
        ask("b1", 2, 3);
        ask("b2", 2, 5);
        ask("b3", 2, 2);
        ask("a2", 2, 2);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..2*; prefill b1 0..2*; pass over 3; take 2 drop 0\n"
                         "[ 10] decode a1 2; decode b1 2; pass over 3\n"
                         "[ 20] decode a1 3; decode b1 3; pass over 3\n"
                         "[ 30] decode a1 4; prefill b2 0..2*; pass over 2; end b1 length; "
                         "retire b1; take 1 drop 1\n"
                         "[ 40] decode a1 5; decode b2 2; pass over 2\n"
                         "[ 50] decode a1 6; decode b2 3; pass over 2\n"
                         "[ 60] decode b2 4; prefill a2 0..2*; end a1 length; "
                         "retire a1; take 1 drop 1\n"
                         "[ 70] decode b2 5; decode a2 2\n"
                         "[ 80] prefill b3 0..2*; end b2 length; end a2 length; retire b2; "
                         "retire a2; take 1 drop 2\n"
                         "[ 90] decode b3 2\n"
                         "[100] end b3 length; retire b3; take 0 drop 1\n");
        sim_close(&sim);
}

static void a_cancelled_request_keeps_its_share_until_its_rows_return(void **state)
{
        struct sim_request *a1;

        (void)state;
        world((struct sched_conf){ .slots = 4, .blocks = 8, .depth = 2 });
        a1 = ask("a1", 2, 9);
        ask("a2", 2, 5);
        ask("a3", 2, 2);
        ask_after("b1", 100, 20); /* all 8 blocks, so it waits */
        sim_run(&sim, 5);
        sim_cancel(&sim, a1);
        sim_run(&sim, 70);
        sim_expect(&sim, "[  0] prefill a1 0..2*; prefill a2 0..2*; pass over 1; take 2 drop 0\n"
                         "[  0] decode a1 2 of 1/1; decode a2 2 of 1/3; pass over 1\n"
                         "[ 10] decode a2 3 of 2/1; pass over 1; end a1 cancelled\n"
                         "[ 20] decode a2 4 of 3/0; prefill a3 0..2*; retire a1; take 1 drop 1\n"
                         "[ 30] decode a2 5 of 4/0; decode a3 2 of 4/2\n"
                         "[ 50] prefill b1 0..100*; end a2 length; end a3 length; retire a2; "
                         "retire a3; take 7 drop 2\n"
                         "[ 50] decode b1 100 of 6/99\n"
                         "[ 60] decode b1 101 of 7/0\n");
        sim_run(&sim, 400);
        sim_close(&sim);
}

static void cancelling_a_queued_request_ends_the_limits_on_other_users(void **state)
{
        struct sim_request *b1;

        (void)state;
        world((struct sched_conf){ .slots = 4, .blocks = 8 });
        ask("a1", 2, 5);
        ask("a2", 2, 5);
        ask("a3", 2, 2);
        b1 = ask_after("b1", 100, 20); /* all 8 blocks: waits for those of a */
        ask("a4", 2, 2);
        sim_run(&sim, 20);
        sim_cancel(&sim, b1);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..2*; prefill a2 0..2*; pass over 2; take 2 drop 0\n"
                         "[ 10] decode a1 2; decode a2 2; pass over 2\n"
                         "[ 20] decode a1 3; decode a2 3; prefill a3 0..2*; prefill a4 0..2*; "
                         "end b1 cancelled; retire b1; take 2 drop 0\n"
                         "[ 30] decode a1 4; decode a2 4; decode a3 2; decode a4 2\n"
                         "[ 40] decode a1 5; decode a2 5; end a3 length; end a4 length; "
                         "retire a3; retire a4; take 0 drop 2\n"
                         "[ 50] end a1 length; end a2 length; retire a1; retire a2; "
                         "take 0 drop 2\n");
        sim_close(&sim);
}

static void three_users_share_and_the_last_takes_the_rest(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 6 });
        ask("a1", 2, 4);
        ask("a2", 2, 4);
        ask("a3", 2, 4);
        ask("a4", 2, 3);
        ask("b1", 2, 3);
        ask("b2", 2, 2);
        ask("c1", 2, 4);
        ask("c2", 2, 2);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..2*; prefill a2 0..2*; prefill a3 0..2*; "
                         "prefill b1 0..2*; prefill b2 0..2*; prefill c1 0..2*; pass over 1; "
                         "take 6 drop 0\n"
                         "[ 10] decode a1 2; decode a2 2; decode a3 2; decode b1 2; "
                         "decode b2 2; decode c1 2\n"
                         "[ 20] decode a1 3; decode a2 3; decode a3 3; decode b1 3; "
                         "decode c1 3; prefill c2 0..2*; end b2 length; retire b2; "
                         "take 1 drop 1\n"
                         "[ 30] decode a1 4; decode a2 4; decode a3 4; decode c1 4; "
                         "decode c2 2; prefill a4 0..2*; end b1 length; retire b1; "
                         "take 1 drop 1\n"
                         "[ 40] decode a4 2; end a1 length; end a2 length; end a3 length; "
                         "end c1 length; end c2 length; retire a1; retire a2; retire a3; "
                         "retire c1; retire c2; take 0 drop 5\n"
                         "[ 50] decode a4 3\n"
                         "[ 60] end a4 length; retire a4; take 0 drop 1\n");
        sim_close(&sim);
}

static void admits_a_skipped_request_when_no_other_user_waits(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 4 });
        ask("a1", 2, 2);
        ask("a2", 2, 2);
        ask("a3", 2, 2);
        ask("b1", 2, 2);
        ask("a4", 2, 2);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a1 0..2*; prefill a2 0..2*; prefill b1 0..2*; "
                         "prefill a3 0..2*; take 4 drop 0\n"
                         "[ 10] decode a1 2; decode a2 2; decode b1 2; decode a3 2\n"
                         "[ 20] prefill a4 0..2*; end a1 length; end a2 length; end b1 length; "
                         "end a3 length; retire a1; retire a2; retire b1; retire a3; "
                         "take 1 drop 4\n"
                         "[ 30] decode a4 2\n"
                         "[ 40] end a4 length; retire a4; take 0 drop 1\n");
        sim_close(&sim);
}

static void admits_skipped_requests_although_all_others_are_stalled(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 4 });
        sim.channels[1].capacity = 5; /* less than a record */
        ask_on(1, "a1", 1, 2);
        ask_on(1, "a2", 1, 2);
        ask("a3", 2, 2);
        ask_on(1, "b1", 1, 2);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a3 0..2*; stalled 3; take 1 drop 0\n"
                         "[ 10] decode a3 2; stalled 3\n"
                         "[ 20] stalled 3; end a3 length; retire a3; take 0 drop 1; "
                         "sleep until 50\n"
                         "[ 50] end a1 stalled; end a2 stalled; end b1 stalled; retire a1; "
                         "retire a2; retire b1\n");
        sim_close(&sim);
}

static void small_requests_do_not_overtake_a_large_one_of_their_user(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 8, .blocks = 8 });
        ask("a1", 2, 3);
        ask("a2", 70, 3); /* 5 blocks: above half */
        ask("a3", 2, 2);
        ask("b1", 50, 5); /* 4 blocks */
        ask("b2", 80, 4); /* 6 blocks, so another user waits */
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a1 0..2*; prefill b1 0..50*; pass over 3; take 5 "
                         "drop 0\n"
                         "[ 10] decode a1 2; decode b1 50; pass over 3\n"
                         "[ 20] decode a1 3; decode b1 51; pass over 3\n"
                         "[ 30] decode b1 52; end a1 length; retire a1; take 0 drop 1\n"
                         "[ 40] decode b1 53\n"
                         "[ 50] prefill a2 0..70*; pass over 1; end b1 length; retire "
                         "b1; take 5 drop 4\n"
                         "[ 60] decode a2 70; pass over 1\n"
                         "[ 70] decode a2 71; pass over 1\n"
                         "[ 80] prefill b2 0..80*; prefill a3 0..2*; end a2 length; "
                         "retire a2; take 6 drop 5\n"
                         "[ 90] decode b2 80; decode a3 2; take 1 drop 0\n"
                         "[100] decode b2 81; end a3 length; retire a3; take 0 drop 1\n"
                         "[110] decode b2 82\n"
                         "[120] end b2 length; retire b2; take 0 drop 6\n");
        sim_close(&sim);
}

/*
 * Of 15 blocks a1 has three, and holds a fourth that a0 has left, to copy it.  With a2 these
 * would be eight, so a2 waits until all of b's requests are in; the same plan lets it in.  The
 * blocks that a1 holds cannot be seen from outside yet.  By the auditor's books a2 may as well
 * have come in at once.  It is read as soon as its user was served less than b.
 */
static void the_prompt_of_a_skipped_request_comes_when_its_user_is_next(void **state)
{
        struct sim_ask one = { .name = "a0", .uid = 'a', .text = 1, .shared = 4, .most = 1 };
        const char *const others[] = { "b2", "b3", "b4", "b5", "b6" };

        (void)state;
        sim_open_small(&sim, &(struct sched_conf){ .slots = 14, .rows = 32, .blocks = 15 });
        one.prompt = 4;
        sim_submit(&sim, &one);
        sim_run(&sim, 20);
        ask("b1", 32, 1);
        one.name = "a1";
        one.prompt = 48;
        sim_submit(&sim, &one);
        ask("a2", 64, 1);
        for (uint32_t i = 0; i < 5; i++)
                ask(others[i], 12, 1);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a0 0..4*; take 1 drop 0\n"
                         "[ 10] end a0 length; retire a0; take 0 drop 1\n"
                         "[ 20] prefill b1 0..32*; take 2 drop 0\n"
                         "[ 30] prefill a1 4..36; end b1 length; retire b1; take 3 drop "
                         "2; share 0 copy 1\n"
                         "[ 40] prefill a1 36..48*; prefill b2 0..12*; prefill b3 0..8; "
                         "take 2 drop 0\n"
                         "[ 50] prefill a2 0..32; end a1 length; end b2 length; retire "
                         "a1; retire b2; take 2 drop 4\n"
                         "[ 60] prefill b3 8..12*; prefill b4 0..12*; prefill b5 0..12*; "
                         "prefill b6 0..4; take 3 drop 0\n"
                         "[ 70] prefill a2 32..64*; end b3 length; end b4 length; end b5 "
                         "length; retire b3; retire b4; retire b5; take 2 drop 3\n"
                         "[ 80] prefill b6 4..12*; end a2 length; retire a2; take 0 drop "
                         "4\n"
                         "[ 90] end b6 length; retire b6; take 0 drop 1\n");
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
                story(many_requests_of_one_user_do_not_delay_another),
                story(a_user_gets_everything_alone_and_yields_later),
                story(limits_a_user_to_half_of_the_blocks_while_another_waits),
                story(a_user_without_slots_may_exceed_half_and_others_wait_behind_it),
                story(a_request_that_ends_returns_its_share),
                story(a_cancelled_request_keeps_its_share_until_its_rows_return),
                story(cancelling_a_queued_request_ends_the_limits_on_other_users),
                story(three_users_share_and_the_last_takes_the_rest),
                story(admits_a_skipped_request_when_no_other_user_waits),
                story(admits_skipped_requests_although_all_others_are_stalled),
                story(small_requests_do_not_overtake_a_large_one_of_their_user),
                story(the_prompt_of_a_skipped_request_comes_when_its_user_is_next),
        };

        return cmocka_run_group_tests_name("sim-users", tests, NULL, NULL);
}
