/*
 * Takes a conjunction apart: allOf and $ref add elements, anyOf and the like choose.
 *
 * Each way to choose is a *leaf*: a conjunction without choices, whose keywords can be compiled.
 * Branches of oneOf that are not provably apart exclude each other as elements.
 */
#ifndef CONSTRAINT_SCHEMA_LEAVES_H
#define CONSTRAINT_SCHEMA_LEAVES_H

#include "daemon/constraint/schema-compiler.h"

/* Calls `use` for each leaf.  Elements that are decided (true, or references) are not in it. */
void schema_leaves(struct schema_compiler *compiler, const uint32_t *elements, uint32_t count,
                   void (*each)(struct schema_compiler *compiler, const struct conjunction *leaf,
                                void *data),
                   void *data);

#endif
