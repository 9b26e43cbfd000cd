/*
 * A real samovar-http beside the daemon of a daemon fixture, and a plain client of HTTP.  Its path
 * comes from the environment: SAMOVAR_HTTP.
 */
#ifndef TESTS_E2E_BRIDGE_FIXTURE_H
#define TESTS_E2E_BRIDGE_FIXTURE_H

#include "tests/e2e/daemon-fixture.h"

struct bridge_fixture {
        pid_t pid; /* of samovar-http; 0: there is none */
        char log[96];
        uint16_t port; /* on 127.0.0.1 */
};

/*
 * Starts samovar-http at a free port, with these flags besides, and returns when it listens.  The
 * daemon need not run.
 */
void bridge_start(struct bridge_fixture *bridge, const struct daemon_fixture *fixture,
                  const char *const *flags);
#define START_BRIDGE(bridge, fixture, ...)                                                         \
        bridge_start(bridge, fixture, (const char *const[]){ __VA_ARGS__, NULL })
/* Starts it with no flags but these.  `fds` become its descriptors 3, 4 ...; they end with -1. */
void bridge_spawn(struct bridge_fixture *bridge, const struct daemon_fixture *fixture,
                  const char *const *flags, const int *fds);
/* Returns its exit status, or -signal.  If that is not 0, prints what it has said. */
int bridge_await_exit(struct bridge_fixture *bridge);
/* Sends SIGTERM.  It must exit with 0. */
void bridge_stop(struct bridge_fixture *bridge);
void bridge_await_log(const struct bridge_fixture *bridge, const char *words);
bool bridge_logged(const struct bridge_fixture *bridge, const char *words);
/* Waits until it is connected to a daemon that has loaded. */
void bridge_await_daemon(const struct bridge_fixture *bridge);

/* Starts it without flags beside a daemon, and waits until it is connected. */
struct bridge_fixture bridge_beside(const struct daemon_fixture *fixture);
/* Stops it, and then the daemon. */
void bridge_stop_both(struct bridge_fixture *bridge, struct daemon_fixture *fixture);

/* A connection to 127.0.0.1 at the port; -1: refused. */
int bridge_connect(uint16_t port);
/* A connection to a Unix socket; -1: refused. */
int bridge_connect_unix(const char *path);

/* "GET /health" or "POST /v1/completions"; `more`: header lines with \r\n, or ""; body: or NULL. */
void http_send(int fd, const char *what, const char *more, const char *body);
/* Waits until these words have come, and returns all so far; NULL: the connection ended before. */
char *http_await(int fd, const char *words);
/* The answer up to the end of the connection, head and body; closes fd.  The caller frees it. */
char *http_receive(int fd);
/* Both, on a connection of its own.  Fails if the status is another one. */
char *http_ask(const struct bridge_fixture *bridge, const char *what, const char *more,
               const char *body, unsigned status);
/* The status of an answer. */
unsigned http_status(const char *answer);

#endif
