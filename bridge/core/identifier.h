/* Identifiers that nobody guesses: "chatcmpl-4fK2..." with 24 characters of base62. */
#ifndef BRIDGE_CORE_IDENTIFIER_H
#define BRIDGE_CORE_IDENTIFIER_H

#include <stddef.h>
#include <stdint.h>

/* Writes the prefix and 24 characters; `size` has space for them. */
void identifier_make(const char *prefix, char *to, size_t size);

/* The same id for the same key and number: so that an answer can be written again. */
void identifier_derive(const char *prefix, const uint64_t key[2], uint64_t number, char *to,
                       size_t size);

#endif
