/*
 * Shared by the parts of the compiler for JSON Schema (the files schema-*.c).
 *
 * An *element* is one demand on a value: that it matches a schema, or does not, and a few more that
 * schemas need.  A *conjunction* is a sorted list of elements, and stands for all values that meet
 * all of them.  Each conjunction is a symbol of the grammar.  So schemas are merged as sets, and
 * only when it is compiled does a conjunction look at keywords.
 */
#ifndef CONSTRAINT_SCHEMA_COMPILER_H
#define CONSTRAINT_SCHEMA_COMPILER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/constraint/grammar.h"
#include "daemon/constraint/json-schema.h"
#include "json/document.h"

#define ELEMENTS_MAX 256u

enum element_kind {
        MATCHES,       /* the schema at this node */
        DIFFERS,       /* does not match the schema */
        DENIES,        /* is of the type that the keyword is about, and does not meet it */
        IS,            /* equals this value: an array or an object */
        LACKS,         /* has no member of this key, if it is an object; the node is the key's */
        HAS,           /* is an object with such a member */
        MISSES,        /* is an object without such a member */
        HAS_DIFFERENT, /* is an object with a member of this node's key, which differs from it */
        /* The rest are choices: schema-leaves.c takes them apart, and no leaf has them. */
        CHOOSE_ANY,       /* anyOf */
        CHOOSE_ONE,       /* oneOf */
        CHOOSE_IF,        /* of this schema */
        CHOOSE_LISTED,    /* enum, with arrays or objects */
        CHOOSE_DEPENDENT, /* a member of dependentSchemas */
};

#define ELEMENT(kind, node) ((uint32_t)(kind) << 28 | (node))

static inline enum element_kind element_kind(uint32_t element)
{
        return element >> 28;
}

static inline uint32_t element_node(uint32_t element)
{
        return element & 0xfffffff;
}

struct conjunction {
        uint32_t elements[ELEMENTS_MAX];
        uint32_t count;
};

/*
 * How the values of a conjunction are written.  FORM_TAGS is an object whose members are in tags.
 * FORM_VALUE is the value of such a member, from the end of its key to the end of the value.
 */
enum value_form {
        FORM_JSON,
        FORM_TAGS,
        FORM_VALUE,
};

/* A conjunction that has a symbol; those behind `compiled` wait. */
struct known_conjunction {
        uint32_t first, count; /* in `known_elements` */
        enum value_form form;
        uint32_t symbol, chain;
};

#define KNOWN_BUCKETS 4096u

struct schema_compiler {
        const struct json_document *json;
        struct grammar *grammar;
        struct regex_pool *pool;
        struct json_schema_options options;
        uint32_t space; /* the term between two signs */
        struct known_conjunction *known;
        uint32_t known_count, known_size, compiled;
        uint32_t *known_elements, element_count, element_size;
        uint32_t buckets[KNOWN_BUCKETS];
        enum value_form form; /* of the conjunction that is being compiled */
        uint32_t branches;    /* that may still be taken: anyOf and the like multiply */
        char *why;
        size_t why_bytes;
        int failed; /* the first failure, with a sentence in *why */
};

static inline bool schema_is_python(const struct schema_compiler *compiler)
{
        return compiler->options.surface && compiler->options.surface->python;
}

static inline bool schema_is_bare(const struct schema_compiler *compiler)
{
        return compiler->options.surface && compiler->options.surface->bare_quote.count;
}

/* Notes a failure at a node, "/properties/a: ...". */
__attribute__((format(printf, 3, 4))) void schema_fail(struct schema_compiler *compiler,
                                                       uint32_t node, const char *format, ...);
void schema_out_of_memory(struct schema_compiler *compiler);

/* Adds an element, if it is not there. */
void conjunction_add(struct schema_compiler *compiler, struct conjunction *to, uint32_t element);
/* The symbol of a conjunction, which is sorted here. */
uint32_t schema_symbol(struct schema_compiler *compiler, struct conjunction *conjunction,
                       enum value_form form);

/* The value of a keyword; JSON_NONE if there is none. */
static inline uint32_t schema_keyword(const struct schema_compiler *compiler, uint32_t schema,
                                      const char *keyword)
{
        return json_member(compiler->json, schema, keyword);
}

/* A count that is a keyword's value, at most REGEX_FOREVER - 1; `otherwise` if it is not there. */
uint32_t schema_count(struct schema_compiler *compiler, uint32_t schema, const char *keyword,
                      uint32_t otherwise);

#endif
