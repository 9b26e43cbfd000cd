/*
 * The private state of one encoding, and the parts of it:
 *
 *      token-places.c    cuts a text at its added tokens
 *      blanks.c          writes a fragment's blanks
 *      word-encoder.c    encodes the pre-tokens of a fragment
 */
#ifndef DAEMON_TEXT_ENCODER_H
#define DAEMON_TEXT_ENCODER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/text/chunk-cache.h"
#include "daemon/text/encoding.h"
#include "daemon/text/tokenizer-state.h"

/* An added token in the text. */
struct place {
        uint32_t at, bytes, id;
};

/* Room that is used again and again. */
struct copy {
        char *bytes;
        size_t capacity;
};

struct encoder {
        const struct tokenizer *t;
        struct encoding *how;
        uint32_t *ids;
        size_t count, capacity;
        bool was_unknown;
        bool is_dropping; /* the word has symbols without ids, which are dropped */
        bool is_first;    /* the fragment that is being encoded begins the text */
        struct cutting cutting;
        struct merge_work work;
        struct unigram_work unigram_work;
        struct { /* characters that are no entry, one behind the other */
                const char *text;
                size_t bytes;
        } unknown;
        struct chunk_cache chunk_cache; /* only of chunks in which every character had an entry */
        struct copy known;              /* a word without the symbols that have no ids */
        struct copy bordered;           /* a word with the blank at its border */
        struct copy letters;            /* a pre-token in letters */
        struct cutting letter_cutting;
        struct place *places; /* from the last one in the text to the first */
        size_t place_count, place_capacity;
};

static inline void encoder_put(struct encoder *e, uint32_t id)
{
        assert(e->count < e->capacity);
        e->ids[e->count++] = id;
        e->was_unknown = false;
}

/* ---- token-places.c ---- */

/* Where added tokens are searched: USER entries anywhere, CONTROL entries in parts of the text. */
struct search {
        const struct added_tokens *users, *added; /* see tokenizer-state.h */
        const struct text_part *parts;
        size_t part_count;
};

typedef int (*fragment_fn)(struct encoder *e, const char *text, size_t bytes, bool first);

/* Added tokens become ids; the text between them is passed to `fragment`. */
int encoder_cut(struct encoder *e, const struct search *search, const char *text, size_t bytes,
                fragment_fn fragment);

/* ---- blanks.c ---- */

/* Before a whole text; a blank at the border is one before each word. */
static inline bool leads_with_blank(const struct tokenizer *t)
{
        return t->blank == BLANK_FIRST || t->blank == BLANK_EACH;
}

/* Whether blanks are written as bars, so that a bar in the text is one. */
static inline bool has_bars(const struct tokenizer *t)
{
        return t->kind == VOCABULARY_UNIGRAM ||
               (t->kind == VOCABULARY_CHARACTERS && !t->keeps_bars);
}

/* Where the blanks before `at` begin, but not before `low`; where those from `at` on end. */
size_t blanks_begin(const char *text, size_t low, size_t at);
size_t blanks_end(const char *text, size_t at, size_t bytes);

/* ---- word-encoder.c ---- */

/* The text of a fragment whose blanks are written. */
int encoder_put_words(struct encoder *e, const char *text, size_t bytes);

#endif
