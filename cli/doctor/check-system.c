/* The limits of the system: descriptors, system calls, containers, clock. */
#include "cli/doctor/checks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEAST_DESCRIPTORS 1024u /* connections (256), their rings, and files */
#define OVERFLOW_UID      65534u
#define THIS_AGE_S        INT64_C(1767225600) /* 1 January 2026, before this program was written */

void check_descriptors(const struct machine *machine, struct finding *finding)
{
        char process[MACHINE_PATH], file[MACHINE_PATH + 16], text[4096], hard[32] = "";
        uint64_t most = 0;
        const char *line;
        bool is_daemon;

        machine_process(machine, process, &is_daemon);
        snprintf(file, sizeof(file), "%s/limits", process);
        machine_read(machine, file, text, sizeof(text));
        line = strstr(text, "Max open files");
        if (!line || sscanf(line, "Max open files %*s %31s", hard) != 1) {
                find(finding, VERDICT_OK, "the limit is not known");
                return;
        }
        find(finding, VERDICT_OK, "%s may have %s", is_daemon ? "the daemon" : "a program here",
             hard);
        if (!strcmp(hard, "unlimited") || sscanf(hard, "%" SCNu64, &most) != 1 ||
            most >= LEAST_DESCRIPTORS)
                return;
        finding->verdict = VERDICT_WARN;
        advise(finding,
               "the daemon needs one or two for each connection: raise ulimit -n or "
               "LimitNOFILE= to %u, or lower connections",
               LEAST_DESCRIPTORS);
}

void check_uring(const struct machine *machine, struct finding *finding)
{
        uint64_t disabled = 0;

        /* The kernel checks the arguments only after it has allowed the call. */
        if (!machine->uring_result || machine->uring_result == -EFAULT) {
                find(finding, VERDICT_OK, "allowed: weights are read with it");
                return;
        }
        machine_read_number(machine, "/proc/sys/kernel/io_uring_disabled", &disabled);
        find(finding, VERDICT_WARN, "%s%s", strerror(-machine->uring_result),
             disabled ? " (kernel.io_uring_disabled)" : "");
        advise(finding, "%s",
               disabled ? "weights are read with plain reads, somewhat slower from "
                          "a disk; as root: sysctl kernel.io_uring_disabled=0"
                        : "weights are read with plain reads, somewhat slower from "
                          "a disk; containers often forbid it by seccomp");
}

/* ---- containers ---- */

static const char *container_of(const struct machine *machine, char *to, size_t bytes)
{
        char text[4096] = "";

        if (machine_has(machine, "/.dockerenv"))
                return "docker";
        if (machine_has(machine, "/run/.containerenv"))
                return "podman";
        if (machine_read(machine, "/run/systemd/container", to, bytes) && *to) {
                to[strcspn(to, "\n")] = '\0';
                return to;
        }
        /* Each variable of this file ends with a NUL, so the first one is what can be read. */
        if (machine_read(machine, "/proc/1/environ", text, sizeof(text)) &&
            sscanf(text, "container=%31s", to) == 1)
                return to;
        return NULL;
}

/* True if all users are the same inside and outside. */
static bool sees_all_users(const struct machine *machine)
{
        char text[256];
        unsigned long inside, outside, count;

        return !machine_read(machine, "/proc/self/uid_map", text, sizeof(text)) ||
               sscanf(text, "%lu %lu %lu", &inside, &outside, &count) != 3 ||
               (!inside && !outside && count >= UINT32_MAX);
}

void check_container(const struct machine *machine, struct finding *finding)
{
        char name[32];
        const char *container = container_of(machine, name, sizeof(name));
        bool mapped = !sees_all_users(machine);

        find(finding, VERDICT_OK, "%s%s%s", container ? "in a container: " : "in no container",
             container ? container : "", mapped ? ", with users of its own" : "");
        if (machine->uid == OVERFLOW_UID) {
                finding->verdict = VERDICT_FAIL;
                find_more(finding, "; this uid stands for all users without one");
                advise(finding, "a daemon refuses such clients: run as a user with a uid of its "
                                "own (docs/guide/several-users.md, Containers)");
        } else if (container && machine->daemon.result) {
                advise(finding, "to use a daemon outside, mount the folder of its socket "
                                "(/run/samovar) into the container");
        } else if (mapped && machine->daemon.result) {
                advise(finding, "a daemon outside must know the users in here: "
                                "docs/guide/several-users.md, Containers");
        }
}

void check_seccomp(const struct machine *machine, struct finding *finding)
{
        char text[8192];
        uint64_t mode = 0, locked = 0;

        if (!machine_read(machine, "/proc/self/status", text, sizeof(text)) ||
            !machine_line_number(text, "Seccomp:", &mode)) {
                find(finding, VERDICT_OK, "unknown");
                return;
        }
        machine_line_number(text, "NoNewPrivs:", &locked);
        find(finding, VERDICT_OK, "%s%s", mode ? "a filter limits system calls here" : "no filter",
             locked ? "; no new privileges" : "");
        if (mode &&
            (machine->memfd_result || (machine->uring_result && machine->uring_result != -EFAULT)))
                find_more(finding, "; it may be why calls above are refused");
}

/* ---- the clock ---- */

/* Sources of time that need no call into the kernel, so that asking for it is quick. */
static bool is_quick_source(const char *source)
{
        static const char *const names[] = { "tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                             "arch_sys_counter", "xen" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (!strcmp(source, names[i]))
                        return true;
        return false;
}

void check_clock(const struct machine *machine, struct finding *finding)
{
        char source[64];
        bool known = machine_read(
                machine, "/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                sizeof(source));

        source[strcspn(source, "\n")] = '\0';
        find(finding, VERDICT_OK, "%s%s%s",
             machine->clock_state > 0    ? "synchronised"
             : machine->clock_state == 0 ? "not synchronised with others"
                                         : "set",
             known ? ", source " : "", known ? source : "");
        if (machine->now_s < THIS_AGE_S) {
                find(finding, VERDICT_FAIL, "it is %" PRId64 " seconds before 2026",
                     THIS_AGE_S - machine->now_s);
                advise(finding, "set it (timedatectl set-ntp true): certificates of downloads are "
                                "refused, and logs mislead");
        } else if (known && !is_quick_source(source)) {
                finding->verdict = VERDICT_WARN;
                advise(finding, "asking for the time is slow with this source; if the processor's "
                                "counter is stable, boot with clocksource=tsc");
        }
}
