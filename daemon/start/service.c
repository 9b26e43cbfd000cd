#include "daemon/start/service.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "daemon/edge/edge.h"

#define NS_PER_MS   UINT64_C(1000000)
#define NS_PER_US   UINT64_C(1000)
#define NS_PER_S    UINT64_C(1000000000)
#define PROGRESS_NS NS_PER_S
#define DRAINING_NS (5 * NS_PER_S)
/* What follows the draining: every stream is ended, and clients read the rest. */
#define ENDING_MS 5000u

struct service {
        struct service_conf conf;
        struct loop_timer *watchdog; /* NULL: nobody watches */
        /* Set until the model is loaded, and from the first signal on; NULL: nobody is told. */
        struct loop_timer *progress;
        uint64_t pings;  /* sent to the engine */
        uint64_t end_ns; /* if it stops: when it has ended at the latest */
        bool stops;
};

/* ---- the end ---- */

static void tell_draining(struct service *service)
{
        uint32_t requests = edge_requests(service->conf.edge);
        uint64_t now_ns = sys_clock_ns(), left_s = 0;

        if (service->end_ns > now_ns)
                left_s = (service->end_ns - now_ns + NS_PER_S - 1) / NS_PER_S;
        service_manager_tell(service->conf.manager,
                             "STATUS=draining: %" PRIu32 " request%s, %" PRIu64 " s left", requests,
                             requests == 1 ? "" : "s", left_s);
        if (service->progress)
                (void)loop_timer_set(service->progress, DRAINING_NS);
}

static void on_stop(void *arg)
{
        struct service *service = arg;
        const struct service_conf *conf = &service->conf;
        /* A second signal skips the draining. */
        uint64_t most_ms = (service->stops ? 0 : conf->config->drain_timeout_ms) + ENDING_MS;

        log_info("stopping");
        if (!service->stops)
                service_manager_tell(conf->manager, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
                                     most_ms * 1000);
        service->stops = true;
        service->end_ns = sys_clock_ns() + most_ms * NS_PER_MS;
        tell_draining(service);
        edge_drain(conf->edge);
        /* Requests that wait for the weights would not finish in time, so they end now. */
        if (counter_get(&conf->stats->load_bytes) < counter_get(&conf->stats->load_total))
                edge_drain(conf->edge);
}

/* ---- settings ---- */

static void on_reload(void *arg)
{
        struct service *service = arg;
        const struct service_conf *conf = &service->conf;
        char why[512];

        service_manager_tell(conf->manager, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                             sys_clock_ns() / NS_PER_US);
        if (settings_reload(&config_table, conf->config, conf->argc, conf->argv, why,
                            sizeof(why))) {
                log_error("reload_refused why=%s", why);
        } else {
                log_set_level((enum log_level)conf->config->log_level);
                edge_reload(conf->edge);
                log_info("reloaded file=%s", conf->config->file ? conf->config->file : "none");
                if (*why)
                        log_warn("reload_needs_restart settings=%s", why);
        }
        service_manager_tell(conf->manager, "READY=1");
}

/* ---- what the service manager hears ---- */

static void on_progress(void *arg)
{
        struct service *service = arg;
        const struct service_conf *conf = &service->conf;
        uint64_t have = counter_get(&conf->stats->load_bytes);
        uint64_t total = counter_get(&conf->stats->load_total);

        if (service->stops) {
                tell_draining(service);
                return;
        }
        if (have >= total) {
                service_manager_tell(conf->manager, "STATUS=serving %s", conf->model);
                return;
        }
        service_manager_tell(conf->manager, "STATUS=loading %s, %u %%", conf->model,
                             (unsigned)((double)have / (double)total * 100));
        (void)loop_timer_set(service->progress, PROGRESS_NS);
}

static void on_watchdog(void *arg)
{
        struct service *service = arg;
        const struct service_conf *conf = &service->conf;
        const struct mail ping = { .kind = MAIL_PING };

        (void)loop_timer_set(service->watchdog, conf->manager->watchdog_ns / 2);
        if (counter_get(&conf->stats->pings_taken) < service->pings)
                return;
        service_manager_tell(conf->manager, "WATCHDOG=1");
        service->pings++;
        mailbox_post(conf->to_engine, &ping);
}

void service_is_ready(struct service *service)
{
        service_manager_tell(service->conf.manager, "READY=1");
        if (service->progress)
                on_progress(service);
        if (service->watchdog)
                on_watchdog(service);
}

/* ---- life ---- */

static int open_timers(struct service *service)
{
        const struct service_conf *conf = &service->conf;
        int r = 0;

        if (conf->manager->fd < 0)
                return 0;
        r = loop_timer_new(conf->loop, on_progress, service, &service->progress);
        if (!r && conf->manager->watchdog_ns)
                r = loop_timer_new(conf->loop, on_watchdog, service, &service->watchdog);
        return error_pass(r);
}

int service_new(const struct service_conf *conf, struct service **ret_service)
{
        struct service *service = calloc(1, sizeof(*service));
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
                service_free(service);
                return error_pass(r);
        }
        *ret_service = service;
        return 0;
}

struct service *service_free(struct service *service)
{
        if (!service)
                return NULL;
        loop_timer_free(service->watchdog);
        loop_timer_free(service->progress);
        free(service);
        return NULL;
}
