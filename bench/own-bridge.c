#include "bench/own-bridge.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/child.h"
#include "bench/http-client.h"
#include "bench/thread-time.h"

#define NAP_MS   10
#define START_MS 60000

static struct {
        char log[64];
        pid_t pid; /* 0: none */
        uint16_t port;
} own;

/* The port, as the log names it; 0: not yet. */
static uint16_t logged_port(void)
{
        static const char words[] = "listening address=127.0.0.1:";
        FILE *log = fopen(own.log, "r");
        char line[256];
        int port = 0;

        while (log && !port && fgets(line, sizeof(line), log))
                if (strstr(line, words))
                        port = atoi(strstr(line, words) + sizeof(words) - 1);
        if (log)
                fclose(log);
        return (uint16_t)port;
}

static int is_ready(void)
{
        if (!own.port)
                own.port = logged_port();
        return own.port && http_ask(own.port, "GET /health", "") == 200;
}

int own_bridge_start(const char *program, const char *socket, char *why, size_t why_bytes)
{
        const char *const flags[] = { "--config",
                                      "none",
                                      "--socket",
                                      socket,
                                      "--listen",
                                      "127.0.0.1:0",
                                      "--connections",
                                      "4096",
                                      "--idle-timeout-ms",
                                      "3600000",
                                      "--log-level",
                                      "info",
                                      "--write-timeout-ms",
                                      "3600000",
                                      NULL };
        int fd;

        snprintf(own.log, sizeof(own.log), "/tmp/bench-http-XXXXXX");
        fd = mkstemp(own.log);
        if (fd < 0)
                return -errno;
        close(fd);
        own.port = 0;
        own.pid = child_spawn(program, flags, flags + sizeof(flags) / sizeof(*flags) - 1, own.log);
        for (int waited = 0; own.pid > 0 && waited < START_MS; waited += NAP_MS) {
                if (is_ready())
                        return 0;
                if (waitpid(own.pid, NULL, WNOHANG) == own.pid)
                        break;
                poll(NULL, 0, NAP_MS);
        }
        child_last_words(own.log, "samovar-http ended and said nothing", why, why_bytes);
        own_bridge_stop();
        return -ECHILD;
}

void own_bridge_stop(void)
{
        if (own.pid > 0) {
                kill(own.pid, SIGKILL);
                waitpid(own.pid, NULL, 0);
                unlink(own.log);
        }
        own.pid = 0;
}

uint16_t own_bridge_port(void)
{
        return own.port;
}

int own_bridge_pid(void)
{
        return own.pid;
}

uint64_t own_bridge_ns(void)
{
        return thread_time_ns(own.pid, "samovar-http");
}

uint64_t own_bridge_bytes(void)
{
        unsigned long long all = 0, resident = 0;
        char path[64];
        FILE *from;

        snprintf(path, sizeof(path), "/proc/%d/statm", own.pid);
        from = fopen(path, "r");
        if (from && fscanf(from, "%llu %llu", &all, &resident) != 2)
                resident = 0;
        if (from)
                fclose(from);
        return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
