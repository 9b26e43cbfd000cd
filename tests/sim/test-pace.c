/*
 * The pace of prompts: two streams go on, and long prompts never cease to come.  A step
 * takes so long, and each of its rows adds to it; the core is not told how much.  What is
 * promised is held to a quarter.
 */
#include "tests/sim/sim.h"

#define GAP_NS   (25 * SIM_MS)
#define WARM     30u /* plans until it is known, or known anew */
#define MEASURED 60u
#define STREAM   1u
#define PROMPTS  2u

static struct sim sim;

static void world(uint64_t gap_ns)
{
        const struct sched_conf conf = {
                .blocks = 4000,
                .slots = 4,
                .rows = 256,
                .context = 8000,
                .depth = 1,
                .requests_max = 6,
                .channels = 1,
                .stall_ns = SIM_NEVER,
                .gap_ns = gap_ns,
        };

        sim_open(&sim, &conf, 7, true);
}

static void keep_asking(uint32_t uid, uint32_t alive, uint32_t prompt, uint32_t most)
{
        uint32_t count = 0;

        each_request(&sim, r) count += r->uid == uid;
        while (count++ < alive)
                sim_submit(&sim, &(struct sim_ask){
                                         .name = "r", .uid = uid, .prompt = prompt, .most = most });
}

struct measure {
        uint32_t plans, late, prompt_rows; /* of plans with both kinds of rows */
};

/* So many plans; late are those that take longer than they may. */
static struct measure run(uint32_t plans)
{
        struct measure measure = { 0 };

        for (uint32_t n = 0; n < plans; n++) {
                uint32_t decodes, prompts;
                uint64_t alone, most;

                keep_asking(STREAM, 2, 1, 4000);
                keep_asking(PROMPTS, 2, 300, 1);
                sim_turn(&sim, SIM_NEVER - 1);
                decodes = audit_rows_of(&sim, false);
                prompts = audit_rows_of(&sim, true);
                if (!decodes || !prompts)
                        continue;
                alone = sim.step_ns + decodes * sim.row_ns;
                most = 2 * alone > GAP_NS ? 2 * alone : GAP_NS;
                measure.plans++;
                measure.prompt_rows += prompts;
                measure.late += prompts > 1 && alone + prompts * sim.row_ns > most + most / 4;
        }
        return measure;
}

static void cost(uint64_t step_us, uint64_t row_us)
{
        sim.step_ns = step_us * 1000;
        sim.row_ns = row_us * 1000;
}

/* All that is promised, and no less than half of it. */
static void expect_pace(void)
{
        struct measure measure = run(MEASURED);
        uint64_t alone = sim.step_ns + 2 * sim.row_ns;
        uint64_t most = 2 * alone > GAP_NS ? 2 * alone : GAP_NS;

        print_message("%u of %u plans late, %u rows of prompts in each, of %u\n", measure.late,
                      measure.plans, measure.prompt_rows / measure.plans,
                      (unsigned)((most - alone) / sim.row_ns));
        assert_true(measure.plans > MEASURED / 2);
        assert_int_equal(measure.late, 0);
        assert_true(measure.prompt_rows * sim.row_ns >= measure.plans * (most - alone) / 2);
}

static void end(void)
{
        each_request(&sim, r) sim_cancel(&sim, r);
        while (sim_alive(&sim) || sim.flight_count)
                sim_turn(&sim, SIM_NEVER - 1);
        sim_close(&sim);
}

static void decodes_wait_for_prompts_no_longer_than_the_gap(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 500);
        keep_asking(STREAM, 2, 1, 4000);
        for (int i = 0; i < 5; i++)
                sim_turn(&sim, SIM_NEVER - 1);
        run(WARM);
        expect_pace();
        end();
}

static void it_is_learnt_anew_when_all_becomes_slower(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 500);
        run(WARM);
        cost(40000, 2000);
        run(WARM);
        expect_pace();
        end();
}

static void it_is_learnt_anew_when_all_becomes_faster(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(40000, 2000);
        run(WARM);
        cost(10000, 500);
        run(WARM);
        expect_pace();
        end();
}

static void without_a_gap_prompts_have_all_rows(void **state)
{
        struct measure measure;

        (void)state;
        world(0);
        cost(10000, 500);
        measure = run(MEASURED);
        assert_true(measure.prompt_rows >= measure.plans * 100);
        end();
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
                story(decodes_wait_for_prompts_no_longer_than_the_gap),
                story(it_is_learnt_anew_when_all_becomes_slower),
                story(it_is_learnt_anew_when_all_becomes_faster),
                story(without_a_gap_prompts_have_all_rows),
        };

        return cmocka_run_group_tests_name("sim-pace", tests, NULL, NULL);
}
