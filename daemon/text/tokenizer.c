#include "daemon/text/tokenizer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/error.h"

#define BYTES 256u

struct tokenizer {
        uint32_t vocab;
        char pieces[BYTES]; /* the piece of id i is the one byte at i */
};

int tokenizer_open_bytes(uint32_t vocab, struct tokenizer **ret_tokenizer)
{
        struct tokenizer *tokenizer;

        if (vocab < BYTES)
                return error_raise(-EINVAL);
        tokenizer = malloc(sizeof(*tokenizer));
        if (!tokenizer)
                return error_raise(-ENOMEM);
        tokenizer->vocab = vocab;
        for (uint32_t i = 0; i < BYTES; i++)
                tokenizer->pieces[i] = (char)i;
        *ret_tokenizer = tokenizer;
        return 0;
}

struct tokenizer *tokenizer_close(struct tokenizer *tokenizer)
{
        free(tokenizer);
        return NULL;
}

uint32_t tokenizer_vocab(const struct tokenizer *tokenizer)
{
        return tokenizer->vocab;
}

size_t tokenizer_piece_max(const struct tokenizer *tokenizer)
{
        return sizeof(tokenizer->pieces[0]);
}

bool tokenizer_divisible(const struct tokenizer *tokenizer)
{
        (void)tokenizer;
        return true;
}

size_t tokenizer_ids_max(const struct tokenizer *tokenizer, size_t text_bytes)
{
        (void)tokenizer;
        return text_bytes;
}

size_t tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t text_bytes,
                        uint32_t *ret_ids)
{
        (void)tokenizer;
        for (size_t i = 0; i < text_bytes; i++)
                ret_ids[i] = (uint8_t)text[i];
        return text_bytes;
}

const char *tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, size_t *ret_bytes)
{
        assert(id < tokenizer->vocab);
        *ret_bytes = id < BYTES;
        return id < BYTES ? &tokenizer->pieces[id] : tokenizer->pieces;
}
