/*
 * The runs that bench-pool compares: the simulation of vLLM's admission, the scheduler in simulated
 * time, and the figures of both.  A step takes 100 ns, 10 ns a row and 1 ns a position.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bench/pool-sched.h"
#include "bench/pool-vllm.h"

#define REQUESTS_MAX 300u

static struct trace_request requests[REQUESTS_MAX];
static struct trace trace = { .requests = requests };
static struct pool_world world;
static struct pool_log entries;
static uint32_t asks[REQUESTS_MAX];

static void open_world(uint32_t blocks, uint32_t slots, uint32_t rows)
{
        world = (struct pool_world){ .trace = &trace,
                                     .cost = { .base_ns = 100, .row_ns = 10, .position_ns = 1 },
                                     .blocks = blocks,
                                     .slots = slots,
                                     .rows = rows };
        trace.count = 0;
}

static void add(double at_ns, uint32_t prompt, uint32_t output)
{
        requests[trace.count] =
                (struct trace_request){ .at = at_ns / 1e9, .prompt = prompt, .output = output };
        asks[trace.count++] = output;
}

static void run_vllm(void)
{
        pool_log_deinit(&entries);
        assert_int_equal(pool_log_init(&entries, trace.count), 0);
        assert_int_equal(pool_vllm_run(&world, &entries), 0);
}

static void run_sched(uint32_t users)
{
        const struct pool_sched setup = { .conf = { .blocks = world.blocks,
                                                    .slots = world.slots,
                                                    .rows = world.rows,
                                                    .context = world.blocks * BLOCK_POSITIONS,
                                                    .depth = 1,
                                                    .requests_max = trace.count,
                                                    .channels = 1,
                                                    .preemptions_max = 8,
                                                    .lead_ns = 1000 },
                                          .max_tokens = asks,
                                          .users = users,
                                          .seed = 1 };

        pool_log_deinit(&entries);
        assert_int_equal(pool_log_init(&entries, trace.count), 0);
        assert_int_equal(pool_sched_run(&world, &setup, &entries), 0);
}

static int close_world(void **state)
{
        (void)state;
        pool_log_deinit(&entries);
        return 0;
}

static void assert_step(size_t step, uint64_t begin_ns, uint64_t ns, uint32_t running,
                        uint32_t blocks)
{
        assert_true(step < entries.step_count);
        assert_int_equal(entries.steps[step].begin_ns, begin_ns);
        assert_int_equal(entries.steps[step].ns, ns);
        assert_int_equal(entries.steps[step].running, running);
        assert_int_equal(entries.steps[step].blocks, blocks);
}

/* The prompt is read in chunks of 16 and 4; then a token a step, the last one without a row. */
static void assert_one_request_alone(void)
{
        assert_int_equal(entries.step_count, 4);
        assert_step(0, 0, 100 + 160 + 16, 1, 1);
        assert_step(1, 276, 100 + 40 + 20, 1, 2);
        assert_step(2, 436, 100 + 10 + 21, 1, 2);
        assert_step(3, 567, 100 + 10 + 22, 1, 2);
        assert_int_equal(entries.first_ns[0], 436);
        assert_int_equal(entries.end_ns[0], 699);
        assert_int_equal(entries.preemptions, 0);
        assert_int_equal(entries.recomputed, 0);
}

static void both_run_one_request_alone_as_computed_by_hand(void **state)
{
        (void)state;
        open_world(8, 4, 16);
        add(0, 20, 3);
        run_vllm();
        assert_one_request_alone();
        run_sched(1);
        assert_one_request_alone();
}

/* The second comes in the middle of the first step and joins the second; the third comes late. */
static void both_admit_at_the_next_step_and_sleep_until_the_next_arrival(void **state)
{
        (void)state;
        open_world(8, 4, 64);
        add(0, 10, 2);
        add(50, 4, 1);
        add(5000, 3, 1);
        for (int sched = 0; sched < 2; sched++) {
                if (sched)
                        run_sched(1);
                else
                        run_vllm();
                assert_int_equal(entries.step_count, 3);
                assert_step(0, 0, 100 + 100 + 10, 1, 1);
                assert_step(1, 210, 100 + 50 + 11 + 4, 2, 2);
                assert_step(2, 5000, 100 + 30 + 3, 1, 1);
                assert_int_equal(entries.first_ns[1], 375);
                assert_int_equal(entries.end_ns[2], 5133);
        }
}

/*
 * Three blocks.  Both prompts of 15 take one block each.  After two steps both have 16 positions,
 * and the next decode of each needs one more: the first one gets it, and the second one has to
 * wait.  When the first one has ended, the second one computes its 17 tokens again.
 */
static void vllm_preempts_the_youngest_and_computes_it_again(void **state)
{
        (void)state;
        open_world(3, 4, 64);
        add(0, 15, 4);
        add(0, 15, 4);
        run_vllm();
        assert_int_equal(entries.step_count, 6);
        assert_step(0, 0, 100 + 300 + 30, 2, 2);
        assert_step(1, 430, 100 + 20 + 32, 2, 2);
        assert_step(2, 582, 100 + 10 + 17, 1, 2);
        assert_step(3, 709, 100 + 10 + 18, 1, 2);
        assert_step(4, 837, 100 + 170 + 17, 1, 2); /* positions 0 to 15 a second time */
        assert_step(5, 1124, 100 + 10 + 18, 1, 2);
        assert_int_equal(entries.end_ns[0], 837);
        assert_int_equal(entries.first_ns[1], 430);
        assert_int_equal(entries.end_ns[1], 1252);
        assert_int_equal(entries.preemptions, 1);
        assert_int_equal(entries.recomputed, 16);
}

/* The youngest one is the one that needs a block, so it gives way itself. */
static void vllm_preempts_a_request_for_itself_if_it_is_the_youngest(void **state)
{
        (void)state;
        open_world(3, 4, 64);
        add(0, 20, 9); /* two blocks to its end */
        add(0, 15, 4);
        run_vllm();
        assert_int_equal(entries.preemptions, 1);
        assert_int_equal(entries.recomputed, 16);
        assert_step(1, 100 + 350 + 35, 100 + 20 + 21 + 16, 2, 3);
        assert_step(2, 485 + 157, 100 + 10 + 22, 1, 2);
        assert_true(entries.end_ns[1] > entries.end_ns[0]);
}

/*
 * Four blocks, of which each of three requests takes one.  For position 16 the first request gets
 * the last one, and the second one those of the third.  For position 32 the first one gets those of
 * the second.  When the first one has ended, the second one needs three blocks and the third two.
 */
static void vllm_admits_the_oldest_of_several_preempted_requests_first(void **state)
{
        (void)state;
        open_world(4, 4, 64);
        add(0, 15, 20);
        add(0, 15, 20);
        add(0, 15, 4);
        run_vllm();
        assert_int_equal(entries.preemptions, 2);
        assert_int_equal(entries.recomputed, 32 + 16);
        assert_true(entries.end_ns[0] < entries.end_ns[1]);
        assert_true(entries.end_ns[1] < entries.end_ns[2]);
}

/*
 * Four blocks.  The first step has 8 rows left, and a chunk of the second prompt would fit, but not
 * all of it.  So the second one waits, and the third one, which is short, waits behind it.
 */
static void vllm_admits_in_order_and_only_if_the_whole_prompt_fits(void **state)
{
        (void)state;
        open_world(4, 4, 28);
        add(0, 20, 2);
        add(0, 40, 1);
        add(0, 2, 1);
        run_vllm();
        assert_int_equal(entries.step_count, 4);
        assert_step(0, 0, 100 + 200 + 20, 1, 2);
        assert_step(1, 320, 100 + 10 + 21, 1, 2);
        assert_step(2, 451, 100 + 280 + 28, 1, 2); /* blocks are taken chunk by chunk */
        assert_step(3, 859, 100 + 140 + 40 + 2, 2, 4);
        assert_int_equal(entries.first_ns[2], 1141);
}

static void vllm_admits_no_more_than_the_slots_and_the_rows_of_a_step(void **state)
{
        (void)state;
        open_world(100, 2, 8);
        for (int i = 0; i < 3; i++)
                add(0, 6, 2);
        run_vllm();
        assert_step(0, 0, 100 + 80 + 6 + 2, 2, 2); /* 6 rows, and 2 of the next */
        assert_step(1, 188, 100 + 50 + 7 + 6, 2, 2);
        assert_int_equal(entries.end_ns[0], 351);
        assert_step(2, 351, 100 + 70 + 7 + 6, 2, 2); /* the third one has the first one's slot */
}

/* Both requests fit the pool with their real lengths, but only one with the length it asks for. */
static void the_scheduler_reserves_what_a_request_asks_for(void **state)
{
        (void)state;
        open_world(4, 4, 64);
        add(0, 10, 5);
        add(0, 10, 5);
        run_sched(1);
        assert_int_equal(entries.steps[0].running, 2);
        asks[0] = asks[1] = 30;
        run_sched(1);
        assert_int_equal(entries.steps[0].running, 1);
        assert_int_equal(entries.step_count, 10);
        assert_true(entries.first_ns[1] > entries.end_ns[0]);
}

/* 2 s, of which a tenth with 4 sequences and half with 2. */
static void figures_are_weighted_by_time_as_computed_by_hand(void **state)
{
        struct pool_figures figures;

        (void)state;
        open_world(10, 4, 64);
        add(0, 10, 4);
        add(0.5e9, 10, 6);
        assert_int_equal(pool_log_init(&entries, 2), 0);
        assert_int_equal(pool_log_add(&entries, &(struct pool_step){ 0, 1000000000, 2, 5 }), 0);
        assert_int_equal(
                pool_log_add(&entries, &(struct pool_step){ 1800000000, 200000000, 4, 10 }), 0);
        entries.first_ns[0] = 250000000;
        entries.first_ns[1] = entries.end_ns[0] = 1000000000;
        entries.end_ns[1] = 2000000000;
        entries.preemptions = 3;
        assert_int_equal(pool_log_figures(&entries, &world, &figures), 0);
        assert_true(fabs(figures.seconds - 2) < 1e-9);
        assert_true(fabs(figures.requests_s - 1) < 1e-9);
        assert_true(fabs(figures.tokens_s - 5) < 1e-9);
        assert_true(fabs(figures.running_mean - 1.4) < 1e-9);
        assert_true(figures.running_p95 == 4);
        assert_true(fabs(figures.blocks_mean - 3.5) < 1e-9);
        assert_true(fabs(figures.preemptions_100 - 150) < 1e-9);
        assert_true(fabs(figures.ttft_mean - 0.375) < 1e-9);
        assert_true(fabs(figures.ttft_p50 - 0.25) < 1e-9);
        assert_true(fabs(figures.ttft_p95 - 0.5) < 1e-9);
}

static void assert_all_have_ended(void)
{
        struct pool_figures figures;

        for (uint32_t i = 0; i < trace.count; i++) {
                assert_true(entries.first_ns[i] > pool_arrival_ns(&world, i));
                assert_true(entries.end_ns[i] >= entries.first_ns[i]);
        }
        assert_int_equal(pool_log_figures(&entries, &world, &figures), 0);
        assert_true(figures.blocks_mean <= world.blocks);
}

/* Under pressure requests are preempted several times, and every one has all of its tokens. */
static void every_request_of_a_made_up_trace_ends_under_each_policy(void **state)
{
        struct trace made;

        (void)state;
        assert_int_equal(trace_make(7, REQUESTS_MAX, &made), 0);
        open_world(64, 8, 64);
        for (uint32_t i = 0; i < made.count; i++)
                add(made.requests[i].at * 1e4, made.requests[i].prompt % 500 + 1,
                    made.requests[i].output % 500 + 1);
        trace_deinit(&made);
        run_vllm();
        assert_all_have_ended();
        assert_true(entries.preemptions > 0 && entries.recomputed > 0);
        run_sched(1);
        assert_all_have_ended();
        assert_true(entries.preemptions == 0 && entries.recomputed == 0);
        run_sched(3);
        assert_all_have_ended();
        assert_true(entries.preemptions > 0 && entries.recomputed > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(both_run_one_request_alone_as_computed_by_hand,
                                          close_world),
                cmocka_unit_test_teardown(
                        both_admit_at_the_next_step_and_sleep_until_the_next_arrival, close_world),
                cmocka_unit_test_teardown(vllm_preempts_the_youngest_and_computes_it_again,
                                          close_world),
                cmocka_unit_test_teardown(vllm_preempts_a_request_for_itself_if_it_is_the_youngest,
                                          close_world),
                cmocka_unit_test_teardown(
                        vllm_admits_the_oldest_of_several_preempted_requests_first, close_world),
                cmocka_unit_test_teardown(vllm_admits_in_order_and_only_if_the_whole_prompt_fits,
                                          close_world),
                cmocka_unit_test_teardown(vllm_admits_no_more_than_the_slots_and_the_rows_of_a_step,
                                          close_world),
                cmocka_unit_test_teardown(the_scheduler_reserves_what_a_request_asks_for,
                                          close_world),
                cmocka_unit_test_teardown(figures_are_weighted_by_time_as_computed_by_hand,
                                          close_world),
                cmocka_unit_test_teardown(every_request_of_a_made_up_trace_ends_under_each_policy,
                                          close_world),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
