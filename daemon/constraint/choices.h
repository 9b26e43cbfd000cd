/* The constraints that are one expression: a regular expression, or one of some texts. */
#ifndef CONSTRAINT_CHOICES_H
#define CONSTRAINT_CHOICES_H

#include <stddef.h>

#include "daemon/constraint/grammar.h"

/* Both return 0; -EINVAL, -E2BIG or -ENOMEM with a sentence. */

/* The whole text matches the expression (regex-text.h). */
int regex_compile(const char *text, size_t bytes, const struct grammar_limits *limits,
                  struct grammar **ret_grammar, char *why, size_t why_bytes);

/* The text is one of these, which are UTF-8 and not all empty. */
int choices_compile(const struct regex_text *texts, uint32_t count,
                    const struct grammar_limits *limits, struct grammar **ret_grammar, char *why,
                    size_t why_bytes);

#endif
