#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX     ".gguf"
#define DEPTH_MAX  8 /* of folders that are removed */
#define MODELS_MAX 100000u

/* ---- places ---- */

static void add_place(struct store *store, const char *folder, const char *below)
{
        char *to = store->places[store->place_count];

        if ((size_t)snprintf(to, STORE_PATH_BYTES, "%s%s", folder, below) < STORE_PATH_BYTES)
                store->place_count++;
}

static const char *home(void)
{
        const char *named = getenv("HOME");
        const struct passwd *user = named && *named == '/' ? NULL : getpwuid(geteuid());

        if (named && *named == '/')
                return named;
        return user && *user->pw_dir == '/' ? user->pw_dir : NULL;
}

int store_open(struct store *ret_store)
{
        const char *named = getenv("SAMOVAR_MODELS"), *data = getenv("XDG_DATA_HOME");
        const char *own = home();

        ret_store->place_count = 0;
        if (named && *named) {
                add_place(ret_store, named, "");
                return 0;
        }
        if (!geteuid())
                add_place(ret_store, STORE_SYSTEM, "");
        if (data && *data == '/')
                add_place(ret_store, data, "/samovar/models");
        else if (own)
                add_place(ret_store, own, "/.local/share/samovar/models");
        if (geteuid())
                add_place(ret_store, STORE_SYSTEM, "");
        return ret_store->place_count ? 0 : -ENOENT;
}

bool store_may_name(const char *name, size_t bytes)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789._+-";

        return bytes && bytes <= STORE_NAME_BYTES && *name != '.' && *name != '-' &&
               strspn(name, letters) >= bytes;
}

/* ---- what lies there ---- */

void store_model_deinit(struct store_model *model)
{
        manifest_deinit(&model->manifest);
}

/* True if it fits. */
static bool join(char to[STORE_PATH_BYTES], const char *folder, const char *name)
{
        return (size_t)snprintf(to, STORE_PATH_BYTES, "%s/%s", folder, name) < STORE_PATH_BYTES;
}

static size_t without_suffix(const char *name)
{
        size_t bytes = strlen(name), suffix = strlen(SUFFIX);

        return bytes > suffix && !strcmp(name + bytes - suffix, SUFFIX) ? bytes - suffix : bytes;
}

/*
 * A folder without a manifest: sums its files; *ret_gguf is the only GGUF file, "" if there are
 * none or several.
 */
static int look_into(const char *folder, char ret_gguf[256], bool *ret_config, uint64_t *ret_bytes)
{
        DIR *dir = opendir(folder);
        unsigned files = 0;
        struct dirent *entry;
        struct stat file;

        ret_gguf[0] = '\0';
        *ret_config = false;
        *ret_bytes = 0;
        if (!dir)
                return -errno;
        while ((entry = readdir(dir))) {
                if (*entry->d_name == '.' || fstatat(dirfd(dir), entry->d_name, &file, 0) < 0 ||
                    !S_ISREG(file.st_mode))
                        continue;
                *ret_bytes += (uint64_t)file.st_size;
                *ret_config |= !strcmp(entry->d_name, "config.json");
                if (entry->d_name[without_suffix(entry->d_name)] && !files++)
                        snprintf(ret_gguf, 256, "%s", entry->d_name);
        }
        closedir(dir);
        if (files != 1)
                ret_gguf[0] = '\0';
        return 0;
}

/* A folder: 0; -ENOENT: it is no model. */
static int read_folder(struct store_model *model)
{
        char gguf[256];
        bool config;
        int r = manifest_read(model->entry, &model->manifest);

        if (!r) {
                const char *file = model->manifest.model;

                model->pulled = true;
                model->bytes = manifest_bytes(&model->manifest);
                if (!strcmp(file, "."))
                        snprintf(model->path, sizeof(model->path), "%s", model->entry);
                else if (!join(model->path, model->entry, file))
                        return -ENOENT;
                return 0;
        }
        if (look_into(model->entry, gguf, &config, &model->bytes))
                return -ENOENT;
        if (*gguf)
                return join(model->path, model->entry, gguf) ? 0 : -ENOENT;
        snprintf(model->path, sizeof(model->path), "%s", model->entry);
        return config ? 0 : -ENOENT;
}

/* Reads an entry of a place.  0, or -ENOENT: it is no model, and nothing need be freed. */
static int read_entry(const struct store *store, unsigned place, const char *entry,
                      struct store_model *ret_model)
{
        size_t bytes = without_suffix(entry);
        struct stat file;
        int r = 0;

        *ret_model = (struct store_model){ .place = place };
        if (*entry == '.' || bytes > STORE_NAME_BYTES ||
            !join(ret_model->entry, store->places[place], entry) ||
            stat(ret_model->entry, &file) < 0)
                return -ENOENT;
        ret_model->modified_s = file.st_mtime;
        if (S_ISDIR(file.st_mode)) {
                bytes = strlen(entry);
                r = bytes > STORE_NAME_BYTES ? -ENOENT : read_folder(ret_model);
        } else if (S_ISREG(file.st_mode) && entry[bytes]) {
                snprintf(ret_model->path, sizeof(ret_model->path), "%s", ret_model->entry);
                ret_model->bytes = (uint64_t)file.st_size;
        } else {
                return -ENOENT;
        }
        memcpy(ret_model->name, entry, bytes);
        if (r)
                store_model_deinit(ret_model);
        return r;
}

static int compare_models(const void *a, const void *b)
{
        const struct store_model *left = a, *right = b;
        int r = strcmp(left->name, right->name);

        return r ? r : (int)left->place - (int)right->place;
}

static int list_place(const struct store *store, unsigned place, struct store_list *list)
{
        DIR *dir = opendir(store->places[place]);
        struct store_model model, *models;
        struct dirent *entry;

        if (!dir)
                return errno == ENOMEM ? -ENOMEM : 0; /* no folder, or one of others */
        while ((entry = readdir(dir)) && list->count < MODELS_MAX) {
                if (read_entry(store, place, entry->d_name, &model))
                        continue;
                models = realloc(list->models, (list->count + 1) * sizeof(*models));
                if (!models) {
                        store_model_deinit(&model);
                        closedir(dir);
                        return -ENOMEM;
                }
                list->models = models;
                models[list->count++] = model;
        }
        closedir(dir);
        return 0;
}

int store_path(const char *name, char *ret_path, size_t bytes)
{
        struct store_model model;
        struct store store;
        int r = store_open(&store);

        if (!r)
                r = store_find(&store, name, &model);
        if (r)
                return r;
        if ((size_t)snprintf(ret_path, bytes, "%s", model.path) >= bytes)
                r = -ENAMETOOLONG;
        store_model_deinit(&model);
        return r;
}

int store_list(const struct store *store, struct store_list *ret_list)
{
        int r = 0;

        *ret_list = (struct store_list){ 0 };
        for (unsigned i = 0; i < store->place_count && !r; i++)
                r = list_place(store, i, ret_list);
        if (r)
                store_list_deinit(ret_list);
        else if (ret_list->count)
                qsort(ret_list->models, ret_list->count, sizeof(*ret_list->models), compare_models);
        return r;
}

void store_list_deinit(struct store_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                store_model_deinit(&list->models[i]);
        free(list->models);
        *list = (struct store_list){ 0 };
}

static int find_exactly(const struct store *store, const char *name, struct store_model *ret_model)
{
        char file[STORE_NAME_BYTES + sizeof(SUFFIX)];

        snprintf(file, sizeof(file), "%s" SUFFIX, name);
        for (unsigned i = 0; i < store->place_count; i++)
                if (!read_entry(store, i, name, ret_model) ||
                    !read_entry(store, i, file, ret_model))
                        return 0;
        return -ENOENT;
}

int store_find(const struct store *store, const char *name, struct store_model *ret_model)
{
        struct store_list list;
        size_t names = 0, at = 0;
        int r;

        if (!store_may_name(name, strlen(name)))
                return -ENOENT;
        if (!find_exactly(store, name, ret_model))
                return 0;
        r = store_list(store, &list);
        for (size_t i = 0; i < list.count && !r; i++) {
                if (strcasecmp(list.models[i].name, name) ||
                    (names && !strcmp(list.models[at].name, list.models[i].name)))
                        continue;
                at = i;
                names++;
        }
        if (!r && names == 1) {
                *ret_model = list.models[at];
                list.models[at].manifest = (struct manifest){ 0 }; /* it has moved */
        }
        store_list_deinit(&list);
        return r ? r : names == 1 ? 0 : -ENOENT;
}

/* ---- removal ---- */

static int remove_at(int at, const char *name, int depth)
{
        struct dirent *entry;
        DIR *dir;
        int fd, r = 0;

        if (!unlinkat(at, name, 0))
                return 0;
        if (errno != EISDIR && errno != EPERM)
                return -errno;
        fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                close(fd);
                return -ENOMEM;
        }
        while (!r && (entry = readdir(dir)))
                if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
                        r = depth ? remove_at(fd, entry->d_name, depth - 1) : -ELOOP;
        closedir(dir);
        if (!r && unlinkat(at, name, AT_REMOVEDIR) < 0)
                r = -errno;
        return r;
}

int store_remove(const char *path)
{
        return remove_at(AT_FDCWD, path, DEPTH_MAX);
}
