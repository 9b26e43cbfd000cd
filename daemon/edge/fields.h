/* Between wire.c and fields.c only: the table of fields, and how each is read. */
#ifndef DAEMON_EDGE_FIELDS_H
#define DAEMON_EDGE_FIELDS_H

#include "daemon/edge/item.h"
#include "daemon/edge/wire.h"

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

const struct field *field_at(enum wire_field number);
const struct field *field_find(const char *name, size_t bytes); /* NULL: there is none */
bool field_reserved(const char *name, size_t bytes);

/*
 * Makes text of a client fit to be shown: cut, without control bytes and without half characters.
 */
void field_shown(char ret_shown[32], const char *name, size_t bytes);

#endif
