/*
 * Classes of characters: two characters are of one class if no set of an expression tells them
 * apart.  So an automaton needs a column for each class, not for each character.
 */
#ifndef DAEMON_TEXT_EXPRESSION_CLASSES_H
#define DAEMON_TEXT_EXPRESSION_CLASSES_H

#include "daemon/text/expression/charset.h"

#define CLASSES_MAX       250u
#define CLASSES_PAGE_BITS 7u
#define CLASSES_PAGE      (1u << CLASSES_PAGE_BITS)

struct classes {
        uint32_t count;
        uint8_t ascii[CLASSES_PAGE]; /* the class of each character of ASCII */
        uint8_t invalid;             /* ... and of CHARSET_INVALID */
        uint16_t *pages;             /* for each page of codes, its place in `table` */
        uint8_t *table;
        uint32_t table_pages;
        uint8_t *members; /* [set * count + class]: 1 if the set has the class */
};

/* 0, -EINVAL with the fault in *why, or -ENOMEM. */
int classes_make(struct classes *ret_classes, const struct charset *sets, uint32_t set_count,
                 char *why, size_t why_bytes);
void classes_deinit(struct classes *classes); /* all zero is fine */

static inline uint32_t classes_of(const struct classes *classes, uint32_t code)
{
        if (code < CLASSES_PAGE)
                return classes->ascii[code];
        if (code >= CHARSET_INVALID)
                return classes->invalid;
        return classes
                ->table[(uint32_t)classes->pages[code >> CLASSES_PAGE_BITS] << CLASSES_PAGE_BITS |
                        (code & (CLASSES_PAGE - 1))];
}

static inline bool classes_in(const struct classes *classes, uint32_t set, uint32_t class)
{
        return classes->members[set * classes->count + class];
}

#endif
