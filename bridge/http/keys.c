#include "bridge/http/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"
#include "json/bytes.h"

#define FILE_MAX 1048576u
/* Write by the group, and all by others but to execute it. */
#define FORBIDDEN_MODE 026u

struct key {
        uint32_t at, bytes; /* in `text` */
        uint32_t principal;
};

/* The keys of one reading of the file. */
struct table {
        struct bytes text;
        struct bytes keys; /* of struct key */
};

struct http_keys {
        struct table table;
        char **names; /* of principal 1, 2 ... */
        uint32_t name_count;
};

/* Where messages point to. */
struct place {
        const char *path;
        uint32_t line;
        char *why;
        size_t why_bytes;
};

int http_keys_new(struct http_keys **ret_keys)
{
        struct http_keys *keys = calloc(1, sizeof(*keys));

        if (!keys)
                return error_raise(-ENOMEM);
        *ret_keys = keys;
        return 0;
}

/* Keys do not stay behind in freed memory. */
static void forget(struct table *table)
{
        if (table->text.at)
                explicit_bzero(table->text.at, table->text.size);
        bytes_deinit(&table->text);
        bytes_deinit(&table->keys);
}

struct http_keys *http_keys_free(struct http_keys *keys)
{
        if (!keys)
                return NULL;
        forget(&keys->table);
        for (uint32_t i = 0; i < keys->name_count; i++)
                free(keys->names[i]);
        free(keys->names);
        free(keys);
        return NULL;
}

static int fail(const struct place *at, int r, const char *what)
{
        return error_raise(errtext_set(at->why, at->why_bytes, r, "key file %s, line %u: %s",
                                       at->path, at->line, what));
}

static int fail_file(const struct place *at, int r, const char *what)
{
        return error_raise(
                errtext_set(at->why, at->why_bytes, r, "key file %s: %s", at->path, what));
}

static int check_owner(int fd, const struct place *at)
{
        struct sys_owner owner;
        int r = sys_owner(fd, &owner);

        if (r)
                return fail_file(at, r, strerror(-r));
        if (!S_ISREG(owner.mode))
                return fail_file(at, -EINVAL, "it is not a regular file");
        if (owner.uid && owner.uid != geteuid())
                return error_raise(errtext_set(at->why, at->why_bytes, -EPERM,
                                               "key file %s: it belongs to uid %u; it must be "
                                               "root's or that of uid %u",
                                               at->path, owner.uid, (unsigned)geteuid()));
        if (owner.mode & FORBIDDEN_MODE)
                return error_raise(errtext_set(
                        at->why, at->why_bytes, -EPERM,
                        "key file %s: its mode is %04o, so that others may read or change it; use "
                        "chmod 0600, or 0640 for a group that may read it",
                        at->path, owner.mode & 07777u));
        return 0;
}

static int read_all(int fd, struct bytes *text, const struct place *at)
{
        for (;;) {
                ssize_t n;
                int r = bytes_reserve(text, 4096);

                if (r)
                        return fail_file(at, r, strerror(-r));
                n = sys_read(fd, text->at + text->count, 4096);
                if (n < 0)
                        return fail_file(at, (int)n, strerror((int)-n));
                if (!n)
                        return 0;
                text->count += (size_t)n;
                if (text->count > FILE_MAX)
                        return fail_file(at, -EFBIG, "it has more than 1 MiB");
        }
}

static int read_file(struct bytes *text, const struct place *at)
{
        int fd = sys_open(at->path, O_RDONLY | O_NONBLOCK, 0), r;

        if (fd < 0)
                return fail_file(at, fd, strerror(-fd));
        r = check_owner(fd, at);
        if (!r)
                r = read_all(fd, text, at);
        sys_close(fd);
        return error_pass(r);
}

/* The number of a name, which is added if it is new; 0: there is no memory. */
static uint32_t principal_of(struct http_keys *keys, const char *name, size_t bytes)
{
        char **names, *copy;

        for (uint32_t i = 0; i < keys->name_count; i++)
                if (strlen(keys->names[i]) == bytes && !memcmp(keys->names[i], name, bytes))
                        return i + 1;
        copy = strndup(name, bytes);
        names = copy ? realloc(keys->names, (keys->name_count + 1) * sizeof(*names)) : NULL;
        if (!names) {
                free(copy);
                return 0;
        }
        keys->names = names;
        keys->names[keys->name_count++] = copy;
        return keys->name_count;
}

bool http_name_is_valid(const char *name, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++) {
                char c = name[i];

                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      (c && strchr("._@-", c))))
                        return false;
        }
        return bytes && bytes <= HTTP_NAME_MAX;
}

static bool is_key(const char *key, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if (key[i] <= ' ' || key[i] > '~')
                        return false;
        return bytes >= HTTP_KEY_MIN && bytes <= HTTP_KEY_MAX;
}

static uint32_t find(const struct table *table, const char *given, size_t bytes);

/* [at, end) is a line with a key. */
static int read_line(struct http_keys *keys, struct table *table, size_t at, size_t end,
                     const struct place *place)
{
        const char *text = table->text.at;
        size_t key_end = at, name;
        struct key key = { .at = (uint32_t)at };

        while (key_end < end && text[key_end] != ' ' && text[key_end] != '\t')
                key_end++;
        key.bytes = (uint32_t)(key_end - at);
        for (name = key_end; name < end && (text[name] == ' ' || text[name] == '\t');)
                name++;
        if (!is_key(text + at, key.bytes))
                return fail(place, -EINVAL,
                            "a key must have 16 to 512 characters of visible ASCII");
        if (!http_name_is_valid(text + name, end - name))
                return fail(place, -EINVAL,
                            "it must be KEY NAME; a name has 1 to 64 of the characters a-z, A-Z, "
                            "0-9 and ._@-");
        if (find(table, text + at, key.bytes))
                return fail(place, -EEXIST, "the key stands there twice");
        key.principal = principal_of(keys, text + name, end - name);
        if (!key.principal || bytes_add(&table->keys, &key, sizeof(key)))
                return fail(place, -ENOMEM, "there is no memory");
        return 0;
}

static int read_lines(struct http_keys *keys, struct table *table, struct place *place)
{
        const char *text = table->text.at;
        size_t next;

        for (size_t at = 0; at < table->text.count; at = next) {
                const char *feed = memchr(text + at, '\n', table->text.count - at);
                size_t end = feed ? (size_t)(feed - text) : table->text.count;
                int r;

                next = end + 1;
                place->line++;
                while (end > at && strchr(" \t\r", text[end - 1]) && text[end - 1])
                        end--;
                while (at < end && (text[at] == ' ' || text[at] == '\t'))
                        at++;
                if (at == end || text[at] == '#')
                        continue;
                r = read_line(keys, table, at, end, place);
                if (r)
                        return error_pass(r);
        }
        return table->keys.count ? 0 : fail_file(place, -EINVAL, "it has no keys");
}

int http_keys_read(struct http_keys *keys, const char *path, char *why, size_t why_bytes)
{
        struct place place = { .path = path, .why = why, .why_bytes = why_bytes };
        struct table table = { 0 };
        int r = read_file(&table.text, &place);

        if (!r)
                r = read_lines(keys, &table, &place);
        if (r) {
                forget(&table);
                return error_pass(r);
        }
        forget(&keys->table);
        keys->table = table;
        return 0;
}

/* Every byte that was given is compared, whatever the ones before it were. */
static bool is_same(const char *key, size_t key_bytes, const char *given, size_t bytes)
{
        volatile unsigned differ = key_bytes != bytes;

        for (size_t i = 0; i < bytes; i++)
                differ |= (unsigned char)key[i % key_bytes] ^ (unsigned char)given[i];
        return !differ;
}

/* All keys are compared, whichever it is. */
static uint32_t find(const struct table *table, const char *given, size_t bytes)
{
        const struct key *keys = (const void *)table->keys.at;
        uint32_t found = 0;

        for (size_t i = 0; i < table->keys.count / sizeof(*keys); i++) {
                uint32_t same = is_same(table->text.at + keys[i].at, keys[i].bytes, given, bytes);

                found |= keys[i].principal & (0u - same);
        }
        return found;
}

uint32_t http_keys_find(const struct http_keys *keys, const char *given, size_t bytes)
{
        return find(&keys->table, given, bytes);
}

const char *http_keys_name(const struct http_keys *keys, uint32_t principal)
{
        return principal && principal <= keys->name_count ? keys->names[principal - 1] : NULL;
}

uint32_t http_keys_principal(const struct http_keys *keys, const char *name)
{
        const struct key *at = (const void *)keys->table.keys.at;

        for (size_t i = 0; i < keys->table.keys.count / sizeof(*at); i++)
                if (!strcmp(http_keys_name(keys, at[i].principal), name))
                        return at[i].principal;
        return 0;
}
