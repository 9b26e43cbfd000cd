/*
 * Normal forms of Unicode, for any bytes.  Bytes that are not UTF-8 stay as they are.
 *
 * Takes linear time on any text: a long run of combining marks is sorted by counting.  It knows
 * the marks in the Unicode version of unicode-tables.c.  The library `tokenizers` knows those of
 * Unicode 9, and Python those of its own version, so results differ for marks added since.
 */
#ifndef DAEMON_TEXT_NORMAL_FORM_H
#define DAEMON_TEXT_NORMAL_FORM_H

#include <stddef.h>
#include <stdint.h>

enum normal_form {
        FORM_NFD,  /* characters are decomposed, and marks are in order */
        FORM_NFC,  /* ... and composed again where possible */
        FORM_NFKD, /* characters that only look like others become these, too */
        FORM_NFKC,
};

/* The result has at most this many times the bytes of the text. */
#define FORM_GROWTH      3u
#define FORM_GROWTH_LIKE 11u /* NFKD and NFKC */

/*
 * Gives a copy, which the caller frees with free().  *steps grows by the work done.  0 or -ENOMEM.
 */
int normal_form_make(enum normal_form form, const char *text, size_t bytes, char **ret_text,
                     size_t *ret_bytes, uint64_t *steps);

#endif
