/*
 * The JSON writer.  The first failure is remembered in `result`.  The text is NUL-terminated only
 * after json_write_end().  For any input, the output is valid UTF-8 and safe for terminals:
 * control characters are escaped, bytes that are not UTF-8 become U+FFFD, and numbers
 * do not depend on the locale.
 */
#ifndef JSON_WRITER_H
#define JSON_WRITER_H

#include <stdint.h>

#include "json/bytes.h"

struct json_writer {
        struct bytes *to;
        int result; /* 0 or -ENOMEM */
};

void json_write_raw(struct json_writer *json, const char *text); /* punctuation, true, null */
void json_write_text(struct json_writer *json, const char *text, size_t bytes);
void json_write_uint(struct json_writer *json, uint64_t value);
void json_write_int(struct json_writer *json, int64_t value);
void json_write_float(struct json_writer *json, double value); /* infinity and NaN become null */
int json_write_end(struct json_writer *json);

#endif
