/*
 * Letters' cases, and what is printed as it is, as Python's str knows them.
 *
 * It can not tell a sigma at the end of a word from one inside it.
 */
#ifndef DAEMON_TEXT_TEMPLATE_CASE_H
#define DAEMON_TEXT_TEMPLATE_CASE_H

#include "daemon/text/template/run.h"
#include "daemon/text/unicode.h"

enum letter_case { CASE_LOWER, CASE_UPPER, CASE_TITLE };

/* The text in that case; marks go with their characters. */
int case_add(struct run *run, struct builder *to, const struct text *text, uint32_t from,
             uint32_t end, enum letter_case wanted);
bool case_is_lower(uint32_t code);
bool case_is_upper(uint32_t code);
bool case_is_hidden(uint32_t code); /* Python's repr() escapes it */

/* The generated tables, by code. */
struct case_pair {
        uint32_t code, to[3]; /* 0: no more */
};
extern const struct case_pair case_lowers[], case_uppers[], case_titles[];
extern const uint32_t case_lower_count, case_upper_count, case_title_count;
extern const struct unicode_range case_hidden[];
extern const uint32_t case_hidden_count;

#endif
