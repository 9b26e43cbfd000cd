/*
 * The same pipeline with all clients in one process, and each ring mapped once (one-mapping.c): a
 * race detector sees both ends of it.
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

#include "base/sys.h"
#include "tests/pipeline/one-mapping.h"
#include "tests/pipeline/pipeline-rig.h"

#define TOKENS 100000u

struct client_thread {
        pthread_t thread;
        struct checking_client_conf conf;
        struct checking_client_facts *facts;
};

static void *loop_main(void *arg)
{
        return (void *)(intptr_t)pipeline_run(arg);
}

static void *client_main(void *arg)
{
        struct client_thread *client_thread = arg;

        return (void *)(intptr_t)checking_client_run(&client_thread->conf, client_thread->facts);
}

static void run_clients(struct pipeline_rig *rig, const struct variant *variant)
{
        struct client_thread client_threads[CLIENTS];
        uint64_t tokens = pipeline_rig_tokens(TOKENS);
        void *result, *shown = NULL;

        for (uint32_t i = 0; i < CLIENTS; i++) {
                struct client_thread *client_thread = &client_threads[i];

                client_thread->conf = pipeline_rig_client_conf(rig, variant, i, tokens);
                client_thread->facts = &rig->clients[i];
                assert_int_equal(
                        pthread_create(&client_thread->thread, NULL, client_main, client_thread),
                        0);
        }
        for (uint32_t i = 0; i < CLIENTS; i++) {
                assert_int_equal(pthread_join(client_threads[i].thread, &result), 0);
                if (result && !shown)
                        kill(getpid(), SIGUSR1);
                shown = shown ? shown : result;
        }
}

static void go(const struct variant *variant)
{
        struct pipeline_rig *rig = pipeline_rig_new();
        struct pipeline_conf conf = pipeline_rig_conf(rig, variant);
        struct pipeline *pipeline = NULL;
        pthread_t loop;
        uint32_t joined = one_mapping_joined();
        uint64_t from;
        void *result;

        assert_int_equal(pipeline_open(&conf, &pipeline), 0);
        assert_int_equal(pthread_create(&loop, NULL, loop_main, pipeline), 0);
        from = sys_clock_ns();
        run_clients(rig, variant);
        kill(getpid(), SIGTERM);
        assert_int_equal(pthread_join(loop, &result), 0);
        assert_null(result);
        pipeline_close(pipeline);
        assert_int_equal(one_mapping_joined() - joined, 2 * CLIENTS); /* both segments */
        pipeline_rig_check(rig, variant, sys_clock_ns() - from);
        pipeline_rig_free(rig);
}

static void clients_woken_by_kicks_have_no_data_race(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, kick", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK, CLIENT_SLEEPS,
                              0 });
}

static void clients_woken_by_futexes_have_no_data_race(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, futex", SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX, CLIENT_SLEEPS,
                              0 });
}

static void polling_clients_have_no_data_race(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, none", SMV_TRANSPORT_RING, SMV_DOORBELL_NONE, CLIENT_SPINS,
                              0 });
}

static void clients_that_wait_for_batches_have_no_data_race(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, futex, batch", SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX,
                              CLIENT_SLEEPS, 4096 });
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(clients_woken_by_kicks_have_no_data_race),
                cmocka_unit_test(clients_woken_by_futexes_have_no_data_race),
                cmocka_unit_test(polling_clients_have_no_data_race),
                cmocka_unit_test(clients_that_wait_for_batches_have_no_data_race),
        };

        return cmocka_run_group_tests_name("pipeline-threads", tests, NULL, NULL);
}
