#include "bridge/http/authority.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static bool is_name_byte(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The address between the brackets, or all zero and false. */
static bool read_ipv6(const char *host, struct in6_addr *ret_address)
{
        size_t bytes = strlen(host);
        char inner[INET6_ADDRSTRLEN];

        if (bytes < 4 || bytes - 2 >= sizeof(inner) || host[0] != '[')
                return false;
        memcpy(inner, host + 1, bytes - 2);
        inner[bytes - 2] = '\0';
        return inet_pton(AF_INET6, inner, ret_address) == 1;
}

/* Copies up to the ':' of the port; returns the bytes read, or 0. */
static size_t read_host(const char *text, size_t bytes, char *to)
{
        const char *end = text[0] == '[' ? memchr(text, ']', bytes) : memchr(text, ':', bytes);
        size_t count = !end ? bytes : (size_t)(end - text) + (text[0] == '[');
        struct in6_addr address;

        if (!count || count > AUTHORITY_HOST_MAX || (text[0] == '[' && !end))
                return 0;
        for (size_t i = 0; i < count; i++) {
                to[i] = lower(text[i]);
                if (text[0] != '[' && !is_name_byte(to[i]))
                        return 0;
        }
        to[count] = '\0';
        if (text[0] == '[')
                return read_ipv6(to, &address) ? count : 0;
        if (to[count - 1] == '.')
                to[count - 1] = '\0';
        return to[0] && to[0] != '.' ? count : 0;
}

bool http_authority_read(const char *text, size_t bytes, struct http_authority *ret_authority)
{
        size_t at;

        ret_authority->port = -1;
        at = bytes ? read_host(text, bytes, ret_authority->host) : 0;
        if (!at || (at < bytes && text[at] != ':'))
                return false;
        if (bytes - at > 6)
                return false;
        for (at++; at < bytes; at++) {
                int32_t port = ret_authority->port > 0 ? ret_authority->port : 0;

                if (text[at] < '0' || text[at] > '9')
                        return false;
                ret_authority->port = port * 10 + (text[at] - '0');
        }
        return ret_authority->port <= UINT16_MAX;
}

bool http_authority_is(const struct http_authority *a, const struct http_authority *b,
                       int32_t default_port)
{
        int32_t port_a = a->port >= 0 ? a->port : default_port;
        int32_t port_b = b->port >= 0 ? b->port : default_port;

        return port_a == port_b && !strcmp(a->host, b->host);
}

bool http_authority_is_loopback(const struct http_authority *authority)
{
        static const char suffix[] = ".localhost";
        size_t bytes = strlen(authority->host);
        struct in6_addr v6;
        struct in_addr v4;

        if (!strcmp(authority->host, suffix + 1))
                return true;
        if (bytes > strlen(suffix) && !strcmp(authority->host + bytes - strlen(suffix), suffix))
                return true;
        if (inet_pton(AF_INET, authority->host, &v4) == 1)
                return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
        return read_ipv6(authority->host, &v6) && IN6_IS_ADDR_LOOPBACK(&v6);
}
