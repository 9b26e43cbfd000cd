/*
 * Scenarios of requests that only read a prompt, and of the pins that they set, in simulated
 * milliseconds; test-stories.c says how to read them.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        conf.rows = 64;
        sim_open_small(&sim, &conf);
}

/* Its first `shared` tokens are those of the one text that all know. */
static void ask(const char *name, uint64_t uid, uint32_t shared, uint32_t prompt, uint32_t most)
{
        sim_submit(&sim, &(struct sim_ask){ .name = name,
                                            .uid = uid,
                                            .shared = shared,
                                            .prompt = prompt,
                                            .most = most });
}

static struct sim_request *read_only(const char *name, uint32_t prompt, uint32_t pin)
{
        return sim_submit(
                &sim,
                &(struct sim_ask){
                        .name = name, .uid = 1, .shared = prompt, .prompt = prompt, .pin = pin });
}

static void a_prefill_only_request_ends_after_its_prefill(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        read_only("a", 40, 0);
        sim_run(&sim, 20);
        ask("b", 1, 40, 40, 2);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..40*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill b 39..40*; take 1 drop 0; share 2 copy 1\n"
                         "[ 30] decode b 40\n"
                         "[ 40] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

/* 48 positions are three blocks; one that made a token would need no fourth, either. */
static void a_prefill_only_request_computes_its_last_token_and_makes_none(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 3 });
        read_only("a", 48, 0);
        sim_run(&sim, 20);
        read_only("b", 48, 0);
        sim_run(&sim, 40);
        sim_expect(&sim, "[  0] prefill a 0..48*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill b 47..48*; take 0 drop 0; share 3 copy 0\n"
                         "[ 30] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

/* A ring that takes no record takes none of c, and a does not care. */
static void a_prefill_only_request_needs_no_ring_bytes(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim.channels[0].capacity = 5;
        sim_speed(&sim, 0, 0);
        ask("c", 1, 0, 20, 4);
        read_only("a", 40, 0);
        sim_run(&sim, 20);
        sim_expect(&sim, "[  0] prefill c 0..19; prefill a 0..40*; take 5 drop 0\n"
                         "[ 10] stalled 1; end a length; retire a; take 0 drop 3; "
                         "sleep until 60\n");
        sim_run(&sim, 80);
        sim_expect(&sim, "[ 20] stalled 1; sleep until 60\n"
                         "[ 60] end c stalled; retire c; take 0 drop 2\n");
        sim_close(&sim);
}

static void a_prefill_that_is_not_finite_ends_numeric_and_is_not_shared(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim_submit(&sim, &(struct sim_ask){ .name = "a",
                                            .uid = 1,
                                            .shared = 40,
                                            .prompt = 40,
                                            .pin = 1,
                                            .end_at = 1,
                                            .verdict = SCHED_NUMERIC });
        sim_run(&sim, 20);
        read_only("b", 40, 1);
        sim_run(&sim, 40);
        sim_expect(&sim, "[  0] prefill a 0..40*; take 3 drop 0\n"
                         "[ 10] end a numeric; retire a; take 0 drop 3\n"
                         "[ 20] prefill b 0..40*; take 3 drop 0\n"
                         "[ 30] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

/* Five blocks: a's three stay, though they are the oldest; c's two go for d. */
static void pinned_blocks_outlast_newer_blocks(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 5 });
        read_only("a", 48, 1);
        sim_run(&sim, 20);
        ask("c", 1, 0, 32, 1);
        sim_run(&sim, 40);
        ask("d", 2, 0, 32, 1);
        sim_run(&sim, 60);
        ask("b", 1, 48, 48, 1);
        sim_run(&sim, 80);
        sim_expect(&sim, "[  0] prefill a 0..48*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill c 0..32*; take 2 drop 0\n"
                         "[ 30] end c length; retire c; take 0 drop 2\n"
                         "[ 40] prefill d 0..32*; take 2 drop 0\n"
                         "[ 50] end d length; retire d; take 0 drop 2\n"
                         "[ 60] prefill b 47..48*; take 0 drop 0; share 3 copy 0\n"
                         "[ 70] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

/*
 * The same, except that the pin was lifted, or its request was cancelled before it had read:
 * a's last two go.
 */
static void expect_plain_order(void)
{
        ask("d", 2, 0, 32, 1);
        sim_run(&sim, 60);
        ask("b", 1, 48, 48, 1);
        sim_run(&sim, 80);
        sim_expect(&sim, "[ 40] prefill d 0..32*; take 2 drop 0\n"
                         "[ 50] end d length; retire d; take 0 drop 2\n"
                         "[ 60] prefill b 16..48*; take 2 drop 0; share 1 copy 0\n"
                         "[ 70] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

static void unpinned_blocks_are_evicted_like_any_other(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 5 });
        read_only("a", 48, 1);
        sim_run(&sim, 20);
        ask("c", 1, 0, 32, 1);
        sim_run(&sim, 40);
        sim_expect(&sim, "[  0] prefill a 0..48*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill c 0..32*; take 2 drop 0\n"
                         "[ 30] end c length; retire c; take 0 drop 2\n");
        sim_unpin(&sim, 1);
        expect_plain_order();
}

static void a_cancelled_pin_request_pins_nothing(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .blocks = 5 });
        a = read_only("a", 48, 1);
        sim_step(&sim);
        sim_cancel(&sim, a);
        assert_false(a->core.pinned);
        sim_run(&sim, 20);
        ask("c", 1, 0, 32, 1);
        sim_run(&sim, 40);
        sim_expect(&sim, "[  0] prefill a 0..48*; take 3 drop 0\n"
                         "[  0] end a cancelled\n"
                         "[ 10] retire a; take 0 drop 3\n"
                         "[ 20] prefill c 0..32*; take 2 drop 0\n"
                         "[ 30] end c length; retire c; take 0 drop 2\n");
        expect_plain_order();
}

/* The whole pool is pinned, and another user gets all of it at once. */
static void pinned_blocks_do_not_keep_another_user_from_running(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 3 });
        read_only("a", 48, 1);
        sim_run(&sim, 20);
        ask("c", 2, 0, 48, 1);
        sim_run(&sim, 40);
        read_only("b", 48, 2);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..48*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill c 0..48*; take 3 drop 0\n"
                         "[ 30] end c length; retire c; take 0 drop 3\n"
                         "[ 40] prefill b 0..48*; take 3 drop 0\n"
                         "[ 50] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_prefill_only_request_ends_after_its_prefill),
                cmocka_unit_test(a_prefill_only_request_computes_its_last_token_and_makes_none),
                cmocka_unit_test(a_prefill_only_request_needs_no_ring_bytes),
                cmocka_unit_test(a_prefill_that_is_not_finite_ends_numeric_and_is_not_shared),
                cmocka_unit_test(pinned_blocks_outlast_newer_blocks),
                cmocka_unit_test(unpinned_blocks_are_evicted_like_any_other),
                cmocka_unit_test(a_cancelled_pin_request_pins_nothing),
                cmocka_unit_test(pinned_blocks_do_not_keep_another_user_from_running),
        };

        return cmocka_run_group_tests_name("sim-pins", tests, NULL, NULL);
}
