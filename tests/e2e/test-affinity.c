/* On which processors the daemon's threads may run, and the time slice of each, as the kernel
 * reports them. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"
#include "tests/skip.h"

#define CORES_MOST      64
#define LONGEST_SLICE_S 0.1 /* the longest that the kernel grants */

/* Processors of the same core share one text here; if there is none, each processor is a core. */
static void core_of(uint32_t processor, char ret_core[64])
{
        char path[96];
        FILE *f;

        snprintf(ret_core, 64, "%u", processor);
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
                 processor);
        f = fopen(path, "r");
        if (!f)
                return;
        if (!fgets(ret_core, 64, f))
                fail_msg("%s is empty", path);
        fclose(f);
}

/* The number of cores of which a set has at least one processor. */
static uint32_t cores_in(const cpu_set_t *set)
{
        char cores[CORES_MOST][64];
        uint32_t count = 0;

        for (uint32_t i = 0; i < CPU_SETSIZE; i++) {
                uint32_t same = 0;

                if (!CPU_ISSET(i, set) || count == CORES_MOST)
                        continue;
                core_of(i, cores[count]);
                while (same < count && strcmp(cores[same], cores[count]))
                        same++;
                count += same == count;
        }
        return count;
}

static bool computes(pid_t pid, const char *thread)
{
        char path[320], *name;
        bool is;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, thread);
        name = file_text(path);
        is = !strncmp(name, "smv-engine", 10) || !strncmp(name, "smv-cpu", 7);
        free(name);
        return is;
}

/* The time slice of a thread, in seconds; 0: the kernel does not report it. */
static double time_slice_of(pid_t thread)
{
        /* struct sched_attr, which glibc has since 2.41; sched_runtime is the fourth */
        uint64_t attr[6];

        assert_int_equal(syscall(SYS_sched_getattr, thread, attr, sizeof(attr), 0), 0);
        return (double)attr[3] / 1e9;
}

/* Of the threads that compute: the number of threads, the number of cores that all of them together
 * may use, the number of threads that may run on one processor only, and the number that have the
 * longest time slice. */
struct found {
        uint32_t threads, cores, pinned, long_slices;
};

static struct found look(pid_t pid)
{
        struct found found = { 0 };
        struct dirent *entry;
        cpu_set_t all;
        char path[64];
        DIR *threads;

        CPU_ZERO(&all);
        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        threads = opendir(path);
        assert_non_null(threads);
        while ((entry = readdir(threads))) {
                cpu_set_t set;

                if (entry->d_name[0] == '.' || !computes(pid, entry->d_name))
                        continue;
                assert_int_equal(sched_getaffinity(atoi(entry->d_name), sizeof(set), &set), 0);
                CPU_OR(&all, &all, &set);
                found.threads++;
                found.pinned += CPU_COUNT(&set) == 1;
                found.long_slices += time_slice_of(atoi(entry->d_name)) >= LONGEST_SLICE_S;
        }
        closedir(threads);
        found.cores = cores_in(&all);
        return found;
}

/* Does the kernel report time slices, and have threads of this process a shorter one? */
static bool slices_tell(void)
{
        double own = time_slice_of(0);

        return own > 0 && own < LONGEST_SLICE_S;
}

/* A thread pins itself, and then takes the time slice, which a busy machine may delay. */
static struct found look_when_started(pid_t pid, uint32_t threads)
{
        struct found found = look(pid);

        for (uint32_t tries = 0; tries < 1000; tries++) {
                if (found.threads == threads && (!slices_tell() || found.long_slices == threads))
                        break;
                sleep_ms(10);
                found = look(pid);
        }
        return found;
}

/* The number of cores of this process; skips the test where that is one, or more than this test
 * looks at. */
static uint32_t cores(void)
{
        cpu_set_t ours;
        uint32_t count;

        assert_int_equal(sched_getaffinity(0, sizeof(ours), &ours), 0);
        count = cores_in(&ours);
        if (count < 2 || count == CORES_MOST)
                skip_because("the number of cores does not fit this test");
        return count;
}

static struct found found_with(struct daemon_fixture *fixture, uint32_t threads, const char *pin)
{
        struct found found;
        char number[16];

        snprintf(number, sizeof(number), "%u", threads);
        START_QUICK_DAEMON(fixture, "--threads", number, "--affinity", pin);
        found = look_when_started(fixture->pid, threads);
        fixture_stop(fixture);
        assert_int_equal(found.threads, threads);
        return found;
}

static void a_full_thread_pool_is_pinned_to_one_core_for_each_thread(void **state)
{
        uint32_t count = cores();
        struct found found = found_with(*state, count, "auto");

        assert_int_equal(found.pinned, count);
        assert_int_equal(found.cores, count);
}

static void pin_off_leaves_the_thread_pool_on_all_cores(void **state)
{
        uint32_t count = cores();
        struct found found = found_with(*state, count, "off");

        assert_int_equal(found.pinned, 0);
        assert_int_equal(found.cores, count);
}

static void a_thread_pool_smaller_than_the_machine_is_not_pinned(void **state)
{
        uint32_t count = cores();
        struct found found = found_with(*state, count - 1, "auto");

        assert_int_equal(found.pinned, 0);
        assert_int_equal(found.cores, count);
}

static void compute_threads_have_the_longest_time_slice(void **state)
{
        if (!slices_tell())
                skip_because("the kernel is older, or this process has a long time slice itself");
        assert_int_equal(found_with(*state, 2, "auto").long_slices, 2);
        assert_int_equal(found_with(*state, 2, "off").long_slices, 2);
        assert_int_equal(found_with(*state, 1, "auto").long_slices, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_full_thread_pool_is_pinned_to_one_core_for_each_thread),
                DAEMON_TEST(pin_off_leaves_the_thread_pool_on_all_cores),
                DAEMON_TEST(a_thread_pool_smaller_than_the_machine_is_not_pinned),
                DAEMON_TEST(compute_threads_have_the_longest_time_slice),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
