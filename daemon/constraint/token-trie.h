/*
 * The texts of a tokenizer's tokens as tries in arrays, to compute masks.
 *
 * A trie is an array of nodes in depth-first order, each with the number of nodes below it: a walk
 * is a loop, and leaving a subtree out is an addition.
 *
 * Most tokens are *plain*: whole characters, without quotes, backslashes and controls.  A string of
 * JSON takes all of them.  Plain tokens are therefore in tries of their own, by their number of
 * characters, with a ready mask for each.  Those with signs of ASCII, which may begin the marks of
 * tool calls, are apart from the others.
 *
 * Read-only after token_trie_new(); any thread may use it.
 */
#ifndef CONSTRAINT_TOKEN_TRIE_H
#define CONSTRAINT_TOKEN_TRIE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/constraint/regex-pool.h"

#define TOKEN_TRIE_DEPTH 128u      /* longer tokens are left out: they are never legal */
#define TOKEN_TRIE_NONE  0xffffffu /* no token ends here */
#define TOKEN_TRIE_MAX   0xfffffeu /* tokens */

struct trie_node {
        uint32_t token : 24, byte : 8;
        uint32_t subtree : 24, depth : 8; /* nodes of its subtree, itself included; depth from 1 */
};

enum token_slice {
        SLICE_OTHER,        /* not plain */
        SLICE_SHORT,        /* no signs, and at most 10 characters */
        SLICE_MIDDLE,       /* no signs, and at most 30 */
        SLICE_LONG,         /* no signs, and at most TOKEN_TRIE_DEPTH */
        SLICE_SIGNS,        /* at most 10 characters */
        SLICE_LONGER_SIGNS, /* at most TOKEN_TRIE_DEPTH */
        SLICE_COUNT,
};

struct trie_slice {
        struct trie_node *nodes;
        uint32_t count;
        uint32_t characters;   /* of its longest token; 0: not plain */
        uint32_t *bits;        /* its tokens */
        struct byte_set bytes; /* in its tokens */
};

struct token_text {
        const char *bytes;
        uint32_t count; /* 0: the token has no text, and is never legal */
};

struct token_trie {
        uint32_t token_count, words; /* words of a mask */
        struct trie_slice slices[SLICE_COUNT];
        uint32_t *same;     /* the next token with the same text; TOKEN_TRIE_NONE: none */
        uint32_t *controls; /* ids of control tokens */
        uint32_t control_count;
        uint32_t left_out; /* tokens that are too long, or have a byte 0xff */
        char *texts;       /* of all tokens */
        uint32_t *offsets; /* token_count + 1 of them */
};

/* Control tokens have no text of their own: grammars name them by id.  NULL: out of memory. */
struct token_trie *token_trie_new(const struct token_text *texts, uint32_t count,
                                  const uint32_t *controls, uint32_t control_count);
struct token_trie *token_trie_free(struct token_trie *trie); /* takes NULL */

#endif
