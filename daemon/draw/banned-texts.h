/*
 * Banned texts: no token may complete one of them.
 *
 * The text of an answer is compared byte by byte, so it makes no difference in which tokens a
 * banned text would come.  Control tokens have no text.  A text that begins in the prompt is not
 * found.
 */
#ifndef DAEMON_DRAW_BANNED_TEXTS_H
#define DAEMON_DRAW_BANNED_TEXTS_H

#include "daemon/text/piece-order.h"

struct rule_text {
        const char *bytes;
        uint32_t count; /* 1 to SMV_STOP_BYTES_MAX */
};

/* Clears the tokens that have a whole text from the mask. */
void banned_texts_ban_whole(const struct rule_text *texts, uint32_t text_count,
                            const struct piece_order *order, uint32_t *mask);

/* Clears the tokens that would complete a text that has begun in this answer. */
void banned_texts_ban_rest(const struct rule_text *texts, uint32_t text_count,
                           const struct piece_order *order, const uint32_t *answer, uint32_t count,
                           uint32_t *mask);

#endif
