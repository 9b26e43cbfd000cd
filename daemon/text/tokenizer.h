/*
 * Text to token ids and back.
 *
 * It gives the same ids as the tokenizer that the vocabulary was made for.  Only a lack of memory
 * can make it fail.  It takes O(n log n) time at worst; with scores, O(n) times the bytes of the
 * longest entry.  Every id below the vocabulary's size has a piece.
 *
 * Bytes without a token become the unknown token, or nothing if there is none.  If this did not
 * happen, and nothing was normalised, stripped or dropped between pre-tokens, the joined pieces of
 * a text's ids are the text, byte by byte.  There are two exceptions.  With tokenizer_adds_blank(),
 * one blank is in front.  SentencePiece writes a blank as U+2581, so a U+2581 in the text comes
 * back as a blank.
 *
 * A vocabulary with a border of words drops the blanks between them, and its pieces put one blank
 * there instead: in front of a word, or behind it.  With BORDER_FRONT the joined pieces are what
 * the decoder of Hugging Face's library gives, with a blank in front if they begin with a word.
 * That decoder writes the mark of a first piece that continues a word; these pieces do not.  With
 * BORDER_BEHIND a blank is also behind the last word, which that decoder leaves out.
 *
 * Control tokens are found only in those parts of a text that the caller names.  Otherwise the
 * text of a user could end the user's turn.  Parts do nothing else: the text between two control
 * tokens is encoded as a whole, even if a part begins or ends in it.
 *
 * Read-only after it is opened; any thread may use it.  An encoding allocates its working memory
 * and frees it before it returns.
 */
#ifndef DAEMON_TEXT_TOKENIZER_H
#define DAEMON_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/vocabulary.h"
#include "daemon/text/encoding.h"

struct tokenizer;

/*
 * Copies what it needs of the vocabulary.  vocab: how many ids the model has; ids without an entry
 * have no text.  0, -EINVAL with the fault in *why, -ENOMEM.
 */
int tokenizer_open(const struct vocabulary *vocabulary, uint32_t vocab,
                   struct tokenizer **ret_tokenizer, char *why, size_t why_bytes);
/*
 * A tokenizer of the kind VOCABULARY_BYTES, which needs no vocabulary.  vocab: at least 256.
 * 0, -EINVAL or -ENOMEM.
 */
int tokenizer_open_bytes(uint32_t vocab, struct tokenizer **ret_tokenizer);
struct tokenizer *tokenizer_close(struct tokenizer *tokenizer);

uint32_t tokenizer_vocab(const struct tokenizer *tokenizer);
/* Bytes of the longest spelling; no piece is longer. */
size_t tokenizer_piece_max(const struct tokenizer *tokenizer);

/* True if a text that is cut anywhere and encoded part by part has the same ids as the whole. */
bool tokenizer_divisible(const struct tokenizer *tokenizer);

/*
 * True if encoding puts a blank before a text.  Then the first blank in the pieces of a whole text
 * is not part of the text.
 */
bool tokenizer_adds_blank(const struct tokenizer *tokenizer);

/* No text of `text_bytes` bytes has more ids than this. */
size_t tokenizer_ids_max(const struct tokenizer *tokenizer, size_t text_bytes);

/*
 * ret_ids has room for tokenizer_ids_max() ids.  how may be NULL: no options.  A text has less than
 * 1 GiB.  0 and the number of ids; -ENOMEM; -ECANCELED.
 */
int tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t text_bytes,
                     struct encoding *how, uint32_t *ret_ids, size_t *ret_count);

/*
 * The text of one id, possibly none: control tokens and the unknown token are not text.  It lives
 * as long as the tokenizer.
 */
const char *tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, size_t *ret_bytes);

/* The same, but a token that is not text has the bytes by which the vocabulary writes it. */
const char *tokenizer_spelling(const struct tokenizer *tokenizer, uint32_t id, size_t *ret_bytes);

/* An id without an entry is unused. */
enum entry_kind tokenizer_kind(const struct tokenizer *tokenizer, uint32_t id);

#endif
