#include "bridge/http/answer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/siphash.h"
#include "base/sys.h"
#include "bridge/http/policy.h"

#define NS_PER_S UINT64_C(1000000000)
/* A client that is refused for want of memory or places may try again then. */
#define RETRY_S 1

static const struct {
        unsigned status;
        const char *reason;
} reasons[] = {
        { 100, "Continue" },
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 206, "Partial Content" },
        { 301, "Moved Permanently" },
        { 302, "Found" },
        { 303, "See Other" },
        { 304, "Not Modified" },
        { 307, "Temporary Redirect" },
        { 308, "Permanent Redirect" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 406, "Not Acceptable" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 410, "Gone" },
        { 413, "Content Too Large" },
        { 414, "URI Too Long" },
        { 415, "Unsupported Media Type" },
        { 416, "Range Not Satisfiable" },
        { 417, "Expectation Failed" },
        { 422, "Unprocessable Content" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 499, "Client Closed Request" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 502, "Bad Gateway" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 505, "HTTP Version Not Supported" },
        { 507, "Insufficient Storage" },
        { 529, "Overloaded" },
};

static const char *reason_of(unsigned status)
{
        for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
                if (reasons[i].status == status)
                        return reasons[i].reason;
        return "";
}

/* Without memory for what is to be sent, the connection cannot go on. */
static void queue(struct http_connection *connection, const void *bytes, size_t count)
{
        if (!connection->dead && bytes_add(&connection->out, bytes, count))
                connection->dead = true;
}

__attribute__((format(printf, 2, 3))) static void queue_text(struct http_connection *connection,
                                                             const char *format, ...)
{
        char text[512];
        va_list values;
        int count;

        va_start(values, format);
        count = vsnprintf(text, sizeof(text), format, values);
        va_end(values);
        assert(count >= 0 && (size_t)count < sizeof(text));
        queue(connection, text, (size_t)count);
}

/* "Thu, 26 Nov 2026 23:50:57 GMT", in English whatever the locale is. */
static const char *date_of(struct http_server *server)
{
        static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
        static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
        uint64_t now_s = sys_wall_clock_ns() / NS_PER_S;
        time_t now = (time_t)now_s;
        struct tm at;

        if (now_s == server->date_s)
                return server->date;
        if (!gmtime_r(&now, &at))
                return "Thu, 01 Jan 1970 00:00:00 GMT";
        snprintf(server->date, sizeof(server->date), "%s, %02u %s %04u %02u:%02u:%02u GMT",
                 days[at.tm_wday], (unsigned)at.tm_mday % 100, months[at.tm_mon],
                 (unsigned)(at.tm_year + 1900) % 10000, (unsigned)at.tm_hour % 100,
                 (unsigned)at.tm_min % 100, (unsigned)at.tm_sec % 100);
        server->date_s = now_s;
        return server->date;
}

void http_exchange_name(struct http_server *server, char id[HTTP_ID_BYTES])
{
        uint64_t number = ++server->id_count, hash[2];

        siphash(server->id_key, &number, sizeof(number), hash);
        snprintf(id, HTTP_ID_BYTES, "req_%016llx%016llx", (unsigned long long)hash[0],
                 (unsigned long long)hash[1]);
}

/* The connection ends behind this answer if the client, the request or the server want it. */
static void decide_about_end(struct http_connection *connection)
{
        const struct http_reader *reader = &connection->reader;

        if (!http_reader_has_head(reader) || !reader->keeps_alive || connection->server->stopped)
                connection->closes = true;
        if (connection->state == HTTP_HEAD_IN && http_reader_has_body(reader))
                connection->closes = true;
        if (connection->state == HTTP_BODY_IN)
                connection->closes = true;
}

/* What each answer has; the caller goes on with its own headers. */
/* The id of the exchange, or a new one for a request that has none. */
static void name_answer(struct http_connection *connection, char id[HTTP_ID_BYTES])
{
        if (connection->exchange)
                memcpy(id, connection->exchange->id, HTTP_ID_BYTES);
        else
                http_exchange_name(connection->server, id);
}

static void begin_head(struct http_connection *connection, const char *id, unsigned status,
                       const char *type)
{
        const struct http_reader *reader = &connection->reader;
        const struct http_exchange *x = connection->exchange;

        decide_about_end(connection);
        queue_text(connection,
                   "HTTP/1.1 %u %s\r\nDate: %s\r\nx-request-id: %s\r\nrequest-id: %s\r\n", status,
                   reason_of(status), date_of(connection->server), id, id);
        if (connection->closes)
                queue_text(connection, "Connection: close\r\n");
        else if (!reader->minor)
                queue_text(connection, "Connection: keep-alive\r\n");
        if (type)
                queue_text(connection, "Content-Type: %.200s\r\n", type);
        if (!connection->dead &&
            http_policy_headers(connection->server->policy, reader, &connection->out))
                connection->dead = true;
        if (x)
                queue(connection, x->headers.at, x->headers.count);
}

static bool has_no_body(const struct http_reader *reader, unsigned status)
{
        return (http_reader_has_head(reader) && reader->method == HTTP_HEAD) || status == 204 ||
               status == 304;
}

/* The length of a body that HEAD asks about is told; those statuses have none. */
static void end_head(struct http_connection *connection, unsigned status, size_t bytes)
{
        if (status != 204 && status != 304)
                queue_text(connection, "Content-Length: %zu\r\n", bytes);
        queue(connection, "\r\n", 2);
}

void http_exchange_free(struct http_connection *connection)
{
        struct http_exchange *x = connection->exchange;

        if (!x)
                return;
        http_drop_body(x);
        bytes_deinit(&x->headers);
        free(x);
        connection->exchange = NULL;
}

static void finish(struct http_exchange *x)
{
        x->finished = true;
        x->connection->state = HTTP_RUNNING; /* what comes of the request is not read */
        http_mark(x->connection);
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
        size_t from = x->headers.count + strlen(name) + 2;

        assert(!x->answered);
        if (bytes_add(&x->headers, name, strlen(name)) || bytes_add(&x->headers, ": ", 2) ||
            bytes_add(&x->headers, value, strlen(value)) || bytes_add(&x->headers, "\r\n", 2)) {
                x->connection->dead = true;
                http_mark(x->connection);
                return;
        }
        for (size_t i = from; i < x->headers.count - 2; i++)
                if ((unsigned char)x->headers.at[i] < ' ' || x->headers.at[i] == 0x7f)
                        x->headers.at[i] = ' ';
}

void http_reply(struct http_exchange *x, unsigned status, const char *type, const void *body,
                size_t bytes)
{
        struct http_connection *connection = x->connection;

        assert(!x->answered && !x->finished);
        begin_head(connection, x->id, status, type);
        end_head(connection, status, bytes);
        if (!has_no_body(&connection->reader, status))
                queue(connection, body, bytes);
        x->answered = true;
        finish(x);
}

void http_stream(struct http_exchange *x, unsigned status, const char *type)
{
        struct http_connection *connection = x->connection;

        assert(!x->answered && !x->finished);
        x->silent = has_no_body(&connection->reader, status);
        x->chunked = connection->reader.minor > 0;
        connection->closes = connection->closes || !x->chunked;
        begin_head(connection, x->id, status, type);
        if (x->chunked)
                queue_text(connection, "Transfer-Encoding: chunked\r\n");
        queue(connection, "\r\n", 2);
        x->answered = true;
        connection->state = HTTP_RUNNING;
        http_mark(connection);
}

bool http_is_streaming(const struct http_exchange *x)
{
        return x->answered && !x->finished;
}

/* Once for each token of each stream, so nothing is formatted. */
static void queue_chunk_size(struct http_connection *connection, size_t count)
{
        char text[2 * sizeof(count) + 2], *at = text + sizeof(text);

        *--at = '\n';
        *--at = '\r';
        for (; count; count >>= 4)
                *--at = "0123456789abcdef"[count & 15];
        queue(connection, at, (size_t)(text + sizeof(text) - at));
}

void http_write(struct http_exchange *x, const void *bytes, size_t count)
{
        struct http_connection *connection = x->connection;

        assert(x->answered && !x->finished);
        if (!count || x->silent) /* an empty chunk would end the stream */
                return;
        if (x->chunked)
                queue_chunk_size(connection, count);
        queue(connection, bytes, count);
        if (x->chunked)
                queue(connection, "\r\n", 2);
        if (http_queue_bytes(connection) > HTTP_QUEUE_LOW)
                x->undrained = true;
        http_mark(connection);
}

size_t http_queued(const struct http_exchange *x)
{
        return http_queue_bytes(x->connection);
}

void http_finish(struct http_exchange *x)
{
        assert(x->answered && !x->finished);
        if (x->chunked && !x->silent)
                queue(x->connection, "0\r\n\r\n", 5);
        finish(x);
}

void http_cut(struct http_exchange *x)
{
        x->connection->closes = true;
        finish(x);
}

/* More headers that a refusal with this status has. */
static void queue_advice(struct http_connection *connection, unsigned status)
{
        if (status == 401)
                queue_text(connection, "WWW-Authenticate: Bearer\r\n");
        if (status == 503)
                queue_text(connection, "Retry-After: %u\r\n", RETRY_S);
}

void http_answer_refuse(struct http_connection *connection, const struct http_problem *problem,
                        bool ends)
{
        struct http_server *server = connection->server;
        struct bytes body = { 0 };
        char id[HTTP_ID_BYTES];
        const char *type;

        name_answer(connection, id);
        server->counts.refusals[problem->refusal]++;
        connection->closes = connection->closes || ends;
        type = server->handlers.on_refusal(
                server->handlers.arg, http_reader_path(&connection->reader), id, problem->status,
                http_refusal_name(problem->refusal), problem->message, &body);
        begin_head(connection, id, problem->status, type);
        queue_advice(connection, problem->status);
        end_head(connection, problem->status, body.count);
        if (!has_no_body(&connection->reader, problem->status))
                queue(connection, body.at, body.count);
        bytes_deinit(&body);
        connection->state = HTTP_RUNNING;
        http_mark(connection);
}

void http_answer_options(struct http_connection *connection)
{
        char id[HTTP_ID_BYTES];

        name_answer(connection, id);
        begin_head(connection, id, 204, NULL);
        if (!connection->dead && http_policy_preflight(&connection->reader, &connection->out))
                connection->dead = true;
        end_head(connection, 204, 0);
        connection->state = HTTP_RUNNING;
        http_mark(connection);
}

void http_answer_continue(struct http_connection *connection)
{
        queue_text(connection, "HTTP/1.1 100 Continue\r\n\r\n");
        http_mark(connection);
}

size_t http_answer_busy(char *to, size_t bytes)
{
        int count = snprintf(to, bytes,
                             "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                             "Retry-After: %u\r\nContent-Length: 0\r\n\r\n",
                             RETRY_S);

        assert(count > 0 && (size_t)count < bytes);
        return (size_t)count;
}
