#include "cli/pull/preview.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/pull/get.h"
#include "store/gguf-head.h"
#include "store/gguf-join.h"

#define FIRST_BYTES  (1u << 20)
#define BESIDE_BYTES (64u << 20) /* a file of a tokenizer */
#define RETRIES      2u

struct looking {
        struct web *web;
        const struct hub *hub;
        char folder[256];
};

/* Appends the bytes from what there is up to `until`: 0 or a negative errno. */
static int get_until(const struct looking *looking, const struct fetch_file *file, uint64_t until,
                     struct bytes *bytes)
{
        struct get_answer answer;
        char why[512];
        int r;

        if (file->size_known && until > file->bytes)
                until = file->bytes;
        if (until <= bytes->count)
                return -ENODATA;
        r = get(looking->web,
                &(struct get_ask){ .url = file->url,
                                   .authorization =
                                           looking->hub ? looking->hub->authorization : NULL,
                                   .from = bytes->count,
                                   .to = until - 1,
                                   .max = (size_t)until - bytes->count,
                                   .retries = RETRIES },
                &answer, why, sizeof(why));
        if (r)
                return r;
        if (answer.status == 206 || (answer.status == 200 && !bytes->count))
                r = bytes_add(bytes, answer.body.at, answer.body.count);
        else
                r = -ENOENT;
        get_answer_deinit(&answer);
        return r;
}

/* Fetches until the head is whole. */
static int get_gguf_head(const struct looking *looking, const struct fetch_file *file,
                         struct bytes *bytes)
{
        uint64_t until = FIRST_BYTES;
        struct gguf_head head;
        int r;

        do {
                r = get_until(looking, file, until, bytes);
                until *= 2;
                if (!r)
                        r = gguf_head_read(bytes->at, bytes->count, &head);
        } while (r == -EAGAIN && until <= GGUF_HEAD_MAX);
        return r;
}

/* Eight bytes with a length, then as many bytes of JSON. */
static int get_safetensors_head(const struct looking *looking, const struct fetch_file *file,
                                struct bytes *bytes)
{
        uint64_t length;
        int r = get_until(looking, file, FIRST_BYTES, bytes);

        if (r)
                return r;
        if (bytes->count < 8)
                return -EINVAL;
        memcpy(&length, bytes->at, 8);
        if (length > GGUF_HEAD_MAX)
                return -EINVAL;
        return 8 + length <= bytes->count ? 0 : get_until(looking, file, 8 + length, bytes);
}

static int write_sparse(const struct looking *looking, const struct fetch_file *file,
                        const struct bytes *bytes)
{
        char path[512];
        int fd, r = 0;

        snprintf(path, sizeof(path), "%s/%s", looking->folder, file->name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if (write(fd, bytes->at, bytes->count) != (ssize_t)bytes->count ||
            (file->size_known && ftruncate(fd, (off_t)file->bytes) < 0))
                r = -EIO;
        close(fd);
        return r;
}

static bool ends_in(const char *text, const char *suffix)
{
        size_t bytes = strlen(text), end = strlen(suffix);

        return bytes > end && !strcmp(text + bytes - end, suffix);
}

static int look_at(const struct looking *looking, const struct fetch_file *file)
{
        struct bytes bytes = { 0 };
        int r;

        if (ends_in(file->name, ".gguf"))
                r = get_gguf_head(looking, file, &bytes);
        else if (ends_in(file->name, ".safetensors"))
                r = get_safetensors_head(looking, file, &bytes);
        else
                r = get_until(looking, file, file->size_known ? file->bytes : BESIDE_BYTES, &bytes);
        if (!r)
                r = write_sparse(looking, file, &bytes);
        bytes_deinit(&bytes);
        return r;
}

static int join_heads(const struct looking *looking, const struct choice *choice,
                      const struct fetch_file *files, const char *to)
{
        char **pieces = calloc(choice->count, sizeof(*pieces)), why[256], sha256[SHA256_HEX_BYTES];
        uint64_t bytes;
        int r = pieces ? 0 : -ENOMEM;

        for (size_t i = 0; i < choice->count && !r; i++)
                if (asprintf(&pieces[i], "%s/%s", looking->folder, files[i].name) < 0)
                        r = -ENOMEM;
        if (!r)
                r = gguf_join(&(struct gguf_joining){ .pieces = (const char *const *)pieces,
                                                      .piece_count = choice->count,
                                                      .to = to,
                                                      .head_only = true },
                              &bytes, sha256, why, sizeof(why));
        for (size_t i = 0; pieces && i < choice->count; i++)
                free(pieces[i]);
        free(pieces);
        return r;
}

int preview(struct web *web, const struct hub *hub, const struct choice *choice,
            const struct fetch_file *files, struct verdict *ret_verdict)
{
        struct looking looking = { .web = web, .hub = hub };
        const char *temporary = getenv("TMPDIR");
        char model[768];
        int r = 0;

        *ret_verdict = (struct verdict){ 0 };
        if ((size_t)snprintf(looking.folder, sizeof(looking.folder), "%s/samovar-pull-XXXXXX",
                             temporary && *temporary ? temporary : "/tmp") >=
                    sizeof(looking.folder) ||
            !mkdtemp(looking.folder))
                return 0;
        for (size_t i = 0; i < choice->count && !r; i++)
                r = look_at(&looking, &files[i]);
        snprintf(model, sizeof(model), "%s/%s", looking.folder, choice->model);
        if (!r && choice->form == CHOICE_PIECES)
                r = join_heads(&looking, choice, files, model);
        if (!r)
                verdict_ask(choice->form == CHOICE_FOLDER ? looking.folder : model, ret_verdict);
        store_remove(looking.folder);
        return r == -ECANCELED ? r : 0;
}
