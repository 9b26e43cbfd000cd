/*
 * Pre-tokenization: cuts a text into pre-tokens.  No token crosses the border of a pre-token.
 *
 * A cutter has the cuts of a vocabulary in order: each divides the pieces of the one before it.
 * It gives the same pieces as Hugging Face's `tokenizers`, in time linear in the text.  The text
 * may be any bytes.
 *
 * A cutter is read-only after it is opened; any thread may use it.  A cutting belongs to one
 * thread, and to one text at a time.
 */
#ifndef DAEMON_TEXT_CUTTER_H
#define DAEMON_TEXT_CUTTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/vocabulary.h"
#include "daemon/text/expression.h"

struct cutter {
        struct {
                struct expression *expression;
                uint8_t kind;
                bool inverted;
        } cuts[VOCABULARY_CUTS_MAX];
        uint32_t count;
};

/* 0, -EINVAL with the fault in *why, or -ENOMEM. */
int cutter_open(struct cutter *ret_cutter, const struct vocabulary_cut *cuts, uint32_t count,
                char *why, size_t why_bytes);
void cutter_close(struct cutter *cutter); /* all zero is fine */

/* A match, or the text between two matches. */
struct segment {
        size_t begin, end;
        bool matched;
};

/* One cut on its way through a piece of the cut before it. */
struct cutting_level {
        struct expression_search search;
        size_t begin, bytes;    /* the piece, in the text */
        size_t at;              /* up to here segments were made, in the piece */
        size_t from;            /* where the next match is searched */
        size_t last;            /* the end of the last match */
        struct segment match;   /* found, but the text before it came first */
        struct segment waiting; /* the next segment */
        bool has_match, is_waiting, is_over;
};

struct cutting {
        const struct cutter *cutter;
        const char *text;
        uint64_t *steps;
        struct cutting_level levels[VOCABULARY_CUTS_MAX];
        uint32_t depth; /* levels in use */
        bool whole;     /* without cuts: the text is still to be given */
        size_t bytes;
};

/*
 * Begins with a text of less than 4 GiB.  All zero before the first text; later ones use its
 * memory again.  *steps grows by the number of characters that are read.  0 or -ENOMEM.
 */
int cutting_begin(struct cutting *cutting, const struct cutter *cutter, const char *text,
                  size_t bytes, uint64_t *steps);
void cutting_deinit(struct cutting *cutting);

/* The next pre-token, of at least one byte.  1; 0: there are no more; -ENOMEM. */
int cutting_next(struct cutting *cutting, size_t *ret_begin, size_t *ret_end);

#endif
