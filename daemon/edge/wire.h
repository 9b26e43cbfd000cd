/*
 * Wire: bytes to requests, replies to bytes.  Only this module uses msgpack in the daemon.
 *
 * Everything that comes in is hostile.  A frame is first judged by its length.  Then it is scanned
 * without recursion or allocation (depth, keys of a map, elements against bytes left, no ext
 * types).  Only then is it read.  Every field is a row of one table (fields.c): which operations
 * take it, its type, its range.  Unknown, repeated, missing, mistyped and out-of-range fields are
 * refused with the field's name and the limit.  Nothing is ignored, and nothing is coerced.
 *
 * There are two severities.  A frame that is not a frame (too long, not msgpack, no map) ends the
 * connection after its reply.  A refused field ends only the request.
 *
 * Pure functions on memory; loop thread, text worker's thread and the fuzzers.
 */
#ifndef DAEMON_EDGE_WIRE_H
#define DAEMON_EDGE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/edge/buffer.h"
#include "daemon/edge/wire-request.h"

/*
 * Is there a whole frame at the front of these bytes?  0: *ret_bytes is its size with its length
 * word, and *ret_body its body, which may be empty (a doorbell).
 * WIRE_E_PARTIAL: *ret_bytes is the number of bytes needed, 4 if the length word is not whole.
 * WIRE_E_REFUSED: longer than frame_max; known from the length word alone.
 */
int wire_frame(const uint8_t *bytes, size_t count, size_t frame_max, size_t *ret_bytes,
               const uint8_t **ret_body, struct wire_problem *ret_problem);

/*
 * Decodes the body of one frame to a request.  Admission checks which ids the model has.
 * 0, WIRE_E_REFUSED, or -ENOMEM (then only ret_problem->id is set).  Release after 0 only; texts
 * point into `body`.
 */
int wire_decode(const uint8_t *body, size_t count, struct wire_request *ret_request,
                struct wire_problem *ret_problem);
void wire_release(struct wire_request *request);

/* The id of a request that is not decoded now, if the first 4 KiB of the frame have it; or 0. */
uint32_t wire_peek_id(const uint8_t *body, size_t count);

/* The pre-scan alone: is it one msgpack map within the limits? */
bool wire_scan(const uint8_t *body, size_t count);

/* The rows of the table, for docs and for tests that walk every range: NULL after the last. */
const struct wire_row *wire_row(uint32_t index);

/*
 * To write: wire_begin(), puts, wire_end().  The first failure sticks until wire_end() returns it
 * (0, BUFFER_E_FULL, -ENOMEM) and removes the frame.
 */
struct wire_writer {
        struct buffer *to;
        size_t frame; /* offset of its length word from the buffer's start */
        int result;
};

void wire_begin(struct wire_writer *writer, struct buffer *to);
void wire_put_map(struct wire_writer *writer, uint32_t pairs);
void wire_put_array(struct wire_writer *writer, uint32_t count);
void wire_put_text(struct wire_writer *writer, const char *text);
/* as msgpack str */
void wire_put_bytes(struct wire_writer *writer, const char *bytes, size_t count);
void wire_put_bin(struct wire_writer *writer, const void *bytes, size_t count);
void wire_put_uint(struct wire_writer *writer, uint64_t value);
void wire_put_float(struct wire_writer *writer, double value);
void wire_put_bool(struct wire_writer *writer, bool value);
int wire_end(struct wire_writer *writer);

/* Puts {id, ok: true, and `more` pairs that the caller puts}. */
void wire_put_ok(struct wire_writer *writer, uint32_t id, uint32_t more);

/* Writes a whole error frame. */
int wire_error(struct buffer *to, const struct wire_problem *problem);

#endif
