/* samovar top: frames, data, and the live view in a terminal. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include "json/reader.h"
#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

#define ENTERS "\x1b[?1049h" /* the alternate screen */
#define LEAVES "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"

static const struct want endless = { .prompt = "Once", .max_tokens = ENDLESS, .ignore_eos = true };

/* Starts a stream whose client reads all the time.  It ends with reader_stop(). */
static pid_t reader_start(const struct daemon_fixture *fixture)
{
        pid_t pid = fork();
        int null;

        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execl(SAMOVAR, SAMOVAR, "complete", "--socket", fixture->socket, "--ignore-eos",
              "--max-tokens", "1000000", "Once", (char *)NULL);
        _exit(126);
}

static void reader_stop(pid_t pid)
{
        kill(pid, SIGKILL);
        assert_int_equal(await_process(pid), -SIGKILL);
}

/* Waits until so many streams run. */
static void await_running(const struct daemon_fixture *fixture, uint64_t count)
{
        uint64_t limit = now_ms() + TIMEOUT_MS;

        while (fixture_status(fixture, "requests.running") < count) {
                assert_true(now_ms() < limit);
                sleep_ms(5);
        }
}

/* Starts a stream that does not end by itself.  Its client does not read. */
static uint32_t start_stream(struct raw_client *client)
{
        uint32_t id = raw_client_generate(client, &endless);

        assert_true(raw_client_await_reply(client, id)->ok);
        return id;
}

/* ---- one frame ---- */

static void one_frame_has_the_daemon_the_users_and_the_streams(void **state)
{
        static const char *const words[] = { "samovar top  ",
                                             "\ndaemon   ",
                                             "\npool     [",
                                             "\nslots    [",
                                             " of 64; queue",
                                             "\ntokens/s ",
                                             "\nlatency  p50/p95  first ",
                                             "\nuser " };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct run_result ran;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        start_stream(client);
        ran = RUN(fixture, NULL, SAMOVAR, "top", "--once", "--interval", "0.1");
        assert_int_equal(ran.status, 0);
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (!strstr(ran.out, words[i]))
                        fail_msg("\"%s\" is not in:\n%s", words[i], ran.out);
        assert_non_null(strstr(ran.out, " normal "));
        assert_null(strchr(ran.out, '\x1b'));
        for (const char *at = ran.out; *at; at = strchr(at, '\n') + 1)
                assert_true(strchr(at, '\n') - at <= 100);
        run_result_free(&ran);
        raw_client_close(client);
        fixture_stop(fixture);
}

static struct json_document *data(const struct daemon_fixture *fixture, const char *sort)
{
        struct run_result ran = RUN(fixture, NULL, SAMOVAR, "top", "--once", "--json", "--interval",
                                    "0.1", "--sort", sort);
        struct json_document *json;
        char why[128];

        assert_int_equal(ran.status, 0);
        if (json_parse(ran.out, strlen(ran.out), 100000, &json, why, sizeof(why)))
                fail_msg("%s: %s", why, ran.out);
        run_result_free(&ran);
        return json;
}

static uint64_t whole(const struct json_document *json, uint32_t map, const char *name)
{
        uint64_t number = 0;

        assert_true(json_whole(json, json_member(json, map, name), &number));
        return number;
}

static void data_has_rows_of_streams_with_their_rates(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct json_document *json;
        uint32_t streams, first;
        double rate = 0;
        pid_t reader, other;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        reader = reader_start(fixture);
        await_running(fixture, 1);
        other = reader_start(fixture);
        await_running(fixture, 2);
        json = data(fixture, "tokens");
        streams = json_member(json, 0, "streams");
        assert_int_equal(json_count(json, streams), 2);
        first = json_first(json, streams);
        assert_true(whole(json, first, "tokens") >= whole(json, json_next(json, first), "tokens"));
        assert_true(json_real(json, json_member(json, first, "tokens_per_s"), &rate));
        assert_true(rate > 0);
        assert_true((pid_t)whole(json, first, "pid") == reader ||
                    (pid_t)whole(json, first, "pid") == other);
        assert_int_equal(whole(json, first, "uid"), geteuid());
        assert_string_equal(json_string(json, json_member(json, first, "class"), NULL), "normal");
        /* A number of 64 bits is a text. */
        assert_non_null(json_string(json, json_member(json, first, "number"), NULL));
        assert_int_equal(whole(json, 0, "slots"), 64);
        assert_int_equal(whole(json, json_member(json, 0, "daemon"), "pid"), fixture->pid);
        assert_true(whole(json, json_member(json, 0, "pool"), "total") > 0);
        assert_int_equal(json_kind(json, json_member(json, 0, "latency")), JSON_OBJECT);
        json_free(json);
        reader_stop(reader);
        reader_stop(other);
        fixture_stop(fixture);
}

/* A principal is a user that is not the daemon's. */
static void an_ordinary_user_sees_less_and_is_told_so(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct run_result ran;
        char gateway[16];

        snprintf(gateway, sizeof(gateway), "%u", geteuid());
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--gateway", gateway);
        client = raw_client_greet(fixture);
        start_stream(client);
        ran = RUN(fixture, NULL, SAMOVAR, "top", "--once", "--principal", "alice");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "only root and the user of the daemon see times"));
        assert_null(strstr(ran.out, " normal "));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "top", "--once", "--json", "--principal", "alice");
        assert_non_null(strstr(ran.out, "\"sees_all\":false"));
        assert_non_null(strstr(ran.out, "\"latency\":null"));
        assert_non_null(strstr(ran.out, "\"streams\":[]"));
        run_result_free(&ran);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void without_a_terminal_it_says_what_works(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "top");
        assert_int_equal(ran.status, 2);
        assert_string_equal(ran.out, "");
        assert_non_null(strstr(ran.err, "--once prints one frame"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "top", "--json");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "--json needs --once"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "top", "x");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "top takes no argument"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "top", "--sort", "size", "--once");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "age, user, tokens or rate"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void without_a_daemon_it_fails_like_other_commands(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        fixture_stop(fixture);
        ran = RUN(fixture, NULL, SAMOVAR, "top", "--once", "--timeout", "1");
        assert_int_equal(ran.status, 3);
        assert_non_null(strstr(ran.err, "start one with"));
        run_result_free(&ran);
}

/* ---- the live view ---- */

/* A program in a terminal of 24 lines of 80 cells. */
struct live {
        int master, slave;
        pid_t pid;
        struct termios before;
        char text[1 << 20]; /* all that it has written */
        size_t used;
};

static void live_start(struct live *live, const struct daemon_fixture *fixture)
{
        const struct winsize size = { .ws_row = 24, .ws_col = 80 };

        live->used = 0;
        live->text[0] = '\0';
        live->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(live->master >= 0 && !grantpt(live->master) && !unlockpt(live->master));
        live->slave = open(ptsname(live->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(live->slave >= 0 && !ioctl(live->slave, TIOCSWINSZ, &size));
        assert_int_equal(tcgetattr(live->slave, &live->before), 0);
        live->pid = fork();
        if (live->pid)
                return;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setsid();
        ioctl(live->slave, TIOCSCTTY, 0);
        dup2(live->slave, 0);
        dup2(live->slave, 1);
        dup2(live->slave, 2);
        setenv("TERM", "xterm", 1);
        setenv("NO_COLOR", "1", 1);
        execl(SAMOVAR, SAMOVAR, "top", "--socket", fixture->socket, "--interval", "0.1",
              (char *)NULL);
        _exit(126);
}

/* Takes what has come, within the time. */
static bool live_read(struct live *live, int ms)
{
        struct pollfd wait = { .fd = live->master, .events = POLLIN };
        ssize_t n;

        if (poll(&wait, 1, ms) < 1)
                return false;
        if (live->used > sizeof(live->text) / 2) { /* only what came last is of use */
                live->used = sizeof(live->text) / 4;
                memmove(live->text, live->text + sizeof(live->text) / 4, live->used);
        }
        n = read(live->master, live->text + live->used, sizeof(live->text) - 1 - live->used);
        live->used += n > 0 ? (size_t)n : 0;
        live->text[live->used] = '\0';
        return n > 0;
}

/* From now on, only what comes later counts. */
static void live_forget(struct live *live)
{
        live->used = 0;
        live->text[0] = '\0';
}

static void live_await(struct live *live, const char *words)
{
        uint64_t limit = now_ms() + TIMEOUT_MS;

        while (!strstr(live->text, words)) {
                live_read(live, 100);
                if (now_ms() > limit)
                        fail_msg("\"%s\" does not come; the last is:\n%s", words,
                                 live->text + (live->used > 3000 ? live->used - 3000 : 0));
        }
}

/* Types keys until they are seen to have worked: a key may come before the streams are known. */
static void live_type(struct live *live, const char *keys, const char *words)
{
        live_forget(live);
        assert_int_equal(write(live->master, keys, strlen(keys)), strlen(keys));
        live_await(live, words);
}

/* The program has ended: the screen and the modes of the terminal are as before. */
static void live_end(struct live *live, int status)
{
        struct termios after;

        assert_int_equal(await_process(live->pid), status);
        while (live_read(live, 0))
                continue;
        assert_true(live->used >= strlen(LEAVES));
        assert_non_null(strstr(live->text, LEAVES));
        assert_int_equal(tcgetattr(live->slave, &after), 0);
        assert_int_equal(after.c_lflag, live->before.c_lflag);
        assert_int_equal(after.c_iflag, live->before.c_iflag);
        close(live->slave);
        close(live->master);
}

static struct live live;

static void the_view_shows_streams_and_ends_with_q(void **state)
{
        struct daemon_fixture *fixture = *state;
        pid_t reader;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        reader = reader_start(fixture);
        live_start(&live, fixture);
        live_await(&live, ENTERS);
        live_await(&live, "running ");
        live_type(&live, "r", "r rate+");
        live_type(&live, "r", "r rate-");
        live_type(&live, "u", "u user+");
        live_type(&live, "h", "this page");
        live_type(&live, "\x1b", "waits for");
        live_type(&live, " ", "  paused");
        live_forget(&live);
        assert_int_equal(write(live.master, "q", 1), 1);
        live_end(&live, 0);
        reader_stop(reader);
        fixture_stop(fixture);
}

static void a_stream_is_ended_after_a_question(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        id = start_stream(client);
        live_start(&live, fixture);
        live_await(&live, "normal ");
        live_type(&live, "k", "select a stream first");
        live_type(&live, "\x1b[B", "stream ");
        live_type(&live, "k", "? y: end it");
        live_type(&live, "n", "waits for");
        live_await(&live, "waits for");
        live_type(&live, "k", "? y: end it");
        live_type(&live, "y", "is being ended");
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        assert_int_equal(write(live.master, "\x03", 1), 1);
        live_end(&live, 130);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void signals_leave_the_terminal_as_it_was(void **state)
{
        static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGSEGV };
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, "--threads", "1");
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
                live_start(&live, fixture);
                live_await(&live, "q quit");
                kill(live.pid, signals[i]);
                live_end(&live, -signals[i]);
        }
        fixture_stop(fixture);
}

/* The daemon's place stays empty for a while; then another one comes. */
static void a_daemon_that_dies_is_waited_for(void **state)
{
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, "--threads", "1");
        live_start(&live, fixture);
        live_await(&live, "q quit");
        kill(fixture->pid, SIGKILL);
        assert_int_equal(fixture_await_exit(fixture), -SIGKILL);
        live_await(&live, "no daemon for ");
        live_forget(&live);
        START_DAEMON(fixture, "--threads", "1");
        live_await(&live, "0 of 64; queue");
        kill(live.pid, SIGTERM);
        live_end(&live, -SIGTERM);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(one_frame_has_the_daemon_the_users_and_the_streams),
                DAEMON_TEST(data_has_rows_of_streams_with_their_rates),
                DAEMON_TEST(an_ordinary_user_sees_less_and_is_told_so),
                DAEMON_TEST(without_a_terminal_it_says_what_works),
                DAEMON_TEST(without_a_daemon_it_fails_like_other_commands),
                DAEMON_TEST(the_view_shows_streams_and_ends_with_q),
                DAEMON_TEST(a_stream_is_ended_after_a_question),
                DAEMON_TEST(signals_leave_the_terminal_as_it_was),
                DAEMON_TEST(a_daemon_that_dies_is_waited_for),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
