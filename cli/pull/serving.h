/* Whether a daemon of this user serves a model of the folder. */
#ifndef CLI_PULL_SERVING_H
#define CLI_PULL_SERVING_H

#include <stdbool.h>
#include <stddef.h>

#include "store/store.h"

/*
 * Looks for a samovard of this user, whatever its socket, that was started with the model by its
 * name or path.  Writes "samovard (process 77)".
 */
bool serving_model(const struct store_model *model, char *ret_who, size_t bytes);

#endif
