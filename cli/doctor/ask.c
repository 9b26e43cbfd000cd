#include "cli/doctor/ask.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/reply.h"
#include "cli/status-reader.h"
#include "json/reader.h"

#define ANSWER_MS  2000 /* of systemctl and samovar-http, which are here and idle */
#define VALUES_MAX (1u << 20)

extern char **environ;

/* ---- the daemon ---- */

static void read_status(const char *json, struct daemon_facts *daemon)
{
        struct json_document *status;
        char why[128] = "";
        uint32_t model;

        if (json_parse(json, strlen(json), VALUES_MAX, &status, why, sizeof(why))) {
                daemon->result = -EPROTO;
                snprintf(daemon->message, sizeof(daemon->message), "its status cannot be read: %s",
                         why);
                return;
        }
        model = json_member(status, 0, "model");
        snprintf(daemon->version, sizeof(daemon->version), "%s", status_text(status, 0, "version"));
        snprintf(daemon->model, sizeof(daemon->model), "%s", status_text(status, model, "name"));
        snprintf(daemon->backend, sizeof(daemon->backend), "%s",
                 status_text(status, model, "backend"));
        json_whole(status, json_member(status, 0, "pid"), &daemon->pid);
        json_whole(status, json_member(status, 0, "uid"), &daemon->uid);
        json_whole(status, json_member(status, model, "bytes"), &daemon->model_bytes);
        json_bool(status, json_member(status, 0, "stopping"), &daemon->stopping);
        daemon->loading = status_number(status, "loading", "bytes") <
                          status_number(status, "loading", "total");
        json_free(status);
}

/* Tells a person why nothing is printed yet. */
static void on_wait(void *arg, const struct smv_problem *why, uint32_t wait_ms)
{
        bool *said = arg;

        (void)wait_ms;
        if (!*said && isatty(STDERR_FILENO))
                say("waiting for the daemon (--timeout): %s", why->message);
        *said = true;
}

void ask_daemon(const struct cli *cli, struct machine *machine)
{
        struct daemon_facts *daemon = &machine->daemon;
        struct smv_client *client = NULL;
        bool said = false;
        struct smv_connect options = {
                SMV_SIZE(smv_connect),
                .socket = cli->socket,
                .timeout_ms = (int)cli->wait_s * 1000,
                .message = daemon->message,
                .message_bytes = sizeof(daemon->message),
                .any_uid = cli->any_uid,
                .principal = cli->principal,
                .transport = SMV_TRANSPORT_SOCKET,
                .while_stopping = 1,
                .on_wait = on_wait,
                .on_wait_arg = &said,
                .reply_timeout_ms = (int)cli->wait_s * 1000,
        };
        const char *json, *socket;

        daemon->result = smv_connect(&options, &client);
        if (!daemon->result) {
                socket = smv_socket_used(client);
                snprintf(daemon->socket, sizeof(daemon->socket), "%s", socket ? socket : "");
                daemon->result = smv_status(client, &json);
                if (daemon->result)
                        snprintf(daemon->message, sizeof(daemon->message), "it gives no status: %s",
                                 strerror(-daemon->result));
                else
                        read_status(json, daemon);
        }
        smv_close(client);
}

/* ---- systemd ---- */

/* Reads until the end, the limit of time or that of space. */
static void read_output(int fd, char *to, size_t bytes)
{
        int64_t end = (int64_t)clock_ms() + ANSWER_MS, left;
        size_t used = 0;

        while (used + 1 < bytes && (left = end - (int64_t)clock_ms()) > 0) {
                struct pollfd wait = { .fd = fd, .events = POLLIN };
                ssize_t n;

                if (poll(&wait, 1, (int)left) < 1)
                        break;
                n = read(fd, to + used, bytes - 1 - used);
                if (n <= 0)
                        break;
                used += (size_t)n;
        }
        to[used] = '\0';
}

/* Runs systemctl with its output in a pipe.  -1: it is not there. */
static pid_t start_systemctl(int *ret_out)
{
        static char *const arguments[] = { "systemctl",
                                           "show",
                                           "--no-pager",
                                           "--property=Id,LoadState,ActiveState,SubState,Result",
                                           "samovar.socket",
                                           "samovar.service",
                                           "samovar-http.socket",
                                           "samovar-http.service",
                                           NULL };
        posix_spawn_file_actions_t actions;
        pid_t pid = -1;
        int out[2];

        if (pipe2(out, O_CLOEXEC))
                return -1;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        if (posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ))
                pid = -1;
        posix_spawn_file_actions_destroy(&actions);
        close(out[1]);
        *ret_out = out[0];
        return pid;
}

void ask_services(struct machine *machine)
{
        pid_t pid;
        int out = -1;

        if (!machine_has(machine, "/run/systemd/system"))
                return;
        pid = start_systemctl(&out);
        if (pid > 0) {
                read_output(out, machine->services, sizeof(machine->services));
                kill(pid, SIGKILL); /* it has ended, or it hangs */
                waitpid(pid, NULL, 0);
        }
        if (out >= 0)
                close(out);
}

/* ---- samovar-http ---- */

/* 0, or a negative errno. */
static int connect_to(const char *address, uint16_t port, int *ret_fd)
{
        struct sockaddr_in to_4 = { .sin_family = AF_INET, .sin_port = htons(port) };
        struct sockaddr_in6 to_6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        bool is_6 = strchr(address, ':');
        int fd = socket(is_6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

        if (fd < 0)
                return -errno;
        inet_pton(is_6 ? AF_INET6 : AF_INET, address,
                  is_6 ? (void *)&to_6.sin6_addr : (void *)&to_4.sin_addr);
        r = connect(fd, is_6 ? (struct sockaddr *)&to_6 : (struct sockaddr *)&to_4,
                    is_6 ? sizeof(to_6) : sizeof(to_4));
        if (r) {
                r = -errno;
                close(fd);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

/* The body of our health is {"status": ...}, and it says no more than that if all is well. */
static void read_health(const char *answer, struct http_facts *http)
{
        const char *body = strstr(answer, "\r\n\r\n"), *message;
        struct json_document *json;
        char why[128];
        int status;

        http->result = -EPROTO;
        if (sscanf(answer, "HTTP/1.1 %d", &status) != 1 || !body)
                return;
        http->result = status;
        if (json_parse(body + 4, strlen(body + 4), VALUES_MAX, &json, why, sizeof(why)))
                return;
        http->is_ours = json_string(json, json_member(json, 0, "status"), NULL) &&
                        (status == 200 || status == 503);
        message = json_string(json, json_member(json, 0, "message"), NULL);
        snprintf(http->message, sizeof(http->message), "%s", message ? message : "");
        json_free(json);
}

void ask_health(uint16_t port, struct http_facts *http)
{
        char question[128], answer[4096];
        int fd = -1, n;

        http->result = connect_to(http->address, port, &fd);
        if (http->result)
                return;
        n = snprintf(question, sizeof(question),
                     "GET /health HTTP/1.1\r\nHost: localhost:%u\r\nConnection: close\r\n\r\n",
                     port);
        if (send(fd, question, (size_t)n, MSG_NOSIGNAL) == n) {
                read_output(fd, answer, sizeof(answer));
                read_health(answer, http);
        }
        close(fd);
}

/* ---- files ---- */

uint64_t folder_bytes(const char *path)
{
        DIR *folder = opendir(path);
        const struct dirent *entry;
        uint64_t bytes = 0;
        struct stat file;

        while (folder && (entry = readdir(folder)))
                if (!fstatat(dirfd(folder), entry->d_name, &file, 0) && S_ISREG(file.st_mode))
                        bytes += (uint64_t)file.st_size;
        if (folder)
                closedir(folder);
        return bytes;
}
