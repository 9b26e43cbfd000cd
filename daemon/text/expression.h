/*
 * Regular expressions: finds the matches of an expression in a text, as Oniguruma finds them.
 *
 * Tokenizers say by expressions where a text is cut.  expression/parser.h has the syntax.  Of
 * several matches at a place it finds the one that trying the alternatives in order finds first.
 *
 * Reading a text takes time linear in its length, whatever the expression and the text are: the
 * expression is a table (expression/automaton.h), and nothing is tried twice.  An expression whose
 * table would be too large is refused.  The text may be any bytes: one that is not part of valid
 * UTF-8 is a character without properties.
 *
 * An expression is read-only after it is opened; any thread may use it.  A search belongs to one
 * thread, and to one text at a time.
 */
#ifndef DAEMON_TEXT_EXPRESSION_H
#define DAEMON_TEXT_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct expression;

/* 0, -EINVAL with the fault in *why, or -ENOMEM. */
int expression_open(const char *pattern, struct expression **ret_expression, char *why,
                    size_t why_bytes);
struct expression *expression_close(struct expression *expression); /* takes NULL */

struct expression_search {
        const struct expression *expression;
        const char *text;
        size_t bytes;
        uint64_t *steps;
        uint8_t *looks; /* for each place, one bit for each look that matches there */
        size_t looks_capacity;
        /* Places and states from which no match ends: see expression.c. */
        uint64_t *dead_ends;
        size_t dead_end_count, dead_end_capacity;
};

/*
 * Begins with a text of less than 4 GiB.  The search is all zero before its first text; later ones
 * use its memory again.  *steps grows by the number of characters that are read.  0 or -ENOMEM.
 */
int expression_begin(struct expression_search *search, const struct expression *expression,
                     const char *text, size_t bytes, uint64_t *steps);
void expression_search_deinit(struct expression_search *search); /* all zero is fine */

/*
 * The first match that begins at `from` or behind it.  An empty match has the same begin and end.
 * 1; 0: there is none; -ENOMEM.
 */
int expression_next(struct expression_search *search, size_t from, size_t *ret_begin,
                    size_t *ret_end);

#endif
