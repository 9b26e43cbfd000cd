#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/core/fair-share.h"

#define LEAD 100u

static struct fair_share fair_share;

static void open_share(uint32_t users_max, uint32_t slots, uint32_t blocks, uint32_t user_blocks)
{
        assert_int_equal(fair_share_init(&fair_share, users_max, slots, blocks, user_blocks, LEAD),
                         0);
}

static int clear(void **state)
{
        (void)state;
        fair_share_deinit(&fair_share);
        return 0;
}

/* Here promised blocks are never given out, so promises are all that a user has. */
static bool may_take(uint32_t uid, uint32_t more)
{
        return fair_share_may_take_slot(&fair_share, uid,
                                        ((uint64_t)fair_share_reserved(&fair_share, uid) + more) *
                                                BLOCK_PARTS);
}

static void arrive(uint32_t uid)
{
        fair_share_add_request(&fair_share, uid);
        fair_share_add_waiting(&fair_share, uid);
}

static void take(uint32_t uid, uint32_t blocks)
{
        fair_share_take_slot(&fair_share, uid, REQUEST_NORMAL, 0);
        fair_share_reserve(&fair_share, uid, blocks);
}

static void give_back(uint32_t uid, uint32_t blocks)
{
        fair_share_release(&fair_share, uid, blocks);
        fair_share_return_slot(&fair_share, uid);
}

/* `count` requests of this user come and get a slot at once, with this many blocks each. */
static void run(uint32_t uid, uint32_t count, uint32_t blocks)
{
        while (count--) {
                arrive(uid);
                take(uid, blocks);
        }
}

static void end(uint32_t uid, uint32_t blocks)
{
        give_back(uid, blocks);
        fair_share_remove_request(&fair_share, uid);
}

static void a_request_that_does_not_wait_leaves_all_slots_to_others(void **state)
{
        (void)state;
        open_share(8, 4, 8, 0);
        fair_share_add_request(&fair_share, 2);
        run(1, 3, 1);
        arrive(1);
        assert_true(may_take(1, 1));
        fair_share_add_waiting(&fair_share, 2);
        assert_false(may_take(1, 1));
        fair_share_cancel_waiting(&fair_share, 2);
        assert_true(may_take(1, 1));
        fair_share_check(&fair_share, 1, 3, 3);
}

static void a_user_without_a_slot_may_start_a_request_of_any_size(void **state)
{
        (void)state;
        open_share(8, 1, 8, 0);
        arrive(1);
        arrive(2);
        assert_true(may_take(1, 1)); /* half of one slot is none */
        assert_true(may_take(2, 8));
        fair_share_check(&fair_share, 2, 0, 0);
}

static void a_user_may_take_everything_while_no_other_user_waits(void **state)
{
        (void)state;
        open_share(8, 4, 8, 0);
        run(1, 3, 2);
        arrive(1);
        assert_true(may_take(1, 2));
        /* the user's own requests do not count as another user */
        arrive(1);
        assert_true(may_take(1, 2));
        run(2, 1, 1); /* a user whose requests all run does not wait */
        assert_true(may_take(1, 2));
        fair_share_check(&fair_share, 2, 4, 7);
}

static void limits_a_user_to_half_of_the_slots_while_another_waits(void **state)
{
        static const uint32_t slots[] = { 2, 3, 4, 5, 12, 13 };

        (void)state;
        for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
                open_share(32, slots[i], 1000, 0);
                arrive(2);
                for (uint32_t has = 0; has < slots[i]; has++) {
                        arrive(1);
                        assert_int_equal(may_take(1, 1), has < slots[i] / 2);
                        take(1, 1);
                }
                fair_share_deinit(&fair_share);
        }
}

static void limits_a_user_to_half_of_the_blocks_while_another_waits(void **state)
{
        (void)state;
        open_share(8, 8, 9, 0);
        arrive(2);
        run(1, 1, 2);
        arrive(1);
        assert_true(may_take(1, 2));
        assert_false(may_take(1, 3)); /* 5 of 9 */
        assert_false(may_take(1, UINT32_MAX));
        fair_share_deinit(&fair_share);

        open_share(8, 8, UINT32_MAX, 0);
        arrive(2);
        run(1, 1, UINT32_MAX / 2);
        arrive(1);
        assert_true(may_take(1, 0));
        assert_false(may_take(1, 1));
        assert_false(may_take(1, UINT32_MAX)); /* a sum of 32 bits would be small */
}

static void assert_excess(uint64_t parts, struct fair_share_excess want)
{
        const struct fair_share_excess excess = fair_share_excess(&fair_share, 1, parts);

        assert_false(fair_share_may_take_slot(&fair_share, 1, parts));
        assert_int_equal(excess.slots, want.slots);
        assert_int_equal(excess.slots_max, want.slots_max);
        assert_int_equal(excess.blocks, want.blocks);
        assert_int_equal(excess.blocks_max, want.blocks_max);
}

static void tells_what_a_user_would_have_and_may_have(void **state)
{
        (void)state;
        open_share(8, 5, 9, 7);
        arrive(2);
        run(1, 1, 2);
        arrive(1);
        assert_excess(9 * BLOCK_PARTS / 2 + 1, (struct fair_share_excess){ 0, 0, 5, 4 });
        assert_excess(7 * BLOCK_PARTS, (struct fair_share_excess){ 0, 0, 7, 4 });
        assert_excess(7 * BLOCK_PARTS + 1, (struct fair_share_excess){ 0, 0, 8, 7 });
        assert_excess(UINT64_MAX, (struct fair_share_excess){ 0, 0, UINT32_MAX, 7 });
        take(1, 1);
        arrive(1);
        assert_excess(1, (struct fair_share_excess){ 3, 2, 0, 0 });
        assert_excess(8 * BLOCK_PARTS, (struct fair_share_excess){ 0, 0, 8, 7 });
        fair_share_deinit(&fair_share);
}

static void counts_parts_of_blocks_towards_the_half(void **state)
{
        (void)state;
        open_share(8, 8, 9, 0);
        arrive(2);
        run(1, 1, 2);
        arrive(1);
        assert_true(fair_share_may_take_slot(&fair_share, 1, BLOCK_PARTS * 9 / 2));
        assert_false(fair_share_may_take_slot(&fair_share, 1, BLOCK_PARTS * 9 / 2 + 1));
}

static void never_exceeds_the_block_limit_of_a_user(void **state)
{
        (void)state;
        open_share(8, 8, 100, 5);
        arrive(1);
        assert_true(may_take(1, 5)); /* alone, and with nothing */
        assert_false(fair_share_may_take_slot(&fair_share, 1, 5 * BLOCK_PARTS + 1));
        take(1, 3);
        arrive(1);
        assert_true(may_take(1, 2));
        assert_false(may_take(1, 3));
        /* The half of the pool is a separate limit. */
        assert_true(fair_share_is_within_half(&fair_share, 1, 6 * BLOCK_PARTS));
        fair_share_deinit(&fair_share);

        open_share(8, 8, 100, 80);
        run(1, 1, 30);
        arrive(1);
        assert_true(may_take(1, 50));
        assert_false(may_take(1, 51));
        arrive(2);
        assert_true(may_take(1, 20)); /* both limits apply to the user */
        assert_false(may_take(1, 21));
}

static void a_user_that_stops_waiting_no_longer_limits_others(void **state)
{
        (void)state;
        open_share(8, 4, 8, 0);
        run(1, 2, 1);
        arrive(1);
        arrive(2);
        arrive(2);
        assert_false(may_take(1, 1));
        fair_share_cancel_waiting(&fair_share, 2);
        assert_false(may_take(1, 1)); /* the other one still waits */
        fair_share_cancel_waiting(&fair_share, 2);
        assert_true(may_take(1, 1));
        fair_share_check(&fair_share, 1, 2, 2);

        arrive(3);
        assert_false(may_take(1, 1));
        take(3, 1);
        assert_true(may_take(1, 1));
        fair_share_check(&fair_share, 1, 3, 3);
}

static void released_slots_and_blocks_can_be_taken_again(void **state)
{
        (void)state;
        open_share(8, 4, 8, 0);
        arrive(2);
        run(1, 1, 1);
        run(1, 1, 3);
        arrive(1);
        assert_false(may_take(1, 1));
        end(1, 1);
        assert_true(may_take(1, 1));
        assert_false(may_take(1, 2)); /* the user still has 3 */
        end(1, 3);
        assert_true(may_take(1, 8)); /* the user has nothing, so it begins again */
        fair_share_check(&fair_share, 2, 0, 0);
}

static void a_skipped_request_blocks_later_requests_of_its_user(void **state)
{
        (void)state;
        open_share(8, 8, 8, 0);
        arrive(2);
        run(1, 1, 1);
        arrive(1);
        arrive(1);
        assert_false(may_take(1, 4));
        assert_true(may_take(1, 1));
        fair_share_pass_over(&fair_share, 1, 5 * BLOCK_PARTS);
        assert_false(may_take(1, 1));
        assert_true(may_take(2, 4)); /* another is not concerned */
        fair_share_begin_pass(&fair_share);
        assert_true(may_take(1, 1));
        fair_share_check(&fair_share, 3, 1, 1);
}

static void charge(uint32_t uid, uint64_t ns)
{
        fair_share_charge(&fair_share, uid, ns);
        fair_share_limit_credit(&fair_share);
}

static void assert_served(uint32_t uid, uint64_t ns)
{
        assert_int_equal(fair_share_served(&fair_share, uid), ns);
}

/* The table has room for users that are present, and for some that may have debts. */
static void forgets_the_users_that_owe_least(void **state)
{
        (void)state;
        open_share(3, 4, 8, 0);
        run(7, 2, 2); /* stays */
        for (uint32_t uid = 100; uid < 300; uid++) {
                arrive(uid);
                take(uid, 1);
                fair_share_check(&fair_share, 0, 3, 5);
                fair_share_charge(&fair_share, uid, uid == 150 ? 90 : 20);
                end(uid, 1);
                assert_true(fair_share.count <= 3 + SHARE_AWAY_MAX);
                assert_false(fair_share_has_user(&fair_share, uid));
        }
        run(150, 1, 1);
        assert_served(150, 90); /* it owed most */
        run(299, 1, 1);
        assert_served(299, 20);
        end(150, 1);
        end(299, 1);
        run(100, 1, 1);
        assert_served(100, 0); /* long forgotten */
        end(100, 1);
        fair_share_check(&fair_share, 0, 2, 4);
        end(7, 2);
        end(7, 2);
        assert_int_equal(fair_share.count, 0);
}

static void a_new_user_starts_at_the_lowest_account_of_those_present(void **state)
{
        (void)state;
        open_share(8, 8, 64, 0);
        run(1, 1, 1);
        run(2, 1, 1);
        charge(1, 100);
        charge(2, 70);
        run(3, 1, 1);
        assert_served(3, 70);
        run(3, 1, 1); /* it is there already */
        assert_served(3, 70);
        end(2, 1); /* one that is away does not count */
        charge(3, 10);
        run(4, 1, 1);
        assert_served(4, 80);
}

static void a_user_that_leaves_and_comes_back_has_gained_nothing(void **state)
{
        (void)state;
        open_share(8, 8, 64, 0);
        run(1, 1, 1);
        run(2, 1, 1);
        charge(2, 70);
        end(2, 1);
        run(2, 1, 1);
        assert_served(2, 70); /* its debt is not paid */
        end(2, 1);
        charge(1, 200);
        run(2, 1, 1);
        assert_served(2, 200); /* and it has saved nothing */
}

/* Neither is there a debt to others, if there are no others. */
static void forgets_all_accounts_when_no_user_is_present(void **state)
{
        (void)state;
        open_share(8, 8, 64, 0);
        run(1, 1, 1);
        charge(1, 70);
        end(1, 1);
        run(1, 1, 1);
        assert_served(1, 0);
}

static void a_user_that_asks_for_little_does_not_save_up_time(void **state)
{
        (void)state;
        open_share(8, 8, 64, 0);
        run(1, 1, 1);
        run(2, 1, 1);
        for (int i = 0; i < 50; i++) {
                charge(1, LEAD);
                charge(2, 1);
        }
        assert_served(1, 50 * LEAD);
        assert_served(2, (50 - SHARE_CREDIT) * LEAD + 1);
        run(3, 1, 1); /* the others are as far behind, so it goes before none of them */
        assert_served(3, (50 - SHARE_CREDIT) * LEAD + 1);
}

static void a_user_may_exceed_half_to_catch_up(void **state)
{
        (void)state;
        open_share(8, 4, 64, 0);
        run(1, 2, 1);
        run(2, 2, 1);
        arrive(1);
        arrive(2);
        charge(1, LEAD - 1);
        assert_false(may_take(2, 1));
        charge(1, 1);
        assert_true(may_take(2, 1));
        assert_false(may_take(1, 1));
        arrive(3); /* one that is nearly equal waits as well */
        assert_false(may_take(2, 1));
}

#define REQUESTS 12u
#define SLOTS    5u
#define BLOCKS   21u

static struct life {
        enum { FREE, WAITS, RUNS, GAVE_UP } is;
        uint32_t uid, blocks;
} lives[REQUESTS];

/* The rule of fair-share.h, computed from a list of all requests instead of running sums. */
static bool may(uint32_t uid, uint32_t more)
{
        uint32_t slots = 0, blocks = 0;
        bool others = false;

        for (uint32_t i = 0; i < REQUESTS; i++) {
                others |= lives[i].uid != uid && lives[i].is == WAITS;
                slots += lives[i].uid == uid && lives[i].is == RUNS;
                blocks += lives[i].uid == uid && lives[i].is == RUNS ? lives[i].blocks : 0;
        }
        return !others || !slots || (slots + 1 <= SLOTS / 2 && blocks + more <= BLOCKS / 2);
}

static void check_lives(void)
{
        uint32_t waiting = 0, slots = 0, blocks = 0;

        for (uint32_t i = 0; i < REQUESTS; i++) {
                waiting += lives[i].is == WAITS;
                slots += lives[i].is == RUNS;
                blocks += lives[i].is == RUNS ? lives[i].blocks : 0;
        }
        fair_share_check(&fair_share, waiting, slots, blocks);
}

static void random_operations_match_a_plain_list(void **state)
{
        uint32_t asked[2] = { 0 };
        uint64_t random = 1;

        (void)state;
        memset(lives, 0, sizeof(lives));
        open_share(REQUESTS, SLOTS, BLOCKS, 0);
        for (uint32_t step = 0; step < 20000; step++) {
                struct life *life;
                bool leaves;

                random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                life = &lives[(random >> 33) % REQUESTS];
                leaves = (random >> 40) % 4 == 0;
                if (life->is == FREE) {
                        *life = (struct life){ .is = WAITS,
                                               .uid = (random >> 45) % 4,
                                               .blocks = 1 + (random >> 50) % 7 };
                        arrive(life->uid);
                } else if (life->is == WAITS && leaves) {
                        fair_share_cancel_waiting(&fair_share, life->uid);
                        life->is = GAVE_UP;
                } else if (life->is == WAITS) {
                        bool says = may_take(life->uid, life->blocks);

                        assert_int_equal(says, may(life->uid, life->blocks));
                        asked[says]++;
                        if (says) {
                                take(life->uid, life->blocks);
                                life->is = RUNS;
                        }
                } else if (leaves) {
                        if (life->is == RUNS)
                                give_back(life->uid, life->blocks);
                        fair_share_remove_request(&fair_share, life->uid);
                        life->is = FREE;
                }
                check_lives();
        }
        assert_true(asked[false] > 1000 && asked[true] > 1000);
}

/* In a child, which must be killed by an assert. */
static void dies(void (*what)(void))
{
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (!child) {
                open_share(8, 4, 8, 0);
                run(1, 1, 3);
                arrive(2);
                fair_share_check(&fair_share, 1, 1, 3);
                close(STDERR_FILENO);
                what();
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void take_without_waiting(void)
{
        take(1, 1);
}

static void give_up_without_waiting(void)
{
        fair_share_cancel_waiting(&fair_share, 1);
}

static void release_too_many_blocks(void)
{
        give_back(1, 4);
}

static void release_a_slot_that_was_not_taken(void)
{
        give_back(2, 0);
}

static void forget_a_request_with_a_slot(void)
{
        fair_share_remove_request(&fair_share, 1);
}

static void forget_a_waiting_request(void)
{
        fair_share_remove_request(&fair_share, 2);
}

static void forget_an_unknown_user(void)
{
        fair_share_remove_request(&fair_share, 3);
}

static void check_waiting(void)
{
        fair_share_check(&fair_share, 2, 1, 3);
}

static void check_slots(void)
{
        fair_share_check(&fair_share, 1, 2, 3);
}

static void check_blocks(void)
{
        fair_share_check(&fair_share, 1, 1, 2);
}

static void check_users(void)
{
        fair_share.present++;
        fair_share_check(&fair_share, 1, 1, 3);
}

static void asserts_on_misuse_and_wrong_sums(void **state)
{
        (void)state;
        dies(take_without_waiting);
        dies(give_up_without_waiting);
        dies(release_too_many_blocks);
        dies(release_a_slot_that_was_not_taken);
        dies(forget_a_request_with_a_slot);
        dies(forget_a_waiting_request);
        dies(forget_an_unknown_user);
        dies(check_waiting);
        dies(check_slots);
        dies(check_blocks);
        dies(check_users);
}

#define story(name) cmocka_unit_test_teardown(name, clear)

int main(void)
{
        const struct CMUnitTest tests[] = {
                story(a_request_that_does_not_wait_leaves_all_slots_to_others),
                story(a_user_without_a_slot_may_start_a_request_of_any_size),
                story(a_user_may_take_everything_while_no_other_user_waits),
                story(limits_a_user_to_half_of_the_slots_while_another_waits),
                story(limits_a_user_to_half_of_the_blocks_while_another_waits),
                story(tells_what_a_user_would_have_and_may_have),
                story(counts_parts_of_blocks_towards_the_half),
                story(never_exceeds_the_block_limit_of_a_user),
                story(a_user_that_stops_waiting_no_longer_limits_others),
                story(released_slots_and_blocks_can_be_taken_again),
                story(a_skipped_request_blocks_later_requests_of_its_user),
                story(forgets_the_users_that_owe_least),
                story(a_new_user_starts_at_the_lowest_account_of_those_present),
                story(a_user_that_leaves_and_comes_back_has_gained_nothing),
                story(forgets_all_accounts_when_no_user_is_present),
                story(a_user_that_asks_for_little_does_not_save_up_time),
                story(a_user_may_exceed_half_to_catch_up),
                story(random_operations_match_a_plain_list),
                story(asserts_on_misuse_and_wrong_sums),
        };

        return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
