/* Base64 with padding (RFC 4648), as files of ranks write bytes. */
#ifndef DAEMON_FILES_BASE64_H
#define DAEMON_FILES_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* `to` has room for count / 4 * 3 bytes.  False: it is not Base64. */
bool base64_decode(const char *text, size_t count, char *to, size_t *ret_bytes);

#endif
