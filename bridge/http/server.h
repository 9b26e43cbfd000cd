/*
 * The server: listeners, connections, and who may ask what.
 *
 * HTTP/1.1 and 1.0 without TLS.  Requests of a connection are answered in order, one at a time.
 * A client that leaves is noticed in the same turn of the loop, in every state; a client that
 * closes only its sending half while its request runs counts as gone, too.
 *
 * A request is admitted by its headers.  The Host must be a local name or a configured one, and an
 * Origin must be this server, a local page or a configured one.  If there is a key file, requests
 * over TCP need a key.  If there is none, TCP must be loopback, and the peer's socket must belong
 * to the user of this process.  A Unix socket needs no key from the user of this process (`uids`,
 * `unix_everyone`).  The paths /, /health and those below /page/ are open to all that pass the
 * checks of Host and Origin.
 *
 * Loop thread only.
 */
#ifndef BRIDGE_HTTP_SERVER_H
#define BRIDGE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "bridge/http/conf.h"
#include "bridge/http/http-exchange.h"

struct http_server;

/* Good values, to begin with. */
struct http_conf http_conf_default(void);

/* Reads the key file.  On an error: a negative errno, and *why says what is wrong. */
int http_server_new(const struct http_conf *conf, struct loop *loop,
                    const struct http_handlers *handlers, struct http_server **ret_server,
                    char *why, size_t why_bytes);

/*
 * Listens; call these before any thread starts.  Errors as above; what listens already goes on.
 *
 * TCP at "127.0.0.1:8080" or "[::1]:8080"; [::] takes no IPv4.  Port 0: a free one, *ret_port,
 * which may be NULL.
 */
int http_server_listen_tcp(struct http_server *server, const char *address, uint16_t *ret_port,
                           char *why, size_t why_bytes);
int http_server_listen_unix(struct http_server *server, const char *path, unsigned mode, char *why,
                            size_t why_bytes);
/* A listening socket of either kind from the service manager.  Takes fd, also on an error. */
int http_server_listen_fd(struct http_server *server, int fd, char *why, size_t why_bytes);

/* Reads the key file again.  On an error the old keys stay. */
int http_server_reload_keys(struct http_server *server, char *why, size_t why_bytes);
/* The name of a principal; NULL: 0, or there is none of this number.  Numbers outlive reloads. */
const char *http_server_principal(const struct http_server *server, uint32_t principal);
/* The principal of a name; "": 0.  False: no key has this name now. */
bool http_server_serves(const struct http_server *server, const char *name,
                        uint32_t *ret_principal);

/* No new connections or requests; idle connections are closed; running exchanges end. */
void http_server_stop(struct http_server *server);
/* No connection is open. */
bool http_server_is_idle(const struct http_server *server);
/* Calls on_gone() for each exchange that runs.  Takes NULL; returns NULL. */
struct http_server *http_server_free(struct http_server *server);

void http_server_counts(const struct http_server *server, struct http_counts *ret_counts);

#endif
