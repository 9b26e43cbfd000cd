/*
 * Writes JSON.  The first failure is remembered in `result`.  The text is NUL-terminated only
 * after json_end().  For any input, the output is valid UTF-8 and safe for terminals:
 * control characters are escaped, bytes that are not UTF-8 become U+FFFD, and numbers
 * do not depend on the locale.
 */
#ifndef CLIENT_JSON_H
#define CLIENT_JSON_H

#include <stdint.h>

#include "client/bytes.h"

struct json {
        struct bytes *to;
        int result; /* 0 or -ENOMEM */
};

void json_raw(struct json *json, const char *text); /* punctuation, true, null */
void json_text(struct json *json, const char *text, size_t bytes);
void json_uint(struct json *json, uint64_t value);
void json_int(struct json *json, int64_t value);
void json_float(struct json *json, double value); /* infinity and NaN become null */
int json_end(struct json *json);

/*
 * Decodes the first character of `bytes` (`count` is at least 1).  Returns its code point, and its
 * length in *ret_length.  If the bytes are not UTF-8: -1, and a length of 1.  If only the end of
 * the character is missing: -2, and a length of 1.
 */
int32_t utf8_next(const char *bytes, size_t count, size_t *ret_length);

/* True if it could control a terminal: C0, DEL and C1, except newline and tab. */
int utf8_is_control(int32_t point);

#endif
