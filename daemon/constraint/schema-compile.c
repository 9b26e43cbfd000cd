#include "daemon/constraint/json-schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/schema-compiler.h"
#include "daemon/constraint/schema-leaves.h"
#include "daemon/constraint/schema-shape.h"
#include "daemon/constraint/schema-tags.h"
#include "json/reader.h"

#define BRANCHES_MAX 1500u /* of one conjunction */

/* All values of one conjunction. */
struct values {
        uint32_t rule;
        uint32_t term;    /* values that are no containers; of FORM_VALUE: and no strings */
        uint32_t strings; /* of FORM_VALUE */
        unsigned types;
};

/* The strings of a shape, with what is around them. */
static uint32_t quoted(struct schema_compiler *compiler, const struct shape *shape)
{
        struct regex_pool *pool = compiler->pool;
        uint32_t quote = regex_literal(pool, "\"", 1), strings, early;

        if (!schema_is_bare(compiler)) {
                strings = shape_strings(compiler, shape, WRITING_JSON);
                return regex_concat(pool, quote, regex_concat(pool, strings, quote));
        }
        quote = regex_literal(pool, compiler->options.surface->bare_quote.bytes,
                              compiler->options.surface->bare_quote.count);
        strings = shape_strings(compiler, shape, WRITING_PLAIN);
        early = regex_concat(pool, quote, regex_concat(pool, REGEX_BYTE, REGEX_ANY));
        early = regex_concat(pool, REGEX_ANY, early);
        strings = regex_and2(pool, regex_concat(pool, strings, quote), regex_not(pool, early));
        return regex_concat(pool, quote, strings);
}

static void add_leaf(struct schema_compiler *compiler, const struct conjunction *leaf, void *data)
{
        struct values *values = data;
        struct regex_pool *pool = compiler->pool;
        uint32_t terms[4], strings;
        struct shape shape;

        shape_of(compiler, leaf, &shape);
        if (compiler->failed)
                return;
        values->types |= shape.types;
        shape_objects(compiler, &shape, values->rule);
        if (compiler->form == FORM_TAGS)
                return;
        shape_arrays(compiler, &shape, values->rule);
        terms[0] = values->term;
        terms[1] = shape_words(compiler, &shape);
        terms[2] = shape_numbers(compiler, &shape);
        terms[3] = REGEX_NONE;
        if (compiler->form == FORM_VALUE && !schema_is_python(compiler)) {
                strings = shape_strings(compiler, &shape, WRITING_PLAIN);
                values->strings = regex_or2(pool, values->strings, strings);
        } else {
                terms[3] = quoted(compiler, &shape);
        }
        values->term = regex_or(pool, terms, 4);
}

static void compile_next(struct schema_compiler *compiler)
{
        struct known_conjunction known = compiler->known[compiler->compiled++];
        struct conjunction copy = { .count = known.count };
        struct values values = { known.symbol, REGEX_NONE, REGEX_NONE, 0 };
        uint32_t symbol;

        memcpy(copy.elements, compiler->known_elements + known.first,
               known.count * sizeof(uint32_t));
        compiler->branches = BRANCHES_MAX;
        compiler->form = known.form;
        if (known.form == FORM_VALUE)
                values.rule = grammar_rule(compiler->grammar);
        schema_leaves(compiler, copy.elements, copy.count, add_leaf, &values);
        if (compiler->failed || compiler->grammar->failed)
                return;
        if (values.term != REGEX_NONE) {
                symbol = grammar_lexeme(compiler->grammar, values.term);
                grammar_add(compiler->grammar, values.rule, &symbol, 1);
        }
        if (known.form == FORM_VALUE)
                tags_add_value(compiler, known.symbol, values.types, values.strings, values.rule);
}

static uint32_t space_term(struct regex_pool *pool, enum json_space space)
{
        struct byte_set blanks = { 0 };
        uint32_t lines;

        byte_set_add(&blanks, ' ', ' ');
        byte_set_add(&blanks, '\t', '\t');
        if (space == JSON_SPACE_NONE)
                return REGEX_EMPTY;
        if (space == JSON_SPACE_FREE) {
                byte_set_add(&blanks, '\n', '\n');
                byte_set_add(&blanks, '\r', '\r');
                return regex_repeat(pool, regex_set(pool, &blanks), 0, REGEX_FOREVER);
        }
        lines = regex_concat(pool, regex_literal(pool, "\n", 1),
                             regex_repeat(pool, regex_set(pool, &blanks), 0, 20));
        return regex_repeat(pool, regex_or2(pool, regex_literal(pool, " ", 1), lines), 0, 1);
}

static int compile(struct schema_compiler *compiler, uint32_t *ret_symbol)
{
        struct conjunction root = { { ELEMENT(MATCHES, 0) }, 1 };

        compiler->space = space_term(compiler->pool, compiler->options.space);
        *ret_symbol =
                schema_symbol(compiler, &root, compiler->options.tags ? FORM_TAGS : FORM_JSON);
        while (compiler->compiled < compiler->known_count && !compiler->failed &&
               !compiler->grammar->failed && regex_spent(compiler->pool) == REGEX_FINE)
                compile_next(compiler);
        return error_pass(compiler->failed);
}

int json_schema_add(struct grammar *grammar, const char *text, size_t bytes,
                    const struct json_schema_options *options, uint32_t *ret_symbol, char *why,
                    size_t why_bytes)
{
        struct schema_compiler *compiler = calloc(1, sizeof(*compiler));
        struct json_document *json = NULL;
        int r;

        if (!compiler)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        r = json_parse(text, bytes, JSON_SCHEMA_NODES, &json, why, why_bytes);
        if (r == 0) {
                compiler->json = json;
                compiler->grammar = grammar;
                compiler->pool = grammar->pool;
                compiler->options = *options;
                compiler->why = why;
                compiler->why_bytes = why_bytes;
                r = compile(compiler, ret_symbol);
        }
        free(compiler->known);
        free(compiler->known_elements);
        json_free(json);
        free(compiler);
        return error_pass(r);
}

int json_schema_compile(const char *text, size_t bytes, const struct json_schema_options *options,
                        const struct grammar_limits *limits, struct grammar **ret_grammar,
                        char *why, size_t why_bytes)
{
        struct grammar *grammar = grammar_new(limits);
        uint32_t root = SYMBOL_NONE;
        int r;

        if (!grammar)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        r = json_schema_add(grammar, text, bytes, options, &root, why, why_bytes);
        return error_pass(grammar_finish(grammar, r, root, ret_grammar, why, why_bytes));
}
