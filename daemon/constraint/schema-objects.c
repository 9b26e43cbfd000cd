/* The objects of a shape: members by name, and members by what their keys match. */
#include <stdlib.h>
#include <string.h>

#include "daemon/constraint/characters.h"
#include "daemon/constraint/regex-text.h"
#include "daemon/constraint/schema-leaves.h"
#include "daemon/constraint/schema-shape.h"
#include "daemon/constraint/schema-tags.h"

#define PATTERNS_MAX 5u /* of patternProperties: keys are divided by which ones they match */
#define NEEDS_MAX    4096u

struct key {
        const char *text;
        size_t bytes;
        bool required, forbidden;
};

struct key_pattern {
        uint32_t node;           /* the schema of values */
        uint32_t plain, written; /* the expression over text, and as keys are written */
};

struct object_shape {
        const struct shape *shape;
        struct key *keys;
        uint32_t key_count, key_size;
        struct key_pattern patterns[PATTERNS_MAX];
        uint32_t pattern_count;
        uint32_t names; /* what propertyNames says; ANY: nothing */
        uint32_t min, max;
        bool closed; /* equals an object, so it has no other keys */
        uint32_t needs[2 * NEEDS_MAX], need_count;
};

static enum writing key_writing(const struct schema_compiler *compiler)
{
        return compiler->form == FORM_TAGS ? WRITING_PLAIN : WRITING_JSON;
}

static uint32_t add_key(struct schema_compiler *compiler, struct object_shape *object,
                        const char *text, size_t bytes)
{
        for (uint32_t i = 0; i < object->key_count; i++)
                if (object->keys[i].bytes == bytes &&
                    memcmp(object->keys[i].text, text, bytes) == 0)
                        return i;
        regex_burn(compiler->pool, object->key_count / 16);
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
        static struct key none;
        size_t bytes = 0;
        const char *text = json_key(compiler->json, node, &bytes);
        uint32_t index;

        if (!text)
                text = json_string(compiler->json, node, &bytes);
        if (!text) {
                schema_fail(compiler, node, "a key must be a text");
                return &none;
        }
        index = add_key(compiler, object, text, bytes);
        return compiler->failed ? &none : &object->keys[index];
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
                for (uint32_t each = json_first(json, at); each != JSON_NONE;
                     each = json_next(json, each)) {
                        const struct key *from = key_of(compiler, object, at);
                        uint32_t index = from - object->keys;
                        const struct key *to = key_of(compiler, object, each);

                        if (compiler->failed)
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

static void read_schema(struct schema_compiler *compiler, struct object_shape *object,
                        uint32_t schema)
{
        const struct json_document *json = compiler->json;
        uint32_t properties = schema_keyword(compiler, schema, "properties");
        uint32_t names = schema_keyword(compiler, schema, "propertyNames");
        uint32_t min = schema_count(compiler, schema, "minProperties", 0);
        uint32_t max = schema_count(compiler, schema, "maxProperties", REGEX_FOREVER);

        for (uint32_t at = json_first(json, properties); at != JSON_NONE; at = json_next(json, at))
                key_of(compiler, object, at);
        require_all(compiler, object, schema_keyword(compiler, schema, "required"));
        read_patterns(compiler, object, schema_keyword(compiler, schema, "patternProperties"));
        read_needs(compiler, object, schema_keyword(compiler, schema, "dependentRequired"));
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

static bool matches(struct regex_pool *pool, uint32_t term, const char *text, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                term = regex_derive(pool, term, text[i]);
        return regex_nullable(pool, term);
}

/*
 * Adds all that a schema demands of the value of a key: one that it names (`text`), or one that
 * matches the patterns of `subset`.
 */
static void demand(struct schema_compiler *compiler, const struct object_shape *object,
                   uint32_t schema, const struct key *key, unsigned subset,
                   struct conjunction *demands)
{
        const struct json_document *json = compiler->json;
        uint32_t list = schema_keyword(compiler, schema, "patternProperties");
        uint32_t rest = schema_keyword(compiler, schema, "additionalProperties"), at;
        bool found = false;

        if (key) {
                at = json_member(json, schema_keyword(compiler, schema, "properties"), key->text);
                if (at != JSON_NONE)
                        conjunction_add(compiler, demands, ELEMENT(MATCHES, at));
                found = at != JSON_NONE;
        }
        for (uint32_t i = 0; i < object->pattern_count; i++) {
                uint32_t node = object->patterns[i].node;

                if (!(subset >> i & 1))
                        continue;
                for (at = json_first(json, list); at != JSON_NONE; at = json_next(json, at)) {
                        if (at != node)
                                continue;
                        conjunction_add(compiler, demands, ELEMENT(MATCHES, at));
                        found = true;
                }
        }
        if (!found && rest != JSON_NONE)
                conjunction_add(compiler, demands, ELEMENT(MATCHES, rest));
}

static uint32_t value_symbol(struct schema_compiler *compiler, const struct object_shape *object,
                             const struct key *key, unsigned subset)
{
        const struct conjunction *leaf = object->shape->leaf;
        struct conjunction demands = { .count = 0 };

        for (uint32_t i = 0; i < leaf->count; i++) {
                uint32_t node = element_node(leaf->elements[i]), at;
                const char *name;

                switch (element_kind(leaf->elements[i])) {
                case MATCHES:
                        demand(compiler, object, node, key, subset, &demands);
                        break;
                case IS:
                        at = key ? json_member(compiler->json, node, key->text) : JSON_NONE;
                        if (at == JSON_NONE)
                                return SYMBOL_NONE;
                        conjunction_add(compiler, &demands, ELEMENT(IS, at));
                        break;
                case HAS_DIFFERENT:
                        name = json_key(compiler->json, node, NULL);
                        if (key && strcmp(name, key->text) == 0)
                                conjunction_add(compiler, &demands, ELEMENT(DIFFERS, node));
                        break;
                default:
                        break;
                }
        }
        return schema_symbol(compiler, &demands,
                             compiler->form == FORM_TAGS ? FORM_VALUE : FORM_JSON);
}

/* A key's two lexemes, from the term between its quotes or in its tag. */
static void set_keys(struct schema_compiler *compiler, uint32_t term, struct grammar_member *member)
{
        struct regex_pool *pool = compiler->pool;
        uint32_t space = compiler->space, quote = regex_literal(pool, "\"", 1);
        uint32_t colon =
                regex_concat(pool, space, regex_concat(pool, regex_literal(pool, ":", 1), space));
        uint32_t key = regex_concat(pool, quote,
                                    regex_concat(pool, term, regex_concat(pool, quote, colon)));
        uint32_t comma = regex_concat(pool, space, regex_literal(pool, ",", 1));

        if (compiler->form == FORM_TAGS) {
                tags_set_keys(compiler, term, member);
                return;
        }
        key = regex_concat(pool, space, key);
        member->first_key = grammar_lexeme(compiler->grammar, key);
        member->next_key = grammar_lexeme(compiler->grammar, regex_concat(pool, comma, key));
}

static void set_named(struct schema_compiler *compiler, const struct object_shape *object,
                      const struct key *key, struct grammar_member *member)
{
        struct regex_pool *pool = compiler->pool;
        uint32_t term = characters_text(pool, key->text, key->bytes, key_writing(compiler));
        unsigned subset = 0;

        if (strlen(key->text) != key->bytes)
                schema_fail(compiler, 0, "a key that contains U+0000 is not supported");
        if (compiler->form == FORM_TAGS)
                tags_check_key(compiler, key->text);
        for (uint32_t i = 0; i < object->pattern_count; i++)
                subset |= (unsigned)matches(pool, object->patterns[i].plain, key->text, key->bytes)
                          << i;
        term = regex_and2(pool, term, object->names);
        set_keys(compiler, term, member);
        member->required = key->required;
        member->value = key->forbidden || !regex_alive(pool, term)
                                ? SYMBOL_NONE
                                : value_symbol(compiler, object, key, subset);
}

/* Keys without a name here that match just the patterns of `subset`. */
static void set_others(struct schema_compiler *compiler, const struct object_shape *object,
                       uint32_t unnamed, unsigned subset, struct grammar_member *member)
{
        struct regex_pool *pool = compiler->pool;
        uint32_t term = unnamed;

        for (uint32_t i = 0; i < object->pattern_count; i++) {
                uint32_t pattern = object->patterns[i].written;

                term = regex_and2(pool, term, subset >> i & 1 ? pattern : regex_not(pool, pattern));
        }
        set_keys(compiler, term, member);
        member->repeats = true;
        member->value = object->closed || !regex_alive(pool, term)
                                ? SYMBOL_NONE
                                : value_symbol(compiler, object, NULL, subset);
}

/* Keys that are not named. */
static uint32_t unnamed_keys(struct schema_compiler *compiler, const struct object_shape *object)
{
        struct regex_pool *pool = compiler->pool;
        uint32_t named = REGEX_NONE, any;

        for (uint32_t i = 0; i < object->key_count; i++)
                named = regex_or2(pool, named,
                                  characters_text(pool, object->keys[i].text, object->keys[i].bytes,
                                                  key_writing(compiler)));
        any = compiler->form == FORM_TAGS
                      ? tags_keys(compiler)
                      : regex_repeat(pool, characters_any(pool, WRITING_JSON), 0, REGEX_FOREVER);
        any = regex_and2(pool, any, object->names);
        return named == REGEX_NONE ? any : regex_and2(pool, any, regex_not(pool, named));
}

static void add_object(struct schema_compiler *compiler, struct object_shape *object, uint32_t rule)
{
        struct grammar *grammar = compiler->grammar;
        struct regex_pool *pool = compiler->pool;
        uint32_t subsets = 1u << object->pattern_count, unnamed = unnamed_keys(compiler, object);
        struct grammar_member *members = calloc(object->key_count + subsets, sizeof(*members));
        uint32_t around[3];

        if (!members) {
                schema_out_of_memory(compiler);
                return;
        }
        for (uint32_t i = 0; i < object->key_count && !compiler->failed; i++)
                set_named(compiler, object, &object->keys[i], &members[i]);
        for (uint32_t i = 0; i < subsets && !compiler->failed; i++)
                set_others(compiler, object, unnamed, i, &members[object->key_count + i]);
        around[0] = grammar_lexeme(grammar, regex_literal(pool, "{", 1));
        around[1] = grammar_rule(grammar);
        around[2] = grammar_lexeme(
                grammar, regex_concat(pool, compiler->space, regex_literal(pool, "}", 1)));
        if (!compiler->failed && !grammar->failed) {
                grammar_set_object(grammar, around[1],
                                   (struct grammar_object){
                                           .member_count = object->key_count + subsets,
                                           .need_count = object->need_count,
                                           .min = object->min,
                                           .max = object->max,
                                           .any_order = compiler->options.any_order,
                                   },
                                   members, object->needs);
                if (compiler->form == FORM_TAGS)
                        grammar_add(grammar, rule, around + 1, 1);
                else
                        grammar_add(grammar, rule, around, 3);
        }
        free(members);
}

void shape_objects(struct schema_compiler *compiler, const struct shape *shape, uint32_t rule)
{
        struct object_shape *object;

        if (!(shape->types & 1u << JSON_OBJECT))
                return;
        object = calloc(1, sizeof(*object));
        if (!object) {
                schema_out_of_memory(compiler);
                return;
        }
        object->shape = shape;
        object->names = REGEX_ANY;
        object->max = REGEX_FOREVER;
        for (uint32_t i = 0; i < shape->leaf->count && !compiler->failed; i++)
                read_element(compiler, object, shape->leaf->elements[i]);
        if (object->need_count && !compiler->failed)
                close_needs(compiler, object);
        if (object->min <= object->max && !compiler->failed)
                add_object(compiler, object, rule);
        free(object->keys);
        free(object);
}
