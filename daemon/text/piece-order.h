/*
 * The tokens of a vocabulary in the order of their pieces, compared byte by byte.  So the tokens
 * whose pieces begin with a given text stand side by side.  Read-only after it is made.
 */
#ifndef DAEMON_TEXT_PIECE_ORDER_H
#define DAEMON_TEXT_PIECE_ORDER_H

#include "daemon/text/tokenizer.h"

struct piece_order {
        const struct tokenizer *tokenizer; /* outlives it */
        uint32_t count;
        uint32_t ids[];
};

int piece_order_new(const struct tokenizer *tokenizer, struct piece_order **ret_order);
struct piece_order *piece_order_free(struct piece_order *order); /* takes NULL */

/* ids[*ret_first .. *ret_behind) are the tokens that begin with these bytes; `bytes` is above 0. */
void piece_order_find(const struct piece_order *order, const char *text, size_t bytes,
                      uint32_t *ret_first, uint32_t *ret_behind);

#endif
