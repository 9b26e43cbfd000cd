/* log and error: the form of a line, and the behaviour of a trail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/error.h"
#include "daemon/base/log.h"
#include "daemon/base/sys.h"

static int kept_stderr;

/* From here on, stderr is `to`, and the log has looked at it. */
static void redirect(int to, enum log_level lowest)
{
        assert_int_equal(dup2(to, STDERR_FILENO), STDERR_FILENO);
        log_open(lowest);
}

static void restore(void)
{
        redirect(kept_stderr, LOG_INFO);
}

static int set_up(void **state)
{
        (void)state;
        kept_stderr = dup(STDERR_FILENO);
        return kept_stderr < 0;
}

static int tear_down(void **state)
{
        (void)state;
        close(kept_stderr);
        return 0;
}

/* The line of one event.  It goes through a pipe, so that it is there at once. */
#define LINE_OF(ret_line, level, ...)                                                              \
        do {                                                                                       \
                int ends[2];                                                                       \
                ssize_t got;                                                                       \
                assert_int_equal(pipe(ends), 0);                                                   \
                redirect(ends[1], LOG_DEBUG);                                                      \
                log_event(level, __VA_ARGS__);                                                     \
                restore();                                                                         \
                close(ends[1]);                                                                    \
                got = read(ends[0], ret_line, sizeof(ret_line) - 1);                               \
                close(ends[0]);                                                                    \
                assert_true(got > 0);                                                              \
                ret_line[got] = '\0';                                                              \
        } while (0)

static void a_line_has_level_event_and_values(void **state)
{
        const char *volatile none = NULL;
        char line[2048];

        (void)state;
        LINE_OF(line, LOG_INFO, "listening socket=%s pid=%d", "/run/samovar/sock", 42);
        assert_string_equal(line, "info listening socket=/run/samovar/sock pid=42\n");
        LINE_OF(line, LOG_ERROR, "all a=%u b=%lu c=%llu d=%zu e=%5.2f f=%x g=%-4d| h=%%", 1u, 2ul,
                3ull, (size_t)4, 5.678, 255u, 6);
        assert_string_equal(line, "error all a=1 b=2 c=3 d=4 e= 5.68 f=ff g=6   | h=%\n");
        LINE_OF(line, LOG_WARN, "cut text=%.*s none=%s", 3, "abcdef", none);
        assert_string_equal(line, "warn cut text=abc none=-\n");
        LINE_OF(line, LOG_DEBUG, "numbers low=%ld long=%lld", -1L, INT64_C(-9000000000) * 1LL);
        assert_string_equal(line, "debug numbers low=-1 long=-9000000000\n");
}

static void escapes_values_so_that_they_cannot_forge_a_line(void **state)
{
        char all[256], line[2048];
        size_t quotes = 0;

        (void)state;
        LINE_OF(line, LOG_INFO, "x a=%s", "one\nerror y");
        assert_string_equal(line, "info x a=\"one\\x0aerror y\"\n");
        LINE_OF(line, LOG_INFO, "x a=%s", "say \"b=c\" \\");
        assert_string_equal(line, "info x a=\"say \\\"b=c\\\" \\\\\"\n");
        LINE_OF(line, LOG_INFO, "x a=%s", "");
        assert_string_equal(line, "info x a=\"\"\n");
        LINE_OF(line, LOG_INFO, "x a=\"%s\"", "b c");
        assert_string_equal(line, "info x a=\"b c\"\n");
        LINE_OF(line, LOG_INFO, "x a=%c", '\033');
        assert_string_equal(line, "info x a=\"\\x1b\"\n");

        for (int i = 0; i < 255; i++)
                all[i] = (char)(i + 1);
        all[255] = '\0';
        LINE_OF(line, LOG_INFO, "x a=%s", all);
        for (char *c = line; c[1]; c++) {
                assert_in_range((unsigned char)*c, ' ', '~');
                quotes += *c == '"' && c[-1] != '\\';
        }
        assert_int_equal(quotes, 2);
        assert_int_equal(line[strlen(line) - 1], '\n');
}

static void cuts_a_long_line(void **state)
{
        char value[5000], line[6000];

        (void)state;
        memset(value, 'v', sizeof(value) - 1);
        value[sizeof(value) - 1] = '\0';
        LINE_OF(line, LOG_INFO, "x a=%s b=%d", value, 7);
        assert_true(strlen(line) <= 1024);
        assert_string_equal(line + strlen(line) - 4, "...\n");
        assert_null(strstr(line, "b="));
}

static void does_not_write_levels_below_the_threshold(void **state)
{
        char bytes[64];
        int ends[2];

        (void)state;
        assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
        redirect(ends[1], LOG_WARN);
        log_info("quiet");
        log_debug("quieter");
        assert_int_equal(read(ends[0], bytes, sizeof(bytes)), -1);
        log_warn("loud");
        restore();
        assert_int_equal(read(ends[0], bytes, sizeof(bytes)), 10);
        close(ends[0]);
        close(ends[1]);
}

/*
 * Fills a sink that is never read: every line after that is lost and counted, and no writer
 * waits.
 */
static void fill_sink(int to)
{
        uint64_t before = log_lost();
        uint64_t began = sys_clock_ns();

        redirect(to, LOG_INFO);
        for (int i = 0; i < 100000; i++)
                log_info("line number=%d", i);
        restore();
        assert_true(log_lost() > before);
        assert_true(log_lost() <= before + 100000);
        assert_true(sys_clock_ns() - began < UINT64_C(60000000000));
}

static void a_full_pipe_loses_lines_and_never_blocks(void **state)
{
        int ends[2];

        (void)state;
        assert_int_equal(pipe(ends), 0);
        fill_sink(ends[1]);
        assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK,
                         /* the shell's pipe keeps its mode */
                         0);
        close(ends[0]);
        close(ends[1]);
}

static void a_full_socket_loses_lines_and_never_blocks(void **state)
{
        int ends[2];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        fill_sink(ends[1]);
        close(ends[0]);
        close(ends[1]);
}

static int no_second_opening(const char *call, void *arg)
{
        (void)arg;
        return strcmp(call, "open") ? 0 : -EACCES;
}

static void polls_a_pipe_that_cannot_be_reopened_before_it_writes(void **state)
{
        int ends[2];

        (void)state;
        assert_int_equal(pipe(ends), 0);
        sys_set_fault(no_second_opening, NULL);
        fill_sink(ends[1]);
        sys_set_fault(NULL, NULL);
        restore();
        close(ends[0]);
        close(ends[1]);
}

static void a_file_receives_every_line(void **state)
{
        char path[] = "/tmp/test-log-XXXXXX", bytes[64] = { 0 };
        int fd = mkstemp(path);
        uint64_t before = log_lost();

        (void)state;
        assert_true(fd >= 0);
        redirect(fd, LOG_INFO);
        for (int i = 0; i < 1000; i++)
                log_info("line number=%03d", i);
        restore();
        assert_int_equal(log_lost(), before);
        assert_int_equal(lseek(fd, 0, SEEK_END), 1000 * 21);
        assert_int_equal(pread(fd, bytes, 21, 999 * 21), 21);
        assert_string_equal(bytes, "info line number=999\n");
        close(fd);
        unlink(path);
}

static int bottom(int r)
{
        return error_raise(r);
}

static int middle(int r)
{
        return error_pass(bottom(r));
}

static void the_error_trail_lists_every_frame_since_the_error(void **state)
{
        (void)state;
        assert_int_equal(error_pass(middle(-EIO)), -EIO);
        assert_non_null(strstr(error_trail(), "test-log.c:"));
        assert_non_null(strstr(error_trail(), " bottom < test-log.c:"));
        assert_non_null(strstr(error_trail(), " middle < test-log.c:"));
        assert_null(strchr(error_trail(), '/'));

        assert_int_equal(bottom(-ENOMEM), -ENOMEM); /* a new birth, a new trail */
        assert_null(strstr(error_trail(), "middle"));
        assert_int_equal(middle(3), 3); /* an outcome leaves no mark */
        assert_null(strstr(error_trail(), "middle"));
}

static int deep(int depth)
{
        return depth ? error_pass(deep(depth - 1)) : error_raise(-EIO);
}

static void the_error_trail_counts_frames_that_do_not_fit(void **state)
{
        (void)state;
        assert_int_equal(deep(1000), -EIO);
        assert_non_null(strstr(error_trail(), " < 989 more"));
}

static void *look_at_trail(void *arg)
{
        *(size_t *)arg = strlen(error_trail());
        return NULL;
}

static void the_error_trail_is_thread_local(void **state)
{
        pthread_t thread;
        size_t bytes = 99;

        (void)state;
        assert_int_equal(bottom(-EIO), -EIO);
        assert_int_equal(pthread_create(&thread, NULL, look_at_trail, &bytes), 0);
        pthread_join(thread, NULL);
        assert_int_equal(bytes, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_line_has_level_event_and_values),
                cmocka_unit_test(escapes_values_so_that_they_cannot_forge_a_line),
                cmocka_unit_test(cuts_a_long_line),
                cmocka_unit_test(does_not_write_levels_below_the_threshold),
                cmocka_unit_test(a_full_pipe_loses_lines_and_never_blocks),
                cmocka_unit_test(a_full_socket_loses_lines_and_never_blocks),
                cmocka_unit_test(polls_a_pipe_that_cannot_be_reopened_before_it_writes),
                cmocka_unit_test(a_file_receives_every_line),
                cmocka_unit_test(the_error_trail_lists_every_frame_since_the_error),
                cmocka_unit_test(the_error_trail_counts_frames_that_do_not_fit),
                cmocka_unit_test(the_error_trail_is_thread_local),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
