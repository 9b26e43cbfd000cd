/* Failures, and the conjunctions that have a symbol. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/schema-compiler.h"

/* Appends "/key" or "/index" for each step from the root to the node. */
static void print_place(const struct json_document *json, uint32_t node, char *to, size_t size)
{
        uint32_t at = 0;
        size_t used = 0;

        to[0] = 0;
        while (at != node && used + 1 < size) {
                uint32_t child = json_first(json, at), index = 0, next;
                const char *key;

                while ((next = json_next(json, child)) != JSON_NONE && next <= node) {
                        child = next;
                        index++;
                }
                key = json_key(json, child, NULL);
                if (key)
                        used += snprintf(to + used, size - used, "/%.60s", key);
                else
                        used += snprintf(to + used, size - used, "/%u", index);
                at = child;
        }
}

void schema_fail(struct schema_compiler *compiler, uint32_t node, const char *format, ...)
{
        char place[256], what[256];
        va_list args;

        if (compiler->failed)
                return;
        print_place(compiler->json, node, place, sizeof(place));
        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        compiler->failed = error_raise(errtext_set(compiler->why, compiler->why_bytes, -EINVAL,
                                                   "schema, at \"%s\": %s", place, what));
        errtext_one_line(compiler->why);
}

void schema_out_of_memory(struct schema_compiler *compiler)
{
        if (!compiler->failed)
                compiler->failed = error_raise(
                        errtext_set(compiler->why, compiler->why_bytes, -ENOMEM, "out of memory"));
}

void conjunction_add(struct schema_compiler *compiler, struct conjunction *to, uint32_t element)
{
        for (uint32_t i = 0; i < to->count; i++)
                if (to->elements[i] == element)
                        return;
        if (to->count == ELEMENTS_MAX)
                schema_fail(compiler, element_node(element),
                            "more than %u schemas apply to one value", ELEMENTS_MAX);
        else
                to->elements[to->count++] = element;
}

static int compare(const void *one, const void *other)
{
        uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

        return (a > b) - (a < b);
}

static bool grow(struct schema_compiler *compiler, uint32_t more)
{
        if (compiler->known_count == compiler->known_size) {
                uint32_t size = compiler->known_size ? 2 * compiler->known_size : 64;
                void *larger = realloc(compiler->known, size * sizeof(*compiler->known));

                if (!larger)
                        return false;
                compiler->known = larger;
                compiler->known_size = size;
        }
        while (compiler->element_size - compiler->element_count < more) {
                uint32_t size = compiler->element_size ? 2 * compiler->element_size : 1024;
                void *larger =
                        realloc(compiler->known_elements, size * sizeof(*compiler->known_elements));

                if (!larger)
                        return false;
                compiler->known_elements = larger;
                compiler->element_size = size;
        }
        return true;
}

uint32_t schema_symbol(struct schema_compiler *compiler, struct conjunction *conjunction,
                       enum value_form form)
{
        uint32_t hash = 2166136261u + form, *bucket;
        struct known_conjunction *known;

        qsort(conjunction->elements, conjunction->count, sizeof(*conjunction->elements), compare);
        for (uint32_t i = 0; i < conjunction->count; i++)
                hash = (hash ^ conjunction->elements[i]) * 0x9e3779b1u, hash ^= hash >> 15;
        bucket = &compiler->buckets[hash % KNOWN_BUCKETS];
        for (uint32_t at = *bucket; at; at = known->chain) {
                known = &compiler->known[at - 1];
                if (known->count == conjunction->count && known->form == form &&
                    memcmp(compiler->known_elements + known->first, conjunction->elements,
                           known->count * sizeof(uint32_t)) == 0)
                        return known->symbol;
        }
        if (!grow(compiler, conjunction->count)) {
                schema_out_of_memory(compiler);
                return SYMBOL_RULE;
        }
        known = &compiler->known[compiler->known_count++];
        *known = (struct known_conjunction){ compiler->element_count, conjunction->count, form,
                                             grammar_rule(compiler->grammar), *bucket };
        *bucket = compiler->known_count;
        memcpy(compiler->known_elements + known->first, conjunction->elements,
               known->count * sizeof(uint32_t));
        compiler->element_count += known->count;
        return known->symbol;
}

uint32_t schema_count(struct schema_compiler *compiler, uint32_t schema, const char *keyword,
                      uint32_t otherwise)
{
        uint32_t node = schema_keyword(compiler, schema, keyword);
        double real;

        if (node == JSON_NONE)
                return otherwise;
        if (!json_real(compiler->json, node, &real) || real < 0 || real != floor(real)) {
                schema_fail(compiler, node, "it must be a count");
                return otherwise;
        }
        return real < 1e9 ? (uint32_t)real : 1000000000u;
}
