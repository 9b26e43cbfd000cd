/*
 * The pace of prompts: two streams keep decoding while long prompts keep coming.  A step has a
 * base time, each of its rows adds to it, and rows further on in a prompt may add more.  The
 * core is not told these costs.  Two promises are tested.  At most one of a hundred steps takes
 * longer than it may.  Most of the time that prompts may use is used.
 */
#include "tests/sim/sim.h"

#define GAP_NS   (25 * SIM_MS)
#define WARM     450u /* plans until it is known, or known anew */
#define MEASURED 300u
#define STREAM   1u
#define PROMPTS  2u

static struct sim sim;
static uint32_t prompt;     /* tokens of each of those that never cease */
static uint32_t stream;     /* ... of each that goes on, and then another comes */
static uint64_t spread_ns;  /* a step takes longer, by less than this */
static uint32_t slow_after; /* one plan out of this many is slow; 0: none is */

static void world(uint64_t token_gap_ns)
{
        const struct sched_conf conf = {
                .blocks = 600,
                .slots = 4,
                .rows = 256,
                .context = 2000,
                .depth = 1,
                .requests_max = 6,
                .channels = 1,
                .stall_timeout_ns = SIM_NEVER,
                .token_gap_ns = token_gap_ns,
                .lead_ns = 1000 * SIM_MS,
        };

        prompt = 300;
        stream = 1500;
        spread_ns = 0;
        slow_after = 0;
        sim_open(&sim, &conf, 7, true);
}

static void keep_asking(uint64_t uid, uint32_t alive, uint32_t tokens, uint32_t most)
{
        uint32_t count = 0;

        each_request(&sim, r) count += r->uid == uid;
        while (count++ < alive)
                sim_submit(&sim, &(struct sim_ask){
                                         .name = "r", .uid = uid, .prompt = tokens, .most = most });
}

/* The time that two decodes may take alone, and the time that they may take with prompts. */
static uint64_t alone(void)
{
        return sim.step_ns + 2 * sim.row_ns;
}

static uint64_t most(void)
{
        return 2 * alone() > GAP_NS ? 2 * alone() : GAP_NS;
}

/* One plan; true if it has both kinds of rows. */
static bool turn(uint32_t number)
{
        sim.lag_ns = spread_ns ? sim_below(&sim, (uint32_t)spread_ns) : 0;
        if (slow_after && number % slow_after == slow_after - 1)
                sim.lag_ns = 2 * GAP_NS;
        keep_asking(STREAM, 2, 1, stream);
        keep_asking(PROMPTS, 2, prompt, 1);
        sim_turn(&sim, SIM_NEVER - 1);
        return audit_rows_of(&sim, false) == 2 && audit_rows_of(&sim, true);
}

struct measure {
        uint32_t plans, late, prompt_rows; /* of plans with both kinds of rows */
        uint64_t given_ns;                 /* ... to prompts */
};

/* Runs this many plans.  Late ones are those that take longer than they may. */
static struct measure run(uint32_t plans)
{
        struct measure measure = { 0 };

        for (uint32_t n = 0; n < plans; n++) {
                if (!turn(n))
                        continue;
                measure.plans++;
                measure.prompt_rows += audit_rows_of(&sim, true);
                measure.late += sim.took_ns > most();
                measure.given_ns += sim.took_ns - sim.lag_ns - alone();
        }
        return measure;
}

static void cost(uint64_t step_us, uint64_t row_us)
{
        sim.step_ns = step_us * 1000;
        sim.row_ns = row_us * 1000;
}

/*
 * Checks both promises.  Prompts must use this percentage of the time that they may have, after
 * the time between steps and its variation are subtracted.
 */
static void expect_pace(uint32_t late, uint32_t percent)
{
        struct measure measure = run(MEASURED);
        uint64_t may = measure.plans * (most() - most() / 16 - alone() - spread_ns);

        print_message("%u of %u plans late, %u rows of prompts in each, %u%% of the time\n",
                      measure.late, measure.plans, measure.prompt_rows / measure.plans,
                      (unsigned)(100 * measure.given_ns / may));
        assert_true(measure.plans > MEASURED / 2);
        assert_true(measure.late <= late);
        assert_true(measure.given_ns * 100 >= may * percent);
}

static void end(void)
{
        each_request(&sim, r) sim_cancel(&sim, r);
        while (sim_alive(&sim) || sim.flight_count)
                sim_turn(&sim, SIM_NEVER - 1);
        sim_close(&sim);
}

static void prefill_keeps_steps_within_the_gap(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 500);
        run(WARM);
        expect_pace(MEASURED / 100, 75);
        end();
}

/* The first chunk is made before the cost of rows is known, the later ones after that. */
static void the_gap_holds_from_the_second_chunk_on(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 500);
        assert_true(run(100).late <= 1);
        end();
}

/* 0.05 ms a row where it begins and 0.9 at its end, of the 14.9 that prompts may have. */
static void the_gap_holds_if_later_positions_of_a_prompt_cost_more(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 50);
        sim.far_ns = SIM_MS / 2;
        prompt = 1700;
        run(WARM);
        expect_pace(MEASURED / 100, 40);
        end();
}

/* The streams are short, so that most of them have come after the prompts beside them. */
static void the_cost_estimate_follows_the_position_of_each_prompt(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 50);
        sim.far_ns = SIM_MS / 2;
        prompt = 1700;
        stream = 20;
        run(WARM);
        expect_pace(MEASURED / 100, 40);
        end();
}

/*
 * The only prompt that has rows in this plan, unless that is the row that it gets now and then
 * in any case.
 */
static const struct sim_request *only_prompt(void)
{
        const struct sim_request *only = NULL;
        uint32_t rows = audit_rows_of(&sim, true);

        each_request(&sim, r) if (r->uid == PROMPTS && r->planned - r->planned_before == rows)
                only = r;
        return rows > 1 ? only : NULL;
}

/* At 1024 a row takes 0.55 ms and at 0 an eleventh of that. */
static void the_cost_of_late_positions_does_not_slow_early_ones(void **state)
{
        uint32_t rows_far = 0, rows_near = 0;

        (void)state;
        world(GAP_NS);
        cost(10000, 50);
        sim.far_ns = SIM_MS / 2;
        prompt = 1100;
        run(WARM);
        for (uint32_t n = 0; n < WARM && !rows_near; n++) {
                const struct sim_request *is = turn(0) ? only_prompt() : NULL;

                if (is && is->planned_before > 1000)
                        rows_far = is->planned - is->planned_before;
                else if (is && rows_far && is->planned_before < 100)
                        rows_near = is->planned - is->planned_before;
        }
        print_message("%u rows far on, then %u\n", rows_far, rows_near);
        assert_true(rows_far >= 2);
        assert_true(rows_near > 4 * rows_far);
        end();
}

/* Any time up to 3 ms more, of 16: aimed at the mean, half of them would be late. */
static void the_gap_holds_with_random_step_times(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(8000, 500);
        spread_ns = 3 * SIM_MS;
        run(WARM);
        expect_pace(MEASURED / 100, 75);
        end();
}

/* One in 150 takes 50 ms more, whatever is in it; nothing makes that one be in time. */
static void a_rare_slow_step_does_not_throttle_prefill(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 500);
        slow_after = 150;
        run(2 * WARM);
        expect_pace(MEASURED / 100 + MEASURED / 150, 60);
        end();
}

/* Every third plan is slow: then prompts go on with half of the time that they might have. */
static void prefill_continues_although_most_steps_are_late(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 500);
        slow_after = 3;
        run(WARM);
        expect_pace(MEASURED, 20);
        end();
}

static void relearns_the_cost_when_steps_become_slower(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(10000, 500);
        run(WARM);
        cost(40000, 2000);
        run(WARM);
        expect_pace(MEASURED / 100, 50);
        end();
}

static void relearns_the_cost_when_steps_become_faster(void **state)
{
        (void)state;
        world(GAP_NS);
        cost(40000, 2000);
        run(WARM);
        cost(10000, 500);
        run(WARM);
        expect_pace(MEASURED / 100, 75);
        end();
}

static void without_a_gap_prefill_takes_all_rows(void **state)
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
                story(prefill_keeps_steps_within_the_gap),
                story(the_gap_holds_from_the_second_chunk_on),
                story(the_gap_holds_if_later_positions_of_a_prompt_cost_more),
                story(the_cost_estimate_follows_the_position_of_each_prompt),
                story(the_cost_of_late_positions_does_not_slow_early_ones),
                story(the_gap_holds_with_random_step_times),
                story(a_rare_slow_step_does_not_throttle_prefill),
                story(prefill_continues_although_most_steps_are_late),
                story(relearns_the_cost_when_steps_become_slower),
                story(relearns_the_cost_when_steps_become_faster),
                story(without_a_gap_prefill_takes_all_rows),
        };

        return cmocka_run_group_tests_name("sim-pace", tests, NULL, NULL);
}
