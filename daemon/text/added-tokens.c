/*
 * An Aho-Corasick automaton over the words spelt backwards, which reads the text from its end.
 *
 * Forwards, such an automaton knows which words end at its position.  To find the longest word
 * that begins at a position, it would have to read ahead and come back.  A word such as "aaaa...b"
 * makes that quadratic.  Backwards, it knows which words *begin* at its position, and the deepest
 * of them is the longest.
 *
 * The nodes are in the order of a breadth-first walk.  So the children of a node are adjacent,
 * sorted by their byte, and the fall-back of a node has a lower index than the node.
 */
#include "daemon/text/added-tokens.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct node {
        uint32_t first_child;
        /* the node of the longest proper suffix of the string of this node that has a node */
        uint32_t fall;
        /* of the longest word that is a suffix of the string of this node, or UINT32_MAX */
        uint32_t id;
        uint32_t bytes; /* of that word */
        uint16_t child_count;
        uint8_t byte;
};

struct added_tokens {
        uint32_t node_count;
        uint32_t first[256]; /* the root's children, by byte; 0: none */
        struct node nodes[];
};

/* The words, as a range, that begin with the string of a node if they are spelt backwards. */
struct span {
        uint32_t low, high, depth;
};

static uint8_t backwards(const struct added_token *word, uint32_t depth)
{
        return (uint8_t)word->bytes[word->count - 1 - depth];
}

static int compare(const void *a, const void *b)
{
        const struct added_token *x = a, *y = b;
        uint32_t least = x->count < y->count ? x->count : y->count;

        for (uint32_t i = 0; i < least; i++)
                if (backwards(x, i) != backwards(y, i))
                        return backwards(x, i) < backwards(y, i) ? -1 : 1;
        if (x->count != y->count)
                return x->count < y->count ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

/* The child with that byte of a node, or 0. */
static uint32_t child(const struct added_tokens *added_tokens, uint32_t state, uint8_t byte)
{
        const struct node *node = &added_tokens->nodes[state];
        uint32_t low = node->first_child, high = low + node->child_count, end = high;

        if (!state)
                return added_tokens->first[byte];
        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (added_tokens->nodes[middle].byte < byte)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < end && added_tokens->nodes[low].byte == byte ? low : 0;
}

/* Makes the children of a node: one for each next byte of the words in its span. */
static void grow(struct added_tokens *added_tokens, const struct added_token *words,
                 struct span *spans, uint32_t at)
{
        struct node *node = &added_tokens->nodes[at];
        struct span span = spans[at];

        if (span.low < span.high && words[span.low].count == span.depth) {
                node->id = words[span.low].id;
                node->bytes = span.depth;
        }
        while (span.low < span.high && words[span.low].count == span.depth)
                span.low++;
        node->first_child = added_tokens->node_count;
        while (span.low < span.high) {
                uint8_t byte = backwards(&words[span.low], span.depth);
                uint32_t end = span.low;

                while (end < span.high && backwards(&words[end], span.depth) == byte)
                        end++;
                spans[added_tokens->node_count] = (struct span){ span.low, end, span.depth + 1 };
                added_tokens->nodes[added_tokens->node_count++] =
                        (struct node){ .id = UINT32_MAX, .byte = byte };
                node->child_count++;
                span.low = end;
        }
}

static void link_children(struct added_tokens *added_tokens, uint32_t at)
{
        struct node *node = &added_tokens->nodes[at];

        for (uint32_t i = 0; i < node->child_count; i++) {
                struct node *c = &added_tokens->nodes[node->first_child + i];
                uint64_t steps = 0;

                if (at)
                        c->fall =
                                added_tokens_step(added_tokens, node->fall, (char)c->byte, &steps);
                else
                        added_tokens->first[c->byte] = node->first_child + i;
        }
}

int added_tokens_new(struct added_token *words, uint32_t count,
                     struct added_tokens **ret_added_tokens)
{
        size_t nodes = 1;
        struct added_tokens *added_tokens;
        struct span *spans;

        for (uint32_t i = 0; i < count; i++) {
                assert(words[i].count);
                nodes += words[i].count;
        }
        assert(nodes <= UINT32_MAX / 2);
        added_tokens = calloc(1, sizeof(*added_tokens) + nodes * sizeof(*added_tokens->nodes));
        spans = calloc(nodes, sizeof(*spans));
        if (!added_tokens || !spans) {
                free(added_tokens);
                free(spans);
                return error_raise(-ENOMEM);
        }
        if (count)
                qsort(words, count, sizeof(*words), compare);
        added_tokens->node_count = 1;
        added_tokens->nodes[0] = (struct node){ .id = UINT32_MAX };
        spans[0] = (struct span){ 0, count, 0 };
        for (uint32_t at = 0; at < added_tokens->node_count; at++)
                grow(added_tokens, words, spans, at);
        for (uint32_t at = 0; at < added_tokens->node_count; at++) {
                struct node *node = &added_tokens->nodes[at];

                if (node->id == UINT32_MAX) {
                        node->id = added_tokens->nodes[node->fall].id;
                        node->bytes = added_tokens->nodes[node->fall].bytes;
                }
                link_children(added_tokens, at);
        }
        free(spans);
        *ret_added_tokens = added_tokens;
        return 0;
}

struct added_tokens *added_tokens_free(struct added_tokens *added_tokens)
{
        free(added_tokens);
        return NULL;
}

uint32_t added_tokens_step(const struct added_tokens *added_tokens, uint32_t state, char byte,
                           uint64_t *steps)
{
        for (;;) {
                uint32_t next = child(added_tokens, state, (uint8_t)byte);

                ++*steps;
                if (next || !state)
                        return next;
                state = added_tokens->nodes[state].fall;
        }
}

uint32_t added_token(const struct added_tokens *added_tokens, uint32_t state, uint32_t *ret_bytes)
{
        *ret_bytes = added_tokens->nodes[state].bytes;
        return added_tokens->nodes[state].id;
}
