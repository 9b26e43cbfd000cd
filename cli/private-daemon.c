/*
 * A private daemon: `--model FILE` needs no service.
 *
 * samovard gets one end of a socket pair as descriptor 3.  It serves only this socket, and
 * ends when the socket closes.  It has its own process group, so that a ^C meant for the
 * stream does not reach it.  It dies with this process, even if this process is killed.
 */
#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DAEMON_FD 3
#define END_MS    2000
#define FLAGS_MAX 32u

bool daemon_is_file(const char *model)
{
        const char *dot = strrchr(model, '.');

        return strchr(model, '/') ||
               (dot && dot > model && (!strcmp(dot, ".gguf") || !strcmp(dot, ".safetensors")));
}

void program_find(const struct program_names *names, char *path, size_t size)
{
        const char *const places[] = { names->installed, names->built };
        const char *named = getenv(names->variable);
        char self[PATH_MAX];
        char *slash;
        ssize_t n;

        if (named && *named) {
                snprintf(path, size, "%s", named);
                return;
        }

        n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        self[n > 0 ? n : 0] = '\0';
        slash = strrchr(self, '/');
        for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
                slash[1] = '\0';
                if ((size_t)snprintf(path, size, "%s%s", self, places[i]) < size &&
                    !access(path, X_OK))
                        return;
        }
        snprintf(path, size, "%s", names->installed);
}

static void find_daemon(char *path, size_t size)
{
        static const struct program_names samovard = { "SAMOVARD", "samovard",
                                                       "../daemon/samovard" };

        program_find(&samovard, path, size);
}

static void run_child(const char *program, const char *model, const char *const *flags, int fd,
                      pid_t parent)
{
        const char *argv[FLAGS_MAX + 8] = { program };
        char number[16];
        size_t count = 1;

        snprintf(number, sizeof(number), "%d", DAEMON_FD);
        if (model) {
                argv[count++] = "--model";
                argv[count++] = model;
        }
        argv[count++] = "--fd";
        argv[count++] = number;
        for (size_t i = 0; flags[i]; i++) {
                assert(i < FLAGS_MAX);
                argv[count++] = flags[i];
        }
        argv[count++] = "--log-level";
        argv[count++] = "warn";
        setpgid(0, 0);
        signal(SIGPIPE, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(1); /* the parent died before prctl() */

        /* dup2() clears close-on-exec, except if both descriptors are the same. */
        if (fd == DAEMON_FD)
                fcntl(fd, F_SETFD, 0);
        else if (dup2(fd, DAEMON_FD) < 0)
                _exit(1);
        execvp(program, (char *const *)argv);
        say("cannot run %s: %s", program, strerror(errno));
        _exit(127);
}

int daemon_inspect(const char *model, bool json)
{
        char program[PATH_MAX + 32];

        find_daemon(program, sizeof(program));
        execlp(program, program, "--inspect", "--model", model, json ? "--json" : (char *)NULL,
               (char *)NULL);
        say("cannot run %s: %s", program, strerror(errno));
        return CLI_FAILED;
}

int daemon_describe(const char *model, struct bytes *ret_json)
{
        char program[PATH_MAX + 32], named[PATH_MAX + 32];
        int out[2], status, r;
        pid_t pid;

        /* Give the model a name, so that samovard need not make one from the path. */
        if ((size_t)snprintf(named, sizeof(named), "%s=preview", model) >= sizeof(named)) {
                say("%s: %s", model, strerror(ENAMETOOLONG));
                return CLI_FAILED;
        }
        find_daemon(program, sizeof(program));
        if (pipe2(out, O_CLOEXEC) < 0) {
                say("cannot make a pipe: %s", strerror(errno));
                return CLI_FAILED;
        }
        pid = fork();
        if (!pid) {
                if (dup2(out[1], STDOUT_FILENO) < 0)
                        _exit(1);
                signal(SIGPIPE, SIG_DFL);
                execlp(program, program, "--inspect", "--json", "--model", named, (char *)NULL);
                say("cannot run %s: %s", program, strerror(errno));
                _exit(127);
        }
        close(out[1]);
        r = pid < 0 ? CLI_FAILED : input_read(out[0], "the description", ret_json);
        close(out[0]);
        if (pid > 0 && (waitpid(pid, &status, 0) != pid || !ret_json->count))
                r = CLI_FAILED;
        if (pid < 0)
                say("cannot fork: %s", strerror(errno));
        return r;
}

int daemon_render(const struct cli *cli, const char *messages, int in, int *ret_out, pid_t *ret_pid)
{
        char program[PATH_MAX + 32], model[PATH_MAX + 32];
        int out[2];
        pid_t pid;

        /* Give the model a name, so that samovard need not make one from the path. */
        if ((size_t)snprintf(model, sizeof(model), "%s=preview", cli->file) >= sizeof(model)) {
                say("%s: %s", cli->file, strerror(ENAMETOOLONG));
                return CLI_FAILED;
        }
        find_daemon(program, sizeof(program));
        if (pipe2(out, O_CLOEXEC) < 0) {
                say("cannot make a pipe: %s", strerror(errno));
                return CLI_FAILED;
        }
        pid = fork();
        if (!pid) {
                if (dup2(out[1], STDOUT_FILENO) < 0 || (in >= 0 && dup2(in, STDIN_FILENO) < 0))
                        _exit(1);
                execlp(program, program, "--template", "--model", model, "--messages", messages,
                       cli->json ? "--json" : (char *)NULL, (char *)NULL);
                say("cannot run %s: %s", program, strerror(errno));
                _exit(127);
        }
        close(out[1]);
        if (pid < 0) {
                say("cannot fork: %s", strerror(errno));
                close(out[0]);
                return CLI_FAILED;
        }
        *ret_out = out[0];
        *ret_pid = pid;
        return 0;
}

int daemon_start(const char *model, uint32_t sequences, int *ret_fd, pid_t *ret_pid)
{
        char number[16];

        snprintf(number, sizeof(number), "%u", sequences);
        return daemon_start_with(model, (const char *const[]){ "--max-seqs", number, NULL }, ret_fd,
                                 ret_pid);
}

int daemon_start_with(const char *model, const char *const *flags, int *ret_fd, pid_t *ret_pid)
{
        char program[PATH_MAX + 32];
        pid_t parent = getpid(), pid;
        int pair[2];

        if (model && access(model, R_OK) < 0) {
                say("%s: %s", model, strerror(errno));
                return CLI_FAILED;
        }
        find_daemon(program, sizeof(program));

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
                say("cannot make a socket pair: %s", strerror(errno));
                return CLI_FAILED;
        }
        pid = fork();
        if (!pid)
                run_child(program, model, flags, pair[1], parent);
        close(pair[1]);
        if (pid < 0) {
                say("cannot fork: %s", strerror(errno));
                close(pair[0]);
                return CLI_FAILED;
        }
        *ret_fd = pair[0];
        *ret_pid = pid;
        return 0;
}

void daemon_end(pid_t pid, char *how, size_t size)
{
        int status = 0;
        pid_t r = 0;

        *how = '\0';
        for (int waited = 0; waited < END_MS && !r; waited += 5) {
                r = waitpid(pid, &status, WNOHANG);
                if (!r)
                        poll(NULL, 0, 5);
        }
        if (r == pid && WIFEXITED(status)) {
                snprintf(how, size, "it ended with status %d", WEXITSTATUS(status));
        } else if (r == pid && WIFSIGNALED(status)) {
                snprintf(how, size, "it was killed by signal %d", WTERMSIG(status));
        } else {
                kill(pid, SIGKILL);
                waitpid(pid, &status, 0);
        }
}
