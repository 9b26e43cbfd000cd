#include "daemon/constraint/choices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/regex-text.h"
#include "json/utf8.h"

int regex_add(struct grammar *grammar, const char *text, size_t bytes, uint32_t *ret_symbol,
              char *why, size_t why_bytes)
{
        uint32_t term = REGEX_NONE;
        int r = regex_text_read(grammar->pool, text, bytes, WRITING_PLAIN, REGEX_WHOLE, &term, why,
                                why_bytes);

        if (r == 0)
                *ret_symbol = grammar_lexeme(grammar, term);
        return error_pass(r);
}

int regex_compile(const char *text, size_t bytes, const struct grammar_limits *limits,
                  struct grammar **ret_grammar, char *why, size_t why_bytes)
{
        struct grammar *grammar = grammar_new(limits);
        uint32_t root = SYMBOL_NONE;
        int r;

        if (!grammar)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        r = regex_add(grammar, text, bytes, &root, why, why_bytes);
        return error_pass(grammar_finish(grammar, r, root, ret_grammar, why, why_bytes));
}

static int compare(const void *one, const void *other)
{
        const struct regex_text *a = one, *b = other;
        uint32_t both = a->count < b->count ? a->count : b->count;
        int order = memcmp(a->bytes, b->bytes, both);

        return order ? order : (a->count > b->count) - (a->count < b->count);
}

static int one_of(struct regex_pool *pool, const struct regex_text *texts, uint32_t count,
                  uint32_t *ret_term, char *why, size_t why_bytes)
{
        struct regex_text *sorted = calloc(count + 1ul, sizeof(*sorted));
        uint32_t kept = 0;

        if (!sorted)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        if (count)
                memcpy(sorted, texts, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), compare);
        for (uint32_t i = 0; i < count; i++)
                if (kept == 0 || compare(&sorted[kept - 1], &sorted[i]) != 0)
                        sorted[kept++] = sorted[i];
        *ret_term = regex_one_of(pool, sorted, kept);
        free(sorted);
        return 0;
}

int choices_add(struct grammar *grammar, const struct regex_text *texts, uint32_t count,
                uint32_t *ret_symbol, char *why, size_t why_bytes)
{
        uint32_t term = REGEX_NONE;
        int r;

        for (uint32_t i = 0; i < count; i++)
                if (utf8_valid(texts[i].bytes, texts[i].count) != texts[i].count)
                        return error_raise(
                                errtext_set(why, why_bytes, -EINVAL, "choice %u is not UTF-8", i));
        r = one_of(grammar->pool, texts, count, &term, why, why_bytes);
        if (r == 0)
                *ret_symbol = grammar_lexeme(grammar, term);
        return error_pass(r);
}

int choices_compile(const struct regex_text *texts, uint32_t count,
                    const struct grammar_limits *limits, struct grammar **ret_grammar, char *why,
                    size_t why_bytes)
{
        struct grammar *grammar = grammar_new(limits);
        uint32_t root = SYMBOL_NONE;
        int r;

        if (!grammar)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        r = choices_add(grammar, texts, count, &root, why, why_bytes);
        return error_pass(grammar_finish(grammar, r, root, ret_grammar, why, why_bytes));
}
