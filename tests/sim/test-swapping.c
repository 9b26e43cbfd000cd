/*
 * Scenarios of blocks that move to the swap and back, in simulated milliseconds; test-stories.c
 * says how to read a line.  "swap out 2 in 1": two blocks move to the swap, and one moves back.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        sim_open_small(&sim, &conf);
}

/* Its first `shared` tokens are those of a text that all requests with this number know. */
static struct sim_request *say(const char *name, uint32_t uid, uint32_t text, uint32_t prompt,
                               uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = uid,
                                                   .text = text,
                                                   .shared = prompt,
                                                   .prompt = prompt,
                                                   .most = most });
}

static struct sched_counts counts(void)
{
        struct sched_counts counts;

        sched_count(sim.sched, &counts);
        return counts;
}

/*
 * c's client does not read.  If both blocks came, a row with a record would have to follow.  So only
 * one comes, and c is stalled once it has computed the other.
 */
static void a_prompt_without_record_space_computes_its_last_block_in_the_swap(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 6, .rows = 64, .prefix.swap_blocks = 6 });
        say("a", 1, 2, 33, 1);
        sim_run(&sim, 20);
        say("b", 2, 4, 96, 1);
        sim_run(&sim, 40);
        assert_int_equal(counts().swapped_out, 2);
        sim.channels[0].capacity = 5;
        say("c", 1, 2, 33, 2);
        sim_submit(&sim, &(struct sim_ask){
                                 .name = "d", .uid = 1, .channel = 1, .prompt = 20, .most = 1 });
        sim_run(&sim, 60);
        sim_run(&sim, 200);
        sim_expect(&sim, "[  0] prefill a 0..33*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill b 0..64; take 4 drop 0\n"
                         "[ 30] prefill b 64..96*; take 2 drop 0; swap out 2 in 0\n"
                         "[ 40] prefill c 16..32; prefill d 0..20*; end b length; retire b; "
                         "take 3 drop 6; share 1 copy 0; swap out 4 in 1\n"
                         "[ 50] stalled 1; end d length; retire d; take 0 drop 2; "
                         "sleep until 100\n"
                         "[ 60] stalled 1; sleep until 100\n"
                         "[100] end c stalled; retire c; take 0 drop 2\n");
        sim_close(&sim);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_prompt_without_record_space_computes_its_last_block_in_the_swap),
        };

        return cmocka_run_group_tests_name("sim-swap", tests, NULL, NULL);
}
