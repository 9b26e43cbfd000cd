#include "bridge/core/bridge.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "bridge/core/history.h"
#include "bridge/core/metrics.h"
#include "bridge/core/pulse.h"
#include "bridge/core/routes.h"
#include "bridge/core/vocabulary.h"

#define NS_PER_S    UINT64_C(1000000000)
#define SPOOL_BYTES (UINT64_C(200) << 20)

struct whole {
        struct bridge bridge;
        const struct route *routes;
        uint32_t route_count;
};

static const struct whole *whole_of(const struct bridge *bridge)
{
        return (const struct whole *)(const void *)bridge; /* it is the first member */
}

/* ---- routes ---- */

/* Does the path fit the pattern?  *ret_tail: what stands for the last `{}`. */
static bool fits(const char *pattern, const char *path, struct text *ret_tail)
{
        *ret_tail = (struct text){ 0 };
        while (*pattern) {
                if (strncmp(pattern, "{}", 2)) {
                        if (*pattern++ != *path++)
                                return false;
                        continue;
                }
                pattern += 2;
                *ret_tail = (struct text){ path, *pattern ? strcspn(path, "/") : strlen(path) };
                if (!ret_tail->bytes)
                        return false;
                path += ret_tail->bytes;
        }
        return !*path;
}

static const struct route *find(const struct bridge *bridge, enum http_method method,
                                const char *path, struct text *ret_tail, bool *ret_path_known)
{
        enum http_method wanted = method == HTTP_HEAD ? HTTP_GET : method;

        *ret_path_known = false;
        for (uint32_t i = 0; i < whole_of(bridge)->route_count; i++) {
                const struct route *route = &whole_of(bridge)->routes[i];

                if (!fits(route->pattern, path, ret_tail))
                        continue;
                *ret_path_known = true;
                if (route->method == wanted)
                        return route;
        }
        return NULL;
}

static const char *const method_names[] = {
        [HTTP_GET] = "GET",         [HTTP_HEAD] = "HEAD",   [HTTP_POST] = "POST",
        [HTTP_PUT] = "PUT",         [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE",
        [HTTP_OPTIONS] = "OPTIONS",
};

/* The methods that the path has, for the header Allow. */
static void list_methods(const struct bridge *bridge, const char *path, char *to, size_t size)
{
        struct text tail;
        size_t at = 0;

        *to = '\0';
        for (uint32_t i = 0; i < whole_of(bridge)->route_count; i++) {
                const struct route *route = &whole_of(bridge)->routes[i];

                if (fits(route->pattern, path, &tail) && at < size)
                        at += (size_t)snprintf(to + at, size - at, "%s%s%s", at ? ", " : "",
                                               method_names[route->method],
                                               route->method == HTTP_GET ? ", HEAD" : "");
        }
}

bool bridge_route(struct call *call)
{
        const struct route *route;
        struct failure failure;
        bool path_known;
        char allow[64];

        call->dialect = failure_dialect(call->path);
        route = find(call->bridge, call->method, call->path, &call->tail, &path_known);
        if (route) {
                call->route = route->pattern;
                route->handle(call);
                return true;
        }
        if (path_known) {
                list_methods(call->bridge, call->path, allow, sizeof(allow));
                call_header(call, "allow", allow);
                failure = failure_make(FAILURE_METHOD, NULL, "%s does not take %s; it takes %s",
                                       call->path, method_names[call->method], allow);
        } else {
                failure = failure_make(FAILURE_NOT_FOUND, NULL, "there is no route %s %s",
                                       method_names[call->method], call->path);
        }
        call_fail(call, &failure);
        return false;
}

/* ---- what the HTTP server calls ---- */

static void on_headers(void *arg, struct http_exchange *exchange)
{
        struct bridge *bridge = arg;
        const struct route *route;
        struct text tail;
        bool known;

        http_set(exchange, NULL);
        route = find(bridge, http_method(exchange), http_path(exchange), &tail, &known);
        if (!route || !(route->flags & ROUTE_SPOOL))
                return;
        http_limit_body(exchange, SPOOL_BYTES);
        http_spool_body(exchange);
}

static void on_request(void *arg, struct http_exchange *exchange)
{
        static const char away[] = "{\"error\":\"samovar-http is out of memory\"}";
        struct bridge *bridge = arg;
        struct call *call = call_new(bridge, &call_http_sink, exchange);

        if (!call) {
                http_reply(exchange, 503, "application/json", away, sizeof(away) - 1);
                return;
        }
        http_set(exchange, call);
        call->method = http_method(exchange);
        call->path = http_path(exchange);
        call->principal = http_principal(exchange);
        call->link = links_get(bridge->links, call->principal,
                               http_server_principal(bridge->server, call->principal));
        call->body.at = http_body(exchange, &call->body.bytes);
        call->body_fd = http_body_fd(exchange, &call->body_fd_bytes);
        snprintf(call->request_id, sizeof(call->request_id), "%s", http_request_id(exchange));
        if (call->link)
                bridge_route(call);
        else
                call_no_memory(call);
}

static void on_gone(void *arg, struct http_exchange *exchange)
{
        struct bridge *bridge = arg;

        if (!http_get(exchange))
                return;
        metrics_client_left(bridge->metrics);
        call_end(http_get(exchange));
}

static void on_drained(void *arg, struct http_exchange *exchange)
{
        struct call *call = http_get(exchange);

        (void)arg;
        if (call && call->drained)
                call->drained(call);
}

static const char *on_refusal(void *arg, const char *path, const char *request_id, unsigned status,
                              const char *code, const char *message, struct bytes *to)
{
        struct failure failure = failure_of_status(status, message);
        struct json_builder built = json_build(to);

        (void)arg;
        (void)code;
        failure_write(&failure, failure_dialect(path), request_id, &built);
        json_put_end(&built);
        return "application/json";
}

struct http_handlers bridge_handlers(struct bridge *bridge)
{
        return (struct http_handlers){
                .on_headers = on_headers,
                .on_request = on_request,
                .on_gone = on_gone,
                .on_drained = on_drained,
                .on_refusal = on_refusal,
                .arg = bridge,
        };
}

/* ---- models ---- */

/* The model that the settings name for a model that the daemon does not have; NULL: none. */
static const char *alias_of(const struct bridge_conf *conf, const char *name)
{
        const char *any = NULL;

        for (uint32_t i = 0; i < conf->alias_count; i++) {
                if (!strcmp(conf->aliases[i].name, name))
                        return conf->aliases[i].model;
                if (!strcmp(conf->aliases[i].name, "*"))
                        any = conf->aliases[i].model;
        }
        return any;
}

bool bridge_model(struct call *call, struct text name, const char **ret_model)
{
        struct smv_model model;
        const char *alias = NULL;
        struct text plain = name;

        *ret_model = NULL;
        if (!name.bytes)
                return true;
        call->model = name;
        if (name.bytes > 7 && !memcmp(name.at + name.bytes - 7, ":latest", 7))
                plain.bytes -= 7;
        plain = arena_copy(&call->arena, plain.at, plain.bytes);
        if (!plain.at) {
                call_no_memory(call);
                return false;
        }
        if (!bridge_find_model(call, plain.at, &model))
                alias = alias_of(&call->bridge->conf, plain.at);
        *ret_model = !alias ? plain.at : *alias ? alias : NULL;
        return true;
}

bool bridge_find_model(const struct call *call, const char *name, struct smv_model *ret_model)
{
        struct smv_client *client = link_client(call->link);

        *ret_model = (struct smv_model){ SMV_SIZE(smv_model) };
        for (size_t i = 0; client && !smv_model(client, i, ret_model); i++)
                if (name ? !strcmp(ret_model->name, name) : ret_model->is_default)
                        return true;
        return false;
}

struct text bridge_model_name(const struct call *call)
{
        struct smv_model model;

        return bridge_find_model(call, NULL, &model)
                       ? (struct text){ model.name, strlen(model.name) }
                       : TEXT("");
}

/* ---- the bridge ---- */

static void bury(void *arg)
{
        struct bridge *bridge = arg;
        struct list_head *at;

        while ((at = list_pop_front(&bridge->dead)))
                call_free(LIST_ENTRY(at, struct call, of_bridge));
}

static void ping(void *arg)
{
        struct bridge *bridge = arg;
        uint64_t now_ns = sys_clock_ns();

        list_each_safe(at, &bridge->calls)
                call_ping(LIST_ENTRY(at, struct call, of_bridge), now_ns);
        loop_timer_set(bridge->pings, NS_PER_S);
}

int bridge_new(const struct bridge_conf *conf, const struct route *routes, uint32_t route_count,
               struct bridge **ret_bridge)
{
        struct whole *whole = calloc(1, sizeof(*whole));
        struct bridge *bridge;
        int r;

        if (!whole)
                return error_raise(-ENOMEM);
        whole->routes = routes;
        whole->route_count = route_count;
        bridge = &whole->bridge;
        bridge->conf = *conf;
        list_init(&bridge->calls);
        list_init(&bridge->dead);
        bridge->started_s = sys_wall_clock_ns() / NS_PER_S;
        bridge->vocabulary = vocabulary_new();
        r = bridge->vocabulary ? metrics_new(conf->otel, &bridge->metrics) : -ENOMEM;
        if (!r)
                r = links_new(&bridge->conf, &bridge->links);
        if (!r)
                r = histories_new(&bridge->histories);
        if (!r)
                r = pulse_new(bridge, &bridge->pulse);
        if (!r)
                r = loop_timer_new(conf->loop, ping, bridge, &bridge->pings);
        if (!r)
                r = loop_timer_new(conf->loop, bury, bridge, &bridge->burial);
        if (!r)
                r = loop_timer_set(bridge->pings, NS_PER_S);
        if (r) {
                bridge_free(bridge);
                return error_pass(r);
        }
        *ret_bridge = bridge;
        return 0;
}

void bridge_stop(struct bridge *bridge)
{
        const struct failure failure =
                failure_make(FAILURE_UNAVAILABLE, NULL, "samovar-http stops; try again");

        list_each_safe(at, &bridge->calls)
                call_fail(LIST_ENTRY(at, struct call, of_bridge), &failure);
}

struct bridge *bridge_free(struct bridge *bridge)
{
        if (!bridge)
                return NULL;
        list_each_safe(at, &bridge->calls)
                call_end(LIST_ENTRY(at, struct call, of_bridge));
        bury(bridge);
        loop_timer_free(bridge->pings);
        loop_timer_free(bridge->burial);
        pulse_free(bridge->pulse);
        histories_free(bridge->histories);
        links_free(bridge->links);
        metrics_free(bridge->metrics);
        vocabulary_free(bridge->vocabulary);
        free((struct whole *)(void *)bridge);
        return NULL;
}
