/* Questions to an exchange, and its body; answer.c has how it is answered. */
#include <string.h>

#include "base/sys.h"
#include "bridge/http/context.h"
#include "bridge/http/http-exchange.h"

void http_set(struct http_exchange *x, void *own)
{
        x->own = own;
}

void *http_get(const struct http_exchange *x)
{
        return x->own;
}

enum http_method http_method(const struct http_exchange *x)
{
        return x->connection->reader.method;
}

const char *http_path(const struct http_exchange *x)
{
        return http_reader_path(&x->connection->reader);
}

bool http_query(const struct http_exchange *x, const char *name, const char **ret_value)
{
        return http_reader_query(&x->connection->reader, name, ret_value);
}

const char *http_header(const struct http_exchange *x, const char *name)
{
        return http_reader_header(&x->connection->reader, name);
}

const char *http_request_id(const struct http_exchange *x)
{
        return x->id;
}

uint32_t http_principal(const struct http_exchange *x)
{
        return x->principal;
}

void http_limit_body(struct http_exchange *x, uint64_t bytes)
{
        x->connection->reader.body_limit = bytes;
}

void http_spool_body(struct http_exchange *x)
{
        x->spools = true;
}

const char *http_body(const struct http_exchange *x, size_t *ret_bytes)
{
        *ret_bytes = x->body.count;
        return x->body.at ? x->body.at : "";
}

int http_body_fd(const struct http_exchange *x, uint64_t *ret_bytes)
{
        *ret_bytes = x->body_fd_bytes;
        return x->body_fd;
}

void http_drop_body(struct http_exchange *x)
{
        x->connection->server->counts.body_bytes -= x->body.count;
        bytes_deinit(&x->body);
        x->body_fd = sys_close(x->body_fd);
        x->body_fd_bytes = 0;
}
