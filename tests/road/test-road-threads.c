/*
 * The same road with all clients in one process, and each ring mapped once (one-mapping.c): a race
 * detector sees both ends of it.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/sys.h"
#include "tests/road/one-mapping.h"
#include "tests/road/walk.h"

#define TOKENS 100000u

struct traveller {
        pthread_t thread;
        struct walker_conf conf;
        struct walker_facts *facts;
};

static void *loop_main(void *arg)
{
        return (void *)(intptr_t)road_run(arg);
}

static void *traveller_main(void *arg)
{
        struct traveller *traveller = arg;

        return (void *)(intptr_t)walker_walk(&traveller->conf, traveller->facts);
}

static void travel(struct walk *walk, const struct way *way)
{
        struct traveller travellers[WALKERS];
        uint64_t tokens = walk_tokens(TOKENS);
        void *result, *shown = NULL;

        for (uint32_t i = 0; i < WALKERS; i++) {
                struct traveller *traveller = &travellers[i];

                traveller->conf = walk_walker_conf(walk, way, i, tokens);
                traveller->facts = &walk->walkers[i];
                assert_int_equal(
                        pthread_create(&traveller->thread, NULL, traveller_main, traveller), 0);
        }
        for (uint32_t i = 0; i < WALKERS; i++) {
                assert_int_equal(pthread_join(travellers[i].thread, &result), 0);
                if (result && !shown)
                        kill(getpid(), SIGUSR1);
                shown = shown ? shown : result;
        }
}

static void go(const struct way *way)
{
        struct walk *walk = walk_new();
        struct road_conf conf = walk_road_conf(walk, way);
        struct road *road = NULL;
        pthread_t loop;
        uint32_t joined = one_mapping_joined();
        uint64_t from;
        void *result;

        assert_int_equal(road_open(&conf, &road), 0);
        assert_int_equal(pthread_create(&loop, NULL, loop_main, road), 0);
        from = sys_clock_ns();
        travel(walk, way);
        kill(getpid(), SIGTERM);
        assert_int_equal(pthread_join(loop, &result), 0);
        assert_null(result);
        road_close(road);
        assert_int_equal(one_mapping_joined() - joined, 2 * WALKERS); /* both segments */
        walk_check(walk, way, sys_clock_ns() - from);
        walk_free(walk);
}

static void kicks_race_with_nothing(void **state)
{
        (void)state;
        go(&(struct way){ "ring, kick", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK, WALKER_NEXT, 0 });
}

static void futexes_race_with_nothing(void **state)
{
        (void)state;
        go(&(struct way){ "ring, futex", SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX, WALKER_NEXT, 0 });
}

static void polling_races_with_nothing(void **state)
{
        (void)state;
        go(&(struct way){ "ring, none", SMV_TRANSPORT_RING, SMV_DOORBELL_NONE, WALKER_TURN, 0 });
}

static void batches_race_with_nothing(void **state)
{
        (void)state;
        go(&(struct way){ "ring, futex, batch", SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX, WALKER_NEXT,
                          4096 });
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(kicks_race_with_nothing),
                cmocka_unit_test(futexes_race_with_nothing),
                cmocka_unit_test(polling_races_with_nothing),
                cmocka_unit_test(batches_race_with_nothing),
        };

        return cmocka_run_group_tests_name("road-threads", tests, NULL, NULL);
}
