/*
 * Places in a text: where its last tokens occurred before, as far as a bounded memory reaches.
 *
 * The text is a ring of tokens, to which more are appended; the oldest give way.  Each token has a
 * position, which grows by one from token to token and is never used twice.  A place is a position
 * together with the tokens before it: it is where a text that ends with those tokens goes on.
 *
 * Two tables of hashes have the latest place behind PLACES_LONG tokens and behind PLACES_SHORT
 * tokens.  From the latter a chain leads to earlier places, of which a few are tried.  A table is
 * overwritten where hashes collide, so a place may be missed.  But none is wrong: the tokens are
 * compared, and only those of the text that are still there.
 *
 * Appending copies tokens.  They are indexed by a call of its own, which takes a part of them, and
 * has constant time for each.  So has a search.  All memory is allocated by places_new().
 */
#ifndef DAEMON_DRAFT_PLACES_H
#define DAEMON_DRAFT_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACES_SHORT 3u
#define PLACES_LONG  8u
#define PLACES_ALIKE 32u        /* tokens before a place that are compared, at most */
#define PLACES_GAP   UINT32_MAX /* no token: between texts that do not follow each other */

struct places;

/* The least power of two that is not below this. */
static inline uint32_t places_power(uint32_t tokens)
{
        uint32_t power = 1;

        while (power < tokens)
                power *= 2;
        return power;
}

/* 16 for each token, if they are a power of two; at most 24; and some more. */
size_t places_bytes(uint32_t tokens);
/*
 * For a text of at most so many tokens, from position 0 on.  If the number is a power of two, more
 * may be appended, and the text may begin at any position.  0 or -ENOMEM.
 */
int places_new(uint32_t tokens, struct places **ret_places);
struct places *places_free(struct places *places); /* takes NULL */

/* Forgets the text.  The next begins at this position. */
void places_begin(struct places *places, uint64_t position);
void places_append(struct places *places, const uint32_t *tokens, uint32_t count);
/* Indexes up to `most` tokens, the oldest first.  Returns how many are not indexed yet. */
uint32_t places_index(struct places *places, uint32_t most);

/* The position of the next token to be appended. */
uint64_t places_end(const struct places *places);
/*
 * The token at this position; PLACES_GAP: none is there, because it was not appended yet, or
 * because it gave way.
 */
uint32_t places_token(const struct places *places, uint64_t position);
/* Up to `most` tokens from this position to the end of the text, or a gap.  Returns how many. */
uint32_t places_read(const struct places *places, uint64_t position, uint32_t most,
                     uint32_t *ret_tokens);

/* How many of the `count` tokens before `end` are those before this position. */
uint32_t places_alike(const struct places *places, uint64_t position, const uint32_t *end,
                      uint32_t count);
/*
 * Of the places [from, to), the first of those whose tokens before it are most like those before
 * `end`.  It compares all, without the index.  Returns how many tokens are alike; 0: none.
 */
uint32_t places_scan(const struct places *places, uint64_t from, uint64_t to, const uint32_t *end,
                     uint32_t count, uint64_t *ret_position);
/*
 * Finds the place whose tokens before it are most like those before `end`, of which there are
 * `count`.  Of equal ones it is the next behind `after`, or else the latest.  Returns how many
 * tokens are alike: 0 (there is no place), or PLACES_SHORT to PLACES_ALIKE.
 */
uint32_t places_find(const struct places *places, const uint32_t *end, uint32_t count,
                     uint64_t after, uint64_t *ret_position);

#endif
