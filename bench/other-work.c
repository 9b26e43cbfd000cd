#include "bench/other-work.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of all processors: everything but idle and waiting for a disk. */
static double read_all(void)
{
        double user = 0, nice = 0, system = 0, idle, wait, irq = 0, softirq = 0, steal = 0;
        FILE *file = fopen("/proc/stat", "re");

        if (!file)
                return 0;
        if (fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait,
                   &irq, &softirq, &steal) != 8)
                user = nice = system = irq = softirq = steal = 0;
        fclose(file);
        return (user + nice + system + irq + softirq + steal) / (double)sysconf(_SC_CLK_TCK);
}

static double read_process(int pid)
{
        char path[32], text[1024] = "";
        double user = 0, system = 0;
        const char *end;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        file = fopen(path, "re");
        if (!file)
                return 0;
        if (!fgets(text, sizeof(text), file))
                *text = '\0';
        fclose(file);
        end = strrchr(text, ')'); /* behind the name, which may have blanks */
        if (!end || sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lf %lf", &user,
                           &system) != 2)
                return 0;
        return (user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double seconds_of(struct timeval time)
{
        return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double read_own(int pid)
{
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) + read_process(pid);
}

void other_work_begin(struct other_work *work, int pid)
{
        work->pid = pid;
        work->began = now();
        work->all = read_all();
        work->own = read_own(pid);
}

double other_work_share(const struct other_work *work)
{
        double all = read_all() - work->all, own = read_own(work->pid) - work->own;
        double share =
                (all - own) / ((now() - work->began) * (double)sysconf(_SC_NPROCESSORS_ONLN));

        return share < 0 ? 0 : share > 1 ? 1 : share;
}
