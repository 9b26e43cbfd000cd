/*
 * Detok: the token bytes of one stream in, text that may be shown out.
 *
 * Two things are held back.  The first bytes of a character whose rest has not
 * come: at most three.  The first bytes of what may become a stop string: at
 * most the longest stop string less one.  What is released is in order and
 * whole; a stop string, and everything after it, is never released.  Bytes that
 * can be no part of valid UTF-8 are released as they are.
 *
 * Matching is on bytes, over token borders; where two stop strings end at the
 * same byte, the one that began first cuts.  Engine thread only; memory is given
 * once, nothing is allocated per stream.
 */
#ifndef DAEMON_TEXT_DETOK_H
#define DAEMON_TEXT_DETOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/protocol.h>

#include "daemon/text/tokenizer.h"

#define DETOK_HELD_MAX (SMV_STOP_BYTES_MAX - 1 + 3)

struct detok {
        const struct tokenizer *tokenizer;
        const char *const *stops;
        const uint16_t *stop_bytes;
        uint32_t stop_count;
        uint32_t held_count;
        char held[DETOK_HELD_MAX];
};

enum detok_outcome { DETOK_E_STOP = 1 }; /* a stop string is complete: the stream ends */

/* The stops must outlive the stream. */
void detok_begin(struct detok *detok, const struct tokenizer *tokenizer, const char *const *stops,
                 const uint16_t *stop_bytes, uint32_t stop_count);

/* It goes on where another is, which has the same tokenizer and the same stops: holds what that holds. */
void detok_follow(struct detok *detok, const struct detok *other);

/* ret_text has room for DETOK_HELD_MAX + the tokenizer's piece_max.  0 or DETOK_E_STOP. */
int detok_feed(struct detok *detok, uint32_t id, char *ret_text, size_t *ret_bytes);

/* What is still held, at an end that is not a stop string. */
size_t detok_flush(struct detok *detok, char *ret_text);

#endif
