/*
 * Shards are read one after another.  Only the tensors of each are kept, with our own copy of the
 * names.  So even a thousand shards take no more memory than their tensors, whatever else their
 * headers contain.
 *
 * The index's map is sorted by shard and name, and a shard's tensors are sorted by name.  So a
 * shard is compared with its part of the map in one walk over both.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/error.h"
#include "daemon/files/checkpoint.h"
#include "daemon/files/config-quantization.h"
#include "daemon/files/config-traits.h"
#include "daemon/files/file.h"
#include "daemon/files/names.h"
#include "daemon/files/safetensors.h"
#include "daemon/files/scales.h"
#include "daemon/sys.h"
#include "daemon/why.h"

#define WEIGHTS      "model.safetensors"
#define INDEX        "model.safetensors.index.json"
#define CONFIG       "config.json"
#define SUFFIX       ".safetensors"
#define FOLDER_MAX   4096u
#define INDEX_NODES  (2 * TENSORS_MAX)
#define CONFIG_NODES 65536u

struct shard {
        int fd;
        struct sys_mark mark; /* taken before the file was read */
        char *file;           /* its name, safe to print */
        char *names;          /* the names of its tensors, one after another */
};

struct checkpoint {
        struct gguf *gguf; /* if set, the fields below are not used */
        int folder;
        struct json *config;
        struct shard *shards; /* CHECKPOINT_SHARDS_MAX of them */
        uint32_t shard_count;
        struct tensor_table tensors;
        struct scales *scales; /* for the tensors that have them */
};

/* One entry of the index: which shard has a tensor. */
struct line {
        const char *file, *name;
};

struct opening {
        struct checkpoint *c;
        struct json *index;
        struct line *lines; /* sorted by file, then name */
        uint32_t line_count;
        uint32_t taken; /* tensors in the table so far */
        char *why;
        size_t why_bytes;
};

#define refuse(o, ...) error_raise(why_say((o)->why, (o)->why_bytes, -EINVAL, __VA_ARGS__))

static int out_of_memory(struct opening *o)
{
        return error_raise(why_say(o->why, o->why_bytes, -ENOMEM, "no memory for its tensors"));
}

/* Allocates space for our names of a shard's tensors, including those that are left out. */
static int name_tensors(struct opening *o, const struct tensor_table *from, char **ret_names)
{
        size_t bytes = 1;

        for (uint32_t i = 0; i < from->count; i++)
                bytes += strlen(from->tensors[i].name) + NAME_GROWTH_MAX + 1;
        *ret_names = malloc(bytes);
        return *ret_names ? 0 : out_of_memory(o);
}

static int take_tensors(struct opening *o, const struct tensor_table *from)
{
        struct checkpoint *c = o->c;
        uint32_t shard = c->shard_count - 1;
        char *name;
        int r;

        if ((r = name_tensors(o, from, &c->shards[shard].names)))
                return r;
        name = c->shards[shard].names;
        for (uint32_t i = 0; i < from->count; i++) {
                struct tensor *t = &c->tensors.tensors[o->taken];

                assert(o->taken < c->tensors.count);
                if (!name_canonical(from->tensors[i].name, name))
                        continue;
                *t = from->tensors[i];
                t->name = name;
                t->file = shard;
                name += strlen(name) + 1;
                o->taken++;
        }
        return 0;
}

/*
 * Both are sorted by name without duplicates, so the first difference tells which side lacks a
 * name.
 */
static int compare_lines(struct opening *o, const struct tensor_table *tensors,
                         const struct line *lines, uint32_t line_count)
{
        for (uint32_t i = 0; i < tensors->count || i < line_count; i++) {
                const char *has = i < tensors->count ? tensors->sorted[i]->name : NULL;
                const char *should = i < line_count ? lines[i].name : NULL;
                int order = !has ? 1 : !should ? -1 : strcmp(has, should);

                if (order < 0)
                        return refuse(o, "tensor '%s' is in it, but the index does not say so",
                                      shown(has).text);
                if (order > 0)
                        return refuse(o, "tensor '%s' is not in it, but the index says so",
                                      shown(should).text);
        }
        return 0;
}

static int read_shard(struct opening *o, const char *file, struct safetensors *ret_safetensors)
{
        struct shard *shard = &o->c->shards[o->c->shard_count];
        int r;

        r = file_open(o->c->folder, file, &shard->fd, &shard->mark, o->why, o->why_bytes);
        if (r)
                return error_pass(r);
        o->c->shard_count++;
        shard->file = strdup(shown(file).text);
        if (!shard->file)
                return out_of_memory(o);
        return error_pass(safetensors_read(shard->fd, shard->mark.bytes, ret_safetensors, o->why,
                                           o->why_bytes));
}

/*
 * Adds the only file with weights, or a shard with its part of the index.  May return
 * FILE_E_ABSENT.
 */
static int add_shard(struct opening *o, const char *file, const struct line *lines,
                     uint32_t line_count)
{
        struct safetensors s = { 0 };
        int r = read_shard(o, file, &s);

        if (!r && lines)
                r = compare_lines(o, &s.tensors, lines, line_count);
        else if (!r && (r = tensor_table_init(&o->c->tensors, s.tensors.count)))
                r = out_of_memory(o);
        if (!r)
                r = take_tensors(o, &s.tensors);
        safetensors_deinit(&s);
        return r ? why_in(o->why, o->why_bytes, r, shown(file).text) : 0;
}

static int line_compare(const void *a, const void *b)
{
        const struct line *s = a, *t = b;
        int order = strcmp(s->file, t->file);

        return order ? order : strcmp(s->name, t->name);
}

/* A plain name.  Whatever the index says, no file outside the folder is opened. */
static bool is_plain(const char *file)
{
        return *file && *file != '.' && !strchr(file, '/');
}

static int take_line(struct opening *o, uint32_t node, struct line *ret_line)
{
        size_t bytes;
        struct line line = { .name = json_key(o->index, node, &bytes) };

        line.file = json_string(o->index, node, NULL);
        if (strlen(line.name) != bytes)
                return refuse(o, "tensor '%s' has a name with a zero byte", shown(line.name).text);
        if (!line.file)
                return refuse(o, "tensor '%s' is in no file", shown(line.name).text);
        if (!is_plain(line.file))
                return refuse(o, "tensor '%s' is in '%s', which is no plain file name",
                              shown(line.name).text, shown(line.file).text);
        *ret_line = line;
        return 0;
}

static int take_lines(struct opening *o)
{
        uint32_t map = json_member(o->index, 0, "weight_map"), shards = 0;
        uint32_t count = json_count(o->index, map);
        int r;

        if (json_kind(o->index, map) != JSON_OBJECT)
                return refuse(o, "'weight_map' is missing or not an object");
        if (!count || count > TENSORS_MAX)
                return refuse(o, "%" PRIu32 " tensors, not 1 to %u", count, TENSORS_MAX);
        o->lines = calloc(count, sizeof(*o->lines));
        if (!o->lines)
                return out_of_memory(o);
        for (uint32_t c = json_first(o->index, map); c != JSON_NONE; c = json_next(o->index, c))
                if ((r = take_line(o, c, &o->lines[o->line_count++])))
                        return r;
        qsort(o->lines, count, sizeof(*o->lines), line_compare);
        for (uint32_t i = 0; i < count; i++)
                shards += !i || strcmp(o->lines[i - 1].file, o->lines[i].file);
        if (shards > CHECKPOINT_SHARDS_MAX)
                return refuse(o, "%" PRIu32 " files, more than %u", shards, CHECKPOINT_SHARDS_MAX);
        return tensor_table_init(&o->c->tensors, count) ? out_of_memory(o) : 0;
}

static int read_shards(struct opening *o)
{
        uint32_t end;
        int r = file_json(o->c->folder, INDEX, CHECKPOINT_INDEX_MAX, INDEX_NODES, &o->index, o->why,
                          o->why_bytes);

        if (r == FILE_E_ABSENT)
                return refuse(o, "there is neither " WEIGHTS " nor " INDEX " in it");
        if (r)
                return error_pass(r);
        if ((r = take_lines(o)))
                return error_pass(why_in(o->why, o->why_bytes, r, INDEX));
        for (uint32_t i = 0; i < o->line_count; i = end) {
                const char *file = o->lines[i].file;

                for (end = i; end < o->line_count && !strcmp(o->lines[end].file, file); end++)
                        continue;
                r = add_shard(o, file, &o->lines[i], end - i);
                if (r)
                        return r == FILE_E_ABSENT ? error_raise(-ENOENT) : error_pass(r);
        }
        return 0;
}

static int read_config(struct opening *o)
{
        int r = file_json(o->c->folder, CONFIG, CHECKPOINT_CONFIG_MAX, CONFIG_NODES, &o->c->config,
                          o->why, o->why_bytes);

        if (r == FILE_E_ABSENT)
                return refuse(o, CONFIG " is missing beside its weights");
        return error_pass(r);
}

/*
 * If config_quantization() refuses the file, that is ignored here: checkpoint_traits() reports it.
 */
static int join_scales(struct opening *o)
{
        struct scale_block block = { SCALES_ROWS, SCALES_COLUMNS };
        char refused[256];

        (void)config_quantization(o->c->config, &block, refused, sizeof(refused));
        return scales_join(&o->c->tensors, &block, &o->c->scales) ? out_of_memory(o) : 0;
}

/* `file`: the file with the weights; NULL: find it. */
static int read_folder(struct opening *o, const char *file)
{
        const struct tensor *twice;
        int r = read_config(o);

        if (r)
                return r;
        r = add_shard(o, file ? file : WEIGHTS, NULL, 0);
        if (r == FILE_E_ABSENT && !file)
                r = read_shards(o);
        if (r)
                return r == FILE_E_ABSENT ? error_raise(-ENOENT) : error_pass(r);
        o->c->tensors.count = o->taken;
        twice = tensor_table_by_name(&o->c->tensors);
        if (twice)
                return refuse(o, "tensor '%s' is there twice, under different names",
                              shown(twice->name).text);
        return join_scales(o);
}

/* Takes ownership of the folder, also on failure. */
static int open_folder(int folder, const char *file, struct checkpoint **ret_checkpoint, char *why,
                       size_t why_bytes)
{
        struct opening o = { .c = calloc(1, sizeof(*o.c)), .why = why, .why_bytes = why_bytes };
        int r;

        if (!o.c) {
                sys_close(folder);
                return out_of_memory(&o);
        }
        o.c->folder = folder;
        o.c->shards = calloc(CHECKPOINT_SHARDS_MAX, sizeof(*o.c->shards));
        r = o.c->shards ? read_folder(&o, file) : out_of_memory(&o);
        free(o.lines);
        json_free(o.index);
        if (r) {
                checkpoint_close(o.c);
                return error_pass(r);
        }
        *ret_checkpoint = o.c;
        return 0;
}

static bool ends_in(const char *path, const char *suffix)
{
        size_t n = strlen(path), m = strlen(suffix);

        return n > m && !strcmp(path + n - m, suffix);
}

/* Opens the folder of a file, with the file's name in it. */
static int open_beside(const char *path, struct checkpoint **ret_checkpoint, char *why,
                       size_t why_bytes)
{
        const char *slash = strrchr(path, '/');
        char folder[FOLDER_MAX] = ".";
        int fd;

        if (slash && (size_t)(slash - path) + 2 > sizeof(folder))
                return error_raise(
                        why_say(why, why_bytes, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG)));
        if (slash) {
                memcpy(folder, path, (size_t)(slash - path) + 1);
                folder[slash - path + 1] = '\0';
        }
        fd = sys_open_at(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return error_raise(why_say(why, why_bytes, fd, "%s", strerror(-fd)));
        return error_pass(
                open_folder(fd, slash ? slash + 1 : path, ret_checkpoint, why, why_bytes));
}

static int open_gguf(const char *path, struct checkpoint **ret_checkpoint, char *why,
                     size_t why_bytes)
{
        struct checkpoint *c = calloc(1, sizeof(*c));
        uint32_t pieces;
        int r;

        if (!c)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory for its tensors"));
        c->folder = -1;
        r = gguf_open(path, &c->gguf, why, why_bytes);
        if (!r && gguf_u32(c->gguf, "split.count", &pieces) && pieces > 1)
                r = error_raise(why_say(why, why_bytes, -EINVAL,
                                        "one of %" PRIu32 " pieces of a model: join them first",
                                        pieces));
        if (r) {
                checkpoint_close(c);
                return error_pass(r);
        }
        *ret_checkpoint = c;
        return 0;
}

int checkpoint_open(const char *path, struct checkpoint **ret_checkpoint, char *why,
                    size_t why_bytes)
{
        int folder = sys_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);

        if (folder >= 0)
                return error_pass(open_folder(folder, NULL, ret_checkpoint, why, why_bytes));
        if (folder != -ENOTDIR)
                return error_raise(why_say(why, why_bytes, folder, "%s", strerror(-folder)));
        if (ends_in(path, SUFFIX))
                return error_pass(open_beside(path, ret_checkpoint, why, why_bytes));
        return error_pass(open_gguf(path, ret_checkpoint, why, why_bytes));
}

struct checkpoint *checkpoint_close(struct checkpoint *c)
{
        if (!c)
                return NULL;
        for (uint32_t i = 0; i < c->shard_count; i++) {
                sys_close(c->shards[i].fd);
                free(c->shards[i].file);
                free(c->shards[i].names);
        }
        free(c->shards);
        tensor_table_deinit(&c->tensors);
        free(c->scales);
        json_free(c->config);
        sys_close(c->folder);
        gguf_close(c->gguf);
        free(c);
        return NULL;
}

const struct tensor_table *checkpoint_tensors(const struct checkpoint *c)
{
        return c->gguf ? gguf_tensors(c->gguf) : &c->tensors;
}

const struct tensor *checkpoint_tensor(const struct checkpoint *c, const char *name)
{
        return tensor_table_find(checkpoint_tensors(c), name);
}

int checkpoint_read(const struct checkpoint *c, const struct tensor *tensor, uint64_t from,
                    void *ret_bytes, size_t bytes, char *why, size_t why_bytes)
{
        int r;

        assert(from <= tensor->bytes && bytes <= tensor->bytes - from);
        r = file_read(checkpoint_fd(c, tensor), tensor->offset + from, ret_bytes, bytes, why,
                      why_bytes);
        return r ? error_pass(checkpoint_blame(c, tensor, why, why_bytes, r)) : 0;
}

int checkpoint_fd(const struct checkpoint *c, const struct tensor *tensor)
{
        return c->gguf ? gguf_fd(c->gguf) : c->shards[tensor->file].fd;
}

int checkpoint_blame(const struct checkpoint *c, const struct tensor *tensor, char *why,
                     size_t why_bytes, int r)
{
        char where[96];

        snprintf(where, sizeof(where), "tensor '%s'", shown(tensor->name).text);
        why_in(why, why_bytes, r, where);
        return c->gguf ? r : why_in(why, why_bytes, r, c->shards[tensor->file].file);
}

int checkpoint_check(const struct checkpoint *c, char *why, size_t why_bytes)
{
        int r = 0;

        if (c->gguf)
                return error_pass(file_check(gguf_fd(c->gguf), gguf_mark(c->gguf), why, why_bytes));
        for (uint32_t i = 0; !r && i < c->shard_count; i++) {
                r = file_check(c->shards[i].fd, &c->shards[i].mark, why, why_bytes);
                if (r)
                        why_in(why, why_bytes, r, c->shards[i].file);
        }
        return error_pass(r);
}

const struct gguf *checkpoint_gguf(const struct checkpoint *c)
{
        return c->gguf;
}

const struct json *checkpoint_config(const struct checkpoint *c)
{
        return c->config;
}

int checkpoint_folder(const struct checkpoint *c)
{
        return c->folder;
}

int checkpoint_traits(const struct checkpoint *c, struct traits *ret_traits, char *why,
                      size_t why_bytes)
{
        if (c->gguf)
                return error_pass(gguf_traits(c->gguf, ret_traits, why, why_bytes));
        return error_pass(config_traits(c->config, ret_traits, why, why_bytes));
}
