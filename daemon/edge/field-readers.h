/*
 * The readers of fields: one for each type of value.
 *
 * A reader gets the head of the value in `item`; the rest of the value is at in->at.  It checks the
 * value and stores it at the offset of the field, or in a member that the reader itself knows.  0,
 * WIRE_E_REFUSED with the problem, or -ENOMEM.
 */
#ifndef DAEMON_EDGE_FIELD_READERS_H
#define DAEMON_EDGE_FIELD_READERS_H

#include "daemon/edge/msgpack-reader.h"
#include "daemon/edge/wire-request.h"

#define U64_LIMIT 18446744073709551616.0 /* UINT64_MAX as a double */

/* The state while a field is read. */
struct reading {
        struct cursor at; /* behind the head of the value */
        struct wire_request *request;
        struct wire_problem *problem;
};

struct field {
        struct wire_row row;
        int (*read)(struct reading *in, const struct field *field, const struct item *item);
        size_t offset; /* in struct wire_request */
};

typedef int field_reader(struct reading *in, const struct field *field, const struct item *item);

field_reader read_uint32;
field_reader read_max_tokens;
field_reader read_uint64;
field_reader read_float;
field_reader read_bool;
field_reader read_text;
field_reader read_name;
field_reader read_op;
field_reader read_transport;
field_reader read_doorbell;
field_reader read_priority;
field_reader read_to;
field_reader read_order;
field_reader read_ask;
field_reader read_ask_late;
field_reader read_tool_choice;
field_reader read_biases;
field_reader read_id_list;
field_reader read_texts;
field_reader read_ring_bytes;
field_reader read_tokens;
field_reader read_stop_tokens;
field_reader read_versions;
field_reader read_features;
field_reader read_stop;
field_reader read_maps;
field_reader read_vars;

#endif
