/*
 * Text to token ids and back.
 *
 * It does what the maker of the vocabulary's own tokenizer does, id by id.  Nothing
 * fails on any input but for memory: every byte string has ids, in time that grows
 * like n log n at worst, and every id below the vocabulary's size has a piece.
 * Where no id is an unknown and nothing was normalised or stripped, the pieces of a
 * text's ids are the text, byte by byte; with tokenizer_leads(), and one blank in front;
 * and but for SentencePiece's own U+2581, which comes back as the blank that it is there.
 *
 * A text is text: the control tokens of a chat are found only in those parts of it
 * that the caller names, because what a user writes must not end his turn.  That is all
 * that parts do: what is between two control tokens is encoded as one, whoever wrote it.
 *
 * Read-only after it is opened; any thread.  What an encoding needs to work on it
 * allocates, and frees before it returns.
 */
#ifndef DAEMON_TEXT_TOKENIZER_H
#define DAEMON_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/vocabulary.h"

struct tokenizer;

/*
 * Copies what it needs of the vocabulary.  vocab: how many ids the model has; those
 * without an entry have no text.  0, -EINVAL with the fault in *why, -ENOMEM.
 */
int tokenizer_open(const struct vocabulary *vocabulary, uint32_t vocab,
                   struct tokenizer **ret_tokenizer, char *why, size_t why_bytes);
/* The kind VOCABULARY_BYTES, from nothing.  vocab: at least 256.  0, -EINVAL or -ENOMEM. */
int tokenizer_open_bytes(uint32_t vocab, struct tokenizer **ret_tokenizer);
struct tokenizer *tokenizer_close(struct tokenizer *tokenizer);

uint32_t tokenizer_vocab(const struct tokenizer *tokenizer);
size_t tokenizer_piece_max(const struct tokenizer *tokenizer); /* bytes of the longest piece */

/* A text encoded in pieces, cut anywhere, has the ids it has as a whole. */
bool tokenizer_divisible(const struct tokenizer *tokenizer);

/* A blank is put before a text: of the pieces of a whole text, the first blank is not its own. */
bool tokenizer_leads(const struct tokenizer *tokenizer);

/* No text of so many bytes has more ids than this. */
size_t tokenizer_ids_max(const struct tokenizer *tokenizer, size_t text_bytes);

struct text_part {
        size_t begin, end;
};
static const struct text_part text_whole = { 0, SIZE_MAX };

/* How a text is to be encoded, and how much work that was. */
struct encoding {
        /* Control tokens, as they are written, are found where they lie wholly in one of these. */
        const struct text_part *controls; /* in order, apart, none empty */
        size_t control_count;
        bool (*cancelled)(void *arg); /* asked now and then; NULL: it never is */
        void *arg;
        uint64_t steps;  /* out: grows by the work done, for those who hold it against the text */
        uint64_t looked; /* its own */
};

/*
 * ret_ids has room for tokenizer_ids_max().  how may be NULL: nothing special.  A text
 * has less than 1 GiB.  0 and their count; -ENOMEM; -ECANCELED.
 */
int tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t text_bytes,
                     struct encoding *how, uint32_t *ret_ids, size_t *ret_count);

/* The bytes of one id, possibly none; they live as long as the tokenizer. */
const char *tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, size_t *ret_bytes);

/* For its parts: it is time to look, and it is cancelled. */
static inline bool encoding_cancelled(struct encoding *how)
{
        if (how->steps - how->looked < 1u << 16)
                return false;
        how->looked = how->steps;
        return how->cancelled && how->cancelled(how->arg);
}

#endif
