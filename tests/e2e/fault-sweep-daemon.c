#include "tests/e2e/fault-sweep-daemon.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/engine/weights-reader.h"

int samovard_main(int argc, char **argv);

/* clang-format off */
static const char *const settings[] = {
        "threads",  "2", "isa",         "c",  "connections",  "8",  "requests",           "16",
        "max_seqs", "4", "step_tokens", "16", "uid_requests", "16", "uid_connects_burst", "1000",
        "constraints_kept", "0",
};
/* clang-format on */
#define SETTINGS (sizeof(settings) / sizeof(*settings))

static bool has_uring;

/* A scenario does without io_uring where the kernel does not offer it. */
static const char *load_of(const struct scenario *scenario)
{
        return scenario->load && (has_uring || strcmp(scenario->load, "uring")) ? scenario->load
                                                                                : "auto";
}

void trial_write_config(const struct fault_trial *trial)
{
        char path[96];
        FILE *file;

        snprintf(path, sizeof(path), "%s/config", trial->fixture->directory);
        file = fopen(path, "w");
        assert(file);
        fprintf(file, "model = %s/toy-model.gguf\nsocket = %s\n", trial->fixture->directory,
                trial->fixture->socket);
        fprintf(file, "load = %s\n", load_of(trial->scenario));
        for (size_t i = 0; i < SETTINGS; i += 2)
                fprintf(file, "%s = %s\n", settings[i], settings[i + 1]);
        fclose(file);
}

/* The words of argv are few and live as long as the process. */
static char *word(const char *format, const char *filling)
{
        char *made;

        if (asprintf(&made, format, filling) < 0)
                abort();
        for (char *c = made; *c && format[0] == '-'; c++)
                if (*c == '_')
                        *c = '-';
        return made;
}

static int fill_argv(const struct fault_trial *trial, int fd, char **argv)
{
        int argc = 0;
        char number[16];

        argv[argc++] = word("%s", "samovard");
        if (trial->scenario->by_config) {
                argv[argc++] = word("%s", "--config");
                argv[argc++] = word("%s/config", trial->fixture->directory);
                return argc;
        }
        argv[argc++] = word("%s", "--model");
        argv[argc++] = word("%s/toy-model.gguf", trial->fixture->directory);
        snprintf(number, sizeof(number), "%d", fd);
        argv[argc++] = word("--%s", trial->scenario->by_fd ? "fd" : "socket");
        argv[argc++] = word("%s", trial->scenario->by_fd ? number : trial->fixture->socket);
        argv[argc++] = word("%s", "--load");
        argv[argc++] = word("%s", load_of(trial->scenario));
        for (size_t i = 0; i < SETTINGS; i += 2) {
                argv[argc++] = word("--%s", settings[i]);
                argv[argc++] = word("%s", settings[i + 1]);
        }
        return argc;
}

/*
 * cmocka catches the signals of a crash and continues with the next test.  If it caught a crash of
 * the daemon, the child would run all our tests a second time.  So the child restores the former
 * handlers.
 */
static const int crashes[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
#define CRASHES (sizeof(crashes) / sizeof(*crashes))
static struct sigaction before_cmocka[CRASHES];

void fault_sweep_begin(void)
{
        struct reader *reader;

        has_uring = !reader_open_uring(1, &reader);
        if (has_uring)
                reader->close(reader);
        faults_begin();
        for (size_t i = 0; i < CRASHES; i++)
                if (sigaction(crashes[i], NULL, &before_cmocka[i]))
                        abort();
}

static char *child_argv[64]; /* reachable, for a leak checker */

void trial_run_daemon(const struct fault_trial *trial, int fd)
{
        int log = open(trial->fixture->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        int argc = fill_argv(trial, fd, child_argv);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_DFL);
        for (size_t i = 0; i < CRASHES; i++)
                sigaction(crashes[i], &before_cmocka[i], NULL);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(log);
        if (trial->fd >= 0)
                close(trial->fd);
        faults_arm(&trial->plan);
        exit(samovard_main(argc, child_argv));
}
