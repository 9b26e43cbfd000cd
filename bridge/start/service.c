#include "bridge/start/service.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "bridge/core/pulse.h"
#include "bridge/http/server.h"

#define NS_PER_MS   UINT64_C(1000000)
#define NS_PER_US   UINT64_C(1000)
#define NS_PER_S    UINT64_C(1000000000)
#define PROGRESS_NS NS_PER_S
/* What follows the draining: running answers got their end, and clients read it. */
#define ENDING_MS 5000u

enum state { SERVES, DRAINS, ENDS };

struct bridge_service {
        struct bridge_service_conf conf;
        struct loop_timer *watchdog; /* NULL: nobody watches */
        struct loop_timer *progress; /* NULL: nobody is told */
        struct loop_timer *end;      /* of the draining, then of the ending */
        enum state state;
        uint64_t end_ns;  /* DRAINS, ENDS: when it is over at the latest */
        char status[256]; /* the last one that was told */
};

/* ---- what the service manager hears ---- */

static uint64_t seconds_left(const struct bridge_service *service)
{
        uint64_t now_ns = sys_clock_ns();

        return service->end_ns > now_ns ? (service->end_ns - now_ns + NS_PER_S - 1) / NS_PER_S : 0;
}

static void write_status(const struct bridge_service *service, char *to, size_t bytes)
{
        const struct bridge *bridge = service->conf.bridge;
        struct pulse_state daemon = pulse_state(bridge->pulse);

        if (service->state != SERVES)
                snprintf(to, bytes, "draining: %" PRIu32 " request%s, %" PRIu64 " s left",
                         bridge->call_count, bridge->call_count == 1 ? "" : "s",
                         seconds_left(service));
        else if (!daemon.connected)
                snprintf(to, bytes, "waiting for samovard: %s",
                         link_why(links_get(bridge->links, 0, NULL)));
        else if (!daemon.loaded)
                snprintf(to, bytes, "waiting for samovard: it loads, %u %%",
                         (unsigned)(daemon.share * 100));
        else
                snprintf(to, bytes, "serving");
}

/* Tells what has changed, once in a while. */
static void on_progress(void *arg)
{
        struct bridge_service *service = arg;
        char status[sizeof(service->status)];

        if (!service->progress)
                return;
        write_status(service, status, sizeof(status));
        if (strcmp(status, service->status)) {
                snprintf(service->status, sizeof(service->status), "%s", status);
                service_manager_tell(service->conf.manager, "STATUS=%s", status);
        }
        (void)loop_timer_set(service->progress, PROGRESS_NS);
}

static void on_watchdog(void *arg)
{
        struct bridge_service *service = arg;
        const struct service_manager *manager = service->conf.manager;

        (void)loop_timer_set(service->watchdog, manager->watchdog_ns / 2);
        service_manager_tell(manager, "WATCHDOG=1");
}

/* ---- the end ---- */

static void set_end(struct bridge_service *service, uint64_t in_ms)
{
        service->end_ns = sys_clock_ns() + in_ms * NS_PER_MS;
        if (loop_timer_set(service->end, in_ms * NS_PER_MS))
                loop_stop(service->conf.loop);
}

/* The draining is over: running answers end with an error; then clients had time to read that. */
static void on_end(void *arg)
{
        struct bridge_service *service = arg;

        if (service->state == ENDS) {
                loop_stop(service->conf.loop);
                return;
        }
        service->state = ENDS;
        if (service->conf.bridge->call_count)
                log_warn("requests_ended count=%" PRIu32, service->conf.bridge->call_count);
        set_end(service, ENDING_MS);
        bridge_stop(service->conf.bridge);
}

/* A second signal skips the draining. */
static void on_stop(void *arg)
{
        struct bridge_service *service = arg;
        const struct bridge_service_conf *conf = &service->conf;

        log_info("stopping requests=%" PRIu32, conf->bridge->call_count);
        if (service->state == SERVES) {
                service->state = DRAINS;
                service_manager_tell(conf->manager, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
                                     ((uint64_t)conf->config->drain_timeout_ms + ENDING_MS) * 1000);
                set_end(service, conf->config->drain_timeout_ms);
                http_server_stop(conf->bridge->server);
                if (http_server_is_idle(conf->bridge->server))
                        loop_stop(conf->loop);
        } else if (service->state == DRAINS) {
                on_end(service);
        }
        on_progress(service);
}

/* ---- settings ---- */

static void reload_keys(struct bridge_service *service)
{
        const struct bridge_service_conf *conf = &service->conf;
        char why[512];

        if (!conf->config->keys)
                return;
        if (http_server_reload_keys(conf->bridge->server, why, sizeof(why)))
                log_error("reload_keys_refused why=%s", why);
        else
                log_info("reloaded_keys file=%s", conf->config->keys);
}

static void on_reload(void *arg)
{
        struct bridge_service *service = arg;
        const struct bridge_service_conf *conf = &service->conf;
        char why[512];

        service_manager_tell(conf->manager, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                             sys_clock_ns() / NS_PER_US);
        if (settings_reload(&bridge_config_table, conf->config, conf->argc, conf->argv, why,
                            sizeof(why))) {
                log_error("reload_refused why=%s", why);
        } else {
                log_set_level((enum log_level)conf->config->log_level);
                log_info("reloaded file=%s", conf->config->file ? conf->config->file : "none");
                if (*why)
                        log_warn("reload_needs_restart settings=%s", why);
        }
        reload_keys(service);
        service_manager_tell(conf->manager, "READY=1");
}

void bridge_service_is_ready(struct bridge_service *service)
{
        service_manager_tell(service->conf.manager, "READY=1");
        on_progress(service);
        if (service->watchdog)
                on_watchdog(service);
}

/* ---- life ---- */

static int open_timers(struct bridge_service *service)
{
        const struct bridge_service_conf *conf = &service->conf;
        int r;

        r = loop_timer_new(conf->loop, on_end, service, &service->end);
        if (!r && conf->manager->fd >= 0)
                r = loop_timer_new(conf->loop, on_progress, service, &service->progress);
        if (!r && conf->manager->fd >= 0 && conf->manager->watchdog_ns)
                r = loop_timer_new(conf->loop, on_watchdog, service, &service->watchdog);
        return error_pass(r);
}

int bridge_service_new(const struct bridge_service_conf *conf, struct bridge_service **ret_service)
{
        struct bridge_service *service = calloc(1, sizeof(*service));
        int r;

        if (!service)
                return error_raise(-ENOMEM);
        service->conf = *conf;
        r = open_timers(service);
        if (!r)
                r = loop_signal(conf->loop, SIGTERM, on_stop, service);
        if (!r)
                r = loop_signal(conf->loop, SIGINT, on_stop, service);
        if (!r)
                r = loop_signal(conf->loop, SIGHUP, on_reload, service);
        if (r) {
                bridge_service_free(service);
                return error_pass(r);
        }
        *ret_service = service;
        return 0;
}

struct bridge_service *bridge_service_free(struct bridge_service *service)
{
        if (!service)
                return NULL;
        loop_timer_free(service->watchdog);
        loop_timer_free(service->progress);
        loop_timer_free(service->end);
        free(service);
        return NULL;
}
