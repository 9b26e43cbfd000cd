#include "daemon/start/shipped.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"

#define PATH_BYTES 4096u

struct shipped {
        const char *file;
        const char *variable; /* environment variable with the folder */
        const char *built;    /* its folder in a build tree */
        const char *installed;
        bool only;                  /* if the variable is set, no other folder is searched */
        const char *what, *instead; /* texts for the error: what is missing, and what to do */
};

static const struct shipped model = {
        .file = SHIPPED_NAME "-q8_0.gguf",
        .variable = "SAMOVAR_MODELS",
        .built = "models",
        .installed = SAMOVAR_MODELS,
        .what = "no model to serve",
        .instead = "name another with the setting model (--model PATH)",
};

static const struct shipped draft = {
        .file = SHIPPED_DRAFT_NAME "-q8_0.gguf",
        .variable = "SAMOVAR_MODELS",
        .built = "models",
        .installed = SAMOVAR_MODELS,
        .what = "no draft model",
        .instead = "name another with the setting draft_model, or leave it out",
};

static const struct shipped library = {
        .file = "libsamovar-cuda.so",
        .variable = "SAMOVAR_LIBRARIES",
        .built = "kernels",
        .installed = SAMOVAR_LIBRARIES,
        .only = true,
        .what = "no backend for a GPU",
        .instead = "it is built where CUDA's compiler is; backend = cpu does without",
};

/* Cuts `path` at its last slash; false: it has none. */
static bool cut_last(char *path)
{
        char *slash = strrchr(path, '/');

        if (!slash)
                return false;
        *slash = '\0';
        return true;
}

/*
 * The folder in a build tree, where this program is daemon/samovard.  False: the program's path is
 * unknown.
 */
static bool built_folder(const struct shipped *shipped, char ret_folder[PATH_BYTES])
{
        char path[PATH_BYTES - 16];

        return !sys_program(path, sizeof(path)) && cut_last(path) && cut_last(path) &&
               snprintf(ret_folder, PATH_BYTES, "%s/%s", path, shipped->built) > 0;
}

/* The folders to search, in order. */
static unsigned list_places(const struct shipped *shipped, char built[PATH_BYTES],
                            const char *places[3])
{
        const char *named = getenv(shipped->variable);
        unsigned count = 0;

        if (named && *named) {
                places[count++] = named;
                if (shipped->only)
                        return count;
        }
        if (built_folder(shipped, built))
                places[count++] = built;
        places[count++] = shipped->installed;
        return count;
}

static int refuse_missing(const struct shipped *shipped, const char *const *places, unsigned count,
                          char *why, size_t why_bytes)
{
        char searched[768] = "";

        for (unsigned i = 0; i < count; i++)
                snprintf(searched + strlen(searched), sizeof(searched) - strlen(searched),
                         "%s%.200s", i ? ", nor in " : "", places[i]);
        return error_raise(errtext_set(why, why_bytes, -ENOENT,
                                       "there is %s: %s, which comes with samovar, is not in %s; "
                                       "%s",
                                       shipped->what, shipped->file, searched, shipped->instead));
}

static int find_shipped(const struct shipped *shipped, char *ret_path, size_t bytes, char *why,
                        size_t why_bytes)
{
        char built[PATH_BYTES];
        const char *places[3];
        unsigned count = list_places(shipped, built, places);

        for (unsigned i = 0; i < count; i++) {
                int n = snprintf(ret_path, bytes, "%s/%s", places[i], shipped->file);
                uint64_t identity[2];

                if (n < 0 || (size_t)n >= bytes)
                        return error_raise(errtext_set(why, why_bytes, -ENAMETOOLONG,
                                                       "the path of %s is too long",
                                                       shipped->file));
                if (!sys_identity(ret_path, identity))
                        return 0;
        }
        return refuse_missing(shipped, places, count, why, why_bytes);
}

int shipped_model(char *ret_path, size_t bytes, char *why, size_t why_bytes)
{
        return find_shipped(&model, ret_path, bytes, why, why_bytes);
}

int shipped_draft(char *ret_path, size_t bytes, char *why, size_t why_bytes)
{
        return find_shipped(&draft, ret_path, bytes, why, why_bytes);
}

int shipped_library(char *ret_path, size_t bytes, char *why, size_t why_bytes)
{
        return find_shipped(&library, ret_path, bytes, why, why_bytes);
}
