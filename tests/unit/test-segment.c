/* Segments: what a client can do with the memory that it was lent, and what it cannot. */
#include "daemon/ipc/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "tests/skip.h"

#define BYTES   (20u * 4096)
#define NOBODY  65534
#define SKIPPED 77

static struct segment make(enum segment_writer writer)
{
        struct segment segment = { .fd = -1 };

        assert_int_equal(segment_new("test-segment", BYTES, writer, &segment), 0);
        assert_int_equal(segment.bytes, BYTES);
        assert_int_equal(segment.writer, writer);
        return segment;
}

static int lend(const struct segment *segment)
{
        int fd = segment_lend(segment);

        assert_true(fd >= 0 && fd != segment->fd);
        return fd;
}

/* As a client maps it: NULL if it may not. */
static uint8_t *map(int fd, int protection)
{
        void *at = mmap(NULL, BYTES, protection, MAP_SHARED, fd, 0);

        return at == MAP_FAILED ? NULL : at;
}

static uint64_t pages_of(int fd)
{
        struct stat stat;

        assert_int_equal(fstat(fd, &stat), 0);
        assert_int_equal(stat.st_size, BYTES);
        return (uint64_t)stat.st_blocks * 512 / 4096;
}

static bool is_zero(const uint8_t *bytes)
{
        for (size_t i = 0; i < BYTES; i++)
                if (bytes[i])
                        return false;
        return true;
}

/* Runs it in a child; its exit status, or -signal. */
static int in_child(int (*what)(void *arg), void *arg)
{
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (!pid) {
                signal(SIGSEGV, SIG_DFL); /* a sanitizer would report it as a bug */
                signal(SIGBUS, SIG_DFL);
                _exit(what(arg));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void each_side_sees_the_writes_of_the_other(void **state)
{
        struct segment d = make(SEGMENT_DAEMON_WRITES), c = make(SEGMENT_CLIENT_WRITES);
        int d_fd = lend(&d), c_fd = lend(&c);
        uint8_t *their_d = map(d_fd, PROT_READ), *their_c = map(c_fd, PROT_READ | PROT_WRITE);

        (void)state;
        assert_non_null(their_d);
        assert_non_null(their_c);
        assert_true(is_zero(their_d) && is_zero(their_c));
        memset(d.at, 1, BYTES);
        memset(their_c, 2, BYTES);
        assert_memory_equal(their_d, d.at, BYTES);
        assert_memory_equal(their_c, c.at, BYTES);
        assert_int_equal(((const uint8_t *)c.at)[BYTES - 1], 2);
        munmap(their_d, BYTES);
        munmap(their_c, BYTES);
        close(d_fd);
        close(c_fd);
        segment_free(&d, false);
        segment_free(&c, false);
        assert_null(d.at);
        segment_free(&d, false); /* what is freed already, too */
}

static void all_pages_are_allocated_at_the_start(void **state)
{
        struct segment segment = make(SEGMENT_DAEMON_WRITES);

        (void)state;
        assert_int_equal(pages_of(segment.fd), BYTES / 4096);
        assert_true(fcntl(segment.fd, F_GETFD) & FD_CLOEXEC);
        segment_free(&segment, false);
}

static void no_process_can_change_the_sealed_size(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct segment segment = make(i ? SEGMENT_CLIENT_WRITES : SEGMENT_DAEMON_WRITES);
                int lent = lend(&segment), seals = fcntl(lent, F_GET_SEALS), again;

                assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
                                 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
                assert_int_equal(seals & F_SEAL_WRITE, 0);
                again = sys_reopen(lent, O_RDWR); /* by root, or one of our own uid */
                if (again < 0)
                        again = dup(segment.fd);
                for (int j = 0; j < 2; j++) {
                        assert_int_equal(ftruncate(again, j ? 2 * BYTES : 4096), -1);
                        assert_int_equal(errno, EPERM);
                        assert_int_equal(fallocate(again, 0, BYTES, 4096), -1);
                        assert_int_equal(errno, EPERM);
                        assert_int_equal(fcntl(again, F_ADD_SEALS, F_SEAL_WRITE), -1);
                        assert_int_equal(errno, EPERM);
                }
                assert_int_equal(ftruncate(lent, 0), -1);
                assert_int_equal(pages_of(lent), BYTES / 4096);
                close(again);
                close(lent);
                segment_free(&segment, false);
        }
}

static void lends_the_daemons_segment_read_only(void **state)
{
        struct segment segment = make(SEGMENT_DAEMON_WRITES);
        int lent = lend(&segment);
        uint8_t *at = map(lent, PROT_READ);

        (void)state;
        assert_int_equal(fcntl(lent, F_GETFL) & O_ACCMODE, O_RDONLY);
        assert_null(map(lent, PROT_READ | PROT_WRITE));
        assert_int_equal(errno, EACCES);
        assert_non_null(at);
        assert_int_equal(mprotect(at, BYTES, PROT_READ | PROT_WRITE), -1);
        assert_int_equal(errno, EACCES);
        assert_int_equal(write(lent, "x", 1), -1);
        assert_int_equal(fallocate(lent, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
        assert_int_equal(errno, EBADF);
        munmap(at, BYTES);
        close(lent);
        segment_free(&segment, false);
}

/*
 * Runs as another user, which has the descriptors that it was sent, and tries to get more
 * access.
 */
static int reopen_as_nobody(void *arg)
{
        const int *lent = arg;
        int fd, r;

        if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
                return SKIPPED;
        for (int i = 0; i < 2; i++) {
                fd = sys_reopen(lent[i], O_RDWR);
                if (fd != -EACCES)
                        return 1;
                if (!fchmod(lent[i], 0666) || errno != EPERM)
                        return 2;
        }
        r = !map(lent[0], PROT_READ) || map(lent[0], PROT_READ | PROT_WRITE) ||
            !map(lent[1], PROT_READ | PROT_WRITE);
        return r ? 3 : 0;
}

static void another_user_cannot_reopen_a_segment_with_more_rights(void **state)
{
        struct segment d = make(SEGMENT_DAEMON_WRITES), c = make(SEGMENT_CLIENT_WRITES);
        int lent[2] = { lend(&d), lend(&c) };
        int r = in_child(reopen_as_nobody, lent);

        (void)state;
        close(lent[0]);
        close(lent[1]);
        segment_free(&d, false);
        segment_free(&c, false);
        if (r == SKIPPED)
                skip_because("only root can be two users");
        assert_int_equal(r, 0);
}

static void a_lent_descriptor_shares_no_offset_and_no_flags(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct segment segment = make(i ? SEGMENT_CLIENT_WRITES : SEGMENT_DAEMON_WRITES);
                int lent = lend(&segment), flags = fcntl(segment.fd, F_GETFL);

                assert_int_equal(lseek(lent, 4000, SEEK_SET), 4000);
                assert_int_equal(lseek(segment.fd, 0, SEEK_CUR), 0);
                assert_int_equal(fcntl(lent, F_SETFL, O_NONBLOCK | O_APPEND), 0);
                assert_int_equal(fcntl(segment.fd, F_GETFL), flags);
                close(lent);
                segment_free(&segment, false);
        }
}

static int write_there(void *arg)
{
        *(volatile uint8_t *)arg = 1;
        return 0;
}

static void the_daemon_cannot_write_the_clients_segment(void **state)
{
        struct segment d = make(SEGMENT_DAEMON_WRITES), c = make(SEGMENT_CLIENT_WRITES);

        (void)state;
        assert_int_equal(in_child(write_there, d.at), 0);
        assert_int_equal(in_child(write_there, c.at), -SIGSEGV);
        segment_free(&d, false);
        segment_free(&c, false);
}

static void freeing_a_segment_discards_pages_that_a_client_maps(void **state)
{
        (void)state;
        for (int i = 0; i < 2; i++) {
                struct segment segment = make(i ? SEGMENT_CLIENT_WRITES : SEGMENT_DAEMON_WRITES);
                int lent = lend(&segment);
                uint8_t *theirs = map(lent, PROT_READ), *ours = map(segment.fd, PROT_WRITE);

                memset(ours, 7, BYTES);
                munmap(ours, BYTES);
                assert_int_equal(theirs[BYTES - 1], 7);
                segment_free(&segment, false);
                assert_null(segment.at);
                assert_int_equal(segment.fd, -1);
                assert_int_equal(pages_of(lent), 0);
                assert_true(is_zero(theirs)); /* and no SIGBUS */
                munmap(theirs, BYTES);
                close(lent);
        }
}

static void a_segment_freed_with_its_pages_kept_stays_readable_for_the_client(void **state)
{
        struct segment segment = make(SEGMENT_DAEMON_WRITES);
        int lent = lend(&segment);
        uint8_t *theirs = map(lent, PROT_READ);

        (void)state;
        memset(segment.at, 7, BYTES);
        segment_free(&segment, true);
        assert_int_equal(pages_of(lent), BYTES / 4096);
        close(lent);
        for (size_t i = 0; i < BYTES; i++)
                assert_int_equal(theirs[i], 7);
        munmap(theirs, BYTES);
}

/* ---- the world fails ---- */

struct fault {
        const char *call;
        int result;
        uint32_t skip, hits;
};

static int fail_call(const char *call, void *arg)
{
        struct fault *fault = arg;

        if (strcmp(call, fault->call) || fault->skip-- > 0)
                return 0;
        fault->skip = 0;
        fault->hits++;
        return fault->result;
}

static struct sys_resources held(void)
{
        struct sys_resources holds;

        assert_int_equal(sys_resources(&holds), 0);
        return holds;
}

static void assert_holds(const struct sys_resources *before)
{
        struct sys_resources now = held();

        assert_int_equal(now.descriptors, before->descriptors);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        assert_int_equal(now.mappings, before->mappings); /* a sanitizer maps as it likes */
#endif
}

/* Where its file is mapped in this process, by the name that /proc gives it. */
static uint32_t mapped_times(void)
{
        FILE *maps = fopen("/proc/self/maps", "r");
        uint32_t times = 0;
        char line[512];

        assert_non_null(maps);
        while (fgets(line, sizeof(line), maps))
                times += strstr(line, "test-segment") && strstr(line, "memfd:");
        fclose(maps);
        return times;
}

static void reports_each_failure_and_leaks_nothing(void **state)
{
        static const struct {
                const char *call;
                int result;
                uint32_t skip;
        } faults[] = {
                { "memfd_create", -EMFILE, 0 }, { "memfd_create", -ENOSYS, 0 },
                { "ftruncate", -ENOMEM, 0 },    { "fallocate", -ENOSPC, 0 },
                { "fchmod", -EPERM, 0 },        { "fcntl", -EPERM, 0 },
                { "mmap", -ENOMEM, 0 },
        };
        const struct segment nothing = { .fd = -1 };

        (void)state;
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
                for (int writer = 0; writer < 2; writer++) {
                        struct fault fault = { faults[i].call, faults[i].result, 0, 0 };
                        struct segment segment = nothing;
                        struct sys_resources before = held();

                        sys_set_fault(fail_call, &fault);
                        assert_int_equal(segment_new("test-segment", BYTES,
                                                     (enum segment_writer)writer, &segment),
                                         faults[i].result);
                        sys_set_fault(NULL, NULL);
                        assert_int_equal(fault.hits, 1);
                        assert_memory_equal(&segment, &nothing, sizeof(segment));
                        assert_holds(&before);
                        assert_int_equal(mapped_times(), 0);
                }
}

/* Linux before 6.3 does not know MFD_NOEXEC_SEAL. */
static int refuse_once(const char *call, void *arg)
{
        return !strcmp(call, "memfd_create") && !(*(uint32_t *)arg)++ ? -EINVAL : 0;
}

static void works_on_a_kernel_that_rejects_the_first_memfd_flags(void **state)
{
        struct segment segment;
        uint32_t asked = 0;

        (void)state;
        sys_set_fault(refuse_once, &asked);
        segment = make(SEGMENT_DAEMON_WRITES);
        sys_set_fault(NULL, NULL);
        assert_int_equal(asked, 2);
        assert_int_equal(fcntl(segment.fd, F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
        segment_free(&segment, false);
}

static void frees_a_segment_although_lending_or_punching_fails(void **state)
{
        struct sys_resources before = held();
        struct segment segment = make(SEGMENT_DAEMON_WRITES);
        struct fault open_fails = { "reopen", -EMFILE, 0, 0 },
                     punch_fails = { "fallocate", -EIO, 0, 0 };

        (void)state;
        sys_set_fault(fail_call, &open_fails);
        assert_int_equal(segment_lend(&segment), -EMFILE);
        sys_set_fault(fail_call, &punch_fails);
        segment_free(&segment, false);
        sys_set_fault(NULL, NULL);
        assert_int_equal(punch_fails.hits, 1);
        assert_int_equal(mapped_times(), 0);
        assert_holds(&before);
}

static void a_private_segment_is_plain_memory_without_a_descriptor(void **state)
{
        struct sys_resources before = held();
        struct segment segment;

        (void)state;
        assert_int_equal(segment_new_private(BYTES, &segment), 0);
        assert_int_equal(segment.fd, -1);
        assert_true(is_zero(segment.at));
        memset(segment.at, 1, BYTES);
        segment_free(&segment, false);
        assert_null(segment.at);
        assert_holds(&before);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_side_sees_the_writes_of_the_other),
                cmocka_unit_test(all_pages_are_allocated_at_the_start),
                cmocka_unit_test(no_process_can_change_the_sealed_size),
                cmocka_unit_test(lends_the_daemons_segment_read_only),
                cmocka_unit_test(another_user_cannot_reopen_a_segment_with_more_rights),
                cmocka_unit_test(a_lent_descriptor_shares_no_offset_and_no_flags),
                cmocka_unit_test(the_daemon_cannot_write_the_clients_segment),
                cmocka_unit_test(freeing_a_segment_discards_pages_that_a_client_maps),
                cmocka_unit_test(a_segment_freed_with_its_pages_kept_stays_readable_for_the_client),
                cmocka_unit_test(reports_each_failure_and_leaks_nothing),
                cmocka_unit_test(works_on_a_kernel_that_rejects_the_first_memfd_flags),
                cmocka_unit_test(frees_a_segment_although_lending_or_punching_fails),
                cmocka_unit_test(a_private_segment_is_plain_memory_without_a_descriptor),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
