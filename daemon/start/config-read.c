/*
 * Where settings come from: the command line, and a config file.
 *
 * A config file has lines `name = value`, blank lines, and lines that begin with #.  Its names are
 * those of the table.  A value may stand in quotes.  On the command line, a dash replaces each
 * underscore.
 */
#include "daemon/start/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "daemon/start/config-table.h"

#define FILE_BYTES_MAX  (1u << 20)
#define VALUE_BYTES_MAX 4096u
#define SETTINGS_MAX    128u

/*
 * In a file, each setting may be given once.  On the command line a later flag overrides an earlier
 * one, for wrappers.  A text is different: two models, or two sockets, are probably both meant.
 * `given` has the line of each setting, and 1 for a flag.
 */
static int note_given(const struct config_place *at, const struct setting *s, uint32_t *given)
{
        uint32_t *line = &given[s - config_settings];
        char as[48];

        if (*line && at->file)
                return config_refuse(at, "%s is given twice, first in line %u", s->name, *line);
        if (*line && s->kind == KIND_TEXT)
                return config_refuse(at, "%s is given twice",
                                     config_shown(at, s->name, as, sizeof(as)));
        *line = at->file ? at->line : 1;
        return 0;
}

/* Copies the value between the quotes, or all of it if it begins with none. */
static int read_value(const struct config_place *at, const struct setting *s, const char *from,
                      size_t bytes, char to[VALUE_BYTES_MAX])
{
        bool quoted = bytes && (*from == '"' || *from == '\'');

        if (quoted && (bytes < 2 || from[bytes - 1] != *from))
                return config_refuse(at, "the value of %s begins with %c and does not end with it",
                                     s->name, *from);
        if (bytes >= VALUE_BYTES_MAX)
                return config_refuse(at, "the value of %s is longer than %u bytes", s->name,
                                     VALUE_BYTES_MAX - 1);
        if (quoted) {
                from++;
                bytes -= 2;
        }
        memcpy(to, from, bytes);
        to[bytes] = '\0';
        return 0;
}

static int read_line(struct config *config, const struct config_place *at, const char *line,
                     size_t bytes, uint32_t *given)
{
        const char *equals = memchr(line, '=', bytes);
        const char *name = line, *end = line + bytes, *name_end;
        char value[VALUE_BYTES_MAX];
        const struct setting *s;
        int r;

        if (!equals)
                return config_refuse(at, "a line is `name = value`");
        for (name_end = equals; name_end > name && strchr(" \t", name_end[-1]);)
                name_end--;
        s = config_find(at, name, (size_t)(name_end - name));
        if (!s)
                return config_refuse_name(at, name, (size_t)(name_end - name));
        for (equals++; equals < end && strchr(" \t", *equals);)
                equals++;
        r = note_given(at, s, given);
        if (!r)
                r = read_value(at, s, equals, (size_t)(end - equals), value);
        return r ? error_pass(r) : config_set(config, s, at, value);
}

static int parse(struct config *config, const char *name, const char *text, size_t bytes, char *why,
                 size_t why_bytes)
{
        struct config_place at = { .file = name, .why = why, .why_bytes = why_bytes };
        const char *end = text + bytes;
        uint32_t given[SETTINGS_MAX] = { 0 };
        int r = 0;

        assert(config_setting_count <= SETTINGS_MAX);
        while (!r && text < end) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                const char *line_end = newline ? newline : end;
                const char *next = newline ? newline + 1 : end;

                at.line++;
                if (memchr(text, '\0', (size_t)(line_end - text)))
                        return config_refuse(&at, "a NUL byte is in it");
                while (text < line_end && strchr(" \t\r", *text))
                        text++;
                while (line_end > text && strchr(" \t\r", line_end[-1]))
                        line_end--;
                if (text < line_end && *text != '#')
                        r = read_line(config, &at, text, (size_t)(line_end - text), given);
                text = next;
        }
        return error_pass(r);
}

int config_parse(struct config *config, const char *text, size_t bytes, char *why, size_t why_bytes)
{
        return parse(config, "config", text, bytes, why, why_bytes);
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

static int read_file(struct config *config, const char *path, char *why, size_t why_bytes)
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
        r = parse(config, path, text, bytes, why, why_bytes);
        free(text);
        return error_pass(r);
}

static int read_flags(struct config *config, int argc, char **argv, const struct config_place *at)
{
        uint32_t given[SETTINGS_MAX] = { 0 };

        for (int i = 1; i < argc; i++) {
                const char *name = argv[i] + 2, *value;
                const struct setting *s;
                size_t bytes;
                int r;

                if (strncmp(argv[i], "--", 2))
                        return config_refuse(at, "%.40s is not a flag", argv[i]);
                bytes = strcspn(name, "=");
                s = config_find(at, name, bytes);
                if (!s)
                        return config_refuse_name(at, name, bytes);
                if (name[bytes])
                        value = name + bytes + 1;
                else if (s->kind == KIND_SWITCH)
                        value = "yes";
                else if (i + 1 < argc)
                        value = argv[++i];
                else
                        return config_refuse(at, "%s has no value", argv[i]);
                r = note_given(at, s, given);
                if (!r)
                        r = config_set(config, s, at, value);
                if (r)
                        return error_pass(r);
        }
        return 0;
}

/* Rules between several settings. */
static int check_together(const struct config *c, const struct config_place *at)
{
        bool no_gpu = !strcmp(c->backend, "cpu") || !strcmp(c->backend, "ref");

        if (no_gpu && c->gpu_layers && c->gpu_layers != CONFIG_AUTO)
                return config_refuse(at,
                                     "gpu_layers puts layers on a GPU, but backend is %s, which "
                                     "has none; cuda and auto do",
                                     c->backend);
        if (c->swap_bytes && (no_gpu || !c->gpu_layers))
                return config_refuse(at,
                                     "swap_bytes is for pools on a GPU, but %s is %s; raise "
                                     "kv_bytes instead",
                                     no_gpu ? "backend" : "gpu_layers", no_gpu ? c->backend : "0");
        if (c->step_tokens < c->max_seqs)
                return config_refuse(at,
                                     "step_tokens is %u and max_seqs is %u; a step needs a row for "
                                     "every sequence",
                                     c->step_tokens, c->max_seqs);
        if (c->batch_size > c->max_seqs)
                return config_refuse(
                        at, "batch_size is %u and max_seqs is %u; a batch runs all at once",
                        c->batch_size, c->max_seqs);
        if (c->ring_bytes & (c->ring_bytes - 1))
                return config_refuse(at, "ring_bytes is %" PRIu64 "; it must be a power of two",
                                     c->ring_bytes);
        if (c->uid_ring_bytes < c->ring_bytes)
                return config_refuse(at,
                                     "uid_ring_bytes is %" PRIu64 " and ring_bytes is %" PRIu64
                                     "; a user needs space for one ring",
                                     c->uid_ring_bytes, c->ring_bytes);
        if (c->socket_group && c->socket_mode == 0600)
                return config_refuse(
                        at,
                        "socket_group is %.40s and socket_mode is 0600, which lets no group "
                        "in; 0660 does",
                        c->socket_group);
        return 0;
}

/* ---- all sources ---- */

/* True: the folder is known, and the file is there or cannot be looked at. */
static bool has_file(const char *folder, const char *inside, char *path, size_t bytes)
{
        int fd, count;

        if (!folder || folder[0] != '/')
                return false;
        count = snprintf(path, bytes, "%s%s/samovar/samovar.conf", folder, inside);
        if (count < 0 || (size_t)count >= bytes)
                return false;
        fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
        if (fd >= 0)
                sys_close(fd);
        return fd != -ENOENT && fd != -ENOTDIR;
}

/* Finds the file to read, unless the flags name one.  A path is left as it is given. */
static int find_file(struct config *c, const struct config_place *at)
{
        char path[VALUE_BYTES_MAX];

        if (c->file && strcmp(c->file, "none"))
                return 0;
        if (c->file) {
                free(c->file);
                c->file = NULL;
                return 0;
        }
        if (c->fd >= 0 || c->inspect || c->preview)
                return 0;
        if (getenv("XDG_CONFIG_HOME") ? has_file(getenv("XDG_CONFIG_HOME"), "", path, sizeof(path))
                                      : has_file(getenv("HOME"), "/.config", path, sizeof(path)))
                return config_set(c, config_find(at, "config", 6), at, path);
        if (has_file("/etc", "", path, sizeof(path)))
                return config_set(c, config_find(at, "config", 6), at, path);
        return 0;
}

/* Flags are read twice: first to find the file, then to override it. */
static int read_all(struct config *config, int argc, char **argv, const struct config_place *at)
{
        char *file;
        int r;

        r = read_flags(config, argc, argv, at);
        if (r || config->help || config->version)
                return error_pass(r);
        r = find_file(config, at);
        if (!r && config->file) {
                file = strdup(config->file);
                if (!file)
                        return error_raise(-ENOMEM);
                r = read_file(config, file, at->why, at->why_bytes);
                if (!r)
                        r = read_flags(config, argc, argv, at);
                free(config->file);
                config->file = file;
        }
        return r ? error_pass(r) : check_together(config, at);
}

int config_read(struct config *config, int argc, char **argv, char *why, size_t why_bytes)
{
        struct config_place at = { .why = why, .why_bytes = why_bytes };
        struct config read;
        int r;

        snprintf(why, why_bytes, "out of memory");
        r = config_init(&read);
        if (r)
                return error_pass(r);
        r = read_all(&read, argc, argv, &at);
        if (r) {
                config_deinit(&read);
                return error_pass(r);
        }
        *why = '\0';
        *config = read;
        return 0;
}

/* ---- reading again ---- */

static size_t value_bytes(enum config_kind kind)
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

static bool is_equal(const struct setting *s, const struct config *a, const struct config *b)
{
        const void *one = (const char *)a + s->offset, *other = (const char *)b + s->offset;

        if (s->kind == KIND_TEXT || s->kind == KIND_NAME) {
                const char *text = *(char *const *)one, *with = *(char *const *)other;

                return text && with ? !strcmp(text, with) : text == with;
        }
        return !memcmp(one, other, value_bytes(s->kind));
}

int config_reload(struct config *config, int argc, char **argv, char *why, size_t why_bytes)
{
        struct config read;
        size_t used = 0;
        int r;

        r = config_read(&read, argc, argv, why, why_bytes);
        if (r)
                return error_pass(r);
        for (size_t i = 0; i < config_setting_count; i++) {
                const struct setting *s = &config_settings[i];

                if (is_equal(s, config, &read))
                        continue;
                if (s->use == LIVE)
                        memcpy((char *)config + s->offset, (char *)&read + s->offset,
                               value_bytes(s->kind));
                else if (used < why_bytes)
                        used += (size_t)snprintf(why + used, why_bytes - used, "%s%s",
                                                 used ? "," : "", s->name);
        }
        config_deinit(&read);
        return 0;
}
