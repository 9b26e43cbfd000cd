/*
 * The bridge: makes what all calls share, and begins a call for each request of HTTP.  Loop thread
 * only.
 */
#ifndef BRIDGE_CORE_BRIDGE_H
#define BRIDGE_CORE_BRIDGE_H

#include "bridge/core/call.h"
#include "bridge/core/context.h"
#include "bridge/core/routes.h"

/* The routes must live as long as the bridge. */
int bridge_new(const struct bridge_conf *conf, const struct route *routes, uint32_t route_count,
               struct bridge **ret_bridge);
struct bridge *bridge_free(struct bridge *bridge); /* takes NULL */

/* The program stops: what still runs ends with an error. */
void bridge_stop(struct bridge *bridge);

/* The handlers of the HTTP server; their arg is the bridge. */
struct http_handlers bridge_handlers(struct bridge *bridge);

/*
 * Finds the route of a path and begins the call.  On return the call may be over.  False: there is
 * no such route, and the call has failed.
 */
bool bridge_route(struct call *call);

/*
 * The daemon's name for the model that a request names: without ":latest", or by the table of
 * aliases.  *ret_model is NULL if the request names none: the daemon's default.  False: there is no
 * memory, and the call has failed.
 */
bool bridge_model(struct call *call, struct text name, const char **ret_model);
/* Fills in the facts of the model of that name; NULL: the default.  False: there is none. */
bool bridge_find_model(const struct call *call, const char *name, struct smv_model *ret_model);
/* The name of the daemon's default model. */
struct text bridge_model_name(const struct call *call);

#endif
