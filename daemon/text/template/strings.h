/*
 * Operations of Python's strings, for the methods and for filters that do the same.
 */
#ifndef DAEMON_TEXT_TEMPLATE_STRINGS_H
#define DAEMON_TEXT_TEMPLATE_STRINGS_H

#include "daemon/text/template/text.h"

/* The argument as a text; NULL if it is MISSING or none; an error if it has another type. */
int string_argument(struct budget *budget, struct value value, const struct text **ret_text);
/* `otherwise` if the argument is MISSING; an error if it is not an integer. */
int integer_argument(struct budget *budget, struct value value, int64_t otherwise,
                     int64_t *ret_integer);
/* `otherwise` if the argument is MISSING. */
bool truth_argument(struct value value, bool otherwise);

/* Strips these characters; NULL: blanks. */
int string_strip(struct budget *budget, const struct text *text, const struct text *characters,
                 bool left, bool right, struct value *ret_value);
/* Replaces `most` occurrences at most; -1: all. */
int string_replace(struct budget *budget, const struct text *text, const struct text *old,
                   const struct text *new, int64_t most, struct value *ret_value);
/* The lines of a text; ends: with their line ends. */
int string_lines(struct budget *budget, const struct text *text, bool ends, struct value *ret_list);
int string_in_case(struct budget *budget, const struct text *text, int how,
                   struct value *ret_value);
int string_capitalize(struct budget *budget, const struct text *text, struct value *ret_value);
int string_join(struct budget *budget, const struct text *between, const struct value *items,
                uint32_t count, bool strict, struct value *ret_value);
int string_center(struct budget *budget, const struct text *text, int64_t width,
                  const struct text *fill, int where, struct value *ret_value);
bool string_is_lower(const struct text *text);
bool string_is_upper(const struct text *text);

#endif
