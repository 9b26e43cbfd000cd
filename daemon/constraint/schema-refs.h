/* References within a schema, and its keywords; for the files schema-*.c only. */
#ifndef CONSTRAINT_SCHEMA_REFS_H
#define CONSTRAINT_SCHEMA_REFS_H

#include "daemon/constraint/schema-compiler.h"

/* The node that a `$ref` names; JSON_NONE with a failure if it is not in this document. */
uint32_t schema_target(struct schema_compiler *compiler, uint32_t ref);

/* Fails if the `$ref` of this schema leads back to it by references alone: it means nothing. */
void schema_check_circle(struct schema_compiler *compiler, uint32_t schema);

/* Fails unless every keyword of this schema, an object, is known and enforced. */
void schema_check_keywords(struct schema_compiler *compiler, uint32_t schema);

/* True for keywords that only describe. */
bool schema_describes(const char *keyword);

#endif
