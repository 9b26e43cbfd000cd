/* Containers: a uid of a range in /etc/subuid is charged to the user that owns the range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/subuid.h"

#define OWNER 1000u
#define ALICE 1001u
#define BOB   1002u

static char path[64];

static void write_ranges(const char *text)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
        log_open(LOG_ERROR);
        snprintf(path, sizeof(path), "/tmp/smv-subuid-%d", (int)getpid());
        return subuid_new(path, OWNER, (struct subuid **)state);
}

static int tear_down(void **state)
{
        *state = subuid_free(*state);
        unlink(path);
        return 0;
}

static void a_missing_file_has_no_ranges(void **state)
{
        struct subuid *subuid = *state;

        assert_int_equal(subuid_load(subuid), 0);
        assert_int_equal(subuid_account(subuid, 100000), 100000);
        assert_int_equal(subuid_account(subuid, 0), 0);
}

static void a_range_belongs_to_the_user_of_its_line(void **state)
{
        struct subuid *subuid = *state;

        write_ranges("# containers\n1001:100000:65536\n\n1002:165536:1\nroot:200000:10\n"
                     "1000:300000:10");
        assert_int_equal(subuid_load(subuid), 0);
        assert_int_equal(subuid_account(subuid, 99999), 99999);
        assert_int_equal(subuid_account(subuid, 100000), ALICE);
        assert_int_equal(subuid_account(subuid, 165535), ALICE);
        assert_int_equal(subuid_account(subuid, 165536), BOB);
        assert_int_equal(subuid_account(subuid, 165537), 165537);
        assert_int_equal(subuid_account(subuid, ALICE), ALICE);
        /* Containers of root and of the daemon's user have no privileges. */
        assert_int_equal(subuid_account(subuid, 200000), 200000);
        assert_int_equal(subuid_account(subuid, 200009), 200000);
        assert_int_equal(subuid_account(subuid, 300009), 300000);
}

/* Root may give itself a range of uids that are privileged without it. */
static void a_range_of_root_is_charged_to_its_first_ordinary_user(void **state)
{
        struct subuid *subuid = *state;

        write_ranges("root:0:5\n1000:1000:3\n0:999:1\n");
        assert_int_equal(subuid_load(subuid), 0);
        assert_int_equal(subuid_account(subuid, 1), 1);
        assert_int_equal(subuid_account(subuid, 4), 1);
        assert_int_equal(subuid_account(subuid, OWNER + 1), OWNER + 1);
        assert_int_equal(subuid_account(subuid, OWNER + 2), OWNER + 1);
        assert_int_equal(subuid_account(subuid, 999), 999);
        /* The kernel does not tell a container's root from root, so neither has privileges. */
        assert_int_equal(subuid_account(subuid, 0), 1);
        assert_int_equal(subuid_account(subuid, OWNER), OWNER + 1);
}

static void skips_lines_that_are_no_ranges(void **state)
{
        static const char *const bad[] = {
                "1001",
                "1001:5",
                "1001:5:",
                ":5:5",
                "1001:5:0",
                "1001:5:5:5",
                "1001:-5:5",
                "1001:5x:5",
                "1001: 5:5",
                "1001:5:99999999999",
                "1001:4294967295:1",
                "no such user:5:5",
        };
        struct subuid *subuid = *state;

        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                char text[128];

                snprintf(text, sizeof(text), "%s\n1002:100:2\n", bad[i]);
                write_ranges(text);
                assert_int_equal(subuid_load(subuid), 0);
                assert_int_equal(subuid_account(subuid, 5), 5);
                assert_int_equal(subuid_account(subuid, 101), BOB);
        }
}

static void an_unreadable_file_leaves_the_ranges_as_they_were(void **state)
{
        struct subuid *subuid = *state;

        write_ranges("1001:100000:65536\n");
        assert_int_equal(subuid_load(subuid), 0);
        unlink(path);
        assert_int_equal(symlink(path, path), 0);
        assert_true(subuid_load(subuid) < 0);
        assert_int_equal(subuid_account(subuid, 100000), ALICE);
        unlink(path);
        assert_int_equal(subuid_load(subuid), 0);
        assert_int_equal(subuid_account(subuid, 100000), 100000);
}

/* ---- accounts ---- */

static struct quota *new_quota(const struct subuid *subuid)
{
        const struct quota_conf conf = { .max = { [QUOTA_REQUESTS] = 10 },
                                         .connects_burst = 4,
                                         .connects_per_s = 1,
                                         .owner = OWNER,
                                         .subuid = subuid };
        struct quota *quota;

        assert_int_equal(quota_new(&conf, &quota), 0);
        return quota;
}

static uint64_t held(const struct quota *quota, uint32_t uid)
{
        const struct quota_user *user;
        uint32_t index = 0;

        while ((user = quota_next(quota, &index)))
                if (user->uid == uid)
                        return user->held[QUOTA_REQUESTS];
        return 0;
}

static void a_container_shares_the_limits_of_its_user(void **state)
{
        struct subuid *subuid = *state;
        struct wire_problem problem;
        struct quota *quota;

        write_ranges("1001:100000:65536\n");
        assert_int_equal(subuid_load(subuid), 0);
        quota = new_quota(subuid);
        assert_int_equal(quota_charge(quota, 100000, QUOTA_REQUESTS, 4), 0);
        assert_int_equal(quota_charge(quota, 100001, QUOTA_REQUESTS, 4), 0);
        assert_int_equal(quota_charge(quota, ALICE, QUOTA_REQUESTS, 2), 0);
        assert_int_equal(quota_charge(quota, ALICE, QUOTA_REQUESTS, 1), QUOTA_E_OVER);
        assert_int_equal(quota_charge(quota, 100002, QUOTA_REQUESTS, 1), QUOTA_E_OVER);
        assert_int_equal(quota_charge(quota, BOB, QUOTA_REQUESTS, 10), 0);
        /* What each holds is known of each. */
        assert_int_equal(held(quota, 100000), 4);
        assert_int_equal(held(quota, ALICE), 2);
        quota_uncharge(quota, 100001, QUOTA_REQUESTS, 4);
        assert_int_equal(quota_charge(quota, ALICE, QUOTA_REQUESTS, 4), 0);

        /* So is the rate of connections. */
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(quota_connect(quota, 100010 + i, 5, &problem), 0);
        assert_int_equal(quota_connect(quota, ALICE, 5, &problem), WIRE_E_REFUSED);

        quota_uncharge(quota, 100000, QUOTA_REQUESTS, 4);
        quota_uncharge(quota, ALICE, QUOTA_REQUESTS, 6);
        quota_uncharge(quota, BOB, QUOTA_REQUESTS, 10);
        quota_free(quota);
}

static void charges_move_when_the_ranges_change(void **state)
{
        struct subuid *subuid = *state;
        struct quota *quota;

        assert_int_equal(subuid_load(subuid), 0);
        quota = new_quota(subuid);
        assert_int_equal(quota_charge(quota, 100000, QUOTA_REQUESTS, 9), 0);
        assert_int_equal(quota_charge(quota, 100001, QUOTA_REQUESTS, 9), 0);
        for (uint32_t i = 0; i < 100; i++)
                assert_int_equal(quota_charge(quota, 100100 + i, QUOTA_REQUESTS, 1), 0);
        write_ranges("1001:100000:65536\n");
        assert_int_equal(subuid_load(subuid), 0);
        assert_int_equal(quota_remap(quota), 0);
        /* More than the limit: nothing is taken away, and nothing more is given. */
        assert_int_equal(quota_charge(quota, 100002, QUOTA_REQUESTS, 1), QUOTA_E_OVER);
        assert_int_equal(quota_charge(quota, ALICE, QUOTA_REQUESTS, 1), QUOTA_E_OVER);
        write_ranges("1001:100001:1\n1002:100000:1\n");
        assert_int_equal(subuid_load(subuid), 0);
        assert_int_equal(quota_remap(quota), 0);
        assert_int_equal(quota_charge(quota, ALICE, QUOTA_REQUESTS, 1), 0);
        assert_int_equal(quota_charge(quota, ALICE, QUOTA_REQUESTS, 1), QUOTA_E_OVER);
        assert_int_equal(quota_charge(quota, BOB, QUOTA_REQUESTS, 2), QUOTA_E_OVER);
        assert_int_equal(quota_charge(quota, 100100, QUOTA_REQUESTS, 9), 0);
        quota_uncharge(quota, 100100, QUOTA_REQUESTS, 9);
        quota_uncharge(quota, ALICE, QUOTA_REQUESTS, 1);
        quota_uncharge(quota, 100000, QUOTA_REQUESTS, 9);
        quota_uncharge(quota, 100001, QUOTA_REQUESTS, 9);
        for (uint32_t i = 0; i < 100; i++)
                quota_uncharge(quota, 100100 + i, QUOTA_REQUESTS, 1);
        quota_free(quota); /* asserts that nothing is held */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(a_missing_file_has_no_ranges),
                TEST(a_range_belongs_to_the_user_of_its_line),
                TEST(a_range_of_root_is_charged_to_its_first_ordinary_user),
                TEST(skips_lines_that_are_no_ranges),
                TEST(an_unreadable_file_leaves_the_ranges_as_they_were),
                TEST(a_container_shares_the_limits_of_its_user),
                TEST(charges_move_when_the_ranges_change),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
