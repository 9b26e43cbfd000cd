/* The table of fields: wire.c reads a frame by it. */
#ifndef DAEMON_EDGE_FIELDS_H
#define DAEMON_EDGE_FIELDS_H

#include "daemon/edge/field-readers.h"

const struct field *field_at(enum wire_field number);
const struct field *field_find(const char *name, size_t bytes); /* NULL: there is none */
/* True for the name of a field that a later version will have. */
bool field_reserved(const char *name, size_t bytes);

#endif
