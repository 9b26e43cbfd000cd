/* Accounts: every charge is given back exactly once, and no user connects faster than allowed. */
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

static const struct quota_conf conf = {
        .max = { [QUOTA_CONNECTIONS] = 3,
                 [QUOTA_REQUESTS] = 5,
                 [QUOTA_PROMPT_BYTES] = 1000,
                 [QUOTA_RING_BYTES] = UINT64_MAX },
        .connects_burst = 4,
        .connects_per_s = 2,
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

static void limits_connections_to_a_burst_and_a_rate(void **state)
{
        struct quota *quota = *state;
        uint64_t now = 5 * (uint64_t)SECOND;
        uint32_t taken = 0;

        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(quota_connect(quota, 7, now), 0);
        assert_int_equal(quota_connect(quota, 7, now), QUOTA_E_OVER);
        assert_int_equal(quota_connect(quota, 8, now), 0);

        now += SECOND / 2 + 1;
        assert_int_equal(quota_connect(quota, 7, now), 0);
        assert_int_equal(quota_connect(quota, 7, now), QUOTA_E_OVER);

        /* Trying all the time neither helps nor hurts. */
        for (uint32_t i = 0; i < 1000; i++, now += SECOND / 100)
                taken += quota_connect(quota, 7, now) == 0;
        assert_in_range(taken, 19, 21);

        /* However long one stays away, it is one burst. */
        now += 1000 * (uint64_t)SECOND;
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(quota_connect(quota, 7, now), 0);
        assert_int_equal(quota_connect(quota, 7, now), QUOTA_E_OVER);
}

static void an_empty_account_keeps_its_connection_rate(void **state)
{
        struct quota *quota = *state;

        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(quota_connect(quota, 7, SECOND), 0);
        /* Many others come, so that the table is swept; the one is not forgotten. */
        for (uint32_t uid = 100; uid < 200; uid++)
                assert_int_equal(quota_connect(quota, uid, SECOND), 0);
        assert_int_equal(quota_connect(quota, 7, SECOND), QUOTA_E_OVER);
}

static void random_charges_match_a_plain_table(void **state)
{
        struct quota *quota = *state;
        uint64_t model[6][QUOTA_KIND_N] = { 0 };
        uint64_t draw = 12345, total = 0, seen = 0;
        const struct quota_account *account;
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
                TEST(an_empty_account_keeps_its_connection_rate),
                TEST(random_charges_match_a_plain_table),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
