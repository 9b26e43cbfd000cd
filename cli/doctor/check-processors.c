/* Processors: their instructions, how many may be used, and how memory is spread among them. */
#include "cli/doctor/checks.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/affinity.h"
#include "kernels/cpu/cgroup-limits.h"

/* ---- instructions ---- */

static bool has_word(const char *words, const char *word)
{
        size_t bytes = strlen(word);

        for (const char *at = words; (at = strstr(at, word)); at += bytes)
                if ((at == words || at[-1] == ' ') && (!at[bytes] || at[bytes] == ' '))
                        return true;
        return false;
}

static bool has_words(const char *words, const char *const *wanted)
{
        for (; *wanted; wanted++)
                if (!has_word(words, *wanted))
                        return false;
        return true;
}

/* The same rule as in kernels/cpu/cpu.c, which asks the processor; a test compares both. */
const char *instructions_for(const char *vendor, const char *features)
{
        static const char *const avx2[] = { "avx2", "fma", "f16c", NULL };
        static const char *const avx512[] = { "avx512f",  "avx512bw",    "avx512dq",
                                              "avx512vl", "avx512_vnni", NULL };
        static const char *const tiles[] = { "amx_tile", "amx_bf16", "amx_int8", NULL };

        if (!has_words(features, avx2))
                return "c";
        if (!has_words(features, avx512))
                return "avx2";
        if (has_words(features, tiles))
                return "amx";
        if (!has_word(features, "avx512_bf16") || !strcmp(vendor, "GenuineIntel"))
                return "avx512";
        return "avx512bf16";
}

/* The value of the first line "flags : ..." of /proc/cpuinfo; "": there is none. */
static void read_value(const char *text, const char *name, char *to, size_t bytes)
{
        const char *line = strstr(text, name), *at;

        to[0] = '\0';
        at = line ? strchr(line, ':') : NULL;
        if (!at)
                return;
        at += 1 + (at[1] == ' ');
        snprintf(to, bytes, "%.*s", (int)strcspn(at, "\n"), at);
}

void check_instructions(const struct machine *machine, struct finding *finding)
{
        char text[16384], features[8192], vendor[64], name[128];
        const char *chosen, *daemon = machine->daemon.backend;

        if (!machine_read(machine, "/proc/cpuinfo", text, sizeof(text))) {
                find(finding, VERDICT_WARN, "/proc/cpuinfo cannot be read");
                return;
        }
        read_value(text, "\nflags", features, sizeof(features));
        read_value(text, "model name", name, sizeof(name));
        read_value(text, "vendor_id", vendor, sizeof(vendor));
        chosen = instructions_for(vendor, features);
        find(finding, VERDICT_OK, "%s%sthe cpu backend chooses %s", name, *name ? ": " : "",
             chosen);
        if (!machine->daemon.result && !strncmp(daemon, "cpu/", 4) &&
            strcmp(daemon + 4, chosen) != 0) {
                finding->verdict = VERDICT_WARN;
                find_more(finding, ", and the daemon uses %s", daemon + 4);
                advise(finding, "remove the daemon's setting isa, and restart it%s",
                       strcmp(chosen, "amx") != 0
                               ? ""
                               : "; if it has none, the kernel refused tiles to it: a filter of "
                                 "system calls must let arch_prctl pass");
        } else if (!strcmp(chosen, "c")) {
                finding->verdict = VERDICT_WARN;
                advise(finding, "without AVX2, FMA and F16C, models run several times slower; in "
                                "a virtual machine, let it see the host's processor");
        }
}

/* ---- how many ---- */

/* "0-3,8" */
static void read_list(const char *list, cpu_set_t *ret_set)
{
        unsigned first, last;
        int n;

        CPU_ZERO(ret_set);
        while (sscanf(list, "%u%n", &first, &n) == 1) {
                list += n;
                last = first;
                if (sscanf(list, "-%u%n", &last, &n) == 1)
                        list += n;
                for (; first <= last && first < CPU_SETSIZE; first++)
                        CPU_SET(first, ret_set);
                if (*list != ',')
                        return;
                list++;
        }
}

/* Finds the processors on which the process may run, and their cores. */
static bool find_allowed(const struct machine *machine, const char *process,
                         struct affinity *ret_affinity)
{
        static const char word[] = "Cpus_allowed_list:";
        char file[MACHINE_PATH + 16], text[8192], folder[MACHINE_PATH];
        const char *line;
        cpu_set_t set;

        snprintf(file, sizeof(file), "%s/status", process);
        if (!machine_read(machine, file, text, sizeof(text)) || !(line = strstr(text, word)) ||
            !machine_path(machine, "/sys/devices/system/cpu", folder))
                return false;
        line += sizeof(word) - 1;
        read_list(line + strspn(line, "\t "), &set);
        if (!CPU_COUNT(&set))
                return false;
        affinity_order(&set, folder, ret_affinity);
        return true;
}

static unsigned count_online(const struct machine *machine)
{
        char text[1024];
        cpu_set_t set;

        if (!machine_read(machine, "/sys/devices/system/cpu/online", text, sizeof(text)))
                return 0;
        read_list(text, &set);
        return (unsigned)CPU_COUNT(&set);
}

void check_processors(const struct machine *machine, struct finding *finding)
{
        char process[MACHINE_PATH], file[MACHINE_PATH + 16], groups[MACHINE_PATH],
                mount[MACHINE_PATH];
        unsigned online = count_online(machine);
        uint64_t limit = CGROUP_NO_LIMIT;
        struct affinity affinity;
        const char *whose;
        bool is_daemon;

        machine_process(machine, process, &is_daemon);
        whose = is_daemon ? "the daemon" : "this shell";
        if (!find_allowed(machine, process, &affinity)) {
                find(finding, VERDICT_WARN, "it is not known how many %s may use", whose);
                advise(finding, "set threads of the daemon by hand");
                return;
        }
        snprintf(file, sizeof(file), "%s/cgroup", process);
        if (machine_path(machine, file, groups) && machine_path(machine, "/sys/fs/cgroup", mount))
                limit = cgroup_limits_cores_of(groups, mount);
        find(finding, VERDICT_OK, "%s may use %u processor%s, %u core%s", whose, affinity.count,
             affinity.count == 1 ? "" : "s", affinity.cores, affinity.cores == 1 ? "" : "s");
        if (affinity.count < online)
                find_more(finding, ", of %u", online);
        if (limit < affinity.cores) {
                finding->verdict = VERDICT_WARN;
                find_more(finding, "; its control group has time for %" PRIu64, limit);
                advise(finding, "more threads than that would wait: raise cpu.max of the group "
                                "(CPUQuota= of the unit, --cpus of a container)");
        } else if (affinity.count * 2 <= online) {
                finding->verdict = VERDICT_WARN;
                advise(finding, "its affinity leaves out the others: taskset, CPUAffinity= of the "
                                "unit, --cpuset-cpus of a container");
        }
}

void check_nodes(const struct machine *machine, struct finding *finding)
{
        char text[1024];
        cpu_set_t nodes;

        if (!machine_read(machine, "/sys/devices/system/node/online", text, sizeof(text))) {
                find(finding, VERDICT_OK, "memory is in one place");
                return;
        }
        read_list(text, &nodes);
        if (CPU_COUNT(&nodes) < 2) {
                find(finding, VERDICT_OK, "one node of memory");
                return;
        }
        find(finding, VERDICT_WARN, "%d nodes of memory (NUMA)", CPU_COUNT(&nodes));
        advise(finding,
               "if the model fits into one node, run the daemon there: numactl "
               "--cpunodebind=0 --membind=0 samovard, or NUMAPolicy=bind and NUMAMask=0 of "
               "the unit");
}
