/*
 * The entry point: chooses the reader for a path, and reads the file's bytes for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"
#include "daemon/files/file.h"
#include "daemon/files/gguf.h"
#include "daemon/files/side-files.h"
#include "daemon/files/vocabulary.h"

#define PATH_BYTES 4096u

struct whole {
        char *bytes;
        size_t count;
};

struct door {
        const char *splitter;
        struct vocabulary **ret;
        char *why;
        size_t why_bytes;
};

#define say(d, r, ...) error_raise(errtext_set((d)->why, (d)->why_bytes, (r), __VA_ARGS__))

static const struct {
        const char *vocab, *merges;
} pairs[] = { { "vocab.json", "merges.txt" }, { "encoder.json", "vocab.bpe" } };

/* Files to look for in a folder, in this order. */
static const char *const names[] = { "tokenizer.json", "tekken.json",   "tokenizer.model",
                                     "tiktoken.model", "qwen.tiktoken", "vocab.json",
                                     "encoder.json",   "vocab.txt" };

static int read_whole(const struct door *d, const char *path, struct whole *ret_whole)
{
        int r = file_read_all(AT_FDCWD, path, VOCABULARY_FILE_BYTES_MAX, &ret_whole->bytes,
                              &ret_whole->count, d->why, d->why_bytes);

        return r == FILE_E_ABSENT ? error_raise(-ENOENT) : error_pass(r);
}

/* The same path with another last component.  False: it is too long. */
static bool beside(const char *path, const char *name, char to[PATH_BYTES])
{
        const char *slash = strrchr(path, '/');
        int n = snprintf(to, PATH_BYTES, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);

        return n >= 0 && (size_t)n < PATH_BYTES;
}

static const char *last_part(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *end)
{
        size_t n = strlen(text), m = strlen(end);

        return n >= m && !strcmp(text + n - m, end);
}

static int open_gguf(const struct door *d, const char *path)
{
        struct gguf *gguf;
        int r = gguf_open(path, &gguf, d->why, d->why_bytes);

        if (r)
                return error_pass(r);
        r = vocabulary_from_gguf(gguf, d->splitter, d->ret, d->why, d->why_bytes);
        gguf_close(gguf);
        return error_pass(r);
}

static int open_pair(const struct door *d, const char *path, const char *merges_name,
                     const struct side_files *side)
{
        struct whole vocab, merges;
        char other[PATH_BYTES], what[256];
        int r;

        if (!beside(path, merges_name, other))
                return say(d, -ENAMETOOLONG, "the path is too long");
        r = read_whole(d, path, &vocab);
        if (r)
                return error_pass(r);
        r = read_whole(d, other, &merges);
        if (r) {
                snprintf(what, sizeof(what), "%s", d->why);
                errtext_set(d->why, d->why_bytes, r, "%s, beside it: %s", merges_name, what);
        } else {
                r = vocabulary_from_pair(vocab.bytes, vocab.count, merges.bytes, merges.count,
                                         d->splitter, side, d->ret, d->why, d->why_bytes);
                free(merges.bytes);
        }
        free(vocab.bytes);
        return error_pass(r);
}

static bool is_folder(const char *path)
{
        int fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY, 0);

        if (fd >= 0)
                sys_close(fd);
        return fd >= 0;
}

static int refuse_splitter(const struct door *d)
{
        return say(d, -EINVAL, "a splitter was given, but this tokenizer uses none");
}

/* "tokenizer.model", or with a version behind it, as in "tokenizer.model.v3". */
static bool has_model_name(const char *name)
{
        return ends_with(name, ".model") || strstr(name, ".model.v");
}

/* Whether a model file is ranks: a protobuf begins with a byte that is no printable character. */
static bool is_text(const struct whole *whole)
{
        size_t n = whole->count < 64 ? whole->count : 64;

        for (size_t i = 0; i < n; i++)
                if ((whole->bytes[i] < ' ' && whole->bytes[i] != '\n' && whole->bytes[i] != '\r') ||
                    whole->bytes[i] > '~')
                        return false;
        return n;
}

static int open_words(const struct door *d, const char *path, const struct side_files *side)
{
        struct whole words, config = { 0 };
        char other[PATH_BYTES];
        int r;

        if (d->splitter)
                return refuse_splitter(d);
        if (!beside(path, "tokenizer_config.json", other))
                return say(d, -ENAMETOOLONG, "the path is too long");
        r = read_whole(d, path, &words);
        if (r)
                return error_pass(r);
        r = file_read_all(AT_FDCWD, other, VOCABULARY_FILE_BYTES_MAX, &config.bytes, &config.count,
                          d->why, d->why_bytes);
        if (r < 0)
                errtext_prefix(d->why, d->why_bytes, r, "tokenizer_config.json");
        else
                r = vocabulary_from_words(words.bytes, words.count, r ? NULL : config.bytes,
                                          config.count, side, d->ret, d->why, d->why_bytes);
        free(words.bytes);
        free(config.bytes);
        return error_pass(r);
}

/* The other file of a pair.  NULL: this is no file of one. */
static const char *merges_of(const char *name)
{
        for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
                if (!strcmp(name, pairs[i].vocab))
                        return pairs[i].merges;
        return NULL;
}

/* A file that has everything. */
static int open_json(const struct door *d, const char *path)
{
        const char *name = last_part(path);
        struct whole whole;
        int r = read_whole(d, path, &whole);

        if (r)
                return error_pass(r);
        if (strcmp(name, "tekken.json") && strncmp(name, "tekken_", 7))
                r = vocabulary_from_json(whole.bytes, whole.count, d->splitter, d->ret, d->why,
                                         d->why_bytes);
        else
                r = d->splitter ? refuse_splitter(d)
                                : vocabulary_from_tekken(whole.bytes, whole.count, d->ret, d->why,
                                                         d->why_bytes);
        free(whole.bytes);
        return error_pass(r);
}

static int open_model(const struct door *d, const char *path, const struct side_files *side)
{
        struct whole whole;
        int r = read_whole(d, path, &whole);

        if (r)
                return error_pass(r);
        if (ends_with(path, ".tiktoken") || is_text(&whole))
                r = vocabulary_from_ranks(whole.bytes, whole.count, d->splitter, side, d->ret,
                                          d->why, d->why_bytes);
        else
                r = d->splitter ? refuse_splitter(d)
                                : vocabulary_from_model(whole.bytes, whole.count, side, d->ret,
                                                        d->why, d->why_bytes);
        free(whole.bytes);
        return error_pass(r);
}

/* A file that the others of its folder complete. */
static int open_completed(const struct door *d, const char *path)
{
        const char *merges = merges_of(last_part(path));
        struct side_files side;
        int r = side_files_open(&side, path, d->why, d->why_bytes);

        if (r)
                return error_pass(r);
        if (merges)
                r = open_pair(d, path, merges, &side);
        else if (ends_with(path, ".txt"))
                r = open_words(d, path, &side);
        else
                r = open_model(d, path, &side);
        side_files_close(&side);
        return error_pass(r);
}

static int open_file(const struct door *d, const char *path)
{
        const char *name = last_part(path);

        if (ends_with(name, ".gguf"))
                return error_pass(open_gguf(d, path));
        if (ends_with(name, ".json") && !merges_of(name))
                return error_pass(open_json(d, path));
        if (merges_of(name) || ends_with(name, ".txt") || has_model_name(name) ||
            ends_with(name, ".tiktoken"))
                return error_pass(open_completed(d, path));
        return say(d, -EINVAL, "its name does not end in .gguf, .json, .model, .tiktoken or .txt");
}

/* Finds the first known file in a folder; earlier names carry more information.  NULL: none. */
static const char *find_inside(const char *folder, char to[PATH_BYTES])
{
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                uint64_t identity[2];
                int n = snprintf(to, PATH_BYTES, "%s/%s", folder, names[i]);

                if (n >= 0 && (size_t)n < PATH_BYTES && !sys_identity(to, identity))
                        return to;
        }
        return NULL;
}

int vocabulary_open(const char *path, const char *splitter, struct vocabulary **ret_vocabulary,
                    char *why, size_t why_bytes)
{
        struct door d = { splitter, ret_vocabulary, why, why_bytes };
        char inside[PATH_BYTES];
        const char *found = find_inside(path, inside);
        int r;

        if (!found && is_folder(path))
                return say(&d, -ENOENT,
                           "no tokenizer.json, tekken.json, tokenizer.model, vocab.json or "
                           "vocab.txt is in it");
        r = open_file(&d, found ? found : path);
        if (r && found)
                errtext_prefix(why, why_bytes, r, last_part(found));
        return error_pass(r);
}
