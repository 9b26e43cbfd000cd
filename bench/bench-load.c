/*
 * How long it takes to load weights from their files into the cpu backend:
 *
 *      bench-load [-r ROUNDS] [-t THREADS] FILE
 *
 * It measures every way of reading, with the file in the page cache and dropped from it.  Each
 * load is a separate process, which reports how much memory it held besides the weights.
 * docs/internals/bench.md explains the table.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/load-parts.h"
#include "bench/table.h"
#include "daemon/engine/model.h"
#include "base/sys.h"
#include "kernels/cpu/cgroup-limits.h"

#define SAMPLES 256u

struct figures {
        double seconds, cpu_seconds;
        /* loaded; the peak of memory held, less the memory held when it is done */
        uint64_t bytes, extra_kib;
        int result;
        char why[256];
};

static struct figures *figures; /* of the child's load */

static void die(const char *what)
{
        fprintf(stderr, "bench-load: %s: %s\n", what, strerror(errno));
        exit(1);
}

/* "VmHWM:" or "VmRSS:" of this process. */
static uint64_t held_kib(const char *name)
{
        FILE *status = fopen("/proc/self/status", "r");
        uint64_t kib = 0;
        char line[256];

        while (status && fgets(line, sizeof(line), status))
                if (!strncmp(line, name, strlen(name)))
                        kib = strtoull(line + strlen(name), NULL, 10);
        if (status)
                fclose(status);
        return kib;
}

/*
 * CPU seconds of all threads, including the kernel's work for them.  Other load on the machine
 * does not change it much.
 */
static double cpu_seconds(void)
{
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int open_model(const char *path, uint32_t threads, struct model **ret_model)
{
        struct kernels_conf conf = { .threads = threads,
                                     .isa = "auto",
                                     .rows_max = 1,
                                     .slots_max = 1,
                                     .pages_max = 1,
                                     .wants_max = 1 };
        const struct model_conf model = { .rows_max = 1, .wants_max = 1, .blocks = 1 };
        struct checkpoint *checkpoint;
        struct kernels *kernels;
        struct traits traits;
        int r;

        r = checkpoint_open(path, &checkpoint, figures->why, sizeof(figures->why));
        if (!r)
                r = checkpoint_traits(checkpoint, &traits, figures->why, sizeof(figures->why));
        if (r)
                return r;
        conf.vocab_max = traits.vocab;
        r = kernels_open("cpu", &conf, &kernels);
        if (!r)
                r = model_open(checkpoint, &traits, kernels, &model, ret_model, figures->why,
                               sizeof(figures->why));
        return r;
}

/* Ends with its memory: nothing is taken down. */
static void load(const char *path, enum load_way way, uint32_t threads)
{
        const struct weights_conf conf = { .way = way, .threads = threads };
        struct model *model;
        enum load_way was;
        uint64_t began;

        figures->result = open_model(path, threads, &model);
        if (figures->result)
                return;
        figures->bytes = model_to_load(model);
        began = sys_clock_ns();
        figures->cpu_seconds = -cpu_seconds();
        figures->result = model_load(model, &conf, &was, figures->why, sizeof(figures->why));
        figures->seconds = (double)(sys_clock_ns() - began) / 1e9;
        figures->cpu_seconds += cpu_seconds();
        figures->extra_kib = held_kib("VmHWM:") - held_kib("VmRSS:");
}

/* Forks a process, whose memory is freed when it ends; returns true in the child. */
static bool apart(void)
{
        pid_t pid;

        fflush(NULL);
        memset(figures, 0, sizeof(*figures));
        pid = fork();
        if (pid < 0)
                die("fork");
        if (pid && waitpid(pid, NULL, 0) != pid)
                die("waitpid");
        return !pid;
}

static void load_apart(const char *path, enum load_way way, uint32_t threads)
{
        if (!apart())
                return;
        load(path, way, threads);
        _exit(0);
}

static int open_file(const char *path, uint64_t *ret_bytes)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || sys_file_size(fd, ret_bytes))
                die(path);
        return fd;
}

/* How much of it is in the page cache, in percent. */
static uint32_t cached(int fd, uint64_t bytes)
{
        uint32_t in = 0;
        char byte;

        for (uint32_t i = 0; i < SAMPLES; i++)
                in += sys_pread_cached(fd, &byte, 1, bytes / SAMPLES * i) == 1;
        return in * 100 / SAMPLES;
}

static void warm(int fd, uint64_t bytes)
{
        static char buffer[1 << 20];

        for (uint64_t at = 0; at < bytes; at += sizeof(buffer))
                if (pread(fd, buffer, sizeof(buffer), (off_t)at) < 0)
                        die("pread");
}

static void drop(int fd, uint64_t bytes)
{
        uint32_t in;

        if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
                die("fadvise");
        in = cached(fd, bytes);
        if (in > 2)
                printf("# the cache could not be dropped: %u%% of the file is in it\n", in);
}

static void tell(const char *way, bool is_cold)
{
        double gb = (double)figures->bytes / 1e9;

        table_add_one(is_cold ? "cold, GB/s" : "warm, GB/s", way, "", gb / figures->seconds);
        table_add_one(is_cold ? "cold, processor seconds a GB" : "warm, processor seconds a GB",
                      way, "", figures->cpu_seconds / gb);
        table_add_one("held besides the weights, MiB", way, "", (double)figures->extra_kib / 1024);
}

static void round_of(const char *path, uint32_t threads, bool is_cold)
{
        uint64_t bytes;
        int fd = open_file(path, &bytes);

        for (int way = LOAD_CACHED; way < LOAD_WAY_N; way++) {
                if (is_cold)
                        drop(fd, bytes);
                else
                        warm(fd, bytes);
                load_apart(path, (enum load_way)way, threads);
                if (figures->result) {
                        printf("# %s: %s\n", load_way_name((enum load_way)way),
                               *figures->why ? figures->why : strerror(-figures->result));
                        continue;
                }
                tell(load_way_name((enum load_way)way), is_cold);
        }
        close(fd);
}

/* The costs that no way of loading avoids.  The file is in the page cache. */
static void round_of_parts(const char *path, uint32_t threads)
{
        static const char group[] = "warm, what no load can do without, GB/s";
        uint64_t bytes;
        double gb, seconds[2] = { 0, 0 };

        close(open_file(path, &bytes));
        gb = (double)bytes / 1e9;
        for (int part = 0; part < 2; part++) {
                if (apart()) {
                        figures->seconds = part ? load_parts_memory(threads, bytes)
                                                : load_parts_read(threads, path, bytes);
                        _exit(0);
                }
                seconds[part] = figures->seconds;
                if (seconds[part] <= 0) {
                        printf("# %s alone: %s\n", part ? "memory" : "reading",
                               strerror((int)-seconds[part]));
                        return;
                }
        }
        table_add_one(group, "reading the file", "", gb / seconds[0]);
        table_add_one(group, "being given memory", "", gb / seconds[1]);
        table_add_one(group, "one and then the other", "", gb / (seconds[0] + seconds[1]));
}

static int usage(void)
{
        fputs("usage: bench-load [-r ROUNDS] [-t THREADS] FILE\n", stderr);
        return 2;
}

int main(int argc, char **argv)
{
        uint32_t rounds = 3, threads = 0;
        struct utsname name;
        uint64_t bytes;
        int option;

        while ((option = getopt(argc, argv, "r:t:")) != -1) {
                uint32_t n = (uint32_t)strtoul(optarg ? optarg : "", NULL, 10);

                if (option == 'r' && n >= 1 && n <= 30)
                        rounds = n;
                else if (option == 't' && n >= 1 && n <= 1024)
                        threads = n;
                else
                        return usage();
        }
        if (optind + 1 != argc)
                return usage();
        figures = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0);
        if (figures == MAP_FAILED)
                die("mmap");
        close(open_file(argv[optind], &bytes));
        uname(&name);
        printf("# %s %s, %u processors, %.2f GB, %u rounds\n", name.sysname, name.release,
               cgroup_limits_cores(), (double)bytes / 1e9, rounds);
        for (uint32_t i = 0; i < rounds; i++) {
                round_of(argv[optind], threads, true);
                round_of(argv[optind], threads, false);
                round_of_parts(argv[optind], threads);
        }
        table_print();
        return 0;
}
