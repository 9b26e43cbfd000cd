/*
 * Canonical composition (NFC) of any bytes.  Bytes that are not UTF-8 stay as they are.
 *
 * Takes linear time on any text: a long run of combining marks is sorted by counting.  It knows
 * the marks in the Unicode version of unicode-tables.c.  The library `tokenizers` knows those of
 * Unicode 9, and Python those of its own version, so results differ for marks added since.
 */
#ifndef DAEMON_TEXT_NFC_H
#define DAEMON_TEXT_NFC_H

#include <stddef.h>
#include <stdint.h>

#define NFC_GROWTH 3u /* the result has at most this many times the bytes of the text */

/*
 * Gives a copy, which the caller frees with free().  *steps grows by the work done.  0 or -ENOMEM.
 */
int nfc_normalise(const char *text, size_t bytes, char **ret_text, size_t *ret_bytes,
                  uint64_t *steps);

#endif
