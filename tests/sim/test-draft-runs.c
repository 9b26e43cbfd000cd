/*
 * Drafts: tokens that are guessed, and computed beside the row of a decode.
 */
#include "tests/sim/draft-stories.h"

#include <stdio.h>

static void takes_tokens_up_to_the_first_difference(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ 0 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 12 });
        turn();
        turn_with(a, 3, 3); /* all are right: four tokens in a step */
        assert_int_equal(a->made, 5);
        turn_with(a, 3, 0); /* none is: its own token counts in any case */
        assert_int_equal(a->made, 6);
        turn_with(a, 3, 2);
        assert_int_equal(a->made, 9);
        turn();
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] decode a 4+3\n"
                         "[ 20] decode a 8+3\n"
                         "[ 30] decode a 9+3\n"
                         "[ 40] decode a 12\n");
        finish();
}

static void gives_the_last_token_in_the_last_row_of_a_run(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ 0 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 5 });
        turn();
        turn_with(a, 8, 8); /* three of them can be the input of a row */
        turn();
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] decode a 4+3\n"
                         "[ 20] end a length; retire a; take 0 drop 1\n");
        sim_close(&sim);
}

static void ends_in_the_middle_of_a_run(enum sched_verdict verdict, const char *reason)
{
        struct sim_request *a;
        char text[256];

        world((struct sched_conf){ 0 });
        a = ask_drafted((struct sim_ask){
                .name = "a", .prompt = 4, .most = 12, .end_at = 3, .verdict = verdict });
        turn();
        turn_with(a, 5, 5);
        assert_int_equal(sched_pending_bytes(sim.sched, 0), 0);
        turn();
        snprintf(text, sizeof(text),
                 "[  0] prefill a 0..4*; take 1 drop 0\n"
                 "[ 10] decode a 4+5\n"
                 "[ 20] end a %s; retire a; take 0 drop 1\n",
                 reason);
        sim_expect(&sim, text);
        sim_close(&sim);
}

static void a_verdict_ends_a_request_in_the_middle_of_a_run(void **state)
{
        (void)state;
        ends_in_the_middle_of_a_run(SCHED_EOS, "eos");
        ends_in_the_middle_of_a_run(SCHED_STOP, "stop");
        ends_in_the_middle_of_a_run(SCHED_NUMERIC, "numeric");
        ends_in_the_middle_of_a_run(SCHED_STUCK, "stuck");
}

static void cancel_all(struct sim *world)
{
        each_request(world, r) sim_cancel(world, r);
        world->between = NULL;
}

/* The results that follow are ignored, and may be missing. */
static void a_cancel_ends_a_request_in_the_middle_of_a_run(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ 0 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 12 });
        turn();
        sim.between = cancel_all;
        turn_with(a, 5, 5);
        assert_int_equal(a->made, 2);
        assert_int_equal(sched_pending_bytes(sim.sched, 0), 0);
        finish();
}

static void has_one_run_in_flight_with_two_plans(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .depth = 2 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 12 });
        ask((struct sim_ask){ .name = "b", .prompt = 4, .most = 5 });
        turn();
        turn();
        turn_with(a, 2, 1);
        turn();
        turn_with(a, 2, 2);
        sim_expect(&sim, "[  0] prefill a 0..4*; prefill b 0..4*; take 2 drop 0\n"
                         "[  0] decode b 4 of 1/7\n"
                         "[ 10] decode a 4+2; decode b 5 of 2/0\n"
                         "[ 20] decode b 6 of 3/3\n"
                         "[ 30] decode a 6+2; decode b 7 of 4/0\n");
        finish();
}

/* Without `drafts` it has its next row before the token is known; and none while a run flies. */
static void waits_for_a_run_that_it_did_not_ask_for(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .depth = 2 });
        a = ask((struct sim_ask){ .name = "a", .prompt = 4, .most = 9 });
        sim_step(&sim);
        sim_collect(&sim);
        sim_draft(&sim, a, 2, 2);
        sim_step(&sim);
        sim_step(&sim);
        sim_collect(&sim);
        sim_step(&sim);
        sim_step(&sim);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[  0] decode a 4+2\n"
                         "[  0] decode a 7\n"
                         "[  0] decode a 8 of 3/0\n");
        sim_collect(&sim);
        finish();
}

/* A ring that is full leaves it out, so its draft comes to nothing. */
static void forgets_a_draft_with_the_plan_that_it_is_for(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ 0 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 9 });
        turn();
        sim_speed(&sim, 0, 0);
        sim.channels[0].used = 995;
        turn_with(a, 2, 2);
        sim_speed(&sim, 0, SIM_FAST);
        turn();
        turn_with(a, 0, 0);
        sim_draft(&sim, a, 3, 3);
        turn_with(a, 1, 1); /* a second draft takes the place of the first one */
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] stalled 1; sleep until 60\n"
                         "[ 60] decode a 4\n"
                         "[ 70] decode a 5\n"
                         "[ 80] decode a 6+1\n");
        finish();
}

/* Each token needs its own masks, and those of a draft are there when its results come. */
static void draws_the_tokens_of_a_run_under_masks(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ 0 });
        a = ask_drafted((struct sim_ask){
                .name = "a", .prompt = 4, .most = 9, .guided = true, .mask_ns = 5 * SIM_MS });
        turn();
        turn();
        turn();
        turn_with(a, 3, 2);
        turn();
        turn();
        assert_int_equal(a->made, 5);
        sim_expect(&sim, "[  0] unready 1\n"
                         "[  5] prefill a 0..4*; take 1 drop 0\n"
                         "[ 15] unready 1\n"
                         "[ 20] decode a 4+3\n"
                         "[ 30] unready 1\n"
                         "[ 35] decode a 7\n");
        finish();
}

/* It is held at the first token that comes from outside, and no result of the rest comes. */
static void a_token_that_comes_later_ends_a_run(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask_drafted((struct sim_ask){ .name = "a",
                                      .prompt = 4,
                                      .most = 3,
                                      .guesses = 3,
                                      .alone = true,
                                      .outside = true,
                                      .token_ns = 5 * SIM_MS });
        for (int i = 0; i < 8; i++)
                turn();
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] held 1\n"
                         "[ 15] decode a 4+1\n"
                         "[ 25] held 1\n"
                         "[ 30] decode a 5\n"
                         "[ 40] held 1\n"
                         "[ 45] end a length; retire a; take 0 drop 1\n");
        finish();
}

/* The positions that it had are those of its accepted tokens, and it goes on from there. */
static void a_request_that_is_preempted_in_a_run_keeps_its_tokens(void **state)
{
        struct sim_request *b;

        (void)state;
        world((struct sched_conf){ .slots = 1, .depth = 2, .preemptions_max = 3 });
        b = ask_drafted((struct sim_ask){
                .name = "b", .priority = REQUEST_BACKGROUND, .prompt = 14, .most = 12 });
        turn();
        turn();
        sim_draft(&sim, b, 6, 3);
        sim_step(&sim);
        ask((struct sim_ask){ .name = "a", .prompt = 2, .most = 2 });
        sim_step(&sim);
        sim_collect(&sim);
        assert_int_equal(b->made, 5);
        for (int i = 0; i < 6; i++)
                turn();
        sim_expect(&sim, "[  0] prefill b 0..14*; take 1 drop 0\n"
                         "[ 10] decode b 14+6; take 1 drop 0\n"
                         "[ 10] preempt b\n"
                         "[ 10] prefill a 0..2*; preempted b; take 1 drop 2\n"
                         "[ 10] decode a 2 of 3/1\n"
                         "[ 30] prefill b 18..19*; end a length; retire a; take 1 drop 1; "
                         "share 1 copy 1\n"
                         "[ 40] decode b 19\n");
        finish();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(takes_tokens_up_to_the_first_difference),
                cmocka_unit_test(gives_the_last_token_in_the_last_row_of_a_run),
                cmocka_unit_test(a_verdict_ends_a_request_in_the_middle_of_a_run),
                cmocka_unit_test(a_cancel_ends_a_request_in_the_middle_of_a_run),
                cmocka_unit_test(has_one_run_in_flight_with_two_plans),
                cmocka_unit_test(waits_for_a_run_that_it_did_not_ask_for),
                cmocka_unit_test(forgets_a_draft_with_the_plan_that_it_is_for),
                cmocka_unit_test(draws_the_tokens_of_a_run_under_masks),
                cmocka_unit_test(a_token_that_comes_later_ends_a_run),
                cmocka_unit_test(a_request_that_is_preempted_in_a_run_keeps_its_tokens),
        };

        return cmocka_run_group_tests_name("sim-drafts", tests, NULL, NULL);
}
