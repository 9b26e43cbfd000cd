/*
 * The whole road (pipeline) except the model's computation: a daemon in one process, clients in
 * others, and millions of tokens between them.  Each token is checked (bench/walker.h), over every
 * transport and doorbell.
 *
 * Rings are small and clients nap, so streams stall and continue; the daemon makes pauses, so
 * readers sleep; stop strings hold text back, so records differ in size. SMV_ROAD_TOKENS says how
 * many tokens, for each of the ways.
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

#include "daemon/sys.h"
#include "tests/road/walk.h"

#define TOKENS 1000000u

static void start_walkers(struct walk *walk, const struct way *way, int *pids)
{
        uint64_t tokens = walk_tokens(TOKENS);

        for (uint32_t i = 0; i < WALKERS; i++) {
                struct walker_conf conf = walk_walker_conf(walk, way, i, tokens);

                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0)
                        _exit(walker_walk(&conf, &walk->walkers[i]) != 0);
        }
}

/* After the first failure the daemon prints the state of every client. */
static void wait_for_walkers(int daemon, const int *pids)
{
        bool shown = false;
        int status;

        for (uint32_t i = 0; i < WALKERS; i++) {
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

static void go(const struct way *way)
{
        struct walk *walk = walk_new();
        struct road_conf conf = walk_road_conf(walk, way);
        int daemon, pids[WALKERS];
        uint64_t from;

        daemon = road_fork(&conf);
        assert_true(daemon > 0);
        from = sys_clock_ns();
        start_walkers(walk, way, pids);
        wait_for_walkers(daemon, pids);
        assert_int_equal(road_stop(daemon), 0);
        walk_check(walk, way, sys_clock_ns() - from);
        walk_free(walk);
}

static void every_token_comes_through_a_ring_with_kicks(void **state)
{
        (void)state;
        go(&(struct way){ "ring, kick", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK, WALKER_NEXT, 0 });
}

static void every_token_comes_to_one_who_polls_the_descriptor(void **state)
{
        (void)state;
        go(&(struct way){ "ring, kick, poll()", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK, WALKER_POLL,
                          0 });
}

static void every_token_comes_through_a_ring_with_a_futex(void **state)
{
        (void)state;
        go(&(struct way){ "ring, futex", SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX, WALKER_NEXT, 0 });
}

static void every_token_comes_through_a_ring_without_a_bell(void **state)
{
        (void)state;
        go(&(struct way){ "ring, none", SMV_TRANSPORT_RING, SMV_DOORBELL_NONE, WALKER_TURN, 0 });
}

static void every_token_comes_to_one_who_wants_many_at_once(void **state)
{
        (void)state;
        go(&(struct way){ "ring, kick, batch", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK, WALKER_NEXT,
                          4096 });
}

static void every_token_comes_through_the_socket(void **state)
{
        (void)state;
        go(&(struct way){ "socket", SMV_TRANSPORT_SOCKET, SMV_DOORBELL_KICK, WALKER_NEXT, 0 });
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_token_comes_through_a_ring_with_kicks),
                cmocka_unit_test(every_token_comes_to_one_who_polls_the_descriptor),
                cmocka_unit_test(every_token_comes_through_a_ring_with_a_futex),
                cmocka_unit_test(every_token_comes_through_a_ring_without_a_bell),
                cmocka_unit_test(every_token_comes_to_one_who_wants_many_at_once),
                cmocka_unit_test(every_token_comes_through_the_socket),
        };

        return cmocka_run_group_tests_name("road", tests, NULL, NULL);
}
