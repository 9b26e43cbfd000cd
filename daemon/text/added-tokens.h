/*
 * Added tokens: finds them in a text, the leftmost first, and of several there the longest.
 *
 * Takes time linear in the text, whatever the tokens are.  wordpiece.h finds its entries by it,
 * too.  Read-only after added_tokens_new(); any thread may use it.
 */
#ifndef DAEMON_TEXT_ADDED_TOKENS_H
#define DAEMON_TEXT_ADDED_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#define ADDED_TOKENS_BYTES_MAX (1u << 20) /* of all added tokens of a vocabulary together */

struct added_tokens;

struct added_token {
        const char *bytes;
        uint32_t count; /* at least 1 */
        uint32_t id;
};

/* Sorts `words`.  If two tokens are the same, the lower id is found.  0 or -ENOMEM. */
int added_tokens_new(struct added_token *words, uint32_t count,
                     struct added_tokens **ret_added_tokens);
struct added_tokens *added_tokens_free(struct added_tokens *added_tokens); /* takes NULL */

/*
 * Called for each byte of a text, from the last to the first.  Takes and returns the state, which
 * is 0 at the start.  *steps grows by the work done.
 */
uint32_t added_tokens_step(const struct added_tokens *added_tokens, uint32_t state, char byte,
                           uint64_t *steps);

/* The id of the longest token that begins at the byte of the last step, or UINT32_MAX. */
uint32_t added_token(const struct added_tokens *added_tokens, uint32_t state, uint32_t *ret_bytes);

#endif
