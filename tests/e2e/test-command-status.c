/* samovar status and samovar models: their forms, and the times that the daemon counts. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

/* Replaces %s by the daemon's socket, and %d by its process. */
static void expand(const struct daemon_fixture *fixture, const char *text, char *to, size_t bytes)
{
        const char *at = strchr(text, '%');

        if (!at)
                snprintf(to, bytes, "%s", text);
        else if (at[1] == 's')
                snprintf(to, bytes, "%.*s%s%s", (int)(at - text), text, fixture->socket, at + 2);
        else
                snprintf(to, bytes, "%.*s%d%s", (int)(at - text), text, (int)fixture->pid, at + 2);
}

static void status_is_one_screen(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        unsigned lines = 0;

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "status");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "\ntokens/s   "));
        assert_non_null(strstr(ran.out, "\npool       ["));
        assert_non_null(strstr(ran.out, "\nusers      "));
        for (const char *at = ran.out; *at; at = strchr(at, '\n') + 1, lines++)
                assert_true(strchr(at, '\n') - at <= 80);
        assert_true(lines < 24);
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* A user who has a daemon and may use the machine's sees here which of them answers. */
static void status_and_models_say_which_daemon_answers(void **state)
{
        struct daemon_fixture *fixture = *state;
        char line[512];
        const struct {
                const char *command, *flag, *shown;
        } forms[] = {
                { "status", NULL, ", process %d of user " },
                { "status", NULL, "\nsocket     %s\n" },
                { "status", "--all", "socket  " },
                { "status", "--all", "  %s\nversion  " },
                { "status", "--json", "{\"socket\":\"%s\",\"version\":\"" },
                { "models", NULL, "%s: process " },
                { "models", NULL, ": process %d of user " },
                { "models", "--json", "}],\"daemon\":{\"socket\":\"%s\",\"pid\":" },
                { "models", "--json", ",\"pid\":%d,\"uid\":" },
        };

        START_DAEMON(fixture, "--threads", "1");
        for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
                struct run_result ran =
                        RUN(fixture, NULL, SAMOVAR, forms[i].command, forms[i].flag);

                assert_int_equal(ran.status, 0);
                expand(fixture, forms[i].shown, line, sizeof(line));
                if (!strstr(ran.out, line))
                        fail_msg("\"%s\" is not in:\n%s", line, ran.out);
                run_result_free(&ran);
        }
        fixture_stop(fixture);
}

static void status_all_has_every_count_on_a_line(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "status", "--all");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "\nblocks.in_use "));
        assert_non_null(strstr(ran.out, "\nusers.0.connections "));
        assert_non_null(strstr(ran.out, "\nlimits.max_seqs "));
        assert_non_null(strstr(ran.out, "  1e-06,1.6e-06,2.5e-06,"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

static uint64_t times(const struct daemon_fixture *fixture, const char *name)
{
        char path[96];

        snprintf(path, sizeof(path), "latency.%s.count", name);
        return fixture_status(fixture, path);
}

/* The fixture has run a request of its own, whose counts are taken first. */
static void times_are_counted_for_each_request_and_token(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        uint64_t first, gaps, queue, total;

        START_DAEMON(fixture, "--threads", "1");
        first = times(fixture, "time_to_first_token_seconds");
        gaps = times(fixture, "inter_token_latency_seconds");
        queue = times(fixture, "request_queue_time_seconds");
        total = times(fixture, "e2e_request_latency_seconds");
        for (unsigned i = 0; i < 3; i++) {
                ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once", "--max-tokens", "10",
                          "--ignore-eos");
                assert_int_equal(ran.status, 0);
                run_result_free(&ran);
        }
        assert_int_equal(times(fixture, "time_to_first_token_seconds"), first + 3);
        assert_int_equal(times(fixture, "inter_token_latency_seconds"), gaps + 27);
        assert_int_equal(times(fixture, "request_queue_time_seconds"), queue + 3);
        assert_int_equal(times(fixture, "e2e_request_latency_seconds"), total + 3);
        /* The last bucket has all of them, unless the machine stood still for 1000 s. */
        assert_int_equal(fixture_status(fixture, "latency.e2e_request_latency_seconds.buckets.35"),
                         total + 3);
        fixture_stop(fixture);
}

/* Starts status --watch with stdout at `out`. */
static pid_t start_watch(const struct daemon_fixture *fixture, int out)
{
        pid_t pid = fork();

        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out, 1);
        execl(SAMOVAR, SAMOVAR, "status", "--socket", fixture->socket, "--watch", "0.1",
              (char *)NULL);
        _exit(126);
}

/* Reads until this text has come `wanted` times. */
static void await_text(int fd, const char *wanted, unsigned times_wanted)
{
        static char text[1 << 20];
        size_t used = 0;
        unsigned found = 0;

        while (found < times_wanted) {
                ssize_t n = read(fd, text + used, sizeof(text) - 1 - used);

                assert_true(n > 0);
                used += (size_t)n;
                text[used] = '\0';
                found = 0;
                for (const char *at = text; (at = strstr(at, wanted)); at++)
                        found++;
        }
}

static void watch_prints_again_and_again(void **state)
{
        struct daemon_fixture *fixture = *state;
        int fds[2];
        pid_t pid;

        START_DAEMON(fixture, "--threads", "1");
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = start_watch(fixture, fds[1]);
        close(fds[1]);
        await_text(fds[0], "\n\nsamovard   ", 2);
        kill(pid, SIGINT);
        assert_int_equal(await_process(pid), -SIGINT);
        close(fds[0]);
        fixture_stop(fixture);
}

static void watch_redraws_a_terminal(void **state)
{
        const struct winsize size = { .ws_row = 24, .ws_col = 80 };
        struct daemon_fixture *fixture = *state;
        int master, slave;
        pid_t pid;

        START_DAEMON(fixture, "--threads", "1");
        master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(master >= 0 && !grantpt(master) && !unlockpt(master));
        slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(slave >= 0 && !ioctl(slave, TIOCSWINSZ, &size));
        pid = start_watch(fixture, slave);
        await_text(master, "\x1b[Hsamovard   ", 3);
        kill(pid, SIGINT);
        assert_int_equal(await_process(pid), -SIGINT);
        close(slave);
        close(master);
        fixture_stop(fixture);
}

static void watch_ends_with_the_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;
        int fds[2];
        pid_t pid;

        START_DAEMON(fixture, "--threads", "1");
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = start_watch(fixture, fds[1]);
        close(fds[1]);
        await_text(fds[0], "samovard   ", 1);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
        /* It may print what it has asked for before, but then it ends. */
        while (read(fds[0], &(char[4096]){ 0 }, 4096) > 0)
                continue;
        assert_int_equal(await_process(pid), 1);
        close(fds[0]);
}

static void models_lists_what_is_served(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char model[512];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf=spoon", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", model, "--ctx", "512");
        ran = RUN(fixture, NULL, SAMOVAR, "models");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "\nspoon "));
        assert_non_null(strstr(ran.out, " Q8_0 "));
        assert_non_null(strstr(ran.out, " 512 "));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "models", "--json");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "{\"models\":[{\"name\":\"spoon\",\"default\":true,"
                                        "\"context\":512,\"vocab\":"));
        assert_non_null(strstr(ran.out, ",\"chat\":true,\"quantisation\":\"Q8_0\",\"bytes\":"));
        assert_non_null(strstr(ran.out, ",\"architecture\":\"llama\",\"parameters\":3672320,"));
        assert_non_null(strstr(ran.out, "\"trained_context\":4096,\"digest\":\""));
        assert_non_null(strstr(ran.out, ",\"tool_dialect\":\"hermes\"}"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "models", "x");
        assert_int_equal(ran.status, 2);
        assert_string_equal(ran.err, "samovar: models takes no argument, but x is one\n");
        run_result_free(&ran);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(status_is_one_screen),
                DAEMON_TEST(status_and_models_say_which_daemon_answers),
                DAEMON_TEST(status_all_has_every_count_on_a_line),
                DAEMON_TEST(times_are_counted_for_each_request_and_token),
                DAEMON_TEST(watch_prints_again_and_again),
                DAEMON_TEST(watch_redraws_a_terminal),
                DAEMON_TEST(watch_ends_with_the_daemon),
                DAEMON_TEST(models_lists_what_is_served),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
