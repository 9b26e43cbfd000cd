/*
 * The waker rings a bell by the number of its descriptor.  Clients with bells die at any moment,
 * and their numbers are given to other clients.  No client may hear a bell that belongs to another.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"
#include "tests/e2e/manual-ring.h"

#define RINGERS 5
#define QUIET   12

/* A client connects, asks for bells, and leaves in the middle of it. */
static void run_one_ringer(const struct daemon_fixture *fixture)
{
        const struct want want = {
                .prompt = "R", .as_ids = true, .max_tokens = 500, .ignore_eos = true
        };
        struct manual_ring *ring = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
        uint64_t end = now_ms() + random_below(100);

        for (uint32_t i = 0; i < 3; i++)
                raw_client_generate(ring->client, &want);
        while (now_ms() < end) {
                __atomic_store_n(&ring->own->wake_position, ring->head, __ATOMIC_SEQ_CST);
                raw_client_poll(ring->client, 1);
                manual_ring_read(ring, UINT32_MAX);
        }
        manual_ring_close(ring);
}

/* Runs in a child.  Open descriptors of other clients would leave those connected after they
 * have gone. */
static void run_ringer(const struct daemon_fixture *fixture)
{
        assert_int_equal(close_range(3, ~0u, 0), 0);
        for (;;)
                run_one_ringer(fixture);
}

static pid_t start_ringer(const struct daemon_fixture *fixture)
{
        pid_t pid;

        random_below(2); /* so that children differ */
        pid = fork_child();
        if (!pid)
                run_ringer(fixture);
        return pid;
}

/* Some clients greet and are silent, some send nothing at all, some ask: each gets only its own
 * records. */
static struct raw_client *connect_quiet_client(const struct daemon_fixture *fixture, uint32_t kind)
{
        const struct want want = { .prompt = "Quiet", .max_tokens = 20, .ignore_eos = true };
        struct raw_client *client =
                kind == 0 ? raw_client_connect(fixture) : raw_client_greet(fixture);

        if (kind == 1)
                raw_client_generate(client, &want);
        return client;
}

static void check_quiet_client(struct raw_client *client)
{
        while (raw_client_poll(client, 0))
                ;
        assert_int_equal(client->doorbells, 0);
        assert_int_equal(client->in_count, 0); /* nor a part of a reply */
        assert_false(client->hung_up);
        assert_in_range(client->reply_count, 0, 2);
}

static void no_client_receives_a_doorbell_meant_for_another(void **state)
{
        uint32_t times = scaled(400, 20000), kills = 0;
        struct daemon_fixture *fixture = *state;
        struct raw_client *quiet[QUIET] = { 0 };
        uint32_t kinds[QUIET];
        pid_t ringers[RINGERS];
        struct honest_client honest;

        START_DAEMON(fixture, CHURN, "--pipeline-depth", "2", "--uid-requests", "1000",
                     "--hello-timeout-ms", "3600000");
        honest = honest_client_start(fixture);
        for (size_t i = 0; i < RINGERS; i++)
                ringers[i] = start_ringer(fixture);
        for (uint32_t i = 0; i < times; i++) {
                uint32_t at = random_below(QUIET);

                if (random_below(8) == 0) {
                        pid_t *pid = &ringers[random_below(RINGERS)];

                        kill_child(*pid);
                        *pid = start_ringer(fixture);
                        kills++;
                }
                if (quiet[at]) {
                        check_quiet_client(quiet[at]);
                        if (kinds[at] == 0)
                                assert_int_equal(quiet[at]->reply_count, 0);
                        raw_client_close(quiet[at]);
                }
                kinds[at] = random_below(3);
                quiet[at] = connect_quiet_client(fixture, kinds[at]);
                for (size_t k = 0; k < QUIET; k++)
                        if (quiet[k])
                                check_quiet_client(quiet[k]);
                honest_client_check_for(&honest, random_below(15));
                assert_int_equal(honest.client->doorbells, 0);
        }
        for (size_t i = 0; i < RINGERS; i++)
                kill_child(ringers[i]);
        for (size_t i = 0; i < QUIET; i++) {
                if (quiet[i])
                        check_quiet_client(quiet[i]);
                raw_client_close(quiet[i]);
        }
        printf("# %u connections, %u ringers killed, %u bells rung, %u numbers of descriptors\n",
               (unsigned)fixture_status(fixture, "connections.received"), kills,
               (unsigned)fixture_status(fixture, "doorbells"),
               (unsigned)fixture_status(fixture, "descriptors"));
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(no_client_receives_a_doorbell_meant_for_another),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
