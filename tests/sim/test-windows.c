/*
 * Scenarios of window pages: layers that see 20 positions, in a world with one slot unless a
 * scenario says otherwise.
 *
 * A row at position p sees the positions from p - 19 on, so the page before position p needs the
 * pages from block (p - 20) / 16 on.  A step has 64 rows, which is four blocks.  So one slot needs
 * ten window pages at least (sched_windows_of()), and scenarios of eviction have ten.
 */
#include "tests/sim/sim.h"

#define WINDOW 20u
#define FEW    10u /* window pages */

static struct sim sim;

static void world(uint32_t window_pages, struct sched_conf conf)
{
        conf.rows = 64;
        conf.slots = conf.slots ? conf.slots : 1;
        conf.prefix.window = WINDOW;
        conf.prefix.window_pages = window_pages;
        sim_open_small(&sim, &conf);
}

static struct sched_counts counts(void)
{
        struct sched_counts now;

        sched_count(sim.sched, &now);
        return now;
}

static uint32_t windows_in_use(void)
{
        struct sched_counts now = counts();

        return now.windows_total - now.windows_free - now.windows_cached;
}

/* Runs a request to its end.  Returns the number of positions that were found for it. */
static uint32_t finish(const struct sim_ask *ask)
{
        struct sim_request *request = sim_submit(&sim, ask);

        while (sim_alive(&sim))
                sim_turn(&sim, sim.now_ns + SIM_MS);
        return request->cached;
}

static uint32_t say_more(uint64_t uid, uint32_t text, uint32_t shared, uint32_t prompt,
                         uint32_t most)
{
        return finish(&(struct sim_ask){ .name = "r",
                                         .uid = uid,
                                         .text = text,
                                         .shared = shared,
                                         .prompt = prompt,
                                         .most = most,
                                         .sees_public = true });
}

/* A request that begins with `shared` tokens of a text, and has `prompt` in all. */
static uint32_t say(uint64_t uid, uint32_t text, uint32_t shared, uint32_t prompt)
{
        return say_more(uid, text, shared, prompt, 1);
}

/* A text that nobody else says: it needs a window page for each 16 tokens. */
static void say_new(uint64_t uid, uint32_t prompt)
{
        assert_int_equal(say(uid, 0, 0, prompt), 0);
}

static void read_text(uint32_t text, uint32_t count, uint32_t pin, uint64_t publish)
{
        finish(&(struct sim_ask){ .name = "p",
                                  .uid = 1,
                                  .text = text,
                                  .shared = count,
                                  .prompt = count,
                                  .pin = pin,
                                  .publish = publish });
}

static void a_long_stream_holds_the_pages_of_its_window_only(void **state)
{
        uint32_t most_reading = 0, most_decoding = 0;
        struct sim_request *a;

        (void)state;
        world(64, (struct sched_conf){ 0 });
        a = sim_submit(&sim,
                       &(struct sim_ask){ .name = "a", .uid = 1, .prompt = 100, .most = 100 });
        while (sim_alive(&sim)) {
                uint32_t *most =
                        a->moved && a->planned_before >= a->known ? &most_decoding : &most_reading;

                if (windows_in_use() > *most)
                        *most = windows_in_use();
                sim_turn(&sim, sim.now_ns + SIM_MS);
        }
        /* The second plan of its prompt sees from position 45 on, and has rows up to 100. */
        assert_int_equal(most_reading, 5);
        assert_int_equal(most_decoding, 3);
        assert_int_equal(counts().windows_free + counts().windows_cached, 64);
        sim_close(&sim);
}

static void finds_a_system_prompt_whose_pages_were_passed_while_there_is_space(void **state)
{
        (void)state;
        world(64, (struct sched_conf){ 0 });
        say(1, 2, 96, 200);
        assert_int_equal(counts().window_evictions, 0);
        assert_int_equal(say(1, 2, 96, 120), 96);
        assert_int_equal(say(1, 2, 40, 120), 40);
        sim_close(&sim);
}

/* Six pages of the text and six others are two too many, so the text loses its first two. */
static void leave_four_of_six(void)
{
        say(1, 2, 96, 96);
        say_new(1, 64);
        say_new(1, 32);
        assert_int_equal(counts().window_evictions, 2);
}

static void passed_pages_are_evicted_before_the_ends_of_prompts(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        leave_four_of_six();
        /* All of the text is found, as only pages of its beginning were evicted. */
        assert_int_equal(say(1, 2, 96, 120), 96);
        sim_close(&sim);
}

/* The first text is older, but the second one has pages that its sequence has passed. */
static void the_end_of_an_old_prompt_outlasts_newer_pages_that_were_passed(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        say(1, 2, 48, 48);
        say(1, 4, 96, 96);
        say_new(1, 64);
        assert_int_equal(counts().window_evictions, 3);
        assert_int_equal(say(1, 2, 48, 50), 48);
        sim_close(&sim);
}

/* The sequence has eight pages: two at the end of its prompt, two at its own end, four others. */
static void the_end_of_a_prompt_outlasts_the_answer_that_passed_it(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        say_more(1, 2, 64, 64, 60);
        say_new(1, 32);
        say_new(1, 64);
        assert_int_equal(counts().window_evictions, 4);
        assert_int_equal(say(1, 2, 64, 70), 64);
        sim_close(&sim);
}

static void a_hit_ends_where_all_window_pages_are_there(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        leave_four_of_six();
        /* Position 64 needs the blocks from 2 on. */
        assert_int_equal(say(1, 2, 70, 90), 70);
        sim_close(&sim);

        world(FEW, (struct sched_conf){ 0 });
        leave_four_of_six();
        /* Position 48 needs block 1, and earlier ones need block 0. */
        assert_int_equal(say(1, 2, 60, 90), 0);
        sim_close(&sim);
}

static void a_block_that_is_computed_again_gets_its_window_page_back(void **state)
{
        uint32_t blocks;

        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        leave_four_of_six();
        blocks = counts().blocks_cached;
        assert_int_equal(say_more(1, 2, 48, 48, 2), 0);
        /* It took the three blocks that are known instead of its own, and made one more. */
        assert_int_equal(counts().blocks_cached, blocks + 1);
        assert_int_equal(sim.swaps, 3);
        assert_int_equal(say(1, 2, 48, 50), 48);
        sim_close(&sim);
}

static void a_request_of_one_token_gives_window_pages_back_as_well(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        leave_four_of_six();
        assert_int_equal(say(1, 2, 48, 48), 0);
        assert_int_equal(say(1, 2, 48, 50), 48);
        sim_close(&sim);
}

static void a_text_whose_beginning_is_computed_again_is_found(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        leave_four_of_six();
        /* Its first 48 positions are known, without two of their window pages. */
        assert_int_equal(say(1, 2, 48, 90), 0);
        assert_int_equal(say(1, 2, 48, 90), 48);
        sim_close(&sim);
}

static void a_read_text_gets_its_window_pages_back_for_a_pin(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        leave_four_of_six();
        read_text(2, 48, 1, 0);
        assert_int_equal(say(1, 2, 48, 60), 48);
        sim_close(&sim);
}

static void a_tail_is_copied_with_its_window_page(void **state)
{
        (void)state;
        world(64, (struct sched_conf){ 0 });
        say(1, 2, 40, 40);
        assert_int_equal(say(1, 2, 36, 60), 36);
        assert_int_equal(say(1, 2, 40, 40), 39);
        assert_int_equal(sim.copies, 2);
        sim_close(&sim);
}

static void a_tail_without_its_window_page_is_not_found(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        say(1, 2, 12, 12);
        for (uint32_t i = 0; i < 10; i++)
                say_new(1, 64);
        assert_int_equal(counts().blocks_free, 64 - 41);
        assert_int_equal(say(1, 2, 10, 20), 0);
        sim_close(&sim);
}

/* The first of two equal texts has a pin, and is older. */
static void a_text_with_a_pin_keeps_its_window_pages(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        read_text(2, 64, 1, 0);
        say(1, 4, 64, 64);
        for (uint32_t i = 0; i < 4; i++)
                say_new(1, 64);
        assert_true(counts().window_evictions > 10);
        assert_int_equal(say(1, 4, 64, 80), 0);
        assert_int_equal(say(1, 2, 64, 80), 64);

        sim_unpin(&sim, 1);
        for (uint32_t i = 0; i < 4; i++)
                say_new(1, 64);
        assert_int_equal(say(1, 2, 64, 80), 0);
        sim_close(&sim);
}

/* Both are in one plan, so neither finds the blocks of the other. */
static void equal_prompts_in_one_plan_share_window_pages_afterwards(void **state)
{
        struct sim_ask ask = {
                .name = "a", .uid = 1, .text = 2, .shared = 30, .prompt = 30, .most = 8
        };

        (void)state;
        world(64, (struct sched_conf){ .slots = 2, .batch_size = 2 });
        sim_submit(&sim, &ask);
        sim_submit(&sim, &ask);
        sim_turn(&sim, SIM_MS);
        assert_int_equal(windows_in_use(), 4);
        sim_turn(&sim, SIM_MS);
        sim_turn(&sim, SIM_MS);
        assert_int_equal(windows_in_use(), 3);
        while (sim_alive(&sim))
                sim_turn(&sim, sim.now_ns + SIM_MS);
        assert_int_equal(sim.swaps, 2);
        sim_close(&sim);
}

static void a_published_text_is_found_by_others_with_its_window_pages(void **state)
{
        (void)state;
        world(64, (struct sched_conf){ 0 });
        read_text(2, 96, 1, PREFIX_EVERYONE);
        assert_int_equal(say(2, 2, 96, 120), 96);
        assert_int_equal(say(3, 2, 70, 120), 70);
        assert_true(sim.found_public > 0);
        sim_close(&sim);
}

/* The first six pages of ten are evicted, and a user computes these blocks again. */
static void lose_published_pages(void)
{
        read_text(2, 160, 1, PREFIX_EVERYONE);
        say_new(2, 64);
        say_new(2, 32);
        assert_int_equal(counts().window_evictions, 6);
        assert_int_equal(say(2, 2, 80, 100), 0);
}

/* Only the last three of six pages are left, those that the pin protects. */
static void publish_and_lose_pages(void)
{
        read_text(2, 96, 1, PREFIX_EVERYONE);
        for (uint32_t i = 0; i < 3; i++)
                say_new(2, 64);
        assert_int_equal(say(3, 2, 96, 97), 96);
}

/* Otherwise nobody could publish it while the first text is public. */
static void a_text_that_begins_with_a_published_one_can_be_published(void **state)
{
        struct sim_request *p;

        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        publish_and_lose_pages();
        p = sim_submit(&sim, &(struct sim_ask){ .name = "p",
                                                .uid = 1,
                                                .text = 2,
                                                .shared = 48,
                                                .prompt = 90,
                                                .pin = 2,
                                                .publish = PREFIX_EVERYONE });
        while (sim_alive(&sim))
                sim_turn(&sim, sim.now_ns + SIM_MS);
        assert_int_equal(p->code, SMV_OK);
        sim_close(&sim);
}

/* A user's own blocks behind those that it cannot use, because their window pages are gone. */
static void a_user_finds_what_it_computed_for_itself_of_a_published_text(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        publish_and_lose_pages();
        assert_int_equal(say(2, 2, 48, 60), 0);
        assert_int_equal(say(2, 2, 48, 60), 48);
        sim_close(&sim);
}

/* The same behind three blocks whose window pages are still there, so it uses these. */
static void a_user_finds_what_it_computed_behind_published_blocks(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        read_text(2, 160, 1, PREFIX_EVERYONE);
        assert_int_equal(say(2, 2, 48, 49), 48);
        say_new(2, 64);
        assert_int_equal(say(2, 2, 112, 120), 48);
        assert_int_equal(say(2, 2, 112, 120), 112);
        sim_close(&sim);
}

/* The numbers are found to be invalid after the window pages could have been handed over. */
static void invalid_window_pages_are_not_given_to_published_blocks(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        lose_published_pages();
        finish(&(struct sim_ask){ .name = "x",
                                  .uid = 1,
                                  .text = 2,
                                  .shared = 90,
                                  .prompt = 90,
                                  .pin = 2,
                                  .publish = PREFIX_EVERYONE,
                                  .end_at = 1,
                                  .verdict = SCHED_NUMERIC });
        assert_int_equal(say(3, 2, 80, 100), 0);
        assert_int_equal(say(3, 2, 150, 160), 150);
        sim_close(&sim);
}

static void invalid_window_pages_are_not_found_by_others(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ 0 });
        leave_four_of_six();
        /* It computes blocks 0 to 2 again, for the index, and then it fails. */
        finish(&(struct sim_ask){ .name = "x",
                                  .uid = 1,
                                  .text = 2,
                                  .shared = 50,
                                  .prompt = 50,
                                  .most = 9,
                                  .end_at = 3,
                                  .verdict = SCHED_NUMERIC });
        assert_int_equal(say(1, 2, 50, 60), 0);
        sim_close(&sim);
}

/*
 * It gives the page of its first block to the known one when it has passed it, and is stalled then.
 * So it does not use the known block itself, and its numbers turn out to be invalid.
 */
static void a_block_does_not_keep_an_invalid_window_page_that_it_was_given(void **state)
{
        (void)state;
        world(2 * FEW, (struct sched_conf){ .depth = 2 });
        say(1, 2, 96, 96);
        for (uint32_t i = 0; i < 5; i++)
                say_new(1, 64);
        sim.channels[0].capacity = 10;
        assert_int_equal(finish(&(struct sim_ask){ .name = "x",
                                                   .uid = 1,
                                                   .text = 2,
                                                   .shared = 50,
                                                   .prompt = 50,
                                                   .most = 9,
                                                   .end_at = 1,
                                                   .verdict = SCHED_NUMERIC }),
                         0);
        assert_int_equal(say(1, 2, 16, 30), 0);
        sim_close(&sim);
}

/* The second user's pages are older, but the first one has more than it may keep. */
static void a_user_above_its_limit_loses_window_pages_first(void **state)
{
        (void)state;
        world(FEW, (struct sched_conf){ .prefix.windows_max = 4 });
        say(2, 4, 48, 48);
        say(1, 2, 112, 112);
        say_new(3, 48);
        assert_int_equal(say(2, 4, 16, 50), 16);
        sim_close(&sim);

        world(FEW, (struct sched_conf){ 0 });
        say(2, 4, 48, 48);
        say(1, 2, 112, 112);
        say_new(3, 48);
        assert_int_equal(say(2, 4, 16, 50), 0);
        sim_close(&sim);
}

/* It finds its earlier positions, with the window pages that its next row sees. */
static void a_preempted_request_goes_on_from_its_window(void **state)
{
        struct sim_request *b;

        (void)state;
        world(FEW, (struct sched_conf){ .preemptions_max = 1 });
        b = sim_submit(&sim, &(struct sim_ask){ .name = "b",
                                                .uid = 1,
                                                .priority = REQUEST_BACKGROUND,
                                                .prompt = 60,
                                                .most = 60 });
        sim_run(&sim, 200);
        sim_submit(&sim, &(struct sim_ask){ .name = "i", .uid = 2, .prompt = 60, .most = 9 });
        while (sim_alive(&sim)) {
                sim_turn(&sim, sim.now_ns + SIM_MS);
                if (b->alive)
                        assert_true(b->core.recomputed <= 1);
        }
        assert_int_equal(sim.preempted, 1);
        assert_int_equal(sim.resumed, 1);
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
                story(a_long_stream_holds_the_pages_of_its_window_only),
                story(finds_a_system_prompt_whose_pages_were_passed_while_there_is_space),
                story(passed_pages_are_evicted_before_the_ends_of_prompts),
                story(the_end_of_an_old_prompt_outlasts_newer_pages_that_were_passed),
                story(the_end_of_a_prompt_outlasts_the_answer_that_passed_it),
                story(a_hit_ends_where_all_window_pages_are_there),
                story(a_block_that_is_computed_again_gets_its_window_page_back),
                story(a_request_of_one_token_gives_window_pages_back_as_well),
                story(a_text_whose_beginning_is_computed_again_is_found),
                story(a_read_text_gets_its_window_pages_back_for_a_pin),
                story(a_text_that_begins_with_a_published_one_can_be_published),
                story(a_user_finds_what_it_computed_for_itself_of_a_published_text),
                story(a_user_finds_what_it_computed_behind_published_blocks),
                story(a_tail_is_copied_with_its_window_page),
                story(a_tail_without_its_window_page_is_not_found),
                story(a_text_with_a_pin_keeps_its_window_pages),
                story(equal_prompts_in_one_plan_share_window_pages_afterwards),
                story(a_published_text_is_found_by_others_with_its_window_pages),
                story(invalid_window_pages_are_not_given_to_published_blocks),
                story(invalid_window_pages_are_not_found_by_others),
                story(a_block_does_not_keep_an_invalid_window_page_that_it_was_given),
                story(a_user_above_its_limit_loses_window_pages_first),
                story(a_preempted_request_goes_on_from_its_window),
        };

        return cmocka_run_group_tests_name("sim-windows", tests, NULL, NULL);
}
