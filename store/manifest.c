#include "store/manifest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"
#include "store/text-file.h"

#define MANIFEST_BYTES_MAX (4u << 20)

int manifest_set(struct manifest *manifest, const char *source, const char *revision,
                 const char *model)
{
        free(manifest->source);
        free(manifest->revision);
        free(manifest->model);
        manifest->source = strdup(source);
        manifest->revision = strdup(revision);
        manifest->model = strdup(model);
        return manifest->source && manifest->revision && manifest->model ? 0 : -ENOMEM;
}

int manifest_add(struct manifest *manifest, const char *name, uint64_t bytes, const char *sha256)
{
        size_t count = manifest->file_count;
        struct manifest_file *files = realloc(manifest->files, (count + 1) * sizeof(*files));

        if (!files)
                return -ENOMEM;
        manifest->files = files;
        files[count] = (struct manifest_file){ .name = strdup(name), .bytes = bytes };
        if (!files[count].name)
                return -ENOMEM;
        snprintf(files[count].sha256, sizeof(files[count].sha256), "%s", sha256);
        manifest->file_count++;
        return 0;
}

void manifest_deinit(struct manifest *manifest)
{
        for (size_t i = 0; i < manifest->file_count; i++)
                free(manifest->files[i].name);
        free(manifest->files);
        free(manifest->source);
        free(manifest->revision);
        free(manifest->model);
        *manifest = (struct manifest){ 0 };
}

uint64_t manifest_bytes(const struct manifest *manifest)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < manifest->file_count; i++)
                bytes += manifest->files[i].bytes;
        return bytes;
}

/* A name inside the folder leads nowhere else. */
static bool is_inside(const char *name)
{
        return *name && !strchr(name, '/') && strcmp(name, "..");
}

static int read_files(const struct json_document *json, struct manifest *manifest)
{
        uint32_t files = json_member(json, 0, "files");
        int r = json_count(json, files) > MANIFEST_FILES_MAX ? -EINVAL : 0;

        for (uint32_t file = json_first(json, files); file != JSON_NONE && !r;
             file = json_next(json, file)) {
                const char *name = json_string(json, json_member(json, file, "name"), NULL);
                const char *hash = json_string(json, json_member(json, file, "sha256"), NULL);
                uint64_t bytes;

                if (!name || !is_inside(name) || !hash || strlen(hash) >= SHA256_HEX_BYTES ||
                    !json_whole(json, json_member(json, file, "bytes"), &bytes))
                        return -EINVAL;
                r = manifest_add(manifest, name, bytes, hash);
        }
        return r;
}

static int read_document(const struct json_document *json, struct manifest *manifest)
{
        const char *source = json_string(json, json_member(json, 0, "source"), NULL);
        const char *revision = json_string(json, json_member(json, 0, "revision"), NULL);
        const char *model = json_string(json, json_member(json, 0, "model"), NULL);
        int r;

        if (!source || !revision || !model || !is_inside(model) ||
            !json_whole(json, json_member(json, 0, "pulled_s"), &manifest->pulled_s))
                return -EINVAL;
        r = manifest_set(manifest, source, revision, model);
        return r ? r : read_files(json, manifest);
}

int manifest_read(const char *folder, struct manifest *ret_manifest)
{
        struct json_document *json = NULL;
        struct bytes text = { 0 };
        char path[PATH_MAX], why[128];
        int r = 0;

        *ret_manifest = (struct manifest){ 0 };
        if ((size_t)snprintf(path, sizeof(path), "%s/" MANIFEST_FILE, folder) >= sizeof(path))
                return -ENAMETOOLONG;
        r = text_file_read(path, MANIFEST_BYTES_MAX, &text);
        if (!r)
                r = json_parse(text.at, text.count, 1u << 16, &json, why, sizeof(why));
        if (!r)
                r = read_document(json, ret_manifest);
        if (r)
                manifest_deinit(ret_manifest);
        json_free(json);
        bytes_deinit(&text);
        return r;
}

void manifest_put(struct json_builder *builder, const struct manifest *manifest)
{
        json_put_key_word(builder, "source", manifest->source);
        json_put_key_word(builder, "revision", manifest->revision);
        json_put_key_uint(builder, "pulled_s", manifest->pulled_s);
        json_put_key_word(builder, "model", manifest->model);
        json_put_key(builder, "files");
        json_put_array(builder);
        for (size_t i = 0; i < manifest->file_count; i++) {
                json_put_object(builder);
                json_put_key_word(builder, "name", manifest->files[i].name);
                json_put_key_uint(builder, "bytes", manifest->files[i].bytes);
                json_put_key_word(builder, "sha256", manifest->files[i].sha256);
                json_put_object_end(builder);
        }
        json_put_array_end(builder);
}

int manifest_write(const char *folder, const struct manifest *manifest)
{
        struct bytes text = { 0 };
        struct json_builder builder = json_build(&text);
        char path[PATH_MAX];
        int r;

        if ((size_t)snprintf(path, sizeof(path), "%s/" MANIFEST_FILE, folder) >= sizeof(path))
                return -ENAMETOOLONG;
        json_put_object(&builder);
        manifest_put(&builder, manifest);
        json_put_object_end(&builder);
        r = json_put_end(&builder);
        if (!r)
                r = text_file_write(path, text.at, text.count);
        bytes_deinit(&text);
        return r;
}
