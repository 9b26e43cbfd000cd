/*
 * A slow recogniser for small grammars, to compare the matcher's masks with.
 *
 * It knows which spans of a text each node derives, and repeats until it learns nothing new.  It
 * has no rows, no lexemes and no derivatives, so a mistake of the matcher is not one here.
 */
#ifndef TESTS_SPAN_RECOGNISER_H
#define TESTS_SPAN_RECOGNISER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SPAN_NODES  96
#define SPAN_RULES  6
#define SPAN_TEXT   30
#define SPAN_NO_MAX 1000

enum span_kind {
        SPAN_SET,      /* one byte of `bytes` */
        SPAN_SEQUENCE, /* of children */
        SPAN_CHOICE,
        SPAN_REPEAT, /* of child 0 */
        SPAN_RULE,
        SPAN_FREE,  /* a text in which none of `marks` is */
        SPAN_UP_TO, /* a text that ends with one of them, `mark`; none is before its end */
};

struct span_node {
        enum span_kind kind;
        char bytes[8];
        int children[4], count;
        int min, max; /* SPAN_NO_MAX: none */
        int rule;
        const char (*marks)[4];
        int mark_count, mark;
};

struct span_grammar {
        struct span_node nodes[SPAN_NODES];
        int node_count;
        int rules[SPAN_RULES]; /* bodies; rule 0 is the root */
        int rule_count;

        const char *text;
        int bytes;
        uint32_t ends[SPAN_NODES][SPAN_TEXT + 1]; /* bit j: derives text[i] to text[j - 1] */
        bool begins[SPAN_NODES][SPAN_TEXT + 1];   /* the text from i begins something it derives */
        bool derives_any[SPAN_NODES];
};

static inline uint32_t span_through(const struct span_grammar *grammar, int node, uint32_t from)
{
        uint32_t to = 0;

        for (int i = 0; i <= grammar->bytes; i++)
                if (from >> i & 1)
                        to |= grammar->ends[node][i];
        return to;
}

static inline bool span_any_begins(const struct span_grammar *grammar, int node, uint32_t from)
{
        for (int i = 0; i <= grammar->bytes; i++)
                if ((from >> i & 1) && grammar->begins[node][i])
                        return true;
        return false;
}

static inline bool span_all(const struct span_grammar *grammar, const struct span_node *node,
                            int first)
{
        for (int i = first; i < node->count; i++)
                if (!grammar->derives_any[node->children[i]])
                        return false;
        return true;
}

static inline void span_sequence(const struct span_grammar *grammar, const struct span_node *node,
                                 int at, uint32_t *ends, bool *begins)
{
        uint32_t from = 1u << at;

        for (int i = 0; i < node->count; i++) {
                *begins |= span_any_begins(grammar, node->children[i], from) &&
                           span_all(grammar, node, i + 1);
                from = span_through(grammar, node->children[i], from);
        }
        *ends = from;
        *begins |= from >> grammar->bytes & 1;
}

static inline void span_repeat(const struct span_grammar *grammar, const struct span_node *node,
                               int at, uint32_t *ends, bool *begins)
{
        uint32_t from = 1u << at;
        int most = node->max == SPAN_NO_MAX ? node->min + SPAN_TEXT + 2 : node->max;
        bool rest = node->min == 0 || grammar->derives_any[node->children[0]];

        for (int count = 0; count <= most; count++) {
                if (count >= node->min)
                        *ends |= from;
                if (count < most)
                        *begins |= rest && span_any_begins(grammar, node->children[0], from);
                from = span_through(grammar, node->children[0], from);
        }
        *begins |= *ends >> grammar->bytes & 1;
        *begins |= rest && at == grammar->bytes;
}

/* Whether a mark ends in the text from `from` on, at `to` at the latest. */
static inline bool span_marked(const struct span_grammar *grammar, const struct span_node *node,
                               int from, int to)
{
        for (int i = 0; i < node->mark_count; i++) {
                int length = strlen(node->marks[i]);

                for (int at = from; at + length <= to; at++)
                        if (memcmp(grammar->text + at, node->marks[i], length) == 0)
                                return true;
        }
        return false;
}

static inline void span_text(const struct span_grammar *grammar, const struct span_node *node,
                             int at, uint32_t *ends, bool *begins)
{
        const char *mark = node->marks[node->mark];
        int length = node->kind == SPAN_UP_TO ? strlen(mark) : 0;

        for (int to = at; to <= grammar->bytes; to++) {
                if (node->kind == SPAN_FREE ? span_marked(grammar, node, at, to)
                                            : span_marked(grammar, node, at, to - 1))
                        return;
                if (to - at >= length && (node->kind == SPAN_FREE ||
                                          memcmp(grammar->text + to - length, mark, length) == 0))
                        *ends |= 1u << to;
        }
        *begins |= !span_marked(grammar, node, at, grammar->bytes) || (*ends >> grammar->bytes & 1);
}

static inline bool span_learn(struct span_grammar *grammar, int index, int at)
{
        const struct span_node *node = &grammar->nodes[index];
        uint32_t ends = 0;
        bool begins = at == grammar->bytes && grammar->derives_any[index], news;

        switch (node->kind) {
        case SPAN_SET:
                if (at < grammar->bytes && strchr(node->bytes, grammar->text[at]))
                        ends = 1u << (at + 1);
                begins |= ends >> grammar->bytes & 1;
                break;
        case SPAN_SEQUENCE:
                span_sequence(grammar, node, at, &ends, &begins);
                break;
        case SPAN_CHOICE:
                for (int i = 0; i < node->count; i++) {
                        ends |= grammar->ends[node->children[i]][at];
                        begins |= grammar->begins[node->children[i]][at];
                }
                break;
        case SPAN_REPEAT:
                span_repeat(grammar, node, at, &ends, &begins);
                break;
        case SPAN_RULE:
                ends = grammar->ends[grammar->rules[node->rule]][at];
                begins |= grammar->begins[grammar->rules[node->rule]][at];
                break;
        case SPAN_FREE:
        case SPAN_UP_TO:
                span_text(grammar, node, at, &ends, &begins);
        }
        news = ends != grammar->ends[index][at] || begins != grammar->begins[index][at];
        grammar->ends[index][at] = ends;
        grammar->begins[index][at] = begins;
        return news;
}

static inline bool span_derives_any(const struct span_grammar *grammar, int index)
{
        const struct span_node *node = &grammar->nodes[index];

        switch (node->kind) {
        case SPAN_SET:
        case SPAN_FREE:
        case SPAN_UP_TO:
                return true;
        case SPAN_SEQUENCE:
                return span_all(grammar, node, 0);
        case SPAN_CHOICE:
                for (int i = 0; i < node->count; i++)
                        if (grammar->derives_any[node->children[i]])
                                return true;
                return false;
        case SPAN_REPEAT:
                return node->min == 0 || grammar->derives_any[node->children[0]];
        case SPAN_RULE:
                return grammar->derives_any[grammar->rules[node->rule]];
        }
        return false;
}

/* Once for each grammar. */
static inline bool span_prepare(struct span_grammar *grammar)
{
        memset(grammar->derives_any, 0, sizeof(grammar->derives_any));
        for (bool news = true; news;) {
                news = false;
                for (int i = 0; i < grammar->node_count; i++) {
                        bool any = span_derives_any(grammar, i);

                        news |= any != grammar->derives_any[i];
                        grammar->derives_any[i] = any;
                }
        }
        return grammar->derives_any[grammar->rules[0]];
}

/* Whether the text begins a text of the grammar; *ret_whole: it is one. */
static inline bool span_accepts(struct span_grammar *grammar, const char *text, int bytes,
                                bool *ret_whole)
{
        grammar->text = text;
        grammar->bytes = bytes;
        memset(grammar->ends, 0, sizeof(grammar->ends));
        memset(grammar->begins, 0, sizeof(grammar->begins));
        for (bool news = true; news;) {
                news = false;
                for (int i = 0; i < grammar->node_count; i++)
                        for (int at = bytes; at >= 0; at--)
                                news |= span_learn(grammar, i, at);
        }
        *ret_whole = grammar->ends[grammar->rules[0]][0] >> bytes & 1;
        return grammar->begins[grammar->rules[0]][0];
}

#endif
