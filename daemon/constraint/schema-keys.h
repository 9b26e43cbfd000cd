/*
 * The keys of an object: which ones schemas name, match by a pattern, require, forbid or need.
 *
 * for the files schema-*.c only.
 */
#ifndef CONSTRAINT_SCHEMA_KEYS_H
#define CONSTRAINT_SCHEMA_KEYS_H

#include "daemon/constraint/schema-shape.h"

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
        struct key *keys, none; /* `none` stands for a key if the compiler cannot go on */
        uint32_t key_count, key_size;
        struct key_pattern patterns[PATTERNS_MAX];
        uint32_t pattern_count;
        uint32_t names; /* what propertyNames says; ANY: nothing */
        uint32_t min, max;
        bool names_keys, speaks_of_others; /* a schema does, by these keywords */
        bool closed;                       /* it has no other keys than those that are named */
        uint32_t needs[2 * NEEDS_MAX], need_count;
};
static inline enum writing key_writing(const struct schema_compiler *compiler)
{
        return compiler->form == FORM_TAGS || schema_is_bare(compiler) ? WRITING_PLAIN
                                                                       : WRITING_JSON;
}

/* Reads all elements of the shape.  On a failure, too, object_keys_deinit() frees what it made. */
void object_keys_read(struct schema_compiler *compiler, const struct shape *shape,
                      struct object_shape *ret_object);
void object_keys_deinit(struct object_shape *object);

#endif
