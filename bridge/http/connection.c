#include "bridge/http/connection.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "bridge/http/answer.h"
#include "bridge/http/policy.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)
/* Reads of one connection in a turn; then the others have theirs. */
#define READS_MAX 16u
/* Beyond connections_max so many are told that there is no place; others are just closed. */
#define OVER_MAX 32u

/* Between requests a connection has no memory besides this, and its watch and timer. */
_Static_assert(sizeof(struct http_connection) < 4096, "an idle connection must be small");

static void set_state(struct http_connection *connection, enum http_connection_state state)
{
        connection->state = state;
        connection->since_ns = sys_clock_ns();
        list_remove(&connection->idle);
        if (state == HTTP_IDLE)
                list_push_back(&connection->server->idle, &connection->idle);
        http_mark(connection);
}

/* Nothing can be sent or read any more. */
static void lose(struct http_connection *connection)
{
        connection->dead = true;
        http_mark(connection);
}

/* If the program has the exchange, it learns that the client is gone. */
static void tell_gone(struct http_connection *connection)
{
        struct http_server *server = connection->server;
        struct http_exchange *x = connection->exchange;

        if (!x || !x->seen || x->finished)
                return;
        x->finished = true;
        bytes_deinit(&x->headers);
        server->counts.clients_gone++;
        server->handlers.on_gone(server->handlers.arg, x);
}

/* The request is refused behind its head; the program loses what it has of it. */
static void refuse(struct http_connection *connection, const struct http_problem *problem,
                   bool ends)
{
        bool is_denied =
                problem->refusal >= HTTP_DENIED_HOST && problem->refusal <= HTTP_DENIED_KEY;

        log_limited(is_denied ? LOG_INFO : LOG_DEBUG, "http_refused code=%s why=%s",
                    http_refusal_name(problem->refusal), problem->message);
        tell_gone(connection);
        http_answer_refuse(connection, problem, ends);
        http_exchange_free(connection);
        set_state(connection, HTTP_RUNNING);
}

static void refuse_for_resources(struct http_connection *connection, const char *message, int r)
{
        struct http_problem problem;

        log_limited(LOG_WARN, "http_out_of_resources what=%s error=%s", message, strerror(-r));
        http_problem_set(&problem, HTTP_OUT_OF_RESOURCES, "%s: %s", message, strerror(-r));
        if (r == -ENOSPC || r == -EDQUOT)
                problem.status = 507;
        refuse(connection, &problem, true);
}

static int make_exchange(struct http_connection *connection)
{
        struct http_exchange *x = calloc(1, sizeof(*x));

        if (!x)
                return error_raise(-ENOMEM);
        x->connection = connection;
        x->body_fd = -1;
        http_exchange_name(connection->server, x->id);
        connection->exchange = x;
        return 0;
}

/* A request with its head: what the policy says, then what the program says. */
static void on_head(struct http_connection *connection)
{
        struct http_server *server = connection->server;
        struct http_problem problem;
        int r = make_exchange(connection);

        server->counts.requests++;
        if (r) {
                refuse_for_resources(connection, "there is no memory for the request", r);
                return;
        }
        switch (http_policy_ask(server->policy, connection, &connection->exchange->principal,
                                &problem)) {
        case HTTP_POLICY_REFUSES:
                refuse(connection, &problem, false);
                return;
        case HTTP_POLICY_ANSWERS:
                http_answer_options(connection);
                http_exchange_free(connection);
                set_state(connection, HTTP_RUNNING);
                return;
        case HTTP_POLICY_ADMITS:
                break;
        }
        connection->exchange->seen = true;
        server->handlers.on_headers(server->handlers.arg, connection->exchange);
        if (connection->exchange->answered || connection->exchange->finished) {
                set_state(connection, HTTP_RUNNING);
                return;
        }
        if (http_reader_has_body(&connection->reader))
                set_state(connection, HTTP_BODY_IN);
        if (!http_reader_body_fits(&connection->reader))
                refuse(connection, &connection->reader.problem, true);
}

static int spool(struct http_exchange *x, const char *bytes, size_t count)
{
        const char *folder = x->connection->server->conf.spool;

        if (x->body_fd < 0)
                x->body_fd = sys_open(folder, O_TMPFILE | O_RDWR, 0600);
        if (x->body_fd < 0)
                return error_raise(x->body_fd);
        while (count) {
                ssize_t n = sys_write(x->body_fd, bytes, count);

                if (n <= 0)
                        return error_raise(n < 0 ? (int)n : -EIO);
                bytes += n;
                count -= (size_t)n;
                x->body_fd_bytes += (uint64_t)n;
        }
        return 0;
}

/* With a NUL behind it, which is not counted. */
static int store(struct http_exchange *x, const char *bytes, size_t count)
{
        int r = bytes_reserve(&x->body, count + 1);

        if (r)
                return error_raise(r);
        memcpy(x->body.at + x->body.count, bytes, count);
        x->body.count += count;
        x->body.at[x->body.count] = '\0';
        x->connection->server->counts.body_bytes += count;
        return 0;
}

static void on_body(struct http_connection *connection, const char *bytes, size_t count)
{
        struct http_server *server = connection->server;
        struct http_exchange *x = connection->exchange;
        struct http_problem problem;
        int r;

        if (!x->spools && count > server->conf.bodies_max - server->counts.body_bytes) {
                http_problem_set(&problem, HTTP_TOO_MANY,
                                 "the bodies of all requests have more than %llu bytes",
                                 (unsigned long long)server->conf.bodies_max);
                refuse(connection, &problem, true);
                return;
        }
        r = x->spools ? spool(x, bytes, count) : store(x, bytes, count);
        if (r)
                refuse_for_resources(connection, "the body cannot be stored", r);
}

/* A spooled body without bytes is an empty file. */
static void on_end(struct http_connection *connection)
{
        struct http_server *server = connection->server;
        int r = connection->exchange->spools ? spool(connection->exchange, "", 0) : 0;

        if (r) {
                refuse_for_resources(connection, "the body cannot be stored", r);
                return;
        }
        set_state(connection, HTTP_RUNNING);
        server->handlers.on_request(server->handlers.arg, connection->exchange);
}

/* The reader has read on: one event. */
static void on_event(struct http_connection *connection, int event, const char *body, size_t bytes)
{
        switch (event) {
        case HTTP_READER_HEAD:
                on_head(connection);
                break;
        case HTTP_READER_BODY:
                on_body(connection, body, bytes);
                break;
        case HTTP_READER_END:
                on_end(connection);
                break;
        case HTTP_READER_BAD:
                refuse(connection, &connection->reader.problem, true);
                break;
        default:
                if (event < 0)
                        refuse_for_resources(connection, "there is no memory for the request",
                                             event);
        }
}

static bool is_receiving(const struct http_connection *connection)
{
        return connection->state <= HTTP_BODY_IN;
}

/* "100 Continue" asks for a body of which nothing has come. */
static void continue_if_asked(struct http_connection *connection, size_t unread)
{
        if (connection->state != HTTP_BODY_IN || !connection->reader.expects_continue)
                return;
        connection->reader.expects_continue = false;
        if (!unread)
                http_answer_continue(connection);
}

/* Reads requests out of the bytes until one runs; returns how many bytes were used. */
static size_t take_bytes(struct http_connection *connection, const char *bytes, size_t count)
{
        const char *at = bytes, *body = NULL;
        size_t body_bytes = 0;
        int event;

        do {
                event = http_reader_next(&connection->reader, &at, &count, &body, &body_bytes);
                if (connection->state == HTTP_IDLE && http_reader_has_begun(&connection->reader))
                        set_state(connection, HTTP_HEAD_IN);
                if (event != HTTP_READER_MORE)
                        on_event(connection, event, body, body_bytes);
                continue_if_asked(connection, count);
        } while (event != HTTP_READER_MORE && is_receiving(connection));
        return (size_t)(at - bytes);
}

/* Bytes behind the end of the request wait until that is answered. */
static void receive(struct http_connection *connection, const char *bytes, size_t count)
{
        size_t used = take_bytes(connection, bytes, count);

        if (used < count && !connection->closes &&
            bytes_add(&connection->ahead, bytes + used, count - used))
                lose(connection);
}

static void on_readable(struct http_connection *connection)
{
        struct http_server *server = connection->server;

        for (uint32_t i = 0; i < READS_MAX && !connection->dead; i++) {
                ssize_t n = sys_read(connection->fd, server->input, sizeof(server->input));

                if (n == -EAGAIN)
                        return;
                if (n <= 0) {
                        lose(connection);
                        return;
                }
                if (connection->state == HTTP_LINGERING)
                        continue;
                receive(connection, server->input, (size_t)n);
                if (!is_receiving(connection))
                        return;
        }
}

/*
 * While a request runs, a client that closed its sending half counts as gone, though what it sent
 * before may be unread.  Once the answer is finished, the client may close that half: it can still
 * read.
 */
static void on_changed(struct http_connection *connection)
{
        const struct http_exchange *x = connection->exchange;

        if (x && !x->finished && sys_hung_up(connection->fd))
                lose(connection);
}

static void on_fd(void *arg, unsigned mask)
{
        struct http_connection *connection = arg;

        if (mask & LOOP_READ)
                on_readable(connection);
        if (mask & LOOP_HUP)
                on_changed(connection);
        http_mark(connection);
}

/* 0: no deadline. */
static uint64_t deadline_of(const struct http_connection *connection)
{
        const struct http_conf *conf = &connection->server->conf;
        uint64_t since = connection->since_ns;

        switch (connection->state) {
        case HTTP_IDLE:
                return since + conf->idle_ms * NS_PER_MS;
        case HTTP_HEAD_IN:
                return since + conf->head_ms * NS_PER_MS;
        case HTTP_BODY_IN:
                return since + conf->body_ms * NS_PER_MS +
                       connection->reader.count / conf->body_rate * NS_PER_S;
        case HTTP_RUNNING:
                return http_queue_bytes(connection) ? since + conf->write_ms * NS_PER_MS : 0;
        case HTTP_LINGERING:
                return since + conf->linger_ms * NS_PER_MS;
        }
        return 0;
}

static void refuse_slow(struct http_connection *connection)
{
        struct http_problem problem;

        if (connection->state == HTTP_HEAD_IN)
                http_problem_set(&problem, HTTP_TOO_SLOW, "the headers did not come within %u ms",
                                 connection->server->conf.head_ms);
        else
                http_problem_set(&problem, HTTP_TOO_SLOW,
                                 "the body did not come within %u ms and 1 s for each %llu bytes",
                                 connection->server->conf.body_ms,
                                 (unsigned long long)connection->server->conf.body_rate);
        refuse(connection, &problem, true);
}

static void on_timer(void *arg)
{
        struct http_connection *connection = arg;
        uint64_t due = deadline_of(connection);

        connection->due_ns = 0;
        http_mark(connection);
        if (!due || sys_clock_ns() < due)
                return;
        if (connection->state == HTTP_HEAD_IN || connection->state == HTTP_BODY_IN)
                refuse_slow(connection);
        else
                lose(connection);
}

/*
 * Only an earlier deadline moves the timer.  One that fires too early is set again, which is
 * cheaper than to move it with each byte.
 */
static int set_timer(struct http_connection *connection)
{
        uint64_t due = deadline_of(connection), now = sys_clock_ns();
        int r;

        if (!due || (connection->due_ns && connection->due_ns <= due))
                return 0;
        r = loop_timer_set(connection->timer, due > now ? due - now : 0);
        if (!r)
                connection->due_ns = due;
        return error_pass(r);
}

static int set_watch(struct http_connection *connection)
{
        unsigned mask = http_queue_bytes(connection) ? LOOP_WRITE : 0;

        if (is_receiving(connection) || connection->state == HTTP_LINGERING)
                mask |= LOOP_READ;
        else if (connection->exchange)
                mask |= LOOP_HUP;
        return error_pass(loop_watch_set(connection->watch, mask));
}

/* As much as the kernel takes. */
static void send_out(struct http_connection *connection)
{
        while (!connection->dead && http_queue_bytes(connection)) {
                ssize_t n = sys_send(connection->fd, connection->out.at + connection->out_sent,
                                     http_queue_bytes(connection));

                if (n < 0 && n != -EAGAIN) {
                        lose(connection);
                        return;
                }
                if (connection->state == HTTP_RUNNING && (n > 0 || !connection->blocked))
                        connection->since_ns = sys_clock_ns();
                connection->blocked = n < 0;
                if (n < 0)
                        break;
                connection->out_sent += (size_t)n;
                connection->server->counts.sent_bytes += (uint64_t)n;
        }
        if (!http_queue_bytes(connection)) {
                connection->out.count = connection->out_sent = 0;
                connection->blocked = false;
        } else if (connection->out_sent > connection->out.count / 2) {
                connection->out.count -= connection->out_sent;
                memmove(connection->out.at, connection->out.at + connection->out_sent,
                        connection->out.count);
                connection->out_sent = 0;
        }
}

static void give_up_place(struct http_connection *connection)
{
        connection->server->places_taken -= connection->has_place;
        connection->has_place = false;
}

/* All is sent, and the connection must end. */
static void begin_to_linger(struct http_connection *connection)
{
        bytes_deinit(&connection->ahead);
        bytes_deinit(&connection->out);
        give_up_place(connection);
        if (sys_shutdown_sending(connection->fd))
                lose(connection);
        else
                set_state(connection, HTTP_LINGERING);
}

/* All is sent: the next request may be there already. */
static void begin_next(struct http_connection *connection)
{
        struct bytes ahead = connection->ahead;

        connection->ahead = (struct bytes){ 0 };
        bytes_deinit(&connection->out);
        http_reader_reset(&connection->reader, connection->server->conf.body_max);
        set_state(connection, HTTP_IDLE);
        receive(connection, ahead.at, ahead.count);
        bytes_deinit(&ahead);
}

static void tell_drained(struct http_connection *connection)
{
        struct http_server *server = connection->server;
        struct http_exchange *x = connection->exchange;

        if (!x || x->finished || !x->undrained || http_queue_bytes(connection) > HTTP_QUEUE_LOW)
                return;
        x->undrained = false;
        server->handlers.on_drained(server->handlers.arg, x);
}

static void settle(struct http_connection *connection)
{
        send_out(connection);
        if (connection->exchange && connection->exchange->finished)
                http_exchange_free(connection);
        tell_drained(connection);
        if (!connection->dead && connection->state == HTTP_RUNNING && !connection->exchange &&
            !http_queue_bytes(connection)) {
                if (connection->closes || connection->server->stopped)
                        begin_to_linger(connection);
                else
                        begin_next(connection);
        }
        if (connection->server->stopped && connection->state <= HTTP_HEAD_IN)
                connection->dead = true;
        if (!connection->dead && (set_watch(connection) || set_timer(connection)))
                connection->dead = true;
        if (connection->dead)
                http_connection_free(connection);
}

/*
 * One that is marked again while it is settled, as by its next request, has the next turn.  That
 * turn does not wait for events.
 */
void http_connection_settle_all(struct http_server *server)
{
        struct list_head *at;

        while ((at = list_pop_front(&server->marked)))
                list_push_back(&server->settling, at);
        while ((at = list_pop_front(&server->settling)))
                settle(LIST_ENTRY(at, struct http_connection, marked));
        if (!list_is_empty(&server->marked))
                loop_task_post(server->settle);
}

void http_connection_free(struct http_connection *connection)
{
        struct http_server *server = connection->server;

        tell_gone(connection);
        http_exchange_free(connection);
        give_up_place(connection);
        list_remove(&connection->link);
        list_remove(&connection->marked);
        list_remove(&connection->idle);
        loop_watch_free(connection->watch);
        loop_timer_free(connection->timer);
        sys_close(connection->fd);
        http_reader_reset(&connection->reader, 0);
        bytes_deinit(&connection->ahead);
        bytes_deinit(&connection->out);
        free(connection);
        server->counts.connections_open--;
        if (server->stopped && !server->counts.connections_open && server->handlers.on_idle)
                server->handlers.on_idle(server->handlers.arg);
}

/*
 * If all places are taken, the connection that is idle for the longest time makes place.  It can be
 * freed at once, as none of its handlers is on the stack.
 */
static bool find_place(struct http_server *server)
{
        struct list_head *oldest = list_first(&server->idle);

        if (server->places_taken >= server->conf.connections_max && oldest)
                http_connection_free(LIST_ENTRY(oldest, struct http_connection, idle));
        return server->places_taken < server->conf.connections_max;
}

static void refuse_place(struct http_connection *connection)
{
        struct http_problem problem;

        http_problem_set(&problem, HTTP_TOO_MANY, "all %u connections are taken",
                         connection->server->conf.connections_max);
        refuse(connection, &problem, true);
}

static int watch(struct http_connection *connection)
{
        struct http_server *server = connection->server;
        int r;

        r = loop_watch_new(server->loop, connection->fd, LOOP_READ, on_fd, connection,
                           &connection->watch);
        if (!r)
                r = loop_timer_new(server->loop, on_timer, connection, &connection->timer);
        return error_pass(r);
}

static void begin(struct http_connection *connection)
{
        struct http_server *server = connection->server;

        connection->has_place = find_place(server);
        server->places_taken += connection->has_place;
        server->counts.connections++;
        server->counts.connections_open++;
        list_push_back(&server->connections, &connection->link);
        http_reader_init(&connection->reader, server->conf.body_max);
        if (!connection->is_unix)
                (void)sys_set_no_delay(connection->fd); /* without it, it is only slower */
        set_state(connection, HTTP_IDLE);
        if (!connection->has_place)
                refuse_place(connection);
}

int http_connection_new(struct http_server *server, int fd, bool is_unix)
{
        struct http_connection *connection = NULL;
        int r;

        if (server->counts.connections_open < server->conf.connections_max + OVER_MAX)
                connection = calloc(1, sizeof(*connection));
        if (!connection) {
                sys_close(fd);
                return error_raise(-ENOMEM);
        }
        *connection = (struct http_connection){ .server = server, .fd = fd, .is_unix = is_unix };
        r = watch(connection);
        if (!r) {
                begin(connection);
                return 0;
        }
        loop_watch_free(connection->watch);
        loop_timer_free(connection->timer);
        sys_close(fd);
        free(connection);
        return error_pass(r);
}
