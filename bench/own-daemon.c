#include "bench/own-daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/child.h"

#define START_MS 60000
#define NAP_MS   10

static struct {
        char directory[64], socket[80], log[80];
        pid_t pid; /* 0: none */
        struct smv_client *client;
} own;

static int wait_for(char *why, size_t why_bytes)
{
        const struct smv_connect options = { SMV_SIZE(smv_connect),  .socket = own.socket,
                                             .ring_bytes = 1u << 20, .any_uid = 1,
                                             .message = why,         .message_bytes = why_bytes };

        for (int waited = 0; waited < START_MS; waited += NAP_MS) {
                if (!smv_connect(&options, &own.client))
                        return 0;
                if (waitpid(own.pid, NULL, WNOHANG) == own.pid) {
                        own.pid = 0;
                        child_last_words(own.log, "samovard ended and said nothing", why,
                                         why_bytes);
                        return -ECHILD;
                }
                poll(NULL, 0, NAP_MS);
        }
        return -ETIMEDOUT;
}

int own_daemon_start(const char *program, const char *const *flags, struct smv_client **ret_client,
                     char *why, size_t why_bytes)
{
        const char *const before[] = { "--socket", own.socket, NULL };
        int r;

        snprintf(own.directory, sizeof(own.directory), "/tmp/samovar-bench-XXXXXX");
        if (!mkdtemp(own.directory)) {
                snprintf(why, why_bytes, "%s: %s", own.directory, strerror(errno));
                return -errno;
        }
        snprintf(own.socket, sizeof(own.socket), "%s/sock", own.directory);
        snprintf(own.log, sizeof(own.log), "%s/log", own.directory);
        own.pid = child_spawn(program, before, flags, own.log);
        r = own.pid > 0 ? wait_for(why, why_bytes) : -errno;
        if (r)
                own_daemon_stop();
        else
                *ret_client = own.client;
        return r;
}

void own_daemon_stop(void)
{
        char lock[sizeof(own.socket) + sizeof(".lock")];

        own.client = smv_close(own.client);
        if (own.pid > 0) {
                kill(own.pid, SIGTERM);
                waitpid(own.pid, NULL, 0);
        }
        own.pid = 0;
        snprintf(lock, sizeof(lock), "%s.lock", own.socket);
        unlink(lock);
        unlink(own.socket);
        unlink(own.log);
        rmdir(own.directory);
}

const char *own_daemon_socket(void)
{
        return own.socket;
}

int own_daemon_pid(void)
{
        return own.pid;
}

int own_daemon_knows(const char *program, const char *const *flags)
{
        const char *const before[] = { "--version", NULL };
        pid_t pid = child_spawn(program, before, flags, "/dev/null");
        int status;

        return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
               !WEXITSTATUS(status);
}
