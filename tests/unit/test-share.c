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

#include "daemon/core/share.h"

static struct shares shares;

static int clear(void **state)
{
        (void)state;
        shares_deinit(&shares);
        return 0;
}

/* Here promised blocks are never given out, so promises are all that a user has. */
static bool may_take(uint32_t uid, uint32_t more)
{
        return share_may_take(&shares, uid,
                              ((uint64_t)share_promised(&shares, uid) + more) * SHARE_PARTS);
}

static void take(uint32_t uid, uint32_t blocks)
{
        share_take(&shares, uid);
        share_promise(&shares, uid, blocks);
}

static void give_back(uint32_t uid, uint32_t blocks)
{
        share_redeem(&shares, uid, blocks);
        share_give_back(&shares, uid);
}

/* `count` requests of this user come and get a slot at once, with this many blocks each. */
static void run(uint32_t uid, uint32_t count, uint32_t blocks)
{
        while (count--) {
                share_come(&shares, uid, REQUEST_NORMAL);
                take(uid, blocks);
        }
}

static void end(uint32_t uid, uint32_t blocks)
{
        give_back(uid, blocks);
        share_forget(&shares, uid, REQUEST_NORMAL);
}

static void who_has_nothing_may_begin_however_large(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 1, 8, 0), 0);
        share_come(&shares, 1, REQUEST_NORMAL);
        share_come(&shares, 2, REQUEST_NORMAL);
        assert_true(may_take(1, 1)); /* half of one slot is none */
        assert_true(may_take(2, 8));
        shares_check(&shares, 2, 0, 0);
}

static void alone_he_may_have_everything(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 4, 8, 0), 0);
        run(1, 3, 2);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_true(may_take(1, 2));
        /* the user's own requests do not count as another user */
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_true(may_take(1, 2));
        run(2, 1, 1); /* a user whose requests all run does not wait */
        assert_true(may_take(1, 2));
        shares_check(&shares, 2, 4, 7);
}

static void up_to_half_of_the_slots_while_somebody_else_waits(void **state)
{
        static const uint32_t slots[] = { 2, 3, 4, 5, 12, 13 };

        (void)state;
        for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
                assert_int_equal(shares_init(&shares, 32, slots[i], 1000, 0), 0);
                share_come(&shares, 2, REQUEST_NORMAL);
                for (uint32_t has = 0; has < slots[i]; has++) {
                        share_come(&shares, 1, REQUEST_NORMAL);
                        assert_int_equal(may_take(1, 1), has < slots[i] / 2);
                        take(1, 1);
                }
                shares_deinit(&shares);
        }
}

static void up_to_half_of_the_blocks_while_somebody_else_waits(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 8, 9, 0), 0);
        share_come(&shares, 2, REQUEST_NORMAL);
        run(1, 1, 2);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_true(may_take(1, 2));
        assert_false(may_take(1, 3)); /* 5 of 9 */
        assert_false(may_take(1, UINT32_MAX));
        shares_deinit(&shares);

        assert_int_equal(shares_init(&shares, 8, 8, UINT32_MAX, 0), 0);
        share_come(&shares, 2, REQUEST_NORMAL);
        run(1, 1, UINT32_MAX / 2);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_true(may_take(1, 0));
        assert_false(may_take(1, 1));
        assert_false(may_take(1, UINT32_MAX)); /* a sum of 32 bits would be small */
}

static void a_part_of_a_block_above_half_is_above_half(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 8, 9, 0), 0);
        share_come(&shares, 2, REQUEST_NORMAL);
        run(1, 1, 2);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_true(share_may_take(&shares, 1, SHARE_PARTS * 9 / 2));
        assert_false(share_may_take(&shares, 1, SHARE_PARTS * 9 / 2 + 1));
}

static void never_more_blocks_than_one_user_may_have(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 8, 100, 5), 0);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_true(may_take(1, 5)); /* alone, and with nothing */
        assert_false(share_may_take(&shares, 1, 5 * SHARE_PARTS + 1));
        take(1, 3);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_true(may_take(1, 2));
        assert_false(may_take(1, 3));
        assert_true(share_is_within(&shares, 1, 6 * SHARE_PARTS)); /* that is another question */
        shares_deinit(&shares);

        assert_int_equal(shares_init(&shares, 8, 8, 100, 80), 0);
        run(1, 1, 30);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_true(may_take(1, 50));
        assert_false(may_take(1, 51));
        share_come(&shares, 2, REQUEST_NORMAL);
        assert_true(may_take(1, 20)); /* both limits apply to the user */
        assert_false(may_take(1, 21));
}

static void whoever_waits_no_longer_binds_nobody(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 4, 8, 0), 0);
        run(1, 2, 1);
        share_come(&shares, 1, REQUEST_NORMAL);
        share_come(&shares, 2, REQUEST_NORMAL);
        share_come(&shares, 2, REQUEST_NORMAL);
        assert_false(may_take(1, 1));
        share_give_up(&shares, 2);
        assert_false(may_take(1, 1)); /* the other one still waits */
        share_give_up(&shares, 2);
        assert_true(may_take(1, 1));
        shares_check(&shares, 1, 2, 2);

        share_come(&shares, 3, REQUEST_NORMAL);
        assert_false(may_take(1, 1));
        take(3, 1);
        assert_true(may_take(1, 1));
        shares_check(&shares, 1, 3, 3);
}

static void what_is_given_back_may_be_taken_again(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 4, 8, 0), 0);
        share_come(&shares, 2, REQUEST_NORMAL);
        run(1, 1, 1);
        run(1, 1, 3);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_false(may_take(1, 1));
        end(1, 1);
        assert_true(may_take(1, 1));
        assert_false(may_take(1, 2)); /* the user still has 3 */
        end(1, 3);
        assert_true(may_take(1, 8)); /* the user has nothing, so it begins again */
        shares_check(&shares, 2, 0, 0);
}

static void behind_one_who_was_passed_over_his_others_wait(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 8, 8, 0), 0);
        share_come(&shares, 2, REQUEST_NORMAL);
        run(1, 1, 1);
        share_come(&shares, 1, REQUEST_NORMAL);
        share_come(&shares, 1, REQUEST_NORMAL);
        assert_false(may_take(1, 4));
        assert_true(may_take(1, 1));
        share_pass_over(&shares, 1);
        assert_false(may_take(1, 1));
        assert_true(may_take(2, 4)); /* another is not concerned */
        share_look(&shares);
        assert_true(may_take(1, 1));
        shares_check(&shares, 3, 1, 1);
}

/* The table is as long as requests may be alive, and users come and go for ever. */
static void who_has_nobody_alive_is_forgotten(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 3, 4, 8, 0), 0);
        run(7, 2, 2); /* stays, and is moved about in the table */
        for (uint32_t uid = 100; uid < 200; uid++) {
                share_come(&shares, uid, REQUEST_NORMAL);
                take(uid, 1);
                shares_check(&shares, 0, 3, 5);
                end(uid, 1);
                assert_int_equal(shares.count, 1);
        }
        share_come(&shares, 5, REQUEST_NORMAL);
        share_give_up(&shares, 5);
        shares_check(&shares, 0, 2, 4);
        share_forget(&shares, 5, REQUEST_NORMAL); /* this user never had a slot */
        share_come(&shares, 8, REQUEST_NORMAL);
        end(7, 2);
        end(7, 2); /* the first of the table goes, the last takes its place */
        assert_int_equal(shares.count, 1);
        shares_check(&shares, 1, 0, 0);
        assert_true(may_take(8, 8));
}

static void who_comes_begins_with_the_least_that_others_were_served(void **state)
{
        (void)state;
        assert_int_equal(shares_init(&shares, 8, 8, 64, 0), 0);
        run(1, 1, 1);
        run(2, 1, 1);
        share_charge(&shares, 1, REQUEST_NORMAL, 100);
        share_charge(&shares, 2, REQUEST_NORMAL, 70);
        share_charge(&shares, 2, REQUEST_BACKGROUND, 5000); /* another account */
        run(3, 1, 1);
        assert_int_equal(share_served(&shares, 3, REQUEST_NORMAL), 70);
        assert_int_equal(share_served(&shares, 3, REQUEST_BACKGROUND), 0);

        /*
         * A user with other requests alive keeps its account, which may be raised but is never
         * lowered.
         */
        share_come(&shares, 1, REQUEST_BACKGROUND);
        assert_int_equal(share_served(&shares, 1, REQUEST_BACKGROUND), 0);
        share_charge(&shares, 1, REQUEST_BACKGROUND, 9);
        share_come(&shares, 3, REQUEST_BACKGROUND);
        assert_int_equal(share_served(&shares, 3, REQUEST_BACKGROUND), 9);
        share_charge(&shares, 3, REQUEST_NORMAL, 200);
        end(3, 1);
        run(3, 1, 1);
        assert_int_equal(share_served(&shares, 3, REQUEST_NORMAL), 270);

        /* A user that was away altogether begins anew, like any other. */
        end(1, 1);
        share_give_up(&shares, 1);
        share_forget(&shares, 1, REQUEST_BACKGROUND);
        run(1, 1, 1);
        assert_int_equal(share_served(&shares, 1, REQUEST_NORMAL), 70);
}

#define REQUESTS 12u
#define SLOTS    5u
#define BLOCKS   21u

static struct life {
        enum { FREE, WAITS, RUNS, GAVE_UP } is;
        uint32_t uid, blocks;
} lives[REQUESTS];

/* The rule of share.h, computed from a list of all requests instead of running sums. */
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
        shares_check(&shares, waiting, slots, blocks);
}

static void in_any_order_it_says_what_a_list_says(void **state)
{
        uint32_t asked[2] = { 0 };
        uint64_t random = 1;

        (void)state;
        memset(lives, 0, sizeof(lives));
        assert_int_equal(shares_init(&shares, REQUESTS, SLOTS, BLOCKS, 0), 0);
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
                        share_come(&shares, life->uid, REQUEST_NORMAL);
                } else if (life->is == WAITS && leaves) {
                        share_give_up(&shares, life->uid);
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
                        share_forget(&shares, life->uid, REQUEST_NORMAL);
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
                if (shares_init(&shares, 8, 4, 8, 0))
                        _exit(1);
                run(1, 1, 3);
                share_come(&shares, 2, REQUEST_NORMAL);
                shares_check(&shares, 1, 1, 3);
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
        share_give_up(&shares, 1);
}

static void give_back_too_much(void)
{
        give_back(1, 4);
}

static void give_back_what_he_has_not(void)
{
        give_back(2, 0);
}

static void forget_one_who_has_a_slot(void)
{
        share_forget(&shares, 1, REQUEST_NORMAL);
}

static void forget_one_who_waits(void)
{
        share_forget(&shares, 2, REQUEST_NORMAL);
}

static void forget_a_stranger(void)
{
        share_forget(&shares, 3, REQUEST_NORMAL);
}

static void check_waiting(void)
{
        shares_check(&shares, 2, 1, 3);
}

static void check_slots(void)
{
        shares_check(&shares, 1, 2, 3);
}

static void check_blocks(void)
{
        shares_check(&shares, 1, 1, 2);
}

static void check_users(void)
{
        shares.waiting_users++;
        shares_check(&shares, 1, 1, 3);
}

static void misuse_and_wrong_sums_die(void **state)
{
        (void)state;
        dies(take_without_waiting);
        dies(give_up_without_waiting);
        dies(give_back_too_much);
        dies(give_back_what_he_has_not);
        dies(forget_one_who_has_a_slot);
        dies(forget_one_who_waits);
        dies(forget_a_stranger);
        dies(check_waiting);
        dies(check_slots);
        dies(check_blocks);
        dies(check_users);
}

#define story(name) cmocka_unit_test_teardown(name, clear)

int main(void)
{
        const struct CMUnitTest tests[] = {
                story(who_has_nothing_may_begin_however_large),
                story(alone_he_may_have_everything),
                story(up_to_half_of_the_slots_while_somebody_else_waits),
                story(up_to_half_of_the_blocks_while_somebody_else_waits),
                story(a_part_of_a_block_above_half_is_above_half),
                story(never_more_blocks_than_one_user_may_have),
                story(whoever_waits_no_longer_binds_nobody),
                story(what_is_given_back_may_be_taken_again),
                story(behind_one_who_was_passed_over_his_others_wait),
                story(who_has_nobody_alive_is_forgotten),
                story(who_comes_begins_with_the_least_that_others_were_served),
                story(in_any_order_it_says_what_a_list_says),
                story(misuse_and_wrong_sums_die),
        };

        return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
