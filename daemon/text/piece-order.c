#include "daemon/text/piece-order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int compare(const void *a, const void *b, void *tokenizer)
{
        size_t a_bytes, b_bytes;
        const char *one = tokenizer_piece(tokenizer, *(const uint32_t *)a, &a_bytes);
        const char *other = tokenizer_piece(tokenizer, *(const uint32_t *)b, &b_bytes);
        size_t common = a_bytes < b_bytes ? a_bytes : b_bytes;
        int sign = common ? memcmp(one, other, common) : 0;

        if (sign)
                return sign;
        return (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

int piece_order_new(const struct tokenizer *tokenizer, struct piece_order **ret_order)
{
        uint32_t count = tokenizer_vocab(tokenizer);
        struct piece_order *order = malloc(sizeof(*order) + count * sizeof(*order->ids));

        if (!order)
                return error_raise(-ENOMEM);
        order->tokenizer = tokenizer;
        order->count = count;
        for (uint32_t id = 0; id < count; id++)
                order->ids[id] = id;
        qsort_r(order->ids, count, sizeof(*order->ids), compare, (void *)tokenizer);
        *ret_order = order;
        return 0;
}

struct piece_order *piece_order_free(struct piece_order *order)
{
        free(order);
        return NULL;
}

/* Below 0: the piece stands before all that begin with the text; 0: it is one of them. */
static int place(const struct piece_order *order, uint32_t at, const char *text, size_t bytes)
{
        size_t piece_bytes;
        const char *piece = tokenizer_piece(order->tokenizer, order->ids[at], &piece_bytes);
        size_t common = piece_bytes < bytes ? piece_bytes : bytes;
        int sign = common ? memcmp(piece, text, common) : 0;

        return sign ? sign : piece_bytes < bytes ? -1 : 0;
}

/* The first place that is not below `sign`. */
static uint32_t search(const struct piece_order *order, const char *text, size_t bytes, int sign)
{
        uint32_t low = 0, high = order->count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (place(order, middle, text, bytes) < sign)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

void piece_order_find(const struct piece_order *order, const char *text, size_t bytes,
                      uint32_t *ret_first, uint32_t *ret_behind)
{
        assert(bytes);
        *ret_first = search(order, text, bytes, 0);
        *ret_behind = search(order, text, bytes, 1);
}
