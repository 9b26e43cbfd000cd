/*
 * The folder of models: where `samovar pull` puts them, and where names are looked up.
 *
 * $SAMOVAR_MODELS is the only folder if it is set.  Else new models go to
 * $XDG_DATA_HOME/samovar/models, or ~/.local/share/samovar/models; those of root go to
 * /var/lib/samovar/models, where the service may read them.  Every user finds models in their own
 * folder, then in /var/lib/samovar/models.
 *
 * A model is
 *      NAME/ with a manifest        pulled (store/manifest.h)
 *      NAME/ with config.json       a folder of safetensors
 *      NAME/ with one *.gguf
 *      NAME.gguf
 * Other things are not seen, and neither are hidden ones; .pull has what is being pulled
 * (store/incoming.h).
 *
 * samovard, the command and its completion use it; only the command writes.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/manifest.h"

#define STORE_SYSTEM     "/var/lib/samovar/models"
#define STORE_PATH_BYTES 4096u
#define STORE_PLACES_MAX 2u
#define STORE_NAME_BYTES 64u /* as SMV_NAME_BYTES_MAX */

struct store {
        char places[STORE_PLACES_MAX][STORE_PATH_BYTES]; /* the first is for new models */
        unsigned place_count;
};

/* At least one place, that need not exist; -ENOENT: there is no home. */
int store_open(struct store *ret_store);

/* Whether a model in the folder may have this name: letters, digits and ._+- */
bool store_may_name(const char *name, size_t bytes);

struct store_model {
        char name[STORE_NAME_BYTES + 1];
        char entry[STORE_PATH_BYTES]; /* the folder or file that is the model */
        char path[STORE_PATH_BYTES];  /* what samovard opens */
        unsigned place;
        uint64_t bytes;
        int64_t modified_s;
        bool pulled;
        struct manifest manifest; /* if it was pulled */
};
void store_model_deinit(struct store_model *model);

/*
 * Finds a model of this name, in any case of letters if that is clear.  0, -ENOENT, or another
 * negative errno.
 */
int store_find(const struct store *store, const char *name, struct store_model *ret_model);

/*
 * Writes what samovard opens for a model of this name, in the folders of this user.  0, -ENOENT, or
 * another negative errno.
 */
int store_path(const char *name, char *ret_path, size_t bytes);

struct store_list {
        /* In the order of their names; of two equal names, store_find() finds the first. */
        struct store_model *models;
        size_t count;
};
int store_list(const struct store *store, struct store_list *ret_list);
void store_list_deinit(struct store_list *list);

/* Removes a file, or a folder with all that is in it: 0 or a negative errno. */
int store_remove(const char *path);

#endif
