/*
 * Reads regular expressions as people write them (ECMA-262, as far as they are regular).
 *
 * Read are: characters, ".", classes, \d \w \s and their opposites, \t \n \r \f \v \0 \cX \xHH
 * \uHHHH \u{H}, groups of all names, "|", "*", "+", "?", "{m,n}" also lazy ones, "^" and "$".
 * Refused by name: look-around, back references, \b, \B, \p, flags, possessive quantifiers, and an
 * anchor that is repeated.
 *
 * "." is any character but \n, \r, U+2028 and U+2029.  \d and \w are ASCII; \s is as in ECMA-262.
 */
#ifndef CONSTRAINT_REGEX_TEXT_H
#define CONSTRAINT_REGEX_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/constraint/characters.h"

enum regex_scope {
        REGEX_WHOLE,  /* the whole text matches */
        REGEX_SEARCH, /* a part of the text does, as `pattern` of JSON Schema means it */
};

/*
 * Returns 0 with the term, or -EINVAL with a sentence that has the fault and its byte.  If the pool
 * is spent, the term means nothing.
 */
int regex_text_read(struct regex_pool *pool, const char *text, size_t bytes, enum writing writing,
                    enum regex_scope scope, uint32_t *ret_term, char *why, size_t why_bytes);

#endif
