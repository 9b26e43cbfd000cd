#include "bridge/openai/file-store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "bridge/core/fields.h"
#include "bridge/core/identifier.h"

#define NS_PER_S UINT64_C(1000000000)

struct file_store {
        struct list_head files; /* the newest first */
};

struct file_store *file_store_new(void)
{
        struct file_store *store = calloc(1, sizeof(*store));

        if (store)
                list_init(&store->files);
        return store;
}

struct file_store *file_store_free(struct file_store *store)
{
        if (!store)
                return NULL;
        list_each_safe(at, &store->files)
                file_store_remove(LIST_ENTRY(at, struct stored_file, of_store));
        free(store);
        return NULL;
}

struct stored_file *file_ref(struct stored_file *file)
{
        file->references++;
        return file;
}

struct stored_file *file_unref(struct stored_file *file)
{
        if (!file || --file->references)
                return NULL;
        sys_close(file->fd);
        free(file);
        return NULL;
}

void file_store_remove(struct stored_file *file)
{
        list_remove(&file->of_store);
        file_unref(file);
}

static bool has_space(const struct file_store *store, const struct bridge *bridge,
                      uint32_t principal, uint64_t bytes)
{
        uint32_t count = 0;

        list_each(at, &store->files) {
                const struct stored_file *file = LIST_ENTRY(at, struct stored_file, of_store);

                if (file->principal != principal)
                        continue;
                count++;
                bytes += file->bytes;
        }
        return count < bridge->conf.files_max && bytes <= bridge->conf.files_bytes;
}

int file_store_add(struct file_store *store, const struct bridge *bridge, uint32_t principal,
                   int fd, uint64_t offset, uint64_t bytes, struct stored_file **ret_file)
{
        struct stored_file *file = NULL;
        int r = -EDQUOT;

        if (has_space(store, bridge, principal, bytes)) {
                file = calloc(1, sizeof(*file));
                r = -ENOMEM;
        }
        if (!file) {
                sys_close(fd);
                return r;
        }
        file->references = 1;
        file->principal = principal;
        file->fd = fd;
        file->offset = offset;
        file->bytes = bytes;
        file->created_s = sys_wall_clock_ns() / NS_PER_S;
        identifier_make("file-", file->id, sizeof(file->id));
        list_push_front(&store->files, &file->of_store);
        *ret_file = file;
        return 0;
}

struct stored_file *file_store_find(const struct file_store *store, uint32_t principal,
                                    struct text id)
{
        list_each(at, &store->files) {
                struct stored_file *file = LIST_ENTRY(at, struct stored_file, of_store);

                if (file->principal == principal && text_is(id, file->id))
                        return file;
        }
        return NULL;
}

struct stored_file *file_store_next(const struct file_store *store, uint32_t principal,
                                    const struct stored_file *after)
{
        const struct list_head *at = after ? &after->of_store : &store->files;

        while ((at = at->next) != &store->files) {
                struct stored_file *file = LIST_ENTRY(at, struct stored_file, of_store);

                if (file->principal == principal)
                        return file;
        }
        return NULL;
}

void file_put(struct json_builder *to, const struct stored_file *file)
{
        json_put_object(to);
        json_put_key_word(to, "id", file->id);
        json_put_key_word(to, "object", "file");
        json_put_key_uint(to, "bytes", file->bytes);
        json_put_key_uint(to, "created_at", file->created_s);
        json_put_key_null(to, "expires_at");
        json_put_key_word(to, "filename", file->filename);
        json_put_key_word(to, "purpose", file->purpose);
        json_put_key_word(to, "status", "processed");
        json_put_object_end(to);
}
