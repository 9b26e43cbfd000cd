/*
 * The service: what a daemon does that runs in the background for long.
 *
 * SIGTERM and SIGINT drain it, and a second one ends what still runs.  SIGHUP makes it read its
 * settings again; a terminal that is closed sends SIGHUP too, and the daemon serves on.  The
 * service manager, if there is one, hears when the daemon serves, how far it has loaded, when it
 * stops, and then how many requests are left, and for how long at most.
 *
 * If the service manager watches over the daemon, it hears from it twice in each interval, but only
 * while loop and engine make progress: a timer of the loop sends the engine a mail, and tells the
 * service manager only when the engine has taken the one before.  So a backend that hangs is
 * noticed.  Loop thread only.
 */
#ifndef DAEMON_START_SERVICE_H
#define DAEMON_START_SERVICE_H

#include "daemon/edge/context.h"
#include "daemon/start/config.h"
#include "base/service-manager.h"

struct service;

struct service_conf {
        const struct service_manager *manager;
        struct config *config;
        int argc; /* the command line, to read the settings again */
        char **argv;
        struct edge *edge;
        struct loop *loop;
        struct stats *stats;
        struct mailbox *to_engine;
        const char *model; /* its name, for people */
};

int service_new(const struct service_conf *conf, struct service **ret_service);
struct service *service_free(struct service *service); /* takes NULL */

/* The daemon listens and its threads run. */
void service_is_ready(struct service *service);

#endif
