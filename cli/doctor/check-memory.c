/* Memory: how much there is, what limits it, and in which pages it comes. */
#include "cli/doctor/checks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/amounts.h"
#include "kernels/cpu/cgroup-limits.h"

#define MIB         1048576.0
#define LEAST_FREE  (256 * MIB) /* with less, not even a small model and its pool fit */
#define GROUP_MOUNT "/sys/fs/cgroup"

static double meminfo(const char *text, const char *word)
{
        uint64_t kib = 0;

        return machine_line_number(text, word, &kib) ? (double)kib * 1024 : 0;
}

/* Compares with the model of --model.  That of the daemon is in memory already. */
static void compare_model(const struct machine *machine, double available, struct finding *finding)
{
        char text[AMOUNT_BYTES];

        if (*machine->model_why) {
                finding->verdict = VERDICT_FAIL;
                find_more(finding, "; %s", machine->model_why);
                advise(finding, "check the path of --model");
        } else if (machine->model_bytes) {
                find_more(finding, "; the model has %s",
                          amount_bytes((double)machine->model_bytes, text));
                if ((double)machine->model_bytes <= available)
                        return;
                finding->verdict = VERDICT_FAIL;
                advise(finding, "the model does not fit: take a smaller one or another "
                                "quantisation, or end other programs (samovar inspect says what "
                                "fits)");
        } else if (!machine->daemon.result && machine->daemon.model_bytes) {
                find_more(finding, "; the daemon's model has %s",
                          amount_bytes((double)machine->daemon.model_bytes, text));
        }
}

void check_memory(const struct machine *machine, struct finding *finding)
{
        char text[8192], total_text[AMOUNT_BYTES], free_text[AMOUNT_BYTES];
        double total, available;

        if (!machine_read(machine, "/proc/meminfo", text, sizeof(text)) ||
            (total = meminfo(text, "MemTotal:")) <= 0) {
                find(finding, VERDICT_WARN, "/proc/meminfo cannot be read");
                advise(finding, "mount /proc: the daemon plans its pool by it");
                return;
        }
        available = meminfo(text, "MemAvailable:");
        find(finding, VERDICT_OK, "%s of %s can be used", amount_bytes(available, free_text),
             amount_bytes(total, total_text));
        if (available < LEAST_FREE) {
                finding->verdict = VERDICT_WARN;
                advise(finding, "end other programs, or give the daemon a small kv_bytes");
        }
        compare_model(machine, available, finding);
}

void check_memory_limit(const struct machine *machine, struct finding *finding)
{
        char process[MACHINE_PATH], file[MACHINE_PATH + 16], groups[MACHINE_PATH],
                mount[MACHINE_PATH], text[AMOUNT_BYTES];
        const char *whose;
        uint64_t limit, needed = machine->model_bytes;
        bool is_daemon;

        machine_process(machine, process, &is_daemon);
        whose = is_daemon ? "the daemon's" : "this shell's";
        snprintf(file, sizeof(file), "%s/cgroup", process);
        if (!machine_path(machine, file, groups) || !machine_path(machine, GROUP_MOUNT, mount) ||
            !machine_has(machine, file)) {
                find(finding, VERDICT_OK, "there are no control groups");
                return;
        }
        limit = cgroup_limits_memory_of(groups, mount);
        /* Version 1 writes a number beyond all memory for no limit. */
        if (limit >= UINT64_MAX / 4) {
                find(finding, VERDICT_OK, "%s control group has none", whose);
                return;
        }
        find(finding, VERDICT_OK, "%s control group may use %s", whose,
             amount_bytes((double)limit, text));
        if (needed > limit || (double)limit < LEAST_FREE) {
                finding->verdict = needed > limit ? VERDICT_FAIL : VERDICT_WARN;
                advise(finding, "raise memory.max of the group (MemoryMax= of the unit, --memory "
                                "of a container), or set a smaller kv_bytes or model");
        }
}

/* "Max locked memory  8388608  8388608  bytes"; UINT64_MAX: unlimited. */
static bool read_limit(const char *text, const char *name, uint64_t *ret_soft)
{
        const char *line = strstr(text, name);
        char soft[32];

        if (!line || sscanf(line + strlen(name), "%31s", soft) != 1)
                return false;
        if (!strcmp(soft, "unlimited"))
                *ret_soft = UINT64_MAX;
        else if (sscanf(soft, "%" SCNu64, ret_soft) != 1)
                return false;
        return true;
}

/* Before Linux 5.12, rings of io_uring counted as locked memory. */
static bool rings_are_locked(const struct machine *machine)
{
        char text[64];
        unsigned major = 0, minor = 0;

        return machine_read(machine, "/proc/sys/kernel/osrelease", text, sizeof(text)) &&
               sscanf(text, "%u.%u", &major, &minor) == 2 &&
               (major < 5 || (major == 5 && minor < 12));
}

#define RING_BYTES 65536u

void check_locked_memory(const struct machine *machine, struct finding *finding)
{
        char process[MACHINE_PATH], file[MACHINE_PATH + 16], limits[4096], text[AMOUNT_BYTES];
        uint64_t soft = 0;
        bool is_daemon;

        machine_process(machine, process, &is_daemon);
        snprintf(file, sizeof(file), "%s/limits", process);
        if (!machine_read(machine, file, limits, sizeof(limits)) ||
            !read_limit(limits, "Max locked memory", &soft)) {
                find(finding, VERDICT_OK, "the limit is not known; samovar locks no memory");
                return;
        }
        find(finding, VERDICT_OK, "the limit is %s; samovar locks no memory",
             soft == UINT64_MAX ? "none" : amount_bytes((double)soft, text));
        if (!rings_are_locked(machine) || soft >= RING_BYTES)
                return;
        finding->verdict = VERDICT_WARN;
        find_more(finding, ", but this kernel counts io_uring");
        advise(finding, "raise it (ulimit -l, LimitMEMLOCK=), or set load = plain: weights are "
                        "read without io_uring");
}

void check_huge_pages(const struct machine *machine, struct finding *finding)
{
        char text[128], *on;

        if (!machine_read(machine, "/sys/kernel/mm/transparent_hugepage/enabled", text,
                          sizeof(text))) {
                find(finding, VERDICT_WARN, "this kernel has no transparent huge pages");
                advise(finding, "nothing breaks, but weights are read slower");
                return;
        }
        on = strchr(text, '[');
        if (on)
                on[strcspn(on, "]")] = '\0';
        if (on && (!strcmp(on, "[always") || !strcmp(on, "[madvise"))) {
                find(finding, VERDICT_OK, "%s: weights and the pool get them", on + 1);
                return;
        }
        find(finding, VERDICT_WARN, "%s", on && on[1] ? on + 1 : "unknown");
        advise(finding, "weights are read slower; as root: echo madvise > "
                        "/sys/kernel/mm/transparent_hugepage/enabled");
}

/* The daemon asks for transparent ones.  Those that are reserved lie idle. */
void check_reserved_pages(const struct machine *machine, struct finding *finding)
{
        char text[8192], size[AMOUNT_BYTES];
        uint64_t count = 0, left = 0, kib = 0;

        machine_read(machine, "/proc/meminfo", text, sizeof(text));
        machine_line_number(text, "HugePages_Total:", &count);
        machine_line_number(text, "HugePages_Free:", &left);
        machine_line_number(text, "Hugepagesize:", &kib);
        if (!count) {
                find(finding, VERDICT_OK, "no huge pages are reserved; samovar needs none");
                return;
        }
        find(finding, VERDICT_OK, "%" PRIu64 " huge pages are reserved, %" PRIu64 " of them idle",
             count, left);
        if (!left)
                return;
        finding->verdict = VERDICT_WARN;
        advise(finding,
               "samovar cannot use these %s; if nothing else does: sysctl "
               "vm.nr_hugepages=0",
               amount_bytes((double)left * (double)kib * 1024, size));
}

void check_shared_memory(const struct machine *machine, struct finding *finding)
{
        char text[AMOUNT_BYTES];

        if (machine->memfd_result) {
                find(finding, VERDICT_WARN, "memfd_create: %s", strerror(-machine->memfd_result));
                advise(finding, "rings in shared memory are not possible, so tokens come over the "
                                "socket: allow memfd_create in the container's seccomp profile");
                return;
        }
        find(finding, VERDICT_OK, "memfd works, which rings need");
        if (machine->shm_bytes)
                find_more(finding, "; /dev/shm has %s, and they do not use it",
                          amount_bytes((double)machine->shm_bytes, text));
}
