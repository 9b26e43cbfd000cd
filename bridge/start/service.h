/*
 * The service: what samovar-http does that runs in the background for long.
 *
 * SIGTERM and SIGINT drain it: it takes no new connections, and running answers may end.  After
 * drain_timeout_ms, or at a second signal, those that still run get an error as their end.  SIGHUP
 * makes it read its settings and its file of keys again.
 *
 * The service manager, if there is one, hears READY=1 when the server listens, also if the daemon
 * is away: clients then get an answer that says so.  STATUS= says whether the daemon is there, and
 * later how many requests are left.  If the service manager watches over the program, a timer of
 * the loop tells it twice in each interval that the loop runs.  Loop thread only.
 */
#ifndef BRIDGE_START_SERVICE_H
#define BRIDGE_START_SERVICE_H

#include "base/loop.h"
#include "base/service-manager.h"
#include "bridge/core/bridge.h"
#include "bridge/start/config.h"

struct bridge_service;

struct bridge_service_conf {
        const struct service_manager *manager;
        struct bridge_config *config;
        int argc; /* the command line, to read the settings again */
        char **argv;
        struct bridge *bridge; /* with its server */
        struct loop *loop;
};

int bridge_service_new(const struct bridge_service_conf *conf, struct bridge_service **ret_service);
struct bridge_service *bridge_service_free(struct bridge_service *service); /* takes NULL */

/* The server listens. */
void bridge_service_is_ready(struct bridge_service *service);

#endif
