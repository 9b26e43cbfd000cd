#include "kernels/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

int library_open(const char *path, const struct kernels_conf *conf, struct kernels **ret_kernels,
                 char *errtext, size_t errtext_bytes)
{
        library_open_fn *open;
        /* With a path without a slash, dlopen() would search other folders. */
        char real[PATH_MAX];
        void *library;

        if (!path || !realpath(path, real)) {
                snprintf(
                        errtext, errtext_bytes,
                        "cannot find the backend library%s%s; name its file with --backend-library",
                        path ? " " : "", path ? path : "");
                return -ENOENT;
        }
        library = dlopen(real, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library) {
                snprintf(errtext, errtext_bytes, "%s", dlerror());
                return -ELIBBAD;
        }
        *(void **)&open = dlsym(library, LIBRARY_OPEN);
        if (!open) {
                snprintf(errtext, errtext_bytes, "%s is not a backend library of samovar", path);
                return -ELIBBAD;
        }
        return open(LIBRARY_VERSION, conf, ret_kernels, errtext, errtext_bytes);
}
