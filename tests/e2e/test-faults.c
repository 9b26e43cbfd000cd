/*
 * Plays scenes again and again.  Each time another allocation or another system call of the daemon
 * fails, once or twenty times in a row.  play.h says what the daemon promises then.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/e2e/play.h"

#define FAILURES_MAX 10 /* of a sweep, before it is given up */
#define PERSISTENT   20
/* after this many n in a row that were not reached, the scene has no more calls */
#define BEYOND 3

/* Each sweep begins at another n (faults.h).  Returns how many plays broke the promise. */
static uint32_t sweep(struct house *house, const struct scene *scene, enum fault_kind kind,
                      uint32_t count, uint32_t flavour)
{
        struct fault_plan plan = { .kind = kind, .count = count, .flavour = flavour };
        uint32_t failures = 0, beyond = 0, step = faults_stride();
        uint64_t began = now_ms(), failed_before = faults_sum().failed;

        for (plan.first = (2 * flavour + (count > 1)) % step; beyond < BEYOND; plan.first += step) {
                failures += !play_once(house, scene, &plan);
                beyond = faults_failed() ? 0 : beyond + 1;
                if (failures >= FAILURES_MAX)
                        break;
        }
        printf("# %s: %s, %u at a time, up to number %u, %" PRIu64 " ms\n", scene->name,
               kind == FAULT_ALLOC ? "allocations" : "system calls", count, plan.first,
               now_ms() - began);
        assert_true(faults_sum().failed > failed_before);
        return failures;
}

static void sweep_scene(void **state, const struct scene *scene, enum fault_kind kind)
{
        uint32_t failures = 0;

        play_prepare(*state);
        for (uint32_t flavour = 0; flavour < 2; flavour++) {
                failures += sweep(*state, scene, kind, 1, flavour);
                failures += sweep(*state, scene, kind, PERSISTENT, flavour);
        }
        assert_int_equal(failures, 0);
}

static void allocations_fail_while_two_ask_and_one_raves(void **state)
{
        sweep_scene(state, &scene_asking, FAULT_ALLOC);
}

static void system_calls_fail_while_two_ask_and_one_raves(void **state)
{
        sweep_scene(state, &scene_asking, FAULT_CALL);
}

static void allocations_fail_in_a_crowd(void **state)
{
        sweep_scene(state, &scene_crowd, FAULT_ALLOC);
}

static void system_calls_fail_in_a_crowd(void **state)
{
        sweep_scene(state, &scene_crowd, FAULT_CALL);
}

static void allocations_fail_while_rings_are_made_and_read(void **state)
{
        sweep_scene(state, &scene_rings, FAULT_ALLOC);
}

static void system_calls_fail_while_rings_are_made_and_read(void **state)
{
        sweep_scene(state, &scene_rings, FAULT_CALL);
}

static void allocations_fail_with_one_client_alone(void **state)
{
        sweep_scene(state, &scene_alone, FAULT_ALLOC);
}

static void system_calls_fail_with_one_client_alone(void **state)
{
        sweep_scene(state, &scene_alone, FAULT_CALL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(allocations_fail_while_two_ask_and_one_raves),
                STORY(system_calls_fail_while_two_ask_and_one_raves),
                STORY(allocations_fail_in_a_crowd),
                STORY(system_calls_fail_in_a_crowd),
                STORY(allocations_fail_while_rings_are_made_and_read),
                STORY(system_calls_fail_while_rings_are_made_and_read),
                STORY(allocations_fail_with_one_client_alone),
                STORY(system_calls_fail_with_one_client_alone),
        };
        struct faults_sum faults;
        struct plays_sum plays;
        int r;

        need((const char *const[]){ "BABBLE_MAKER", NULL });
        play_begin();
        r = cmocka_run_group_tests(tests, NULL, NULL);
        faults = faults_sum();
        plays = plays_sum();
        faults_tell_missed(stdout);
        printf("# %" PRIu64 " plays: %" PRIu64 " faults injected, %u of %u allocation sites, "
               "%u of %u system calls, %" PRIu64 " crashes\n",
               plays.plays, faults.failed, faults.sites_failed[FAULT_ALLOC],
               faults.sites_met[FAULT_ALLOC], faults.sites_failed[FAULT_CALL],
               faults.sites_met[FAULT_CALL], plays.crashes);
        return r;
}
