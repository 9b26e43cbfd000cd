#include "kernels/cuda/features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "SMV_CUDA_WITHOUT"

static const char *const names[FEATURES] = { "early", "graph", "blas" };

static const char *setting(void)
{
        const char *value = getenv(VARIABLE);

        return value ? value : "";
}

static bool is_name(const char *name, const char *word, size_t bytes)
{
        return strlen(name) == bytes && !memcmp(name, word, bytes);
}

bool feature_is_disabled(feature feature)
{
        for (const char *at = setting(); *at; at += *at == ',') {
                size_t bytes = strcspn(at, ",");

                if (is_name(names[feature], at, bytes))
                        return true;
                at += bytes;
        }
        return false;
}

bool features_are_known(char *ret_errtext, size_t errtext_bytes)
{
        for (const char *at = setting(); *at; at += *at == ',') {
                size_t bytes = strcspn(at, ",");
                bool known = !bytes;

                for (const char *name : names)
                        known = known || is_name(name, at, bytes);
                if (!known) {
                        snprintf(
                                ret_errtext, errtext_bytes,
                                VARIABLE
                                "=%s: '%.*s' is not a feature; the features are early, graph, blas",
                                setting(), (int)bytes, at);
                        return false;
                }
                at += bytes;
        }
        return true;
}
