#include "bridge/openai/restore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errtext.h"
#include "base/log.h"
#include "bridge/core/state-folder.h"
#include "bridge/openai/batch-store.h"
#include "bridge/openai/file-store.h"

#define NAMES_MAX 400000u

enum kind {
        FILE_RECORD,
        BATCH_RECORD,
        FILE_DATA,
        BATCH_DATA,
        ASIDE,
        TEMPORARY,
        FOREIGN,
};

/* The names of the folder. */
struct names {
        char **at;
        size_t count, size;
};

static bool ends_with(const char *name, const char *ending)
{
        size_t bytes = strlen(name), end = strlen(ending);

        return bytes >= end && !strcmp(name + bytes - end, ending);
}

static struct text stem(const char *name)
{
        return (struct text){ name, strcspn(name, ".") };
}

static enum kind kind_of(const char *name)
{
        const char *ending = name + strcspn(name, ".");

        if (ends_with(name, STATE_ASIDE))
                return ASIDE;
        if (ends_with(name, STATE_TEMPORARY))
                return TEMPORARY;
        if (record_id_is(stem(name), FILE_PREFIX))
                return !strcmp(ending, ".json")   ? FILE_RECORD
                       : !strcmp(ending, ".data") ? FILE_DATA
                                                  : FOREIGN;
        if (!record_id_is(stem(name), BATCH_PREFIX))
                return FOREIGN;
        if (!strcmp(ending, BATCH_RECORD_NAME))
                return BATCH_RECORD;
        return !strcmp(ending, BATCH_INPUT_NAME) || !strcmp(ending, BATCH_OUTPUT_NAME) ||
                               !strcmp(ending, BATCH_ERRORS_NAME)
                       ? BATCH_DATA
                       : FOREIGN;
}

/* ---- the names ---- */

static int add_name(void *arg, const char *name)
{
        struct names *names = arg;

        if (names->count == NAMES_MAX)
                return -EFBIG;
        if (names->count == names->size) {
                size_t size = names->size ? 2 * names->size : 256;
                char **at = realloc(names->at, size * sizeof(*at));

                if (!at)
                        return -ENOMEM;
                names->at = at;
                names->size = size;
        }
        names->at[names->count] = strdup(name);
        return names->at[names->count++] ? 0 : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
        const char *const *left = a, *const *right = b;

        return strcmp(*left, *right);
}

static void free_names(struct names *names)
{
        for (size_t i = 0; i < names->count; i++)
                free(names->at[i]);
        free(names->at);
}

/* ---- what they stand for ---- */

static int take_records(struct bridge *bridge, const struct names *names)
{
        int r = 0;

        for (size_t i = 0; !r && i < names->count; i++) {
                enum kind kind = kind_of(names->at[i]);

                if (kind == FILE_RECORD)
                        r = file_store_restore(bridge->files, names->at[i]);
                else if (kind == BATCH_RECORD)
                        r = batch_store_restore(bridge->batches, names->at[i]);
        }
        return r;
}

/* A record that was set aside took its data with it, so it does no harm to remove that. */
static bool has_record(const struct bridge *bridge, const struct names *names, const char *name,
                       enum kind kind)
{
        char record[STATE_NAME_BYTES], *key = record;

        if (kind == BATCH_DATA)
                return batch_store_needs(bridge->batches, stem(name));
        snprintf(record, sizeof(record), "%.*s.json", (int)stem(name).bytes, name);
        return bsearch(&key, names->at, names->count, sizeof(*names->at), by_name);
}

/* A disk of its own has a folder of this name. */
static bool is_of_the_disk(const char *name)
{
        return !strcmp(name, "lost+found");
}

/* Removes or sets aside the rest. */
static void clean(const struct bridge *bridge, const struct names *names)
{
        for (size_t i = 0; i < names->count; i++) {
                const char *name = names->at[i];
                enum kind kind = kind_of(name);

                if (kind == TEMPORARY || ((kind == FILE_DATA || kind == BATCH_DATA) &&
                                          !has_record(bridge, names, name, kind)))
                        state_folder_remove(bridge->state, name);
                else if (kind == FOREIGN && !is_of_the_disk(name))
                        state_folder_set_aside(bridge->state, name,
                                               "it is no file of samovar-http");
        }
}

int openai_restore(struct bridge *bridge, char *why, size_t why_bytes)
{
        struct names names = { 0 };
        int r = state_folder_list(bridge->state, add_name, &names);

        if (!r) {
                qsort(names.at, names.count, sizeof(*names.at), by_name);
                r = take_records(bridge, &names);
        }
        if (!r)
                clean(bridge, &names);
        if (!r)
                r = file_store_restored(bridge->files);
        if (!r)
                r = batch_store_restored(bridge->batches);
        free_names(&names);
        if (r == -EFBIG)
                return errtext_set(why, why_bytes, r,
                                   "the state folder has more than %u files; remove those that "
                                   "end with " STATE_ASIDE,
                                   NAMES_MAX);
        return r ? errtext_set(why, why_bytes, r, "the state folder cannot be read: %s",
                               strerror(-r))
                 : 0;
}
