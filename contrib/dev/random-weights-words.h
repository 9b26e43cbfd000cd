/*
 * A byte-level vocabulary of any size, made without a text to learn from:
 *
 *      0 .. 255    the bytes
 *      256 ..      the tokens that merges make: an earlier token and one letter more.  First all
 *                  pairs of letters, or of a blank and a letter, then each of these with one letter
 *                  more, and so on
 *      the rest    control tokens: the first begins a text, the second ends it
 *
 * So English becomes tokens of three to four letters, which is as long as in real vocabularies.
 */
#ifndef CONTRIB_DEV_RANDOM_WEIGHTS_WORDS_H
#define CONTRIB_DEV_RANDOM_WEIGHTS_WORDS_H

#include <stdint.h>

#include "contrib/dev/gguf-out.h"

/* Tokens, types and merges: words_out() writes three pairs. */
#define WORDS_PAIRS 3u
void words_out(struct out *o, uint32_t vocab, uint32_t controls);

#endif
