/*
 * JSON, written only.  The first failure sticks in `result`; the text is not
 * NUL-ended until json_end().  Whatever the input, what comes out is safe
 * for terminals and valid UTF-8: control characters are escaped, bytes that are
 * no UTF-8 become U+FFFD, and numbers do not depend on the locale.
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
void json_float(struct json *json, double value); /* what is not finite becomes null */
int json_end(struct json *json);

/*
 * The character at the front of `bytes` (at least one of them): its code point,
 * and in *ret_length its bytes.  What is no UTF-8 gives -1 and a length of 1, or
 * -2 where only the end is missing.
 */
int32_t utf8_next(const char *bytes, size_t count, size_t *ret_length);

/* Could it drive a terminal?  C0, DEL and C1, all but newline and tab. */
int utf8_is_control(int32_t point);

#endif
