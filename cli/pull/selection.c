#include "cli/pull/selection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pull/get.h"
#include "cli/pull/import.h"
#include "store/gguf-join.h"

/* The file of a URL, and the other pieces if it is the first one. */
static int list_url(struct selection *selection, char *want, size_t want_bytes, char *why,
                    size_t why_bytes)
{
        char path[1024], piece[1100];
        const char *name;
        unsigned number, count;
        size_t stem;
        int r = 0;

        snprintf(path, sizeof(path), "%.*s", (int)strcspn(selection->source.place, "?#"),
                 selection->source.place);
        name = file_name(path);
        if (!is_gguf_model(name) || strlen(name) > 200) {
                source_public_url(selection->source.place, path, sizeof(path));
                snprintf(why, why_bytes,
                         "%s is no URL of a GGUF file (FILE.gguf); a model of several files is "
                         "pulled from a repository of Hugging Face, or from a folder of this "
                         "machine",
                         path);
                return -EINVAL;
        }
        snprintf(want, want_bytes, "%s", name);
        if (!is_gguf_piece(name, &number, &count, &stem))
                return listing_add(&selection->listing, name, 0, "");
        if (count > GGUF_PIECES_MAX) {
                snprintf(why, why_bytes, "%s is one of %u pieces; at most %u can be joined", name,
                         count, GGUF_PIECES_MAX);
                return -EINVAL;
        }
        for (unsigned i = 1; i <= count && !r; i++) {
                snprintf(piece, sizeof(piece), "%.*s-%05u-of-%05u.gguf", (int)stem, name, i, count);
                r = listing_add(&selection->listing, piece, 0, "");
        }
        return r;
}

static int list_files(struct selection *selection, const struct selection_ask *ask, char *want,
                      size_t want_bytes, char *why, size_t why_bytes)
{
        struct source *source = &selection->source;
        char commit[128];
        int r;

        switch (source->kind) {
        case SOURCE_HUB:
                snprintf(want, want_bytes, "%s", source->want);
                r = hub_list(ask->web, ask->hub, source, ask->retries, commit, &selection->listing,
                             why, why_bytes);
                if (!r)
                        snprintf(selection->revision, sizeof(selection->revision), "%s", commit);
                return r;
        case SOURCE_URL:
                return list_url(selection, want, want_bytes, why, why_bytes);
        default:
                r = import_list(source->place, &selection->folder, want, &selection->listing, why,
                                why_bytes);
                if (!r)
                        snprintf(source->place, sizeof(source->place), "%s%s%s", selection->folder,
                                 *want ? "/" : "", want);
                return r;
        }
}

/* Where a file of the choice is. */
static char *place_of(const struct selection *selection, const struct selection_ask *ask,
                      const struct listed *file)
{
        const struct source *source = &selection->source;
        char url[4096];
        size_t path;

        switch (source->kind) {
        case SOURCE_HUB:
                return hub_url(ask->hub, source, selection->revision, file->path, url, sizeof(url))
                               ? strdup(url)
                               : NULL;
        case SOURCE_URL:
                /* Pieces lie beside each other, with the same query. */
                path = strcspn(source->place, "?#");
                while (path && source->place[path - 1] != '/')
                        path--;
                snprintf(url, sizeof(url), "%.*s%s%s", (int)path, source->place, file->path,
                         source->place + strcspn(source->place, "?#"));
                return strdup(url);
        default:
                snprintf(url, sizeof(url), "%s/%s", selection->folder, file->path);
                return strdup(url);
        }
}

/* A file of a URL may have a name that the disk or samovard would not like. */
static int name_files(struct selection *selection, const struct selection_ask *ask, char *why,
                      size_t why_bytes)
{
        selection->files = calloc(selection->choice.count, sizeof(*selection->files));
        selection->urls = calloc(selection->choice.count, sizeof(*selection->urls));
        selection->names = calloc(selection->choice.count, sizeof(*selection->names));
        if (!selection->files || !selection->urls || !selection->names)
                return -ENOMEM;
        for (size_t i = 0; i < selection->choice.count; i++) {
                const struct listed *file = &selection->listing.files[selection->choice.files[i]];

                if (strchr(file_name(file->path), '=')) {
                        snprintf(why, why_bytes,
                                 "%s: the name has a =, but samovard reads --model PATH=NAME: "
                                 "rename a copy of the file, and pull that",
                                 file->path);
                        return -EINVAL;
                }
                selection->names[i] = strdup(file_name(file->path));
                if (!selection->names[i])
                        return -ENOMEM;
                selection->urls[i] = place_of(selection, ask, file);
                if (!selection->urls[i]) {
                        snprintf(why, why_bytes, "%s: its address is too long", file->path);
                        return -ENAMETOOLONG;
                }
                selection->files[i] = (struct fetch_file){
                        .url = selection->urls[i],
                        .name = selection->names[i],
                        .bytes = file->bytes,
                        .size_known = selection->source.kind != SOURCE_URL,
                        .digest = ask->sha256 && selection->choice.count == 1 ? ask->sha256
                                                                              : file->digest,
                };
        }
        return 0;
}

int selection_make(struct selection *selection, const struct selection_ask *ask, char *why,
                   size_t why_bytes)
{
        const struct source *source = &selection->source;
        char want[256] = "";
        int r = list_files(selection, ask, want, sizeof(want), why, why_bytes);

        if (!r)
                r = choose(&selection->listing,
                           source->kind == SOURCE_HUB ? source->repository : source->place, want,
                           &selection->choice, why, why_bytes);
        if (!r && ask->sha256 && selection->choice.count > 1) {
                snprintf(why, why_bytes, "--sha256 is for one file, but this model has %zu",
                         selection->choice.count);
                r = -EINVAL;
        }
        if (!r)
                r = name_files(selection, ask, why, why_bytes);
        if (r == -ENOMEM)
                snprintf(why, why_bytes, "out of memory");
        source_write(source, selection->origin, sizeof(selection->origin));
        return r;
}

/*
 * Also the validators.  A server that does not tell the sizes, or that refuses now and may not
 * later, leaves them unknown.
 */
int selection_learn_sizes(struct selection *selection, const struct selection_ask *ask, char *why,
                          size_t why_bytes)
{
        struct get_answer answer;
        int r = 0;

        for (size_t i = 0; i < selection->choice.count && !r; i++) {
                struct fetch_file *file = &selection->files[i];

                r = get(ask->web,
                        &(struct get_ask){ .url = file->url,
                                           .to = 1,
                                           .retries = ask->retries,
                                           .head_only = true },
                        &answer, why, why_bytes);
                if (r)
                        break;
                file->bytes = answer.total;
                file->size_known = answer.total;
                if (answer.status / 100 == 2)
                        snprintf(file->revision, sizeof(file->revision), "%s", answer.validator);
                get_answer_deinit(&answer);
        }
        return r;
}

uint64_t selection_bytes(const struct selection *selection)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < selection->choice.count; i++) {
                if (!selection->files[i].size_known)
                        return 0;
                bytes += selection->files[i].bytes;
        }
        return bytes;
}

uint64_t selection_have(const struct selection *selection)
{
        uint64_t have = 0;

        for (size_t i = 0; i < selection->choice.count; i++)
                have += selection->files[i].have;
        return have;
}

void selection_deinit(struct selection *selection)
{
        for (size_t i = 0; i < selection->choice.count; i++) {
                free(selection->urls ? selection->urls[i] : NULL);
                free(selection->names ? selection->names[i] : NULL);
        }
        free(selection->urls);
        free(selection->names);
        free(selection->files);
        free(selection->folder);
        choice_deinit(&selection->choice);
        listing_deinit(&selection->listing);
}
