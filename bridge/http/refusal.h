/*
 * The reasons for which the server itself refuses a request, before or instead of its handler.
 * The names are the codes that on_refusal() gets, and labels of metrics.
 */
#ifndef BRIDGE_HTTP_REFUSAL_H
#define BRIDGE_HTTP_REFUSAL_H

enum http_refusal {
        HTTP_BAD_REQUEST,       /* 400: not HTTP, or a form that servers read differently */
        HTTP_BAD_VERSION,       /* 505 */
        HTTP_BAD_METHOD,        /* 501 */
        HTTP_LINE_TOO_LONG,     /* 414 */
        HTTP_HEADERS_TOO_LARGE, /* 431 */
        HTTP_BODY_TOO_LARGE,    /* 413 */
        HTTP_BAD_EXPECTATION,   /* 417 */
        HTTP_TOO_SLOW,          /* 408 */
        HTTP_DENIED_HOST,       /* 403 */
        HTTP_DENIED_ORIGIN,     /* 403 */
        HTTP_DENIED_USER,       /* 403: no key is needed, but another user asks */
        HTTP_DENIED_KEY,        /* 401 */
        HTTP_BAD_CONTENT_TYPE,  /* 415 */
        HTTP_TOO_MANY,          /* 503: connections, or bodies in memory */
        HTTP_OUT_OF_RESOURCES,  /* 503: memory, descriptors, space on disk */
        HTTP_REFUSALS,
};

/* "bad_request", "body_too_large", ... */
const char *http_refusal_name(enum http_refusal refusal);

/* A refusal with its status and a sentence for people. */
struct http_problem {
        enum http_refusal refusal;
        unsigned status;
        char message[200];
};

/* Fills in the problem; the status is that of the refusal.  Returns -1 always. */
int http_problem_set(struct http_problem *problem, enum http_refusal refusal, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

#endif
