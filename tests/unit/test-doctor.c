/* The checks of `samovar doctor`, on machines that are made up. */
#include "cli/doctor/checks.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/kernels.h"

struct rig {
        char root[64];
        struct machine machine;
        struct finding finding;
};

/* A machine without any file, on which an ordinary user has found no daemon. */
static int set_up(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));

        snprintf(rig->root, sizeof(rig->root), "/tmp/samovar-doctor-XXXXXX");
        if (!mkdtemp(rig->root))
                return -1;
        rig->machine = (struct machine){
                .root = rig->root,
                .uid = 1000,
                .gid = 1000,
                .user = "alice",
                .version = "1.2.3",
                .sockets = { "/run/samovar/sock" },
                .socket_count = 1,
                .daemon = { .result = -ENOENT, .message = "no such file" },
                .port = 7266,
                .http = { { .address = "127.0.0.1", .result = -ECONNREFUSED },
                          { .address = "::1", .result = -ECONNREFUSED } },
                .uring_result = -EFAULT,
                .now_s = 1800000000,
        };
        *state = rig;
        return 0;
}

static int remove_one(const char *path, const struct stat *file, int type, struct FTW *walk)
{
        (void)file;
        (void)type;
        (void)walk;
        return remove(path);
}

static int tear_down(void **state)
{
        struct rig *rig = *state;

        nftw(rig->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        free(rig);
        return 0;
}

/* ---- making a machine ---- */

/* Makes the folders that a path goes through. */
static void make_folders(const struct rig *rig, const char *path, char to[256])
{
        snprintf(to, 256, "%s%s", rig->root, path);
        for (char *slash = to + strlen(rig->root) + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                mkdir(to, 0755);
                *slash = '/';
        }
}

static void write_file(const struct rig *rig, const char *path, const char *text)
{
        char whole[256];
        FILE *file;

        make_folders(rig, path, whole);
        file = fopen(whole, "we");
        assert_non_null(file);
        fputs(text, file);
        assert_int_equal(fclose(file), 0);
}

static void make_socket(const struct rig *rig, const char *path, mode_t mode)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char whole[256];

        make_folders(rig, path, whole);
        assert_true(strlen(whole) < sizeof(address.sun_path));
        strcpy(address.sun_path, whole);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        close(fd);
        assert_int_equal(chmod(whole, mode), 0);
}

static void set_mode(const struct rig *rig, const char *path, mode_t mode)
{
        char whole[256];

        snprintf(whole, sizeof(whole), "%s%s", rig->root, path);
        assert_int_equal(chmod(whole, mode), 0);
}

/* ---- looking at a finding ---- */

typedef void check_run(const struct machine *machine, struct finding *finding);

/* Runs the check, which must come to this verdict and say these words; NULL: any. */
static void expect(struct rig *rig, check_run *run, enum verdict verdict, const char *found,
                   const char *advice)
{
        struct finding *finding = &rig->finding;

        *finding = (struct finding){ 0 };
        run(&rig->machine, finding);
        if (finding->verdict != verdict || !*finding->found ||
            (found && !strstr(finding->found, found)) ||
            (advice && !strstr(finding->advice, advice)))
                fail_msg("%s: %s -> %s; expected %s: %s -> %s", verdict_name(finding->verdict),
                         finding->found, finding->advice, verdict_name(verdict), found, advice);
        /* A warning without advice leaves its reader alone. */
        assert_true(verdict == VERDICT_OK || *finding->advice);
        assert_null(strchr(finding->found, '\n'));
}

static void set_daemon(struct rig *rig)
{
        rig->machine.daemon = (struct daemon_facts){
                .socket = "/run/samovar/sock",
                .version = "1.2.3",
                .model = "tiny",
                .backend = "cpu/avx2",
                .pid = 77,
                .model_bytes = 4194304,
        };
}

/* ---- the daemon ---- */

static void without_a_socket_a_daemon_has_to_be_started(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_socket, VERDICT_WARN, "/run/samovar/sock: No such file", "samovard");
        expect(rig, check_daemon, VERDICT_WARN, "no such file", "start one: samovard");
        rig->machine.named = true;
        expect(rig, check_socket, VERDICT_FAIL, NULL, "samovard --socket /run/samovar/sock");
        expect(rig, check_daemon, VERDICT_FAIL, NULL, "--socket");
        rig->machine.named = false;
        write_file(rig, "/usr/lib/systemd/system/samovar.socket", "");
        expect(rig, check_socket, VERDICT_WARN, NULL, "systemctl start samovar.socket");
}

static void of_two_paths_both_are_named_if_nothing_is_there(void **state)
{
        struct rig *rig = *state;

        rig->machine.socket_count = 2;
        strcpy(rig->machine.sockets[0], "/run/user/1000/samovar/sock");
        strcpy(rig->machine.sockets[1], "/run/samovar/sock");
        expect(rig, check_socket, VERDICT_WARN, "/run/user/1000/samovar/sock, nor at /run/samovar",
               NULL);
        make_socket(rig, "/run/samovar/sock", 0666);
        expect(rig, check_socket, VERDICT_OK, "/run/samovar/sock, mode 0666", NULL);
}

static void a_socket_that_lets_nobody_else_in_fails_for_others(void **state)
{
        struct rig *rig = *state;

        make_socket(rig, "/run/samovar/sock", 0600);
        rig->machine.uid = rig->machine.gid = 54321;
        expect(rig, check_socket, VERDICT_FAIL, "mode 0600", "another socket_mode");
        set_mode(rig, "/run/samovar/sock", 0660);
        expect(rig, check_socket, VERDICT_FAIL, "mode 0660", "add you to the group");
        set_mode(rig, "/run/samovar", 0700);
        expect(rig, check_folder, VERDICT_FAIL, "mode 0700", "does not let you in");
        set_mode(rig, "/run/samovar", 0755);
        set_mode(rig, "/run/samovar/sock", 0600);
        rig->machine.uid = 0;
        expect(rig, check_socket, VERDICT_OK, "mode 0600", NULL);
        /* There is a socket, and no daemon behind it. */
        rig->machine.daemon.result = -ECONNREFUSED;
        expect(rig, check_daemon, VERDICT_FAIL, NULL, "start one");
}

static void a_path_that_is_no_socket_or_too_long_fails(void **state)
{
        struct rig *rig = *state;

        write_file(rig, "/run/samovar/sock", "");
        expect(rig, check_socket, VERDICT_FAIL, "is no socket", "--socket");
        memset(rig->machine.sockets[0], 'x', 150);
        rig->machine.sockets[0][0] = '/';
        expect(rig, check_socket, VERDICT_FAIL, "150 bytes; a socket may have 107", "shorter");
}

static void a_folder_that_all_may_write_to_fails(void **state)
{
        struct rig *rig = *state;

        make_socket(rig, "/run/samovar/sock", 0666);
        rig->machine.uid = getuid();
        expect(rig, check_folder, VERDICT_OK, "/run/samovar, mode 0755", NULL);
        set_mode(rig, "/run/samovar", 0777);
        expect(rig, check_folder, VERDICT_FAIL, "mode 0777", "chmod o-w /run/samovar");
        set_mode(rig, "/run/samovar", 01777);
        expect(rig, check_folder, VERDICT_OK, "mode 1777", NULL);
}

static void a_daemon_that_answers_is_described(void **state)
{
        struct rig *rig = *state;

        set_daemon(rig);
        expect(rig, check_daemon, VERDICT_OK, "process 77 of user 0 serves tiny on cpu/avx2", NULL);
        rig->machine.daemon.loading = true;
        expect(rig, check_daemon, VERDICT_OK, "loading the model", NULL);
        rig->machine.daemon.stopping = true;
        expect(rig, check_daemon, VERDICT_WARN, "it is stopping", "takes no new work");
        write_file(rig, "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
        expect(rig, check_daemon, VERDICT_WARN, "of user root", NULL);
}

static void a_daemon_that_hangs_or_is_not_trusted_is_told_apart(void **state)
{
        struct rig *rig = *state;

        make_socket(rig, "/run/samovar/sock", 0666);
        rig->machine.daemon.result = -ETIMEDOUT;
        expect(rig, check_daemon, VERDICT_FAIL, NULL, "--timeout");
        rig->machine.daemon.result = -EPERM;
        expect(rig, check_daemon, VERDICT_FAIL, NULL, "--any-uid");
        rig->machine.daemon.result = -EACCES;
        expect(rig, check_daemon, VERDICT_FAIL, NULL, "group");
}

static void versions_that_differ_are_a_warning(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_version, VERDICT_OK, "1.2.3", NULL);
        set_daemon(rig);
        expect(rig, check_version, VERDICT_OK, "and so is the daemon's", NULL);
        strcpy(rig->machine.daemon.version, "1.3.0");
        expect(rig, check_version, VERDICT_WARN, "1.3.0 of the daemon", "restart");
}

static void membership_in_the_group_is_told_from_that_of_the_session(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_group, VERDICT_OK, "there is no group samovar", NULL);
        write_file(rig, "/etc/group", "users:x:100:alice\nsamovar:x:991:bob,alicex\n");
        expect(rig, check_group, VERDICT_WARN, "alice is not in the group",
               "usermod -aG samovar alice");
        write_file(rig, "/etc/group", "samovar:x:991:bob,alice\n");
        expect(rig, check_group, VERDICT_WARN, "this session began before", "log in again");
        rig->machine.groups[rig->machine.group_count++] = 991;
        expect(rig, check_group, VERDICT_OK, "alice is in the group", NULL);
        rig->machine.group_count = 0;
        rig->machine.uid = 0;
        expect(rig, check_group, VERDICT_OK, "root needs no membership", NULL);
}

static void a_unit_that_has_failed_fails(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_services, VERDICT_OK, "there is no systemd", NULL);
        strcpy(rig->machine.services,
               "Id=samovar.socket\nLoadState=not-found\nActiveState=inactive\nSubState=dead\n");
        expect(rig, check_services, VERDICT_OK, "no units of samovar", NULL);
        strcpy(rig->machine.services,
               "Id=samovar.socket\nLoadState=loaded\nActiveState=active\nSubState=listening\n"
               "Result=success\n\n"
               "Id=samovar.service\nLoadState=loaded\nActiveState=active\nSubState=running\n"
               "Result=success\n");
        expect(rig, check_services, VERDICT_OK,
               "samovar.socket active (listening), samovar.service active (running)", NULL);
        strcpy(strstr(rig->machine.services, "active\nSubState=running"),
               "failed\nSubState=failed\nResult=exit-code\n");
        expect(rig, check_services, VERDICT_FAIL, "samovar.service failed",
               "samovar.service has failed (exit-code): journalctl -u samovar.service");
}

/* ---- memory ---- */

#define MEMINFO(available)                                                                         \
        "MemTotal:       16777216 kB\nMemFree:         1000000 kB\nMemAvailable:   " available     \
        " kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n"

static void free_memory_is_compared_with_the_model(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_memory, VERDICT_WARN, "cannot be read", "mount /proc");
        write_file(rig, "/proc/meminfo", MEMINFO("8388608"));
        expect(rig, check_memory, VERDICT_OK, "8.0 GiB of 16.0 GiB", NULL);
        rig->machine.model_bytes = UINT64_C(4) << 30;
        expect(rig, check_memory, VERDICT_OK, "the model has 4.0 GiB", NULL);
        rig->machine.model_bytes = UINT64_C(9) << 30;
        expect(rig, check_memory, VERDICT_FAIL, "the model has 9.0 GiB", "does not fit");
        rig->machine.model_bytes = 0;
        set_daemon(rig);
        expect(rig, check_memory, VERDICT_OK, "the daemon's model has 4.0 MiB", NULL);
        strcpy(rig->machine.model_why, "x.gguf: No such file or directory");
        expect(rig, check_memory, VERDICT_FAIL, "x.gguf: No such file", "--model");
        *rig->machine.model_why = '\0';
        write_file(rig, "/proc/meminfo", MEMINFO("100000"));
        expect(rig, check_memory, VERDICT_WARN, "97.7 MiB of 16.0 GiB", "end other programs");
}

static void limits_of_control_groups_are_found(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_memory_limit, VERDICT_OK, "no control groups", NULL);
        write_file(rig, "/proc/self/cgroup", "0::/user.slice\n");
        write_file(rig, "/sys/fs/cgroup/user.slice/memory.max", "max\n");
        expect(rig, check_memory_limit, VERDICT_OK, "this shell's control group has none", NULL);
        write_file(rig, "/sys/fs/cgroup/user.slice/memory.max", "2147483648\n");
        expect(rig, check_memory_limit, VERDICT_OK, "may use 2.0 GiB", NULL);
        rig->machine.model_bytes = UINT64_C(3) << 30;
        expect(rig, check_memory_limit, VERDICT_FAIL, NULL, "MemoryMax=");
        /* Version 1 writes this for no limit. */
        write_file(rig, "/proc/self/cgroup", "4:memory:/docker\n");
        write_file(rig, "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                   "9223372036854771712\n");
        expect(rig, check_memory_limit, VERDICT_OK, "has none", NULL);
        /* The daemon has a group of its own. */
        rig->machine.model_bytes = 0;
        set_daemon(rig);
        write_file(rig, "/proc/77/cgroup", "0::/samovar.service\n");
        write_file(rig, "/sys/fs/cgroup/samovar.service/memory.high", "104857600\n");
        expect(rig, check_memory_limit, VERDICT_WARN,
               "the daemon's control group may use 100.0 MiB", NULL);
}

#define LIMITS(locked, soft, hard)                                                                 \
        "Limit                     Soft Limit           Hard Limit           Units     \n"         \
        "Max open files            " soft "                 " hard "                files     \n"  \
        "Max locked memory         " locked "              " locked "              bytes     \n"

static void locked_memory_matters_to_old_kernels_only(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_locked_memory, VERDICT_OK, "not known", NULL);
        write_file(rig, "/proc/self/limits", LIMITS("16384", "1024", "4096"));
        write_file(rig, "/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
        expect(rig, check_locked_memory, VERDICT_OK, "16.0 KiB; samovar locks no memory", NULL);
        write_file(rig, "/proc/sys/kernel/osrelease", "5.10.0-28-amd64\n");
        expect(rig, check_locked_memory, VERDICT_WARN, "counts io_uring", "ulimit -l");
        write_file(rig, "/proc/self/limits", LIMITS("unlimited", "1024", "4096"));
        expect(rig, check_locked_memory, VERDICT_OK, "the limit is none", NULL);
}

static void huge_pages_that_are_off_are_a_warning(void **state)
{
        static const char file[] = "/sys/kernel/mm/transparent_hugepage/enabled";
        struct rig *rig = *state;

        expect(rig, check_huge_pages, VERDICT_WARN, "no transparent huge pages", NULL);
        write_file(rig, file, "always [madvise] never\n");
        expect(rig, check_huge_pages, VERDICT_OK, "madvise", NULL);
        write_file(rig, file, "[always] madvise never\n");
        expect(rig, check_huge_pages, VERDICT_OK, "always", NULL);
        write_file(rig, file, "always madvise [never]\n");
        expect(rig, check_huge_pages, VERDICT_WARN, "never", "echo madvise");
}

static void huge_pages_that_lie_idle_are_a_warning(void **state)
{
        struct rig *rig = *state;

        write_file(rig, "/proc/meminfo", MEMINFO("8388608"));
        expect(rig, check_reserved_pages, VERDICT_OK, "no huge pages are reserved", NULL);
        write_file(rig, "/proc/meminfo",
                   "HugePages_Total:    512\nHugePages_Free:     512\nHugepagesize:    2048 kB\n");
        expect(rig, check_reserved_pages, VERDICT_WARN, "512 of them idle", "these 1.0 GiB");
}

static void rings_need_memfd(void **state)
{
        struct rig *rig = *state;

        rig->machine.shm_bytes = 67108864;
        expect(rig, check_shared_memory, VERDICT_OK, "/dev/shm has 64.0 MiB", NULL);
        rig->machine.memfd_result = -ENOSYS;
        expect(rig, check_shared_memory, VERDICT_WARN, "memfd_create", "over the socket");
}

/* ---- processors ---- */

static void the_instruction_set_follows_from_vendor_and_features(void **state)
{
        static const struct {
                const char *features, *set, *set_of_intel;
        } cases[] = {
                { "", "c" },
                { "sse2 avx2 fma", "c" },
                { "fma avx2 f16c", "avx2" },
                { "fma xavx2 f16c", "c" },
                { "fma avx2 f16c avx512f avx512bw avx512dq avx512vl", "avx2" },
                { "fma avx2 f16c avx512f avx512bw avx512dq avx512vl avx512_vnni", "avx512" },
                { "avx512_bf16 fma avx2 f16c avx512f avx512bw avx512dq avx512vl avx512_vnni",
                  "avx512bf16", "avx512" },
                { "avx512_bf16 fma avx2 f16c avx512f avx512bw avx512dq avx512vl avx512_vnni "
                  "amx_bf16 amx_tile amx_int8",
                  "amx" },
                { "fma avx2 f16c avx512f avx512bw avx512dq avx512vl avx512_vnni amx_bf16 amx_tile",
                  "avx512" },
                { "fma avx2 f16c amx_bf16 amx_tile amx_int8", "avx2" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const char *intel = cases[i].set_of_intel;

                assert_string_equal(instructions_for("AuthenticAMD", cases[i].features),
                                    cases[i].set);
                assert_string_equal(instructions_for("GenuineIntel", cases[i].features),
                                    intel ? intel : cases[i].set);
        }
}

/* The backend asks the processor itself; the doctor reads a file of the kernel. */
static void the_doctor_and_the_backend_choose_the_same(void **state)
{
        struct kernels_conf conf = { .threads = 1,
                                     .isa = "auto",
                                     .rows_max = 4,
                                     .slots_max = 1,
                                     .pages_max = 1,
                                     .vocab_max = 16,
                                     .wants_max = 4 };
        struct machine here = { .root = "", .daemon = { .result = -ENOENT } };
        struct finding finding = { 0 };
        struct kernels *kernels;
        char wanted[96];

        (void)state;
        assert_int_equal(kernels_open("cpu", &conf, &kernels), 0);
        snprintf(wanted, sizeof(wanted), "the cpu backend chooses %s",
                 strchr(kernels->name, '/') + 1);
        check_instructions(&here, &finding);
        if (!strstr(finding.found, wanted))
                fail_msg("%s is not in: %s", wanted, finding.found);
        kernels->close(kernels);
}

static void slow_instructions_are_a_warning(void **state)
{
        struct rig *rig = *state;

        write_file(rig, "/proc/cpuinfo",
                   "processor\t: 0\nmodel name\t: Made Up 9000\nflags\t\t: fpu fma avx2 f16c\n\n");
        expect(rig, check_instructions, VERDICT_OK, "Made Up 9000: the cpu backend chooses avx2",
               NULL);
        set_daemon(rig);
        expect(rig, check_instructions, VERDICT_OK, "avx2", NULL);
        strcpy(rig->machine.daemon.backend, "cpu/c");
        expect(rig, check_instructions, VERDICT_WARN, "the daemon uses c", "isa");
        write_file(rig, "/proc/cpuinfo",
                   "model name\t: Tiled\nflags\t\t: avx2 fma f16c avx512f avx512bw avx512dq "
                   "avx512vl avx512_vnni amx_tile amx_bf16 amx_int8\n");
        strcpy(rig->machine.daemon.backend, "cpu/avx512");
        expect(rig, check_instructions, VERDICT_WARN, "chooses amx, and the daemon uses avx512",
               "arch_prctl");
        write_file(rig, "/proc/cpuinfo", "model name\t: Old\nflags\t\t: fpu\n");
        rig->machine.daemon.result = -ENOENT;
        expect(rig, check_instructions, VERDICT_WARN, "chooses c", "AVX2");
}

/* Four processors, of which two share a core. */
static void make_processors(struct rig *rig, const char *allowed)
{
        char path[128], text[128];

        write_file(rig, "/sys/devices/system/cpu/online", "0-3\n");
        for (unsigned i = 0; i < 4; i++) {
                snprintf(path, sizeof(path),
                         "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", i);
                write_file(rig, path, i < 2 ? "0-1\n" : "2-3\n");
        }
        snprintf(text, sizeof(text), "Name:\tsh\nSeccomp:\t0\nCpus_allowed_list:\t%s\n", allowed);
        write_file(rig, "/proc/self/status", text);
}

static void processors_are_counted_by_affinity_and_group(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_processors, VERDICT_WARN, "not known", "threads");
        make_processors(rig, "0-3");
        expect(rig, check_processors, VERDICT_OK, "4 processors, 2 cores", NULL);
        make_processors(rig, "0,2-3");
        expect(rig, check_processors, VERDICT_OK, "3 processors, 2 cores, of 4", NULL);
        make_processors(rig, "3");
        expect(rig, check_processors, VERDICT_WARN, "1 processor, 1 core, of 4", "taskset");
        make_processors(rig, "0-3");
        write_file(rig, "/proc/self/cgroup", "0::/box\n");
        write_file(rig, "/sys/fs/cgroup/box/cpu.max", "100000 100000\n");
        expect(rig, check_processors, VERDICT_WARN, "has time for 1", "cpu.max");
}

static void several_nodes_of_memory_are_a_warning(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_nodes, VERDICT_OK, NULL, NULL);
        write_file(rig, "/sys/devices/system/node/online", "0\n");
        expect(rig, check_nodes, VERDICT_OK, "one node", NULL);
        write_file(rig, "/sys/devices/system/node/online", "0-1\n");
        expect(rig, check_nodes, VERDICT_WARN, "2 nodes", "numactl");
}

/* ---- GPUs ---- */

static void make_gpu(struct rig *rig)
{
        write_file(rig, "/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
        write_file(rig, "/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
        /* The sound of the same card is no GPU. */
        write_file(rig, "/sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
        write_file(rig, "/sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
}

static void without_a_gpu_nothing_of_it_is_missing(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_gpu, VERDICT_OK, "no NVIDIA GPU", NULL);
        expect(rig, check_gpu_driver, VERDICT_OK, "not needed", NULL);
        expect(rig, check_gpu_permission, VERDICT_OK, "not needed", NULL);
        expect(rig, check_gpu_library, VERDICT_OK, "not needed", NULL);
}

static void a_gpu_without_a_driver_is_a_warning(void **state)
{
        struct rig *rig = *state;

        make_gpu(rig);
        expect(rig, check_gpu, VERDICT_WARN, "1 GPU on the bus, 0 device nodes", "modprobe");
        expect(rig, check_gpu_driver, VERDICT_WARN, "not loaded", "install");
        write_file(rig, "/dev/nvidia0", "");
        expect(rig, check_gpu, VERDICT_WARN, "1 device node", "nvidia-uvm");
        write_file(rig, "/dev/nvidia-uvm", "");
        expect(rig, check_gpu, VERDICT_OK, NULL, NULL);
}

static void the_version_of_the_driver_is_read(void **state)
{
        struct rig *rig = *state;

        make_gpu(rig);
        write_file(rig, "/usr/lib64/libcuda.so.1", "");
        write_file(rig, "/proc/driver/nvidia/version",
                   "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\n"
                   "GCC version:  gcc version 12.2.0\n");
        expect(rig, check_gpu_driver, VERDICT_OK, "version 580.65.06", NULL);
        write_file(rig, "/proc/driver/nvidia/version",
                   "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release\n");
        expect(rig, check_gpu_driver, VERDICT_OK, "version 570.86.15", NULL);
        write_file(rig, "/proc/driver/nvidia/version",
                   "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed\n");
        expect(rig, check_gpu_driver, VERDICT_WARN, "version 470.82.01", "525 or later");
}

static void a_driver_without_its_library_is_a_warning(void **state)
{
        struct rig *rig = *state;

        make_gpu(rig);
        write_file(rig, "/proc/driver/nvidia/version",
                   "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun\n");
        expect(rig, check_gpu_driver, VERDICT_WARN, "libcuda.so.1", "mount");
}

static void devices_that_may_not_be_used_are_a_warning(void **state)
{
        struct rig *rig = *state;

        make_gpu(rig);
        write_file(rig, "/dev/nvidiactl", "");
        write_file(rig, "/dev/nvidia0", "");
        set_mode(rig, "/dev/nvidiactl", 0666);
        set_mode(rig, "/dev/nvidia0", 0666);
        rig->machine.uid = rig->machine.gid = 54321;
        expect(rig, check_gpu_permission, VERDICT_OK, "alice may use", NULL);
        set_mode(rig, "/dev/nvidia0", 0660);
        expect(rig, check_gpu_permission, VERDICT_WARN, "/dev/nvidia0, mode 0660", "video");
        rig->machine.groups[rig->machine.group_count++] = getgid();
        expect(rig, check_gpu_permission, VERDICT_OK, "alice may use", NULL);
        write_file(rig, "/usr/lib/systemd/system/samovar.service", "");
        expect(rig, check_gpu_permission, VERDICT_WARN, "the service", "gpu.conf");
        write_file(rig, "/etc/systemd/system/samovar.service.d/gpu.conf", "");
        expect(rig, check_gpu_permission, VERDICT_OK, NULL, NULL);
}

static void the_library_for_gpus_is_looked_for(void **state)
{
        struct rig *rig = *state;

        make_gpu(rig);
        rig->machine.library_count = 2;
        strcpy(rig->machine.libraries[0], "/usr/lib/samovar");
        strcpy(rig->machine.libraries[1], "/home/alice/build/kernels");
        expect(rig, check_gpu_library, VERDICT_WARN, "not in /usr/lib/samovar", "backend_library");
        write_file(rig, "/home/alice/build/kernels/libsamovar-cuda.so", "");
        expect(rig, check_gpu_library, VERDICT_OK, "/home/alice/build/kernels/", NULL);
}

/* ---- samovar-http ---- */

#define TCP_HEAD                                                                                   \
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "      \
        "timeout inode\n"

static void a_port_that_another_program_holds_is_a_warning(void **state)
{
        struct rig *rig = *state;
        char whole[256];

        write_file(rig, "/proc/net/tcp",
                   TCP_HEAD "   0: 0100007F:1C63 00000000:0000 0A 00000000:00000000 00:00000000 "
                            "00000000  1001        0 4242 1 0 100 0 0 10 0\n");
        expect(rig, check_port_4, VERDICT_OK, "port 7266 is free", NULL);
        expect(rig, check_port_6, VERDICT_OK, "does not have such addresses", NULL);
        /* A connection to that port is no listener.  A listener at all addresses is one. */
        write_file(rig, "/proc/net/tcp",
                   TCP_HEAD "   0: 0100007F:1C62 0100007F:8000 01 00000000:00000000 00:00000000 "
                            "00000000  1001        0 4242 1 0 100 0 0 10 0\n");
        expect(rig, check_port_4, VERDICT_OK, "port 7266 is free", NULL);
        write_file(rig, "/proc/net/tcp",
                   TCP_HEAD "   0: 00000000:1C62 00000000:0000 0A 00000000:00000000 00:00000000 "
                            "00000000  1001        0 4242 1 0 100 0 0 10 0\n");
        expect(rig, check_port_4, VERDICT_WARN, "a process of uid 1001", "--listen");
        /* The process can be seen. */
        write_file(rig, "/proc/31/comm", "nginx\n");
        make_folders(rig, "/proc/31/fd/5", whole);
        assert_int_equal(symlink("socket:[4242]", whole), 0);
        expect(rig, check_port_4, VERDICT_WARN, "held by nginx, process 31, of uid 1001", NULL);
        write_file(rig, "/proc/net/tcp6",
                   TCP_HEAD "   0: 00000000000000000000000001000000:1C62 "
                            "00000000000000000000000000000000:0000 0A 00000000:00000000 "
                            "00:00000000 00000000     0        0 4243 1\n");
        expect(rig, check_port_6, VERDICT_WARN, "of uid 0", NULL);
}

static void samovar_http_that_answers_holds_its_port(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_health, VERDICT_OK, "does not run", NULL);
        rig->machine.http[1] =
                (struct http_facts){ .address = "::1", .result = 200, .is_ours = true };
        expect(rig, check_port_6, VERDICT_OK, "samovar-http listens", NULL);
        expect(rig, check_health, VERDICT_OK, "has a daemon", NULL);
        rig->machine.http[1].result = 503;
        strcpy(rig->machine.http[1].message, "no daemon is at /run/samovar/sock");
        expect(rig, check_health, VERDICT_FAIL, "answers 503: no daemon is at", "503");
}

/* ---- the system ---- */

static void few_descriptors_are_a_warning(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_descriptors, VERDICT_OK, "not known", NULL);
        write_file(rig, "/proc/self/limits", LIMITS("16384", "1024", "524288"));
        expect(rig, check_descriptors, VERDICT_OK, "524288", NULL);
        write_file(rig, "/proc/self/limits", LIMITS("16384", "256", "256"));
        expect(rig, check_descriptors, VERDICT_WARN, "256", "LimitNOFILE=");
        set_daemon(rig);
        write_file(rig, "/proc/77/limits", LIMITS("16384", "1024", "unlimited"));
        expect(rig, check_descriptors, VERDICT_OK, "the daemon may have unlimited", NULL);
}

static void io_uring_that_is_forbidden_is_a_warning(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_uring, VERDICT_OK, "allowed", NULL);
        rig->machine.uring_result = -EPERM;
        expect(rig, check_uring, VERDICT_WARN, "not permitted", "seccomp");
        write_file(rig, "/proc/sys/kernel/io_uring_disabled", "2\n");
        expect(rig, check_uring, VERDICT_WARN, "io_uring_disabled", "sysctl");
}

static void containers_are_recognised(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_container, VERDICT_OK, "in no container", NULL);
        write_file(rig, "/proc/self/uid_map", "         0          0 4294967295\n");
        expect(rig, check_container, VERDICT_OK, "in no container", NULL);
        write_file(rig, "/proc/1/environ", "container=lxc");
        expect(rig, check_container, VERDICT_OK, "in a container: lxc", "mount the folder");
        write_file(rig, "/run/.containerenv", "");
        write_file(rig, "/proc/self/uid_map", "         0     100000      65536\n");
        expect(rig, check_container, VERDICT_OK, "podman, with users of its own", NULL);
        rig->machine.uid = 65534;
        expect(rig, check_container, VERDICT_FAIL, "users without one", "Containers");
}

static void a_filter_of_system_calls_is_named(void **state)
{
        struct rig *rig = *state;

        expect(rig, check_seccomp, VERDICT_OK, "unknown", NULL);
        write_file(rig, "/proc/self/status", "Name:\tsh\nNoNewPrivs:\t1\nSeccomp:\t0\n");
        expect(rig, check_seccomp, VERDICT_OK, "no filter; no new privileges", NULL);
        write_file(rig, "/proc/self/status", "Name:\tsh\nNoNewPrivs:\t0\nSeccomp:\t2\n");
        rig->machine.uring_result = -EPERM;
        expect(rig, check_seccomp, VERDICT_OK, "it may be why calls above are refused", NULL);
}

static void put_models_in(struct rig *rig, const char *folder)
{
        snprintf(rig->machine.models.places[0], MACHINE_PATH, "%s", folder);
        rig->machine.models.place_count = 1;
}

static void a_disk_without_space_for_models_is_a_warning(void **state)
{
        struct rig *rig = *state;

        put_models_in(rig, "/home/alice/models");
        rig->machine.disk_free = UINT64_C(100) << 30;
        expect(rig, check_disk, VERDICT_OK, "100.0 GiB are free for models in /home/alice", NULL);
        rig->machine.disk_free = UINT64_C(3) << 30;
        expect(rig, check_disk, VERDICT_WARN, "3.0 GiB", "keep them on another disk");
        rig->machine.disk_result = -EACCES;
        expect(rig, check_disk, VERDICT_WARN, "Permission denied", "SAMOVAR_MODELS");
}

static void models_that_others_may_replace_are_a_warning(void **state)
{
        struct rig *rig = *state;

        put_models_in(rig, "/models");
        expect(rig, check_model_owners, VERDICT_OK, "nobody else", NULL); /* no folder yet */
        write_file(rig, "/models/a.gguf", "");
        rig->machine.uid = getuid();
        set_mode(rig, "/models", 0755);
        expect(rig, check_model_owners, VERDICT_OK, "nobody else", NULL);
        set_mode(rig, "/models", 0775);
        expect(rig, check_model_owners, VERDICT_WARN, "written by its group", "chmod go-w /models");
        set_mode(rig, "/models", 0757);
        expect(rig, check_model_owners, VERDICT_WARN, "written by everyone", "chmod go-w /models");
        /* The service's user finds them in root's folder; whose else, may change them. */
        set_mode(rig, "/models", 0755);
        rig->machine.uid = getuid() + 1;
        if (getuid())
                expect(rig, check_model_owners, VERDICT_WARN, "belongs to user ", "of root");
        else
                expect(rig, check_model_owners, VERDICT_OK, "nobody else", NULL);
}

static void models_that_are_not_as_they_came_fail(void **state)
{
        struct rig *rig = *state;
        struct model_facts *models = &rig->machine.models;

        put_models_in(rig, "/models");
        expect(rig, check_models, VERDICT_OK, "0 models, 0 bytes, in /models", NULL);
        expect(rig, check_model_files, VERDICT_OK, "no model was pulled", NULL);
        models->count = 3;
        models->pulled = 2;
        models->bytes = UINT64_C(5) << 30;
        models->pulled_bytes = UINT64_C(4) << 30;
        expect(rig, check_models, VERDICT_OK, "3 models, 5.0 GiB", NULL);
        expect(rig, check_model_files, VERDICT_OK, "2 pulled models, 4.0 GiB: sizes are right",
               NULL);
        models->read = true;
        expect(rig, check_model_files, VERDICT_OK, "all bytes have the digests", NULL);
        models->wrong = 1;
        strcpy(models->why, "tea: the SHA-256 of tea.gguf has changed");
        strcpy(models->source, "hf:acme/tea-GGUF:Q8_0");
        expect(rig, check_model_files, VERDICT_FAIL, "1 of 2 pulled models is not as it came: tea:",
               "samovar pull hf:acme/tea-GGUF:Q8_0");
        models->result = -EACCES;
        expect(rig, check_models, VERDICT_WARN, "/models: Permission denied", "SAMOVAR_MODELS");
}

static void a_clock_that_is_wrong_fails(void **state)
{
        static const char file[] =
                "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        struct rig *rig = *state;

        rig->machine.clock_state = 1;
        expect(rig, check_clock, VERDICT_OK, "synchronised", NULL);
        write_file(rig, file, "tsc\n");
        expect(rig, check_clock, VERDICT_OK, "source tsc", NULL);
        write_file(rig, file, "hpet\n");
        expect(rig, check_clock, VERDICT_WARN, "source hpet", "clocksource=tsc");
        rig->machine.now_s = 0;
        expect(rig, check_clock, VERDICT_FAIL, "before 2026", "timedatectl");
}

/* Files that are empty or have nonsense crash no check. */
static void nonsense_in_files_is_survived(void **state)
{
        static const char *const files[] = {
                "/proc/meminfo",
                "/proc/cpuinfo",
                "/proc/net/tcp",
                "/proc/net/tcp6",
                "/proc/self/limits",
                "/proc/self/status",
                "/proc/self/cgroup",
                "/proc/self/uid_map",
                "/proc/1/environ",
                "/proc/driver/nvidia/version",
                "/sys/devices/system/cpu/online",
                "/sys/devices/system/node/online",
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "/etc/group",
                "/etc/passwd",
                "/dev/nvidia0",
        };
        static const char *const texts[] = {
                "",
                "\n\n",
                "[",
                ":::::",
                "flags",
                "Max open files",
                "Max locked memory x",
                "MemTotal: x\n",
                "Cpus_allowed_list:\t9-3,,",
                "4294967295-4294967295,1",
                "samovar:x:99999999999999999999:",
                "Module 1",
                "\xff\xfe\x80 1 2 3\n",
        };
        struct rig *rig = *state;

        for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
                for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++)
                        write_file(rig, files[f], texts[t]);
                for (size_t i = 0; i < check_count; i++) {
                        struct finding finding = { 0 };

                        checks[i].run(&rig->machine, &finding);
                        assert_true(*finding.found);
                        assert_true(finding.verdict == VERDICT_OK || *finding.advice);
                }
        }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CASE(without_a_socket_a_daemon_has_to_be_started),
                CASE(of_two_paths_both_are_named_if_nothing_is_there),
                CASE(a_socket_that_lets_nobody_else_in_fails_for_others),
                CASE(a_path_that_is_no_socket_or_too_long_fails),
                CASE(a_folder_that_all_may_write_to_fails),
                CASE(a_daemon_that_answers_is_described),
                CASE(a_daemon_that_hangs_or_is_not_trusted_is_told_apart),
                CASE(versions_that_differ_are_a_warning),
                CASE(membership_in_the_group_is_told_from_that_of_the_session),
                CASE(a_unit_that_has_failed_fails),
                CASE(free_memory_is_compared_with_the_model),
                CASE(limits_of_control_groups_are_found),
                CASE(locked_memory_matters_to_old_kernels_only),
                CASE(huge_pages_that_are_off_are_a_warning),
                CASE(huge_pages_that_lie_idle_are_a_warning),
                CASE(rings_need_memfd),
                CASE(the_instruction_set_follows_from_vendor_and_features),
                CASE(the_doctor_and_the_backend_choose_the_same),
                CASE(slow_instructions_are_a_warning),
                CASE(processors_are_counted_by_affinity_and_group),
                CASE(several_nodes_of_memory_are_a_warning),
                CASE(without_a_gpu_nothing_of_it_is_missing),
                CASE(a_gpu_without_a_driver_is_a_warning),
                CASE(the_version_of_the_driver_is_read),
                CASE(a_driver_without_its_library_is_a_warning),
                CASE(devices_that_may_not_be_used_are_a_warning),
                CASE(the_library_for_gpus_is_looked_for),
                CASE(a_port_that_another_program_holds_is_a_warning),
                CASE(samovar_http_that_answers_holds_its_port),
                CASE(few_descriptors_are_a_warning),
                CASE(io_uring_that_is_forbidden_is_a_warning),
                CASE(containers_are_recognised),
                CASE(a_filter_of_system_calls_is_named),
                CASE(a_disk_without_space_for_models_is_a_warning),
                CASE(models_that_others_may_replace_are_a_warning),
                CASE(models_that_are_not_as_they_came_fail),
                CASE(a_clock_that_is_wrong_fails),
                CASE(nonsense_in_files_is_survived),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
