/*
 * The work of the daemon, as the page of samovar-http shows it: its status, its streams and
 * handles, and a map of its pool.  Each user sees what the daemon shows to its principal.
 */
#ifndef BRIDGE_OWN_LIVE_H
#define BRIDGE_OWN_LIVE_H

#include "bridge/core/call.h"

void own_status(struct call *call);   /* GET /samovar/status */
void own_work(struct call *call);     /* GET /samovar/work */
void own_work_end(struct call *call); /* DELETE /samovar/work/{number} */
void own_pool(struct call *call);     /* GET /samovar/pool?from=N */

#endif
