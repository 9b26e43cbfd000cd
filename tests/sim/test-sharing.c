/*
 * Scenarios of sharing, in simulated milliseconds; test-stories.c says how to read them.  Here
 * "share 2 copy 1" are two blocks that were found, or taken instead of the request's own, and
 * one block that was copied.
 */
#include <string.h>

#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        if (!conf.rows)
                conf.rows = 64;
        sim_open_small(&sim, &conf);
}

/* Its first `shared` tokens are those of the one text that all know. */
static struct sim_request *ask(const char *name, uint64_t uid, uint32_t shared, uint32_t prompt,
                               uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = uid,
                                                   .shared = shared,
                                                   .prompt = prompt,
                                                   .most = most });
}

static void a_repeated_prompt_computes_only_its_last_token(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", 1, 40, 40, 2);
        sim_run(&sim, 30);
        ask("b", 1, 40, 40, 2);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..40*; take 3 drop 0\n"
                         "[ 10] decode a 40\n"
                         "[ 20] end a length; retire a; take 0 drop 3\n"
                         "[ 30] prefill b 39..40*; take 1 drop 0; share 2 copy 1\n"
                         "[ 40] decode b 40\n"
                         "[ 50] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

static void shares_blocks_of_a_running_request(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", 1, 36, 36, 6);
        sim_run(&sim, 20);
        ask("b", 1, 36, 48, 2);
        sim_run(&sim, 80);
        sim_expect(&sim, "[  0] prefill a 0..36*; take 3 drop 0\n"
                         "[ 10] decode a 36\n"
                         "[ 20] decode a 37; prefill b 36..48*; take 1 drop 0; share 2 copy 1\n"
                         "[ 30] decode a 38; decode b 48; take 1 drop 0\n"
                         "[ 40] decode a 39; end b length; retire b; take 0 drop 2\n"
                         "[ 50] decode a 40\n"
                         "[ 60] end a length; retire a; take 0 drop 3\n");
        sim_close(&sim);
}

static void finds_blocks_that_the_previous_plan_computed(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", 1, 36, 36, 3);
        sim_run(&sim, 10);
        ask("b", 1, 36, 48, 2);
        sim_run(&sim, 40);
        sim_expect(&sim, "[  0] prefill a 0..36*; take 3 drop 0\n"
                         "[ 10] decode a 36; prefill b 36..48*; take 1 drop 0; share 2 copy 1\n"
                         "[ 20] decode a 37; decode b 48; take 1 drop 0\n"
                         "[ 30] end a length; end b length; retire a; retire b; take 0 drop 5\n");
        sim_close(&sim);
}

static void equal_prompts_in_one_plan_share_blocks_afterwards(void **state)
{
        (void)state;
        /* A batch: else b would wait until a is read. */
        world((struct sched_conf){ .rows = 100, .batch_size = 2 });
        ask("a", 1, 40, 40, 4);
        ask("b", 1, 40, 40, 4);
        sim_run(&sim, 80);
        sim_expect(&sim, "[  0] prefill a 0..40*; prefill b 0..40*; take 6 drop 0\n"
                         "[ 10] decode a 40; decode b 40; take 0 drop 0; share 2 copy 0\n"
                         "[ 20] decode a 41; decode b 41\n"
                         "[ 30] decode a 42; decode b 42\n"
                         "[ 40] end a length; end b length; retire a; retire b; take 0 drop 4\n");
        sim_close(&sim);
}

static void finds_nothing_of_another_user(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", 1, 40, 40, 2);
        sim_run(&sim, 30);
        ask("b", 2, 40, 40, 2);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..40*; take 3 drop 0\n"
                         "[ 10] decode a 40\n"
                         "[ 20] end a length; retire a; take 0 drop 3\n"
                         "[ 30] prefill b 0..40*; take 3 drop 0\n"
                         "[ 40] decode b 40\n"
                         "[ 50] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

static void a_hit_of_whole_blocks_copies_nothing(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", 1, 32, 32, 1);
        sim_run(&sim, 20);
        ask("b", 1, 32, 32, 2);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..32*; take 2 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 2\n"
                         "[ 20] prefill b 31..32*; take 0 drop 0; share 2 copy 0\n"
                         "[ 30] decode b 32; take 1 drop 0\n"
                         "[ 40] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

/* Four blocks: a's three are kept, so c, which needs two, evicts a's last. */
static void evicts_the_end_of_a_text_before_its_beginning(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 4 });
        ask("a", 1, 48, 48, 1);
        sim_run(&sim, 20);
        ask("c", 1, 0, 32, 1);
        sim_run(&sim, 40);
        ask("b", 1, 48, 48, 1);
        sim_run(&sim, 80);
        sim_expect(&sim, "[  0] prefill a 0..48*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill c 0..32*; take 2 drop 0\n"
                         "[ 30] end c length; retire c; take 0 drop 2\n"
                         "[ 40] prefill b 32..48*; take 1 drop 0; share 2 copy 0\n"
                         "[ 50] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

static void does_not_share_blocks_that_are_not_finite(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim_submit(&sim, &(struct sim_ask){ .name = "a",
                                            .uid = 1,
                                            .shared = 40,
                                            .prompt = 40,
                                            .most = 5,
                                            .end_at = 2,
                                            .verdict = SCHED_NUMERIC });
        sim_run(&sim, 30);
        ask("b", 1, 40, 40, 1);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..40*; take 3 drop 0\n"
                         "[ 10] decode a 40\n"
                         "[ 20] end a numeric; retire a; take 0 drop 3\n"
                         "[ 30] prefill b 0..40*; take 3 drop 0\n"
                         "[ 40] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

/* The pool is just large enough: a tail that would have to be held beside it is left. */
/* No request waits for that result any more, but the KV that the plan wrote is in the pool. */
static void does_not_share_blocks_that_are_not_finite_after_a_cancel(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ 0 });
        a = sim_submit(&sim, &(struct sim_ask){ .name = "a",
                                                .uid = 1,
                                                .shared = 40,
                                                .prompt = 40,
                                                .most = 3,
                                                .end_at = 1,
                                                .verdict = SCHED_NUMERIC });
        sim_step(&sim);
        sim_cancel(&sim, a);
        sim_run(&sim, 20);
        ask("b", 1, 40, 40, 1);
        sim_run(&sim, 50);
        sim_expect(&sim, "[  0] prefill a 0..40*; take 3 drop 0\n"
                         "[  0] end a cancelled\n"
                         "[ 10] retire a; take 0 drop 3\n"
                         "[ 20] prefill b 0..40*; take 3 drop 0\n"
                         "[ 30] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

static void recomputes_a_partial_block_if_no_block_is_free_for_the_copy(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 3 });
        ask("a", 1, 40, 40, 2);
        sim_run(&sim, 30);
        ask("b", 1, 40, 40, 2);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..40*; take 3 drop 0\n"
                         "[ 10] decode a 40\n"
                         "[ 20] end a length; retire a; take 0 drop 3\n"
                         "[ 30] prefill b 32..40*; take 1 drop 0; share 2 copy 0\n"
                         "[ 40] decode b 40\n"
                         "[ 50] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

/*
 * When it begins: this much of it was found, and there it diverges from the known text.  Then
 * it ends.
 */
static void expect_told(const struct sim_request *request, uint32_t found, uint32_t at,
                        uint32_t known)
{
        const struct sequence *sequence = &request->core.sequence;

        sim_run(&sim, sim.now_ns / SIM_MS + 1);
        assert_true(request->moved && request->alive);
        assert_int_equal(sequence->cached_count, found);
        assert_int_equal(sequence->diverged_at, at);
        if (at)
                assert_int_equal(sequence->diverged_cached_token, known);
        sim_run(&sim, sim.now_ns / SIM_MS + 40);
        assert_false(request->alive);
}

/* The requests come one after the other, so each has the place in memory of the one before. */
static void reports_where_a_prompt_diverges_and_the_known_token(void **state)
{
        uint32_t said[48];

        (void)state;
        world((struct sched_conf){ 0 });
        memcpy(said, ask("a", 1, 48, 48, 1)->truth, sizeof(said));
        sim_run(&sim, 20);
        expect_told(ask("b", 1, 37, 48, 1), 37, 37, said[37]);
        expect_told(ask("c", 1, 32, 40, 1), 32, 32, said[32]);
        expect_told(ask("d", 1, 20, 20, 1), 19, 0, 0); /* it ends */
        expect_told(ask("e", 1, 48, 60, 1), 48, 0, 0); /* nothing is known further */
        expect_told(ask("f", 1, 0, 20, 1), 0, 0, 0);   /* it begins otherwise */
        sim_close(&sim);
}

static void reports_no_divergence_from_another_user(void **state)
{
        uint32_t said[48], own;
        struct sim_request *b;

        (void)state;
        world((struct sched_conf){ 0 });
        memcpy(said, ask("a", 1, 48, 48, 1)->truth, sizeof(said));
        sim_run(&sim, 20);
        b = ask("b", 2, 37, 40, 1);
        own = b->truth[37];
        expect_told(b, 0, 0, 0);
        expect_told(ask("c", 2, 36, 48, 1), 36, 36, said[36]); /* that is b's */
        expect_told(ask("d", 2, 48, 48, 1), 37, 37, own);
        sim_close(&sim);
}

/* The reported number counts known positions, even those for which there was no block. */
static void reports_a_divergence_beyond_a_tail_that_was_not_copied(void **state)
{
        uint32_t said[48];

        (void)state;
        world((struct sched_conf){ .blocks = 3 });
        memcpy(said, ask("a", 1, 48, 48, 1)->truth, sizeof(said));
        sim_run(&sim, 20);
        expect_told(ask("b", 1, 40, 48, 1), 32, 40, said[40]);
        sim_close(&sim);
}

/*
 * a says what c has said, in a block of its own, of which b is to copy the beginning as soon as
 * its reader reads.  When a's is full it could take c's instead: so often it does.
 */
static uint64_t swaps_in(uint32_t blocks)
{
        world((struct sched_conf){ .blocks = blocks, .stall_timeout_ns = 1000 * SIM_MS });
        sim.channels[1].capacity = 0;
        ask("c", 1, 20, 20, 13);
        sim_run(&sim, 130);
        ask("a", 1, 20, 20, 14);
        sim_run(&sim, 150);
        sim_submit(&sim, &(struct sim_ask){ .name = "b",
                                            .uid = 1,
                                            .channel = 1,
                                            .shared = 20,
                                            .prompt = 20,
                                            .most = 1 });
        sim_run(&sim, 300);
        sim.channels[1].capacity = 100;
        sim_run(&sim, 400);
        sim_close(&sim);
        return sim.swaps;
}

/* One for all, c's second, a's second and third, b's second: of four, c's is promised. */
static void does_not_use_a_promised_block_to_merge_duplicates(void **state)
{
        (void)state;
        assert_int_equal(swaps_in(5), 1);
        assert_int_equal(swaps_in(4), 0);
}

/* A plan tells of one page a row, and beside of as many as one page table has: 16 here. */
static void requests_with_large_hits_enter_one_per_plan(void **state)
{
        (void)state;
        world((struct sched_conf){ .rows = 4 });
        ask("a", 1, 192, 193, 1);
        sim_run(&sim, 500);
        assert_int_equal(sim_alive(&sim), 0);
        ask("b", 1, 192, 193, 1);
        ask("c", 1, 192, 193, 1);
        ask("d", 1, 192, 193, 1);
        for (int i = 0; i < 3; i++) {
                sim_step(&sim);
                assert_int_equal(sim.plan.row_count, 1);
                assert_int_equal(sim.plan.page_count, 12 + 1);
                sim_collect(&sim);
        }
        sim_run(&sim, 550);
        sim_close(&sim);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_repeated_prompt_computes_only_its_last_token),
                cmocka_unit_test(shares_blocks_of_a_running_request),
                cmocka_unit_test(finds_blocks_that_the_previous_plan_computed),
                cmocka_unit_test(equal_prompts_in_one_plan_share_blocks_afterwards),
                cmocka_unit_test(finds_nothing_of_another_user),
                cmocka_unit_test(a_hit_of_whole_blocks_copies_nothing),
                cmocka_unit_test(evicts_the_end_of_a_text_before_its_beginning),
                cmocka_unit_test(does_not_share_blocks_that_are_not_finite),
                cmocka_unit_test(does_not_share_blocks_that_are_not_finite_after_a_cancel),
                cmocka_unit_test(recomputes_a_partial_block_if_no_block_is_free_for_the_copy),
                cmocka_unit_test(reports_where_a_prompt_diverges_and_the_known_token),
                cmocka_unit_test(reports_no_divergence_from_another_user),
                cmocka_unit_test(reports_a_divergence_beyond_a_tail_that_was_not_copied),
                cmocka_unit_test(requests_with_large_hits_enter_one_per_plan),
                cmocka_unit_test(does_not_use_a_promised_block_to_merge_duplicates),
        };

        return cmocka_run_group_tests_name("sim-sharing", tests, NULL, NULL);
}
