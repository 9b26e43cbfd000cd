#include "daemon/constraint/schema-shape.h"

#include <string.h>

#include "daemon/constraint/schema-apart.h"

bool shape_denies(const struct schema_compiler *compiler, uint32_t element, const char *keyword)
{
        return element_kind(element) == DENIES &&
               strcmp(json_key(compiler->json, element_node(element), NULL), keyword) == 0;
}

static bool is_child(const struct json_document *json, uint32_t list, uint32_t value)
{
        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at))
                if (at == value)
                        return true;
        return false;
}

static bool is_chosen(const struct schema_compiler *compiler, const struct conjunction *leaf,
                      uint32_t list)
{
        for (uint32_t i = 0; i < leaf->count; i++)
                if (element_kind(leaf->elements[i]) == IS &&
                    is_child(compiler->json, list, element_node(leaf->elements[i])))
                        return true;
        return false;
}

static void check_types(struct schema_compiler *compiler, uint32_t type)
{
        const struct json_document *json = compiler->json;
        uint32_t at = json_kind(json, type) == JSON_ARRAY ? json_first(json, type) : type;
        bool integer;

        while (at != JSON_NONE) {
                if (!json_string(json, at, NULL) || schema_types(json, at, &integer) == 0)
                        schema_fail(compiler, at,
                                    "a type is null, boolean, integer, number, "
                                    "string, array or object");
                at = json_kind(json, type) == JSON_ARRAY ? json_next(json, at) : JSON_NONE;
        }
}

static void read_list(struct schema_compiler *compiler, struct shape *shape, uint32_t list)
{
        const struct json_document *json = compiler->json;
        unsigned kinds = 0;

        if (is_chosen(compiler, shape->leaf, list))
                return;
        if (json_kind(json, list) != JSON_ARRAY)
                schema_fail(compiler, list, "enum must be an array");
        if (shape->list_count == LISTS_MAX) {
                schema_fail(compiler, list, "more than %u lists apply to one value", LISTS_MAX);
                return;
        }
        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at))
                kinds |= 1u << json_kind(json, at);
        shape->types &= kinds & ~(1u << JSON_ARRAY | 1u << JSON_OBJECT);
        shape->lists[shape->list_count++] = list;
}

static void read_schema(struct schema_compiler *compiler, struct shape *shape, uint32_t schema)
{
        uint32_t type = schema_keyword(compiler, schema, "type");
        uint32_t list = schema_keyword(compiler, schema, "enum");
        bool integer;

        check_types(compiler, type);
        shape->types &= schema_types(compiler->json, type, &integer);
        shape->integer |= integer;
        if (list != JSON_NONE)
                read_list(compiler, shape, list);
}

/* Which type a keyword that is denied is about. */
static unsigned types_of_keyword(const char *keyword)
{
        if (strstr(keyword, "Length") || strcmp(keyword, "pattern") == 0)
                return 1u << JSON_STRING;
        if (strstr(keyword, "Items"))
                return 1u << JSON_ARRAY;
        if (strstr(keyword, "imum"))
                return 1u << JSON_NUMBER;
        return 0x3f;
}

static void read_denied(struct schema_compiler *compiler, struct shape *shape, uint32_t value)
{
        const struct json_document *json = compiler->json;
        const char *keyword = json_key(json, value, NULL);
        bool integer;

        shape->types &= types_of_keyword(keyword);
        if (strcmp(keyword, "type") == 0) {
                unsigned types = schema_types(json, value, &integer);

                check_types(compiler, value);
                if (integer) { /* other numbers stay */
                        shape->fraction = true;
                        types &= ~(1u << JSON_NUMBER);
                }
                shape->types &= ~types;
        }
        if ((strcmp(keyword, "enum") && strcmp(keyword, "const")) ||
            !(shape->types & (1u << JSON_ARRAY | 1u << JSON_OBJECT)))
                return;
        if (strcmp(keyword, "const") == 0 && json_kind(json, value) >= JSON_ARRAY)
                schema_fail(compiler, value, "an excluded array or object is not supported");
        if (strcmp(keyword, "enum") == 0)
                for (uint32_t at = json_first(json, value); at != JSON_NONE;
                     at = json_next(json, at))
                        if (json_kind(json, at) >= JSON_ARRAY)
                                schema_fail(compiler, at,
                                            "an excluded array or object is not supported");
}

void shape_of(struct schema_compiler *compiler, const struct conjunction *leaf,
              struct shape *ret_shape)
{
        struct shape shape = { .leaf = leaf, .types = 0x3f, .constant = JSON_NONE };

        for (uint32_t i = 0; i < leaf->count; i++) {
                uint32_t node = element_node(leaf->elements[i]);

                switch (element_kind(leaf->elements[i])) {
                case MATCHES:
                        read_schema(compiler, &shape, node);
                        break;
                case IS:
                        shape.types &= 1u << json_kind(compiler->json, node);
                        shape.constant = node;
                        break;
                case HAS:
                case MISSES:
                case HAS_DIFFERENT:
                        shape.types &= 1u << JSON_OBJECT;
                        break;
                default:
                        break;
                }
        }
        /* Last, since what may be denied depends on the types that are left. */
        for (int round = 0; round < 2; round++)
                for (uint32_t i = 0; i < leaf->count; i++)
                        if (element_kind(leaf->elements[i]) == DENIES &&
                            (round == 1 || shape_denies(compiler, leaf->elements[i], "type")))
                                read_denied(compiler, &shape, element_node(leaf->elements[i]));
        *ret_shape = shape;
}

static bool has_word(const struct schema_compiler *compiler, uint32_t list, enum json_kind kind,
                     bool truth)
{
        const struct json_document *json = compiler->json;
        bool value;

        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at))
                if (json_kind(json, at) == kind &&
                    (kind == JSON_NULL || (json_bool(json, at, &value) && value == truth)))
                        return true;
        return false;
}

static bool is_word(const struct schema_compiler *compiler, uint32_t node, enum json_kind kind,
                    bool truth)
{
        bool value;

        return json_kind(compiler->json, node) == kind &&
               (kind == JSON_NULL || (json_bool(compiler->json, node, &value) && value == truth));
}

static bool allows_word(const struct schema_compiler *compiler, const struct shape *shape,
                        enum json_kind kind, bool truth)
{
        if (!(shape->types & 1u << kind))
                return false;
        for (uint32_t i = 0; i < shape->list_count; i++)
                if (!has_word(compiler, shape->lists[i], kind, truth))
                        return false;
        for (uint32_t i = 0; i < shape->leaf->count; i++) {
                uint32_t element = shape->leaf->elements[i], node = element_node(element);

                if (element_kind(element) == IS && !is_word(compiler, node, kind, truth))
                        return false;
                if (shape_denies(compiler, element, "const") &&
                    is_word(compiler, node, kind, truth))
                        return false;
                if (shape_denies(compiler, element, "enum") &&
                    has_word(compiler, node, kind, truth))
                        return false;
        }
        return true;
}

uint32_t shape_words(struct schema_compiler *compiler, const struct shape *shape)
{
        static const char *const words[][3] = { { "null", "true", "false" },
                                                { "None", "True", "False" } };
        const char *const *word = words[schema_is_python(compiler)];
        struct regex_pool *pool = compiler->pool;
        uint32_t term = REGEX_NONE;

        if (allows_word(compiler, shape, JSON_NULL, false))
                term = regex_or2(pool, term, regex_literal(pool, word[0], 4));
        if (allows_word(compiler, shape, JSON_BOOL, true))
                term = regex_or2(pool, term, regex_literal(pool, word[1], 4));
        if (allows_word(compiler, shape, JSON_BOOL, false))
                term = regex_or2(pool, term, regex_literal(pool, word[2], 5));
        return term;
}
