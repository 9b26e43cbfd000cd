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

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"
#include "daemon/files/checkpoint.h"
#include "daemon/files/config-quantization.h"
#include "daemon/files/config-traits.h"
#include "daemon/files/file.h"
#include "daemon/files/safetensors.h"
#include "daemon/files/scales.h"
#include "daemon/files/tensor-names.h"

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
        struct json_document *config;
        struct shard *shards; /* CHECKPOINT_SHARDS_MAX of them */
        uint32_t shard_count;
        struct tensor_table tensors;
        struct scales *scales; /* for the tensors that have them */
};

/* One entry of the index: which shard has a tensor. */
struct index_entry {
        const char *file, *name;
};

struct build {
        struct checkpoint *c;
        enum tensor_naming naming;
        struct json_document *index;
        struct index_entry *entries; /* sorted by file, then name */
        uint32_t entry_count;
        uint32_t taken; /* tensors in the table so far */
        char *why;
        size_t why_bytes;
};

#define refuse(build, ...)                                                                         \
        error_raise(errtext_set((build)->why, (build)->why_bytes, -EINVAL, __VA_ARGS__))

static int out_of_memory(struct build *build)
{
        return error_raise(errtext_set(build->why, build->why_bytes, -ENOMEM,
                                       "out of memory for the table of tensors"));
}

/* Allocates space for our names of a shard's tensors, including those that are left out. */
static int name_tensors(struct build *build, const struct tensor_table *from, char **ret_names)
{
        size_t bytes = 1;

        for (uint32_t i = 0; i < from->count; i++)
                bytes += strlen(from->tensors[i].name) + TENSOR_NAME_GROWTH_MAX + 1;
        *ret_names = malloc(bytes);
        return *ret_names ? 0 : out_of_memory(build);
}

static int take_tensors(struct build *build, const struct tensor_table *from)
{
        struct checkpoint *c = build->c;
        uint32_t shard = c->shard_count - 1;
        char *name;
        int r;

        if ((r = name_tensors(build, from, &c->shards[shard].names)))
                return r;
        name = c->shards[shard].names;
        for (uint32_t i = 0; i < from->count; i++) {
                struct tensor *t = &c->tensors.tensors[build->taken];

                assert(build->taken < c->tensors.count);
                if (!tensor_name_canonical(build->naming, from->tensors[i].name, name))
                        continue;
                *t = from->tensors[i];
                t->name = name;
                t->file = shard;
                name += strlen(name) + 1;
                build->taken++;
        }
        return 0;
}

/*
 * Both are sorted by name without duplicates, so the first difference tells which side lacks a
 * name.
 */
static int compare_entries(struct build *build, const struct tensor_table *tensors,
                           const struct index_entry *entries, uint32_t entry_count)
{
        for (uint32_t i = 0; i < tensors->count || i < entry_count; i++) {
                const char *has = i < tensors->count ? tensors->sorted[i]->name : NULL;
                const char *should = i < entry_count ? entries[i].name : NULL;
                int order = !has ? 1 : !should ? -1 : strcmp(has, should);

                if (order < 0)
                        return refuse(build,
                                      "tensor '%s' is in this file, but not according to the index",
                                      shown(has).text);
                if (order > 0)
                        return refuse(build,
                                      "tensor '%s' is missing from this file, although the index "
                                      "lists it",
                                      shown(should).text);
        }
        return 0;
}

static int read_shard(struct build *build, const char *file, struct safetensors *ret_safetensors)
{
        struct shard *shard = &build->c->shards[build->c->shard_count];
        int r;

        r = file_open(build->c->folder, file, &shard->fd, &shard->mark, build->why,
                      build->why_bytes);
        if (r)
                return error_pass(r);
        build->c->shard_count++;
        shard->file = strdup(shown(file).text);
        if (!shard->file)
                return out_of_memory(build);
        return error_pass(safetensors_read(shard->fd, shard->mark.bytes, ret_safetensors,
                                           build->why, build->why_bytes));
}

/*
 * Adds the only file with weights, or a shard with its part of the index.  May return
 * FILE_E_ABSENT.
 */
static int add_shard(struct build *build, const char *file, const struct index_entry *entries,
                     uint32_t entry_count)
{
        struct safetensors s = { 0 };
        int r = read_shard(build, file, &s);

        if (!r && entries)
                r = compare_entries(build, &s.tensors, entries, entry_count);
        else if (!r && (r = tensor_table_init(&build->c->tensors, s.tensors.count)))
                r = out_of_memory(build);
        if (!r)
                r = take_tensors(build, &s.tensors);
        safetensors_deinit(&s);
        return r ? errtext_prefix(build->why, build->why_bytes, r, shown(file).text) : 0;
}

static int entry_compare(const void *a, const void *b)
{
        const struct index_entry *s = a, *t = b;
        int order = strcmp(s->file, t->file);

        return order ? order : strcmp(s->name, t->name);
}

/* A plain name.  Whatever the index says, no file outside the folder is opened. */
static bool is_plain(const char *file)
{
        return *file && *file != '.' && !strchr(file, '/');
}

static int take_entry(struct build *build, uint32_t node, struct index_entry *ret_entry)
{
        size_t bytes;
        struct index_entry entry = { .name = json_key(build->index, node, &bytes) };

        entry.file = json_string(build->index, node, NULL);
        if (strlen(entry.name) != bytes)
                return refuse(build, "the name of tensor '%s' contains a zero byte",
                              shown(entry.name).text);
        if (!entry.file)
                return refuse(build, "tensor '%s' is in no file", shown(entry.name).text);
        if (!is_plain(entry.file))
                return refuse(build, "tensor '%s' is in '%s', which is not a plain file name",
                              shown(entry.name).text, shown(entry.file).text);
        *ret_entry = entry;
        return 0;
}

static int take_entries(struct build *build)
{
        uint32_t map = json_member(build->index, 0, "weight_map"), shards = 0;
        uint32_t count = json_count(build->index, map);
        int r;

        if (json_kind(build->index, map) != JSON_OBJECT)
                return refuse(build, "'weight_map' is missing or not an object");
        if (!count || count > TENSORS_MAX)
                return refuse(build, "%" PRIu32 " tensors, not 1 to %u", count, TENSORS_MAX);
        build->entries = calloc(count, sizeof(*build->entries));
        if (!build->entries)
                return out_of_memory(build);
        for (uint32_t c = json_first(build->index, map); c != JSON_NONE;
             c = json_next(build->index, c))
                if ((r = take_entry(build, c, &build->entries[build->entry_count++])))
                        return r;
        qsort(build->entries, count, sizeof(*build->entries), entry_compare);
        for (uint32_t i = 0; i < count; i++)
                shards += !i || strcmp(build->entries[i - 1].file, build->entries[i].file);
        if (shards > CHECKPOINT_SHARDS_MAX)
                return refuse(build, "%" PRIu32 " files, more than %u", shards,
                              CHECKPOINT_SHARDS_MAX);
        return tensor_table_init(&build->c->tensors, count) ? out_of_memory(build) : 0;
}

static int read_shards(struct build *build)
{
        uint32_t end;
        int r = file_read_json(build->c->folder, INDEX, CHECKPOINT_INDEX_MAX, INDEX_NODES,
                               &build->index, build->why, build->why_bytes);

        if (r == FILE_E_ABSENT)
                return refuse(build, "there is neither " WEIGHTS " nor " INDEX " in it");
        if (r)
                return error_pass(r);
        if ((r = take_entries(build)))
                return error_pass(errtext_prefix(build->why, build->why_bytes, r, INDEX));
        for (uint32_t i = 0; i < build->entry_count; i = end) {
                const char *file = build->entries[i].file;

                for (end = i; end < build->entry_count && !strcmp(build->entries[end].file, file);
                     end++)
                        continue;
                r = add_shard(build, file, &build->entries[i], end - i);
                if (r)
                        return r == FILE_E_ABSENT ? error_raise(-ENOENT) : error_pass(r);
        }
        return 0;
}

static int read_config(struct build *build)
{
        int r = file_read_json(build->c->folder, CONFIG, CHECKPOINT_CONFIG_MAX, CONFIG_NODES,
                               &build->c->config, build->why, build->why_bytes);

        if (r == FILE_E_ABSENT)
                return refuse(build, CONFIG " is missing beside its weights");
        return error_pass(r);
}

/*
 * If config_quantization() refuses the file, that is ignored here: checkpoint_traits() reports it.
 */
static int join_scales(struct build *build)
{
        struct scale_block block = { SCALES_ROWS, SCALES_COLUMNS };
        char refused[256];

        (void)config_quantization(build->c->config, &block, refused, sizeof(refused));
        return scales_join(&build->c->tensors, &block, &build->c->scales) ? out_of_memory(build)
                                                                          : 0;
}

/* `file`: the file with the weights; NULL: find it. */
static int read_folder(struct build *build, const char *file)
{
        const struct tensor *twice;
        int r = read_config(build);

        if (r)
                return r;
        build->naming = config_naming(build->c->config);
        r = add_shard(build, file ? file : WEIGHTS, NULL, 0);
        if (r == FILE_E_ABSENT && !file)
                r = read_shards(build);
        if (r)
                return r == FILE_E_ABSENT ? error_raise(-ENOENT) : error_pass(r);
        build->c->tensors.count = build->taken;
        twice = tensor_table_by_name(&build->c->tensors);
        if (twice)
                return refuse(build, "tensor '%s' occurs twice, under different names",
                              shown(twice->name).text);
        return join_scales(build);
}

/* Takes ownership of the folder, also on failure. */
static int open_folder(int folder, const char *file, struct checkpoint **ret_checkpoint, char *why,
                       size_t why_bytes)
{
        struct build build = { .c = calloc(1, sizeof(*build.c)),
                               .why = why,
                               .why_bytes = why_bytes };
        int r;

        if (!build.c) {
                sys_close(folder);
                return out_of_memory(&build);
        }
        build.c->folder = folder;
        build.c->shards = calloc(CHECKPOINT_SHARDS_MAX, sizeof(*build.c->shards));
        r = build.c->shards ? read_folder(&build, file) : out_of_memory(&build);
        free(build.entries);
        json_free(build.index);
        if (r) {
                checkpoint_close(build.c);
                return error_pass(r);
        }
        *ret_checkpoint = build.c;
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
                        errtext_set(why, why_bytes, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG)));
        if (slash) {
                memcpy(folder, path, (size_t)(slash - path) + 1);
                folder[slash - path + 1] = '\0';
        }
        fd = sys_open_at(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return error_raise(errtext_set(why, why_bytes, fd, "%s", strerror(-fd)));
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
                return error_raise(errtext_set(why, why_bytes, -ENOMEM,
                                               "out of memory for the table of tensors"));
        c->folder = -1;
        r = gguf_open(path, &c->gguf, why, why_bytes);
        if (!r && gguf_u32(c->gguf, "split.count", &pieces) && pieces > 1)
                r = error_raise(errtext_set(why, why_bytes, -EINVAL,
                                            "this file is one of %" PRIu32
                                            " pieces of a model: join them first",
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
                return error_raise(errtext_set(why, why_bytes, folder, "%s", strerror(-folder)));
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
        return r ? error_pass(checkpoint_prefix_error(c, tensor, why, why_bytes, r)) : 0;
}

int checkpoint_fd(const struct checkpoint *c, const struct tensor *tensor)
{
        return c->gguf ? gguf_fd(c->gguf) : c->shards[tensor->file].fd;
}

int checkpoint_prefix_error(const struct checkpoint *c, const struct tensor *tensor, char *why,
                            size_t why_bytes, int r)
{
        char where[96];

        snprintf(where, sizeof(where), "tensor '%s'", shown(tensor->name).text);
        errtext_prefix(why, why_bytes, r, where);
        return c->gguf ? r : errtext_prefix(why, why_bytes, r, c->shards[tensor->file].file);
}

int checkpoint_check(const struct checkpoint *c, char *why, size_t why_bytes)
{
        int r = 0;

        if (c->gguf)
                return error_pass(
                        file_check_unchanged(gguf_fd(c->gguf), gguf_mark(c->gguf), why, why_bytes));
        for (uint32_t i = 0; !r && i < c->shard_count; i++) {
                r = file_check_unchanged(c->shards[i].fd, &c->shards[i].mark, why, why_bytes);
                if (r)
                        errtext_prefix(why, why_bytes, r, c->shards[i].file);
        }
        return error_pass(r);
}

const struct gguf *checkpoint_gguf(const struct checkpoint *c)
{
        return c->gguf;
}

const struct json_document *checkpoint_config(const struct checkpoint *c)
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
