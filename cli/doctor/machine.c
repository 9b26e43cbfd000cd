#include "cli/doctor/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool machine_path(const struct machine *machine, const char *path, char to[MACHINE_PATH])
{
        int n = snprintf(to, MACHINE_PATH, "%s%s", machine->root, path);

        return n >= 0 && (size_t)n < MACHINE_PATH;
}

bool machine_read(const struct machine *machine, const char *path, char *to, size_t bytes)
{
        char whole[MACHINE_PATH];
        FILE *file = machine_path(machine, path, whole) ? fopen(whole, "re") : NULL;
        size_t n;

        to[0] = '\0';
        if (!file)
                return false;
        n = fread(to, 1, bytes - 1, file);
        to[n] = '\0';
        fclose(file);
        return true;
}

bool machine_read_number(const struct machine *machine, const char *path, uint64_t *ret_number)
{
        char text[64], *end;
        unsigned long long number;

        if (!machine_read(machine, path, text, sizeof(text)))
                return false;
        number = strtoull(text, &end, 0);
        if (end == text)
                return false;
        *ret_number = number;
        return true;
}

bool machine_has(const struct machine *machine, const char *path)
{
        struct stat file;

        return !machine_stat(machine, path, &file);
}

int machine_stat(const struct machine *machine, const char *path, struct stat *ret_stat)
{
        char whole[MACHINE_PATH];

        if (!machine_path(machine, path, whole))
                return -ENAMETOOLONG;
        return stat(whole, ret_stat) ? -errno : 0;
}

bool machine_line_number(const char *text, const char *word, uint64_t *ret_number)
{
        size_t bytes = strlen(word);

        for (const char *at = text; at; at = strchr(at, '\n')) {
                at += *at == '\n';
                if (!strncmp(at, word, bytes))
                        return sscanf(at + bytes, "%" SCNu64, ret_number) == 1;
        }
        return false;
}

void machine_process(const struct machine *machine, char to[MACHINE_PATH], bool *ret_is_daemon)
{
        snprintf(to, MACHINE_PATH, "/proc/%" PRIu64, machine->daemon.pid);
        *ret_is_daemon = !machine->daemon.result && machine->daemon.pid && machine_has(machine, to);
        if (!*ret_is_daemon)
                snprintf(to, MACHINE_PATH, "/proc/self");
}

bool machine_in_group(const struct machine *machine, uint32_t gid)
{
        for (size_t i = 0; i < machine->group_count; i++)
                if (machine->groups[i] == gid)
                        return true;
        return machine->gid == gid;
}

/* The three bits of the mode that count for this user. */
static mode_t bits_of(const struct machine *machine, const struct stat *file)
{
        if (machine->uid == file->st_uid)
                return file->st_mode >> 6 & 7;
        return (machine_in_group(machine, file->st_gid) ? file->st_mode >> 3 : file->st_mode) & 7;
}

bool machine_may_write(const struct machine *machine, const struct stat *file)
{
        return machine->uid == 0 || (bits_of(machine, file) & 6) == 6;
}

bool machine_may_enter(const struct machine *machine, const struct stat *folder)
{
        return machine->uid == 0 || bits_of(machine, folder) & 1;
}
