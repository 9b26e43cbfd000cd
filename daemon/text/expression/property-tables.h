/* The generated tables of charset.c (contrib/dev/unicode properties), sorted by `first`. */
#ifndef DAEMON_TEXT_EXPRESSION_PROPERTY_TABLES_H
#define DAEMON_TEXT_EXPRESSION_PROPERTY_TABLES_H

#include "daemon/text/unicode.h"

/* Scripts: `value` is an index of the names, which are in small letters without underscores. */
extern const char *const property_script_names[];
extern const struct unicode_range property_scripts[];
extern const uint32_t property_script_name_count, property_script_count;

/* Alphabetic, without the categories L and Nl. */
extern const struct unicode_range property_alphabetic[];
extern const uint32_t property_alphabetic_count;

/* Lowercase and Uppercase, without the categories Ll and Lu. */
extern const struct unicode_range property_lower[], property_upper[];
extern const uint32_t property_lower_count, property_upper_count;

/* Two characters that differ in their case alone; each pair stands here in both directions. */
struct property_case {
        uint32_t code, other;
};
extern const struct property_case property_cases[];
extern const uint32_t property_case_count;

/* Characters that are two or three letters in another case; 0 ends them. */
struct property_letters {
        uint32_t code, letters[3];
};
extern const struct property_letters property_letters[];
extern const uint32_t property_letters_count;

#endif
