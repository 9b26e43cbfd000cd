/* The objects of a shape: members by name, and members by what their keys match. */
#include <stdlib.h>
#include <string.h>

#include "daemon/constraint/schema-keys.h"
#include "daemon/constraint/schema-tags.h"

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
        uint32_t space = compiler->space;
        uint32_t quote = schema_is_bare(compiler) ? REGEX_EMPTY : regex_literal(pool, "\"", 1);
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
        if (compiler->form == FORM_TAGS || schema_is_bare(compiler))
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
        any = compiler->form == FORM_TAGS || schema_is_bare(compiler)
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
        object_keys_read(compiler, shape, object);
        if (object->min <= object->max && !compiler->failed)
                add_object(compiler, object, rule);
        object_keys_deinit(object);
        free(object);
}
