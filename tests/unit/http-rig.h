/*
 * An HTTP server in the test's own process, and raw clients on the same loop.
 *
 * The program behind the server answers by path:
 *
 *      /echo       the body, at once, when it is there
 *      /now        at once, when the headers are there
 *      /hold       never: rig->held[] has the exchanges
 *      /stream     begins a stream: rig->held[]
 *      /spool      the length and the content of a spooled body
 *      /small      echo, with a limit of 10 bytes
 *      all others  404
 */
#ifndef TESTS_UNIT_HTTP_RIG_H
#define TESTS_UNIT_HTTP_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/loop.h"
#include "bridge/http/server.h"

#define RIG_HELD_MAX 300u

struct rig {
        struct http_conf conf;
        struct loop *loop;
        struct loop_timer *tick;
        struct http_server *server;
        uint16_t port;
        bool (*wanted)(struct rig *rig, void *arg);
        void *arg;
        uint32_t ticks_left;
        bool came;                  /* `wanted` returned true */
        void (*pause)(bool paused); /* faults of the server, while the test's own code runs */
        struct http_exchange *held[RIG_HELD_MAX];
        uint32_t held_count, headers, requests, gone, drained, refused;
        bool idle;          /* on_idle() was called */
        char refusal[300];  /* the last one: "CODE MESSAGE" */
        uint32_t principal; /* of the last request */
};

/* The settings, which a test may change before rig_start(). */
void rig_init(struct rig *rig);
/* The loop alone, of which rig_make() makes one if there is none. */
void rig_make_loop(struct rig *rig);
/* The server, which does not listen.  Errors are those of http_server_new(). */
int rig_make(struct rig *rig, char *why, size_t why_bytes);
/* The server, listening at 127.0.0.1. */
void rig_start(struct rig *rig);
void rig_end(struct rig *rig);

/* Runs the loop until this is so; the test fails if it does not come. */
void rig_until(struct rig *rig, bool (*wanted)(struct rig *rig, void *arg), void *arg);
/* Runs some turns, for a thing that must not come.  Nothing may depend on how long that takes. */
void rig_turns(struct rig *rig, uint32_t count);
/* Until one of the counts above is as high; until as many connections are open. */
void rig_until_count(struct rig *rig, const uint32_t *at, uint32_t wanted);
void rig_until_open(struct rig *rig, uint32_t count);
struct http_counts rig_counts(const struct rig *rig);

struct client {
        struct rig *rig;
        int fd;
        char *got;
        size_t count;
        bool ended;  /* the server has closed its half */
        bool failed; /* the connection was reset */
        bool paused; /* reads nothing */
};

void client_connect(struct rig *rig, struct client *client);
void client_send(struct client *client, const char *text);
void client_send_bytes(struct client *client, const char *bytes, size_t count);
void client_half_close(struct client *client);
void client_close(struct client *client);
void client_collect(struct client *client); /* what has come */
/* Until the text is in what the client got; until the end. */
void client_until(struct client *client, const char *text);
void client_until_end(struct client *client);
bool client_has(const struct client *client, const char *text);
/* How many times. */
uint32_t client_count(const struct client *client, const char *text);
void client_forget(struct client *client); /* what it got */
/* Sends, waits for the end of the answer with `close`, and checks that it begins so. */
void client_ask(struct rig *rig, const char *request, const char *expected);

#endif
