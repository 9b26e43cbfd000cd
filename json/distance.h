/*
 * How much two names differ, for a message that asks whether another name was meant.
 */
#ifndef JSON_DISTANCE_H
#define JSON_DISTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISTANCE_NONE UINT32_MAX

/* The letters to insert, delete, change or swap to get from a to b; - counts as _. */
uint32_t distance(const char *a, size_t a_bytes, const char *b);

/*
 * True if `name` is a better hint for `given` than any name before.  *best is the least distance so
 * far: DISTANCE_NONE before the first name.  A name that differs by half or more is no hint.
 */
bool distance_is_hint(const char *given, size_t given_bytes, const char *name, uint32_t *best);

#endif
