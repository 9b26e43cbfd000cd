/* Every route of the bridge: what it takes, and the handler. */
#ifndef BRIDGE_START_ROUTES_H
#define BRIDGE_START_ROUTES_H

#include "bridge/core/routes.h"

extern const struct route routes[];
extern const uint32_t route_count;

#endif
