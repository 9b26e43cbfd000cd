#include "bridge/http/server.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"
#include "bridge/http/connection.h"
#include "bridge/http/context.h"
#include "bridge/http/listener.h"
#include "bridge/http/policy.h"

struct http_conf http_conf_default(void)
{
        return (struct http_conf){
                .connections_max = 128,
                .body_max = UINT64_C(32) << 20,
                .bodies_max = UINT64_C(256) << 20,
                .head_ms = 10000,
                .body_ms = 60000,
                .body_rate = 65536,
                .idle_ms = 75000,
                .write_ms = 60000,
                .linger_ms = 2000,
                .spool = "/tmp",
        };
}

static void on_turn_over(void *arg)
{
        http_connection_settle_all(arg);
}

static int set_up(struct http_server *server, char *why, size_t why_bytes)
{
        int r = sys_random(server->id_key, sizeof(server->id_key));

        if (!r)
                r = loop_task_new(server->loop, on_turn_over, server, &server->settle);
        if (r)
                return error_pass(errtext_set(why, why_bytes, r, "cannot make the server"));
        r = http_policy_new(&server->conf, &server->policy, why, why_bytes);
        return error_pass(r);
}

int http_server_new(const struct http_conf *conf, struct loop *loop,
                    const struct http_handlers *handlers, struct http_server **ret_server,
                    char *why, size_t why_bytes)
{
        struct http_server *server = calloc(1, sizeof(*server));
        int r;

        if (!server)
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "there is no memory for the server"));
        assert(conf->body_rate);
        server->conf = *conf;
        server->loop = loop;
        server->handlers = *handlers;
        list_init(&server->connections);
        list_init(&server->marked);
        list_init(&server->settling);
        list_init(&server->idle);
        list_init(&server->listeners);
        r = set_up(server, why, why_bytes);
        if (r) {
                http_server_free(server);
                return error_pass(r);
        }
        *ret_server = server;
        return 0;
}

int http_server_listen_tcp(struct http_server *server, const char *address, uint16_t *ret_port,
                           char *why, size_t why_bytes)
{
        int r = http_listener_tcp(server, address, ret_port, why, why_bytes);

        return error_pass(r);
}

int http_server_listen_unix(struct http_server *server, const char *path, unsigned mode, char *why,
                            size_t why_bytes)
{
        int r = http_listener_unix(server, path, mode, why, why_bytes);

        return error_pass(r);
}

int http_server_listen_fd(struct http_server *server, int fd, char *why, size_t why_bytes)
{
        int r = http_listener_fd(server, fd, why, why_bytes);

        return error_pass(r);
}

int http_server_reload_keys(struct http_server *server, char *why, size_t why_bytes)
{
        int r = http_policy_reload(server->policy, why, why_bytes);

        return error_pass(r);
}

const char *http_server_principal(const struct http_server *server, uint32_t principal)
{
        return http_policy_principal(server->policy, principal);
}

bool http_server_serves(const struct http_server *server, const char *name, uint32_t *ret_principal)
{
        return http_policy_serves(server->policy, name, ret_principal);
}

/* Settling closes those that are idle. */
void http_server_stop(struct http_server *server)
{
        server->stopped = true;
        http_listeners_close(server);
        list_each(at, &server->connections)
                http_mark(LIST_ENTRY(at, struct http_connection, link));
}

bool http_server_is_idle(const struct http_server *server)
{
        return !server->counts.connections_open;
}

struct http_server *http_server_free(struct http_server *server)
{
        if (!server)
                return NULL;
        server->handlers.on_idle = NULL;
        http_listeners_close(server);
        while (!list_is_empty(&server->connections))
                http_connection_free(
                        LIST_ENTRY(list_first(&server->connections), struct http_connection, link));
        loop_task_free(server->settle);
        http_policy_free(server->policy);
        free(server);
        return NULL;
}

void http_server_counts(const struct http_server *server, struct http_counts *ret_counts)
{
        *ret_counts = server->counts;
        list_each(at, &server->connections)
                ret_counts->queued_bytes +=
                        http_queue_bytes(LIST_ENTRY(at, struct http_connection, link));
}
