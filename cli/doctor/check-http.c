/* samovar-http: who holds its port, and what it says about its daemon. */
#include "cli/doctor/checks.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE_LISTEN 0x0au
#define LINE_BYTES   512

struct listener {
        uint32_t uid;
        uint64_t inode;
};

/*
 * Addresses as /proc/net/tcp and tcp6 have them: words of 32 bits in the order of the machine.  The
 * first is the address itself, the second that of all addresses.
 */
static const char *const addresses_4[] = { "0100007F", "00000000" };
static const char *const addresses_6[] = { "00000000000000000000000001000000",
                                           "00000000000000000000000000000000" };

/* Finds a listener at one of the two addresses. */
static bool find_listener(const struct machine *machine, const char *file,
                          const char *const addresses[2], struct listener *ret_listener)
{
        char path[MACHINE_PATH], line[LINE_BYTES], address[40];
        FILE *lines = machine_path(machine, file, path) ? fopen(path, "re") : NULL;
        unsigned port, state;
        bool found = false;

        while (lines && !found && fgets(line, sizeof(line), lines)) {
                if (sscanf(line, " %*[^:]: %39[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %u %*s %" SCNu64,
                           address, &port, &state, &ret_listener->uid, &ret_listener->inode) != 5)
                        continue;
                found = state == STATE_LISTEN && port == machine->port &&
                        (!strcmp(address, addresses[0]) || !strcmp(address, addresses[1]));
        }
        if (lines)
                fclose(lines);
        return found;
}

/* True if a descriptor of that process is the socket. */
static bool holds(const struct machine *machine, const char *pid, uint64_t inode)
{
        char folder[MACHINE_PATH], inside[64], link[300], target[64], wanted[64];
        const struct dirent *entry;
        bool found = false;
        DIR *fds;

        snprintf(inside, sizeof(inside), "/proc/%.20s/fd", pid);
        fds = machine_path(machine, inside, folder) ? opendir(folder) : NULL;
        snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
        while (fds && !found && (entry = readdir(fds))) {
                ssize_t n;

                snprintf(link, sizeof(link), "%.20s", entry->d_name);
                n = readlinkat(dirfd(fds), link, target, sizeof(target) - 1);
                target[n > 0 ? n : 0] = '\0';
                found = !strcmp(target, wanted);
        }
        if (fds)
                closedir(fds);
        return found;
}

/* The process that has the socket, if we may see it: "nginx, process 12, ". */
static void name_process(const struct machine *machine, uint64_t inode, char *to, size_t bytes)
{
        char folder[MACHINE_PATH], inside[64], name[32];
        DIR *processes = machine_path(machine, "/proc", folder) ? opendir(folder) : NULL;
        const struct dirent *entry;

        to[0] = '\0';
        while (processes && !*to && (entry = readdir(processes))) {
                if (!isdigit((unsigned char)entry->d_name[0]) ||
                    !holds(machine, entry->d_name, inode))
                        continue;
                snprintf(inside, sizeof(inside), "/proc/%.20s/comm", entry->d_name);
                machine_read(machine, inside, name, sizeof(name));
                name[strcspn(name, "\n")] = '\0';
                snprintf(to, bytes, "%s, process %.20s, ", name, entry->d_name);
        }
        if (processes)
                closedir(processes);
}

static void check_port(const struct machine *machine, const struct http_facts *http,
                       const char *file, const char *const addresses[2], struct finding *finding)
{
        struct listener listener = { 0 };
        char process[96];

        if (http->is_ours) {
                find(finding, VERDICT_OK, "samovar-http listens at port %u", machine->port);
                return;
        }
        if (!machine_has(machine, file)) {
                find(finding, VERDICT_OK, "this machine does not have such addresses");
                return;
        }
        if (!find_listener(machine, file, addresses, &listener)) {
                find(finding, VERDICT_OK, "port %u is free", machine->port);
                return;
        }
        name_process(machine, listener.inode, process, sizeof(process));
        find(finding, VERDICT_WARN, "port %u is held by %s%sof uid %u", machine->port, process,
             *process ? "" : "a process ", listener.uid);
        if (!strncmp(process, "systemd,", 8) || !strncmp(process, "samovar-http,", 13))
                advise(finding, "it does not answer: journalctl -u samovar-http");
        else
                advise(finding, "end that program, or let samovar-http listen elsewhere: --listen "
                                "127.0.0.1:PORT");
}

void check_port_4(const struct machine *machine, struct finding *finding)
{
        check_port(machine, &machine->http[0], "/proc/net/tcp", addresses_4, finding);
}

void check_port_6(const struct machine *machine, struct finding *finding)
{
        check_port(machine, &machine->http[1], "/proc/net/tcp6", addresses_6, finding);
}

void check_health(const struct machine *machine, struct finding *finding)
{
        const struct http_facts *http = &machine->http[machine->http[0].is_ours ? 0 : 1];

        if (!http->is_ours) {
                find(finding, VERDICT_OK, "samovar-http does not run");
        } else if (http->result == 200) {
                find(finding, VERDICT_OK, "samovar-http has a daemon with a loaded model");
        } else {
                find(finding, VERDICT_FAIL, "samovar-http answers %d: %s", http->result,
                     http->message);
                advise(finding, "programs that use HTTP get 503: see the lines about the daemon");
        }
}
