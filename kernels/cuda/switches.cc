#include "kernels/cuda/switches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "SMV_CUDA_WITHOUT"

static const char *const names[PARTS] = { "early", "graph", "blas" };

static const char *setting(void)
{
        const char *value = getenv(VARIABLE);

        return value ? value : "";
}

static bool is_name(const char *name, const char *word, size_t bytes)
{
        return strlen(name) == bytes && !memcmp(name, word, bytes);
}

bool is_left_out(part part)
{
        for (const char *at = setting(); *at; at += *at == ',') {
                size_t bytes = strcspn(at, ",");

                if (is_name(names[part], at, bytes))
                        return true;
                at += bytes;
        }
        return false;
}

bool switches_are_known(char *ret_why, size_t why_bytes)
{
        for (const char *at = setting(); *at; at += *at == ',') {
                size_t bytes = strcspn(at, ",");
                bool known = !bytes;

                for (const char *name : names)
                        known = known || is_name(name, at, bytes);
                if (!known) {
                        snprintf(ret_why, why_bytes,
                                 VARIABLE "=%s: '%.*s' is not a part; parts are early, graph, blas",
                                 setting(), (int)bytes, at);
                        return false;
                }
                at += bytes;
        }
        return true;
}
