#include "bench/runqueue-wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS_MAX 64u

static struct {
        int files[THREADS_MAX]; /* kept open, since they are read once for each token */
        unsigned count;
} waits;

void runqueue_wait_open(int pid)
{
        char path[384];
        struct dirent *thread;
        DIR *threads;

        runqueue_wait_close();
        snprintf(path, sizeof(path), "/proc/%d/task", pid);
        threads = opendir(path);
        while (threads && waits.count < THREADS_MAX && (thread = readdir(threads))) {
                int fd;

                if (thread->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, thread->d_name);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd >= 0)
                        waits.files[waits.count++] = fd;
        }
        if (threads)
                closedir(threads);
}

uint64_t runqueue_wait_ns(void)
{
        uint64_t sum = 0;

        for (unsigned i = 0; i < waits.count; i++) {
                char line[128];
                ssize_t n = pread(waits.files[i], line, sizeof(line) - 1, 0);
                unsigned long long waited = 0;

                line[n > 0 ? n : 0] = '\0';
                (void)sscanf(line, "%*u %llu", &waited); /* after the time that it ran */
                sum += waited;
        }
        return sum;
}

void runqueue_wait_close(void)
{
        while (waits.count)
                close(waits.files[--waits.count]);
}
