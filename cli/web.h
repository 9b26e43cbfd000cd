/*
 * HTTP requests, many at once, that block nobody: the only door to libcurl.
 *
 *      r = web_new(&web, why, sizeof(why));
 *      struct web_ask ask = { .url = url, .on_data = take, .on_end = end };
 *      r = web_begin(web, &ask, &request);
 *      while (!ended)
 *              web_wait(web, 1000, NULL, 0);
 *      web_free(web);
 *
 * web_wait() sends, reads, and calls the functions of the requests; nothing else does.  These
 * functions may begin and cancel requests, but not wait or free.  A request is freed by
 * web_cancel(), or before its on_end().
 *
 * Connections stay open for later requests.  HTTP/1.1 over TCP, TLS and Unix sockets; a body is
 * asked for as it is (Accept-Encoding: identity), and never decompressed.  Proxies are those of
 * http_proxy, https_proxy, all_proxy and no_proxy; a loopback address is never asked of a proxy.
 * The certificates of $SSL_CERT_FILE or $CURL_CA_BUNDLE are trusted, or else those of the system.
 *
 * Redirects are followed, up to 10: never from https to http.  Headers that may have a secret
 * (Authorization, Cookie, *api-key) go only to the scheme, host and port of the first URL.
 */
#ifndef CLI_WEB_H
#define CLI_WEB_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/web-head.h"

struct web;
struct web_request;

enum web_end {
        WEB_GOOD,    /* the whole answer is there, whatever its status */
        WEB_LOST,    /* the network or the server failed; another try may do better */
        WEB_REFUSED, /* another try would fail like this one */
        WEB_STOPPED, /* on_head() or on_data() returned false; there is no text */
};

struct web_field {
        const char *name, *value;
};

/* All of it is copied, except `arg`. */
struct web_ask {
        const char *url;    /* http://, https://, or unix:SOCKET:/PATH */
        const char *method; /* NULL: POST if there is a body, else GET */
        const struct web_field *fields;
        size_t field_count;
        const void *body; /* NULL: none */
        size_t body_bytes;
        uint64_t from, to;   /* wants these bytes, `to` included; both 0: all; `to` 0: to the end */
        uint32_t connect_ms; /* the longest time to connect; 0: 30 s */
        uint32_t stall_ms;   /* the longest time without a byte in either direction; 0: no limit */
        bool bulk;           /* a long body: read in large pieces */

        /*
         * on_head() is called once, with the last answer of redirects; then on_data() for each
         * piece; then on_end(), once, also if there was no head.  `why` is NULL or one line for
         * people.  on_head() and on_data() may be NULL; false ends the request.  The head
         * is valid only in on_head().
         */
        bool (*on_head)(void *arg, int status, const struct web_head *head);
        bool (*on_data)(void *arg, const void *bytes, size_t count);
        void (*on_end)(void *arg, enum web_end end, const char *why);
        void *arg;
};

/* 0, or a negative errno and `why`; -ENOSYS: built without libcurl. */
int web_new(struct web **ret_web, char *why, size_t why_bytes);
void web_free(struct web *web); /* cancels what runs; takes NULL */

/* 0; -EINVAL if the URL is none, or a field has a newline; or -ENOMEM.  No function is called. */
int web_begin(struct web *web, const struct web_ask *ask, struct web_request **ret_request);
/* No function of the request is called any more. */
void web_cancel(struct web *web, struct web_request *request);
/* How many requests have not ended. */
size_t web_running(const struct web *web);

/*
 * Works until something has happened or `timeout_ms` is over (-1: no limit); `others` may be NULL,
 * and their revents are set.  Returns at a signal.  0 or a negative errno of poll().
 */
int web_wait(struct web *web, int timeout_ms, struct pollfd *others, size_t other_count);

/*
 * Writes the URL of `path` ("/v1/models") below a base ("http://host:1/", "unix:/run/a/sock").
 * False: too long, or no URL.
 */
bool web_join(const char *base, const char *path, char *to, size_t bytes);

#endif
