#include "daemon/constraint/schema-refs.h"

#include <stdlib.h>
#include <string.h>

#include "json/reader.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define HOPS_MAX     1000 /* references that are followed, one after the other */

/* Those of the standard, then those of Hyper-Schema, then those of editors and generators. */
static const char *const describing[] = {
        "title",
        "description",
        "default",
        "examples",
        "example",
        "$comment",
        "$schema",
        "$anchor",
        "$defs",
        "definitions",
        "deprecated",
        "readOnly",
        "writeOnly",
        "contentEncoding",
        "contentMediaType",
        "$id",
        "contentSchema",
        "$dynamicAnchor",
        "$vocabulary",
        "id",
        "links",
        "base",
        "media",
        "fragmentResolution",
        "pathStart",
        "readonly",
        "markdownDescription",
        "markdownEnumDescriptions",
        "enumDescriptions",
        "tsEnumNames",
        "tsType",
        "javaName",
        "javaType",
        "errorMessage",
        "self",
        "strict", /* of the tool or format around it; programs write it within, too */
};

static const char *const enforced[] = {
        "type",
        "enum",
        "const",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "items",
        "prefixItems",
        "additionalItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "$ref",
};

static bool among(const char *word, const char *const *words, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(word, words[i]) == 0)
                        return true;
        return false;
}

bool schema_describes(const char *keyword)
{
        return among(keyword, describing, COUNT(describing)) || strncmp(keyword, "x-", 2) == 0 ||
               *keyword == '_';
}

void schema_check_keywords(struct schema_compiler *compiler, uint32_t schema)
{
        const struct json_document *json = compiler->json;

        for (uint32_t at = json_first(json, schema); at != JSON_NONE; at = json_next(json, at)) {
                const char *key = json_key(json, at, NULL);

                if (strcmp(key, "$id") == 0 && schema != 0)
                        schema_fail(compiler, at, "$id below the root is not supported");
                if (!schema_describes(key) && !among(key, enforced, COUNT(enforced)))
                        schema_fail(compiler, at, "the keyword %.60s is not supported", key);
        }
}

/* One step of a JSON pointer, decoded: "%25" and "~1" are read. */
static size_t read_step(const char **at, char *to, size_t size)
{
        size_t count = 0;

        for (; **at && **at != '/'; ++*at) {
                char c = **at;

                if (c == '%' && (*at)[1] && (*at)[2]) {
                        char hex[3] = { (*at)[1], (*at)[2], 0 };

                        c = (char)strtol(hex, NULL, 16);
                        *at += 2;
                }
                if (count + 1 < size)
                        to[count++] = c;
        }
        to[count] = 0;
        for (char *tilde = to; (tilde = strchr(tilde, '~')); tilde++) {
                *tilde = tilde[1] == '1' ? '/' : '~';
                memmove(tilde + 1, tilde + 2, strlen(tilde + 1));
                count--;
        }
        return count;
}

static uint32_t follow(const struct json_document *json, const char *pointer)
{
        uint32_t node = 0;

        while (*pointer == '/' && node != JSON_NONE) {
                char step[512];

                pointer++;
                read_step(&pointer, step, sizeof(step));
                if (json_kind(json, node) == JSON_ARRAY) {
                        char *end;
                        unsigned long index = strtoul(step, &end, 10);

                        node = *end || !*step ? JSON_NONE : json_first(json, node);
                        while (index-- && node != JSON_NONE)
                                node = json_next(json, node);
                } else {
                        node = json_member(json, node, step);
                }
        }
        return *pointer ? JSON_NONE : node;
}

/* The schema with this $anchor, wherever it is: all nodes are in order, so a loop finds it. */
static uint32_t find_anchor(const struct json_document *json, const char *name)
{
        uint32_t stack[JSON_DEPTH_MAX + 2] = { 0 }, depth = 1;

        while (depth) {
                uint32_t node = stack[depth - 1], child = json_first(json, node);
                const char *anchor = json_string(json, json_member(json, node, "$anchor"), NULL);

                if (!anchor)
                        anchor = json_string(json, json_member(json, node, "$dynamicAnchor"), NULL);
                if (anchor && strcmp(anchor, name) == 0)
                        return node;
                if (child != JSON_NONE && json_kind(json, node) >= JSON_ARRAY) {
                        stack[depth++] = child;
                        continue;
                }
                while (depth && (node = json_next(json, stack[depth - 1])) == JSON_NONE)
                        depth--;
                if (depth > 1)
                        stack[depth - 1] = node;
                else
                        break;
        }
        return JSON_NONE;
}

uint32_t schema_target(struct schema_compiler *compiler, uint32_t ref)
{
        const struct json_document *json = compiler->json;
        const char *name = json_string(json, ref, NULL);
        const char *id = json_string(json, json_member(json, 0, "$id"), NULL);
        uint32_t target = JSON_NONE;

        if (!name) {
                schema_fail(compiler, ref, "$ref must be a text");
                return JSON_NONE;
        }
        if (id && strncmp(name, id, strcspn(id, "#")) == 0)
                name += strcspn(id, "#");
        if (*name == 0)
                return 0;
        if (*name == '#' && (name[1] == '/' || name[1] == 0))
                target = follow(json, name + 1);
        else if (*name == '#')
                target = find_anchor(json, name + 1);
        if (target == JSON_NONE)
                schema_fail(compiler, ref, "$ref %.100s is not in this schema", name);
        return target;
}

/* A circle that the schema is not in is found at the schemas that are in it. */
void schema_check_circle(struct schema_compiler *compiler, uint32_t schema)
{
        uint32_t first = json_member(compiler->json, schema, "$ref"), ref = first;

        for (unsigned hops = 0; ref != JSON_NONE && hops < HOPS_MAX; hops++) {
                uint32_t target = schema_target(compiler, ref);

                if (target == schema) {
                        schema_fail(compiler, first, "the references are a circle");
                        return;
                }
                ref = json_member(compiler->json, target, "$ref");
        }
}
