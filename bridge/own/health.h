/* GET /health and /metrics. */
#ifndef BRIDGE_OWN_HEALTH_H
#define BRIDGE_OWN_HEALTH_H

#include "bridge/core/call.h"

void own_health(struct call *call);
void own_metrics(struct call *call);

#endif
