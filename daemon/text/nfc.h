/*
 * Canonical composition (NFC), of any bytes: what is not UTF-8 stays as it is.
 *
 * Linear on any text: a long run of combining marks is ordered by counting.  It knows
 * the marks of the tables' version (unicode-tables.c); `tokenizers` knows those of
 * Unicode 9, Python those of its own, so the makers differ on marks added since.
 */
#ifndef DAEMON_TEXT_NFC_H
#define DAEMON_TEXT_NFC_H

#include <stddef.h>
#include <stdint.h>

#define NFC_GROWTH 3u /* a text grows to so many times its bytes, at most */

/*
 * A copy, for free().  *steps grows by the work done.  0 or -ENOMEM.
 */
int nfc_normalise(const char *text, size_t bytes, char **ret_text, size_t *ret_bytes,
                  uint64_t *steps);

#endif
