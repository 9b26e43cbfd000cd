#include "kernels/kernels.h"

#include <errno.h>
#include <string.h>

#include "kernels/backends.h"
#include "kernels/library.h"

static _Thread_local char errtext[256];

static const struct {
        const char *name;
        int (*open)(const struct kernels_conf *conf, struct kernels **ret_kernels);
} backends[] = {
        { "ref", ref_open },
        { "cpu", cpu_open },
};

int kernels_open(const char *name, const struct kernels_conf *conf, struct kernels **ret_kernels)
{
        errtext[0] = 0;
        for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
                if (!strcmp(name, backends[i].name))
                        return backends[i].open(conf, ret_kernels);
        }
        if (!strcmp(name, "cuda"))
                return library_open(conf->library, conf, ret_kernels, errtext, sizeof(errtext));
        return -ENOENT;
}

const char *kernels_errtext(void)
{
        return errtext;
}
