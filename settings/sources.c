#include "settings/sources.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "settings/values.h"

#define FILE_BYTES_MAX  (1u << 20)
#define VALUE_BYTES_MAX 4096u

/*
 * In a file, each setting may be given once.  On the command line a later flag overrides an earlier
 * one, for wrappers.  A text is different: two models, or two sockets, are probably both meant.
 * `given` has the line of each setting, and 1 for a flag.
 */
static int note_given(const struct settings_table *table, const struct settings_place *at,
                      const struct setting *s, uint32_t *given)
{
        uint32_t *line = &given[s - table->rows];
        char as[48];

        if (*line && at->file)
                return settings_refuse(at, "%s is given twice, first in line %u", s->name, *line);
        if (*line && s->kind == KIND_TEXT)
                return settings_refuse(at, "%s is given twice",
                                       settings_shown(at, s->name, as, sizeof(as)));
        *line = at->file ? at->line : 1;
        return 0;
}

/* Copies the value between the quotes, or all of it if it begins with none. */
static int read_value(const struct settings_place *at, const struct setting *s, const char *from,
                      size_t bytes, char to[VALUE_BYTES_MAX])
{
        bool quoted = bytes && (*from == '"' || *from == '\'');

        if (quoted && (bytes < 2 || from[bytes - 1] != *from))
                return settings_refuse(at,
                                       "the value of %s begins with %c and does not end with it",
                                       s->name, *from);
        if (bytes >= VALUE_BYTES_MAX)
                return settings_refuse(at, "the value of %s is longer than %u bytes", s->name,
                                       VALUE_BYTES_MAX - 1);
        if (quoted) {
                from++;
                bytes -= 2;
        }
        memcpy(to, from, bytes);
        to[bytes] = '\0';
        return 0;
}

static int read_line(const struct settings_table *table, void *values,
                     const struct settings_place *at, const char *line, size_t bytes,
                     uint32_t *given)
{
        const char *equals = memchr(line, '=', bytes);
        const char *name = line, *end = line + bytes, *name_end;
        char value[VALUE_BYTES_MAX];
        const struct setting *s;
        int r;

        if (!equals)
                return settings_refuse(at, "a line is `name = value`");
        for (name_end = equals; name_end > name && strchr(" \t", name_end[-1]);)
                name_end--;
        s = setting_find(table, at, name, (size_t)(name_end - name));
        if (!s)
                return setting_refuse_name(table, at, name, (size_t)(name_end - name));
        for (equals++; equals < end && strchr(" \t", *equals);)
                equals++;
        r = note_given(table, at, s, given);
        if (!r)
                r = read_value(at, s, equals, (size_t)(end - equals), value);
        return r ? error_pass(r) : setting_set(values, s, at, value);
}

int sources_parse(const struct settings_table *table, void *values, const char *name,
                  const char *text, size_t bytes, char *why, size_t why_bytes)
{
        struct settings_place at = { .file = name, .why = why, .why_bytes = why_bytes };
        const char *end = text + bytes;
        uint32_t given[SETTINGS_MAX] = { 0 };
        int r = 0;

        assert(table->count <= SETTINGS_MAX);
        while (!r && text < end) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                const char *line_end = newline ? newline : end;
                const char *next = newline ? newline + 1 : end;

                at.line++;
                if (memchr(text, '\0', (size_t)(line_end - text)))
                        return settings_refuse(&at, "a NUL byte is in it");
                while (text < line_end && strchr(" \t\r", *text))
                        text++;
                while (line_end > text && strchr(" \t\r", line_end[-1]))
                        line_end--;
                if (text < line_end && *text != '#')
                        r = read_line(table, values, &at, text, (size_t)(line_end - text), given);
                text = next;
        }
        return error_pass(r);
}

static int read_whole(int fd, char **ret_text, size_t *ret_bytes)
{
        uint64_t bytes = 0;
        size_t have = 0;
        char *text;
        ssize_t n = 1;
        int r;

        r = sys_file_size(fd, &bytes);
        if (!r && bytes > FILE_BYTES_MAX)
                r = -EFBIG;
        if (r)
                return error_raise(r);
        text = malloc(bytes + 1);
        if (!text)
                return error_raise(-ENOMEM);
        while (have < bytes && n > 0) {
                n = sys_read(fd, text + have, bytes - have);
                if (n > 0)
                        have += (size_t)n;
        }
        if (n < 0) {
                free(text);
                return error_raise((int)n);
        }
        *ret_text = text;
        *ret_bytes = have;
        return 0;
}

int sources_file(const struct settings_table *table, void *values, const char *path, char *why,
                 size_t why_bytes)
{
        size_t bytes = 0;
        char *text = NULL;
        int fd, r;

        fd = r = sys_open(path, O_RDONLY | O_NONBLOCK, 0); /* it may be a FIFO */
        if (fd >= 0) {
                r = read_whole(fd, &text, &bytes);
                sys_close(fd);
        }
        if (r < 0) {
                snprintf(why, why_bytes, "%s: %s", path,
                         r == -EINVAL ? "it is not a regular file" : strerror(-r));
                return error_pass(r);
        }
        r = sources_parse(table, values, path, text, bytes, why, why_bytes);
        free(text);
        return error_pass(r);
}

int sources_flags(const struct settings_table *table, void *values, int argc, char **argv,
                  const struct settings_place *at)
{
        uint32_t given[SETTINGS_MAX] = { 0 };

        for (int i = 1; i < argc; i++) {
                const char *name = argv[i] + 2, *value;
                const struct setting *s;
                size_t bytes;
                int r;

                if (strncmp(argv[i], "--", 2))
                        return settings_refuse(at, "%.40s is not a flag", argv[i]);
                bytes = strcspn(name, "=");
                s = setting_find(table, at, name, bytes);
                if (!s)
                        return setting_refuse_name(table, at, name, bytes);
                if (name[bytes])
                        value = name + bytes + 1;
                else if (s->kind == KIND_SWITCH)
                        value = "yes";
                else if (i + 1 < argc)
                        value = argv[++i];
                else
                        return settings_refuse(at, "%s has no value", argv[i]);
                r = note_given(table, at, s, given);
                if (!r)
                        r = setting_set(values, s, at, value);
                if (r)
                        return error_pass(r);
        }
        return 0;
}
