/*
 * Accounts: every charge is given back exactly once, no user connects faster than allowed, and a
 * limit of the whole daemon is shared.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/edge/quota.h"

#define SECOND 1000000000u
#define OWNER  1000u
#define TOTAL  256u

static const struct quota_conf conf = {
        .max = { [QUOTA_CONNECTIONS] = 3,
                 [QUOTA_REQUESTS] = 5,
                 [QUOTA_PROMPT_BYTES] = 1000,
                 [QUOTA_RING_BYTES] = UINT64_MAX },
        .connects_burst = 4,
        .connects_per_s = 2,
        .owner = OWNER,
};

static int set_up(void **state)
{
        return quota_new(&conf, (struct quota **)state);
}

static int tear_down(void **state)
{
        *state = quota_free(*state);
        return 0;
}

static void a_charge_over_the_limit_changes_nothing(void **state)
{
        struct quota *quota = *state;
        uint32_t index = 0;

        assert_int_equal(quota_charge(quota, 7, QUOTA_PROMPT_BYTES, 999), 0);
        assert_int_equal(quota_charge(quota, 7, QUOTA_PROMPT_BYTES, 2), QUOTA_E_OVER);
        assert_int_equal(quota_charge(quota, 7, QUOTA_PROMPT_BYTES, UINT64_MAX), QUOTA_E_OVER);
        assert_int_equal(quota_next(quota, &index)->held[QUOTA_PROMPT_BYTES], 999);
        assert_int_equal(quota_charge(quota, 7, QUOTA_PROMPT_BYTES, 1), 0);
        quota_uncharge(quota, 7, QUOTA_PROMPT_BYTES, 1000);
        index = 0;
        assert_null(quota_next(quota, &index));
}

static void the_largest_limit_does_not_overflow(void **state)
{
        struct quota *quota = *state;

        assert_int_equal(quota_charge(quota, 7, QUOTA_RING_BYTES, UINT64_MAX - 1), 0);
        assert_int_equal(quota_charge(quota, 7, QUOTA_RING_BYTES, 2), QUOTA_E_OVER);
        assert_int_equal(quota_charge(quota, 7, QUOTA_RING_BYTES, 1), 0);
        quota_uncharge(quota, 7, QUOTA_RING_BYTES, UINT64_MAX);
}

static void charges_of_users_are_independent(void **state)
{
        struct quota *quota = *state;

        for (uint32_t uid = 0; uid < 100; uid++)
                for (uint32_t i = 0; i < 3; i++)
                        assert_int_equal(quota_charge(quota, uid, QUOTA_CONNECTIONS, 1), 0);
        for (uint32_t uid = 0; uid < 100; uid++) {
                assert_int_equal(quota_charge(quota, uid, QUOTA_CONNECTIONS, 1), QUOTA_E_OVER);
                quota_uncharge(quota, uid, QUOTA_CONNECTIONS, 3);
                assert_int_equal(quota_charge(quota, uid, QUOTA_CONNECTIONS, 1), 0);
                quota_uncharge(quota, uid, QUOTA_CONNECTIONS, 1);
        }
}

static void asserts_if_more_is_uncharged_than_charged(void **state)
{
        struct quota *quota = *state;
        int status;
        pid_t pid;

        assert_int_equal(quota_charge(quota, 7, QUOTA_REQUESTS, 1), 0);
        quota_uncharge(quota, 7, QUOTA_REQUESTS, 1);
        pid = fork();
        if (!pid) {
                signal(SIGABRT, SIG_DFL);
                stderr = fopen("/dev/null", "w");
                quota_uncharge(quota, 7, QUOTA_REQUESTS, 1);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static int connect_at(struct quota *quota, uint32_t uid, uint64_t now, uint32_t *ret_retry_ms)
{
        struct wire_problem problem = { .retry_ms = 0 };
        int r = quota_connect(quota, uid, now, &problem);

        if (r) {
                assert_int_equal(r, WIRE_E_REFUSED);
                assert_int_equal(problem.code, SMV_QUOTA);
                assert_string_equal(problem.message, "you connect more often than 2 times a "
                                                     "second, the limit (uid_connects_per_s)");
        }
        *ret_retry_ms = problem.retry_ms;
        return r;
}

static void limits_connections_to_a_burst_and_a_rate(void **state)
{
        struct quota *quota = *state;
        uint64_t now = 5 * (uint64_t)SECOND;
        uint32_t taken = 0, retry_ms;

        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(connect_at(quota, 7, now, &retry_ms), 0);
        assert_int_equal(connect_at(quota, 7, now, &retry_ms), WIRE_E_REFUSED);
        assert_int_equal(connect_at(quota, 8, now, &retry_ms), 0);

        now += SECOND / 2 + 1;
        assert_int_equal(connect_at(quota, 7, now, &retry_ms), 0);
        assert_int_equal(connect_at(quota, 7, now, &retry_ms), WIRE_E_REFUSED);

        /* Trying all the time neither helps nor hurts. */
        for (uint32_t i = 0; i < 1000; i++, now += SECOND / 100)
                taken += connect_at(quota, 7, now, &retry_ms) == 0;
        assert_in_range(taken, 19, 21);

        /* However long one stays away, it is one burst. */
        now += 1000 * (uint64_t)SECOND;
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(connect_at(quota, 7, now, &retry_ms), 0);
        assert_int_equal(connect_at(quota, 7, now, &retry_ms), WIRE_E_REFUSED);
}

static void says_when_the_next_connection_is_allowed(void **state)
{
        struct quota *quota = *state;
        uint64_t now = 5 * (uint64_t)SECOND;
        uint32_t retry_ms;

        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(connect_at(quota, 7, now, &retry_ms), 0);
        for (uint32_t i = 0; i < 100; i++, now += SECOND / 7) {
                if (!connect_at(quota, 7, now, &retry_ms))
                        continue;
                assert_in_range(retry_ms, 1, 501);
                now += retry_ms * UINT64_C(1000000);
                assert_int_equal(connect_at(quota, 7, now, &retry_ms), 0);
        }
}

static void root_and_the_owner_connect_as_often_as_they_like(void **state)
{
        struct quota *quota = *state;
        uint32_t retry_ms;

        for (uint32_t i = 0; i < 10000; i++) {
                assert_int_equal(connect_at(quota, 0, SECOND, &retry_ms), 0);
                assert_int_equal(connect_at(quota, OWNER, SECOND, &retry_ms), 0);
        }
}

static void an_empty_account_keeps_its_connection_rate(void **state)
{
        struct quota *quota = *state;
        uint32_t retry_ms;

        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(connect_at(quota, 7, SECOND, &retry_ms), 0);
        /* Many others come, so that the table is swept; the one is not forgotten. */
        for (uint32_t uid = 100; uid < 200; uid++)
                assert_int_equal(connect_at(quota, uid, SECOND, &retry_ms), 0);
        assert_int_equal(connect_at(quota, 7, SECOND, &retry_ms), WIRE_E_REFUSED);
}

/* ---- a limit of the whole daemon ---- */

static struct quota *new_shared(uint64_t total, uint64_t max)
{
        const struct quota_conf shared = { .max = { [QUOTA_CONNECTIONS] = max },
                                           .total = { [QUOTA_CONNECTIONS] = total },
                                           .owner = OWNER };
        struct quota *quota;

        assert_int_equal(quota_new(&shared, &quota), 0);
        return quota;
}

/* Takes connections until one is refused; returns how many that were. */
static uint64_t take_all(struct quota *quota, uint32_t uid)
{
        uint64_t taken = 0;

        while (!quota_charge(quota, uid, QUOTA_CONNECTIONS, 1))
                taken++;
        return taken;
}

static void give_all_back(struct quota *quota)
{
        const struct quota_user *user;
        uint32_t index = 0;

        while ((user = quota_next(quota, &index)))
                quota_uncharge(quota, user->uid, QUOTA_CONNECTIONS, user->held[QUOTA_CONNECTIONS]);
        assert_int_equal(quota_used(quota, QUOTA_CONNECTIONS), 0);
        quota_free(quota);
}

static void a_user_alone_may_use_its_whole_limit(void **state)
{
        struct quota *quota = new_shared(TOTAL, 64);

        (void)state;
        assert_int_equal(take_all(quota, 7), 64);
        assert_int_equal(quota_charge(quota, 7, QUOTA_CONNECTIONS, 1), QUOTA_E_OVER);
        give_all_back(quota);
}

/* 224 are shared.  Any k users that take all they can leave a part of k + 1. */
static void each_further_user_gets_in_while_others_hold_all_they_can(void **state)
{
        struct quota *quota = new_shared(TOTAL, TOTAL);
        uint64_t used = 0;

        (void)state;
        for (uint32_t k = 1; k <= 29; k++) {
                uint64_t taken = take_all(quota, 100 + k);

                assert_true(taken >= 1);
                assert_true(taken >= 224 / (k * (k + 1)));
                assert_int_equal(quota_charge(quota, 100 + k, QUOTA_CONNECTIONS, 1), QUOTA_E_TOTAL);
                used += taken;
                assert_true(used <= 224);
        }
        give_all_back(quota);
}

static void root_and_the_owner_always_have_the_reserve(void **state)
{
        (void)state;
        for (uint64_t total = 1; total < 70; total++) {
                struct quota *quota = new_shared(total, total);
                uint64_t others = 0, left;

                for (uint32_t uid = 2000; uid < 2500; uid++)
                        others += take_all(quota, uid);
                left = total - others;
                assert_int_equal(left, total < 2 ? 0 : total < 16 ? 1 : total / 8);
                if (left > 1)
                        assert_int_equal(quota_charge(quota, 0, QUOTA_CONNECTIONS, 1), 0);
                assert_int_equal(take_all(quota, OWNER), left - (left > 1));
                assert_int_equal(take_all(quota, 0), 0);
                give_all_back(quota);
        }
}

static void the_owner_may_take_what_is_free_and_others_get_the_rest(void **state)
{
        struct quota *quota = new_shared(TOTAL, TOTAL);

        (void)state;
        assert_int_equal(quota_charge(quota, OWNER, QUOTA_CONNECTIONS, TOTAL - 10), 0);
        assert_int_equal(take_all(quota, 7), 5);
        assert_int_equal(take_all(quota, 8), 1);
        assert_int_equal(take_all(quota, 0), 4);
        assert_int_equal(quota_charge(quota, 9, QUOTA_CONNECTIONS, 1), QUOTA_E_TOTAL);
        give_all_back(quota);
}

/* Users come, take and give back at random; the promises of quota.h hold after each step. */
static void promises_hold_after_random_charges(void **state)
{
        enum { USERS = 28, SHARED = 224 };
        struct quota *quota = new_shared(TOTAL, TOTAL);
        uint64_t draw = 99, held[USERS] = { 0 }, used = 0;

        (void)state;
        for (uint32_t i = 0; i < 200000; i++) {
                uint32_t user;

                draw = draw * 6364136223846793005u + 1442695040888963407u;
                user = (uint32_t)(draw >> 33) % USERS;
                if (draw >> 61) {
                        int r = quota_charge(quota, 100 + user, QUOTA_CONNECTIONS, 1);

                        /* A user that holds nothing always gets in. */
                        assert_true(!r || held[user]);
                        held[user] += !r;
                        used += !r;
                } else {
                        uint64_t back = (draw >> 45) % (held[user] + 1);

                        quota_uncharge(quota, 100 + user, QUOTA_CONNECTIONS, back);
                        held[user] -= back;
                        used -= back;
                }
                assert_int_equal(used, quota_used(quota, QUOTA_CONNECTIONS));
                assert_true(used <= SHARED);
                for (uint32_t k = 0; k < USERS; k++)
                        assert_true(held[k] <= SHARED / 2);
        }
        give_all_back(quota);
}

static const char *refusal(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount,
                           enum smv_code code)
{
        static struct wire_problem problem;

        assert_int_equal(quota_ask(quota, uid, kind, amount, 5, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, code);
        assert_int_equal(problem.id, 5);
        return problem.message;
}

static void a_refusal_names_the_value_the_limit_and_the_setting(void **state)
{
        struct quota *quota = *state, *shared = new_shared(TOTAL, TOTAL);

        assert_int_equal(quota_charge(quota, 7, QUOTA_REQUESTS, 1), 0);
        assert_string_equal(
                refusal(quota, 7, QUOTA_REQUESTS, 5, SMV_QUOTA),
                "you have 1 request; 5 more would exceed the limit of 5 (uid_requests)");
        quota_uncharge(quota, 7, QUOTA_REQUESTS, 1);
        assert_int_equal(quota_charge(quota, 7, QUOTA_CONNECTIONS, 3), 0);
        assert_string_equal(refusal(quota, 7, QUOTA_CONNECTIONS, 1, SMV_QUOTA),
                            "you have 3 connections, the limit (uid_connections)");
        assert_int_equal(quota_charge(quota, 7, QUOTA_PROMPT_BYTES, 400), 0);
        assert_string_equal(refusal(quota, 7, QUOTA_PROMPT_BYTES, 601, SMV_QUOTA),
                            "you have 400 bytes of prompts and handles; 601 more would exceed the "
                            "limit of 1000 (uid_prompt_bytes)");
        quota_uncharge(quota, 7, QUOTA_CONNECTIONS, 3);
        quota_uncharge(quota, 7, QUOTA_PROMPT_BYTES, 400);

        assert_int_equal(take_all(shared, 7), 112);
        assert_int_equal(take_all(shared, 8), 37);
        assert_string_equal(refusal(shared, 8, QUOTA_CONNECTIONS, 1, SMV_BUSY),
                            "you have 37 connections, your share: the daemon has 149 of 256 "
                            "(connections), and 2 users share the rest");
        for (uint32_t uid = 100; uid < 200; uid++)
                take_all(shared, uid);
        assert_string_equal(refusal(shared, 200, QUOTA_CONNECTIONS, 1, SMV_BUSY),
                            "the daemon has 224 connections; the limit is 256 (connections), a "
                            "part of it for root and the daemon's user");
        assert_int_equal(take_all(shared, 0), 32);
        assert_string_equal(refusal(shared, OWNER, QUOTA_CONNECTIONS, 1, SMV_BUSY),
                            "the daemon has 256 connections; the limit is 256 (connections)");
        give_all_back(shared);
}

static void random_charges_match_a_plain_table(void **state)
{
        struct quota *quota = *state;
        uint64_t model[6][QUOTA_KIND_N] = { 0 };
        uint64_t draw = 12345, total = 0, seen = 0;
        const struct quota_user *account;
        uint32_t index = 0;

        for (uint32_t i = 0; i < 100000; i++) {
                uint32_t uid, kind;
                uint64_t amount;

                draw = draw * 6364136223846793005u + 1442695040888963407u;
                uid = (draw >> 33) % 6;
                kind = (draw >> 40) % 3;
                amount = (draw >> 45) % (conf.max[kind] / 2 + 1);
                if (draw >> 63) {
                        int r = quota_charge(quota, uid, kind, amount);
                        bool fits = model[uid][kind] + amount <= conf.max[kind];

                        assert_int_equal(r, fits ? 0 : QUOTA_E_OVER);
                        model[uid][kind] += fits ? amount : 0;
                } else if (model[uid][kind] >= amount) {
                        quota_uncharge(quota, uid, kind, amount);
                        model[uid][kind] -= amount;
                }
        }
        while ((account = quota_next(quota, &index)))
                for (uint32_t kind = 0; kind < QUOTA_KIND_N; kind++) {
                        assert_int_equal(account->held[kind], model[account->uid][kind]);
                        seen += account->held[kind];
                }
        for (uint32_t uid = 0; uid < 6; uid++)
                for (uint32_t kind = 0; kind < QUOTA_KIND_N; kind++) {
                        total += model[uid][kind];
                        quota_uncharge(quota, uid, kind, model[uid][kind]);
                }
        assert_int_equal(seen, total);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(a_charge_over_the_limit_changes_nothing),
                TEST(the_largest_limit_does_not_overflow),
                TEST(charges_of_users_are_independent),
                TEST(asserts_if_more_is_uncharged_than_charged),
                TEST(limits_connections_to_a_burst_and_a_rate),
                TEST(says_when_the_next_connection_is_allowed),
                TEST(root_and_the_owner_connect_as_often_as_they_like),
                TEST(an_empty_account_keeps_its_connection_rate),
                TEST(a_user_alone_may_use_its_whole_limit),
                TEST(each_further_user_gets_in_while_others_hold_all_they_can),
                TEST(root_and_the_owner_always_have_the_reserve),
                TEST(the_owner_may_take_what_is_free_and_others_get_the_rest),
                TEST(promises_hold_after_random_charges),
                TEST(a_refusal_names_the_value_the_limit_and_the_setting),
                TEST(random_charges_match_a_plain_table),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
