#include "daemon/shipped.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/error.h"
#include "daemon/sys.h"
#include "daemon/why.h"

#define FILE_NAME  SHIPPED_NAME "-q8_0.gguf"
#define PATH_BYTES 4096u

/* `folder`, the part of a path before its last slash; false: it has none. */
static bool cut_last(char *path)
{
        char *slash = strrchr(path, '/');

        if (!slash)
                return false;
        *slash = '\0';
        return true;
}

/* Of a build tree: this program is daemon/samovard in it.  False: nobody says where we are. */
static bool built_folder(char ret_folder[PATH_BYTES])
{
        char path[PATH_BYTES - 16];

        return !sys_program(path, sizeof(path)) && cut_last(path) && cut_last(path) &&
               snprintf(ret_folder, PATH_BYTES, "%s/models", path) > 0;
}

int shipped_model(char *ret_path, size_t bytes, char *why, size_t why_bytes)
{
        const char *named = getenv("SAMOVAR_MODELS");
        const char *places[2] = { named, NULL };
        char built[PATH_BYTES];
        unsigned count = 0;

        if (named && *named) {
                count = 1;
        } else {
                if (built_folder(built))
                        places[count++] = built;
                places[count++] = SAMOVAR_MODELS;
        }
        for (unsigned i = 0; i < count; i++) {
                int n = snprintf(ret_path, bytes, "%s/%s", places[i], FILE_NAME);
                uint64_t identity[2];

                if (n < 0 || (size_t)n >= bytes)
                        return error_raise(why_say(why, why_bytes, -ENAMETOOLONG,
                                                   "the path of %s is too long", FILE_NAME));
                if (!sys_identity(ret_path, identity))
                        return 0;
        }
        return error_raise(why_say(
                why, why_bytes, -ENOENT,
                "there is no model to serve: %s, which comes with samovar, is not "
                "in %.200s%s%.200s; give --model PATH",
                FILE_NAME, places[0], count > 1 ? ", nor in " : "", count > 1 ? places[1] : ""));
}
