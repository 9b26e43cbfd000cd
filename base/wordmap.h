/*
 * Wordmap: a hash table from byte strings to numbers, safe against hostile strings.
 *
 * It hashes with its own secret key (SipHash-1-3), so that an attacker cannot prepare colliding
 * strings.  It does not copy the strings: they must outlive it.  Read-only once it is filled; then
 * any thread may use it.
 */
#ifndef BASE_WORDMAP_H
#define BASE_WORDMAP_H

#include <stddef.h>
#include <stdint.h>

#define WORDMAP_NONE UINT32_MAX

struct wordmap;

/* For at most strings_max strings.  Returns 0, -ENOMEM, or an error of the random source. */
int wordmap_new(uint32_t strings_max, struct wordmap **ret_map);
struct wordmap *wordmap_free(struct wordmap *map); /* takes NULL */

/* Returns the string's number from now on: `number`, or the one it already had. */
uint32_t wordmap_put(struct wordmap *map, const char *bytes, size_t count, uint32_t number);

/* Gives another number to a string that is in the map. */
void wordmap_replace(struct wordmap *map, const char *bytes, size_t count, uint32_t number);

/* WORDMAP_NONE: the string is not in the map. */
uint32_t wordmap_get(const struct wordmap *map, const char *bytes, size_t count);

#endif
