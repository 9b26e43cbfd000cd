/*
 * Matcher: finds added tokens in a text: the leftmost, and of several there the longest.
 *
 * Takes time linear in the text, whatever the tokens are.  Read-only after matcher_new(); any
 * thread may use it.
 */
#ifndef DAEMON_TEXT_MATCHER_H
#define DAEMON_TEXT_MATCHER_H

#include <stddef.h>
#include <stdint.h>

#define MATCHER_BYTES_MAX (1u << 20) /* of all its tokens together */

struct matcher;

struct matcher_word {
        const char *bytes;
        uint32_t count; /* at least 1 */
        uint32_t id;
};

/* Sorts `words`.  If two words are the same, the lower id is found.  0 or -ENOMEM. */
int matcher_new(struct matcher_word *words, uint32_t count, struct matcher **ret_matcher);
struct matcher *matcher_free(struct matcher *matcher); /* takes NULL */

/*
 * Called for each byte of a text, from the last to the first.  Takes and returns the state, which
 * is 0 at the start.  *steps grows by the work done.
 */
uint32_t matcher_step(const struct matcher *matcher, uint32_t state, char byte, uint64_t *steps);

/* The id of the longest word that begins at the byte of the last step, or UINT32_MAX. */
uint32_t matcher_word(const struct matcher *matcher, uint32_t state, uint32_t *ret_bytes);

#endif
