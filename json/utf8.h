/*
 * UTF-8: validation and characters, byte by byte.  Pure functions; any thread.
 */
#ifndef JSON_UTF8_H
#define JSON_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * The length of the character that these bytes (at least one) begin with; 0: the character is
 * incomplete; -1: invalid.
 */
int utf8_character(const char *text, size_t bytes);

/* How many bytes from the front are complete, valid characters: `bytes` if all are. */
size_t utf8_valid(const char *text, size_t bytes);

/*
 * Decodes the first character of `bytes` (`count` is at least 1).  Returns its code point, and its
 * length in *ret_length.  If the bytes are not UTF-8: -1, and a length of 1.  If only the end of
 * the character is missing: -2, and a length of 1.
 */
int32_t utf8_next(const char *bytes, size_t count, size_t *ret_length);

/* True if it could control a terminal: C0, DEL and C1, except newline and tab. */
int utf8_is_control(int32_t point);

#endif
