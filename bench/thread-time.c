#include "bench/thread-time.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* The number behind `key` in a thread's file.  The file must begin with it if the key is "". */
static uint64_t read_number(const char *directory, const char *thread, const char *file,
                            const char *key)
{
        unsigned long long number = 0;
        char path[384], line[128];
        FILE *from;

        snprintf(path, sizeof(path), "%s/%s/%s", directory, thread, file);
        from = fopen(path, "r");
        if (!from)
                return 0;
        while (fgets(line, sizeof(line), from)) {
                if (strncmp(line, key, strlen(key)))
                        continue;
                (void)sscanf(line + strlen(key), "%llu", &number);
                break;
        }
        fclose(from);
        return number;
}

static int is_named(const char *directory, const char *thread, const char *name)
{
        char path[384], line[64] = "";
        FILE *from;

        snprintf(path, sizeof(path), "%s/%s/comm", directory, thread);
        from = fopen(path, "r");
        if (!from)
                return 0;
        if (!fgets(line, sizeof(line), from))
                line[0] = '\0';
        fclose(from);
        line[strcspn(line, "\n")] = '\0';
        return !strcmp(line, name);
}

static uint64_t sum(int pid, const char *name, const char *file, const char *key)
{
        char directory[64];
        struct dirent *thread;
        uint64_t all = 0;
        DIR *threads;

        snprintf(directory, sizeof(directory), "/proc/%d/task", pid);
        threads = opendir(directory);
        while (threads && (thread = readdir(threads)))
                if (thread->d_name[0] != '.' && is_named(directory, thread->d_name, name))
                        all += read_number(directory, thread->d_name, file, key);
        if (threads)
                closedir(threads);
        return all;
}

uint64_t thread_time_ns(int pid, const char *name)
{
        return sum(pid, name, "schedstat", "");
}

uint64_t thread_sleeps(int pid, const char *name)
{
        return sum(pid, name, "status", "voluntary_ctxt_switches:");
}
