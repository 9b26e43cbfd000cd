#include "cli/bench/host.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The processor's name; ARM's /proc/cpuinfo has none. */
static void read_processor(char *to, size_t bytes, const char *architecture)
{
        FILE *file = fopen("/proc/cpuinfo", "re");
        char line[256], name[128] = "";

        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "model name : %127[^\n]", name) == 1)
                        break;
        if (file)
                fclose(file);
        snprintf(to, bytes, "%s", *name ? name : architecture);
}

void host_read(struct host *host)
{
        FILE *load = fopen("/proc/loadavg", "re");
        time_t now = time(NULL);
        struct utsname uts;
        struct tm utc;
        cpu_set_t set;

        uname(&uts);
        *host = (struct host){ .load = -1 };
        snprintf(host->name, sizeof(host->name), "%.64s", uts.nodename);
        snprintf(host->system, sizeof(host->system), "%s %s %s", uts.sysname, uts.release,
                 uts.machine);
        read_processor(host->processor, sizeof(host->processor), uts.machine);
        host->processors = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
        if (!sched_getaffinity(0, sizeof(set), &set))
                host->processors = (uint32_t)CPU_COUNT(&set);
        host->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        if (load && fscanf(load, "%lf", &host->load) != 1)
                host->load = -1;
        if (load)
                fclose(load);
        strftime(host->time, sizeof(host->time), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}
