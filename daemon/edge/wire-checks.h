/*
 * The checks between the fields of a request, each of which is right by itself.
 *
 * Pure functions, for wire.c alone.
 */
#ifndef DAEMON_EDGE_WIRE_CHECKS_H
#define DAEMON_EDGE_WIRE_CHECKS_H

#include "daemon/edge/field-readers.h"

/*
 * Are all required fields given, and do those that are given go together?  Sets the defaults that
 * depend on other fields.  0 or WIRE_E_REFUSED.
 */
int wire_check(struct reading *in);

int wire_refuse_missing(struct reading *in, enum wire_field number);

#endif
