/*
 * The part of a mask that depends only on the lexeme being read: the tokens that do not end it.
 *
 * If a matcher reads a single lexeme, its state of the lexer tells these tokens, and where others
 * leave the lexeme.  In a string of JSON they are nearly all.  The last few states with much work
 * are remembered, and only what is behind the exits is walked again.
 */
#ifndef CONSTRAINT_MATCHER_INSIDE_H
#define CONSTRAINT_MATCHER_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSIDE_KEPT  8u   /* states */
#define INSIDE_EXITS 512u /* of a state; one with more is not kept */

/* A node of the trie by whose byte the lexeme may end; `state` is the one before that byte. */
struct inside_exit {
        uint32_t node : 24, slice : 8;
        uint32_t state;
};

struct inside {
        uint32_t state; /* LEXER_DEAD: none */
        uint32_t used;  /* when, by the clock; 0: never */
        uint32_t exit_count;
        struct inside_exit *exits;
        uint32_t *bits; /* of a mask */
};

struct inside_cache {
        struct inside entries[INSIDE_KEPT + 1];
        unsigned spare; /* the entry that is written next */
        uint32_t clock, words;
};

/* Takes all memory: false if there is too little, and then inside_deinit() is due as well. */
bool inside_init(struct inside_cache *cache, uint32_t words);
void inside_deinit(struct inside_cache *cache);
size_t inside_bytes(const struct inside_cache *cache);

/* NULL: not known. */
const struct inside *inside_find(struct inside_cache *cache, uint32_t state);

/* The empty entry to be written; it is not found before inside_keep(). */
struct inside *inside_begin(struct inside_cache *cache);
void inside_add_exit(struct inside *inside, struct inside_exit exit);
/* Keeps what was written in place of the state that was not used for the longest time. */
void inside_keep(struct inside_cache *cache, uint32_t state);

#endif
