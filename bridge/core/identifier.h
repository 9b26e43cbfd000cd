/* Identifiers that nobody guesses: "chatcmpl-4fK2..." with 24 characters of base62. */
#ifndef BRIDGE_CORE_IDENTIFIER_H
#define BRIDGE_CORE_IDENTIFIER_H

#include <stddef.h>

/* Writes the prefix and 24 characters; `size` has space for them. */
void identifier_make(const char *prefix, char *to, size_t size);

#endif
