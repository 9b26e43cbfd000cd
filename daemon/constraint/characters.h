/*
 * Sets of characters, and the bytes that write them: as plain UTF-8, or inside a string of JSON.
 *
 * In a string of JSON a character is written in one way, except for controls: quotes and
 * backslashes with a backslash, controls as \b \f \n \r \t or \u00xx, all others as they are.
 */
#ifndef CONSTRAINT_CHARACTERS_H
#define CONSTRAINT_CHARACTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/constraint/regex-pool.h"

#define CHARACTER_RANGES 256u
#define CHARACTER_LAST   0x10ffffu

struct character_range {
        uint32_t from, to;
};

/* Surrogates may be in a set; no bytes write them. */
struct characters {
        struct character_range ranges[CHARACTER_RANGES];
        uint32_t count;
        bool full; /* a range had no space */
};

enum writing {
        WRITING_PLAIN,
        WRITING_JSON,
};

void characters_add(struct characters *set, uint32_t from, uint32_t to);
void characters_add_all(struct characters *set, const struct characters *more);
void characters_invert(struct characters *set);

/* One character of the set. */
uint32_t characters_regex(struct regex_pool *pool, const struct characters *set,
                          enum writing writing);
/* Any one character. */
uint32_t characters_any(struct regex_pool *pool, enum writing writing);
/* This UTF-8 text. */
uint32_t characters_text(struct regex_pool *pool, const char *text, size_t bytes,
                         enum writing writing);

#endif
