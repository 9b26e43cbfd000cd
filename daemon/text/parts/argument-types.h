/*
 * Argument types: which arguments of a request's tools are strings, by the schemas of the tools.
 *
 * In a dialect with tags a value is plain text, and `12` may be a number or a string.  An argument
 * whose schema allows only strings is always a string.  If its schema also allows null, only the
 * text `null` is something else.  All other arguments, and those of unknown tools, are ANY: they
 * are JSON if they can be read as JSON.
 *
 * A schema is read as far as it says what types a value may have: `type`, `nullable`, `enum`,
 * `const`, `anyOf`, `oneOf`, `allOf`, and `$ref` to another place in the schema of the tool.
 *
 * At most ARGUMENT_TYPES_MAX arguments are known; further ones are ANY.  They are found by a hash
 * of tool and key.  A client could make two of its own arguments look alike, and nothing else.
 *
 * The text worker makes the types, and they do not change.  Any thread may look them up; only the
 * loop counts references.
 */
#ifndef DAEMON_TEXT_PARTS_ARGUMENT_TYPES_H
#define DAEMON_TEXT_PARTS_ARGUMENT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/text/value.h"

#define ARGUMENT_TYPES_MAX 1024u

enum argument_type { ARGUMENT_ANY, ARGUMENT_STRING, ARGUMENT_STRING_OR_NULL };

struct argument_types;

/* `tools` as a template gets them.  0 or -ENOMEM; NULL: all arguments are ANY. */
int argument_types_make(struct value tools, struct argument_types **ret_types);

/* Both take NULL, and return their argument or NULL. */
struct argument_types *argument_types_ref(struct argument_types *types);
struct argument_types *argument_types_unref(struct argument_types *types);

/* The memory that they take; of NULL: 0. */
size_t argument_types_bytes(const struct argument_types *types);

enum argument_type argument_types_find(const struct argument_types *types, const char *tool,
                                       size_t tool_bytes, const char *key, size_t key_bytes);

#endif
