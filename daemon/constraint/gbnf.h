/*
 * Reads grammars in GBNF, the form that llama.cpp has: rules `name ::= ...`, of which `root` is the
 * first; "literals", [classes], ".", (groups), "|", "*", "+", "?", "{m,n}", comments from "#" on.
 * `<[12]>` is the control token with this number.  Left recursion is allowed.
 *
 * Refused: a token by name (`<name>`), a token that is excluded (`!<...>`), a rule that is named
 * and not defined or defined twice, and more than GBNF_RULES rules.
 *
 * Rules that are not recursive become expressions, which read fastest.
 */
#ifndef CONSTRAINT_GBNF_H
#define CONSTRAINT_GBNF_H

#include <stddef.h>

#include "daemon/constraint/grammar.h"

#define GBNF_RULES 10000u
#define GBNF_BYTES (1u << 20)

/*
 * Adds the rules of a text to a grammar; *ret_symbol is its `root`.  Returns 0; -EINVAL or -ENOMEM
 * with a sentence, which has a line where there is one.
 */
int gbnf_add(struct grammar *grammar, const char *text, size_t bytes, uint32_t *ret_symbol,
             char *why, size_t why_bytes);

/* A grammar of this text alone.  Returns 0; -EINVAL, -E2BIG or -ENOMEM with a sentence. */
int gbnf_compile(const char *text, size_t bytes, const struct grammar_limits *limits,
                 struct grammar **ret_grammar, char *why, size_t why_bytes);

#endif
