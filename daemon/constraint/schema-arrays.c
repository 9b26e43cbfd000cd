/* The arrays of a shape. */
#include <string.h>

#include "daemon/constraint/schema-shape.h"

#define PREFIX_MAX 4096u

struct array_shape {
        uint32_t prefix, min, max;
        bool unique;
        uint32_t place; /* of uniqueItems */
};

static uint32_t nth(const struct json_document *json, uint32_t list, uint32_t index)
{
        uint32_t at = json_first(json, list);

        while (index-- && at != JSON_NONE)
                at = json_next(json, at);
        return at;
}

static void limit(struct array_shape *array, uint32_t min, uint32_t max)
{
        array->min = min > array->min ? min : array->min;
        array->max = max < array->max ? max : array->max;
}

/* Before draft 2020-12, an array of `items` was what is prefixItems now. */
static bool has_old_items(struct schema_compiler *compiler, uint32_t schema)
{
        return json_kind(compiler->json, schema_keyword(compiler, schema, "items")) == JSON_ARRAY;
}

static uint32_t prefix_of(struct schema_compiler *compiler, uint32_t schema)
{
        return schema_keyword(compiler, schema,
                              has_old_items(compiler, schema) ? "items" : "prefixItems");
}

/* The schema of all elements behind the prefix.  additionalItems had no meaning without one. */
static uint32_t rest_of(struct schema_compiler *compiler, uint32_t schema)
{
        return schema_keyword(compiler, schema,
                              has_old_items(compiler, schema) ? "additionalItems" : "items");
}

static void read_schema(struct schema_compiler *compiler, struct array_shape *array,
                        uint32_t schema)
{
        uint32_t prefix = prefix_of(compiler, schema);
        uint32_t contains = schema_keyword(compiler, schema, "contains");
        uint32_t unique = schema_keyword(compiler, schema, "uniqueItems");
        uint32_t count = json_count(compiler->json, prefix);
        bool truth;

        if (prefix != JSON_NONE && json_kind(compiler->json, prefix) != JSON_ARRAY)
                schema_fail(compiler, prefix, "prefixItems must be an array");
        if (array->prefix < count)
                array->prefix = count;
        limit(array, schema_count(compiler, schema, "minItems", 0),
              schema_count(compiler, schema, "maxItems", REGEX_FOREVER));
        if (contains != JSON_NONE && (schema_count(compiler, schema, "minContains", 1) > 0 ||
                                      schema_keyword(compiler, schema, "maxContains") != JSON_NONE))
                schema_fail(compiler, contains, "contains is not supported");
        if (json_bool(compiler->json, unique, &truth) && truth) {
                array->unique = true;
                array->place = unique;
        }
}

static void read_element(struct schema_compiler *compiler, struct array_shape *array,
                         uint32_t element)
{
        uint32_t node = element_node(element);
        double count = 0;

        json_real(compiler->json, node, &count);
        if (element_kind(element) == MATCHES) {
                read_schema(compiler, array, node);
        } else if (element_kind(element) == IS) {
                uint32_t exactly = json_count(compiler->json, node);

                limit(array, exactly, exactly);
                if (array->prefix < exactly)
                        array->prefix = exactly;
        } else if (shape_denies(compiler, element, "maxItems")) {
                limit(array, count < 1e9 ? (uint32_t)count + 1 : 1000000000u, REGEX_FOREVER);
        } else if (shape_denies(compiler, element, "minItems")) {
                if (count < 1)
                        limit(array, 1, 0);
                else
                        limit(array, 0, count < 1e9 ? (uint32_t)count - 1 : 999999999u);
        }
}

/* All that is demanded of one element; behind the prefixes if `index` is. */
static uint32_t element_symbol(struct schema_compiler *compiler, const struct conjunction *leaf,
                               uint32_t index)
{
        const struct json_document *json = compiler->json;
        struct conjunction demands = { .count = 0 };

        for (uint32_t i = 0; i < leaf->count; i++) {
                uint32_t node = element_node(leaf->elements[i]), at = JSON_NONE;
                enum element_kind kind = element_kind(leaf->elements[i]);

                if (kind == MATCHES) {
                        at = nth(json, prefix_of(compiler, node), index);
                        if (at == JSON_NONE)
                                at = rest_of(compiler, node);
                } else if (kind == IS) {
                        at = nth(json, node, index);
                }
                if (at != JSON_NONE)
                        conjunction_add(compiler, &demands, ELEMENT(kind, at));
        }
        return schema_symbol(compiler, &demands, FORM_JSON);
}

static void add_list(struct schema_compiler *compiler, const struct shape *shape,
                     const struct array_shape *array, uint32_t rule)
{
        struct grammar *grammar = compiler->grammar;
        struct regex_pool *pool = compiler->pool;
        uint32_t space = compiler->space, prefix[PREFIX_MAX], count = array->prefix, around[3];
        uint32_t open = regex_concat(pool, regex_literal(pool, "[", 1), space);
        uint32_t comma =
                regex_concat(pool, space, regex_concat(pool, regex_literal(pool, ",", 1), space));
        uint32_t close = regex_concat(pool, space, regex_literal(pool, "]", 1));
        struct grammar_list list = { .max = array->max, .min = array->min ? array->min : 1 };

        if (count > array->max)
                count = array->max;
        if (count > PREFIX_MAX) {
                schema_fail(compiler, 0, "more than %u elements have a schema of their own",
                            PREFIX_MAX);
                return;
        }
        for (uint32_t i = 0; i < count; i++)
                prefix[i] = element_symbol(compiler, shape->leaf, i);
        list.prefix_count = count;
        list.rest = SYMBOL_NONE;
        if (count < array->max)
                list.rest = element_symbol(compiler, shape->leaf, array->prefix);
        list.separator = grammar_lexeme(grammar, comma);
        around[0] = grammar_lexeme(grammar, open);
        around[1] = grammar_rule(grammar);
        around[2] = grammar_lexeme(grammar, close);
        if (!grammar->failed) {
                grammar_set_list(grammar, around[1], list, prefix);
                grammar_add(grammar, rule, around, 3);
        }
}

void shape_arrays(struct schema_compiler *compiler, const struct shape *shape, uint32_t rule)
{
        struct array_shape array = { .max = REGEX_FOREVER };
        struct regex_pool *pool = compiler->pool;

        if (!(shape->types & 1u << JSON_ARRAY))
                return;
        for (uint32_t i = 0; i < shape->leaf->count; i++)
                read_element(compiler, &array, shape->leaf->elements[i]);
        if (array.unique && array.max > 1)
                schema_fail(compiler, array.place, "uniqueItems is not supported");
        if (array.min > array.max || compiler->failed)
                return;
        if (array.min == 0) {
                uint32_t empty = regex_concat(
                        pool, regex_literal(pool, "[", 1),
                        regex_concat(pool, compiler->space, regex_literal(pool, "]", 1)));
                uint32_t symbol = grammar_lexeme(compiler->grammar, empty);

                grammar_add(compiler->grammar, rule, &symbol, 1);
        }
        if (array.max > 0)
                add_list(compiler, shape, &array, rule);
}
