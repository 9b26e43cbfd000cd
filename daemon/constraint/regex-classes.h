/* Reads one character, escape or class of a regular expression; for regex-text.c only. */
#ifndef CONSTRAINT_REGEX_CLASSES_H
#define CONSTRAINT_REGEX_CLASSES_H

#include <stddef.h>

#include "daemon/constraint/characters.h"

/*
 * Adds what it matches to the set, and moves *at behind it.  `text` is UTF-8, and *at is before its
 * end.  Returns NULL, or what is wrong.
 */
const char *class_read(const char *text, size_t bytes, size_t *at, struct characters *set);

#endif
