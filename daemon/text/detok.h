/*
 * Detok: turns the tokens of one stream into text that may be shown.
 *
 * It holds back the first bytes of an incomplete character, at most three.  It also holds back
 * bytes that may be the beginning of a stop string, at most the longest stop string less one byte.
 * It releases text in order and in whole characters.  It never releases a stop string or anything
 * after it.  Bytes that cannot be part of valid UTF-8 are released as they are.
 *
 * Stop strings are compared byte by byte and may cross token borders.  The one that ends first in
 * the text ends the stream, also if another one began before it.  Of those that end at the same
 * byte, it is the longest.  So the tokens in which the text comes make no difference.  Engine
 * thread only.  All memory is in struct detok; nothing is allocated per stream.
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
        bool control_text;
        uint32_t stop; /* index of the stop string that ended the stream */
        uint32_t held_count;
        char held[DETOK_HELD_MAX];
};

enum detok_outcome { DETOK_E_STOP = 1 }; /* a stop string is complete: the stream ends */

/*
 * The stops must outlive the stream.  control_text: control tokens are text, too, and stop strings
 * are searched in it.
 */
void detok_begin(struct detok *detok, const struct tokenizer *tokenizer, const char *const *stops,
                 const uint16_t *stop_bytes, uint32_t stop_count, bool control_text);

/*
 * Continues from the state of `other`, which has the same tokenizer and the same stops: copies the
 * bytes that `other` holds back.
 */
void detok_follow(struct detok *detok, const struct detok *other);

/*
 * ret_text has room for DETOK_HELD_MAX + the tokenizer's piece_max.  0; or DETOK_E_STOP, and `stop`
 * is set.
 */
int detok_feed(struct detok *detok, uint32_t id, char *ret_text, size_t *ret_bytes);

/* Releases the bytes still held back; for a stream that did not end at a stop string. */
size_t detok_flush(struct detok *detok, char *ret_text);

#endif
