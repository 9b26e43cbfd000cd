/*
 * Hostile JSON.
 *
 * An accepted text must give a tree: every node is reached once and in order, there are as many
 * children as are counted, strings are valid UTF-8 with a NUL behind them, no key comes twice.
 * Room for exactly its number of values is enough, and room for one less is not.  Python's JSON has
 * more texts, and the same tree for the others.
 */
#include <assert.h>
#include <string.h>

#include "json/reader.h"
#include "json/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t bytes)
{
        assert(text && !text[bytes] && utf8_valid(text, bytes) == bytes);
}

static void check_value(const struct json_document *json, uint32_t node)
{
        enum json_kind kind = json_kind(json, node);
        size_t bytes = 0;
        uint64_t whole;
        double real;
        bool yes;

        if (json_string(json, node, &bytes))
                check_text(json_string(json, node, &bytes), bytes);
        assert((kind == JSON_STRING) == !!json_string(json, node, &bytes));
        assert((kind == JSON_BOOL) == json_bool(json, node, &yes));
        if (json_whole(json, node, &whole))
                assert(kind == JSON_NUMBER && json_real(json, node, &real) && real >= 0);
        if (json_real(json, node, &real))
                assert(kind == JSON_NUMBER);
}

/* Asks of every node which nodes are its children; a node's parent lies before it. */
static uint32_t check_tree(const struct json_document *json)
{
        uint32_t nodes = 1;

        assert(!json_key(json, 0, NULL) && json_next(json, 0) == JSON_NONE);
        for (uint32_t node = 0; node < nodes; node++) {
                enum json_kind kind = json_kind(json, node);
                uint32_t n = 0, before = node;

                check_value(json, node);
                for (uint32_t c = json_first(json, node); c != JSON_NONE; c = json_next(json, c)) {
                        size_t bytes = 0;
                        const char *key = json_key(json, c, &bytes);

                        assert(c > before && !!key == (kind == JSON_OBJECT));
                        if (key)
                                check_text(key, bytes);
                        if (key && n < 64 && strlen(key) == bytes)
                                assert(json_member(json, node, key) == c);
                        before = c;
                        n++;
                }
                assert(n == json_count(json, node));
                nodes += n;
        }
        return nodes;
}

/* The number of values; 0: Python does not read it. */
static uint32_t check_python(const char *text, size_t size)
{
        struct json_document *json = NULL;
        uint32_t nodes;
        char why[256];

        why[0] = 0;
        if (json_parse_python(text, size, UINT32_MAX, &json, why, sizeof(why))) {
                assert(why[0] && !json);
                return 0;
        }
        nodes = check_tree(json);
        json_free(json);
        return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *text = (const char *)data;
        struct json_document *json = NULL;
        uint32_t nodes, in_python = check_python(text, size);
        char why[256];

        why[0] = 0;
        if (json_parse(text, size, UINT32_MAX, &json, why, sizeof(why))) {
                assert(why[0] && !json);
                return 0;
        }
        nodes = check_tree(json);
        assert(nodes == in_python);
        json = json_free(json);
        assert(!json_parse(text, size, nodes, &json, why, sizeof(why)));
        json = json_free(json);
        assert(json_parse(text, size, nodes - 1, &json, why, sizeof(why)) && !json);
        return 0;
}
