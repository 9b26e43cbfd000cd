/* Objects whose members are in tags: struct json_tags.  What differs from JSON is here. */
#ifndef CONSTRAINT_SCHEMA_TAGS_H
#define CONSTRAINT_SCHEMA_TAGS_H

#include "daemon/constraint/schema-compiler.h"

/* Fails if the key cannot stand in a tag, or without quotes on another surface. */
void tags_check_key(struct schema_compiler *compiler, const char *key);
/* All keys that can. */
uint32_t tags_keys(struct schema_compiler *compiler);
/* The two lexemes of a key; its end belongs to the value. */
void tags_set_keys(struct schema_compiler *compiler, uint32_t key, struct grammar_member *member);

/*
 * Adds what follows a key to `rule`: a string, or a value of the rule `json`, each up to the end of
 * the value.  `types` are those of all values, as bits 1 << json_kind.
 */
void tags_add_value(struct schema_compiler *compiler, uint32_t rule, unsigned types,
                    uint32_t strings, uint32_t json);

#endif
