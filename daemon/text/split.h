/*
 * Splitter: cuts a text into pre-tokens.  No token crosses the border of a pre-token.
 *
 * Tokenizers define it by a regular expression.  Here each expression is written by hand in C:
 * it gives exactly the same pre-tokens, in linear time on any input.  The input may be any bytes.
 * Pure; any thread.
 */
#ifndef DAEMON_TEXT_SPLIT_H
#define DAEMON_TEXT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/vocabulary.h"

/*
 * Returns the length in bytes (at least one) of the first pre-token of a text, which has at least
 * one byte.  *steps grows by the number of characters that were looked at.
 */
size_t split_next(enum vocabulary_splitter splitter, const char *text, size_t bytes,
                  uint64_t *steps);

#endif
