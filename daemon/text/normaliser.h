/*
 * Normaliser: changes a text before it is cut into pre-tokens, by the steps of a vocabulary.
 *
 * It gives the same text as Hugging Face's `tokenizers`, or SentencePiece.  Bytes that are not part
 * of valid UTF-8 stay as they are.  Read-only after it is opened; any thread may use it.
 */
#ifndef DAEMON_TEXT_NORMALISER_H
#define DAEMON_TEXT_NORMALISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/vocabulary.h"
#include "daemon/text/charsmap.h"
#include "daemon/text/expression.h"

#define NORMALISER_GROWTH_MAX 256u

struct normaliser {
        struct {
                struct expression *expression;
                struct charsmap *rules;
                char *content;
                uint32_t bytes;
                uint8_t kind;
        } steps[VOCABULARY_NORMALS_MAX];
        uint32_t count;
        const struct trie *kept; /* words that NORMAL_RULES leaves as they are, or NULL */
        /* A text of n bytes becomes one of n * growth + prefix bytes at most. */
        uint32_t growth, prefix;
};

/* 0, -EINVAL with the fault in *why, or -ENOMEM. */
int normaliser_open(struct normaliser *ret_normaliser, const struct vocabulary_normal *steps,
                    uint32_t count, char *why, size_t why_bytes);
void normaliser_close(struct normaliser *normaliser); /* all zero is fine */

/*
 * *ret_text: a copy, which the caller frees; NULL if there are no steps.  *steps grows by the work
 * done.  0 or -ENOMEM.
 */
int normaliser_run(const struct normaliser *normaliser, const char *text, size_t bytes,
                   char **ret_text, size_t *ret_bytes, uint64_t *steps);

#endif
