/*
 * What Python's strings do, for methods and for filters of the same kind.
 */
#ifndef DAEMON_TEXT_TEMPLATE_STRINGS_H
#define DAEMON_TEXT_TEMPLATE_STRINGS_H

#include "daemon/text/template/run.h"

/* The argument as a text; a fault for another kind.  Missing or none: NULL. */
int string_argument(struct run *run, struct value value, const struct text **ret_text);
/* Missing: `otherwise`.  A fault for what is no integer. */
int integer_argument(struct run *run, struct value value, int64_t otherwise, int64_t *ret_integer);
/* Missing: `otherwise`. */
bool truth_argument(struct value value, bool otherwise);

/* characters: NULL: blanks. */
int string_strip(struct run *run, const struct text *text, const struct text *characters, bool left,
                 bool right, struct value *ret_value);
/* most: -1: as often as it is found. */
int string_replace(struct run *run, const struct text *text, const struct text *old,
                   const struct text *new, int64_t most, struct value *ret_value);
/* Lines without their ends, or with them. */
int string_lines(struct run *run, const struct text *text, bool ends, struct value *ret_list);
int string_in_case(struct run *run, const struct text *text, int how, struct value *ret_value);
int string_capitalize(struct run *run, const struct text *text, struct value *ret_value);
int string_join(struct run *run, const struct text *between, const struct value *items,
                uint32_t count, bool strict, struct value *ret_value);
int string_center(struct run *run, const struct text *text, int64_t width, const struct text *fill,
                  int where, struct value *ret_value);
bool string_is_lower(const struct text *text);
bool string_is_upper(const struct text *text);

#endif
