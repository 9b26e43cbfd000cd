#include "daemon/constraint/schema-apart.h"

#include <string.h>

#include "daemon/constraint/schema-refs.h"

#define HOPS_MAX 8 /* references that are followed */

static unsigned type_bit(const char *name)
{
        static const char *const names[] = {
                [JSON_NULL] = "null",     [JSON_BOOL] = "boolean", [JSON_NUMBER] = "number",
                [JSON_STRING] = "string", [JSON_ARRAY] = "array",  [JSON_OBJECT] = "object",
        };

        for (int kind = 0; kind <= JSON_OBJECT; kind++)
                if (name && strcmp(name, names[kind]) == 0)
                        return 1u << kind;
        return 0;
}

unsigned schema_types(const struct json_document *json, uint32_t type, bool *ret_integer)
{
        bool number = false, integer = false;
        unsigned types = 0;
        uint32_t at = json_kind(json, type) == JSON_ARRAY ? json_first(json, type) : type;

        *ret_integer = false;
        if (type == JSON_NONE)
                return 0x3f;
        while (at != JSON_NONE) {
                const char *name = json_string(json, at, NULL);

                if (name && strcmp(name, "integer") == 0)
                        integer = true;
                number |= type_bit(name) == 1u << JSON_NUMBER;
                types |= type_bit(name);
                at = json_kind(json, type) == JSON_ARRAY ? json_next(json, at) : JSON_NONE;
        }
        *ret_integer = integer && !number;
        return types | (integer ? 1u << JSON_NUMBER : 0);
}

static uint32_t resolve(struct schema_compiler *compiler, uint32_t schema)
{
        for (int hops = 0; hops < HOPS_MAX; hops++) {
                uint32_t ref = json_member(compiler->json, schema, "$ref");

                if (ref == JSON_NONE || json_count(compiler->json, schema) != 1)
                        break;
                schema = schema_target(compiler, ref);
        }
        return schema;
}

static bool same_scalar(const struct json_document *json, uint32_t one, uint32_t other)
{
        size_t bytes, other_bytes;
        const char *text = json_string(json, one, &bytes);
        const char *other_text = json_string(json, other, &other_bytes);
        bool truth, other_truth;

        if (json_kind(json, one) != json_kind(json, other))
                return false;
        if (text)
                return bytes == other_bytes && memcmp(text, other_text, bytes) == 0;
        if (json_bool(json, one, &truth) && json_bool(json, other, &other_truth))
                return truth == other_truth;
        return true; /* numbers, arrays and objects may be equal */
}

/* The values that a schema lists: one if it is `const`. */
static uint32_t first_listed(const struct json_document *json, uint32_t schema, bool *ret_one)
{
        uint32_t constant = json_member(json, schema, "const");

        *ret_one = constant != JSON_NONE;
        return *ret_one ? constant : json_first(json, json_member(json, schema, "enum"));
}

static bool lists_apart(const struct json_document *json, uint32_t one, uint32_t other)
{
        bool single, other_single;
        uint32_t first = first_listed(json, one, &single);
        uint32_t other_first = first_listed(json, other, &other_single);

        if (first == JSON_NONE || other_first == JSON_NONE)
                return false;
        for (uint32_t a = first; a != JSON_NONE; a = single ? JSON_NONE : json_next(json, a))
                for (uint32_t b = other_first; b != JSON_NONE;
                     b = other_single ? JSON_NONE : json_next(json, b))
                        if (same_scalar(json, a, b))
                                return false;
        return true;
}

static bool types_apart(const struct json_document *json, uint32_t one, uint32_t other)
{
        bool integer;

        return (schema_types(json, json_member(json, one, "type"), &integer) &
                schema_types(json, json_member(json, other, "type"), &integer)) == 0;
}

static bool is_object_only(const struct json_document *json, uint32_t schema)
{
        bool integer;

        return schema_types(json, json_member(json, schema, "type"), &integer) == 1u << JSON_OBJECT;
}

static bool requires(const struct json_document *json, uint32_t schema, const char *key)
{
        uint32_t list = json_member(json, schema, "required");

        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at)) {
                const char *name = json_string(json, at, NULL);

                if (name && strcmp(name, key) == 0)
                        return true;
        }
        return false;
}

static bool members_apart(struct schema_compiler *compiler, uint32_t one, uint32_t other)
{
        const struct json_document *json = compiler->json;
        uint32_t properties = json_member(json, one, "properties");
        uint32_t others = json_member(json, other, "properties");

        for (uint32_t at = json_first(json, properties); at != JSON_NONE;
             at = json_next(json, at)) {
                const char *key = json_key(json, at, NULL);
                uint32_t same = json_member(json, others, key);
                uint32_t a = resolve(compiler, at), b = resolve(compiler, same);

                if (same == JSON_NONE || !requires(json, one, key) || !requires(json, other, key))
                        continue;
                if (types_apart(json, a, b) || lists_apart(json, a, b))
                        return true;
        }
        return false;
}

bool schemas_apart(struct schema_compiler *compiler, uint32_t one, uint32_t other)
{
        const struct json_document *json = compiler->json;

        one = resolve(compiler, one);
        other = resolve(compiler, other);
        if (json_kind(json, one) != JSON_OBJECT || json_kind(json, other) != JSON_OBJECT)
                return false;
        return types_apart(json, one, other) || lists_apart(json, one, other) ||
               (is_object_only(json, one) && is_object_only(json, other) &&
                members_apart(compiler, one, other));
}
