/*
 * Descriptions: constraints as requests write them, in JSON.  An object with one of these members:
 *
 *      "json"     true: any value of JSON
 *      "schema"   a JSON Schema (json-schema.h)
 *      "regex"    a text: a regular expression, which the whole answer matches (regex-text.h)
 *      "grammar"  a text: a grammar in GBNF (gbnf.h)
 *      "choices"  a list of texts, one of which the answer is
 *
 * and, beside "json" and "schema":
 *
 *      "space"      "one" (the default), "none" or "free": see enum json_space
 *      "any_order"  true: members of objects may come in any order
 */
#ifndef CONSTRAINT_DESCRIPTION_H
#define CONSTRAINT_DESCRIPTION_H

#include "daemon/constraint/grammar.h"

#define DESCRIPTION_CHOICES_MAX 100000u

/* Returns 0; -EINVAL, -E2BIG or -ENOMEM with a sentence, which says where. */
int description_compile(const char *text, size_t bytes, const struct grammar_limits *limits,
                        struct grammar **ret_grammar, char *why, size_t why_bytes);

#endif
