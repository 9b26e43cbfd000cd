/*
 * Any JSON Schema, and any text along it: schema | 0 | text.
 *
 * A text that the schema accepts is JSON, as the reader of JSON knows it, but for a key that comes
 * twice.
 */
#include "daemon/constraint/json-schema.h"
#include "json/reader.h"
#include "tests/fuzz/constraint-walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const char *text, size_t bytes)
{
        struct json_document *json = NULL;
        char why[256];

        if (json_parse(text, bytes, 100000, &json, why, sizeof(why)) < 0)
                assert(strstr(why, "duplicate") || strstr(why, "deeper"));
        json_free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct json_schema_options options = { JSON_SPACE_ONE, size % 2 };
        size_t split = walk_split(data, size), text = split + (split < size);
        struct grammar *grammar;
        char why[256];

        if (json_schema_compile((const char *)data, split, &options, &walk_grammar_limits, &grammar,
                                why, sizeof(why)))
                return 0;
        if (walk_along(grammar, data + text, size - text))
                check_json((const char *)data + text, size - text);
        grammar_free(grammar);
        return 0;
}
