/* Whether two schemas have no value in common; for schema-leaves.c only. */
#ifndef CONSTRAINT_SCHEMA_APART_H
#define CONSTRAINT_SCHEMA_APART_H

#include "daemon/constraint/schema-compiler.h"

/*
 * True only if that is certain: their types differ, their listed values do, or both require a
 * member whose listed values differ.
 */
bool schemas_apart(struct schema_compiler *compiler, uint32_t one, uint32_t other);

/* The types of a `type`, as bits 1 << json_kind; all if it is absent.  An integer is a number. */
unsigned schema_types(const struct json_document *json, uint32_t type, bool *ret_integer);

#endif
