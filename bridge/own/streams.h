/* /v1/streams/{id}: reads a kept stream again (bridge/core/kept.h). */
#ifndef BRIDGE_OWN_STREAMS_H
#define BRIDGE_OWN_STREAMS_H

#include "bridge/core/call.h"

void own_stream_resume(struct call *call); /* GET */
void own_stream_drop(struct call *call);   /* DELETE: it ends, and is forgotten */

#endif
