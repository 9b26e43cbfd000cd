/*
 * Backends that are not built in, but a library beside the daemon: one build serves machines that
 * have what it needs (a GPU's driver, or not).  For kernels_open() alone.
 *
 * The library has one name for the world, LIBRARY_OPEN, and keeps the rest to itself.  It is never
 * unloaded: its threads may still run when a table was closed.
 */
#ifndef KERNELS_LIBRARY_H
#define KERNELS_LIBRARY_H

#include "kernels/kernels.h"

#define LIBRARY_OPEN    "samovar_backend_open"
#define LIBRARY_VERSION 5u /* of kernels.h, as both know it */

typedef int library_open_fn(uint32_t version, const struct kernels_conf *conf,
                            struct kernels **ret_kernels, char *why, size_t why_bytes);

/* -ENOENT: there is no such file; -ELIBBAD: it is not ours; or what it says. */
int library_open(const char *path, const struct kernels_conf *conf, struct kernels **ret_kernels,
                 char *why, size_t why_bytes);

#endif
