/*
 * Splitter: cuts a text into pre-tokens, which no token crosses.
 *
 * Makers of tokenizers write it as a regular expression; these are done by hand,
 * to the letter, in linear time on any input.  Any bytes may come in.  Pure; any
 * thread.
 */
#ifndef DAEMON_TEXT_SPLIT_H
#define DAEMON_TEXT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/vocabulary.h"

/*
 * How many bytes (at least one) the first pre-token of a text of at least one byte
 * has.  *steps grows by the characters that were looked at.
 */
size_t split_next(enum vocabulary_splitter splitter, const char *text, size_t bytes,
                  uint64_t *steps);

#endif
