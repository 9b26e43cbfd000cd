/*
 * The text is walked twice.  The first walk checks everything, and counts nodes and the bytes of
 * their strings.  The second writes both into memory of exactly that size.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/json-reader.h"
#include "daemon/error.h"
#include "daemon/why.h"

static const char *text_at(const struct json *json, uint32_t start, size_t *ret_bytes)
{
        uint32_t bytes;

        memcpy(&bytes, json->strings + start, sizeof(bytes));
        *ret_bytes = bytes;
        return json->strings + start + sizeof(bytes);
}

/* Compares two texts, each with its length in front; any consistent order will do. */
static int text_compare(const void *a, const void *b)
{
        const char *s = *(const char *const *)a, *t = *(const char *const *)b;
        uint32_t m, n;

        memcpy(&m, s, sizeof(m));
        memcpy(&n, t, sizeof(n));
        return m != n ? (m < n ? -1 : 1) : memcmp(s + sizeof(m), t + sizeof(n), n);
}

/* Sorts each object's keys in `keys`, so that equal keys are neighbours. */
static int check_keys(const struct json *json, const char **keys, char *why, size_t why_bytes)
{
        for (uint32_t i = 0; i < json->node_count; i++) {
                uint32_t n = 0;

                if (json->nodes[i].kind != JSON_OBJECT)
                        continue;
                for (uint32_t c = json_first(json, i); c != JSON_NONE; c = json_next(json, c))
                        keys[n++] = json->strings + json->nodes[c].key;
                qsort(keys, n, sizeof(*keys), text_compare);
                for (uint32_t k = 1; k < n; k++)
                        if (!text_compare(&keys[k - 1], &keys[k]))
                                return error_raise(why_say(why, why_bytes, -EINVAL,
                                                           "the key '%s' is there twice",
                                                           shown(keys[k] + sizeof(uint32_t)).text));
        }
        return 0;
}

static int check_objects(const struct json *json, char *why, size_t why_bytes)
{
        uint32_t most = 0;
        const char **keys;
        int r;

        for (uint32_t i = 0; i < json->node_count; i++)
                if (json->nodes[i].kind == JSON_OBJECT && json->nodes[i].value > most)
                        most = json->nodes[i].value;
        keys = calloc((size_t)most + 1, sizeof(*keys));
        if (!keys)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory for its keys"));
        r = check_keys(json, keys, why, why_bytes);
        free(keys);
        return error_pass(r);
}

static struct json *json_new(uint32_t node_count, uint32_t string_bytes)
{
        struct json *json = calloc(1, sizeof(*json));

        if (!json)
                return NULL;
        json->nodes = calloc(node_count, sizeof(*json->nodes));
        json->strings = malloc((size_t)string_bytes + 1);
        json->node_count = node_count;
        json->string_bytes = string_bytes;
        return json->nodes && json->strings ? json : json_free(json);
}

int json_parse(const char *text, size_t bytes, uint32_t nodes_max, struct json **ret_json,
               char *why, size_t why_bytes)
{
        const struct parser start = {
                .text = text,
                .bytes = bytes,
                .nodes_max = nodes_max,
                .key = JSON_NONE,
                .why = why,
                .why_bytes = why_bytes,
        };
        struct parser p = start;
        struct json *json;
        int r;

        if (bytes > JSON_BYTES_MAX)
                return error_raise(why_say(why, why_bytes, -EINVAL, "%zu bytes, at most %lu may be",
                                           bytes, JSON_BYTES_MAX));
        if ((r = json_walk(&p)))
                return error_pass(r);
        json = json_new(p.node_count, p.string_bytes);
        if (!json)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory for its values"));
        p = start;
        p.json = json;
        r = json_walk(&p);
        assert(!r && p.node_count == json->node_count && p.string_bytes == json->string_bytes);
        if ((r = check_objects(json, why, why_bytes))) {
                json_free(json);
                return error_pass(r);
        }
        *ret_json = json;
        return 0;
}

struct json *json_free(struct json *json)
{
        if (!json)
                return NULL;
        free(json->strings);
        free(json->nodes);
        free(json);
        return NULL;
}

enum json_kind json_kind(const struct json *json, uint32_t node)
{
        if (node == JSON_NONE)
                return JSON_ABSENT;
        assert(node < json->node_count);
        return (enum json_kind)json->nodes[node].kind;
}

uint32_t json_count(const struct json *json, uint32_t node)
{
        enum json_kind kind = json_kind(json, node);

        return kind == JSON_ARRAY || kind == JSON_OBJECT ? json->nodes[node].value : 0;
}

uint32_t json_first(const struct json *json, uint32_t node)
{
        return json_count(json, node) ? node + 1 : JSON_NONE;
}

uint32_t json_next(const struct json *json, uint32_t node)
{
        return json_kind(json, node) == JSON_ABSENT ? JSON_NONE : json->nodes[node].next;
}

const char *json_key(const struct json *json, uint32_t node, size_t *ret_bytes)
{
        size_t bytes;

        if (json_kind(json, node) == JSON_ABSENT || json->nodes[node].key == JSON_NONE)
                return NULL;
        return text_at(json, json->nodes[node].key, ret_bytes ? ret_bytes : &bytes);
}

uint32_t json_member(const struct json *json, uint32_t object, const char *key)
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

const char *json_string(const struct json *json, uint32_t node, size_t *ret_bytes)
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
bool json_real(const struct json *json, uint32_t node, double *ret_real)
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

bool json_whole(const struct json *json, uint32_t node, uint64_t *ret_whole)
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

bool json_bool(const struct json *json, uint32_t node, bool *ret_bool)
{
        if (json_kind(json, node) != JSON_BOOL)
                return false;
        *ret_bool = json->nodes[node].value;
        return true;
}

const char *json_number(const struct json *json, uint32_t node)
{
        size_t bytes;

        return json_kind(json, node) == JSON_NUMBER ? text_at(json, json->nodes[node].value, &bytes)
                                                    : NULL;
}
