/* The grammar of a description alone, in which no mark is a control token. */
#ifndef TESTS_DESCRIPTION_GRAMMAR_H
#define TESTS_DESCRIPTION_GRAMMAR_H

#include "daemon/constraint/description.h"

static inline uint32_t description_no_token(const void *arg, const char *text, size_t bytes)
{
        (void)arg;
        (void)text;
        (void)bytes;
        return UINT32_MAX;
}

/* Returns 0; -EINVAL, -E2BIG or -ENOMEM with a sentence. */
static inline int description_grammar(const char *text, size_t bytes,
                                      const struct grammar_limits *limits,
                                      struct grammar **ret_grammar, char *why, size_t why_bytes)
{
        const struct description_tokens tokens = { description_no_token, NULL };
        struct description description;
        int r = description_open(text, bytes, &tokens, &description, why, why_bytes);

        if (r)
                return r;
        r = structure_compile(&description.root, limits, ret_grammar, why, why_bytes);
        if (r)
                description_explain(&description, "", why, why_bytes);
        description_close(&description);
        return r;
}

#endif
