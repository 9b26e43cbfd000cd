/*
 * Repeats: which tokens would continue a repetition.  Pure functions of the tokens before.
 */
#ifndef DAEMON_DRAW_REPEATS_H
#define DAEMON_DRAW_REPEATS_H

#include "daemon/draw/rules.h"

/* A token, and how many of the last tokens occurred before it earlier. */
typedef void repeat_found(void *arg, uint32_t token, uint32_t length);

/*
 * Calls `found` for each place in the window whose length is at least dry_allowed, with the length
 * that rules.h defines for that place.  A token may be found several times.
 */
void repeats_find(const struct rules *rules, const uint32_t *tokens, uint32_t count,
                  repeat_found *found, void *arg);
/* What `after` grows by, for this length. */
double repeats_penalty(const struct penalties *penalties, uint32_t length);

/* Clears the tokens that no_repeat_ngram bans from `mask`. */
void repeats_ban(const struct rules *rules, const uint32_t *tokens, uint32_t count, uint32_t *mask);

#endif
