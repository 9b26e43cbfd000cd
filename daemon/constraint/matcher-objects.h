/* Which members an object may take next; for matcher-rows.c only. */
#ifndef CONSTRAINT_MATCHER_OBJECTS_H
#define CONSTRAINT_MATCHER_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/constraint/grammar.h"

/*
 * A register is the number of members, and a bit for each one that is there.  Both functions are
 * exact: an object that may take a member can be completed with it.
 */
bool object_may_take(const struct grammar *grammar, const struct grammar_object *object,
                     const uint32_t *seen, uint32_t member);
bool object_may_end(const struct grammar *grammar, const struct grammar_object *object,
                    const uint32_t *seen);
uint32_t object_key(const struct grammar *grammar, const struct grammar_object *object,
                    const uint32_t *seen, uint32_t member);

#endif
