#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"

#define MS UINT64_C(1000000)

static char directory[] = "/tmp/test-sys-XXXXXX";
static char socket_path[64];

static int set_up(void **state)
{
        (void)state;
        if (!mkdtemp(directory))
                return 1;
        snprintf(socket_path, sizeof(socket_path), "%s/sock", directory);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        return rmdir(directory);
}

/* Fails the n-th call with EIO, and records which call it was. */
struct nth {
        uint32_t left;
        const char *failed;
};

static int fail_nth(const char *call, void *arg)
{
        struct nth *nth = arg;

        if (nth->failed || nth->left--)
                return 0;
        nth->failed = call;
        return -EIO;
}

static int open_and_serve(void)
{
        uint8_t byte = 0;
        int fd, r;

        fd = sys_socket_unix();
        if (fd < 0)
                return fd;
        r = sys_bind_unix(fd, socket_path, 0600);
        if (!r)
                r = sys_listen(fd, 4);
        if (!r)
                r = sys_random(&byte, 1);
        sys_close(fd);
        if (r != -EIO || access(socket_path, F_OK) == 0)
                unlink(socket_path);
        return r;
}

static void the_fault_hook_fails_each_call_in_turn(void **state)
{
        const char *expected[] = { "socket", "bind", "listen", "getrandom" };
        struct sys_resources before, after;

        (void)state;
        assert_int_equal(sys_resources(&before), 0);
        for (uint32_t i = 0; i <= 4; i++) {
                struct nth nth = { .left = i };

                sys_set_fault(fail_nth, &nth);
                assert_int_equal(open_and_serve(), i < 4 ? -EIO : 0);
                sys_set_fault(NULL, NULL);
                if (i < 4)
                        assert_string_equal(nth.failed, expected[i]);
                else
                        assert_null(nth.failed);
        }
        assert_int_equal(sys_resources(&after), 0);
        assert_int_equal(after.descriptors, before.descriptors);
}

static void creates_the_socket_with_its_final_mode(void **state)
{
        mode_t before = umask(0);
        struct stat st;
        int fd = sys_socket_unix();

        (void)state;
        assert_true(fd >= 0);
        assert_int_equal(sys_bind_unix(fd, socket_path, 0600), 0);
        assert_int_equal(stat(socket_path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(umask(before), 0); /* put back as it was */
        assert_int_equal(sys_bind_unix(fd, socket_path, 0600), -EADDRINUSE);
        assert_int_equal(sys_unlink(socket_path), 0);
        assert_int_equal(sys_unlink(socket_path), -ENOENT);
        assert_int_equal(sys_close(fd), -1);
        assert_int_equal(sys_close(-1), -1);
}

static void refuses_a_socket_path_that_is_too_long_or_empty(void **state)
{
        char path[200];
        int fd = sys_socket_unix();

        (void)state;
        memset(path, 'a', sizeof(path));
        path[108] = '\0';
        assert_int_equal(sys_bind_unix(fd, path, 0600), -ENAMETOOLONG);
        assert_int_equal(sys_connect_unix(fd, path), -ENAMETOOLONG);
        assert_int_equal(sys_bind_unix(fd, "", 0600), -EINVAL);
        sys_close(fd);
}

static void reports_uid_gid_pid_and_groups_of_a_peer(void **state)
{
        int listener = sys_socket_unix(), client = sys_socket_unix(), served;
        uint32_t uid = 0, gid = 0, seen[64];
        int32_t pid = 0;
        gid_t groups[64];
        char bytes[8];
        int count;

        (void)state;
        assert_int_equal(sys_bind_unix(listener, socket_path, 0600), 0);
        assert_int_equal(sys_listen(listener, 4), 0);
        assert_int_equal(sys_accept(listener), -EAGAIN);
        assert_int_equal(sys_connect_unix(client, socket_path), 0);
        served = sys_accept(listener);
        assert_true(served >= 0);
        assert_int_equal(fcntl(served, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        assert_int_equal(fcntl(served, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(sys_peer_cred(served, &uid, &gid, &pid), 0);
        assert_int_equal(uid, getuid());
        assert_int_equal(gid, getgid());
        assert_int_equal(pid, getpid());
        count = getgroups(64, groups);
        assert_true(count >= 0); /* more than any process is likely to have */
        assert_int_equal(sys_peer_groups(served, seen, 64), count);
        for (int i = 0; i < count; i++)
                assert_int_equal(seen[i], groups[i]);
        assert_int_equal(sys_peer_groups(served, seen, 0), 0);

        assert_int_equal(sys_read(served, bytes, sizeof(bytes)), -EAGAIN);
        assert_int_equal(sys_send(client, "abc", 3), 3);
        assert_int_equal(sys_read(served, bytes, sizeof(bytes)), 3);
        sys_close(served);
        assert_int_equal(sys_send(client, "abc", 3), -EPIPE); /* and no SIGPIPE */
        sys_close(client);
        sys_close(listener);
        assert_int_equal(sys_unlink(socket_path), 0);
}

static void a_file_lock_has_one_owner(void **state)
{
        char path[80];
        int a, b;

        (void)state;
        snprintf(path, sizeof(path), "%s/lock", directory);
        a = sys_open(path, O_RDWR | O_CREAT, 0600);
        b = sys_open(path, O_RDWR, 0);
        assert_true(a >= 0 && b >= 0);
        assert_int_equal(sys_flock(a), 0);
        assert_int_equal(sys_flock(b), -EWOULDBLOCK);
        sys_close(a);
        assert_int_equal(sys_flock(b), 0);
        sys_close(b);
        assert_int_equal(sys_unlink(path), 0);
        assert_int_equal(sys_open(path, O_RDONLY, 0), -ENOENT);
}

static void reports_a_size_only_for_regular_files(void **state)
{
        int fd = sys_open("/dev/null", O_RDONLY, 0);
        uint64_t bytes = 7;

        (void)state;
        assert_int_equal(sys_file_size(fd, &bytes), -EINVAL);
        assert_int_equal(bytes, 7);
        sys_close(fd);
        fd = sys_open("/proc/self/exe", O_RDONLY, 0);
        assert_int_equal(sys_file_size(fd, &bytes), 0);
        assert_true(bytes > 1000);
        assert_int_equal(sys_pread(fd, &(uint8_t[4]){ 0 }, 4, UINT64_MAX), -EINVAL);
        sys_close(fd);
}

static void writing_to_a_file_changes_its_mark(void **state)
{
        struct sys_mark before, after;
        char path[64], byte = 0;
        int fd;

        (void)state;
        snprintf(path, sizeof(path), "%s/marked", directory);
        fd = sys_open(path, O_RDWR | O_CREAT, 0600);
        assert_int_equal(sys_write(fd, "abc", 3), 3);
        assert_int_equal(sys_file_mark(fd, &before), 0);
        assert_int_equal(before.bytes, 3);
        assert_int_equal(sys_pread(fd, &byte, 1, 1), 1);
        assert_int_equal(sys_file_mark(fd, &after), 0);
        assert_memory_equal(&before, &after, sizeof(before));
        usleep(20000); /* a clock tick, for kernels that stamp no finer */
        assert_int_equal(pwrite(fd, "x", 1, 1), 1);
        assert_int_equal(sys_file_mark(fd, &after), 0);
        assert_memory_not_equal(&before, &after, sizeof(before));
        assert_int_equal(sys_unlink(path), 0);
        sys_close(fd);
}

/* Data that was just written is in memory; a file system that cannot tell does not claim it. */
static void reads_cached_file_data_without_waiting(void **state)
{
        char path[64], byte = 0;
        ssize_t n;
        int fd;

        (void)state;
        snprintf(path, sizeof(path), "%s/near", directory);
        fd = sys_open(path, O_RDWR | O_CREAT, 0600);
        assert_int_equal(sys_write(fd, "abc", 3), 3);
        n = sys_pread_cached(fd, &byte, 1, 1);
        assert_true((n == 1 && byte == 'b') || n == -EOPNOTSUPP);
        assert_int_equal(sys_pread_cached(fd, &byte, 1, UINT64_MAX), -EINVAL);
        assert_int_equal(sys_read_ahead(fd, 0, 3), 0);
        assert_int_equal(sys_read_ahead(-1, 0, 3), -EBADF);
        assert_int_equal(sys_unlink(path), 0);
        sys_close(fd);
}

static void on_alarm(int number)
{
        (void)number;
}

/* A timer interrupts a blocking read again and again; the byte comes long after. */
static void *write_later(void *arg)
{
        usleep(60000);
        assert_int_equal(sys_write(*(int *)arg, "x", 1), 1);
        return NULL;
}

static void restarts_an_interrupted_call(void **state)
{
        struct sigaction action = { .sa_handler = on_alarm }, before;
        struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
        pthread_t thread;
        int ends[2];
        timer_t timer;
        char byte;

        (void)state;
        assert_int_equal(pipe(ends), 0);
        sigaction(SIGALRM, &action, &before); /* without SA_RESTART */
        assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
        assert_int_equal(sys_thread(&thread, "writer", write_later, &ends[1]), 0);
        timer_settime(timer, 0, &often, NULL);
        assert_int_equal(sys_read(ends[0], &byte, 1), 1);
        timer_delete(timer);
        sigaction(SIGALRM, &before, NULL);
        pthread_join(thread, NULL);
        close(ends[0]);
        close(ends[1]);
}

struct seen {
        char name[16];
        sigset_t blocked;
        _Atomic uint32_t go;
};

static void *look_around(void *arg)
{
        struct seen *seen = arg;

        while (!atomic_load(&seen->go))
                sys_futex_wait((uint32_t *)&seen->go, 0, UINT64_MAX);
        pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
        pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
        return NULL;
}

static void a_new_thread_has_a_name_and_blocks_signals(void **state)
{
        struct seen seen = { .go = 0 };
        struct sys_resources before, during, after;
        sigset_t mine;
        pthread_t thread;

        (void)state;
        assert_int_equal(sys_resources(&before), 0);
        assert_int_equal(sys_thread(&thread, "a-name-that-is-too-long", look_around, &seen), 0);
        assert_int_equal(sys_resources(&during), 0);
        assert_int_equal(during.threads, before.threads + 1);
        atomic_store(&seen.go, 1);
        assert_int_equal(sys_futex_wake((uint32_t *)&seen.go), 0);
        pthread_join(thread, NULL);
        assert_int_equal(sys_resources(&after), 0);
        assert_int_equal(after.threads, before.threads);

        assert_string_equal(seen.name, "a-name-that-is-");
        assert_true(sigismember(&seen.blocked, SIGTERM));
        assert_true(sigismember(&seen.blocked, SIGPIPE));
        pthread_sigmask(SIG_SETMASK, NULL, &mine);
        assert_false(sigismember(&mine, SIGTERM));
}

static void futex_wait_returns_at_its_deadline(void **state)
{
        uint32_t word = 5;
        uint64_t began = sys_clock_ns();

        (void)state;
        assert_int_equal(sys_futex_wait(&word, 4, UINT64_MAX), 0); /* another value: at once */
        assert_int_equal(sys_futex_wait(&word, 5, 0), 0);          /* long past: at once */
        assert_true(sys_clock_ns() - began < 1000 * MS);
        assert_int_equal(sys_futex_wait(&word, 5, sys_clock_ns() + 20 * MS), 0);
        assert_true(sys_clock_ns() - began >= 20 * MS);
        assert_int_equal(sys_futex_wait((uint32_t *)((char *)&word + 1), 0, 0), -EINVAL);
}

/* Neighbouring maps may be one to the kernel, so one of ours is cut in three instead. */
static void counts_descriptors_mappings_and_threads_exactly(void **state)
{
        struct sys_resources before, during, after;
        char *pages = sys_map(3 * 4096);
        int fd;

        (void)state;
        assert_non_null(pages);
        assert_int_equal(pages[12000], 0);
        assert_int_equal(sys_resources(&before), 0);
        assert_int_equal(sys_resources(&before), 0);
        fd = sys_eventfd();
        assert_true(fd >= 0);
        assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
        assert_int_equal(sys_resources(&during), 0);
        assert_int_equal(during.descriptors, before.descriptors + 1);
        assert_int_equal(during.mappings, before.mappings + 2);
        sys_close(fd);
        assert_int_equal(mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE), 0);
        assert_int_equal(sys_resources(&after), 0);
        assert_int_equal(after.descriptors, before.descriptors);
        assert_int_equal(after.mappings, before.mappings);
        sys_unmap(pages, 3 * 4096);
}

static void random_bytes_differ(void **state)
{
        uint8_t a[600] = { 0 }, b[600] = { 0 };
        uint32_t zeros = 0;

        (void)state;
        assert_int_equal(sys_random(a, sizeof(a)), 0);
        assert_int_equal(sys_random(b, sizeof(b)), 0);
        assert_memory_not_equal(a, b, sizeof(a));
        for (size_t i = 0; i < sizeof(a); i++)
                zeros += a[i] == 0;
        assert_true(zeros < 60);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_fault_hook_fails_each_call_in_turn),
                cmocka_unit_test(creates_the_socket_with_its_final_mode),
                cmocka_unit_test(refuses_a_socket_path_that_is_too_long_or_empty),
                cmocka_unit_test(reports_uid_gid_pid_and_groups_of_a_peer),
                cmocka_unit_test(a_file_lock_has_one_owner),
                cmocka_unit_test(reports_a_size_only_for_regular_files),
                cmocka_unit_test(writing_to_a_file_changes_its_mark),
                cmocka_unit_test(reads_cached_file_data_without_waiting),
                cmocka_unit_test(restarts_an_interrupted_call),
                cmocka_unit_test(a_new_thread_has_a_name_and_blocks_signals),
                cmocka_unit_test(futex_wait_returns_at_its_deadline),
                cmocka_unit_test(counts_descriptors_mappings_and_threads_exactly),
                cmocka_unit_test(random_bytes_differ),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
