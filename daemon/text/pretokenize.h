/*
 * Pre-tokenization: cuts a text into pre-tokens.  No token crosses the border of a pre-token.
 *
 * Tokenizers define the cuts by a regular expression, the splitter.  Here each expression is
 * written by hand in C: it gives exactly the same pre-tokens, in linear time on any input.  The
 * input may be any bytes.  Pure; any thread.
 */
#ifndef DAEMON_TEXT_PRETOKENIZE_H
#define DAEMON_TEXT_PRETOKENIZE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/model/vocabulary.h"

/*
 * Returns the length in bytes (at least one) of the first pre-token of a text, which has at least
 * one byte.  *steps grows by the number of characters that were looked at.
 */
size_t pretokenize_next(enum vocabulary_splitter splitter, const char *text, size_t bytes,
                        uint64_t *steps);

#endif
