/*
 * The HTTP server over real sockets: answers, streams, clients that leave, and clients that are
 * slow.  Deadlines are made short, and tests wait for what they cause, not for a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/http-rig.h"

#define H "Host: localhost\r\n"
/* Longer than a test can take. */
#define NEVER_MS 3600000u
#define SOON_MS  30u

static int set_up(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));

        rig_init(rig);
        rig->conf.head_ms = rig->conf.body_ms = rig->conf.idle_ms = NEVER_MS;
        rig->conf.write_ms = rig->conf.linger_ms = NEVER_MS;
        *state = rig;
        return 0;
}

static int tear_down(void **state)
{
        rig_end(*state);
        free(*state);
        return 0;
}

static void answers_several_requests_on_one_connection(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        for (uint32_t i = 0; i < 3; i++) {
                client_send(&client, "POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc");
                client_until(&client, "\r\n\r\nabc");
                assert_memory_equal(client.got, "HTTP/1.1 200 OK\r\nDate: ", 23);
                assert_true(client_has(&client, "\r\nX-Echo: a  b\r\n"));
                assert_true(client_has(&client, "\r\nContent-Type: text/plain\r\n"));
                assert_true(client_has(&client, "\r\nContent-Length: 3\r\n"));
                assert_true(client_has(&client, "\r\nx-request-id: req_"));
                assert_true(client_has(&client, "\r\nrequest-id: req_"));
                assert_true(client_has(&client, "\r\nVary: Origin\r\n"));
                assert_false(client_has(&client, "Connection"));
                client_forget(&client);
        }
        assert_int_equal(rig_counts(rig).connections, 1);
        assert_int_equal(rig_counts(rig).requests, 3);
        client_close(&client);
}

static void answers_pipelined_requests_in_order(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\none"
                             "GET /stream HTTP/1.1\r\n" H "\r\n"
                             "POST /echo HTTP/1.1\r\n" H
                             "Transfer-Encoding: chunked\r\n\r\n5\r\nthree\r\n0\r\n\r\n"
                             "GET /else HTTP/1.1\r\n" H "\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        rig_turns(rig, 5);
        assert_int_equal(rig->headers, 2); /* one exchange at a time */
        http_write(rig->held[0], "two", 3);
        http_finish(rig->held[0]);
        client_until(&client, "404 Not Found");
        assert_true(strstr(client.got, "one") < strstr(client.got, "two"));
        assert_true(strstr(client.got, "two") < strstr(client.got, "three"));
        client_close(&client);
}

/* Far more than the kernel holds for a connection: the server must not read it while it streams. */
static void leaves_what_a_client_sends_ahead_to_the_kernel(void **state)
{
        struct rig *rig = *state;
        struct client client;
        char request[] = "GET /echo HTTP/1.1\r\n" H "\r\n";
        ssize_t n = 0, total = 0;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /stream HTTP/1.1\r\n" H "\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        for (uint32_t full = 0; full<20; full = n> 0 ? 0 : full + 1) {
                n = send(client.fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
                total += n > 0 ? n : 0;
                if (n < 0)
                        rig_turns(rig, 1);
                assert_true(total < 64 << 20);
        }
        assert_int_equal(rig->headers, 1);
        client_close(&client);
        rig_until_count(rig, &rig->gone, 1); /* though all of that is unread */
}

static void streams_in_chunks(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /stream HTTP/1.1\r\n" H "\r\n");
        client_until(&client, "\r\n\r\n"); /* the head comes before any data */
        assert_true(client_has(&client, "Transfer-Encoding: chunked\r\n"));
        assert_false(client_has(&client, "Content-Length"));
        client_forget(&client);
        assert_true(http_is_streaming(rig->held[0]));
        http_write(rig->held[0], "abc", 3);
        http_write(rig->held[0], "", 0);
        http_write(rig->held[0], "0123456789abcdefX", 17);
        client_until(&client, "X\r\n");
        assert_string_equal(client.got, "3\r\nabc\r\n11\r\n0123456789abcdefX\r\n");
        client_forget(&client);
        http_finish(rig->held[0]);
        client_until(&client, "0\r\n\r\n");
        client_forget(&client);
        client_send(&client, "GET /echo HTTP/1.1\r\n" H "\r\n");
        client_until(&client, "200 OK");
        client_close(&client);
}

static void streams_to_http_1_0_until_the_end(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        http_write(rig->held[0], "abc", 3);
        http_finish(rig->held[0]);
        client_until_end(&client);
        assert_true(client_has(&client, "Connection: close\r\n"));
        assert_false(client_has(&client, "chunked"));
        assert_string_equal(client.got + client.count - 7, "\r\n\r\nabc");
        client_close(&client);
}

static void a_cut_stream_has_no_proper_end(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /stream HTTP/1.1\r\n" H "\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        http_write(rig->held[0], "abc", 3);
        http_cut(rig->held[0]);
        client_until_end(&client);
        assert_true(client_has(&client, "3\r\nabc\r\n"));
        assert_false(client_has(&client, "0\r\n\r\n"));
        client_close(&client);
        rig_turns(rig, 5);
        assert_int_equal(rig->gone, 0);
}

static void head_has_no_body_and_tells_its_length(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "HEAD /now HTTP/1.1\r\n" H "\r\n");
        client_until(&client, "\r\n\r\n");
        assert_true(client_has(&client, "Content-Length: 3\r\n"));
        client_forget(&client);
        client_send(&client, "HEAD /stream HTTP/1.1\r\n" H "\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        http_write(rig->held[0], "xyz", 3);
        http_finish(rig->held[0]);
        client_send(&client, "HEAD /echo HTTP/1.1\r\n" H "\r\n"
                             "HEAD / HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n");
        client_until_end(&client);
        /* Ids in headers are hexadecimal. */
        assert_false(client_has(&client, "xyz"));
        assert_int_equal(client_count(&client, "HTTP/1.1 "), 3);
        assert_int_equal(client_count(&client, "HTTP/1.1 403 "), 1);
        assert_string_equal(client.got + client.count - 4, "\r\n\r\n");
        client_close(&client);
}

static void obeys_connection_close(void **state)
{
        static const char *const requests[] = {
                "GET /echo HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
                "GET /echo HTTP/1.0\r\n\r\n",
        };
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        for (uint32_t i = 0; i < 2; i++) {
                client_connect(rig, &client);
                client_send(&client, requests[i]);
                client_until_end(&client);
                assert_true(client_has(&client, "Connection: close\r\n"));
                client_close(&client);
        }
        client_connect(rig, &client);
        client_send(&client, "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        client_until(&client, "Connection: keep-alive\r\n");
        client_send(&client, "GET /now HTTP/1.0\r\n\r\n");
        client_until_end(&client);
        assert_true(client_has(&client, "now"));
        client_close(&client);
}

static void asks_for_a_body_that_the_client_holds_back(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "POST /echo HTTP/1.1\r\n" H
                             "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
        client_until(&client, "HTTP/1.1 100 Continue\r\n\r\n");
        client_send(&client, "abc");
        client_until(&client, "\r\n\r\nabc");
        client_forget(&client);
        /* None is asked for if it is there, or if there is none. */
        client_send(&client, "POST /echo HTTP/1.1\r\n" H
                             "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"
                             "POST /now HTTP/1.1\r\n" H "Expect: 100-continue\r\n\r\n");
        client_until(&client, "now");
        assert_false(client_has(&client, "100 Continue"));
        client_close(&client);
        client_ask(rig,
                   "POST /echo HTTP/1.1\r\n" H
                   "Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n",
                   "HTTP/1.1 413 ");
        client_ask(rig, "POST /echo HTTP/1.1\r\n" H "Expect: foo\r\nContent-Length: 3\r\n\r\nabc",
                   "HTTP/1.1 417 ");
}

/* The client sends all of it before it reads, so a reset would erase the answer. */
static void delivers_a_refusal_though_the_body_goes_on(void **state)
{
        struct rig *rig = *state;
        struct client client;
        static char bytes[65536];

        rig->conf.body_max = 1000;
        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "POST /echo HTTP/1.1\r\n" H "Content-Length: 30000000\r\n\r\n");
        client.paused = true;
        for (uint32_t i = 0; i < 30000000 / sizeof(bytes); i++)
                client_send_bytes(&client, bytes, sizeof(bytes));
        client.paused = false;
        client_until_end(&client);
        assert_memory_equal(client.got, "HTTP/1.1 413 Content Too Large\r\n", 32);
        assert_true(client_has(&client, "body_too_large the body has more than 1000 bytes"));
        assert_true(client_has(&client, "Connection: close\r\n"));
        assert_int_equal(rig->requests, 0);
        assert_int_equal(rig_counts(rig).refusals[HTTP_BODY_TOO_LARGE], 1);
        client_close(&client);
}

static void a_handler_may_set_the_limit_of_a_body(void **state)
{
        struct rig *rig = *state;

        rig_start(rig);
        client_ask(rig, "POST /small HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\n0123456789",
                   "HTTP/1.1 200 ");
        client_ask(rig, "POST /small HTTP/1.1\r\n" H "Content-Length: 11\r\n\r\n", "HTTP/1.1 413 ");
        client_ask(rig,
                   "POST /small HTTP/1.1\r\n" H
                   "Transfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n5\r\n",
                   "HTTP/1.1 413 ");
        assert_int_equal(rig->gone, 2);
}

static void an_answer_to_the_headers_ends_the_connection_if_there_is_a_body(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /now HTTP/1.1\r\n" H "\r\n");
        client_until(&client, "now");
        client_forget(&client);
        client_send(&client, "POST /now HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\n");
        client_until_end(&client);
        assert_true(client_has(&client, "Connection: close\r\n"));
        assert_int_equal(rig->requests, 0);
        client_close(&client);
}

static void spools_bodies_to_a_file(void **state)
{
        struct rig *rig = *state;

        rig->conf.bodies_max = 0;
        rig_start(rig);
        client_ask(rig, "POST /spool HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
                   "HTTP/1.1 200 ");
        client_ask(rig, "POST /spool HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 200 ");
        client_ask(rig, "POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
                   "HTTP/1.1 503 ");
        assert_int_equal(rig_counts(rig).body_bytes, 0);
}

static void refuses_a_body_that_it_cannot_spool(void **state)
{
        struct rig *rig = *state;

        rig->conf.spool = "/nonexistent";
        rig_start(rig);
        client_ask(rig, "POST /spool HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
                   "HTTP/1.1 503 ");
        assert_int_equal(rig->gone, 1);
}

static void counts_the_bodies_that_are_in_memory(void **state)
{
        struct rig *rig = *state;
        struct client client, other;

        rig->conf.bodies_max = 5;
        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "POST /hold HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc");
        rig_until_count(rig, &rig->held_count, 1);
        assert_int_equal(rig_counts(rig).body_bytes, 3);
        client_ask(rig, "POST /hold HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
                   "HTTP/1.1 503 ");
        http_drop_body(rig->held[0]);
        assert_int_equal(rig_counts(rig).body_bytes, 0);
        client_connect(rig, &other);
        client_send(&other, "POST /hold HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc");
        rig_until_count(rig, &rig->held_count, 2);
        client_close(&other);
        rig_until_count(rig, &rig->gone, 2);
        assert_int_equal(rig_counts(rig).body_bytes, 0);
        client_close(&client);
}

/* In each state: what was sent before the client leaves, and whether the program knew of it. */
static void notices_in_each_state_that_the_client_leaves(void **state)
{
        static const struct {
                const char *sent;
                uint32_t headers, requests, gone;
        } cases[] = {
                { "", 0, 0, 0 },
                { "GET /hold HTT", 0, 0, 0 },
                { "POST /hold HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nab", 1, 0, 1 },
                { "GET /hold HTTP/1.1\r\n" H "\r\n", 1, 1, 1 },
                { "GET /stream HTTP/1.1\r\n" H "\r\n", 1, 1, 1 },
                { "GET /hold HTTP/1.1\r\n" H "\r\nGET /hold HTTP/1.1\r\n" H "\r\n", 1, 1, 1 },
        };
        struct rig *rig = *state;

        rig_start(rig);
        for (uint32_t i = 0; i < 3 * sizeof(cases) / sizeof(*cases); i++) {
                uint32_t c = i / 3, how = i % 3;
                struct linger reset = { .l_onoff = 1 };
                struct client client;

                rig->headers = rig->requests = rig->gone = 0;
                client_connect(rig, &client);
                client_send(&client, cases[c].sent);
                rig_until_open(rig, 1);
                rig_until_count(rig, &rig->headers, cases[c].headers);
                rig_until_count(rig, &rig->requests, cases[c].requests);
                assert_int_equal(rig->gone, 0);
                if (how == 0)
                        client_half_close(&client);
                if (how == 1)
                        setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
                if (how != 0)
                        client_close(&client);
                rig_until_open(rig, 0);
                assert_int_equal(rig->gone, cases[c].gone);
                assert_int_equal(rig->headers, cases[c].headers);
                assert_int_equal(rig->requests, cases[c].requests);
                if (how == 0)
                        client_close(&client);
        }
        for (uint32_t i = 0; i < rig->held_count; i++)
                assert_null(rig->held[i]);
}

static void a_client_that_ends_its_half_gets_an_answer_that_is_ready(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /now HTTP/1.1\r\n" H "\r\n");
        client_half_close(&client);
        client_until_end(&client);
        assert_true(client_has(&client, "now"));
        client_close(&client);
}

static void tells_when_a_slow_reader_has_caught_up(void **state)
{
        struct rig *rig = *state;
        struct client client;
        static char bytes[1 << 20];

        rig_start(rig);
        client_connect(rig, &client);
        client.paused = true;
        client_send(&client, "GET /stream HTTP/1.1\r\n" H "\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        memset(bytes, 'x', sizeof(bytes));
        for (uint32_t i = 0; i < 16; i++)
                http_write(rig->held[0], bytes, sizeof(bytes));
        assert_true(http_queued(rig->held[0]) > HTTP_QUEUE_HIGH);
        rig_turns(rig, 5);
        assert_true(http_queued(rig->held[0]) > HTTP_QUEUE_LOW);
        assert_true(rig_counts(rig).queued_bytes > HTTP_QUEUE_LOW);
        assert_int_equal(rig->drained, 0);
        http_write(rig->held[0], "end", 3);
        client.paused = false;
        client_until(&client, "end");
        rig_until_count(rig, &rig->drained, 1);
        assert_int_equal(http_queued(rig->held[0]), 0);
        /* What goes out at once is told, too: the program may have stopped at it. */
        http_write(rig->held[0], bytes, HTTP_QUEUE_LOW + 1);
        client_forget(&client);
        client_until(&client, "xx\r\n");
        rig_until_count(rig, &rig->drained, 2);
        client_close(&client);
        rig_until_count(rig, &rig->gone, 1);
}

static void ends_connections_that_are_idle(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig->conf.idle_ms = SOON_MS;
        rig_start(rig);
        client_connect(rig, &client);
        client_until_end(&client);
        assert_int_equal(client.count, 0);
        client_close(&client);
        client_connect(rig, &client);
        client_send(&client, "GET /now HTTP/1.1\r\n" H "\r\n");
        client_until_end(&client);
        assert_true(client_has(&client, "now"));
        client_close(&client);
}

static bool send_one(struct rig *rig, void *arg)
{
        struct client *client = arg;
        char byte;

        (void)rig;
        (void)send(client->fd, "a", 1, MSG_NOSIGNAL);
        if (recv(client->fd, &byte, 1, MSG_PEEK) <= 0)
                return false;
        return true;
}

/* A byte now and then does not move the deadline. */
static void the_headers_must_come_in_time_as_a_whole(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig->conf.head_ms = SOON_MS;
        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /");
        rig_until(rig, send_one, &client);
        client_until_end(&client);
        assert_memory_equal(client.got, "HTTP/1.1 408 Request Timeout\r\n", 30);
        assert_true(client_has(&client, "too_slow the headers did not come within 30 ms"));
        client_close(&client);
        assert_int_equal(rig->headers, 0);
}

static void the_body_must_come_in_time_as_a_whole(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig->conf.body_ms = SOON_MS;
        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "POST /echo HTTP/1.1\r\n" H "Content-Length: 65535\r\n\r\n");
        rig_until(rig, send_one, &client);
        client_until_end(&client);
        assert_memory_equal(client.got, "HTTP/1.1 408 Request Timeout\r\n", 30);
        client_close(&client);
        assert_int_equal(rig->headers, 1);
        assert_int_equal(rig->gone, 1);
        assert_int_equal(rig->requests, 0);
}

static void a_body_has_more_time_for_what_has_come(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig->conf.body_ms = SOON_MS;
        rig->conf.body_rate = 1; /* each byte is worth a second */
        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "POST /echo HTTP/1.1\r\n" H "Content-Length: 65535\r\n\r\n"
                             "0123456789012345678901234567890123456789012345678901234567890123");
        rig_turns(rig, 2 * SOON_MS);
        assert_int_equal(rig->gone, 0);
        client_close(&client);
        rig_until_count(rig, &rig->gone, 1);
}

static void a_reader_without_progress_counts_as_gone(void **state)
{
        struct rig *rig = *state;
        struct client client;
        static char bytes[1 << 20];

        rig->conf.write_ms = SOON_MS;
        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /stream HTTP/1.1\r\n" H "\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        rig_turns(rig, 2 * SOON_MS); /* a silent stream has no deadline */
        assert_int_equal(rig->gone, 0);
        for (uint32_t i = 0; i < 16; i++)
                http_write(rig->held[0], bytes, sizeof(bytes));
        rig_until_count(rig, &rig->gone, 1);
        client_close(&client);
}

static void a_client_that_goes_on_sending_is_cut_off(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig->conf.linger_ms = SOON_MS;
        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /now HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
        client_until_end(&client);
        rig_until_open(rig, 0);
        client_close(&client);
}

static void tells_clients_that_all_connections_are_taken(void **state)
{
        struct rig *rig = *state;
        struct client clients[3], other;

        rig->conf.connections_max = 3;
        rig_start(rig);
        for (uint32_t i = 0; i < 3; i++) {
                client_connect(rig, &clients[i]);
                client_send(&clients[i], "GET /hold HTTP/1.1\r\n" H "\r\n");
                rig_until_count(rig, &rig->held_count, i + 1);
        }
        client_connect(rig, &other);
        client_send(&other, "GET /now HTTP/1.1\r\n" H "\r\n");
        client_until_end(&other);
        assert_memory_equal(other.got, "HTTP/1.1 503 ", 13);
        assert_true(client_has(&other, "\r\nRetry-After: 1\r\n"));
        assert_true(client_has(&other, "too_many all 3 connections are taken"));
        client_close(&other);
        client_close(&clients[1]);
        rig_until_count(rig, &rig->gone, 1);
        client_ask(rig, "GET /now HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 200 ");
        client_close(&clients[0]);
        client_close(&clients[2]);
}

static void an_idle_connection_makes_place_for_a_new_one(void **state)
{
        struct rig *rig = *state;
        struct client idle[3], other;

        rig->conf.connections_max = 3;
        rig_start(rig);
        for (uint32_t i = 0; i < 3; i++) {
                client_connect(rig, &idle[i]);
                client_send(&idle[i], "GET /now HTTP/1.1\r\n" H "\r\n");
                client_until(&idle[i], "now");
        }
        client_forget(&idle[0]);
        client_send(&idle[0], "GET /now HTTP/1.1\r\n" H "\r\n"); /* now 1 is the oldest */
        client_until(&idle[0], "now");
        client_connect(rig, &other);
        client_send(&other, "GET /now HTTP/1.1\r\n" H "\r\n");
        client_until(&other, "now");
        client_until_end(&idle[1]);
        rig_until_open(rig, 3);
        client_forget(&idle[2]);
        client_send(&idle[2], "GET /now HTTP/1.1\r\n" H "\r\n");
        client_until(&idle[2], "now");
        for (uint32_t i = 0; i < 3; i++)
                client_close(&idle[i]);
        client_close(&other);
}

/* It was answered, and only its client has not closed yet. */
static void a_connection_that_lingers_has_no_place(void **state)
{
        struct rig *rig = *state;
        struct client lingers, client;

        rig->conf.connections_max = 1;
        rig_start(rig);
        client_connect(rig, &lingers);
        client_send(&lingers, "GET /now HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
        client_until_end(&lingers);
        client_connect(rig, &client);
        client_send(&client, "GET /hold HTTP/1.1\r\n" H "\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        assert_int_equal(rig_counts(rig).connections_open, 2);
        client_close(&lingers);
        rig_until_open(rig, 1);
        client_ask(rig, "GET /now HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 503 ");
        client_close(&client);
}

static bool is_idle(struct rig *rig, void *arg)
{
        (void)arg;
        return rig->idle;
}

static void ends_running_exchanges_before_it_stops(void **state)
{
        struct rig *rig = *state;
        struct client idle, head, running, body;

        rig_start(rig);
        client_connect(rig, &idle);
        client_connect(rig, &head);
        client_connect(rig, &running);
        client_connect(rig, &body);
        client_send(&head, "GET /now HT");
        client_send(&running, "GET /stream HTTP/1.1\r\n" H "\r\nGET /now HTTP/1.1\r\n" H "\r\n");
        client_send(&body, "POST /echo HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nab");
        rig_until_count(rig, &rig->headers, 2);
        rig_until_open(rig, 4);
        http_server_stop(rig->server);
        client_until_end(&idle);
        client_until_end(&head);
        assert_false(http_server_is_idle(rig->server));
        client_send(&body, "c");
        client_until_end(&body);
        assert_true(client_has(&body, "Connection: close\r\n"));
        assert_true(client_has(&body, "\r\n\r\nabc"));
        http_write(rig->held[0], "more", 4);
        http_finish(rig->held[0]);
        client_until_end(&running);
        assert_true(client_has(&running, "4\r\nmore\r\n0\r\n\r\n"));
        assert_int_equal(client_count(&running, "HTTP/1.1"), 1);
        assert_false(rig->idle);
        client_close(&idle);
        client_close(&head);
        client_close(&body);
        client_close(&running);
        rig_until(rig, is_idle, NULL);
        assert_true(http_server_is_idle(rig->server));
        assert_int_equal(rig->gone, 0);
}

static void tells_the_program_of_exchanges_that_run_when_it_is_freed(void **state)
{
        struct rig *rig = *state;
        struct client client;

        rig_start(rig);
        client_connect(rig, &client);
        client_send(&client, "GET /hold HTTP/1.1\r\n" H "\r\n");
        rig_until_count(rig, &rig->held_count, 1);
        rig->server = http_server_free(rig->server);
        assert_int_equal(rig->gone, 1);
        client_close(&client);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(answers_several_requests_on_one_connection),
                TEST(answers_pipelined_requests_in_order),
                TEST(leaves_what_a_client_sends_ahead_to_the_kernel),
                TEST(streams_in_chunks),
                TEST(streams_to_http_1_0_until_the_end),
                TEST(a_cut_stream_has_no_proper_end),
                TEST(head_has_no_body_and_tells_its_length),
                TEST(obeys_connection_close),
                TEST(asks_for_a_body_that_the_client_holds_back),
                TEST(delivers_a_refusal_though_the_body_goes_on),
                TEST(a_handler_may_set_the_limit_of_a_body),
                TEST(an_answer_to_the_headers_ends_the_connection_if_there_is_a_body),
                TEST(spools_bodies_to_a_file),
                TEST(refuses_a_body_that_it_cannot_spool),
                TEST(counts_the_bodies_that_are_in_memory),
                TEST(notices_in_each_state_that_the_client_leaves),
                TEST(a_client_that_ends_its_half_gets_an_answer_that_is_ready),
                TEST(tells_when_a_slow_reader_has_caught_up),
                TEST(ends_connections_that_are_idle),
                TEST(the_headers_must_come_in_time_as_a_whole),
                TEST(the_body_must_come_in_time_as_a_whole),
                TEST(a_body_has_more_time_for_what_has_come),
                TEST(a_reader_without_progress_counts_as_gone),
                TEST(a_client_that_goes_on_sending_is_cut_off),
                TEST(tells_clients_that_all_connections_are_taken),
                TEST(an_idle_connection_makes_place_for_a_new_one),
                TEST(a_connection_that_lingers_has_no_place),
                TEST(ends_running_exchanges_before_it_stops),
                TEST(tells_the_program_of_exchanges_that_run_when_it_is_freed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
