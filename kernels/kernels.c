#include "kernels/kernels.h"

#include <errno.h>
#include <string.h>

#include "kernels/backends.h"

static const struct {
        const char *name;
        int (*open)(const struct kernels_conf *conf, struct kernels **ret_kernels);
} backends[] = {
        { "ref", ref_open },
        { "cpu", cpu_open },
};

int kernels_open(const char *name, const struct kernels_conf *conf, struct kernels **ret_kernels)
{
        for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
                if (!strcmp(name, backends[i].name))
                        return backends[i].open(conf, ret_kernels);
        }
        return -ENOENT;
}
