/* The constraints that are one expression: a regular expression, or one of some texts. */
#ifndef CONSTRAINT_CHOICES_H
#define CONSTRAINT_CHOICES_H

#include <stddef.h>

#include "daemon/constraint/grammar.h"

/*
 * Two of these add to a grammar, and *ret_symbol is what they add.  Two make a grammar of their
 * own.  All return 0; -EINVAL, -E2BIG or -ENOMEM with a sentence.
 */

/* The whole text matches the expression (regex-text.h). */
int regex_add(struct grammar *grammar, const char *text, size_t bytes, uint32_t *ret_symbol,
              char *why, size_t why_bytes);
int regex_compile(const char *text, size_t bytes, const struct grammar_limits *limits,
                  struct grammar **ret_grammar, char *why, size_t why_bytes);

/* The text is one of these, which are UTF-8. */
int choices_add(struct grammar *grammar, const struct regex_text *texts, uint32_t count,
                uint32_t *ret_symbol, char *why, size_t why_bytes);
int choices_compile(const struct regex_text *texts, uint32_t count,
                    const struct grammar_limits *limits, struct grammar **ret_grammar, char *why,
                    size_t why_bytes);

#endif
