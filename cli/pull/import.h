/* Takes a model that lies on this machine: by hard links where that works, else by copies. */
#ifndef CLI_PULL_IMPORT_H
#define CLI_PULL_IMPORT_H

#include "cli/pull/choose.h"
#include "cli/pull/fetch.h"

/*
 * Lists the folder of a model.  `path` is a folder; a GGUF file, which is also the wish; or a file
 * of safetensors.  *ret_folder must be freed.  0, or a negative errno and `why`.
 */
int import_list(const char *path, char **ret_folder, char ret_want[256],
                struct listing *ret_listing, char *why, size_t why_bytes);

/* Links or copies the files into the folder: 0, -ECANCELED, or a negative errno and `why`. */
int import(const struct fetch_ask *ask, char *why, size_t why_bytes);

#endif
