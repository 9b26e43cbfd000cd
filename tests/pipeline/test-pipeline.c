/*
 * The whole pipeline except the model's computation: a daemon in one process, clients in others,
 * and millions of tokens between them.  Each token is checked (bench/checking-client.h), over every
 * transport and doorbell.
 *
 * Rings are small and clients nap, so streams stall and continue; the daemon makes pauses, so
 * readers sleep; stop strings hold text back, so records differ in size. SMV_PIPELINE_TOKENS says
 * how many tokens, for each of the variants.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "tests/pipeline/pipeline-rig.h"

#define TOKENS 1000000u

static void start_clients(struct pipeline_rig *rig, const struct variant *variant, int *pids)
{
        uint64_t tokens = pipeline_rig_tokens(TOKENS);

        for (uint32_t i = 0; i < CLIENTS; i++) {
                struct checking_client_conf conf =
                        pipeline_rig_client_conf(rig, variant, i, tokens);

                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0)
                        _exit(checking_client_run(&conf, &rig->clients[i]) != 0);
        }
}

/* After the first failure the daemon prints the state of every client. */
static void wait_for_clients(int daemon, const int *pids)
{
        bool shown = false;
        int status;

        for (uint32_t i = 0; i < CLIENTS; i++) {
                assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                if (status && !shown) {
                        kill(daemon, SIGUSR1);
                        usleep(200000);
                        shown = true;
                }
                if (WIFSIGNALED(status))
                        fail_msg("client %u: signal %d", i, WTERMSIG(status));
        }
}

static void go(const struct variant *variant)
{
        struct pipeline_rig *rig = pipeline_rig_new();
        struct pipeline_conf conf = pipeline_rig_conf(rig, variant);
        int daemon, pids[CLIENTS];
        uint64_t from;

        daemon = pipeline_fork(&conf);
        assert_true(daemon > 0);
        from = sys_clock_ns();
        start_clients(rig, variant, pids);
        wait_for_clients(daemon, pids);
        assert_int_equal(pipeline_stop(daemon), 0);
        pipeline_rig_check(rig, variant, sys_clock_ns() - from);
        pipeline_rig_free(rig);
}

static void delivers_every_token_over_a_ring_with_kicks(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, kick", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK, CLIENT_SLEEPS,
                              0 });
}

static void delivers_every_token_to_a_client_that_polls_the_descriptor(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, kick, poll()", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK,
                              CLIENT_POLLS, 0 });
}

static void delivers_every_token_over_a_ring_with_a_futex(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, futex", SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX, CLIENT_SLEEPS,
                              0 });
}

static void delivers_every_token_over_a_ring_without_a_doorbell(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, none", SMV_TRANSPORT_RING, SMV_DOORBELL_NONE, CLIENT_SPINS,
                              0 });
}

static void delivers_every_token_to_a_client_that_waits_for_batches(void **state)
{
        (void)state;
        go(&(struct variant){ "ring, kick, batch", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK,
                              CLIENT_SLEEPS, 4096 });
}

static void delivers_every_token_over_the_socket(void **state)
{
        (void)state;
        go(&(struct variant){ "socket", SMV_TRANSPORT_SOCKET, SMV_DOORBELL_KICK, CLIENT_SLEEPS,
                              0 });
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(delivers_every_token_over_a_ring_with_kicks),
                cmocka_unit_test(delivers_every_token_to_a_client_that_polls_the_descriptor),
                cmocka_unit_test(delivers_every_token_over_a_ring_with_a_futex),
                cmocka_unit_test(delivers_every_token_over_a_ring_without_a_doorbell),
                cmocka_unit_test(delivers_every_token_to_a_client_that_waits_for_batches),
                cmocka_unit_test(delivers_every_token_over_the_socket),
        };

        return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
