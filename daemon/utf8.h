/*
 * UTF-8, judged byte by byte.  Pure functions; any thread.
 */
#ifndef DAEMON_UTF8_H
#define DAEMON_UTF8_H

#include <stddef.h>

/* Bytes (at least one) begin with a character of this length; 0: its rest is missing; -1: none. */
int utf8_character(const char *text, size_t bytes);

/* How many bytes from the front are whole, valid characters: `bytes` if all are. */
size_t utf8_valid(const char *text, size_t bytes);

#endif
