/*
 * libcurl's multi interface over our own epoll: a turn costs only the sockets that have something,
 * not all that are open.
 *
 * libcurl forbids to add and remove handles in its own callbacks.  So a new request waits in state
 * QUEUED for the next turn, and one that is cancelled in a callback is only marked; the end of the
 * turn removes it.
 */
#include "cli/web.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cli/clock.h"

#define CONNECT_MS     30000u
#define REDIRECTS_MAX  10u
#define REDIRECT_BYTES (1u << 20) /* of the body of a redirect, which is skipped */
#define BULK_BYTES     (256 * 1024)
#define STALL_CHECK_MS 100u
#define EVENTS         64
#define OTHERS_MAX     15
#define WHY_BYTES      1024 /* a host of 255 bytes, a text of libcurl of 255, and words */

#define NEVER UINT64_MAX

enum state { QUEUED, RUNNING, CANCELLED };

struct web_request {
        struct web *web;
        struct web_request *next, *previous;
        enum state state;
        CURL *easy;
        struct web_ask ask; /* its texts belong to us */
        struct curl_slist *fields;
        CURLU *first, *url; /* the first URL, and that which is asked now */
        char *unix_socket;
        struct web_head head;
        unsigned redirects;
        size_t redirect_bytes;
        bool redirected; /* this answer is a redirect: its body is skipped */
        bool stopped;    /* on_head() or on_data() returned false */
        bool left_origin;
        uint64_t progress_ms; /* when a byte was last moved */
        curl_off_t sent;
        char error[CURL_ERROR_SIZE];
};

struct web {
        CURLM *multi;
        int epoll;
        uint64_t due_ms; /* when libcurl wants to be called; NEVER */
        uint64_t stall_check_ms;
        struct web_request *requests;
        size_t running;
        bool inside;    /* libcurl runs, so that no handle may be added or removed */
        bool cancelled; /* a request is CANCELLED */
};

/* What libcurl calls. */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
        struct web *web = arg;
        struct epoll_event event = { .data.fd = fd };

        (void)easy;
        if (what == CURL_POLL_REMOVE) {
                epoll_ctl(web->epoll, EPOLL_CTL_DEL, fd, NULL); /* it may be closed already */
                return 0;
        }
        event.events =
                (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
        if (known && !epoll_ctl(web->epoll, EPOLL_CTL_MOD, fd, &event))
                return 0;
        if (epoll_ctl(web->epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno == EEXIST)
                epoll_ctl(web->epoll, EPOLL_CTL_MOD, fd, &event);
        curl_multi_assign(web->multi, fd, web);
        return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
        struct web *web = arg;

        (void)multi;
        web->due_ms = timeout_ms < 0 ? NEVER : clock_ms() + (uint64_t)timeout_ms;
        return 0;
}

/* The head is complete.  False: the request ends. */
static bool end_head(struct web_request *request)
{
        struct web_head *head = &request->head;
        char *effective = NULL;

        if (head->status < 200)
                return true; /* the real answer follows */
        request->redirected = web_head_redirects(head);
        if (request->redirected)
                return true;
        head->complete = true;
        curl_easy_getinfo(request->easy, CURLINFO_EFFECTIVE_URL, &effective);
        head->url = effective ? effective : "";
        if (request->ask.on_head && !request->ask.on_head(request->ask.arg, head->status, head))
                request->stopped = true;
        return !request->stopped && request->state != CANCELLED;
}

static size_t on_line(char *line, size_t one, size_t bytes, void *arg)
{
        struct web_request *request = arg;
        size_t trimmed = bytes;
        bool good = true;

        (void)one;
        if (request->state == CANCELLED)
                return 0;
        request->progress_ms = clock_ms();
        if (request->head.complete)
                return bytes; /* a trailer */
        while (trimmed && (line[trimmed - 1] == '\r' || line[trimmed - 1] == '\n'))
                trimmed--;
        if (trimmed)
                good = web_head_add(&request->head, line, trimmed);
        else
                good = end_head(request);
        return good ? bytes : 0;
}

static size_t on_body(char *at, size_t one, size_t bytes, void *arg)
{
        struct web_request *request = arg;

        (void)one;
        if (request->state == CANCELLED)
                return 0;
        request->progress_ms = clock_ms();
        if (request->redirected) {
                request->redirect_bytes += bytes;
                return request->redirect_bytes <= REDIRECT_BYTES ? bytes : 0;
        }
        if (!request->ask.on_data)
                return bytes;
        if (!request->ask.on_data(request->ask.arg, at, bytes))
                request->stopped = true;
        return request->stopped || request->state == CANCELLED ? 0 : bytes;
}

/* URLs */

static char *url_part(CURLU *url, CURLUPart part)
{
        char *text = NULL;

        return curl_url_get(url, part, &text, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0)
                       ? NULL
                       : text;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
        char *left = url_part(a, part), *right = url_part(b, part);
        bool same = left && right && !strcasecmp(left, right);

        curl_free(left);
        curl_free(right);
        return same;
}

static bool same_origin(CURLU *a, CURLU *b)
{
        return same_part(a, b, CURLUPART_SCHEME) && same_part(a, b, CURLUPART_HOST) &&
               same_part(a, b, CURLUPART_PORT);
}

static bool has_scheme(CURLU *url, const char *wanted)
{
        char *scheme = url_part(url, CURLUPART_SCHEME);
        bool same = scheme && !strcasecmp(scheme, wanted);

        curl_free(scheme);
        return same;
}

static bool is_loopback(CURLU *url)
{
        char *host = url_part(url, CURLUPART_HOST);
        size_t length = host ? strlen(host) : 0;
        bool is = host && (!strcasecmp(host, "localhost") || !strcmp(host, "[::1]") ||
                           !strncmp(host, "127.", 4) ||
                           (length > 10 && !strcasecmp(host + length - 10, ".localhost")));

        curl_free(host);
        return is;
}

/* "host", or "host:port" with a port of its own; for messages. */
static void name_host(const struct web_request *request, char *to, size_t bytes)
{
        char *host = url_part(request->url, CURLUPART_HOST), *port = NULL;

        if (curl_url_get(request->url, CURLUPART_PORT, &port, 0))
                port = NULL;
        if (request->unix_socket && !request->left_origin)
                snprintf(to, bytes, "%s", request->unix_socket);
        else
                snprintf(to, bytes, "%s%s%s", host ? host : "?", port ? ":" : "", port ? port : "");
        curl_free(host);
        curl_free(port);
}

/* "unix:SOCKET:/PATH" is http://localhost/PATH over that socket. */
static int read_url(struct web_request *request, const char *text)
{
        const char *colon;
        char *plain = NULL;
        CURLUcode r;

        if (!strncmp(text, "unix:/", 6)) {
                colon = strstr(text + 6, ":/");
                request->unix_socket =
                        colon ? strndup(text + 5, (size_t)(colon - text - 5)) : strdup(text + 5);
                if (!request->unix_socket ||
                    asprintf(&plain, "http://localhost%s", colon ? colon + 1 : "/") < 0)
                        return -ENOMEM;
                text = plain;
        }
        request->first = curl_url();
        r = request->first ? curl_url_set(request->first, CURLUPART_URL, text, 0)
                           : CURLUE_OUT_OF_MEMORY;
        free(plain);
        if (!r && !has_scheme(request->first, "http") && !has_scheme(request->first, "https"))
                r = CURLUE_UNSUPPORTED_SCHEME;
        if (r)
                return r == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
        request->url = curl_url_dup(request->first);
        return request->url ? 0 : -ENOMEM;
}

/* Fields of a request */

static bool is_secret(const char *name)
{
        size_t length = strlen(name);

        return !strcasecmp(name, "authorization") || !strcasecmp(name, "cookie") ||
               (length >= 7 && !strcasecmp(name + length - 7, "api-key"));
}

static bool has_newline(const char *text)
{
        return strpbrk(text, "\r\n");
}

/* A body is sent at once, and comes as it is. */
static const char *const own_fields[] = { "Expect:", "Accept-Encoding: identity" };

/* Gives libcurl all fields, or those that may go to another host. */
static int make_fields(struct web_request *request, bool all)
{
        struct curl_slist *list = NULL, *longer;
        size_t own = sizeof(own_fields) / sizeof(*own_fields);
        char *line;
        int n;

        for (size_t i = 0; i < request->ask.field_count + own; i++) {
                const struct web_field *field = &request->ask.fields[i];

                if (i >= request->ask.field_count)
                        n = asprintf(&line, "%s", own_fields[i - request->ask.field_count]);
                else if (!all && is_secret(field->name))
                        continue;
                else
                        n = asprintf(&line, *field->value ? "%s: %s" : "%s;", field->name,
                                     field->value);
                longer = n < 0 ? NULL : curl_slist_append(list, line);
                if (n >= 0)
                        free(line);
                if (!longer) {
                        curl_slist_free_all(list);
                        return -ENOMEM;
                }
                list = longer;
        }
        curl_slist_free_all(request->fields);
        request->fields = list;
        curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, list);
        return 0;
}

static int copy_fields(struct web_request *request, const struct web_ask *ask)
{
        struct web_field *fields = calloc(ask->field_count + 1, sizeof(*fields));

        if (!fields)
                return -ENOMEM;
        request->ask.fields = fields;
        request->ask.field_count = 0;
        for (size_t i = 0; i < ask->field_count; i++) {
                if (has_newline(ask->fields[i].name) || has_newline(ask->fields[i].value))
                        return -EINVAL;
                fields[i].name = strdup(ask->fields[i].name);
                fields[i].value = strdup(ask->fields[i].value);
                request->ask.field_count++;
                if (!fields[i].name || !fields[i].value)
                        return -ENOMEM;
        }
        return 0;
}

/* Options */

static void set_certificates(CURL *easy)
{
        const char *file = getenv("SSL_CERT_FILE");

        if (!file || !*file)
                file = getenv("CURL_CA_BUNDLE");
        if (file && *file)
                curl_easy_setopt(easy, CURLOPT_CAINFO, file);
}

static void set_method(CURL *easy, const struct web_ask *ask)
{
        if (ask->body) {
                curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body_bytes);
                curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, ask->body);
        }
        if (ask->method && !strcmp(ask->method, "HEAD"))
                curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        else if (ask->method && strcmp(ask->method, ask->body ? "POST" : "GET"))
                curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, ask->method);
}

static void set_options(struct web_request *request, const struct web_ask *ask)
{
        CURL *easy = request->easy;
        char range[64];

        curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(easy, CURLOPT_USERAGENT, "samovar/" SAMOVAR_VERSION);
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                         (long)(ask->connect_ms ? ask->connect_ms : CONNECT_MS));
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->error);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_line);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, ask->bulk ? (long)BULK_BYTES : 16384L);
        set_certificates(easy);
        set_method(easy, ask);
        if (ask->from || ask->to) {
                snprintf(range, sizeof(range), "%llu-", (unsigned long long)ask->from);
                if (ask->to)
                        snprintf(range + strlen(range), sizeof(range) - strlen(range), "%llu",
                                 (unsigned long long)ask->to);
                curl_easy_setopt(easy, CURLOPT_RANGE, range);
        }
}

/* What depends on the URL that is asked now. */
static void set_place(struct web_request *request)
{
        CURL *easy = request->easy;
        bool by_unix = request->unix_socket && !request->left_origin;

        curl_easy_setopt(easy, CURLOPT_CURLU, request->url);
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, by_unix ? request->unix_socket : NULL);
        curl_easy_setopt(easy, CURLOPT_PROXY, by_unix || is_loopback(request->url) ? "" : NULL);
}

/* The list of requests */

static void link_request(struct web *web, struct web_request *request)
{
        request->next = web->requests;
        if (request->next)
                request->next->previous = request;
        web->requests = request;
        web->running++;
}

static void unlink_request(struct web *web, struct web_request *request)
{
        if (request->next)
                request->next->previous = request->previous;
        if (request->previous)
                request->previous->next = request->next;
        else
                web->requests = request->next;
        web->running--;
}

static void free_request(struct web_request *request)
{
        if (request->easy)
                curl_easy_cleanup(request->easy);
        for (size_t i = 0; i < request->ask.field_count; i++) {
                free((char *)request->ask.fields[i].name);
                free((char *)request->ask.fields[i].value);
        }
        free((struct web_field *)request->ask.fields);
        curl_slist_free_all(request->fields);
        curl_url_cleanup(request->first);
        curl_url_cleanup(request->url);
        web_head_deinit(&request->head);
        free(request->unix_socket);
        free(request);
}

static void remove_request(struct web_request *request)
{
        struct web *web = request->web;

        if (request->state != QUEUED)
                curl_multi_remove_handle(web->multi, request->easy);
        unlink_request(web, request);
        free_request(request);
}

int web_begin(struct web *web, const struct web_ask *ask, struct web_request **ret_request)
{
        struct web_request *request = calloc(1, sizeof(*request));
        int r;

        *ret_request = NULL;
        if (!request)
                return -ENOMEM;
        request->web = web;
        request->ask = *ask;
        request->ask.fields = NULL;
        request->ask.field_count = 0;
        request->easy = curl_easy_init();
        r = request->easy ? copy_fields(request, ask) : -ENOMEM;
        if (!r)
                r = read_url(request, ask->url);
        if (!r)
                r = make_fields(request, true);
        if (r) {
                free_request(request);
                return r;
        }
        set_options(request, ask);
        set_place(request);
        request->ask.url = request->ask.method = NULL; /* libcurl has copies */
        request->ask.body = NULL;
        link_request(web, request);
        *ret_request = request;
        return 0;
}

void web_cancel(struct web *web, struct web_request *request)
{
        if (!web->inside) {
                remove_request(request);
                return;
        }
        if (request->state == QUEUED) {
                remove_request(request); /* libcurl does not know it yet */
                return;
        }
        request->state = CANCELLED;
        web->cancelled = true;
}

size_t web_running(const struct web *web)
{
        return web->running;
}

/* Ends */

static void end_request(struct web_request *request, enum web_end end, const char *why)
{
        struct web *web = request->web;
        void (*on_end)(void *, enum web_end, const char *) = request->ask.on_end;
        void *arg = request->ask.arg;
        char text[WHY_BYTES];

        snprintf(text, sizeof(text), "%s", why ? why : "");
        curl_multi_remove_handle(web->multi, request->easy);
        unlink_request(web, request);
        free_request(request);
        if (on_end)
                on_end(arg, end, why ? text : NULL);
}

/* Why a transfer failed, in plain words. */
static enum web_end explain(struct web_request *request, CURLcode code, char *to, size_t bytes)
{
        char host[256];
        long error = 0;
        const char *detail = *request->error ? request->error : curl_easy_strerror(code);

        name_host(request, host, sizeof(host));
        if (request->head.too_long) {
                snprintf(to, bytes, "%s sends a head of more than %u bytes", host,
                         WEB_HEAD_BYTES_MAX);
                return WEB_REFUSED;
        }
        if (request->redirect_bytes > REDIRECT_BYTES) {
                snprintf(to, bytes, "%s redirects with a text of more than %u bytes", host,
                         REDIRECT_BYTES);
                return WEB_REFUSED;
        }
        curl_easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &error);
        switch (code) {
        case CURLE_COULDNT_RESOLVE_HOST:
                snprintf(to, bytes,
                         "no address is known for %s: there is no network, or the name "
                         "is wrong",
                         host);
                return WEB_LOST;
        case CURLE_COULDNT_RESOLVE_PROXY:
                snprintf(to, bytes, "the proxy has no known address: %s", detail);
                return WEB_LOST;
        case CURLE_COULDNT_CONNECT:
                snprintf(to, bytes, "cannot connect to %s: %s", host,
                         error ? strerror((int)error) : detail);
                return WEB_LOST;
        case CURLE_OPERATION_TIMEDOUT:
                snprintf(to, bytes, "cannot connect to %s in time: %s", host, detail);
                return WEB_LOST;
        case CURLE_PARTIAL_FILE:
                snprintf(to, bytes, "%s ended the connection in the middle of the answer", host);
                return WEB_LOST;
        case CURLE_GOT_NOTHING:
                snprintf(to, bytes, "%s ended the connection without an answer", host);
                return WEB_LOST;
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_SEND_FAIL_REWIND:
                snprintf(to, bytes, "the connection to %s broke: %s", host,
                         error ? strerror((int)error) : detail);
                return WEB_LOST;
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
                snprintf(to, bytes, "the certificate of %s is not trusted: %s", host, detail);
                return WEB_REFUSED;
        case CURLE_SSL_CONNECT_ERROR:
                snprintf(to, bytes, "%s does not answer in TLS: %s", host, detail);
                return WEB_LOST;
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_WEIRD_SERVER_REPLY:
                snprintf(to, bytes, "%s does not answer in HTTP: %s", host, detail);
                return WEB_REFUSED;
        case CURLE_OUT_OF_MEMORY:
                snprintf(to, bytes, "out of memory");
                return WEB_REFUSED;
        default:
                snprintf(to, bytes, "%s: %s", host, detail);
                return WEB_LOST;
        }
}

/* Why the redirect to `to` is not followed; NULL: it is. */
static const char *refuse_redirect(const struct web_request *request, CURLU *to)
{
        if (request->redirects == REDIRECTS_MAX)
                return "redirects more than 10 times";
        if (!has_scheme(to, "http") && !has_scheme(to, "https"))
                return "redirects to a URL that is not http";
        if (has_scheme(request->url, "https") && !has_scheme(to, "https"))
                return "redirects from https to http, which would not be encrypted";
        return NULL;
}

/* After 303, and after 301 and 302 as an answer to POST, the method becomes GET. */
static void change_method(struct web_request *request)
{
        int status = request->head.status;
        const char *used = NULL;

        curl_easy_getinfo(request->easy, CURLINFO_EFFECTIVE_METHOD, &used);
        if (used && !strcmp(used, "HEAD"))
                return;
        if (status == 303 || (status <= 302 && used && !strcmp(used, "POST"))) {
                curl_easy_setopt(request->easy, CURLOPT_HTTPGET, 1L);
                curl_easy_setopt(request->easy, CURLOPT_CUSTOMREQUEST, NULL);
        }
}

/* Asks the URL that the answer names. */
static void follow(struct web_request *request)
{
        char *target = NULL, host[256], text[400];
        CURLU *to = curl_url();
        const char *why = "redirects to what is no URL";

        curl_easy_getinfo(request->easy, CURLINFO_REDIRECT_URL, &target);
        if (to && target && !curl_url_set(to, CURLUPART_URL, target, 0))
                why = refuse_redirect(request, to);
        if (why) {
                name_host(request, host, sizeof(host));
                snprintf(text, sizeof(text), "%s %s", host, why);
                curl_url_cleanup(to);
                end_request(request, WEB_REFUSED, text);
                return;
        }
        change_method(request);
        curl_multi_remove_handle(request->web->multi, request->easy);
        curl_url_cleanup(request->url);
        request->url = to;
        request->redirects++;
        request->redirected = false;
        request->redirect_bytes = 0;
        web_head_reset(&request->head);
        if (!request->left_origin && !same_origin(request->first, to)) {
                request->left_origin = true;
                if (make_fields(request, false)) {
                        request->state = QUEUED;
                        end_request(request, WEB_REFUSED, "out of memory");
                        return;
                }
        }
        set_place(request);
        request->state = QUEUED;
        request->web->due_ms = 0;
}

static void end_transfer(struct web_request *request, CURLcode code)
{
        char why[WHY_BYTES];
        enum web_end end;

        if (request->state == CANCELLED)
                remove_request(request);
        else if (request->stopped)
                end_request(request, WEB_STOPPED, NULL);
        else if (!code && request->redirected)
                follow(request);
        else if (!code)
                end_request(request, WEB_GOOD, NULL);
        else {
                end = explain(request, code, why, sizeof(why));
                end_request(request, end, why);
        }
}

static void take_ends(struct web *web)
{
        struct web_request *request;
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(web->multi, &left))) {
                CURLcode code = message->data.result;

                if (message->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
                end_transfer(request, code);
        }
}

static void remove_cancelled(struct web *web)
{
        struct web_request *next;

        if (!web->cancelled)
                return;
        web->cancelled = false;
        for (struct web_request *request = web->requests; request; request = next) {
                next = request->next;
                if (request->state == CANCELLED)
                        remove_request(request);
        }
}

/* True if no byte was moved for too long. */
static bool is_stalled(struct web_request *request, uint64_t now)
{
        curl_off_t sent = 0;

        if (!request->ask.stall_ms || request->state != RUNNING)
                return false;
        curl_easy_getinfo(request->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
        if (sent != request->sent) {
                request->sent = sent;
                request->progress_ms = now;
        }
        return now - request->progress_ms >= request->ask.stall_ms;
}

static void end_stalled(struct web *web)
{
        uint64_t now = clock_ms();
        struct web_request *request = web->requests;
        char host[256], why[400];

        if (now < web->stall_check_ms)
                return;
        web->stall_check_ms = now + STALL_CHECK_MS;
        while (request) {
                if (!is_stalled(request, now)) {
                        request = request->next;
                        continue;
                }
                name_host(request, host, sizeof(host));
                snprintf(why, sizeof(why), "%s sent nothing for %.3g s", host,
                         request->ask.stall_ms / 1000.0);
                end_request(request, WEB_LOST, why);
                request = web->requests; /* on_end() may have cancelled others */
        }
}

/* Turns */

static void start_queued(struct web *web)
{
        struct web_request *request = web->requests;

        while (request) {
                struct web_request *next = request->next;

                if (request->state == QUEUED) {
                        request->state = RUNNING;
                        request->progress_ms = clock_ms();
                        request->sent = 0;
                        if (curl_multi_add_handle(web->multi, request->easy)) {
                                end_request(request, WEB_REFUSED, "out of memory");
                                next = web->requests; /* on_end() may have cancelled others */
                        }
                }
                request = next;
        }
}

static bool has_limit(const struct web *web)
{
        for (const struct web_request *request = web->requests; request; request = request->next)
                if (request->ask.stall_ms)
                        return true;
        return false;
}

/* How long poll() may sleep. */
static int sleep_ms(const struct web *web, int timeout_ms)
{
        uint64_t now = clock_ms(), until = web->due_ms;

        if (has_limit(web) && web->stall_check_ms < until)
                until = web->stall_check_ms;
        if (until == NEVER)
                return timeout_ms;
        until = until > now ? until - now : 0;
        if (timeout_ms >= 0 && (uint64_t)timeout_ms < until)
                return timeout_ms;
        return until > 1000000 ? 1000000 : (int)until;
}

static void run_events(struct web *web)
{
        struct epoll_event events[EVENTS];
        int running, count = epoll_wait(web->epoll, events, EVENTS, 0);

        web->inside = true;
        for (int i = 0; i < count; i++) {
                int bits = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                           (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                           (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);

                curl_multi_socket_action(web->multi, events[i].data.fd, bits, &running);
        }
        if (clock_ms() >= web->due_ms) {
                web->due_ms = NEVER;
                curl_multi_socket_action(web->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        web->inside = false;
}

int web_wait(struct web *web, int timeout_ms, struct pollfd *others, size_t other_count)
{
        struct pollfd all[OTHERS_MAX + 1] = { { .fd = web->epoll, .events = POLLIN } };
        int r;

        assert(!web->inside && other_count <= OTHERS_MAX);
        start_queued(web);
        for (size_t i = 0; i < other_count; i++)
                all[i + 1] = others[i];
        r = poll(all, other_count + 1, sleep_ms(web, timeout_ms));
        if (r < 0 && errno != EINTR)
                return -errno;
        for (size_t i = 0; i < other_count; i++)
                others[i].revents = r > 0 ? all[i + 1].revents : 0;
        run_events(web);
        take_ends(web);
        remove_cancelled(web);
        end_stalled(web);
        return 0;
}

int web_new(struct web **ret_web, char *why, size_t why_bytes)
{
        struct web *web = calloc(1, sizeof(*web));

        *ret_web = NULL;
        if (!web || curl_global_init(CURL_GLOBAL_DEFAULT) || !(web->multi = curl_multi_init())) {
                free(web);
                snprintf(why, why_bytes, "out of memory");
                return -ENOMEM;
        }
        web->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (web->epoll < 0) {
                int r = -errno;

                snprintf(why, why_bytes, "cannot make an epoll: %s", strerror(-r));
                curl_multi_cleanup(web->multi);
                free(web);
                return r;
        }
        signal(SIGPIPE, SIG_IGN); /* TLS writes to sockets that may be closed */
        web->due_ms = NEVER;
        curl_multi_setopt(web->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(web->multi, CURLMOPT_SOCKETDATA, web);
        curl_multi_setopt(web->multi, CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(web->multi, CURLMOPT_TIMERDATA, web);
        *ret_web = web;
        return 0;
}

void web_free(struct web *web)
{
        if (!web)
                return;
        assert(!web->inside);
        while (web->requests)
                remove_request(web->requests);
        curl_multi_cleanup(web->multi);
        close(web->epoll);
        free(web);
        curl_global_cleanup();
}
