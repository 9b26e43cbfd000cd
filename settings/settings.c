#include "settings/settings.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "settings/refuse.h"
#include "settings/sources.h"
#include "settings/values.h"

/* A member of the struct of values. */
static void *member(void *values, size_t offset)
{
        return (char *)values + offset;
}

static bool is_on(const void *values, size_t offset)
{
        return *(const bool *)((const char *)values + offset);
}

static bool is_text(const struct setting *s)
{
        return s->kind == KIND_TEXT || s->kind == KIND_NAME;
}

/* ---- defaults ---- */

static void clear(const struct settings_table *table, void *values)
{
        memset(values, 0, table->bytes);
        for (size_t i = 0; i < table->count; i++)
                if (table->rows[i].kind == KIND_INT)
                        *(int32_t *)member(values, table->rows[i].offset) = -1;
}

int settings_init(const struct settings_table *table, void *values)
{
        char why[160];
        struct settings_place at = { .why = why, .why_bytes = sizeof(why) };
        int r = 0;

        clear(table, values);
        for (size_t i = 0; !r && i < table->count; i++) {
                assert(!table->rows[i].words[SETTING_WORDS - 1]);
                if (table->rows[i].initial)
                        r = setting_set(values, &table->rows[i], &at, table->rows[i].initial);
        }
        if (r)
                settings_deinit(table, values);
        return error_pass(r);
}

void settings_deinit(const struct settings_table *table, void *values)
{
        for (size_t i = 0; i < table->count; i++)
                if (is_text(&table->rows[i]))
                        free(*(char **)member(values, table->rows[i].offset));
        clear(table, values);
}

/* ---- all sources ---- */

/* True: the folder is known, and the file is there or cannot be looked at. */
static bool has_file(const struct settings_table *table, const char *folder, const char *inside,
                     char *path, size_t bytes)
{
        int fd, count;

        if (!folder || folder[0] != '/')
                return false;
        count = snprintf(path, bytes, "%s%s/samovar/%s", folder, inside, table->file);
        if (count < 0 || (size_t)count >= bytes)
                return false;
        fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
        if (fd >= 0)
                sys_close(fd);
        return fd != -ENOENT && fd != -ENOTDIR;
}

/* Finds the file to read, unless the flags name one.  A path is left as it is given. */
static int find_file(const struct settings_table *table, void *values,
                     const struct settings_place *at)
{
        const char *folder = getenv("XDG_CONFIG_HOME");
        char **file = member(values, table->config);
        char path[VALUE_BYTES_MAX];

        if (*file && strcmp(*file, "none"))
                return 0;
        if (*file) {
                free(*file);
                *file = NULL;
                return 0;
        }
        if (table->looks_for_file && !table->looks_for_file(values))
                return 0;
        if ((folder ? has_file(table, folder, "", path, sizeof(path))
                    : has_file(table, getenv("HOME"), "/.config", path, sizeof(path))) ||
            has_file(table, "/etc", "", path, sizeof(path)))
                return setting_set(values, setting_find(table, at, "config", 6), at, path);
        return 0;
}

/* Flags are read twice: first to find the file, then to override it. */
static int read_all(const struct settings_table *table, void *values, int argc, char **argv,
                    const struct settings_place *at)
{
        char **kept = member(values, table->config);
        char *file;
        int r;

        r = sources_flags(table, values, argc, argv, at);
        if (r || is_on(values, table->help) || is_on(values, table->version))
                return error_pass(r);
        r = find_file(table, values, at);
        if (!r && *kept) {
                file = strdup(*kept);
                if (!file)
                        return error_raise(-ENOMEM);
                r = sources_file(table, values, file, at->why, at->why_bytes);
                if (!r)
                        r = sources_flags(table, values, argc, argv, at);
                free(*kept);
                *kept = file;
        }
        if (!r && table->check)
                r = table->check(values, at);
        return error_pass(r);
}

int settings_read(const struct settings_table *table, void *values, int argc, char **argv,
                  char *why, size_t why_bytes)
{
        struct settings_place at = { .why = why, .why_bytes = why_bytes };
        int r;

        snprintf(why, why_bytes, "out of memory");
        r = settings_init(table, values);
        if (r)
                return error_pass(r);
        r = read_all(table, values, argc, argv, &at);
        if (r) {
                settings_deinit(table, values);
                return error_pass(r);
        }
        *why = '\0';
        return 0;
}

/* ---- reading again ---- */

static size_t value_bytes(enum setting_kind kind)
{
        switch (kind) {
        case KIND_SWITCH:
                return sizeof(bool);
        case KIND_BYTES:
                return sizeof(uint64_t);
        default:
                return sizeof(uint32_t);
        }
}

static bool is_equal(const struct setting *s, const void *one, const void *other)
{
        if (is_text(s)) {
                const char *text = *(char *const *)one, *with = *(char *const *)other;

                return text && with ? !strcmp(text, with) : text == with;
        }
        return !memcmp(one, other, value_bytes(s->kind));
}

/* Takes over what is live.  *why gets the names of the others that differ. */
static void take_live(const struct settings_table *table, void *values, void *read, char *why,
                      size_t why_bytes)
{
        size_t used = 0;

        for (size_t i = 0; i < table->count; i++) {
                const struct setting *s = &table->rows[i];
                void *to = member(values, s->offset), *from = member(read, s->offset);

                if (is_equal(s, to, from))
                        continue;
                assert(s->use != LIVE || !is_text(s));
                if (s->use == LIVE)
                        memcpy(to, from, value_bytes(s->kind));
                else if (used < why_bytes)
                        used += (size_t)snprintf(why + used, why_bytes - used, "%s%s",
                                                 used ? "," : "", s->name);
        }
}

int settings_reload(const struct settings_table *table, void *values, int argc, char **argv,
                    char *why, size_t why_bytes)
{
        void *read = malloc(table->bytes);
        int r;

        if (!read) {
                snprintf(why, why_bytes, "out of memory");
                return error_raise(-ENOMEM);
        }
        r = settings_read(table, read, argc, argv, why, why_bytes);
        if (!r) {
                take_live(table, values, read, why, why_bytes);
                settings_deinit(table, read);
        }
        free(read);
        return error_pass(r);
}

/* ---- what a start may be asked ---- */

bool settings_answer(const struct settings_table *table, const void *values, FILE *to)
{
        const char *file = *(char *const *)((const char *)values + table->config);

        if (is_on(values, table->help))
                settings_help(table, to);
        else if (is_on(values, table->version))
                fprintf(to, "%s %s\n", table->program, SAMOVAR_VERSION);
        else if (!is_on(values, table->check_config))
                return false;
        else if (file)
                fprintf(to, "%s: no fault in %s\n", table->program, file);
        else
                fprintf(to, "%s: no file of settings is read\n", table->program);
        return true;
}

int settings_parse(const struct settings_table *table, void *values, const char *text, size_t bytes,
                   char *why, size_t why_bytes)
{
        return sources_parse(table, values, "config", text, bytes, why, why_bytes);
}
