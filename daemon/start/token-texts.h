/* Token texts: what each token of a model adds to a text, as constraints read it. */
#ifndef DAEMON_START_TOKEN_TEXTS_H
#define DAEMON_START_TOKEN_TEXTS_H

#include <stdint.h>

#include "daemon/constraint/token-trie.h"
#include "daemon/text/tokenizer.h"

/*
 * `vocab` is the width of the model's logits; ids that the tokenizer does not have are without a
 * text.  Control tokens are named by id only.  0 or -ENOMEM.
 */
int token_texts_trie(const struct tokenizer *tokenizer, uint32_t vocab,
                     struct token_trie **ret_trie);

#endif
