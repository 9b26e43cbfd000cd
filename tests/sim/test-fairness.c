/*
 * How much each user is served: in time, whatever its requests declare.  In the first half there is
 * one slot, so that every step belongs to one user.
 */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

static struct sim sim;
static char order[1024];      /* names, as they were admitted */
static uint64_t spent_ns[10]; /* by user: what its rows really cost */

static void world(uint32_t requests_max)
{
        const struct sched_conf conf = { .slots = 1, .rows = 64, .requests_max = requests_max };

        order[0] = 0;
        sim_open_small(&sim, &conf);
}

static void ask(const char *name, uint32_t prompt)
{
        assert_non_null(sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                            .uid = (uint32_t)name[0],
                                                            .prompt = prompt,
                                                            .most = 1 }));
}

static void run(uint64_t until_ms)
{
        while (sim.now_ns < until_ms * SIM_MS) {
                uint64_t turns = sim.turns;

                sim_turn(&sim, until_ms * SIM_MS);
                each_request(&sim, r)
                {
                        if (sim.turns > turns && r->admitted && r->turn == turns)
                                snprintf(order + strlen(order), sizeof(order) - strlen(order),
                                         "%s ", r->name);
                }
        }
}

static uint32_t count_alive(uint64_t uid)
{
        uint32_t count = 0;

        each_request(&sim, r) count += r->uid == uid;
        return count;
}

static void keep_asking(uint64_t uid, uint32_t alive, uint32_t prompt, uint32_t most)
{
        while (count_alive(uid) < alive)
                sim_submit(&sim, &(struct sim_ask){
                                         .name = "r", .uid = uid, .prompt = prompt, .most = most });
}

static uint64_t served(uint64_t uid)
{
        each_request(&sim, r)
        {
                if (r->uid == uid)
                        return audit_served(&sim, r);
        }
        return 0;
}

/* Each step takes 10 ms.  A request of the one takes 4 of them, a request of the other 2. */
static void a_user_with_100_requests_is_served_as_much_as_one_with_2(void **state)
{
        (void)state;
        world(102);
        while (sim.now_ns < 5000 * SIM_MS) {
                keep_asking(1, 100, 4, 4);
                keep_asking(2, 2, 20, 2); /* the next is there before the last has gone */
                sim_turn(&sim, SIM_NEVER - 1);
        }
        assert_true(served(1) > 1000 * SIM_MS);
        assert_true(served(1) <= served(2) + 40 * SIM_MS);
        assert_true(served(2) <= served(1) + 40 * SIM_MS);
        sim_run(&sim, 15000);
        sim_close(&sim);
}

static void a_new_user_is_not_compensated_for_the_past(void **state)
{
        (void)state;
        world(12);
        for (int i = 1; i <= 6; i++)
                ask((const char *const[]){ "", "a1", "a2", "a3", "a4", "a5", "a6" }[i], 2);
        run(30);
        ask("b1", 2);
        ask("b2", 2);
        ask("b3", 2);
        run(200);
        assert_string_equal(order, "a1 a2 a3 a4 b1 a5 b2 a6 b3 ");
        sim_close(&sim);
}

/* A request takes a millisecond, and one more for each row. */
static void count_rows(void)
{
        sim.step_ns = sim.row_ns = SIM_MS;
}

/* One of a takes 21 ms, one of b 3. */
static void long_prompts_count_towards_usage(void **state)
{
        (void)state;
        world(12);
        count_rows();
        ask("a1", 20);
        ask("a2", 20);
        ask("a3", 20);
        for (int i = 0; i < 8; i++)
                ask((const char *const[]){ "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8" }[i], 2);
        run(300);
        assert_string_equal(order, "a1 b1 b2 b3 b4 b5 b6 b7 a2 b8 a3 ");
        sim_close(&sim);
}

/*
 * A request of b takes 2 ms, one of a takes 21.  When b has had one, a has had nothing; when a has
 * had one, b has had less.
 */
static void users_alternate_between_their_first_and_second_requests(void **state)
{
        (void)state;
        world(12);
        count_rows();
        ask("b1", 1);
        ask("b2", 1);
        ask("a1", 20);
        ask("a2", 20);
        run(200);
        assert_string_equal(order, "b1 a1 b2 a2 ");
        sim_close(&sim);
}

#define LEAD    (50 * SIM_MS)
#define PROMOTE (300 * SIM_MS)

/* Several slots.  The requests may be long, so they are given up for those of others. */
static void crowd(uint32_t slots, uint32_t context)
{
        const struct sched_conf conf = {
                .blocks = 40 * slots,
                .slots = slots,
                .rows = 64,
                .context = context,
                .depth = 2,
                .requests_max = 40,
                .channels = 1,
                .stall_timeout_ns = SIM_NEVER,
                .stall_preempt_ns = SIM_NEVER,
                .preemptions_max = 1000,
                .lead_ns = LEAD,
                .promote_ns = PROMOTE,
        };

        memset(spent_ns, 0, sizeof(spent_ns));
        sim_open(&sim, &conf, 11, false);
}

static void keep(uint64_t uid, enum request_priority priority, uint32_t alive, uint32_t prompt,
                 uint32_t most)
{
        uint32_t count = 0;

        each_request(&sim, r) count += r->uid == uid && r->priority == priority;
        for (; count < alive; count++)
                sim_submit(&sim, &(struct sim_ask){ .name = "r",
                                                    .uid = uid,
                                                    .priority = priority,
                                                    .prompt = prompt,
                                                    .most = most });
}

static bool is_decode(const struct plan_row *row)
{
        return row->position >= row->sequence->request->prompt_count;
}

/*
 * A turn, and the cost of its step: each row has its own.  What all rows share is for the decodes:
 * prompts are read beside them.
 */
static void turn_and_spend(void)
{
        uint32_t decodes = 0, rows;

        sim_turn(&sim, SIM_NEVER - 1);
        rows = sim.plan.row_count;
        for (uint32_t i = 0; i < rows; i++)
                decodes += is_decode(&sim.plan.rows[i]);
        for (uint32_t i = 0; i < rows; i++) {
                const struct plan_row *row = &sim.plan.rows[i];
                uint64_t *spent = &spent_ns[row->sequence->request->uid];

                if (is_decode(row) || !decodes)
                        *spent += sim.step_ns / (decodes ? decodes : rows);
                *spent += sim.row_ns +
                          row->position * (is_decode(row) ? sim.decode_far_ns : sim.far_ns) / 1024;
        }
}

static void assert_near(uint64_t a, uint64_t b, uint32_t percent)
{
        if (a * 100 > b * (100 + percent) || b * 100 > a * (100 + percent))
                fail_msg("%llu and %llu differ by more than %u %%", (unsigned long long)a,
                         (unsigned long long)b, percent);
}

/* User 1 has contexts of 500, user 2 of 20.  By rows, user 1 would get four fifths and more. */
static void serve_long_and_short(uint64_t far_ns, uint64_t decode_far_ns, uint32_t most)
{
        crowd(6, 600);
        sim.step_ns = 2 * SIM_MS;
        sim.row_ns = SIM_MS / 20;
        sim.far_ns = far_ns;
        sim.decode_far_ns = decode_far_ns;
        while (sim.now_ns < 60000 * SIM_MS) {
                keep(1, REQUEST_NORMAL, 8, 500, most);
                keep(2, REQUEST_NORMAL, 8, 20, most);
                turn_and_spend();
        }
        assert_near(served(1), served(2), 5); /* the last requests make a difference */
        assert_near(spent_ns[1], spent_ns[2], 15);
        sim_run(&sim, 200000);
        sim_close(&sim);
}

static void users_of_long_and_of_short_prompts_get_the_same_time(void **state)
{
        (void)state;
        serve_long_and_short(SIM_MS, 0, 10);
}

static void users_of_long_and_of_short_contexts_get_the_same_time(void **state)
{
        (void)state;
        serve_long_and_short(SIM_MS / 10, 20 * SIM_MS, 90);
}

/* Two ask for all they can get, in the best class.  The third gets its part. */
static void interactive_requests_of_two_users_do_not_starve_a_third(void **state)
{
        (void)state;
        for (int class = REQUEST_NORMAL; class <= REQUEST_BACKGROUND; class ++) {
                crowd(4, 600);
                while (sim.now_ns < 30000 * SIM_MS) {
                        keep(1, REQUEST_INTERACTIVE, 10, 16, 500);
                        keep(2, REQUEST_INTERACTIVE, 10, 16, 500);
                        keep(3, (enum request_priority) class, 3, 16, 8);
                        turn_and_spend();
                }
                assert_near(served(1), served(3), 3);
                assert_near(served(2), served(3), 3);
                sim_run(&sim, 300000);
                sim_close(&sim);
        }
}

/* ... and it gets a slot as soon as it is a lead behind them, though their requests never end. */
static void a_user_that_arrives_gets_a_slot_from_interactive_requests_of_others(void **state)
{
        struct sim_request *late;
        uint64_t begin;

        (void)state;
        crowd(4, 600);
        keep(1, REQUEST_INTERACTIVE, 10, 16, 500);
        keep(2, REQUEST_INTERACTIVE, 10, 16, 500);
        sim_run(&sim, 300);
        late = sim_submit(&sim, &(struct sim_ask){ .name = "late",
                                                   .uid = 3,
                                                   .priority = REQUEST_NORMAL,
                                                   .prompt = 16,
                                                   .most = 8 });
        begin = sim.now_ns;
        while (!late->admitted)
                sim_turn(&sim, SIM_NEVER - 1);
        /* both users are charged for a lead, and rows in flight come back */
        assert_true(sim.now_ns - begin >= LEAD);
        assert_true(sim.now_ns - begin <= 2 * LEAD + 4 * sim.step_ns);
        sim_run(&sim, 300000);
        sim_close(&sim);
}

/* Users that are nearly equal: the class decides.  It is worth a lead, once. */
static void a_better_class_gains_a_lead_and_no_more(void **state)
{
        (void)state;
        crowd(1, 600);
        while (sim.now_ns < 20000 * SIM_MS) {
                uint64_t most = 2 * LEAD + 5 * sim.step_ns;

                keep(1, REQUEST_INTERACTIVE, 3, 16, 4);
                keep(2, REQUEST_BACKGROUND, 3, 16, 4);
                turn_and_spend();
                assert_true(served(1) <= served(2) + most && served(2) <= served(1) + most);
                if (sim.now_ns > 10000 * SIM_MS)
                        assert_true(served(1) > served(2));
        }
        sim_run(&sim, 300000);
        sim_close(&sim);
}

/* Of its 20 background requests one is served for each two periods, which make it interactive. */
static void background_requests_are_promoted_among_interactive_ones_of_their_user(void **state)
{
        uint64_t background;

        (void)state;
        crowd(2, 600);
        keep(1, REQUEST_BACKGROUND, 20, 16, 4);
        while (sim.now_ns < 10 * 2 * PROMOTE) {
                keep(1, REQUEST_INTERACTIVE, 4, 16, 8);
                turn_and_spend();
        }
        background = 20;
        each_request(&sim, r) background -= r->priority == REQUEST_BACKGROUND;
        assert_in_range(background, 7, 11); /* two have a slot at once */
        sim_run(&sim, 300000);
        sim_close(&sim);
}

/*
 * It waits until it counts as interactive, keeps its slot for as long as one promotion takes, and
 * then gives it up for the next interactive one.
 */
static void a_promoted_request_keeps_its_slot_for_a_while(void **state)
{
        struct sim_request *background;
        uint64_t admitted;

        (void)state;
        crowd(1, 600);
        keep(1, REQUEST_INTERACTIVE, 2, 16, 4);
        background = sim_submit(&sim, &(struct sim_ask){ .name = "back",
                                                         .uid = 1,
                                                         .priority = REQUEST_BACKGROUND,
                                                         .prompt = 16,
                                                         .most = 400 });
        while (!background->admitted) {
                keep(1, REQUEST_INTERACTIVE, 2, 16, 4);
                turn_and_spend();
        }
        admitted = sim.now_ns;
        assert_true(admitted >= 2 * PROMOTE && admitted <= 2 * PROMOTE + 10 * sim.step_ns);
        while (!background->preemptions) {
                keep(1, REQUEST_INTERACTIVE, 2, 16, 4);
                turn_and_spend();
        }
        assert_true(sim.now_ns - admitted >= PROMOTE - 2 * sim.step_ns);
        assert_true(sim.now_ns - admitted <= PROMOTE + 2 * sim.step_ns);
        sim_run(&sim, 300000);
        sim_close(&sim);
}

/* Its prompt is long, and others of its user come first; it is read to its end all the same. */
static void a_background_prompt_is_read_among_interactive_ones_of_its_user(void **state)
{
        struct sim_request *background;

        (void)state;
        crowd(4, 600);
        background = sim_submit(&sim, &(struct sim_ask){ .name = "back",
                                                         .uid = 1,
                                                         .priority = REQUEST_BACKGROUND,
                                                         .prompt = 400,
                                                         .most = 1 });
        while (background->alive && sim.now_ns < 30 * PROMOTE) {
                keep(1, REQUEST_INTERACTIVE, 3, 400, 1);
                turn_and_spend();
        }
        assert_false(background->alive);
        sim_run(&sim, 300000);
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
                story(a_user_with_100_requests_is_served_as_much_as_one_with_2),
                story(a_new_user_is_not_compensated_for_the_past),
                story(long_prompts_count_towards_usage),
                story(users_alternate_between_their_first_and_second_requests),
                story(users_of_long_and_of_short_prompts_get_the_same_time),
                story(users_of_long_and_of_short_contexts_get_the_same_time),
                story(interactive_requests_of_two_users_do_not_starve_a_third),
                story(a_user_that_arrives_gets_a_slot_from_interactive_requests_of_others),
                story(a_better_class_gains_a_lead_and_no_more),
                story(background_requests_are_promoted_among_interactive_ones_of_their_user),
                story(a_promoted_request_keeps_its_slot_for_a_while),
                story(a_background_prompt_is_read_among_interactive_ones_of_its_user),
        };

        return cmocka_run_group_tests_name("sim-fairness", tests, NULL, NULL);
}
