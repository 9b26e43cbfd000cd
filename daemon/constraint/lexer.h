/*
 * Lexemes, read side by side: a lazy automaton over sets of expressions.
 *
 * A lexeme is an expression with a number.  A *tail* is one that ends with the whole text, and each
 * of its texts can be longer: where it may end is marked, but nothing follows it.
 *
 * A state is a set of lexemes, each with what is left of its expression.  States are made when a
 * text first reaches them, up to a fixed number.  The tables are those of one grammar, and all
 * matchers of the grammar share them, so they belong to one thread at a time.
 */
#ifndef CONSTRAINT_LEXER_H
#define CONSTRAINT_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/constraint/regex-pool.h"

#define LEXER_DEAD    0u         /* no lexeme can match any more */
#define LEXER_SPENT   UINT32_MAX /* a budget is spent: of states, or of the pool */
#define LEXER_UNKNOWN (UINT32_MAX - 1)

struct lexer_state {
        uint32_t first, count;         /* its lexemes, in `parts` */
        uint32_t accept, accept_count; /* the lexemes that end here, in `accepts`, but for tails */
        uint32_t more;                 /* see lexer_goes_on(); UNKNOWN: not asked yet */
        uint32_t chain;                /* of the hash */
        uint32_t plain;                /* see lexer_plain(); UNKNOWN: not asked yet */
        bool tail_ends;
};

struct lexeme {
        uint32_t term;
        bool is_tail;
};

struct lexer_part {
        uint32_t lexeme, rest;
};

struct lexer {
        struct regex_pool *pool;
        uint8_t class_of[256];
        uint8_t example[256]; /* a byte of each class */
        unsigned classes;
        struct lexeme *lexemes;
        uint32_t lexeme_count, lexeme_size;
        struct lexer_state *states;
        uint32_t *next; /* [state][class] */
        uint32_t state_count, states_max;
        struct lexer_part *parts;
        uint32_t part_count, parts_max;
        uint32_t *accepts;
        uint32_t accept_count;
        uint32_t *buckets;
        struct lexer_part *scratch;
};

/* The number of this expression as a lexeme; UINT32_MAX: out of memory. */
uint32_t lexer_lexeme(struct lexer *lexer, uint32_t term, bool is_tail);
/* Makes the tables, when all lexemes are known: 0 or -ENOMEM. */
int lexer_seal(struct lexer *lexer, uint32_t states_max);
void lexer_deinit(struct lexer *lexer);

/* The state that waits for each of these lexemes, sorted and different. */
uint32_t lexer_start(struct lexer *lexer, const uint32_t *lexemes, uint32_t count);
uint32_t lexer_extend(struct lexer *lexer, uint32_t state, unsigned class);

static inline uint32_t lexer_next(struct lexer *lexer, uint32_t state, uint8_t byte)
{
        unsigned class = lexer->class_of[byte];
        uint32_t next = lexer->next[(size_t)state * lexer->classes + class];

        return next != LEXER_UNKNOWN ? next : lexer_extend(lexer, state, class);
}

/* Whether any byte may follow: false where all lexemes have ended, and none can be longer. */
bool lexer_goes_on(struct lexer *lexer, uint32_t state);

/* Whether all texts of these bytes can go on inside of a lexeme; it may miss that they can. */
bool lexer_stays(struct lexer *lexer, uint32_t state, const struct byte_set *bytes);

/* The most of regex_plain() over all lexemes of the state. */
uint32_t lexer_plain(struct lexer *lexer, uint32_t state);

#endif
