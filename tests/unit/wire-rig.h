/*
 * Bodies of requests, made field by field, and the decoder's verdict on them.
 *
 * A body is begun, filled as a map of a given number of pairs, and judged.
 */
#ifndef TESTS_UNIT_WIRE_RIG_H
#define TESTS_UNIT_WIRE_RIG_H

#include "daemon/edge/wire.h"

struct body {
        struct buffer buffer;
        struct wire_writer writer;
};

void body_begin(struct body *body, uint32_t pairs);

/* Raw msgpack, for bytes that no encoder would write. */
void put_raw(struct wire_writer *writer, const void *bytes, size_t count);
#define PUT_RAW(writer, ...)                                                                       \
        put_raw(writer, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))
void put_int(struct wire_writer *writer, int64_t value);
void put_ids(struct wire_writer *writer, uint32_t count, uint32_t id);
void put_message(struct wire_writer *writer, const char *role, const char *content);
void put_length(struct wire_writer *writer, size_t count);

/* The bytes written so far.  judge() decodes them and frees them. */
const uint8_t *body_bytes(struct body *body, size_t *ret_count);
int judge(struct body *body, struct wire_request *ret_request, struct wire_problem *ret_problem);

/*
 * put_sample() writes a value that the field accepts.  The other makes a request of that
 * operation with all required fields but one.
 */
void put_sample(struct wire_writer *writer, enum wire_field field);
void begin_without(struct body *body, enum wire_op op, enum wire_field field, uint32_t more);

/* For a row of the table: an operation that has the field, and a body up to the field's value. */
enum wire_op op_of(const struct wire_row *row);
struct wire_writer *begin_value(struct body *body, const struct wire_row *row);

/* These assert, and then free the body as judge() does. */
void expect_taken(struct body *body, struct wire_request *ret_request);
void expect_refused(struct body *body, enum smv_code code, const char *field);
void put_everything(struct body *body);

#endif
