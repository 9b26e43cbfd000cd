/*
 * An authority: the host and the port of a Host header, of an absolute request target, or of an
 * origin.  Pure functions.
 *
 * A host is a name of letters, digits, '.', '-' and '_', a dotted IPv4 address, or an IPv6 address
 * in brackets.  All else is refused, so that no two programs can read it differently.
 */
#ifndef BRIDGE_HTTP_AUTHORITY_H
#define BRIDGE_HTTP_AUTHORITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTHORITY_HOST_MAX 255u

struct http_authority {
        char host[AUTHORITY_HOST_MAX + 1]; /* lower case, with the brackets, without a last '.' */
        int32_t port;                      /* -1: none is named */
};

/* False: the bytes are no authority. */
bool http_authority_read(const char *text, size_t bytes, struct http_authority *ret_authority);

/* Equal hosts, and equal ports; a port that is not named is `default_port`. */
bool http_authority_is(const struct http_authority *a, const struct http_authority *b,
                       int32_t default_port);

/*
 * True for localhost, NAME.localhost, 127.0.0.0/8 and [::1]: no name service of others decides
 * where these lead.
 */
bool http_authority_is_loopback(const struct http_authority *authority);

#endif
