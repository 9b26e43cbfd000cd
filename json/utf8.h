/*
 * UTF-8 validation, byte by byte.  Pure functions; any thread.
 */
#ifndef JSON_UTF8_H
#define JSON_UTF8_H

#include <stddef.h>

/*
 * The length of the character that these bytes (at least one) begin with; 0: the character is
 * incomplete; -1: invalid.
 */
int utf8_character(const char *text, size_t bytes);

/* How many bytes from the front are complete, valid characters: `bytes` if all are. */
size_t utf8_valid(const char *text, size_t bytes);

#endif
