/*
 * Values: parts of a frame that go to a chat template as they are.
 *
 * They are checked where the frame is decoded.  They are made where the template is rendered, on
 * the text worker.  A template knows all msgpack values except binary, numbers that are not finite,
 * and integers of more than 63 bits and a sign.  Keys are texts; texts are UTF-8.  The frame limits
 * depth and the number of keys of a map (msgpack-reader.h).
 */
#ifndef DAEMON_EDGE_VALUES_H
#define DAEMON_EDGE_VALUES_H

#include "daemon/edge/msgpack-reader.h"
#include "daemon/edge/wire-request.h"
#include "daemon/text/value.h"

/*
 * Moves past one whole value of a frame that was scanned, and adds to *count.  NULL, or what is
 * refused.
 */
const char *values_check(struct cursor *at, uint32_t *count);

/*
 * Makes a list, or a map, from the frame; its strings are TEXT_GIVEN. 0, -ENOMEM, or VALUE_E_TWICE:
 * a map has a key twice.  If it was not given: a none.
 */
int values_list(struct arena *arena, const struct wire_values *values, struct value *ret_list);
int values_map(struct arena *arena, const struct wire_values *values, struct value *ret_map);

/* The bytes of all three parts as sent, and the bytes that an arena needs for their values. */
size_t values_bytes(const struct wire_chat *chat);
size_t values_arena_bytes(const struct wire_chat *chat);

#endif
