#include "kernels/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

int library_open(const char *path, const struct kernels_conf *conf, struct kernels **ret_kernels,
                 char *why, size_t why_bytes)
{
        library_open_fn *open;
        /* With a path without a slash, dlopen() would search other folders. */
        char real[PATH_MAX];
        void *library;

        if (!path || !realpath(path, real)) {
                snprintf(why, why_bytes, "there is no library for it%s%s", path ? ": " : "",
                         path ? path : "");
                return -ENOENT;
        }
        library = dlopen(real, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library) {
                snprintf(why, why_bytes, "%s", dlerror());
                return -ELIBBAD;
        }
        *(void **)&open = dlsym(library, LIBRARY_OPEN);
        if (!open) {
                snprintf(why, why_bytes, "%s: not a backend", path);
                return -ELIBBAD;
        }
        return open(LIBRARY_VERSION, conf, ret_kernels, why, why_bytes);
}
