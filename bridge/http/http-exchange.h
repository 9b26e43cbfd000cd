/*
 * An exchange: one request and its answer, as the program behind the server sees it.
 *
 * The server calls the handlers below.  An exchange lives from on_headers() until the program
 * finishes it (http_reply(), http_finish(), http_cut()), or until on_gone() returns.  After that it
 * must not be used.  Any other function may be called at any time between, also from within a
 * handler, and answers may come much later than on_request().
 *
 * No handler may free the server.
 *
 * No function here blocks, and none sends: bytes are queued, and sent at the end of the loop's
 * turn.  If memory runs out, the exchange ends by on_gone(), in the same turn.
 *
 * Backpressure is the program's: it stops writing when http_queued() is above HTTP_QUEUE_HIGH, and
 * goes on at on_drained().
 *
 * Loop thread only.
 */
#ifndef BRIDGE_HTTP_HTTP_EXCHANGE_H
#define BRIDGE_HTTP_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bridge/http/method.h"
#include "json/bytes.h"

struct http_exchange;

/* Stop writing above the one; on_drained() comes below the other. */
#define HTTP_QUEUE_HIGH 262144u
#define HTTP_QUEUE_LOW  65536u

struct http_handlers {
        /*
         * The headers are there and the policy has let them pass.  It may call http_limit_body()
         * and http_spool_body(), or answer at once.  If it answers and the request has a body, that
         * is not read, and the connection ends behind the answer.
         */
        void (*on_headers)(void *arg, struct http_exchange *x);
        /* With the whole body.  Not called if on_headers() has answered. */
        void (*on_request)(void *arg, struct http_exchange *x);
        /*
         * The client is gone, or too slow, or the rest of its request was bad, or memory ran out.
         * The exchange is freed behind this call.  Only for exchanges that on_headers() has seen
         * and that are not finished.
         */
        void (*on_gone)(void *arg, struct http_exchange *x);
        /* The queue was above HTTP_QUEUE_LOW and is not any more. */
        void (*on_drained)(void *arg, struct http_exchange *x);
        /*
         * Writes the body of an answer with which the server itself refuses a request, in the
         * dialect of the route, and returns its content type.  `path` is "" if no request line was
         * read; `code` is a name of refusal.h.
         */
        const char *(*on_refusal)(void *arg, const char *path, const char *request_id,
                                  unsigned status, const char *code, const char *message,
                                  struct bytes *to);
        /*
         * After http_server_stop(), the last connection has ended.  Not called if there was none.
         * The server must not be freed in here.  May be NULL.
         */
        void (*on_idle)(void *arg);
        void *arg;
};

/* A pointer of the program, which it attaches to the exchange. */
void http_set(struct http_exchange *x, void *own);
void *http_get(const struct http_exchange *x);

/* These strings live as long as the exchange. */
enum http_method http_method(const struct http_exchange *x);
/* Decoded: "/v1/models/a/b".  UTF-8 without control characters; "*" is possible for OPTIONS. */
const char *http_path(const struct http_exchange *x);
/* The first value of this name, decoded; false: there is none. */
bool http_query(const struct http_exchange *x, const char *name, const char **ret_value);
const char *http_header(const struct http_exchange *x, const char *name); /* NULL: absent */
/* "req_...": it is also sent, as x-request-id and as request-id. */
const char *http_request_id(const struct http_exchange *x);
/* The number of the user whose key was sent (http_server_principal()); 0: no key was needed. */
uint32_t http_principal(const struct http_exchange *x);

/* In on_headers(): another limit than that of the settings; the body goes to a file. */
void http_limit_body(struct http_exchange *x, uint64_t bytes);
void http_spool_body(struct http_exchange *x);
/* From on_request() on.  With a NUL behind it; "" if it was spooled or dropped. */
const char *http_body(const struct http_exchange *x, size_t *ret_bytes);
/* A file without a name, for pread(); the server closes it.  -1: the body was not spooled. */
int http_body_fd(const struct http_exchange *x, uint64_t *ret_bytes);
/* Frees the body before the exchange ends. */
void http_drop_body(struct http_exchange *x);

/* Before the answer begins.  Control characters in a value become blanks. */
void http_add_header(struct http_exchange *x, const char *name, const char *value);
/*
 * The whole answer; the exchange is finished.  type NULL: none is sent.  A body is left out where
 * HTTP has none: HEAD, and the statuses 204 and 304.
 */
void http_reply(struct http_exchange *x, unsigned status, const char *type, const void *body,
                size_t bytes);
/* Begins an answer of unknown length.  To HTTP/1.0, the end of the connection will end it. */
void http_stream(struct http_exchange *x, unsigned status, const char *type);
bool http_is_streaming(const struct http_exchange *x);
void http_write(struct http_exchange *x, const void *bytes, size_t count);
size_t http_queued(const struct http_exchange *x); /* bytes that the kernel did not take yet */
void http_finish(struct http_exchange *x);         /* the proper end of a stream */
/*
 * Ends the connection without it, behind what was written: the client sees that a part is missing.
 * on_gone() is not called.
 */
void http_cut(struct http_exchange *x);

#endif
