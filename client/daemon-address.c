#include "client/daemon-address.h"

#include <errno.h>
#include <pwd.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USERS_BYTES 4096u /* for an entry of the user database */

static void add_path(struct daemon_paths *paths, const char *folder, const char *inside)
{
        char *to = paths->at[paths->count];
        int n = snprintf(to, DAEMON_PATH_BYTES, "%s%s", folder, inside);

        if (n >= 0 && (size_t)n < DAEMON_PATH_BYTES)
                paths->count++;
}

void daemon_paths_find(const char *named, struct daemon_paths *ret_paths)
{
        const char *variable = getenv("SAMOVAR_SOCKET");
        const char *runtime = getenv("XDG_RUNTIME_DIR");

        ret_paths->count = 0;
        if (!named && variable && *variable)
                named = variable;
        if (named) {
                add_path(ret_paths, named, "");
                return;
        }
        if (runtime && runtime[0] == '/')
                add_path(ret_paths, runtime, "/" SMV_SOCKET_PATH);
        add_path(ret_paths, SMV_SYSTEM_SOCKET, "");
}

/* ---- trust ---- */

static bool belongs_to(const struct stat *file, uint32_t uid)
{
        return file->st_uid == uid && !(file->st_mode & (S_IWGRP | S_IWOTH));
}

bool trust_by_folder(const char *folder, const char *above, uint32_t uid)
{
        struct stat inner, outer;

        return !lstat(folder, &inner) && S_ISDIR(inner.st_mode) && belongs_to(&inner, uid) &&
               !lstat(above, &outer) && S_ISDIR(outer.st_mode) && belongs_to(&outer, 0);
}

/* The user that a line trusts: a number, or the name of a user.  False: it names none. */
static bool read_user(const char *line, uint32_t *ret_uid)
{
        char name[64], users[USERS_BYTES], *end;
        struct passwd entry, *found = NULL;
        unsigned long number;

        if (sscanf(line, " trust = %63s", name) != 1)
                return false;
        number = strtoul(name, &end, 10);
        if (*name >= '0' && *name <= '9' && !*end && number < UINT32_MAX) {
                *ret_uid = (uint32_t)number;
                return true;
        }
        if (getpwnam_r(name, &entry, users, sizeof(users), &found) || !found)
                return false;
        *ret_uid = found->pw_uid;
        return true;
}

bool trust_by_file(const char *file, uint32_t uid)
{
        FILE *lines = fopen(file, "re");
        struct stat opened;
        char line[256];
        uint32_t user;
        bool trusts = false, whole = true; /* the line before ended */

        if (!lines)
                return false;
        if (!fstat(fileno(lines), &opened) && S_ISREG(opened.st_mode) && belongs_to(&opened, 0))
                while (!trusts && fgets(line, sizeof(line), lines)) {
                        bool begins = whole;

                        whole = strchr(line, '\n');
                        trusts = begins && read_user(line, &user) && user == uid;
                }
        fclose(lines);
        return trusts;
}

bool daemon_is_trusted(const char *path, uint32_t uid)
{
        if (uid == 0 || uid == geteuid())
                return true;
        if (!strcmp(path, SMV_SYSTEM_SOCKET) && trust_by_folder("/run/samovar", "/run", uid))
                return true;
        return trust_by_file(SMV_CLIENT_CONF, uid);
}
