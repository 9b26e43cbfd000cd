/*
 * The types that a leaf allows, and its values that are no containers, as expressions.
 *
 * for the files schema-*.c only.
 */
#ifndef CONSTRAINT_SCHEMA_SHAPE_H
#define CONSTRAINT_SCHEMA_SHAPE_H

#include "daemon/constraint/characters.h"
#include "daemon/constraint/schema-compiler.h"

#define LISTS_MAX 64u

struct shape {
        const struct conjunction *leaf;
        unsigned types;            /* bits 1 << json_kind */
        bool integer;              /* numbers are integers */
        bool fraction;             /* numbers are no integers */
        uint32_t lists[LISTS_MAX]; /* `enum`: a value that is no container is in all of them */
        uint32_t list_count;
        uint32_t constant; /* the value that it equals; JSON_NONE: none */
};

/* Which types and lists a leaf has.  Fails if it denies what cannot be denied. */
void shape_of(struct schema_compiler *compiler, const struct conjunction *leaf,
              struct shape *ret_shape);

/* Expressions of all texts of these types; NONE if the shape has no such value. */
uint32_t shape_numbers(struct schema_compiler *compiler, const struct shape *shape);
/* Without the quotes. */
uint32_t shape_strings(struct schema_compiler *compiler, const struct shape *shape,
                       enum writing writing);
uint32_t shape_words(struct schema_compiler *compiler, const struct shape *shape);

/* Rules of all texts of these types; objects in the form that is being compiled. */
void shape_arrays(struct schema_compiler *compiler, const struct shape *shape, uint32_t rule);
void shape_objects(struct schema_compiler *compiler, const struct shape *shape, uint32_t rule);

/* The term of a `format`, without quotes; false: it is not known. */
bool shape_format(struct schema_compiler *compiler, const char *name, enum writing writing,
                  uint32_t *ret_term);

/* True if the element denies this keyword, whose value is its node. */
bool shape_denies(const struct schema_compiler *compiler, uint32_t element, const char *keyword);

#endif
