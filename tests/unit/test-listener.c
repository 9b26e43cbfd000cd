/*
 * The listener: the owner of the socket, obstacles in its place, and behaviour without free
 * descriptors.
 */
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

#include "daemon/edge/accept.h"
#include "daemon/edge/listener.h"
#include "base/log.h"
#include "base/sys.h"

#define ROUNDS 200

static char directory[64], path[128];
static uint32_t arrived, refused;
static struct edge edge;

/* The edge behind it: it counts. */
void accept_peer(struct edge *to, int fd)
{
        (void)to;
        arrived++;
        close(fd);
}

void accept_refuse_for_descriptors(struct edge *to, int fd)
{
        (void)to;
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

/* Both steps.  After an error there is no listener. */
static int open_with(const struct listener_conf *conf, struct listener **ret_listener, char *why,
                     size_t why_bytes)
{
        int r = listener_new(conf, ret_listener, why, why_bytes);

        if (r)
                return r;
        r = listener_start(*ret_listener, &edge, why, why_bytes);
        if (r)
                *ret_listener = listener_close(*ret_listener);
        return r;
}

static int open_as(uint32_t mode, const char *group, struct listener **ret_listener, char *why,
                   size_t why_bytes)
{
        const struct listener_conf conf = {
                .path = path, .mode = mode, .group = group, .passed_fd = -1
        };

        return open_with(&conf, ret_listener, why, why_bytes);
}

static int open_one(struct listener **ret_listener, char *why, size_t why_bytes)
{
        return open_as(0600, NULL, ret_listener, why, why_bytes);
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

static void by_default_only_the_owner_can_access_the_socket(void **state)
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
        listener_stop(listener);
        listener_stop(listener);
        listener_close(listener);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(access(at, F_OK), 0); /* the lock file stays */
}

/* A group that is not the one we make files with, if there is one that we may give: */
static gid_t another_group(void)
{
        gid_t groups[64];
        int count = getgroups(64, groups);

        if (!geteuid())
                return 65532;
        for (int i = 0; i < count; i++)
                if (groups[i] != getegid())
                        return groups[i];
        return getegid();
}

static unsigned group_of(const char *at)
{
        struct stat st;

        assert_int_equal(stat(at, &st), 0);
        return st.st_gid;
}

static void sets_the_requested_modes_under_any_umask(void **state)
{
        static const struct asked {
                unsigned mode, directory, umask;
                bool group;
        } asked[] = {
                { 0600, 0700, 0000, false }, { 0600, 0700, 0077, false },
                { 0660, 0750, 0000, false }, { 0660, 0750, 0077, false },
                { 0660, 0750, 0000, true },  { 0660, 0750, 0077, true },
                { 0666, 0755, 0000, false }, { 0666, 0755, 0077, true },
        };
        struct listener *listener;
        char why[256], in[96], group[16];

        (void)state;
        snprintf(in, sizeof(in), "%s/in", directory);
        snprintf(group, sizeof(group), "%u", (unsigned)another_group());
        for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
                const struct asked *a = &asked[i];
                unsigned expected = a->group ? another_group() : getegid();
                mode_t before = umask(a->umask);
                char lock[160];

                assert_int_equal(
                        open_as(a->mode, a->group ? group : NULL, &listener, why, sizeof(why)), 0);
                umask(before);
                snprintf(lock, sizeof(lock), "%s.lock", path);
                assert_int_equal(mode_of(in), a->directory);
                assert_int_equal(mode_of(path), a->mode);
                assert_int_equal(mode_of(lock) & ~0600u, 0); /* no other process can take it */
                assert_int_equal(group_of(in), expected);
                assert_int_equal(group_of(path), expected);
                listener_close(listener);
                unlink(lock);
                assert_int_equal(rmdir(in), 0);
        }
}

/* Checked before each system call in between: the socket is no more open than this. */
struct watched {
        unsigned mode, gid, calls;
        bool listens;
};

static void look_at(const struct watched *watched, const char *at, unsigned most)
{
        struct stat st;

        if (stat(at, &st))
                return;
        if (st.st_gid != watched->gid) /* not yet given: its owner's alone */
                most &= 0700;
        assert_int_equal(st.st_mode & 0777 & ~most, 0);
}

static int on_call(const char *call, void *arg)
{
        struct watched *watched = arg;
        char in[96];

        snprintf(in, sizeof(in), "%s/in", directory);
        look_at(watched, in, watched->mode == 0666 ? 0755 : 0750);
        look_at(watched, path, watched->mode);
        if (!strcmp(call, "listen")) { /* connections made before this are refused */
                assert_int_equal(mode_of(path), watched->mode);
                assert_int_equal(group_of(path), watched->gid);
                watched->listens = true;
        }
        watched->calls++;
        return 0;
}

static void the_socket_is_never_more_open_than_requested(void **state)
{
        struct watched watched = { .mode = 0660, .gid = another_group() };
        mode_t before = umask(0);
        struct listener *listener;
        char why[256], group[16];

        (void)state;
        snprintf(group, sizeof(group), "%u", watched.gid);
        sys_set_fault(on_call, &watched);
        assert_int_equal(open_as(watched.mode, group, &listener, why, sizeof(why)), 0);
        sys_set_fault(NULL, NULL);
        umask(before);
        assert_true(watched.listens);
        assert_true(watched.calls > 10);
        listener_close(listener);
}

static void keeps_the_mode_of_an_existing_directory(void **state)
{
        struct listener *listener;
        char why[256], in[96];

        (void)state;
        log_open(LOG_ERROR);
        snprintf(in, sizeof(in), "%s/in", directory);
        assert_int_equal(mkdir(in, 0700), 0);
        assert_int_equal(open_as(0666, NULL, &listener, why, sizeof(why)), 0);
        assert_int_equal(mode_of(in), 0700);
        assert_int_equal(mode_of(path), 0666);
        listener_close(listener);
}

static void refuses_an_unknown_group_before_it_creates_files(void **state)
{
        static const char *const none[] = { "no such-group", "4294967295", "99999999999", "-1" };
        struct listener *listener;
        char why[256], expected[128];

        (void)state;
        for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
                assert_int_equal(open_as(0660, none[i], &listener, why, sizeof(why)), -ENOENT);
                snprintf(expected, sizeof(expected), "socket_group is %s: there is no such group",
                         none[i]);
                assert_string_equal(why, expected);
                assert_int_equal(rmdir(path), -1);
                assert_int_equal(errno, ENOENT);
        }
        assert_int_equal(open_as(0660, "line\nfeed", &listener, why, sizeof(why)), -ENOENT);
        assert_string_equal(why, "socket_group is line?feed: there is no such group");
}

/* A daemon that may not give its socket away says so, and leaves none behind. */
static int refuse_group(const char *call, void *arg)
{
        struct stat st;

        (void)arg;
        return strcmp(call, "fchownat") || stat(path, &st) ? 0 : -EPERM;
}

static void refuses_a_group_that_the_daemon_cannot_set(void **state)
{
        struct listener *listener;
        char why[256], expected[256], own[16];

        (void)state;
        snprintf(own, sizeof(own), "%u", (unsigned)getegid());
        sys_set_fault(refuse_group, NULL);
        assert_int_equal(open_as(0660, own, &listener, why, sizeof(why)), -EPERM);
        sys_set_fault(NULL, NULL);
        snprintf(expected, sizeof(expected),
                 "socket_group is %s, and a daemon that is neither root's nor in that group cannot "
                 "give it %s",
                 own, path);
        assert_string_equal(why, expected);
        assert_int_equal(access(path, F_OK), -1);
}

/*
 * An attacker that may write to the directory puts a link in the socket's place: the mode of
 * the link's target stays closed.
 */
static int swap(const char *call, void *arg)
{
        struct stat st;

        if (!strcmp(call, "open") && !stat(path, &st) && S_ISSOCK(st.st_mode)) {
                unlink(path);
                assert_int_equal(symlink(arg, path), 0);
        }
        return 0;
}

static void does_not_follow_a_symlink_that_replaces_the_socket(void **state)
{
        struct listener *listener;
        char why[256], secret[96];
        int fd;

        (void)state;
        snprintf(secret, sizeof(secret), "%s/secret", directory);
        fd = open(secret, O_CREAT | O_WRONLY, 0600);
        assert_true(fd >= 0);
        close(fd);
        sys_set_fault(swap, secret);
        assert_int_equal(open_as(0666, NULL, &listener, why, sizeof(why)), -ESTALE);
        sys_set_fault(NULL, NULL);
        assert_non_null(strstr(why, path));
        assert_int_equal(mode_of(secret), 0600);
        unlink(secret);
}

static void refuses_to_start_beside_another_daemon_and_names_its_pid(void **state)
{
        struct listener *listener, *second;
        char why[256], holder[64];
        int fd;

        (void)state;
        assert_int_equal(open_one(&listener, why, sizeof(why)), 0);
        assert_int_equal(open_one(&second, why, sizeof(why)), LISTENER_E_HELD);
        snprintf(holder, sizeof(holder), "in use by process %d", (int)getpid());
        assert_non_null(strstr(why, holder));
        assert_non_null(strstr(why, path));
        fd = connect_one(); /* and the first is as it was */
        assert_true(fd >= 0);
        run_for(20);
        assert_int_equal(arrived, 1);
        close(fd);
        listener_close(listener);
}

static void replaces_a_stale_socket(void **state)
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

static void does_not_remove_another_file_at_the_path(void **state)
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
        assert_non_null(strstr(why, "not a socket"));
        fd = open(path, O_RDONLY);
        assert_int_equal(read(fd, at, 10), 6);
        close(fd);
}

static void refuses_a_path_too_long_for_a_socket_with_the_limit(void **state)
{
        struct listener *listener = NULL;
        char why[512], longest[200];

        const struct listener_conf conf = { .path = longest, .mode = 0600, .passed_fd = -1 };

        (void)state;
        memset(longest, 'x', sizeof(longest));
        longest[0] = '/';
        longest[108] = '\0';
        assert_int_equal(open_with(&conf, &listener, why, sizeof(why)), -ENAMETOOLONG);
        assert_non_null(strstr(why, "108 bytes"));
        assert_non_null(strstr(why, "107"));
        longest[107] = '\0';
        assert_true(open_with(&conf, &listener, why, sizeof(why)) != -ENAMETOOLONG);
        unlink(longest);
        strcat(longest, ".lock");
        unlink(longest);
        listener_close(listener);
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

static void refuses_connections_without_free_descriptors_and_does_not_spin(void **state)
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

static void exactly_one_of_two_concurrent_starts_succeeds(void **state)
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
                TEST(by_default_only_the_owner_can_access_the_socket),
                TEST(sets_the_requested_modes_under_any_umask),
                TEST(the_socket_is_never_more_open_than_requested),
                TEST(keeps_the_mode_of_an_existing_directory),
                TEST(refuses_an_unknown_group_before_it_creates_files),
                TEST(refuses_a_group_that_the_daemon_cannot_set),
                TEST(does_not_follow_a_symlink_that_replaces_the_socket),
                TEST(refuses_to_start_beside_another_daemon_and_names_its_pid),
                TEST(replaces_a_stale_socket),
                TEST(does_not_remove_another_file_at_the_path),
                TEST(refuses_a_path_too_long_for_a_socket_with_the_limit),
                TEST(the_default_path_follows_the_runtime_directory),
                TEST(refuses_connections_without_free_descriptors_and_does_not_spin),
                TEST(exactly_one_of_two_concurrent_starts_succeeds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
