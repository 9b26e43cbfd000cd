#include "bridge/http/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/log.h"
#include "bridge/http/authority.h"
#include "bridge/http/keys.h"
#include "bridge/http/peer-user.h"

#define METHODS "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

/* Headers that a page may send, and those of an answer that it may read. */
static const char *const page_headers[] = {
        "authorization",     "content-type",   "x-api-key",
        "anthropic-version", "anthropic-beta", "anthropic-dangerous-direct-browser-access",
        "openai-beta"
};
#define PAGE_HEADER_PREFIX "x-stainless-"
#define PAGE_READS                                                                                 \
        "x-request-id, request-id, retry-after, x-samovar-stream-id, x-samovar-queue-position"

struct http_policy {
        const struct http_conf *conf;
        struct http_keys *keys; /* NULL: there is no key file */
};

enum origin {
        ORIGIN_NONE,    /* there is no header */
        ORIGIN_ALLOWED, /* it may read our answers */
        ORIGIN_ANY,     /* the setting allows all */
        ORIGIN_DENIED,
};

int http_policy_new(const struct http_conf *conf, struct http_policy **ret_policy, char *why,
                    size_t why_bytes)
{
        struct http_policy *policy = calloc(1, sizeof(*policy));
        int r = policy ? 0 : -ENOMEM;

        if (policy && conf->key_file)
                r = http_keys_new(&policy->keys);
        if (r) {
                free(policy);
                return error_raise(errtext_set(why, why_bytes, r, "there is no memory for keys"));
        }
        policy->conf = conf;
        r = http_policy_reload(policy, why, why_bytes);
        if (r) {
                http_policy_free(policy);
                return error_pass(r);
        }
        *ret_policy = policy;
        return 0;
}

struct http_policy *http_policy_free(struct http_policy *policy)
{
        if (!policy)
                return NULL;
        http_keys_free(policy->keys);
        free(policy);
        return NULL;
}

int http_policy_reload(struct http_policy *policy, char *why, size_t why_bytes)
{
        int r = policy->keys ? http_keys_read(policy->keys, policy->conf->key_file, why, why_bytes)
                             : 0;

        return error_pass(r);
}

bool http_policy_has_keys(const struct http_policy *policy)
{
        return policy->keys;
}

bool http_policy_asks_for_users(const struct http_policy *policy)
{
        return !policy->keys && !policy->conf->loopback_everyone;
}

const char *http_policy_principal(const struct http_policy *policy, uint32_t principal)
{
        return policy->keys ? http_keys_name(policy->keys, principal) : NULL;
}

bool http_policy_serves(const struct http_policy *policy, const char *name, uint32_t *ret_principal)
{
        *ret_principal = *name && policy->keys ? http_keys_principal(policy->keys, name) : 0;
        return *ret_principal || !*name;
}

static bool names(const char *const *list, const char *name)
{
        for (; list && *list; list++)
                if (!strcasecmp(*list, name))
                        return true;
        return false;
}

/* HTTP/1.0 may have none; a browser always has one. */
static bool is_host_allowed(const struct http_policy *policy, const struct http_reader *reader)
{
        struct http_authority host;
        size_t bytes = 0;
        const char *text = http_reader_host(reader, &bytes);

        if (!text)
                return true;
        if (!http_authority_read(text, bytes, &host))
                return false;
        return http_authority_is_loopback(&host) || names(policy->conf->hosts, host.host);
}

/* Is the page of this server?  Behind a proxy it may speak HTTPS. */
static bool is_same_origin(const struct http_reader *reader, const struct http_authority *origin,
                           int32_t default_port)
{
        struct http_authority host;
        size_t bytes = 0;
        const char *text = http_reader_host(reader, &bytes);

        return text && http_authority_read(text, bytes, &host) &&
               http_authority_is(&host, origin, default_port);
}

static enum origin judge_origin(const struct http_policy *policy, const struct http_reader *reader)
{
        const char *text = http_reader_header(reader, "origin");
        struct http_authority origin;
        int32_t default_port = 80;
        size_t scheme;

        if (!text)
                return ORIGIN_NONE;
        if (!strcmp(text, "null"))
                return ORIGIN_DENIED;
        if (names(policy->conf->origins, text))
                return ORIGIN_ALLOWED;
        scheme = !strncasecmp(text, "http://", 7) ? 7 : !strncasecmp(text, "https://", 8) ? 8 : 0;
        if (scheme == 8)
                default_port = 443;
        if (scheme && http_authority_read(text + scheme, strlen(text + scheme), &origin) &&
            (http_authority_is_loopback(&origin) || is_same_origin(reader, &origin, default_port)))
                return ORIGIN_ALLOWED;
        return names(policy->conf->origins, "*") ? ORIGIN_ANY : ORIGIN_DENIED;
}

static int check_host(const struct http_policy *policy, const struct http_reader *reader,
                      struct http_problem *ret_problem)
{
        size_t bytes = 0;
        const char *text;
        char host[64];

        if (is_host_allowed(policy, reader))
                return 0;
        text = http_reader_host(reader, &bytes);
        bytes = bytes < sizeof(host) ? bytes : sizeof(host) - 1;
        memcpy(host, text, bytes);
        host[bytes] = '\0';
        return http_problem_set(ret_problem, HTTP_DENIED_HOST,
                                "the host '%s' is not served here; use localhost, or let the "
                                "server's settings name the host",
                                shown(host).text);
}

static int check_origin(const struct http_policy *policy, const struct http_reader *reader,
                        struct http_problem *ret_problem)
{
        const char *text = http_reader_header(reader, "origin");

        if (judge_origin(policy, reader) != ORIGIN_DENIED)
                return 0;
        if (!strcmp(text, "null"))
                return http_problem_set(ret_problem, HTTP_DENIED_ORIGIN,
                                        "the page has no origin (it is a file, or in a sandbox); "
                                        "serve it from http://localhost");
        return http_problem_set(ret_problem, HTTP_DENIED_ORIGIN,
                                "pages of '%s' may not ask here; let the server's settings name "
                                "the origin",
                                shown(text).text);
}

/* Without a question to the server first, a browser sends forms and text, but never JSON. */
static int check_content_type(const struct http_reader *reader, struct http_problem *ret_problem)
{
        static const char json[] = "application/json";
        const char *type = http_reader_header(reader, "content-type");
        size_t bytes = type ? strcspn(type, "; \t") : 0;

        if (!http_reader_header(reader, "origin") || !http_reader_has_body(reader))
                return 0;
        if (bytes == strlen(json) && !strncasecmp(type, json, bytes))
                return 0;
        return http_problem_set(ret_problem, HTTP_BAD_CONTENT_TYPE,
                                "a page must send Content-Type: application/json");
}

/* Monitors and browsers ask these without a key.  Below /page/ are the files of the page. */
static bool is_open(const struct http_reader *reader)
{
        const char *path = http_reader_path(reader);

        return (reader->method == HTTP_GET || reader->method == HTTP_HEAD) &&
               (!strcmp(path, "/") || !strcmp(path, "/health") || !strncmp(path, "/page/", 6));
}

/* "Authorization: Bearer KEY" or "x-api-key: KEY"; NULL: neither is there. */
static const char *given_key(const struct http_reader *reader)
{
        const char *text = http_reader_header(reader, "authorization");

        if (text && !strncasecmp(text, "bearer ", 7))
                return text + 7 + strspn(text + 7, " ");
        return http_reader_header(reader, "x-api-key");
}

static bool is_admitted(const struct http_conf *conf, uint32_t uid)
{
        for (uint32_t i = 0; i < conf->uid_count; i++)
                if (conf->uids[i] == uid)
                        return true;
        return uid == geteuid();
}

/* Asks for the user at the other end once, with the first request that needs it. */
static bool is_user_admitted(const struct http_policy *policy, struct http_connection *connection)
{
        uint32_t uid;
        int r;

        if (connection->is_unix ? policy->conf->unix_everyone : policy->conf->loopback_everyone)
                return true;
        if (connection->user_known)
                return connection->user_admitted;
        r = http_peer_user(connection->fd, connection->is_unix, &uid);
        if (r && r != -ENOENT) {
                log_limited(LOG_WARN, "http_peer_unknown error=%s at=%s", strerror(-r),
                            error_trail());
                return false;
        }
        connection->user_known = true;
        connection->user_admitted = !r && is_admitted(policy->conf, uid);
        return connection->user_admitted;
}

static int check_key(const struct http_policy *policy, struct http_connection *connection,
                     uint32_t *ret_principal, struct http_problem *ret_problem)
{
        const char *key = given_key(&connection->reader);

        if (!policy->keys) {
                if (is_user_admitted(policy, connection))
                        return 0;
                return http_problem_set(ret_problem, HTTP_DENIED_USER,
                                        "without keys, only processes of uid %u on this machine "
                                        "may ask; give the server a file of keys",
                                        (unsigned)geteuid());
        }
        if (!key) {
                if (connection->is_unix && is_user_admitted(policy, connection))
                        return 0;
                return http_problem_set(ret_problem, HTTP_DENIED_KEY,
                                        "an API key is needed: Authorization: Bearer KEY, or "
                                        "x-api-key: KEY");
        }
        *ret_principal = http_keys_find(policy->keys, key, strlen(key));
        if (*ret_principal)
                return 0;
        return http_problem_set(ret_problem, HTTP_DENIED_KEY, "the API key is not known here");
}

enum http_policy_verdict http_policy_ask(struct http_policy *policy,
                                         struct http_connection *connection,
                                         uint32_t *ret_principal, struct http_problem *ret_problem)
{
        const struct http_reader *reader = &connection->reader;

        if (check_host(policy, reader, ret_problem) || check_origin(policy, reader, ret_problem))
                return HTTP_POLICY_REFUSES;
        if (reader->method == HTTP_OPTIONS)
                return HTTP_POLICY_ANSWERS;
        if (!is_open(reader) && check_key(policy, connection, ret_principal, ret_problem))
                return HTTP_POLICY_REFUSES;
        return check_content_type(reader, ret_problem) ? HTTP_POLICY_REFUSES : HTTP_POLICY_ADMITS;
}

static int add(struct bytes *to, const char *text)
{
        return bytes_add(to, text, strlen(text));
}

static int add_header(struct bytes *to, const char *name, const char *value)
{
        int r = add(to, name);

        if (!r)
                r = add(to, ": ");
        if (!r)
                r = add(to, value);
        return r ? r : add(to, "\r\n");
}

int http_policy_headers(const struct http_policy *policy, const struct http_reader *reader,
                        struct bytes *to)
{
        enum origin origin = http_reader_has_head(reader) && is_host_allowed(policy, reader)
                                     ? judge_origin(policy, reader)
                                     : ORIGIN_NONE;
        int r = add_header(to, "Vary", "Origin");

        if (!r && (origin == ORIGIN_ALLOWED || origin == ORIGIN_ANY)) {
                r = add_header(to, "Access-Control-Allow-Origin",
                               origin == ORIGIN_ANY ? "*" : http_reader_header(reader, "origin"));
                if (!r)
                        r = add_header(to, "Access-Control-Expose-Headers", PAGE_READS);
        }
        return r;
}

static bool may_send(const char *name, size_t bytes)
{
        size_t prefix = strlen(PAGE_HEADER_PREFIX);

        for (size_t i = 0; i < sizeof(page_headers) / sizeof(*page_headers); i++)
                if (strlen(page_headers[i]) == bytes && !strncasecmp(page_headers[i], name, bytes))
                        return true;
        return bytes > prefix && !strncasecmp(name, PAGE_HEADER_PREFIX, prefix);
}

/* Of the headers that the page wants to send, those that it may, each by its name. */
static int add_allowed(struct bytes *to, const char *wanted)
{
        bool first = true;
        int r = 0;

        while (*wanted && !r) {
                size_t bytes;

                wanted += strspn(wanted, ", \t");
                bytes = strcspn(wanted, ", \t");
                if (may_send(wanted, bytes)) {
                        r = add(to, first ? "Access-Control-Allow-Headers: " : ", ");
                        if (!r)
                                r = bytes_add(to, wanted, bytes);
                        first = false;
                }
                wanted += bytes;
        }
        return r || first ? r : add(to, "\r\n");
}

int http_policy_preflight(const struct http_reader *reader, struct bytes *to)
{
        const char *wanted = http_reader_header(reader, "access-control-request-headers");
        int r = add_header(to, "Allow", METHODS);

        if (r || !http_reader_header(reader, "access-control-request-method"))
                return r;
        r = add_header(to, "Access-Control-Allow-Methods", METHODS);
        if (!r && wanted)
                r = add_allowed(to, wanted);
        return r ? r : add_header(to, "Access-Control-Max-Age", "86400");
}
