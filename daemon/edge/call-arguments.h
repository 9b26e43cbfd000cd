/*
 * Call arguments: how the dialect of a model writes the arguments of a call, for the compiler of
 * schemas.
 */
#ifndef DAEMON_EDGE_CALL_ARGUMENTS_H
#define DAEMON_EDGE_CALL_ARGUMENTS_H

#include "daemon/constraint/json-schema.h"
#include "daemon/text/parts/dialect.h"
#include "daemon/text/value.h"

/* The dialect has calls.  The memory of the options is that of the arena.  0 or -ENOMEM. */
int call_arguments_make(const struct dialect *dialect, struct arena *arena,
                        struct json_schema_options *ret_options);

#endif
