#include "json/document.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct json_document *json_new(uint32_t node_count, uint32_t string_bytes)
{
        struct json_document *json = calloc(1, sizeof(*json));

        if (!json)
                return NULL;
        json->nodes = calloc(node_count, sizeof(*json->nodes));
        json->strings = malloc((size_t)string_bytes + 1);
        json->node_count = node_count;
        json->string_bytes = string_bytes;
        return json->nodes && json->strings ? json : json_free(json);
}

struct json_document *json_free(struct json_document *json)
{
        if (!json)
                return NULL;
        free(json->strings);
        free(json->nodes);
        free(json);
        return NULL;
}

static const char *text_at(const struct json_document *json, uint32_t start, size_t *ret_bytes)
{
        uint32_t bytes;

        memcpy(&bytes, json->strings + start, sizeof(bytes));
        *ret_bytes = bytes;
        return json->strings + start + sizeof(bytes);
}

enum json_kind json_kind(const struct json_document *json, uint32_t node)
{
        if (node == JSON_NONE)
                return JSON_ABSENT;
        assert(node < json->node_count);
        return (enum json_kind)json->nodes[node].kind;
}

uint32_t json_count(const struct json_document *json, uint32_t node)
{
        enum json_kind kind = json_kind(json, node);

        return kind == JSON_ARRAY || kind == JSON_OBJECT ? json->nodes[node].value : 0;
}

uint32_t json_first(const struct json_document *json, uint32_t node)
{
        return json_count(json, node) ? node + 1 : JSON_NONE;
}

uint32_t json_next(const struct json_document *json, uint32_t node)
{
        return json_kind(json, node) == JSON_ABSENT ? JSON_NONE : json->nodes[node].next;
}

const char *json_key(const struct json_document *json, uint32_t node, size_t *ret_bytes)
{
        size_t bytes;

        if (json_kind(json, node) == JSON_ABSENT || json->nodes[node].key == JSON_NONE)
                return NULL;
        return text_at(json, json->nodes[node].key, ret_bytes ? ret_bytes : &bytes);
}

uint32_t json_member(const struct json_document *json, uint32_t object, const char *key)
{
        size_t wanted = strlen(key), bytes = 0;
        const char *found;

        if (json_kind(json, object) != JSON_OBJECT)
                return JSON_NONE;
        for (uint32_t c = json_first(json, object); c != JSON_NONE; c = json_next(json, c)) {
                found = json_key(json, c, &bytes);
                if (bytes == wanted && !memcmp(found, key, bytes))
                        return c;
        }
        return JSON_NONE;
}

const char *json_string(const struct json_document *json, uint32_t node, size_t *ret_bytes)
{
        const char *text;
        size_t bytes;

        if (json_kind(json, node) != JSON_STRING)
                return NULL;
        text = text_at(json, json->nodes[node].value, &bytes);
        if (ret_bytes)
                *ret_bytes = bytes;
        return ret_bytes || strlen(text) == bytes ? text : NULL;
}

/* The daemon sets no locale, so strtod() parses exactly JSON's numbers. */
bool json_real(const struct json_document *json, uint32_t node, double *ret_real)
{
        double real;
        size_t bytes;

        if (json_kind(json, node) != JSON_NUMBER)
                return false;
        real = strtod(text_at(json, json->nodes[node].value, &bytes), NULL);
        if (!isfinite(real))
                return false;
        *ret_real = real;
        return true;
}

bool json_whole(const struct json_document *json, uint32_t node, uint64_t *ret_whole)
{
        uint64_t whole = 0;
        const char *text;
        size_t bytes;

        if (json_kind(json, node) != JSON_NUMBER)
                return false;
        text = text_at(json, json->nodes[node].value, &bytes);
        for (size_t i = 0; i < bytes; i++)
                if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(whole, 10, &whole) ||
                    __builtin_add_overflow(whole, (uint64_t)(text[i] - '0'), &whole))
                        return false;
        *ret_whole = whole;
        return true;
}

bool json_bool(const struct json_document *json, uint32_t node, bool *ret_bool)
{
        if (json_kind(json, node) != JSON_BOOL)
                return false;
        *ret_bool = json->nodes[node].value;
        return true;
}

const char *json_number(const struct json_document *json, uint32_t node)
{
        size_t bytes;

        return json_kind(json, node) == JSON_NUMBER ? text_at(json, json->nodes[node].value, &bytes)
                                                    : NULL;
}
