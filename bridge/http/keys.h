/*
 * API keys: a file with a line KEY NAME for each.
 *
 * NAME is the principal: the user whose requests these are.  Several keys may have the same name.
 * A line that begins with '#' is a comment.  The file must belong to root or to our own user, and
 * others may not read it, nor anyone but the owner write it.  Messages never contain a key.
 */
#ifndef BRIDGE_HTTP_KEYS_H
#define BRIDGE_HTTP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_KEY_MIN  16u
#define HTTP_KEY_MAX  512u
#define HTTP_NAME_MAX 64u

struct http_keys;

int http_keys_new(struct http_keys **ret_keys); /* without any */
struct http_keys *http_keys_free(struct http_keys *keys);

/* Reads the file, and forgets the keys before it.  On an error they stay, and *why says why. */
int http_keys_read(struct http_keys *keys, const char *path, char *why, size_t why_bytes);

/*
 * The principal of this key, from 1; 0: it is none of them.  How long it takes depends on the
 * length of what was given, and not on what is in it.
 */
uint32_t http_keys_find(const struct http_keys *keys, const char *given, size_t bytes);
/* NULL: there is none of this number.  A name keeps its number for good. */
const char *http_keys_name(const struct http_keys *keys, uint32_t principal);
/* The principal of this name, if there is a key for it now; else 0. */
uint32_t http_keys_principal(const struct http_keys *keys, const char *name);
/* 1 to 64 of the characters a-z, A-Z, 0-9 and ._@- */
bool http_name_is_valid(const char *name, size_t bytes);

#endif
