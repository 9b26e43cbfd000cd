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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"

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

/* A line begins with a time like 2026-11-26T12:34:56.789Z. */
#define TIME_BYTES 25

/*
 * The line of one event, without its time.  It goes through a pipe, so that it is there at once.
 */
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
                assert_true(got > TIME_BYTES);                                                     \
                ret_line[got] = '\0';                                                              \
                memmove(ret_line, ret_line + TIME_BYTES, (size_t)got + 1 - TIME_BYTES);            \
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
        assert_int_equal(read(ends[0], bytes, sizeof(bytes)), TIME_BYTES + 10);
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

/* One line as stderr receives it, in a file that is left open at its end. */
static int line_in_file(char *ret_line, size_t bytes)
{
        char path[] = "/tmp/test-log-XXXXXX";
        int fd = mkstemp(path);
        ssize_t got;

        assert_true(fd >= 0);
        unlink(path);
        redirect(fd, LOG_INFO);
        log_warn("event a=%d", 1);
        restore();
        got = pread(fd, ret_line, bytes - 1, 0);
        assert_true(got > 0);
        ret_line[got] = '\0';
        return fd;
}

static void a_line_begins_with_the_time_in_utc(void **state)
{
        char line[256], before[32], after[32];
        time_t now = time(NULL);
        struct tm utc;

        (void)state;
        strftime(before, sizeof(before), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now, &utc));
        close(line_in_file(line, sizeof(line)));
        now = time(NULL);
        strftime(after, sizeof(after), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now, &utc));
        assert_string_equal(line + TIME_BYTES, "warn event a=1\n");
        assert_int_equal(line[TIME_BYTES - 1], ' ');
        assert_int_equal(line[TIME_BYTES - 2], 'Z');
        assert_int_equal(line[19], '.');
        line[19] = '\0';
        assert_true(strcmp(line, before) >= 0 && strcmp(line, after) <= 0);
}

static void a_line_for_the_journal_begins_with_its_priority(void **state)
{
        char path[] = "/tmp/test-log-XXXXXX", stream[64], line[64] = { 0 };
        int fd = mkstemp(path);
        struct stat file;

        (void)state;
        assert_true(fd >= 0 && !unlink(path) && !fstat(fd, &file));
        snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)file.st_dev,
                 (unsigned long long)file.st_ino);
        setenv("JOURNAL_STREAM", stream, 1);
        redirect(fd, LOG_INFO);
        log_error("event a=%d", 1);
        log_info("event a=%d", 2);
        restore();
        assert_true(pread(fd, line, sizeof(line) - 1, 0) > 0);
        assert_string_equal(line, "<3>error event a=1\n<6>info event a=2\n");

        /* stderr is not what the journal reads: it was redirected to a file of the user */
        close(line_in_file(line, sizeof(line)));
        unsetenv("JOURNAL_STREAM");
        close(fd);
        assert_int_equal(line[TIME_BYTES - 1], ' ');
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
        assert_int_equal(lseek(fd, 0, SEEK_END), 1000 * (TIME_BYTES + 21));
        assert_int_equal(pread(fd, bytes, 21, 999 * (TIME_BYTES + 21) + TIME_BYTES), 21);
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

#define MS UINT64_C(1000000)

static void a_place_writes_a_burst_and_then_a_line_a_second(void **state)
{
        struct log_limit limit = { 0 };
        uint64_t now = 1234567 * MS, suppressed;

        (void)state;
        for (int i = 0; i < 10; i++) {
                assert_true(log_limit_pass(&limit, LOG_INFO, now, &suppressed));
                assert_int_equal(suppressed, 0);
        }
        for (int i = 0; i < 700000; i++)
                assert_false(log_limit_pass(&limit, LOG_INFO, now + 999 * MS, &suppressed));
        assert_true(log_limit_pass(&limit, LOG_INFO, now + 1000 * MS, &suppressed));
        assert_int_equal(suppressed, 700000);
        assert_false(log_limit_pass(&limit, LOG_INFO, now + 1000 * MS, &suppressed));

        /* After a long rest it is one burst, however long the rest was. */
        now += 1000000 * MS;
        for (int i = 0; i < 10; i++) {
                assert_true(log_limit_pass(&limit, LOG_INFO, now, &suppressed));
                assert_int_equal(suppressed, !i);
        }
        assert_false(log_limit_pass(&limit, LOG_INFO, now, &suppressed));
}

static void a_place_may_write_more_lines_for_debugging(void **state)
{
        struct log_limit limit = { 0 };
        uint64_t now = 5000 * MS, suppressed;
        uint32_t passed = 0;

        (void)state;
        for (int i = 0; i < 5000; i++)
                passed += log_limit_pass(&limit, LOG_DEBUG, now, &suppressed);
        assert_int_equal(passed, 1000);
        assert_true(log_limit_pass(&limit, LOG_DEBUG, now + 10 * MS, &suppressed));
        assert_int_equal(suppressed, 4000);
}

/* Threads share a place: no line is let through twice, and none is forgotten. */
#define FLOODERS 4u
#define LINES    20000u

struct flood {
        struct log_limit *limit;
        uint64_t passed, suppressed;
};

static void *flood(void *arg)
{
        struct flood *own = arg;
        uint64_t suppressed;

        for (uint32_t i = 0; i < LINES; i++) {
                if (!log_limit_pass(own->limit, LOG_INFO, MS, &suppressed))
                        continue;
                own->passed++;
                own->suppressed += suppressed;
        }
        return NULL;
}

static void counts_each_suppressed_line_of_all_threads(void **state)
{
        struct log_limit limit = { 0 };
        struct flood floods[FLOODERS];
        pthread_t threads[FLOODERS];
        uint64_t passed = 0, suppressed = 0, last;

        (void)state;
        for (uint32_t i = 0; i < FLOODERS; i++) {
                floods[i] = (struct flood){ .limit = &limit };
                assert_int_equal(pthread_create(&threads[i], NULL, flood, &floods[i]), 0);
        }
        for (uint32_t i = 0; i < FLOODERS; i++) {
                assert_int_equal(pthread_join(threads[i], NULL), 0);
                passed += floods[i].passed;
                suppressed += floods[i].suppressed;
        }
        assert_int_equal(passed, 10);
        assert_true(log_limit_pass(&limit, LOG_INFO, 3600000 * MS, &last));
        assert_int_equal(passed + suppressed + last, FLOODERS * LINES);
}

static void lines_with_a_key_are_written_once_a_minute(void **state)
{
        struct log_repeats repeats = { 0 };
        uint64_t now = 5 * MS, repeated = 9;

        (void)state;
        assert_true(log_repeats_pass(&repeats, 0, now, &repeated));
        assert_int_equal(repeated, 0);
        for (uint32_t i = 0; i < 40; i++)
                assert_false(log_repeats_pass(&repeats, 0, now + 59999 * MS, &repeated));
        assert_true(log_repeats_pass(&repeats, 7, now + 59999 * MS, &repeated));
        assert_int_equal(repeated, 0);
        assert_true(log_repeats_pass(&repeats, 0, now + 60000 * MS, &repeated));
        assert_int_equal(repeated, 40);
        assert_false(log_repeats_pass(&repeats, 0, now + 60000 * MS, &repeated));

        /* With one key more than there are places, the one that began first is forgotten. */
        now += 1000000 * MS;
        for (uint64_t key = 100; key < 100 + LOG_KEYS; key++)
                assert_true(log_repeats_pass(&repeats, key, now + key, &repeated));
        assert_false(log_repeats_pass(&repeats, 100, now + 1000, &repeated));
        assert_true(log_repeats_pass(&repeats, 200, now + 1000, &repeated));
        assert_true(log_repeats_pass(&repeats, 100, now + 1001, &repeated));
        assert_int_equal(repeated, 0);
        assert_false(log_repeats_pass(&repeats, 107, now + 1001, &repeated));
}

static size_t lines_of(const char *text, const char *words)
{
        size_t count = 0;

        for (; (text = strstr(text, words)); text++)
                count++;
        return count;
}

static void a_line_says_how_many_were_suppressed(void **state)
{
        char name[] = "/tmp/smv-log-XXXXXX", text[65536] = "";
        const char *said = NULL;
        int file = mkstemp(name);
        uint64_t count = 0;

        (void)state;
        assert_true(file >= 0);
        unlink(name);
        redirect(file, LOG_INFO);
        /* Until the place may write again. */
        while (!said) {
                ssize_t got;

                log_limited(LOG_DEBUG, "not_shown");
                log_limited(LOG_INFO, "peer_refused uid=%u", 7u);
                count++;
                got = pread(file, text, sizeof(text) - 1, 0);
                assert_true(got > 0);
                text[got] = '\0';
                said = strstr(text, "info suppressed event=peer_refused lines=");
        }
        restore();
        close(file);
        assert_int_equal(lines_of(text, "info peer_refused uid=7\n") +
                                 strtoull(strstr(said, "lines=") + 6, NULL, 10),
                         count);
        assert_null(strstr(text, "not_shown"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_line_has_level_event_and_values),
                cmocka_unit_test(a_line_begins_with_the_time_in_utc),
                cmocka_unit_test(a_line_for_the_journal_begins_with_its_priority),
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
                cmocka_unit_test(a_place_writes_a_burst_and_then_a_line_a_second),
                cmocka_unit_test(a_place_may_write_more_lines_for_debugging),
                cmocka_unit_test(lines_with_a_key_are_written_once_a_minute),
                cmocka_unit_test(counts_each_suppressed_line_of_all_threads),
                cmocka_unit_test(a_line_says_how_many_were_suppressed),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
