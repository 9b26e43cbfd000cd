/*
 * Runs each scenario again and again.  Each time another allocation or another system call of the
 * daemon fails, once or twenty times in a row.  fault-sweep.h says what the daemon promises then.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/e2e/fault-sweep.h"

#define FAILURES_MAX 10 /* of a sweep, before it is given up */
#define PERSISTENT   20
/* after this many n in a row that were not reached, the scenario has no more calls */
#define BEYOND 3

/* Each sweep begins at another n (fault-injection.h).  Returns the number of failed trials. */
static uint32_t sweep(struct daemon_fixture *fixture, const struct scenario *scenario,
                      enum fault_kind kind, uint32_t count, uint32_t flavour)
{
        struct fault_plan plan = { .kind = kind, .count = count, .flavour = flavour };
        uint32_t failures = 0, beyond = 0, step = faults_stride();
        uint64_t began = now_ms(), failed_before = faults_sum().failed;

        for (plan.first = (2 * flavour + (count > 1)) % step; beyond < BEYOND; plan.first += step) {
                failures += !fault_sweep_try(fixture, scenario, &plan);
                beyond = faults_failed() ? 0 : beyond + 1;
                if (failures >= FAILURES_MAX)
                        break;
        }
        printf("# %s: %s, %u at a time, up to number %u, %" PRIu64 " ms\n", scenario->name,
               kind == FAULT_ALLOC ? "allocations" : "system calls", count, plan.first,
               now_ms() - began);
        assert_true(faults_sum().failed > failed_before);
        return failures;
}

static void sweep_scenario(void **state, const struct scenario *scenario, enum fault_kind kind)
{
        uint32_t failures = 0;

        fault_sweep_prepare(*state);
        for (uint32_t flavour = 0; flavour < 2; flavour++) {
                failures += sweep(*state, scenario, kind, 1, flavour);
                failures += sweep(*state, scenario, kind, PERSISTENT, flavour);
        }
        assert_int_equal(failures, 0);
}

static void survives_failed_allocations_with_two_clients_and_a_hostile_one(void **state)
{
        sweep_scenario(state, &scenario_requests, FAULT_ALLOC);
}

static void survives_failed_system_calls_with_two_clients_and_a_hostile_one(void **state)
{
        sweep_scenario(state, &scenario_requests, FAULT_CALL);
}

static void survives_failed_allocations_under_load(void **state)
{
        sweep_scenario(state, &scenario_load, FAULT_ALLOC);
}

static void survives_failed_system_calls_under_load(void **state)
{
        sweep_scenario(state, &scenario_load, FAULT_CALL);
}

static void survives_failed_allocations_with_shared_rings(void **state)
{
        sweep_scenario(state, &scenario_rings, FAULT_ALLOC);
}

static void survives_failed_system_calls_with_shared_rings(void **state)
{
        sweep_scenario(state, &scenario_rings, FAULT_CALL);
}

static void survives_failed_allocations_with_constraints_and_rules(void **state)
{
        /* Once: a constraint makes many allocations, and they are large. */
        fault_sweep_prepare(*state);
        assert_int_equal(sweep(*state, &scenario_forms, FAULT_ALLOC, 1, 0), 0);
}

static void survives_failed_allocations_when_started_for_one_client(void **state)
{
        sweep_scenario(state, &scenario_single_client, FAULT_ALLOC);
}

static void survives_failed_system_calls_when_started_for_one_client(void **state)
{
        sweep_scenario(state, &scenario_single_client, FAULT_CALL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(survives_failed_allocations_with_two_clients_and_a_hostile_one),
                DAEMON_TEST(survives_failed_system_calls_with_two_clients_and_a_hostile_one),
                DAEMON_TEST(survives_failed_allocations_under_load),
                DAEMON_TEST(survives_failed_system_calls_under_load),
                DAEMON_TEST(survives_failed_allocations_with_shared_rings),
                DAEMON_TEST(survives_failed_system_calls_with_shared_rings),
                DAEMON_TEST(survives_failed_allocations_with_constraints_and_rules),
                DAEMON_TEST(survives_failed_allocations_when_started_for_one_client),
                DAEMON_TEST(survives_failed_system_calls_when_started_for_one_client),
        };
        struct faults_sum faults;
        struct fault_sweep_totals trials;
        int r;

        require_env_paths((const char *const[]){ "TOY_MODEL_MAKER", NULL });
        fault_sweep_begin();
        r = cmocka_run_group_tests(tests, NULL, NULL);
        faults = faults_sum();
        trials = fault_sweep_totals();
        faults_print_missed(stdout);
        printf("# %" PRIu64 " trials: %" PRIu64 " faults injected, %u of %u allocation sites, "
               "%u of %u system calls, %" PRIu64 " crashes\n",
               trials.trials, faults.failed, faults.sites_failed[FAULT_ALLOC],
               faults.sites_met[FAULT_ALLOC], faults.sites_failed[FAULT_CALL],
               faults.sites_met[FAULT_CALL], trials.crashes);
        return r;
}
