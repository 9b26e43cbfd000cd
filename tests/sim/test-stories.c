/*
 * Scheduling scenarios, in simulated milliseconds.
 *
 * A step takes 10 ms.  A line is one plan.  It shows its rows (positions from..to, with * where
 * a token is wanted; "of 3/0" where the token read is the result of row 0 of plan 3), the
 * requests that end and retire with it, and blocks taken and dropped.  Records are 10 bytes.
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

static struct sim_request *ask_on(uint32_t channel, const char *name, uint32_t prompt,
                                  uint32_t most)
{
        return sim_submit(
                &sim, &(struct sim_ask){
                              .name = name, .channel = channel, .prompt = prompt, .most = most });
}

static void a_long_prompt_does_not_starve_decode(void **state)
{
        (void)state;
        world((struct sched_conf){ .rows = 16 });
        ask("a", 4, 6);
        sim_run(&sim, 20);
        ask("b", 40, 2);
        sim_run(&sim, 80);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] decode a 4\n"
                         "[ 20] decode a 5; prefill b 0..15; take 1 drop 0\n"
                         "[ 30] decode a 6; prefill b 15..30; take 1 drop 0\n"
                         "[ 40] decode a 7; prefill b 30..40*; take 1 drop 0\n"
                         "[ 50] decode a 8; decode b 40\n"
                         "[ 60] end a length; end b length; retire a; retire b; take 0 drop 4\n");
        sim_close(&sim);
}

static void serves_in_order_even_if_a_later_request_would_fit(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 4 });
        ask("a", 8, 4);
        ask("big", 40, 3); /* 42 positions have rows: 3 blocks of the 4 */
        ask("big2", 40, 3);
        ask("small", 4, 2);
        sim_run(&sim, 200);
        sim_expect(&sim,
                   "[  0] prefill a 0..8*; prefill big 0..8; take 2 drop 0\n"
                   "[ 10] decode a 8; prefill big 8..23; take 1 drop 0\n"
                   "[ 20] decode a 9; prefill big 23..38; take 1 drop 0\n"
                   "[ 30] decode a 10; prefill big 38..40*\n"
                   "[ 40] decode big 40; end a length; retire a; take 0 drop 1\n"
                   "[ 50] decode big 41\n"
                   "[ 60] prefill small 0..4*; prefill big2 0..12; end big length; retire big; "
                   "take 2 drop 3\n"
                   "[ 70] decode small 4; prefill big2 12..27; take 1 drop 0\n"
                   "[ 80] prefill big2 27..40*; end small length; retire small; "
                   "take 1 drop 1\n"
                   "[ 90] decode big2 40\n"
                   "[100] decode big2 41\n"
                   "[110] end big2 length; retire big2; take 0 drop 3\n");
        sim_close(&sim);
}

static void expect_stalls(uint64_t count)
{
        struct sched_counts counts;

        sched_count(sim.sched, &counts);
        assert_int_equal(counts.stalls, count);
}

static void a_reader_that_stops_stalls_only_its_own_stream(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[1].capacity = 20;
        sim_speed(&sim, 1, 0);
        ask_on(0, "a", 4, 6);
        ask_on(1, "b", 4, 6);
        expect_stalls(0);
        sim_run(&sim, 100);
        expect_stalls(1);
        sim_expect(&sim, "[  0] prefill a 0..4*; prefill b 0..4*; take 2 drop 0\n"
                         "[ 10] decode a 4; decode b 4\n"
                         "[ 20] decode a 5; stalled 1\n"
                         "[ 30] decode a 6; stalled 1\n"
                         "[ 40] decode a 7; stalled 1\n"
                         "[ 50] decode a 8; stalled 1\n"
                         "[ 60] stalled 1; end a length; retire a; take 0 drop 1; sleep until 70\n"
                         "[ 70] end b stalled; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

static void a_stalled_stream_continues_where_it_stopped(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[1].capacity = 20;
        sim_speed(&sim, 1, 0);
        ask_on(1, "b", 4, 4);
        sim_run(&sim, 60);
        expect_stalls(1);
        sim_speed(&sim, 1, SIM_FAST);
        sim_run(&sim, 100);
        expect_stalls(1);
        sim_expect(&sim, "[  0] prefill b 0..4*; take 1 drop 0\n"
                         "[ 10] decode b 4\n"
                         "[ 20] stalled 1; sleep until 70\n"
                         "[ 60] decode b 5\n"
                         "[ 70] decode b 6\n"
                         "[ 80] end b length; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

static void ends_a_stream_that_is_stalled_too_long(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[1].capacity = 10;
        sim_speed(&sim, 1, 0);
        ask_on(1, "b", 20, 4);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill b 0..16; take 1 drop 0\n"
                         "[ 10] prefill b 16..20*; take 1 drop 0\n"
                         "[ 20] stalled 1; sleep until 70\n"
                         "[ 70] end b stalled; retire b; take 0 drop 2\n");
        sim_close(&sim);
}

static void cancels_a_waiting_request(void **state)
{
        struct sim_request *b;

        (void)state;
        world((struct sched_conf){ .slots = 1, .rows = 8 });
        ask("a", 4, 4);
        b = ask("b", 4, 4);
        ask("c", 4, 1);
        sim_run(&sim, 10);
        sim_cancel(&sim, b);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] decode a 4; end b cancelled; retire b\n"
                         "[ 20] decode a 5\n"
                         "[ 30] decode a 6\n"
                         "[ 40] prefill c 0..4*; end a length; retire a; take 1 drop 1\n"
                         "[ 50] end c length; retire c; take 0 drop 1\n");
        sim_close(&sim);
}

/* As while the weights are read. */
static void a_paused_scheduler_starts_nothing_but_ends_cancelled_requests(void **state)
{
        struct sim_request *b;

        (void)state;
        world((struct sched_conf){ 0 });
        sim_pause(&sim, true);
        ask("a", 4, 1);
        b = ask("b", 4, 4);
        sim_run(&sim, 20);
        sim_cancel(&sim, b);
        sim_run(&sim, 40);
        sim_pause(&sim, false);
        sim_run(&sim, 100);
        sim_expect(&sim, "[ 20] end b cancelled; retire b\n"
                         "[ 40] prefill a 0..4*; take 1 drop 0\n"
                         "[ 50] end a length; retire a; take 0 drop 1\n");
        sim_close(&sim);
}

static void cancels_during_prefill(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .rows = 16 });
        a = ask("a", 100, 4);
        sim_run(&sim, 20);
        sim_cancel(&sim, a);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..16; take 1 drop 0\n"
                         "[ 10] prefill a 16..32; take 1 drop 0\n"
                         "[ 20] end a cancelled; retire a; take 0 drop 2\n");
        sim_close(&sim);
}

static void cancel_in_decode_frees_its_blocks_by_the_next_step(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .blocks = 2 });
        a = ask("a", 17, 10);
        ask("b", 20, 2); /* waits for the blocks of a */
        sim_run(&sim, 40);
        sim_cancel(&sim, a);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..16; take 1 drop 0\n"
                         "[ 10] prefill a 16..17*; take 1 drop 0\n"
                         "[ 20] decode a 17\n"
                         "[ 30] decode a 18\n"
                         "[ 40] prefill b 0..16; end a cancelled; retire a; take 1 drop 2\n"
                         "[ 50] prefill b 16..20*; take 1 drop 0\n"
                         "[ 60] decode b 20\n"
                         "[ 70] end b length; retire b; take 0 drop 2\n");
        sim_close(&sim);
}

static void cancel_at_depth_two_waits_for_the_row_in_flight(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .blocks = 1, .depth = 2 });
        a = ask("a", 4, 10);
        ask("b", 4, 1);
        sim_run(&sim, 20);
        sim_cancel(&sim, a);
        sim_cancel(&sim, a);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[  0] decode a 4 of 1/3\n"
                         "[ 10] decode a 5 of 2/0\n"
                         "[ 20] end a cancelled\n"
                         "[ 30] prefill b 0..4*; retire a; take 1 drop 1\n"
                         "[ 40] end b length; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

static void eos_at_depth_two_discards_the_extra_row(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .depth = 2 });
        a = sim_submit(
                &sim,
                &(struct sim_ask){
                        .name = "a", .prompt = 4, .most = 10, .end_at = 3, .verdict = SCHED_EOS });
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[  0] decode a 4 of 1/3\n"
                         "[ 10] decode a 5 of 2/0\n"
                         "[ 20] decode a 6 of 3/0\n"
                         "[ 30] end a eos\n"
                         "[ 40] retire a; take 0 drop 1\n");
        assert_int_equal(a->made, 3);
        sim_close(&sim);
}

static void a_row_refers_to_the_pick_of_a_row_in_flight(void **state)
{
        (void)state;
        world((struct sched_conf){ .depth = 2 });
        ask("a", 3, 3);
        ask("b", 5, 3);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..3*; prefill b 0..5*; take 2 drop 0\n"
                         "[  0] decode a 3 of 1/2; decode b 5 of 1/7\n"
                         "[ 10] decode a 4 of 2/0; decode b 6 of 2/1\n"
                         "[ 30] end a length; end b length; retire a; retire b; take 0 drop 2\n");
        sim_close(&sim);
}

static void max_tokens_1_needs_no_decode(void **state)
{
        (void)state;
        world((struct sched_conf){ .depth = 2 });
        ask("a", 1, 1);
        ask("b", 16, 1);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..1*; prefill b 0..15; take 2 drop 0\n"
                         "[  0] prefill b 15..16*\n"
                         "[ 10] end a length; retire a; take 0 drop 1\n"
                         "[ 20] end b length; retire b; take 0 drop 1\n");
        sim_close(&sim);
}

static void takes_exactly_the_blocks_for_prompts_of_16_and_17_tokens(void **state)
{
        (void)state;
        world((struct sched_conf){ .rows = 64 });
        ask("a", 16, 1);
        ask("b", 16, 2);
        ask("c", 17, 1);
        sim_run(&sim, 100);
        sim_expect(
                &sim,
                "[  0] prefill a 0..16*; prefill b 0..16*; prefill c 0..17*; take 4 drop 0\n"
                "[ 10] decode b 16; end a length; end c length; retire a; retire c; take 1 drop 3\n"
                "[ 20] end b length; retire b; take 0 drop 2\n");
        sim_close(&sim);
}

static void takes_a_block_only_when_a_row_needs_it(void **state)
{
        struct sched_counts counts;

        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", 14, 4);
        sim_run(&sim, 10);
        sched_count(sim.sched, &counts);
        assert_int_equal(counts.blocks_in_use, 1);
        assert_int_equal(counts.blocks_reserved, 1);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..14*; take 1 drop 0\n"
                         "[ 10] decode a 14\n"
                         "[ 20] decode a 15\n"
                         "[ 30] decode a 16; take 1 drop 0\n"
                         "[ 40] end a length; retire a; take 0 drop 2\n");
        sim_close(&sim);
}

static void a_numeric_failure_ends_only_its_own_request(void **state)
{
        struct sim_request *b;

        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", 4, 4);
        b = sim_submit(&sim, &(struct sim_ask){ .name = "b",
                                                .prompt = 4,
                                                .most = 4,
                                                .end_at = 2,
                                                .verdict = SCHED_NUMERIC });
        ask("c", 4, 4);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a 0..4*; prefill b 0..4*; prefill c 0..4*; take 3 drop 0\n"
                         "[ 10] decode a 4; decode b 4; decode c 4\n"
                         "[ 20] decode a 5; decode c 5; end b numeric; retire b; take 0 drop 1\n"
                         "[ 30] decode a 6; decode c 6\n"
                         "[ 40] end a length; end c length; retire a; retire c; take 0 drop 2\n");
        assert_int_equal(b->made, 1);
        sim_close(&sim);
}

static void streams_of_one_channel_share_its_free_bytes_equally(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[0].capacity = 10;
        sim_speed(&sim, 0, 1); /* a record in 10 ms: one of three runs in a step */
        ask("a", 4, 4);
        ask("b", 4, 4);
        ask("c", 4, 4);
        sim_run(&sim, 400);
        sim_expect(&sim, "[  0] prefill a 0..4*; prefill b 0..3; prefill c 0..3; take 3 drop 0\n"
                         "[ 10] decode a 4; stalled 2\n"
                         "[ 20] prefill b 3..4*; stalled 2\n"
                         "[ 30] prefill c 3..4*; stalled 2\n"
                         "[ 40] decode a 5; stalled 2\n"
                         "[ 50] decode b 4; stalled 2\n"
                         "[ 60] decode c 4; stalled 2\n"
                         "[ 70] decode a 6; stalled 2\n"
                         "[ 80] decode b 5; stalled 1; end a length; retire a; take 0 drop 1\n"
                         "[ 90] decode c 5; stalled 1\n"
                         "[100] decode b 6; stalled 1\n"
                         "[110] decode c 6; end b length; retire b; take 0 drop 1\n"
                         "[120] end c length; retire c; take 0 drop 1\n");
        sim_close(&sim);
}

static void sched_fits_tells_too_long_from_too_large(void **state)
{
        const struct sched_conf conf = { .blocks = 4, .slots = 2, .rows = 8, .context = 100 };
        const struct sched_conf wide = {
                .blocks = UINT32_MAX, .slots = 2, .rows = 8, .context = 100
        };

        (void)state;
        assert_int_equal(sched_fits(&wide, 1, 1), SMV_OK);
        assert_int_equal(sched_fits(&wide, 99, 1), SMV_OK);
        assert_int_equal(sched_fits(&wide, 1, 99), SMV_OK);
        assert_int_equal(sched_fits(&wide, 100, 1), SMV_TOO_LONG);
        assert_int_equal(sched_fits(&wide, 1, 100), SMV_TOO_LONG);
        /* The last token has no row: 64 positions are in reach of 65 tokens. */
        assert_int_equal(sched_fits(&conf, 64, 1), SMV_OK);
        assert_int_equal(sched_fits(&conf, 1, 64), SMV_OK);
        assert_int_equal(sched_fits(&conf, 65, 1), SMV_TOO_LARGE);
        assert_int_equal(sched_fits(&conf, 60, 6), SMV_TOO_LARGE);
        assert_int_equal(sched_fits(&conf, 1, 65), SMV_TOO_LARGE);
        /* Both: it is the context that never changes. */
        assert_int_equal(sched_fits(&conf, 99, 2), SMV_TOO_LONG);
        /* Sums that do not fit 32 bits. */
        assert_int_equal(sched_fits(&wide, UINT32_MAX, 1), SMV_TOO_LONG);
        assert_int_equal(sched_fits(&wide, UINT32_MAX, UINT32_MAX), SMV_TOO_LONG);
        assert_int_equal(sched_fits(&wide, 2, UINT32_MAX), SMV_TOO_LONG);
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
                story(a_long_prompt_does_not_starve_decode),
                story(serves_in_order_even_if_a_later_request_would_fit),
                story(a_reader_that_stops_stalls_only_its_own_stream),
                story(a_stalled_stream_continues_where_it_stopped),
                story(ends_a_stream_that_is_stalled_too_long),
                story(cancels_a_waiting_request),
                story(a_paused_scheduler_starts_nothing_but_ends_cancelled_requests),
                story(cancels_during_prefill),
                story(cancel_in_decode_frees_its_blocks_by_the_next_step),
                story(cancel_at_depth_two_waits_for_the_row_in_flight),
                story(eos_at_depth_two_discards_the_extra_row),
                story(a_row_refers_to_the_pick_of_a_row_in_flight),
                story(max_tokens_1_needs_no_decode),
                story(takes_exactly_the_blocks_for_prompts_of_16_and_17_tokens),
                story(takes_a_block_only_when_a_row_needs_it),
                story(a_numeric_failure_ends_only_its_own_request),
                story(streams_of_one_channel_share_its_free_bytes_equally),
                story(sched_fits_tells_too_long_from_too_large),
        };

        return cmocka_run_group_tests_name("sim-stories", tests, NULL, NULL);
}
