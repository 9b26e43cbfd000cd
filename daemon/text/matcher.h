/*
 * Matcher: finds added tokens in a text; the leftmost, and there the longest.
 *
 * Linear in the text, whatever the tokens are.  Read-only after opening; any thread.
 */
#ifndef DAEMON_TEXT_MATCHER_H
#define DAEMON_TEXT_MATCHER_H

#include <stddef.h>
#include <stdint.h>

#define MATCHER_BYTES_MAX (1u << 20) /* of all its tokens */

struct matcher;

struct matcher_word {
        const char *bytes;
        uint32_t count; /* at least 1 */
        uint32_t id;
};

/* Sorts the words; where two are the same, the lower id is found.  0 or -ENOMEM. */
int matcher_new(struct matcher_word *words, uint32_t count, struct matcher **ret_matcher);
struct matcher *matcher_free(struct matcher *matcher); /* takes NULL */

/* Goes backwards over a text, a byte at a time: the state it is in, 0 at the start. */
uint32_t matcher_step(const struct matcher *matcher, uint32_t state, char byte, uint64_t *steps);

/* The longest word that begins at the byte just taken: its id, or UINT32_MAX. */
uint32_t matcher_word(const struct matcher *matcher, uint32_t state, uint32_t *ret_bytes);

#endif
