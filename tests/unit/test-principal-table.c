/* The table of principals: numbers are never given out again; none in use is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/edge/principals.h"

#define GATEWAY 990u

struct world {
        struct quota *quota;
        struct principals *principals;
        struct wire_problem problem;
};

static void begin(struct world *world, const char *gateway)
{
        const struct quota_conf conf = { .connects_burst = 1, .connects_per_s = 1 };

        *world = (struct world){ 0 };
        log_open(LOG_ERROR);
        assert_int_equal(quota_new(&conf, &world->quota), 0);
        assert_int_equal(principals_new(gateway, world->quota, &world->principals), 0);
}

static void end(struct world *world)
{
        principals_free(world->principals);
        quota_free(world->quota);
}

static int try_to_enter(struct world *world, uint32_t uid, const char *name,
                        struct principal **ret_principal)
{
        const struct wire_text text = { name, (uint32_t)strlen(name) };

        return principals_enter(world->principals, uid, &text, 7, &world->problem, ret_principal);
}

static struct principal *enter(struct world *world, const char *name)
{
        struct principal *principal = NULL;

        assert_int_equal(try_to_enter(world, GATEWAY, name, &principal), 0);
        assert_string_equal(principal->name, name);
        return principal;
}

/* It comes and leaves at once; returns its number. */
static uint64_t visit(struct world *world, const char *name)
{
        struct principal *principal = enter(world, name);

        principal_leave(principal);
        return principal->uid;
}

/* As many as there may be, from number `first` on. */
static void visit_all(struct world *world, uint32_t first)
{
        char name[16];

        for (uint32_t i = 0; i < PRINCIPALS_MAX; i++) {
                snprintf(name, sizeof(name), "user-%u", first + i);
                visit(world, name);
        }
}

static void a_principal_has_one_number_above_all_uids(void **state)
{
        struct world world;
        uint64_t alice, bob;

        (void)state;
        begin(&world, "990");
        alice = visit(&world, "alice");
        bob = visit(&world, "bob");
        assert_true(alice != bob);
        assert_int_equal(visit(&world, "alice"), alice);
        assert_true(alice >> 32 && bob >> 32);
        assert_false(quota_is_privileged(world.quota, alice));
        end(&world);
}

static void only_the_gateway_may_name_a_principal(void **state)
{
        struct principal *principal;
        struct world world;

        (void)state;
        begin(&world, "990");
        assert_int_equal(try_to_enter(&world, 0, "alice", &principal), WIRE_E_REFUSED);
        assert_int_equal(world.problem.code, SMV_DENIED);
        assert_string_equal(world.problem.field, "principal");
        assert_string_equal(world.problem.message,
                            "your uid is 0; only the user that the daemon's setting gateway names "
                            "(now 990) may say for which principal it connects");
        end(&world);

        begin(&world, NULL);
        assert_int_equal(try_to_enter(&world, UINT32_MAX, "alice", &principal), WIRE_E_REFUSED);
        assert_non_null(strstr(world.problem.message, "(now none)"));
        end(&world);
}

static void a_gateway_may_be_a_name_and_an_unknown_one_is_no_gateway(void **state)
{
        struct principal *principal = NULL;
        struct world world;

        (void)state;
        begin(&world, "root");
        assert_int_equal(try_to_enter(&world, 0, "alice", &principal), 0);
        assert_false(quota_is_privileged(world.quota, principal->uid));
        principal_leave(principal);
        end(&world);

        begin(&world, "no such user");
        assert_int_equal(try_to_enter(&world, UINT32_MAX, "alice", &principal), WIRE_E_REFUSED);
        assert_non_null(strstr(world.problem.message, "(now a user that is not known)"));
        end(&world);

        begin(&world, "4294967295"); /* no uid: the kernel uses it for "no user" */
        assert_int_equal(try_to_enter(&world, UINT32_MAX, "alice", &principal), WIRE_E_REFUSED);
        end(&world);
}

static void shows_the_name_and_the_uid_of_the_gateway(void **state)
{
        struct user_shown shown;
        struct world world;
        uint64_t alice;

        (void)state;
        begin(&world, "990");
        alice = visit(&world, "alice");
        assert_true(principals_show(world.principals, alice, &shown));
        assert_int_equal(shown.uid, GATEWAY);
        assert_string_equal(shown.principal, "alice");
        assert_true(principals_show(world.principals, 1000, &shown));
        assert_int_equal(shown.uid, 1000);
        assert_string_equal(shown.principal, "");
        assert_false(principals_show(world.principals, alice + 1, &shown));
        assert_false(principals_show(world.principals, alice + PRINCIPALS_MAX, &shown));
        assert_false(principals_show(world.principals, UINT64_MAX, &shown));
        end(&world);
}

static void forgets_the_one_that_was_here_longest_ago(void **state)
{
        struct user_shown shown;
        struct world world;
        uint64_t alice, bob;

        (void)state;
        begin(&world, "990");
        alice = visit(&world, "alice");
        bob = visit(&world, "bob");
        for (uint32_t i = 0; i < PRINCIPALS_MAX - 2; i++) {
                char name[16];

                snprintf(name, sizeof(name), "user-%u", i);
                visit(&world, name);
        }
        assert_int_equal(visit(&world, "alice"), alice); /* bob is the oldest now */
        visit(&world, "carol");
        assert_true(principals_show(world.principals, alice, &shown));
        assert_false(principals_show(world.principals, bob, &shown));
        assert_true(visit(&world, "bob") > bob); /* a new one, who finds nothing of the old */
        end(&world);
}

static void never_gives_a_number_out_again(void **state)
{
        struct world world;
        uint64_t first;

        (void)state;
        begin(&world, "990");
        first = visit(&world, "alice");
        for (uint32_t round = 0; round < 3; round++) {
                visit_all(&world, round * PRINCIPALS_MAX);
                assert_true(visit(&world, "alice") != first);
        }
        end(&world);
}

static void keeps_those_that_are_connected_or_hold_something(void **state)
{
        struct principal *connected, *holds;
        struct user_shown shown;
        struct world world;
        struct quota_conf conf = { .max = { [QUOTA_HANDLES] = 1 } };

        (void)state;
        begin(&world, "990");
        quota_reload(world.quota, &conf);
        connected = enter(&world, "connected");
        holds = enter(&world, "holds");
        assert_int_equal(quota_charge(world.quota, holds->uid, QUOTA_HANDLES, 1), 0);
        principal_leave(holds);
        visit_all(&world, 0);
        visit_all(&world, PRINCIPALS_MAX);
        assert_true(principals_show(world.principals, connected->uid, &shown));
        assert_true(principals_show(world.principals, holds->uid, &shown));
        quota_uncharge(world.quota, holds->uid, QUOTA_HANDLES, 1);
        visit_all(&world, 0);
        assert_true(principals_show(world.principals, connected->uid, &shown));
        principal_leave(connected);
        end(&world);
}

static void refuses_one_more_if_all_are_in_use(void **state)
{
        static struct principal *all[PRINCIPALS_MAX];
        struct principal *principal;
        struct world world;
        char name[16];

        (void)state;
        begin(&world, "990");
        for (uint32_t i = 0; i < PRINCIPALS_MAX; i++) {
                snprintf(name, sizeof(name), "user-%u", i);
                all[i] = enter(&world, name);
        }
        assert_int_equal(try_to_enter(&world, GATEWAY, "alice", &principal), WIRE_E_REFUSED);
        assert_int_equal(world.problem.code, SMV_BUSY);
        assert_non_null(strstr(world.problem.message, "4096 principals are in use"));
        assert_ptr_equal(enter(&world, "user-5"), all[5]);
        principal_leave(all[5]);
        principal_leave(all[5]);
        principal_leave(enter(&world, "alice"));
        for (uint32_t i = 0; i < PRINCIPALS_MAX; i++)
                if (i != 5)
                        principal_leave(all[i]);
        end(&world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_principal_has_one_number_above_all_uids),
                cmocka_unit_test(only_the_gateway_may_name_a_principal),
                cmocka_unit_test(a_gateway_may_be_a_name_and_an_unknown_one_is_no_gateway),
                cmocka_unit_test(shows_the_name_and_the_uid_of_the_gateway),
                cmocka_unit_test(forgets_the_one_that_was_here_longest_ago),
                cmocka_unit_test(never_gives_a_number_out_again),
                cmocka_unit_test(keeps_those_that_are_connected_or_hold_something),
                cmocka_unit_test(refuses_one_more_if_all_are_in_use),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
