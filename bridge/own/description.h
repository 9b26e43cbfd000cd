/*
 * GET /openapi.json: docs/reference/openapi.json, which describes every route.  The build puts the
 * file into the program (bridge/own/embed).
 */
#ifndef BRIDGE_OWN_DESCRIPTION_H
#define BRIDGE_OWN_DESCRIPTION_H

#include <stddef.h>

#include "bridge/core/call.h"

extern const char description[]; /* with a NUL behind it */
extern const size_t description_bytes;

void own_description(struct call *call);

#endif
