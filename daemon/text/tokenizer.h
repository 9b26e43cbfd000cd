/*
 * Text to token ids and back.
 *
 * Read-only after it is opened; any thread.  Today there is one kind, `bytes`:
 * id 0..255 is that byte, ids above it are special and have no text.  Nothing
 * fails on any input: every byte string has ids, and every id below the
 * vocabulary's size has a piece.
 */
#ifndef DAEMON_TEXT_TOKENIZER_H
#define DAEMON_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

/* vocab: at least 256.  0, -EINVAL or -ENOMEM. */
int tokenizer_open_bytes(uint32_t vocab, struct tokenizer **ret_tokenizer);
struct tokenizer *tokenizer_close(struct tokenizer *tokenizer);

uint32_t tokenizer_vocab(const struct tokenizer *tokenizer);
size_t tokenizer_piece_max(const struct tokenizer *tokenizer); /* bytes of the longest piece */

/* A text encoded in pieces, cut anywhere, has the ids it has as a whole. */
bool tokenizer_divisible(const struct tokenizer *tokenizer);

/* No text of so many bytes has more ids than this. */
size_t tokenizer_ids_max(const struct tokenizer *tokenizer, size_t text_bytes);

/* ret_ids has room for tokenizer_ids_max(); returns their count. */
size_t tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t text_bytes,
                        uint32_t *ret_ids);

/* The bytes of one id, possibly none; they live as long as the tokenizer. */
const char *tokenizer_piece(const struct tokenizer *tokenizer, uint32_t id, size_t *ret_bytes);

#endif
