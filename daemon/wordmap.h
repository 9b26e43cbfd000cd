/*
 * Wordmap: from byte strings to numbers, where an enemy may have chosen the strings.
 *
 * A hash table with a secret of its own (SipHash-1-3), so that nobody can prepare
 * strings that collide.  It does not copy them: they must outlive it.  Read-only
 * once it is filled; then any thread.
 */
#ifndef DAEMON_WORDMAP_H
#define DAEMON_WORDMAP_H

#include <stddef.h>
#include <stdint.h>

#define WORDMAP_NONE UINT32_MAX

struct wordmap;

/* For at most so many strings.  0, -ENOMEM, or that there is no randomness. */
int wordmap_new(uint32_t strings_max, struct wordmap **ret_map);
struct wordmap *wordmap_free(struct wordmap *map); /* takes NULL */

/* The number that the string has from then on: `number`, or the one it had before. */
uint32_t wordmap_put(struct wordmap *map, const char *bytes, size_t count, uint32_t number);

/* WORDMAP_NONE: it is not in there. */
uint32_t wordmap_get(const struct wordmap *map, const char *bytes, size_t count);

#endif
