/*
 * An idle daemon costs nothing: no timer ticks, no thread spins.  The kernel's counters are read
 * over all its threads, with eight clients connected, some of which have streamed before.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"

#define CLIENTS 8

struct cost {
        uint64_t ticks, switches;
        uint32_t threads;
};

static uint64_t number_after(const char *text, const char *name)
{
        const char *at = strstr(text, name);

        assert_non_null(at);
        return strtoull(at + strlen(name), NULL, 10);
}

static void add_thread(struct cost *cost, pid_t pid, const char *thread)
{
        char path[320], *text, *at;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, thread);
        text = file_text(path);
        at = strrchr(text, ')'); /* after it state is the 3rd, utime the 14th, stime the 15th */
        assert_non_null(at);
        for (int i = 0; i < 12; i++)
                at = strchr(at + 1, ' ');
        cost->ticks += strtoull(at, &at, 10);
        cost->ticks += strtoull(at, &at, 10);
        free(text);

        snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, thread);
        text = file_text(path);
        cost->switches += number_after(text, "\nvoluntary_ctxt_switches:");
        cost->switches += number_after(text, "\nnonvoluntary_ctxt_switches:");
        free(text);
        cost->threads++;
}

static struct cost cost_of(pid_t pid)
{
        struct cost cost = { 0 };
        struct dirent *entry;
        char path[64];
        DIR *threads;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        threads = opendir(path);
        assert_non_null(threads);
        while ((entry = readdir(threads)))
                if (entry->d_name[0] != '.')
                        add_thread(&cost, pid, entry->d_name);
        closedir(threads);
        return cost;
}

/*
 * A thread that still had work to do, the thread pool's last spin or the last reply, may have been
 * delayed. Then the test measures again.  A timer that ticks or a thread that spins shows at every
 * measurement.
 */
static void assert_no_activity(const struct daemon_fixture *fixture, uint32_t seconds,
                               const char *words)
{
        struct cost before, after;
        uint32_t looks = 0;
        bool quiet;

        sleep_ms(500);
        do {
                before = cost_of(fixture->pid);
                sleep_ms(seconds * 1000);
                after = cost_of(fixture->pid);
                printf("# %u s %s, %u threads: %u ticks of CPU, %u context switches\n", seconds,
                       words, after.threads, (unsigned)(after.ticks - before.ticks),
                       (unsigned)(after.switches - before.switches));
                assert_int_equal(after.threads, before.threads);
                quiet = after.ticks - before.ticks <= 1 && after.switches - before.switches <= 5;
        } while (!quiet && ++looks < 3);
        assert_true(quiet);
}

static void an_idle_daemon_with_eight_clients_sleeps(void **state)
{
        const struct want want = { .prompt = "Once", .max_tokens = 100, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *clients[CLIENTS];

        START_DAEMON(fixture, "--threads", "2");
        for (size_t i = 0; i < CLIENTS; i++) {
                clients[i] = raw_client_greet(fixture);
                if (i & 1)
                        raw_client_complete(clients[i], &want);
        }
        assert_no_activity(fixture, scaled(3, 60), "idle");
        for (size_t i = 0; i < CLIENTS; i++)
                raw_client_close(clients[i]);
        fixture_stop(fixture);
}

/* A daemon whose only streams wait for a reader is idle too, but for the deadline that ends
 * them. */
static void a_daemon_with_only_stalled_streams_sleeps(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint64_t end;

        START_DAEMON(fixture, "--ring-bytes", "64K");
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < 2; i++) {
                const struct want want = { .prompt = "Once",
                                           .max_tokens = LONG_LOGPROBS,
                                           .logprobs = LOGPROBS_MOST,
                                           .seed = i,
                                           .ignore_eos = true };

                raw_client_generate(client, &want);
        }
        for (end = now_ms() + TIMEOUT_MS; fixture_status(fixture, "requests.stalled") < 2;
             sleep_ms(100))
                assert_true(now_ms() < end);
        assert_no_activity(fixture, scaled(2, 20), "stalled");
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(an_idle_daemon_with_eight_clients_sleeps),
                DAEMON_TEST(a_daemon_with_only_stalled_streams_sleeps),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
