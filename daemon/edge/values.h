/*
 * Values: parts of a frame that go to a chat template as they are.
 *
 * They are judged where the frame is decoded, and made where it is rendered, on the
 * scribe.  Of what msgpack can say a template knows all but binary, numbers that are not
 * finite, and integers of more than 63 bits and a sign; keys are texts; texts are UTF-8.
 * Depth and keys of a map are the frame's (item.h).
 */
#ifndef DAEMON_EDGE_VALUES_H
#define DAEMON_EDGE_VALUES_H

#include "daemon/edge/wire.h"
#include "daemon/text/value.h"

struct cursor;

/* Past one whole value of a frame that was scanned: NULL, or what of it is not taken. */
const char *values_check(struct cursor *at, uint32_t *count);

/*
 * What the frame said: a list, or a map, whose strings are TEXT_GIVEN.  0, -ENOMEM, or
 * VALUE_E_TWICE: a key is in a map twice.  Not given: a none.
 */
int values_list(struct arena *arena, const struct wire_values *values, struct value *ret_list);
int values_map(struct arena *arena, const struct wire_values *values, struct value *ret_map);

/* Bytes of all that was sent, and what an arena needs for the values it is. */
size_t values_bytes(const struct wire_talk *talk);
size_t values_arena_bytes(const struct wire_talk *talk);

#endif
