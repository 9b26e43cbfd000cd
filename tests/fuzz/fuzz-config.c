/* A hostile config.json is refused with a sentence, or gives traits that keep to their bounds. */
#include <string.h>

#include "daemon/files/config-traits.h"
#include "tests/fuzz/check-traits.h"

#define NODES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct traits traits;
        struct json_document *json;
        char why[256] = "";

        if (json_parse_python((const char *)data, size, NODES_MAX, &json, why, sizeof(why)))
                return 0;
        if (!config_traits(json, &traits, why, sizeof(why)))
                check_traits(&traits);
        else
                assert(why[0] && strlen(why) < sizeof(why));
        json_free(json);
        return 0;
}
