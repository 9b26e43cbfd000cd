/* The listener: whose the socket is, what stands in its way, and what happens without descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/edge/listener.h"
#include "daemon/log.h"
#include "daemon/sys.h"

#define ROUNDS 200

static char directory[64], path[128];
static uint32_t arrived, refused;
static struct edge edge;

/* The edge behind it: it counts. */
void edge_arrive(struct edge *to, int fd)
{
        (void)to;
        arrived++;
        close(fd);
}

void edge_refuse(struct edge *to, int fd, enum smv_code code, const char *message)
{
        (void)to;
        assert_int_equal(code, SMV_BUSY);
        assert_non_null(message);
        refused++;
        close(fd);
}

static void on_end(void *arg)
{
        loop_stop(arg);
}

static void run_for(uint64_t ms)
{
        struct loop_timer *timer;

        assert_int_equal(loop_timer_new(edge.loop, on_end, edge.loop, &timer), 0);
        assert_int_equal(loop_timer_set(timer, ms * 1000000), 0);
        assert_int_equal(loop_run(edge.loop), 0);
        loop_timer_free(timer);
}

static int set_up(void **state)
{
        (void)state;
        strcpy(directory, "/tmp/samovar-listener-XXXXXX");
        assert_non_null(mkdtemp(directory));
        snprintf(path, sizeof(path), "%s/in/sock", directory);
        arrived = refused = 0;
        edge = (struct edge){ .phase = EDGE_SERVING };
        assert_int_equal(loop_new(&edge.loop), 0);
        return 0;
}

static int tear_down(void **state)
{
        char at[160];

        (void)state;
        loop_free(edge.loop);
        snprintf(at, sizeof(at), "%s.lock", path);
        unlink(at);
        unlink(path);
        snprintf(at, sizeof(at), "%s/in", directory);
        rmdir(at);
        return rmdir(directory);
}

static int open_one(struct listener **ret_listener, char *why, size_t why_bytes)
{
        return listener_open(&edge, path, ret_listener, why, why_bytes);
}

static int connect_one(void)
{
        int fd = sys_socket_unix();

        assert_true(fd >= 0);
        if (sys_connect_unix(fd, path) < 0)
                return sys_close(fd);
        return fd;
}

static unsigned mode_of(const char *at)
{
        struct stat st;

        assert_int_equal(stat(at, &st), 0);
        return st.st_mode & 0777;
}

static void the_directory_is_0700_and_the_socket_0600_whatever_the_umask(void **state)
{
        struct listener *listener;
        char why[256], at[160];
        mode_t before = umask(0);

        (void)state;
        assert_int_equal(open_one(&listener, why, sizeof(why)), 0);
        umask(before);
        snprintf(at, sizeof(at), "%s/in", directory);
        assert_int_equal(mode_of(at), 0700);
        assert_int_equal(mode_of(path), 0600);
        snprintf(at, sizeof(at), "%s.lock", path);
        assert_int_equal(mode_of(at), 0600);
        assert_ptr_equal(edge.listener, listener);
        listener_stop(listener);
        listener_stop(listener);
        listener_close(listener);
        assert_null(edge.listener);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(access(at, F_OK), 0); /* the lock file stays */
}

static void a_second_daemon_is_told_who_holds_it(void **state)
{
        struct listener *listener, *second;
        char why[256], holder[64];
        int fd;

        (void)state;
        assert_int_equal(open_one(&listener, why, sizeof(why)), 0);
        assert_int_equal(open_one(&second, why, sizeof(why)), LISTENER_E_HELD);
        snprintf(holder, sizeof(holder), "held by pid %d", (int)getpid());
        assert_non_null(strstr(why, holder));
        assert_non_null(strstr(why, path));
        fd = connect_one(); /* and the first is as it was */
        assert_true(fd >= 0);
        run_for(20);
        assert_int_equal(arrived, 1);
        close(fd);
        listener_close(listener);
}

static void a_stale_socket_is_replaced(void **state)
{
        struct listener *listener;
        char why[256];
        int fd, status;
        pid_t pid;

        (void)state;
        pid = fork();
        if (!pid) {
                _exit(open_one(&listener, why, sizeof(why)) != 0); /* dies without a word */
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(access(path, F_OK), 0);
        assert_int_equal(connect_one(), -1);
        assert_int_equal(open_one(&listener, why, sizeof(why)), 0);
        fd = connect_one();
        assert_true(fd >= 0);
        close(fd);
        listener_close(listener);
}

static void a_file_at_the_path_is_left_alone(void **state)
{
        struct listener *listener;
        char why[256], at[160];
        int fd;

        (void)state;
        snprintf(at, sizeof(at), "%s/in", directory);
        assert_int_equal(mkdir(at, 0700), 0);
        fd = open(path, O_CREAT | O_WRONLY, 0600);
        assert_int_equal(write(fd, "thesis", 6), 6);
        close(fd);
        assert_int_equal(open_one(&listener, why, sizeof(why)), -EEXIST);
        assert_non_null(strstr(why, "no socket"));
        fd = open(path, O_RDONLY);
        assert_int_equal(read(fd, at, 10), 6);
        close(fd);
}

static void a_path_too_long_for_a_socket_says_so(void **state)
{
        struct listener *listener;
        char why[512], longest[200];

        (void)state;
        memset(longest, 'x', sizeof(longest));
        longest[0] = '/';
        longest[108] = '\0';
        assert_int_equal(listener_open(&edge, longest, &listener, why, sizeof(why)), -ENAMETOOLONG);
        assert_non_null(strstr(why, "108 bytes"));
        assert_non_null(strstr(why, "107"));
        longest[107] = '\0';
        assert_true(listener_open(&edge, longest, &listener, why, sizeof(why)) != -ENAMETOOLONG);
        unlink(longest);
        strcat(longest, ".lock");
        unlink(longest);
        if (edge.listener)
                listener_close(edge.listener);
}

static void the_default_path_follows_the_runtime_directory(void **state)
{
        char at[128];

        (void)state;
        setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
        assert_int_equal(listener_default_path(at, sizeof(at)), 0);
        assert_string_equal(at, "/run/user/7/samovar/sock");
        assert_int_equal(listener_default_path(at, 10), -ENAMETOOLONG);
        unsetenv("XDG_RUNTIME_DIR");
        assert_int_equal(listener_default_path(at, sizeof(at)), 0);
        assert_string_equal(at, "/run/samovar/sock");
}

static void without_descriptors_it_refuses_and_does_not_spin(void **state)
{
        struct listener *listener;
        struct rlimit before, few;
        char why[256];
        int fds[8], spent = 0, last = 0;

        (void)state;
        log_open(LOG_ERROR);
        assert_int_equal(open_one(&listener, why, sizeof(why)), 0);
        for (uint32_t i = 0; i < 8; i++) {
                fds[i] = connect_one();
                assert_true(fds[i] >= 0);
        }
        getrlimit(RLIMIT_NOFILE, &before);
        few = before;
        last = dup(fds[0]);
        spent = last;
        few.rlim_cur = (rlim_t)last + 1; /* no number is free below it */
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        while ((last = dup(fds[0])) >= 0)
                ;
        run_for(30);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(refused, 8);
        assert_int_equal(arrived, 0);
        close(spent);
        for (uint32_t i = 0; i < 8; i++)
                close(fds[i]);
        listener_close(listener);
}

/* One starter: waits for the start, opens, says how it went, holds it until told to end. */
static void starter(int start, int result, int stop)
{
        struct listener *listener;
        char why[256], byte;
        int r;

        if (read(start, &byte, 1) < 0)
                _exit(1);
        r = open_one(&listener, why, sizeof(why));
        byte = (char)(r == 0 ? 'W' : r == LISTENER_E_HELD ? 'H' : '?');
        if (write(result, &byte, 1) != 1 || read(stop, &byte, 1) < 0)
                _exit(1);
        _exit(0); /* leaves the socket behind for the next round */
}

static void of_two_starters_one_wins_each_time(void **state)
{
        (void)state;
        for (uint32_t round = 0; round < ROUNDS; round++) {
                int start[2], result[2], stop[2], fd;
                char said[2];
                pid_t pids[2];

                assert_int_equal(pipe(start) | pipe(result) | pipe(stop), 0);
                for (uint32_t i = 0; i < 2; i++) {
                        pids[i] = fork();
                        if (!pids[i]) {
                                close(start[1]);
                                close(stop[1]);
                                starter(start[0], result[1], stop[0]);
                        }
                }
                close(start[0]);
                close(stop[0]);
                close(start[1]); /* both see the end at once */
                assert_int_equal(read(result[0], &said[0], 1), 1);
                assert_int_equal(read(result[0], &said[1], 1), 1);
                assert_true((said[0] == 'W' && said[1] == 'H') ||
                            (said[0] == 'H' && said[1] == 'W'));
                fd = connect_one();
                assert_true(fd >= 0);
                close(fd);
                close(stop[1]);
                close(result[0]);
                close(result[1]);
                for (uint32_t i = 0; i < 2; i++) {
                        int status;

                        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                        assert_int_equal(status, 0);
                }
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(the_directory_is_0700_and_the_socket_0600_whatever_the_umask),
                TEST(a_second_daemon_is_told_who_holds_it),
                TEST(a_stale_socket_is_replaced),
                TEST(a_file_at_the_path_is_left_alone),
                TEST(a_path_too_long_for_a_socket_says_so),
                TEST(the_default_path_follows_the_runtime_directory),
                TEST(without_descriptors_it_refuses_and_does_not_spin),
                TEST(of_two_starters_one_wins_each_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
