#include "cli/pull/serving.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/bytes.h"
#include "store/text-file.h"

#define COMMAND_MAX (1u << 20)

/*
 * The value of --model, without a name behind `=`, is the model, its file or its folder.  A path
 * may begin in the folder where the process works.
 */
static bool names_model(const char *process, const char *value, const struct store_model *model)
{
        const char *equals = strrchr(value, '=');
        size_t bytes = equals ? (size_t)(equals - value) : strlen(value);
        char path[STORE_PATH_BYTES], *real, *entry;
        size_t whole;
        bool same;

        if (bytes == strlen(model->name) && !strncasecmp(value, model->name, bytes))
                return true;
        if ((size_t)snprintf(path, sizeof(path), *value == '/' ? "%.0s%.*s" : "/proc/%s/cwd/%.*s",
                             process, (int)bytes, value) >= sizeof(path))
                return false;
        real = realpath(path, NULL);
        entry = realpath(model->entry, NULL);
        whole = entry ? strlen(entry) : 0;
        same = real && entry && !strncmp(real, entry, whole) &&
               (!real[whole] || real[whole] == '/');
        free(real);
        free(entry);
        return same;
}

static bool was_started_with(const char *process, const struct store_model *model)
{
        struct bytes line = { 0 };
        char path[300];
        bool found = false, next = false;

        snprintf(path, sizeof(path), "/proc/%s/cmdline", process);
        if (!text_file_read(path, COMMAND_MAX, &line) && strstr(line.at, "samovard")) {
                for (size_t at = 0; at < line.count && !found; at += strlen(line.at + at) + 1) {
                        const char *word = line.at + at;

                        if (next || !strncmp(word, "--model=", 8))
                                found = names_model(process, next ? word : word + 8, model);
                        next = !strcmp(word, "--model");
                }
        }
        bytes_deinit(&line);
        return found;
}

bool serving_model(const struct store_model *model, char *ret_who, size_t bytes)
{
        DIR *dir = opendir("/proc");
        struct dirent *entry;
        struct stat process;
        bool found = false;

        while (dir && !found && (entry = readdir(dir))) {
                if (!isdigit((unsigned char)*entry->d_name) ||
                    fstatat(dirfd(dir), entry->d_name, &process, 0) < 0 ||
                    process.st_uid != geteuid())
                        continue;
                found = was_started_with(entry->d_name, model);
                if (found)
                        snprintf(ret_who, bytes, "samovard (process %s)", entry->d_name);
        }
        if (dir)
                closedir(dir);
        return found;
}
