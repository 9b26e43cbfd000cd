/*
 * The policy: who may ask.  server.h has the rules for people.
 *
 * A page from the web can make a browser send requests to us, and with a name that leads to
 * 127.0.0.1 (DNS rebinding) even read the answers.  So both are checked: Host, because a rebound
 * page's GET has no Origin, and Origin, because a page of another site uses our own name.
 */
#ifndef BRIDGE_HTTP_POLICY_H
#define BRIDGE_HTTP_POLICY_H

#include "bridge/http/context.h"

enum http_policy_verdict {
        HTTP_POLICY_ADMITS,
        HTTP_POLICY_REFUSES,
        HTTP_POLICY_ANSWERS, /* an OPTIONS, which needs no key: http_answer_options() */
};

struct http_policy;

/* Reads the key file, if there is one. */
int http_policy_new(const struct http_conf *conf, struct http_policy **ret_policy, char *why,
                    size_t why_bytes);
struct http_policy *http_policy_free(struct http_policy *policy);
int http_policy_reload(struct http_policy *policy, char *why, size_t why_bytes);
bool http_policy_has_keys(const struct http_policy *policy);
/* True: over loopback, only some users may ask, and the kernel must be asked for each peer's. */
bool http_policy_asks_for_users(const struct http_policy *policy);
const char *http_policy_principal(const struct http_policy *policy, uint32_t principal);
bool http_policy_serves(const struct http_policy *policy, const char *name,
                        uint32_t *ret_principal);

/* The connection has a request whose head was read. */
enum http_policy_verdict http_policy_ask(struct http_policy *policy,
                                         struct http_connection *connection,
                                         uint32_t *ret_principal, struct http_problem *ret_problem);

/* Headers that each answer has, with CORS if the origin is allowed: 0 or -ENOMEM. */
int http_policy_headers(const struct http_policy *policy, const struct http_reader *reader,
                        struct bytes *to);
/* Headers of an answer to OPTIONS. */
int http_policy_preflight(const struct http_reader *reader, struct bytes *to);

#endif
