#include "bridge/own/health.h"

#include <errno.h>
#include <string.h>

#include "bridge/core/bridge.h"
#include "bridge/core/metrics.h"
#include "bridge/core/pulse.h"
#include "json/reader.h"

#define NODES_MAX    65536u
#define WHY_BYTES    128u
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_WAIT UINT64_C(1000000000)

/* It never asks the daemon, so it is quick while the daemon is busy, loads, or hangs. */
void own_health(struct call *call)
{
        struct pulse_state state = pulse_state(call->bridge->pulse);
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);
        bool ok = state.connected && state.loaded;

        json_put_object(&to);
        json_put_key_word(&to, "status", ok ? "ok" : state.connected ? "loading" : "unavailable");
        if (!ok) {
                json_put_key(&to, "loaded");
                json_put_float(&to, state.share);
                json_put_key_word(&to, "message",
                                  state.connected
                                          ? "samovard is loading the model"
                                          : link_why(links_get(call->bridge->links, 0, NULL)));
        }
        json_put_object_end(&to);
        if (json_put_end(&to))
                call_no_memory(call);
        else
                call_reply(call, ok ? 200 : 503, "application/json", body.at, body.count);
        bytes_deinit(&body);
}

/* ---- metrics ---- */

struct scrape {
        struct loop_timer *patience;
};

static void clean(struct call *call)
{
        struct scrape *scrape = call->own;

        scrape->patience = loop_timer_free(scrape->patience);
}

static void write_metrics(struct call *call, const struct json_document *status)
{
        /* A holder of a key, or another user, may not know what each of them does. */
        struct metrics_now now = {
                .calls = call->bridge->call_count,
                .status = status,
                .shows_users = !call->principal && !call->bridge->conf.serves_strangers,
        };
        struct bytes body = { 0 };

        http_server_counts(call->bridge->server, &now.http);
        if (metrics_write(call->bridge->metrics, &now, &body))
                call_no_memory(call);
        else
                call_reply(call, 200, METRICS_TYPE, body.at, body.count);
        bytes_deinit(&body);
}

static void on_status(struct call *call, const struct smv_event *answer)
{
        struct json_document *json = NULL;
        char why[WHY_BYTES];

        if (json_parse(answer->text, answer->text_bytes, NODES_MAX, &json, why, sizeof(why)))
                json = NULL;
        write_metrics(call, json);
        json_free(json);
}

/* The daemon hangs: the bridge's own numbers are worth more then than none. */
static void on_impatient(void *arg)
{
        write_metrics(arg, NULL);
}

void own_metrics(struct call *call)
{
        struct smv_client *client;
        struct scrape *scrape;
        uint32_t request;

        call->link = links_get(call->bridge->links, 0, NULL);
        client = link_client(call->link);
        call->own = scrape = arena_alloc(&call->arena, sizeof(*scrape));
        if (!scrape ||
            loop_timer_new(call->bridge->conf.loop, on_impatient, call, &scrape->patience)) {
                call_no_memory(call);
                return;
        }
        call->clean = clean;
        loop_timer_set(scrape->patience, METRICS_WAIT);
        if (client && !smv_ask_status(client, &request))
                call_ask(call, 0, request, on_status);
        else
                write_metrics(call, NULL);
}
