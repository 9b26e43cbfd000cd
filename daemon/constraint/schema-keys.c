#include "daemon/constraint/schema-keys.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/constraint/regex-text.h"
#include "daemon/constraint/schema-leaves.h"

static uint32_t add_key(struct schema_compiler *compiler, struct object_shape *object,
                        const char *text, size_t bytes)
{
        for (uint32_t i = 0; i < object->key_count; i++)
                if (object->keys[i].bytes == bytes &&
                    memcmp(object->keys[i].text, text, bytes) == 0)
                        return i;
        if (object->key_count == object->key_size) {
                uint32_t size = object->key_size ? 2 * object->key_size : 32;
                struct key *more = realloc(object->keys, size * sizeof(*more));

                if (!more) {
                        schema_out_of_memory(compiler);
                        return 0;
                }
                object->keys = more;
                object->key_size = size;
        }
        object->keys[object->key_count] = (struct key){ text, bytes, false, false };
        return object->key_count++;
}

/* The key that a node names: its own, or its text if it is an element of a list. */
static struct key *key_of(struct schema_compiler *compiler, struct object_shape *object,
                          uint32_t node)
{
        size_t bytes = 0;
        const char *text = json_key(compiler->json, node, &bytes);
        uint32_t index;

        if (!text)
                text = json_string(compiler->json, node, &bytes);
        if (!text) {
                schema_fail(compiler, node, "a key must be a text");
                return &object->none;
        }
        if (!regex_burn(compiler->pool, 1 + object->key_count / 16))
                return &object->none;
        index = add_key(compiler, object, text, bytes);
        return compiler->failed ? &object->none : &object->keys[index];
}

static void require_all(struct schema_compiler *compiler, struct object_shape *object,
                        uint32_t list)
{
        for (uint32_t at = json_first(compiler->json, list); at != JSON_NONE;
             at = json_next(compiler->json, at))
                key_of(compiler, object, at)->required = true;
}

static void read_patterns(struct schema_compiler *compiler, struct object_shape *object,
                          uint32_t list)
{
        const struct json_document *json = compiler->json;

        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at)) {
                struct key_pattern *pattern = &object->patterns[object->pattern_count];
                size_t bytes = 0;
                const char *text = json_key(json, at, &bytes);
                char why[160];

                if (object->pattern_count == PATTERNS_MAX) {
                        schema_fail(compiler, at,
                                    "more than %u patternProperties apply to one "
                                    "object",
                                    PATTERNS_MAX);
                        return;
                }
                pattern->node = at;
                if (regex_text_read(compiler->pool, text, bytes, WRITING_PLAIN, REGEX_SEARCH,
                                    &pattern->plain, why, sizeof(why)) < 0 ||
                    regex_text_read(compiler->pool, text, bytes, key_writing(compiler),
                                    REGEX_SEARCH, &pattern->written, why, sizeof(why)) < 0) {
                        schema_fail(compiler, at, "%s", why);
                        return;
                }
                object->pattern_count++;
        }
}

static void read_needs(struct schema_compiler *compiler, struct object_shape *object,
                       uint32_t table)
{
        const struct json_document *json = compiler->json;

        for (uint32_t at = json_first(json, table); at != JSON_NONE; at = json_next(json, at)) {
                if (json_kind(json, at) != JSON_ARRAY)
                        continue; /* of `dependencies`: a schema */
                for (uint32_t each = json_first(json, at); each != JSON_NONE;
                     each = json_next(json, each)) {
                        const struct key *from = key_of(compiler, object, at), *to;
                        uint32_t index;

                        if (from == &object->none)
                                return;
                        index = from - object->keys; /* the next key may move them */
                        to = key_of(compiler, object, each);
                        if (to == &object->none)
                                return;
                        if (object->need_count == NEEDS_MAX) {
                                schema_fail(compiler, at, "dependentRequired has more than %u keys",
                                            NEEDS_MAX);
                                return;
                        }
                        object->needs[2 * object->need_count] = index;
                        object->needs[2 * object->need_count + 1] = to - object->keys;
                        object->need_count++;
                }
        }
}

/* Adds what follows from two needs, until nothing does. */
static void close_needs(struct schema_compiler *compiler, struct object_shape *object)
{
        for (uint32_t i = 0; i < object->need_count; i++) {
                for (uint32_t j = 0; j < object->need_count; j++) {
                        uint32_t from = object->needs[2 * i], to = object->needs[2 * j + 1];
                        bool known = object->needs[2 * i + 1] != object->needs[2 * j];

                        for (uint32_t k = 0; k < object->need_count && !known; k++)
                                known = object->needs[2 * k] == from &&
                                        object->needs[2 * k + 1] == to;
                        if (known)
                                continue;
                        if (object->need_count == NEEDS_MAX ||
                            !regex_burn(compiler->pool, object->need_count)) {
                                schema_fail(compiler, 0, "dependentRequired has more than %u keys",
                                            NEEDS_MAX);
                                return;
                        }
                        object->needs[2 * object->need_count] = from;
                        object->needs[2 * object->need_count + 1] = to;
                        object->need_count++;
                        i = 0;
                        j = UINT32_MAX;
                }
        }
}

static void add_names(struct schema_compiler *compiler, const struct conjunction *leaf, void *data)
{
        struct shape shape;
        uint32_t *term = data;

        shape_of(compiler, leaf, &shape);
        *term = regex_or2(compiler->pool, *term,
                          shape_strings(compiler, &shape, key_writing(compiler)));
}

/* All keys that are named come before those that are only required, whichever schema says so. */
static void name_keys(struct schema_compiler *compiler, struct object_shape *object,
                      const struct conjunction *leaf)
{
        const struct json_document *json = compiler->json;

        for (uint32_t i = 0; i < leaf->count; i++) {
                uint32_t element = leaf->elements[i], at;

                if (element_kind(element) != MATCHES)
                        continue;
                at = json_first(json,
                                schema_keyword(compiler, element_node(element), "properties"));
                for (; at != JSON_NONE && !compiler->failed; at = json_next(json, at))
                        key_of(compiler, object, at);
        }
}

static void read_schema(struct schema_compiler *compiler, struct object_shape *object,
                        uint32_t schema)
{
        uint32_t properties = schema_keyword(compiler, schema, "properties");
        uint32_t names = schema_keyword(compiler, schema, "propertyNames");
        uint32_t min = schema_count(compiler, schema, "minProperties", 0);
        uint32_t max = schema_count(compiler, schema, "maxProperties", REGEX_FOREVER);

        object->names_keys |= properties != JSON_NONE;
        object->speaks_of_others |=
                schema_keyword(compiler, schema, "additionalProperties") != JSON_NONE ||
                schema_keyword(compiler, schema, "patternProperties") != JSON_NONE ||
                names != JSON_NONE;
        require_all(compiler, object, schema_keyword(compiler, schema, "required"));
        read_patterns(compiler, object, schema_keyword(compiler, schema, "patternProperties"));
        read_needs(compiler, object, schema_keyword(compiler, schema, "dependentRequired"));
        read_needs(compiler, object, schema_keyword(compiler, schema, "dependencies"));
        object->min = min > object->min ? min : object->min;
        object->max = max < object->max ? max : object->max;
        if (names != JSON_NONE) {
                uint32_t element = ELEMENT(MATCHES, names), term = REGEX_NONE;

                schema_leaves(compiler, &element, 1, add_names, &term);
                object->names = regex_and2(compiler->pool, object->names, term);
        }
}

static void read_element(struct schema_compiler *compiler, struct object_shape *object,
                         uint32_t element)
{
        uint32_t node = element_node(element);

        switch (element_kind(element)) {
        case MATCHES:
                read_schema(compiler, object, node);
                break;
        case IS:
                object->closed = true;
                require_all(compiler, object, node);
                break;
        case LACKS:
        case MISSES:
                key_of(compiler, object, node)->forbidden = true;
                break;
        case HAS:
        case HAS_DIFFERENT:
                key_of(compiler, object, node)->required = true;
                break;
        default:
                break;
        }
}

/*
 * Other engines close an object whose schema only names keys, so users expect it.  But "no others"
 * must not make a schema impossible that asks for more members than it names.
 */
static bool has_only_named(const struct schema_compiler *compiler,
                           const struct object_shape *object)
{
        return compiler->options.only_named && object->names_keys && !object->speaks_of_others &&
               object->min <= object->key_count;
}

void object_keys_read(struct schema_compiler *compiler, const struct shape *shape,
                      struct object_shape *object)
{
        *object = (struct object_shape){ .shape = shape, .names = REGEX_ANY, .max = REGEX_FOREVER };
        name_keys(compiler, object, shape->leaf);
        for (uint32_t i = 0; i < shape->leaf->count && !compiler->failed; i++)
                read_element(compiler, object, shape->leaf->elements[i]);
        if (object->need_count && !compiler->failed)
                close_needs(compiler, object);
        if (has_only_named(compiler, object))
                object->closed = true;
}

void object_keys_deinit(struct object_shape *object)
{
        free(object->keys);
}
