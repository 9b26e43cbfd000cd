/* The socket, its folder, the daemon behind it, and who may connect. */
#include "cli/doctor/checks.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE_GROUP "samovar"
#define PATH_MAX_UNIX 107u /* bytes that the path of a Unix socket may have */

/* ---- names of /etc/passwd and /etc/group below the root ---- */

/* Finds the line "NAME:x:NUMBER:..." of that number or name, and copies it. */
static bool find_entry(const struct machine *machine, const char *path, const char *name,
                       const uint32_t *number, char *to, size_t bytes)
{
        char whole[MACHINE_PATH], line[4096], found[64];
        FILE *file = machine_path(machine, path, whole) ? fopen(whole, "re") : NULL;
        unsigned entry;
        bool is_it = false;

        while (file && !is_it && fgets(line, sizeof(line), file))
                is_it = sscanf(line, "%63[^:]:%*[^:]:%u", found, &entry) == 2 &&
                        (name ? !strcmp(found, name) : entry == *number);
        if (file)
                fclose(file);
        if (is_it)
                snprintf(to, bytes, "%s", line);
        return is_it;
}

/* The name of a number, or the number. */
static const char *name_in(const struct machine *machine, const char *path, uint32_t number,
                           char to[64])
{
        char line[4096];

        if (find_entry(machine, path, NULL, &number, line, sizeof(line)))
                snprintf(to, 64, "%.*s", (int)strcspn(line, ":"), line);
        else
                snprintf(to, 64, "%u", number);
        return to;
}

/* ---- the socket ---- */

/* The first path at which something is; the first one if there is nothing. */
static const char *socket_path(const struct machine *machine)
{
        if (!machine->daemon.result && *machine->daemon.socket)
                return machine->daemon.socket;
        for (size_t i = 0; i < machine->socket_count; i++)
                if (machine_has(machine, machine->sockets[i]))
                        return machine->sockets[i];
        return machine->sockets[0];
}

static void advise_start(const struct machine *machine, struct finding *finding)
{
        if (machine_has(machine, "/usr/lib/systemd/system/samovar.socket") ||
            machine_has(machine, "/lib/systemd/system/samovar.socket"))
                advise(finding, "start the service: sudo systemctl start samovar.socket "
                                "samovar.service");
        else if (machine->named)
                advise(finding, "start one: samovard --socket %s", machine->sockets[0]);
        else
                advise(finding, "start one: samovard");
}

static void find_no_socket(const struct machine *machine, const char *path, int error,
                           struct finding *finding)
{
        bool hidden = error == -EACCES;

        if (machine->socket_count > 1 && !hidden)
                find(finding, VERDICT_WARN, "none at %s, nor at %s", machine->sockets[0],
                     machine->sockets[1]);
        else
                find(finding, machine->named || hidden ? VERDICT_FAIL : VERDICT_WARN, "%s: %s",
                     path, strerror(-error));
        if (hidden)
                advise(finding, "you may not enter its folder: see the next line");
        else
                advise_start(machine, finding);
}

void check_socket(const struct machine *machine, struct finding *finding)
{
        const char *path = socket_path(machine);
        char owner[64], group[64];
        struct stat file;
        int r = machine_stat(machine, path, &file);

        if (strlen(path) > PATH_MAX_UNIX) {
                find(finding, VERDICT_FAIL, "the path has %zu bytes; a socket may have %u",
                     strlen(path), PATH_MAX_UNIX);
                advise(finding, "choose a shorter path: --socket, or $SAMOVAR_SOCKET");
        } else if (r) {
                find_no_socket(machine, path, r, finding);
        } else if (!S_ISSOCK(file.st_mode)) {
                find(finding, VERDICT_FAIL, "%s is no socket", path);
                advise(finding, "name the socket of the daemon: --socket, or $SAMOVAR_SOCKET");
        } else {
                find(finding, VERDICT_OK, "%s, mode %04o, %s:%s", path, file.st_mode & 07777u,
                     name_in(machine, "/etc/passwd", file.st_uid, owner),
                     name_in(machine, "/etc/group", file.st_gid, group));
                if (machine_may_write(machine, &file))
                        return;
                finding->verdict = VERDICT_FAIL;
                if (file.st_mode & S_IWGRP)
                        advise(finding,
                               "its mode does not let you in: ask root to add you to the group %s",
                               group);
                else
                        advise(finding,
                               "its mode lets only %s in: ask for another socket_mode, or start a "
                               "daemon of your own",
                               owner);
        }
}

/* Others could replace the socket of a daemon in a folder that they may write to. */
void check_folder(const struct machine *machine, struct finding *finding)
{
        char folder[MACHINE_PATH], owner[64];
        struct stat file;
        char *slash;
        int r;

        snprintf(folder, sizeof(folder), "%s", socket_path(machine));
        slash = strrchr(folder, '/');
        if (!slash || slash == folder) {
                find(finding, VERDICT_OK, "%s is in no folder of its own", folder);
                return;
        }
        *slash = '\0';
        r = machine_stat(machine, folder, &file);
        if (r) {
                find(finding, r == -EACCES ? VERDICT_FAIL : VERDICT_OK, "%s: %s", folder,
                     r == -ENOENT ? "not there; the daemon makes it" : strerror(-r));
                return;
        }
        find(finding, VERDICT_OK, "%s, mode %04o, %s", folder, file.st_mode & 07777u,
             name_in(machine, "/etc/passwd", file.st_uid, owner));
        if (!machine_may_enter(machine, &file)) {
                finding->verdict = VERDICT_FAIL;
                advise(finding,
                       "its mode does not let you in: ask %s, or start a daemon of your own",
                       owner);
        } else if (file.st_mode & S_IWOTH && !(file.st_mode & S_ISVTX)) {
                finding->verdict = VERDICT_FAIL;
                advise(finding, "every user may replace the socket: chmod o-w %s", folder);
        } else if (file.st_uid != 0 && file.st_uid != machine->uid &&
                   (machine->daemon.result || file.st_uid != machine->daemon.uid)) {
                finding->verdict = VERDICT_WARN;
                advise(finding,
                       "user %s may replace the socket, and would read your prompts: use "
                       "it only if you trust that user",
                       owner);
        }
}

/* ---- the daemon ---- */

/* A socket without a daemon behind it, or a path that was named, is a failure. */
static bool is_expected(const struct machine *machine)
{
        return machine->named || machine_has(machine, socket_path(machine));
}

static void advise_about(const struct machine *machine, int error, struct finding *finding)
{
        if (error == -EACCES)
                advise(finding, "see the lines about the socket, its folder and the group");
        else if (error == -ETIMEDOUT)
                advise(finding, "it is stopped, busy, or hangs: its log says more (journalctl -u "
                                "samovar); --timeout waits longer");
        else if (error == -EPERM)
                advise(finding, "if you trust that user: --any-uid, or a line in %s",
                       SMV_CLIENT_CONF);
        else
                advise_start(machine, finding);
}

void check_daemon(const struct machine *machine, struct finding *finding)
{
        const struct daemon_facts *daemon = &machine->daemon;
        char owner[64];

        if (daemon->result) {
                find(finding, is_expected(machine) ? VERDICT_FAIL : VERDICT_WARN, "none: %s",
                     *daemon->message ? daemon->message : strerror(-daemon->result));
                advise_about(machine, daemon->result, finding);
                return;
        }
        find(finding, VERDICT_OK, "process %" PRIu64 " of user %s serves %s on %s", daemon->pid,
             name_in(machine, "/etc/passwd", (uint32_t)daemon->uid, owner), daemon->model,
             daemon->backend);
        if (daemon->stopping) {
                finding->verdict = VERDICT_WARN;
                find_more(finding, "; it is stopping");
                advise(finding, "wait, or start it again: it takes no new work");
        } else if (daemon->loading) {
                find_more(finding, "; it is loading the model");
        }
}

void check_version(const struct machine *machine, struct finding *finding)
{
        find(finding, VERDICT_OK, "%s", machine->version);
        if (machine->daemon.result)
                return;
        if (!strcmp(machine->version, machine->daemon.version)) {
                find_more(finding, ", and so is the daemon's");
                return;
        }
        finding->verdict = VERDICT_WARN;
        find_more(finding, " here, %s of the daemon", machine->daemon.version);
        advise(finding, "install the same version of both, and restart the daemon");
}

/* ---- the group ---- */

/* True if the comma-separated members at the end of a line of /etc/group have the user. */
static bool has_member(const char *line, const char *user)
{
        const char *at = strrchr(line, ':');
        size_t bytes = strlen(user);

        while (at && *at && *at != '\n') {
                at++;
                if (!strncmp(at, user, bytes) && strchr(",\n", at[bytes]))
                        return true;
                at += strcspn(at, ",\n");
        }
        return false;
}

void check_group(const struct machine *machine, struct finding *finding)
{
        char line[4096];
        unsigned gid = 0;

        if (!find_entry(machine, "/etc/group", SERVICE_GROUP, NULL, line, sizeof(line)) ||
            sscanf(line, "%*[^:]:%*[^:]:%u", &gid) != 1) {
                find(finding, VERDICT_OK,
                     "there is no group " SERVICE_GROUP ": the service of the machine is not "
                     "installed");
        } else if (machine->uid == 0) {
                find(finding, VERDICT_OK, "root needs no membership");
        } else if (machine_in_group(machine, gid)) {
                find(finding, VERDICT_OK, "%s is in the group " SERVICE_GROUP, machine->user);
        } else if (has_member(line, machine->user)) {
                find(finding, VERDICT_WARN,
                     "%s is in the group " SERVICE_GROUP ", but this session began before that",
                     machine->user);
                advise(finding, "log in again, or run: newgrp " SERVICE_GROUP);
        } else {
                find(finding, VERDICT_WARN, "%s is not in the group " SERVICE_GROUP, machine->user);
                advise(finding,
                       "to use the service of the machine, ask root: usermod -aG " SERVICE_GROUP
                       " %s; then log in again",
                       machine->user);
        }
}

/* ---- services ---- */

/* A unit as systemctl shows it. */
struct unit {
        char id[64], load[32], active[32], sub[32], result[32];
};

/* Reads the lines up to an empty one.  NULL: there are no more units. */
static const char *read_unit(const char *at, struct unit *ret_unit)
{
        *ret_unit = (struct unit){ 0 };
        while (*at == '\n')
                at++;
        if (!*at)
                return NULL;
        while (*at && *at != '\n') {
                sscanf(at, "Id=%63[^\n]", ret_unit->id);
                sscanf(at, "LoadState=%31[^\n]", ret_unit->load);
                sscanf(at, "ActiveState=%31[^\n]", ret_unit->active);
                sscanf(at, "SubState=%31[^\n]", ret_unit->sub);
                sscanf(at, "Result=%31[^\n]", ret_unit->result);
                at += strcspn(at, "\n");
                at += *at == '\n';
        }
        return at;
}

void check_services(const struct machine *machine, struct finding *finding)
{
        const char *at = machine->services;
        struct unit unit;
        unsigned count = 0;

        find(finding, VERDICT_OK, "%s", "");
        while ((at = read_unit(at, &unit))) {
                if (strcmp(unit.load, "loaded") != 0)
                        continue;
                find_more(finding, "%s%s %s (%s)", count++ ? ", " : "", unit.id, unit.active,
                          unit.sub);
                if (strcmp(unit.active, "failed") != 0 || finding->verdict == VERDICT_FAIL)
                        continue;
                finding->verdict = VERDICT_FAIL;
                advise(finding,
                       "%s has failed (%s): journalctl -u %s; then systemctl reset-failed %s and "
                       "systemctl start %s",
                       unit.id, unit.result, unit.id, unit.id, unit.id);
        }
        if (!count)
                find(finding, VERDICT_OK, "%s",
                     *machine->services ? "systemd has no units of samovar"
                                        : "there is no systemd here");
}
