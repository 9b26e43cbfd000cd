/*
 * Backends that are not built in, but in a library beside the daemon. So one build serves
 * machines with the software that the library needs (a GPU's driver) and machines without it.
 * Only kernels_open() calls this.
 *
 * The library exports one name, LIBRARY_OPEN, and keeps the rest private. It is never unloaded:
 * its threads may still run after a table is closed.
 */
#ifndef KERNELS_LIBRARY_H
#define KERNELS_LIBRARY_H

#include "kernels/kernels.h"

#define LIBRARY_OPEN "samovar_backend_open"
/* The version of kernels.h that the daemon and the library were built with. */
#define LIBRARY_VERSION 16u

typedef int library_open_fn(uint32_t version, const struct kernels_conf *conf,
                            struct kernels **ret_kernels, char *errtext, size_t errtext_bytes);

/*
 * -ENOENT: there is no such file; -ELIBBAD: it is not a backend library of ours; otherwise, the
 * result of the library's own open function.
 */
int library_open(const char *path, const struct kernels_conf *conf, struct kernels **ret_kernels,
                 char *errtext, size_t errtext_bytes);

#endif
