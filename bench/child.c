#include "bench/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FLAGS_MAX 64u

pid_t child_spawn(const char *program, const char *const *before, const char *const *flags,
                  const char *log)
{
        const char *argv[FLAGS_MAX + 1] = { program };
        size_t count = 1;
        pid_t pid;
        int fd;

        for (; *before && count < FLAGS_MAX; before++)
                argv[count++] = *before;
        for (; *flags && count < FLAGS_MAX; flags++)
                argv[count++] = *flags;
        argv[count] = NULL;
        fflush(NULL);
        pid = fork();
        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fd = open(log, O_WRONLY | O_CREAT, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execv(program, (char *const *)argv);
        fprintf(stderr, "%s: %s\n", program, strerror(errno));
        _exit(127);
}

void child_last_words(const char *log, const char *otherwise, char *why, size_t why_bytes)
{
        FILE *from = fopen(log, "r");
        char line[256];

        snprintf(why, why_bytes, "%s", otherwise);
        while (from && fgets(line, sizeof(line), from)) {
                line[strcspn(line, "\n")] = '\0';
                snprintf(why, why_bytes, "%s", line);
        }
        if (from)
                fclose(from);
}
