#include "cli/doctor/look-at-models.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/progress.h"
#include "store/store.h"

#define PIECE_BYTES (UINT64_C(1) << 20)

struct reading {
        struct progress progress;
        uint64_t read; /* bytes, of all models */
        char *piece;   /* PIECE_BYTES; NULL: only sizes are compared */
};

/* 0 or a negative errno. */
static int read_digest(struct reading *reading, int fd, char ret_hex[SHA256_HEX_BYTES])
{
        struct sha256 hash;
        ssize_t n;

        sha256_begin(&hash);
        while ((n = read(fd, reading->piece, PIECE_BYTES)) > 0) {
                sha256_add(&hash, reading->piece, (size_t)n);
                reading->read += (uint64_t)n;
                progress_show(&reading->progress, reading->read);
        }
        sha256_end_hex(&hash, ret_hex);
        return n < 0 ? -errno : 0;
}

/* True if the file is as it came; if not, says what is wrong. */
static bool file_is_right(struct reading *reading, const struct store_model *model,
                          const struct manifest_file *file, char *why, size_t bytes)
{
        char path[STORE_PATH_BYTES + 256], hex[SHA256_HEX_BYTES];
        struct stat there;
        int fd, r = 0;

        snprintf(path, sizeof(path), "%s/%.250s", model->entry, file->name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &there))
                r = -errno;
        else if (there.st_size < 0 || (uint64_t)there.st_size != file->bytes)
                r = snprintf(why, bytes, "%s: %.100s has %lld bytes, not %llu", model->name,
                             file->name, (long long)there.st_size, (unsigned long long)file->bytes);
        else if (reading->piece && !(r = read_digest(reading, fd, hex)) &&
                 strcmp(hex, file->sha256) != 0)
                r = snprintf(why, bytes, "%s: the SHA-256 of %.100s has changed", model->name,
                             file->name);
        if (r < 0)
                snprintf(why, bytes, "%s: %.100s: %s", model->name, file->name, strerror(-r));
        if (fd >= 0)
                close(fd);
        return !r;
}

static void look_at_model(struct reading *reading, const struct store_model *model,
                          struct model_facts *models)
{
        char why[sizeof(models->why)];

        for (size_t i = 0; i < model->manifest.file_count; i++) {
                if (file_is_right(reading, model, &model->manifest.files[i], why, sizeof(why)))
                        continue;
                if (!models->wrong++) {
                        snprintf(models->why, sizeof(models->why), "%s", why);
                        snprintf(models->source, sizeof(models->source), "%s",
                                 model->manifest.source);
                }
                return;
        }
}

static void count_models(const struct store_list *list, struct model_facts *models)
{
        models->count = list->count;
        for (size_t i = 0; i < list->count; i++) {
                models->bytes += list->models[i].bytes;
                models->pulled += list->models[i].pulled;
                if (list->models[i].pulled)
                        models->pulled_bytes += manifest_bytes(&list->models[i].manifest);
        }
}

void look_at_models(bool digests, struct model_facts *ret_models)
{
        struct reading reading = { .piece = digests ? malloc(PIECE_BYTES) : NULL };
        struct store_list list = { 0 };
        struct store store = { 0 };

        *ret_models = (struct model_facts){ .read = reading.piece != NULL };
        ret_models->result = store_open(&store);
        for (unsigned i = 0; i < store.place_count; i++)
                snprintf(ret_models->places[ret_models->place_count++], MACHINE_PATH, "%.511s",
                         store.places[i]);
        if (!ret_models->result)
                ret_models->result = store_list(&store, &list);
        count_models(&list, ret_models);
        progress_begin(&reading.progress, "reading models", ret_models->pulled_bytes);
        for (size_t i = 0; i < list.count; i++)
                if (list.models[i].pulled)
                        look_at_model(&reading, &list.models[i], ret_models);
        progress_clear(&reading.progress);
        store_list_deinit(&list);
        free(reading.piece);
}
