/*
 * The nodes are numbered level by level, so the children of a node have consecutive numbers.  They
 * are in the order of their bytes: a node needs to know only its first child, and the children of
 * the next node begin where its own end.
 */
#include "daemon/text/trie.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct trie {
        uint32_t *first; /* the first child, by node: one more than there are nodes */
        uint32_t *values;
        uint8_t *labels; /* the byte that leads to the node */
        uint32_t count;
};

/* The words that pass through a node: consecutive ones, as all are sorted. */
struct span {
        uint32_t begin, end;
};

static int order(const void *a, const void *b)
{
        const struct trie_word *x = a, *y = b;
        int r = memcmp(x->bytes, y->bytes, x->count < y->count ? x->count : y->count);

        if (r)
                return r;
        if (x->count != y->count)
                return x->count < y->count ? -1 : 1;
        return x->value < y->value ? -1 : x->value > y->value;
}

/* Makes the children of one node, whose words share `depth` bytes. */
static void add_children(struct trie *trie, const struct trie_word *words, struct span *spans,
                         uint32_t node, uint32_t depth)
{
        uint32_t at = spans[node].begin, end = spans[node].end;

        trie->first[node] = trie->count;
        for (; at < end && words[at].count == depth; at++)
                trie->values[node] = words[at].value;
        while (at < end) {
                uint32_t child = trie->count++, from = at;
                char byte = words[at].bytes[depth];

                while (at < end && words[at].bytes[depth] == byte)
                        at++;
                spans[child] = (struct span){ from, at };
                trie->labels[child] = (uint8_t)byte;
                trie->values[child] = TRIE_NONE;
        }
}

/* How many nodes the words make: one for each byte that differs from those of the word before. */
static size_t count_nodes(const struct trie_word *words, uint32_t count)
{
        size_t nodes = 1;

        for (uint32_t i = 0; i < count; i++) {
                uint32_t same = 0;

                assert(words[i].count);
                while (i && same < words[i].count && same < words[i - 1].count &&
                       words[i].bytes[same] == words[i - 1].bytes[same])
                        same++;
                nodes += words[i].count - same;
        }
        return nodes;
}

static int fill(struct trie *trie, const struct trie_word *words, uint32_t count, size_t nodes)
{
        struct span *spans = reallocarray(NULL, nodes, sizeof(*spans));
        uint32_t level = 1; /* the first node of the next level */

        if (!spans)
                return error_raise(-ENOMEM);
        spans[TRIE_ROOT] = (struct span){ 0, count };
        trie->values[TRIE_ROOT] = TRIE_NONE;
        trie->count = 1;
        for (uint32_t node = 0, depth = 0; node < trie->count; node++) {
                if (node == level) {
                        depth++;
                        level = trie->count;
                }
                add_children(trie, words, spans, node, depth);
        }
        assert(trie->count == nodes);
        trie->first[nodes] = (uint32_t)nodes;
        free(spans);
        return 0;
}

int trie_new(struct trie_word *words, uint32_t count, struct trie **ret_trie)
{
        struct trie *trie = calloc(1, sizeof(*trie));
        size_t nodes;
        int r = -ENOMEM;

        if (!trie)
                return error_raise(-ENOMEM);
        if (count)
                qsort(words, count, sizeof(*words), order);
        nodes = count_nodes(words, count);
        assert(nodes <= UINT32_MAX / 2);
        trie->first = reallocarray(NULL, nodes + 1, sizeof(*trie->first));
        trie->values = reallocarray(NULL, nodes, sizeof(*trie->values));
        trie->labels = malloc(nodes);
        if (trie->first && trie->values && trie->labels)
                r = fill(trie, words, count, nodes);
        if (r) {
                trie_free(trie);
                return error_raise(r);
        }
        *ret_trie = trie;
        return 0;
}

struct trie *trie_free(struct trie *trie)
{
        if (!trie)
                return NULL;
        free(trie->first);
        free(trie->values);
        free(trie->labels);
        free(trie);
        return NULL;
}

uint32_t trie_step(const struct trie *trie, uint32_t node, char byte)
{
        uint32_t low = trie->first[node], end = trie->first[node + 1], high = end;

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (trie->labels[middle] < (uint8_t)byte)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < end && trie->labels[low] == (uint8_t)byte ? low : TRIE_NONE;
}

uint32_t trie_value(const struct trie *trie, uint32_t node)
{
        return trie->values[node];
}

size_t trie_longest(const struct trie *trie, const char *text, size_t bytes, uint64_t *steps)
{
        uint32_t node = TRIE_ROOT;
        size_t longest = 0, at = 0;

        while (at < bytes && (node = trie_step(trie, node, text[at])) != TRIE_NONE) {
                at++;
                if (trie_value(trie, node) != TRIE_NONE)
                        longest = at;
        }
        *steps += at;
        return longest;
}
