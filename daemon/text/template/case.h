/*
 * The case of letters, and which characters are printable, as in Python's str.
 *
 * It cannot tell a sigma at the end of a word from a sigma inside it.
 */
#ifndef DAEMON_TEXT_TEMPLATE_CASE_H
#define DAEMON_TEXT_TEMPLATE_CASE_H

#include "daemon/text/template/text.h"
#include "daemon/text/unicode.h"

enum letter_case { CASE_LOWER, CASE_UPPER, CASE_TITLE };

/* Adds [from, end) of a text in that case; each character keeps its origin. */
int case_add(struct budget *budget, struct builder *to, const struct text *text, uint32_t from,
             uint32_t end, enum letter_case wanted);
bool case_is_lower(uint32_t code);
bool case_is_upper(uint32_t code);
bool case_is_hidden(uint32_t code); /* true if Python's repr() escapes it */

/* The generated tables, sorted by code. */
struct case_pair {
        uint32_t code, to[3]; /* `to` ends at the first 0 */
};
extern const struct case_pair case_lowers[], case_uppers[], case_titles[];
extern const uint32_t case_lower_count, case_upper_count, case_title_count;
extern const struct unicode_range case_hidden[];
extern const uint32_t case_hidden_count;

#endif
