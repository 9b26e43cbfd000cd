#include "daemon/start/token-texts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

int token_texts_trie(const struct tokenizer *tokenizer, uint32_t vocab,
                     struct token_trie **ret_trie)
{
        struct token_text *texts = calloc(vocab + 1ul, sizeof(*texts));
        uint32_t *controls = calloc(vocab + 1ul, sizeof(*controls)), count = 0;
        struct token_trie *trie = NULL;

        for (uint32_t i = 0; texts && controls && i < vocab && i < tokenizer_vocab(tokenizer);
             i++) {
                size_t bytes = 0;

                texts[i].bytes = tokenizer_piece(tokenizer, i, &bytes);
                texts[i].count = (uint32_t)bytes;
                if (tokenizer_kind(tokenizer, i) == ENTRY_CONTROL)
                        controls[count++] = i;
        }
        if (texts && controls)
                trie = token_trie_new(texts, vocab, controls, count);
        free(texts);
        free(controls);
        if (!trie)
                return error_raise(-ENOMEM);
        *ret_trie = trie;
        return 0;
}
