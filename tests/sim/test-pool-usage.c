/*
 * Scenarios of the users' shares of the pool, in simulated milliseconds; test-stories.c says
 * how to read a line, and test-users.c explains "pass over 1".
 *
 * Blocks that a user's requests share are charged once.  Public blocks are charged in equal
 * parts to all users that hold them.  The letter in a request's name is its user.  A block
 * holds 16 positions, and the last token needs none.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        conf.rows = 128;
        conf.requests_max = 12;
        sim_open_small(&sim, &conf);
}

/* Of a text of its own. */
static struct sim_request *ask_as(enum request_priority priority, const char *name, uint32_t prompt,
                                  uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = (uint32_t)name[0],
                                                   .priority = priority,
                                                   .prompt = prompt,
                                                   .most = most });
}

static struct sim_request *ask(const char *name, uint32_t prompt, uint32_t most)
{
        return ask_as(REQUEST_INTERACTIVE, name, prompt, most);
}

/* All of its prompt is the one text that all know. */
static struct sim_request *ask_known(const char *name, uint32_t prompt, uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = (uint32_t)name[0],
                                                   .shared = prompt,
                                                   .prompt = prompt,
                                                   .most = most,
                                                   .sees_public = true });
}

/* Expects that the user is listed, with this many blocks. */
static void expect_user(char letter, uint32_t blocks, uint32_t cached)
{
        struct sched_user users[12];
        uint32_t count = sched_users(sim.sched, users, 12);

        for (uint32_t i = 0; i < count; i++) {
                if (users[i].uid != (uint32_t)letter)
                        continue;
                assert_int_equal(users[i].blocks, blocks);
                assert_int_equal(users[i].cached, cached);
                return;
        }
        fail_msg("nothing is told of %c", letter);
}

static void expect_requests(char letter, uint32_t running, uint32_t waiting)
{
        struct sched_user users[12];
        uint32_t count = sched_users(sim.sched, users, 12), at = 0;

        while (at < count && users[at].uid != (uint32_t)letter)
                at++;
        assert_true(at < count);
        assert_int_equal(users[at].running, running);
        assert_int_equal(users[at].waiting, waiting);
}

/*
 * Two blocks of history, and each fork needs one more: eight have ten, which is half, and the
 * ninth waits.  b1 needs eleven, and there are ten left; later it is first, as b was served least.
 */
static void charges_shared_history_of_eight_forks_once(void **state)
{
        static const char *const names[] = { "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9" };

        (void)state;
        world((struct sched_conf){ .slots = 20, .blocks = 20 });
        ask_known("a0", 32, 1);
        sim_run(&sim, 20);
        for (uint32_t i = 0; i < 9; i++)
                ask_known(names[i], 32, 2);
        ask("b1", 161, 1);
        sim_run(&sim, 30);
        expect_user('a', 10, 0);
        expect_requests('a', 8, 1);
        expect_requests('b', 0, 1);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a0 0..32*; take 2 drop 0\n"
                         "[ 10] end a0 length; retire a0; take 0 drop 2\n"
                         "[ 20] prefill a1 31..32*; prefill a2 31..32*; prefill a3 "
                         "31..32*; prefill a4 31..32*; prefill a5 31..32*; prefill a6 "
                         "31..32*; prefill a7 31..32*; prefill a8 31..32*; pass over 1; "
                         "take 0 drop 0; share 16 copy 0\n"
                         "[ 30] decode a1 32; decode a2 32; decode a3 32; decode a4 32; "
                         "decode a5 32; decode a6 32; decode a7 32; decode a8 32; take 8 "
                         "drop 0\n"
                         "[ 40] prefill b1 0..128; end a1 length; end a2 length; end a3 "
                         "length; end a4 length; end a5 length; end a6 length; end a7 "
                         "length; end a8 length; retire a1; retire a2; retire a3; retire "
                         "a4; retire a5; retire a6; retire a7; retire a8; take 8 drop 10\n"
                         "[ 50] prefill b1 128..161*; prefill a9 31..32*; take 3 drop 0; "
                         "share 2 copy 0\n"
                         "[ 60] decode a9 32; end b1 length; retire b1; take 1 drop 11\n"
                         "[ 70] end a9 length; retire a9; take 0 drop 3\n");
        sim_close(&sim);
}

/*
 * Four blocks are public: two of them are a's and two are b's, and each user has one block of
 * its own.
 */
static void two_users_of_a_public_text_pay_half_of_it_each(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        sim_submit(&sim, &(struct sim_ask){ .name = "p",
                                            .uid = 'p',
                                            .shared = 64,
                                            .prompt = 64,
                                            .pin = 1,
                                            .publish = PREFIX_EVERYONE });
        sim_step(&sim);
        expect_user('p', 4, 0);
        sim_collect(&sim);
        sim_run(&sim, 20);
        ask_known("a1", 64, 4);
        sim_run(&sim, 30);
        expect_user('a', 5, 0);
        ask_known("b1", 64, 5);
        sim_run(&sim, 40);
        expect_user('a', 3, 0);
        expect_user('b', 3, 0);
        ask_known("a2", 64, 2); /* three of five parts of a: 4 * 2 / 3 + 2 */
        sim_run(&sim, 50);
        expect_user('a', 5, 0);
        expect_user('b', 3, 0); /* 4 / 3 + 1 */
        sim_run(&sim, 70);
        expect_user('b', 5, 0);
        sim_run(&sim, 100);
        expect_user('a', 0, 2);
        expect_user('b', 0, 1);
        sim_close(&sim);
}

/* Even though no other user is there. */
static void a_request_over_the_block_limit_waits_for_its_own_user(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 8, .user_blocks = 4 });
        ask("a1", 20, 2); /* 2 blocks */
        ask("a2", 20, 3);
        ask("a3", 20, 2);
        ask("a4", 2, 2); /* it would fit as soon as a1 is over, and is behind a3 */
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a1 0..20*; prefill a2 0..20*; pass over 2; "
                         "take 4 drop 0\n"
                         "[ 10] decode a1 20; decode a2 20; pass over 2\n"
                         "[ 20] decode a2 21; prefill a3 0..20*; pass over 1; end a1 length; "
                         "retire a1; take 2 drop 2\n"
                         "[ 30] decode a3 20; prefill a4 0..2*; end a2 length; retire a2; "
                         "take 1 drop 2\n"
                         "[ 40] decode a4 2; end a3 length; retire a3; take 0 drop 2\n"
                         "[ 50] end a4 length; retire a4; take 0 drop 1\n");
        sim_close(&sim);
}

/* a has reached the maximum, so its next request waits; b, which came later, does not wait. */
static void the_block_limit_of_a_user_delays_no_other_user(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 8, .user_blocks = 4 });
        ask("a1", 40, 2); /* 3 blocks */
        ask("a2", 40, 2);
        ask("b1", 40, 2);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a1 0..40*; prefill b1 0..40*; pass over 1; "
                         "take 6 drop 0\n"
                         "[ 10] decode a1 40; decode b1 40; pass over 1\n"
                         "[ 20] prefill a2 0..40*; end a1 length; end b1 length; retire a1; "
                         "retire b1; take 3 drop 6\n"
                         "[ 30] decode a2 40\n"
                         "[ 40] end a2 length; retire a2; take 0 drop 3\n");
        sim_close(&sim);
}

/* Two blocks of history and one each: three of them are five, and four would be six. */
static void the_block_limit_counts_shared_blocks_of_forks_once(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 8, .user_blocks = 5 });
        ask_known("a0", 32, 1);
        sim_run(&sim, 20);
        ask_known("a1", 32, 2);
        ask_known("a2", 32, 2);
        ask_known("a3", 32, 2);
        ask_known("a4", 32, 2);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a0 0..32*; take 2 drop 0\n"
                         "[ 10] end a0 length; retire a0; take 0 drop 2\n"
                         "[ 20] prefill a1 31..32*; prefill a2 31..32*; prefill a3 31..32*; "
                         "pass over 1; take 0 drop 0; share 6 copy 0\n"
                         "[ 30] decode a1 32; decode a2 32; decode a3 32; pass over 1; "
                         "take 3 drop 0\n"
                         "[ 40] prefill a4 31..32*; end a1 length; end a2 length; end a3 length; "
                         "retire a1; retire a2; retire a3; take 0 drop 5; share 2 copy 0\n"
                         "[ 50] decode a4 32; take 1 drop 0\n"
                         "[ 60] end a4 length; retire a4; take 0 drop 3\n");
        sim_close(&sim);
}

/* One may keep two blocks.  a keeps three when a2 needs one more than is free: b's are older. */
static void evicts_blocks_of_a_user_over_its_cache_limit_first(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 6, .prefix.cached_max = 2 });
        ask_known("b1", 32, 1);
        sim_run(&sim, 20);
        ask_known("a1", 48, 1);
        sim_run(&sim, 40);
        expect_user('a', 0, 3);
        expect_user('b', 0, 2);
        ask("a2", 32, 1);
        sim_run(&sim, 60);
        ask_known("b2", 32, 1);
        sim_run(&sim, 80);
        ask_known("a3", 48, 1);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill b1 0..32*; take 2 drop 0\n"
                         "[ 10] end b1 length; retire b1; take 0 drop 2\n"
                         "[ 20] prefill a1 0..48*; take 3 drop 0\n"
                         "[ 30] end a1 length; retire a1; take 0 drop 3\n"
                         "[ 40] prefill a2 0..32*; take 2 drop 0\n"
                         "[ 50] end a2 length; retire a2; take 0 drop 2\n"
                         "[ 60] prefill b2 31..32*; take 0 drop 0; share 2 copy 0\n"
                         "[ 70] end b2 length; retire b2; take 0 drop 2\n"
                         "[ 80] prefill a3 32..48*; take 1 drop 0; share 2 copy 0\n"
                         "[ 90] end a3 length; retire a3; take 0 drop 3\n");
        sim_close(&sim);
}

/*
 * A user may keep one block.  a keeps two that it pinned; the blocks that c needs are taken
 * from b.
 */
static void evicts_unpinned_blocks_of_others_before_pinned_ones_over_the_limit(void **state)
{
        (void)state;
        world((struct sched_conf){ .blocks = 4, .prefix.cached_max = 1 });
        sim_submit(&sim, &(struct sim_ask){
                                 .name = "a1", .uid = 'a', .shared = 32, .prompt = 32, .pin = 1 });
        sim_run(&sim, 20);
        ask_known("b1", 16, 1);
        sim_run(&sim, 40);
        ask("c1", 32, 1);
        sim_run(&sim, 60);
        ask_known("a2", 32, 1);
        sim_run(&sim, 80);
        ask_known("b2", 16, 1);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a1 0..32*; take 2 drop 0\n"
                         "[ 10] end a1 length; retire a1; take 0 drop 2\n"
                         "[ 20] prefill b1 0..16*; take 1 drop 0\n"
                         "[ 30] end b1 length; retire b1; take 0 drop 1\n"
                         "[ 40] prefill c1 0..32*; take 2 drop 0\n"
                         "[ 50] end c1 length; retire c1; take 0 drop 2\n"
                         "[ 60] prefill a2 31..32*; take 0 drop 0; share 2 copy 0\n"
                         "[ 70] end a2 length; retire a2; take 0 drop 2\n"
                         "[ 80] prefill b2 0..16*; take 1 drop 0\n"
                         "[ 90] end b2 length; retire b2; take 0 drop 1\n");
        sim_close(&sim);
}

/*
 * a2 and the blocks of a1 are above one user's maximum.  For c1, whose user has nothing, b3
 * gives way.
 */
static void does_not_preempt_for_a_request_over_the_block_limit_of_its_user(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 4, .preemptions_max = 1, .user_blocks = 4 });
        ask("a1", 40, 3); /* 3 blocks */
        ask_as(REQUEST_BACKGROUND, "b1", 2, 5);
        ask_as(REQUEST_BACKGROUND, "b2", 2, 5);
        ask_as(REQUEST_BACKGROUND, "b3", 2, 5);
        sim_run(&sim, 10);
        ask("a2", 20, 2); /* 2 blocks; one, if the first of them were found */
        sim_run(&sim, 20);
        ask("c1", 2, 2);
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a1 0..40*; prefill b1 0..2*; prefill b2 0..2*; "
                         "prefill b3 0..2*; take 6 drop 0\n"
                         "[ 10] decode a1 40; decode b1 2; decode b2 2; decode b3 2; "
                         "pass over 1\n"
                         "[ 20] decode a1 41; decode b1 3; decode b2 3; prefill c1 0..2*; "
                         "preempted b3; pass over 2; take 1 drop 1\n"
                         "[ 30] decode b1 4; decode b2 4; decode c1 2; prefill a2 0..20*; "
                         "end a1 length; retire a1; take 2 drop 3\n"
                         "[ 40] decode b1 5; decode b2 5; decode a2 20; prefill b3 3..4*; "
                         "end c1 length; retire c1; take 1 drop 1; share 0 copy 1\n"
                         "[ 50] decode b3 4; end b1 length; end b2 length; end a2 length; "
                         "retire b1; retire b2; retire a2; take 0 drop 4\n"
                         "[ 60] decode b3 5\n"
                         "[ 70] end b3 length; retire b3; take 0 drop 1\n");
        sim_close(&sim);
}

/* Where one user may have all, a full pool is made space in as before: a1 goes on later. */
static void preempts_background_of_the_same_user_without_a_block_limit(void **state)
{
        (void)state;
        world((struct sched_conf){ .slots = 4, .blocks = 4, .preemptions_max = 1 });
        ask_as(REQUEST_BACKGROUND, "a1", 40, 3); /* 3 blocks */
        sim_run(&sim, 10);
        ask("a2", 20, 2); /* 2 blocks */
        sim_run(&sim, 100);
        sim_expect(&sim, "[  0] prefill a1 0..40*; take 3 drop 0\n"
                         "[ 10] prefill a2 0..20*; preempted a1; take 2 drop 3\n"
                         "[ 20] decode a2 20\n"
                         "[ 30] prefill a1 32..41*; end a2 length; retire a2; take 1 drop 2; "
                         "share 2 copy 0\n"
                         "[ 40] decode a1 41\n"
                         "[ 50] end a1 length; retire a1; take 0 drop 3\n");
        sim_close(&sim);
}

static void refuses_a_request_over_the_block_limit_of_a_user(void **state)
{
        const struct sched_conf conf = { .blocks = 8, .user_blocks = 2, .context = 100 };

        (void)state;
        assert_int_equal(sched_fits(&conf, 32, 1), SMV_OK);
        assert_int_equal(sched_fits(&conf, 32, 0), SMV_OK);
        assert_int_equal(sched_fits(&conf, 32, 2), SMV_QUOTA);
        assert_int_equal(sched_fits(&conf, 100, 0), SMV_QUOTA); /* seven blocks */
        assert_int_equal(sched_fits(&conf, 101, 0), SMV_TOO_LONG);
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
                story(charges_shared_history_of_eight_forks_once),
                story(two_users_of_a_public_text_pay_half_of_it_each),
                story(a_request_over_the_block_limit_waits_for_its_own_user),
                story(the_block_limit_of_a_user_delays_no_other_user),
                story(the_block_limit_counts_shared_blocks_of_forks_once),
                story(evicts_blocks_of_a_user_over_its_cache_limit_first),
                story(evicts_unpinned_blocks_of_others_before_pinned_ones_over_the_limit),
                story(does_not_preempt_for_a_request_over_the_block_limit_of_its_user),
                story(preempts_background_of_the_same_user_without_a_block_limit),
                story(refuses_a_request_over_the_block_limit_of_a_user),
        };

        return cmocka_run_group_tests_name("sim-charges", tests, NULL, NULL);
}
