/*
 * Sets of characters: sorted ranges of codes that do not touch each other.
 *
 * CHARSET_INVALID stands for a byte that is not part of valid UTF-8.  It is a character without
 * properties, so only a complement has it.
 */
#ifndef DAEMON_TEXT_EXPRESSION_CHARSET_H
#define DAEMON_TEXT_EXPRESSION_CHARSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHARSET_INVALID 0x110000u
#define CHARSET_END     (CHARSET_INVALID + 1)

struct charset_range {
        uint32_t first, last;
};

struct charset {
        struct charset_range *ranges;
        uint32_t count, capacity;
};

void charset_deinit(struct charset *set); /* all zero is fine */

/* These return 0 or -ENOMEM. */
int charset_add(struct charset *set, uint32_t first, uint32_t last);
int charset_unite(struct charset *set, const struct charset *other);
int charset_intersect(struct charset *set, const struct charset *other);
int charset_complement(struct charset *set);
/* Adds what differs from a member in its case alone. */
int charset_fold(struct charset *set);

bool charset_has(const struct charset *set, uint32_t code);

/*
 * Whether the set has a character that in another case is several letters, such as U+00DF.  No set
 * can say that these letters belong to it.
 */
bool charset_has_several(const struct charset *set);
/* Whether such a character is the same as these letters, or as the last ones of them. */
bool charset_several_equal_one(const uint32_t *letters, unsigned count);

/*
 * The set of \p{name}: a general category such as L or Lu, a script, or a name such as Alnum.
 * Names are compared without regard to case, blanks, '-' and '_'.  0; -EINVAL: there is no such
 * property; -ENOMEM.
 */
int charset_property(struct charset *ret_set, const char *name, size_t bytes);

/* The set of [:name:].  0; -EINVAL: there is no such class; -ENOMEM. */
int charset_bracket(struct charset *ret_set, const char *name, size_t bytes);

/* \w, \d, \s and \h of Oniguruma, by their small letters. */
int charset_shorthand(struct charset *ret_set, char letter);

/*
 * Outside of classes, \w of Oniguruma also has the six numbers of Latin-1 that are no digits, such
 * as U+00BD, the half: it looks up characters below 256 in a table of their own.
 */
int charset_add_latin_numbers(struct charset *set);

#endif
