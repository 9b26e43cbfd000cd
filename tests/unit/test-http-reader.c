/*
 * The reader of HTTP requests: which bytes are requests, and which are refused.
 *
 * Each case is read in one piece, cut in two at every byte, and byte by byte.  The outcome must be
 * the same.  It is written as text: a line for each request, "METHOD PATH BODY", then the refusal,
 * or "more" if the reader waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bridge/http/authority.h"
#include "bridge/http/reader.h"

#define BODY_LIMIT 65536u

struct outcome {
        char text[4096];
        size_t count;
        bool ended; /* refused */
};

static const char *const method_names[HTTP_METHODS] = { "GET",   "HEAD",   "POST",   "PUT",
                                                        "PATCH", "DELETE", "OPTIONS" };

static void note(struct outcome *outcome, const char *format, ...)
{
        va_list values;

        va_start(values, format);
        outcome->count += (size_t)vsnprintf(outcome->text + outcome->count,
                                            sizeof(outcome->text) - outcome->count, format, values);
        va_end(values);
        assert_true(outcome->count < sizeof(outcome->text));
}

/* Bodies that are longer are written as their length. */
static void note_body(struct outcome *outcome, const char *body, size_t bytes)
{
        if (outcome->count + bytes < sizeof(outcome->text) - 256)
                note(outcome, "%.*s", (int)bytes, body);
}

static void feed(struct http_reader *reader, struct outcome *outcome, const char *at, size_t count)
{
        const char *body;
        size_t bytes;
        int event = HTTP_READER_HEAD;

        while (event != HTTP_READER_MORE && !outcome->ended) {
                event = http_reader_next(reader, &at, &count, &body, &bytes);
                switch (event) {
                case HTTP_READER_HEAD:
                        note(outcome, "%s %s ", method_names[reader->method],
                             http_reader_path(reader));
                        break;
                case HTTP_READER_BODY:
                        note_body(outcome, body, bytes);
                        break;
                case HTTP_READER_END:
                        note(outcome, "\n");
                        http_reader_reset(reader, BODY_LIMIT);
                        break;
                case HTTP_READER_BAD:
                        note(outcome, "%u %s", reader->problem.status,
                             http_refusal_name(reader->problem.refusal));
                        assert_true(reader->problem.message[0]);
                        outcome->ended = true;
                        break;
                default:
                        assert_int_equal(event, HTTP_READER_MORE);
                        assert_int_equal(count, 0);
                }
        }
}

/* Pieces of [0, first) and then `step` bytes each. */
static void read_cut(struct outcome *outcome, const char *input, size_t bytes, size_t first,
                     size_t step)
{
        struct http_reader reader;

        *outcome = (struct outcome){ 0 };
        http_reader_init(&reader, BODY_LIMIT);
        for (size_t at = 0, piece = first; at < bytes && !outcome->ended;
             at += piece, piece = step) {
                /* A copy of its own, so that a sanitizer sees reads beyond the piece. */
                char *copy;

                piece = piece < bytes - at ? piece : bytes - at;
                copy = malloc(piece + !piece);
                memcpy(copy, input + at, piece);
                feed(&reader, outcome, copy, piece);
                free(copy);
                if (!piece)
                        piece = 0;
        }
        if (!outcome->ended && http_reader_has_begun(&reader))
                note(outcome, "more");
        http_reader_reset(&reader, 0);
}

static void check(const char *input, size_t bytes, const char *expected)
{
        struct outcome outcome;

        read_cut(&outcome, input, bytes, bytes, bytes);
        if (strcmp(outcome.text, expected))
                print_error("case: %.200s\n", input);
        assert_string_equal(outcome.text, expected);
        read_cut(&outcome, input, bytes, 1, 1);
        assert_string_equal(outcome.text, expected);
        for (size_t cut = 1; cut < bytes && cut < 2048; cut++) {
                read_cut(&outcome, input, bytes, cut, bytes);
                assert_string_equal(outcome.text, expected);
        }
}

struct row {
        const char *input;
        size_t bytes;
        const char *expected;
};
#define ROW(input, expected)                                                                       \
        {                                                                                          \
                input, sizeof(input) - 1, expected                                                 \
        }
#define H               "Host: h\r\n"
#define POST(headers)   "POST /e HTTP/1.1\r\n" H headers "\r\n"
#define GET(headers)    "GET /e HTTP/1.1\r\n" H headers "\r\n"
#define CHUNKED(chunks) POST("Transfer-Encoding: chunked\r\n") chunks
#define BAD             "400 bad_request"

static void check_all(const struct row *rows, size_t count)
{
        for (size_t i = 0; i < count; i++)
                check(rows[i].input, rows[i].bytes, rows[i].expected);
}
#define CHECK_ALL(rows) check_all(rows, sizeof(rows) / sizeof(*(rows)))

static void reads_requests_with_and_without_bodies(void **state)
{
        static const struct row rows[] = {
                ROW(GET(""), "GET /e \n"),
                ROW("GET /e HTTP/1.0\r\n\r\n", "GET /e \n"),
                ROW("HEAD / HTTP/1.1\r\n" H "\r\n", "HEAD / \n"),
                ROW(POST("Content-Length: 3\r\n") "abc", "POST /e abc\n"),
                ROW(POST("Content-Length: 003\r\n") "abc", "POST /e abc\n"),
                ROW(POST("content-length:3\r\n") "abc", "POST /e abc\n"),
                ROW(POST("Content-Length: \t 3 \t\r\n") "abc", "POST /e abc\n"),
                ROW(POST("Content-Length: 0\r\n"), "POST /e \n"),
                ROW(POST(""), "POST /e \n"),
                ROW(GET("Content-Length: 3\r\n") "abc", "GET /e abc\n"),
                ROW(CHUNKED("3\r\nabc\r\n0\r\n\r\n"), "POST /e abc\n"),
                ROW(CHUNKED("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "POST /e abcde\n"),
                ROW(CHUNKED("00000000000000a\r\n0123456789\r\n000\r\n\r\n"),
                    "POST /e 0123456789\n"),
                ROW(CHUNKED("A\r\n0123456789\r\n0\r\n\r\n"), "POST /e 0123456789\n"),
                ROW(POST("Transfer-Encoding:\tchunked\r\n") "3\r\nabc\r\n0\r\n\r\n",
                    "POST /e abc\n"),
                ROW(POST("Transfer-Encoding: CHUNKED\r\n") "3\r\nabc\r\n0\r\n\r\n",
                    "POST /e abc\n"),
                ROW(POST("Content-Length: 3\r\n") "ab", "POST /e abmore"),
                ROW("GET /e HTTP/1.1\r\nHos", "more"),
        };

        (void)state;
        CHECK_ALL(rows);
}

static void refuses_every_doubt_about_the_length_of_a_body(void **state)
{
        static const struct row rows[] = {
                ROW(POST("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n", BAD),
                ROW(POST("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n") "0\r\n\r\n", BAD),
                ROW(POST("Content-Length: 4\r\nTransfer-Encoding: gzip, chunked\r\n"), BAD),
                ROW(POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), BAD),
                ROW(POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), BAD),
                ROW(POST("Transfer-Encoding: xchunked\r\n") "0\r\n\r\n", BAD),
                ROW(POST("Transfer-Encoding: gzip, chunked\r\n") "0\r\n\r\n", BAD),
                ROW(POST("Transfer-Encoding: chunked, chunked\r\n") "0\r\n\r\n", BAD),
                ROW(POST("Transfer-Encoding: chunked;q=1\r\n") "0\r\n\r\n", BAD),
                ROW(POST("Transfer-Encoding: \"chunked\"\r\n") "0\r\n\r\n", BAD),
                ROW(POST("Transfer-Encoding: \r\n") "0\r\n\r\n", BAD),
                ROW(POST("Transfer-Encoding: identity\r\n") "abc", BAD),
                ROW(POST("Transfer-Encoding: \vchunked\r\n") "0\r\n\r\n", BAD),
                ROW("POST /e HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
                ROW(POST("Content-Length: 3\r\nContent-Length: 5\r\n") "abcde", BAD),
                ROW(POST("Content-Length: 3\r\nContent-Length: 3\r\n") "abc", BAD),
                ROW(POST("Content-Length: 3, 3\r\n") "abc", BAD),
                ROW(POST("Content-Length: +3\r\n") "abc", BAD),
                ROW(POST("Content-Length: -1\r\n") "abc", BAD),
                ROW(POST("Content-Length: 0x3\r\n") "abc", BAD),
                ROW(POST("Content-Length: 3 4\r\n") "abc", BAD),
                ROW(POST("Content-Length: 3.0\r\n") "abc", BAD),
                ROW(POST("Content-Length: 3;\r\n") "abc", BAD),
                ROW(POST("Content-Length:\r\n") "abc", BAD),
                ROW(POST("Content-Length: \r\n") "abc", BAD),
                ROW(POST("Content-Length: 18446744073709551619\r\n") "abc", BAD),
                ROW(POST("Content-Length: 00000000000000000003\r\n") "abc", BAD),
                ROW(POST("Content-Length : 3\r\n") "abc", BAD),
                ROW(POST("Content-Length\t: 3\r\n") "abc", BAD),
        };

        (void)state;
        CHECK_ALL(rows);
}

static void refuses_damaged_headers(void **state)
{
        static const struct row rows[] = {
                ROW(GET("X-A: one\r\n two\r\n"), BAD),
                ROW(GET("X-A: one\r\n\ttwo\r\n"), BAD),
                ROW("GET /e HTTP/1.1\r\n X-A: 1\r\n" H "\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\n\tHost: h\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\nHost: h\n\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: h\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: h\r\n\n", BAD),
                ROW(GET("X-A: a\rX-B: b\r\n"), BAD),
                ROW(GET("X-A: a\r\r\n"), BAD),
                ROW(GET("X-A: a\0b\r\n"), BAD),
                ROW(GET("X-A: a\x01"
                        "b\r\n"),
                    BAD),
                ROW(GET("X-A: a\x7f"
                        "b\r\n"),
                    BAD),
                ROW(GET("X-\0A: b\r\n"), BAD),
                ROW(GET("X\x80: b\r\n"), BAD),
                ROW(GET("X A: b\r\n"), BAD),
                ROW(GET("X(A): b\r\n"), BAD),
                ROW(GET("foo\r\n"), BAD),
                ROW(GET(": v\r\n"), BAD),
        };
        static const struct row good[] = {
                ROW(GET("X-A: \xc3\xa4 \t x\r\n"), "GET /e \n"),
                ROW(GET("X-A:\r\n"), "GET /e \n"),
                ROW(GET("X-A: a:b\r\n"), "GET /e \n"),
                ROW(GET("!#$%&'*+-.^_`|~09: x\r\n"), "GET /e \n"),
        };

        (void)state;
        CHECK_ALL(rows);
        CHECK_ALL(good);
}

static void refuses_damaged_chunks(void **state)
{
        static const struct row rows[] = {
                ROW(CHUNKED("+3\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("-3\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("0x3\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("3x\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED(" 3\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("3 \r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED(";a\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("3\nabc\n0\n\n"), "POST /e " BAD),
                ROW(CHUNKED("3;a\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("3;a\rb\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("3;a\0b\r\nabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("3\rabc\r\n0\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("3\r\nabcXX0\r\n\r\n"), "POST /e abc" BAD),
                ROW(CHUNKED("3\r\nabc\n0\r\n\r\n"), "POST /e abc" BAD),
                ROW(CHUNKED("3\r\nabcd\r\n0\r\n\r\n"), "POST /e abc" BAD),
                ROW(CHUNKED("3\r\nabc\r\n0\r\nX-T\r\n\r\n"), "POST /e abc" BAD),
                ROW(CHUNKED("3\r\nabc\r\n0\r\n X-T: 1\r\n\r\n"), "POST /e abc" BAD),
                ROW(CHUNKED("3\r\nabc\r\n0\r\nX-T : 1\r\n\r\n"), "POST /e abc" BAD),
                ROW(CHUNKED("3\r\nabc\r\n0\r\n: 1\r\n\r\n"), "POST /e abc" BAD),
                ROW(CHUNKED("3\r\nabc\r\n0\r\nX-T: 1\n\r\n"), "POST /e abc" BAD),
                ROW(CHUNKED("0\r\nContent-Length: 3\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("0\r\nX: 1\r\ntransfer-ENCODING: chunked\r\n\r\n"), "POST /e " BAD),
                ROW(CHUNKED("3\r\nabc\r\n0\r\nX-T: 1\r\n\n"), "POST /e abc" BAD),
                ROW(CHUNKED("ffffffffffffffff\r\nabc\r\n0\r\n\r\n"), "POST /e 413 body_too_large"),
                ROW(CHUNKED("fffffffffffffffff\r\nabc\r\n0\r\n\r\n"), "POST /e 413 body_too_large"),
                ROW(CHUNKED("00000000000000003\r\nabc\r\n0\r\n\r\n"), "POST /e 413 body_too_large"),
        };
        static const struct row good[] = {
                ROW(CHUNKED("3;a=b\r\nabc\r\n0;x\r\n\r\n"), "POST /e abc\n"),
                ROW(CHUNKED("3;\r\nabc\r\n0\r\n\r\n"), "POST /e abc\n"),
                ROW(CHUNKED("3\r\nabc\r\n0\r\nX-T: 1\r\nHost: evil\r\n\r\n"), "POST /e abc\n"),
                ROW(CHUNKED("0\r\nContent-Length-X: 3\r\nTransfer-Encodings: x\r\n\r\n"),
                    "POST /e \n"),
                ROW(CHUNKED("3\r\nabc\r\n0\r\nX-T:\r\n\r\n") GET(""), "POST /e abc\nGET /e \n"),
        };

        (void)state;
        CHECK_ALL(rows);
        CHECK_ALL(good);
}

static void refuses_a_request_without_one_host(void **state)
{
        static const struct row rows[] = {
                ROW("GET /e HTTP/1.1\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: h\r\nhOST: h\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost:\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: a b\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: a,b\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: user@h\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: h/x\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: h:\r\n\r\n", "GET /e \n"),
                ROW("GET /e HTTP/1.1\r\nHost: h:80x\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: h:65536\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: [::1\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: [::1]x\r\n\r\n", BAD),
                ROW("GET /e HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET /e \n"),
                ROW("GET /e HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", BAD),
                ROW("GET http://h/e HTTP/1.1\r\nHost: h\r\n\r\n", "GET /e \n"),
                ROW("GET http://H:80/e HTTP/1.1\r\nHost: h\r\n\r\n", "GET /e \n"),
                ROW("GET HTTP://h HTTP/1.1\r\nHost: h\r\n\r\n", "GET / \n"),
                ROW("GET https://h?a=b HTTP/1.1\r\nHost: h\r\n\r\n", "GET / \n"),
                ROW("GET http://evil.example/e HTTP/1.1\r\nHost: localhost\r\n\r\n", BAD),
                ROW("GET http://h:81/e HTTP/1.1\r\nHost: h\r\n\r\n", BAD),
                ROW("GET http://a@h/e HTTP/1.1\r\nHost: h\r\n\r\n", BAD),
                ROW("GET http:///e HTTP/1.1\r\nHost: h\r\n\r\n", BAD),
                ROW("GET ftp://h/e HTTP/1.1\r\nHost: h\r\n\r\n", BAD),
                ROW("GET //evil/e HTTP/1.1\r\nHost: h\r\n\r\n", "GET //evil/e \n"),
        };

        (void)state;
        CHECK_ALL(rows);
}

static void refuses_damaged_request_lines(void **state)
{
        static const struct row rows[] = {
                ROW("GET /e HTTP/1.9\r\n" H "\r\n", "505 bad_version"),
                ROW("GET /e HTTP/3.1\r\n" H "\r\n", "505 bad_version"),
                ROW("GET /e HTTP/0.9\r\n" H "\r\n", "505 bad_version"),
                ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 bad_version"),
                ROW("GET /e HTTP/1.10\r\n" H "\r\n", BAD),
                ROW("GET /e HTTP/1.1 \r\n" H "\r\n", BAD),
                ROW("GET /e http/1.1\r\n" H "\r\n", BAD),
                ROW("GET /e\r\n", BAD),
                ROW("GET  /e HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /e  HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET\t/e\tHTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a b HTTP/1.1\r\n" H "\r\n", BAD),
                ROW(" GET /e HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("FOO /e HTTP/1.1\r\n" H "\r\n", "501 bad_method"),
                ROW("get /e HTTP/1.1\r\n" H "\r\n", "501 bad_method"),
                ROW("CONNECT a:443 HTTP/1.1\r\n" H "\r\n", "501 bad_method"),
                ROW("G(T /e HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("OPTIONS * HTTP/1.1\r\n" H "\r\n", "OPTIONS * \n"),
                ROW("GET * HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET e HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a%00x HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a%0ax HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a%c3x HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a%4 HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a%zz HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a% HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a#b HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a\0b HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /?a=%00 HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /?a=%f HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("GET /a%c3%a4%2Fb+c?x HTTP/1.1\r\n" H "\r\n", "GET /a\xc3\xa4/b+c \n"),
                ROW("GET /../../etc/passwd HTTP/1.1\r\n" H "\r\n", "GET /../../etc/passwd \n"),
                ROW("\x16\x03\x01\x02", BAD),
                ROW("\r\n\r\nGET /e HTTP/1.1\r\n" H "\r\n", "GET /e \n"),
                ROW("\nGET /e HTTP/1.1\r\n" H "\r\n", BAD),
                ROW("\r\n\r\n\r\n\r\n\r\nGET /e HTTP/1.1\r\n" H "\r\n", BAD),
        };

        (void)state;
        CHECK_ALL(rows);
}

static void refuses_other_expectations_and_repeated_headers(void **state)
{
        static const struct row rows[] = {
                ROW(POST("Content-Length: 3\r\nExpect: 100-Continue\r\n") "abc", "POST /e abc\n"),
                ROW(POST("Content-Length: 3\r\nExpect: foo\r\n") "abc", "417 bad_expectation"),
                ROW("GET /e HTTP/1.0\r\nExpect: foo\r\n\r\n", "GET /e \n"),
                ROW(GET("Authorization: a\r\nAuthorization: b\r\n"), BAD),
                ROW(GET("Origin: http://a\r\nOrigin: http://b\r\n"), BAD),
                ROW(GET("x-api-key: a\r\nX-API-Key: a\r\n"), BAD),
                ROW(GET("Accept: a\r\nAccept: b\r\n"), "GET /e \n"),
        };

        (void)state;
        CHECK_ALL(rows);
}

static void reads_pipelined_requests_in_order(void **state)
{
        static const struct row rows[] = {
                ROW("GET /a HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n" H "\r\n",
                    "GET /a \nGET /b \n"),
                ROW("GET /e HTTP/1.1\r\n" H
                    "Content-Length: 31\r\n\r\nGET /smug HTTP/1.1\r\nHost: h\r\n\r\n",
                    "GET /e GET /smug HTTP/1.1\r\nHost: h\r\n\r\n\n"),
                ROW(POST("Content-Length: 3\r\n") "abc\r\n" GET(""), "POST /e abc\nGET /e \n"),
                ROW(CHUNKED("3\r\nabc\r\n0\r\n\r\n") CHUNKED("1\r\nx\r\n0\r\n\r\n"),
                    "POST /e abc\nPOST /e x\n"),
        };

        (void)state;
        CHECK_ALL(rows);
}

/* A text that is made of pieces. */
struct made {
        char *text;
        size_t count;
};

static void add(struct made *made, const char *text, size_t times)
{
        size_t bytes = strlen(text);

        made->text = realloc(made->text, made->count + bytes * times + 1);
        for (size_t i = 0; i < times; i++, made->count += bytes)
                memcpy(made->text + made->count, text, bytes + 1);
}

/* Checks `count` times `piece` between the two texts: in one piece, and in pieces of 1 and 7. */
static void check_long(const char *before, const char *piece, size_t count, const char *behind,
                       const char *expected)
{
        struct made made = { 0 };
        struct outcome outcome;
        static const size_t steps[] = { SIZE_MAX, 1, 7 };

        add(&made, before, 1);
        add(&made, piece, count);
        add(&made, behind, 1);
        for (size_t i = 0; i < 3; i++) {
                read_cut(&outcome, made.text, made.count, steps[i], steps[i]);
                /* "*" stands for anything before the end. */
                if (*expected == '*')
                        assert_string_equal(outcome.text + outcome.count - strlen(expected + 1),
                                            expected + 1);
                else
                        assert_string_equal(outcome.text, expected);
        }
        free(made.text);
}

static void refuses_requests_beyond_the_limits(void **state)
{
        const char *too_many = "431 headers_too_large", *too_long = "414 line_too_long";

        (void)state;
        /* "GET / HTTP/1.1" has 14 bytes besides. */
        check_long("GET /", "a", HTTP_LINE_MAX - 14, " HTTP/1.1\r\n", "more");
        check_long("GET /", "a", HTTP_LINE_MAX - 13, " HTTP/1.1\r\n", too_long);
        check_long("GET /", "a", 20000, "", too_long);
        check_long("GET /e HTTP/1.1\r\n" H, "a:b\r\n", HTTP_FIELDS_MAX - 1, "\r\n", "GET /e \n");
        check_long("GET /e HTTP/1.1\r\n" H, "a:b\r\n", HTTP_FIELDS_MAX, "\r\n", too_many);
        /* "Host: h", "X: " and the last line have 16 bytes besides. */
        check_long("GET /e HTTP/1.1\r\n" H "X: ", "a", HTTP_HEADERS_MAX - 16, "\r\n\r\n",
                   "GET /e \n");
        check_long("GET /e HTTP/1.1\r\n" H "X: ", "a", HTTP_HEADERS_MAX - 15, "\r\n\r\n", too_many);
        check_long("GET /e HTTP/1.1\r\n" H "X: ", "a", 2 * HTTP_HEADERS_MAX, "", too_many);
        check_long(CHUNKED("3\r\nabc\r\n0\r\n"), "a:b\r\n", HTTP_FIELDS_MAX, "\r\n",
                   "POST /e abc\n");
        check_long(CHUNKED("3\r\nabc\r\n0\r\n"), "a:b\r\n", HTTP_FIELDS_MAX + 1, "\r\n",
                   "POST /e abc431 headers_too_large");
        check_long(CHUNKED("3\r\nabc\r\n0\r\nX:"), "a", HTTP_TRAILERS_MAX, "\r\n\r\n",
                   "POST /e abc431 headers_too_large");
        check_long(CHUNKED("3;"), "a", HTTP_EXTENSIONS_MAX - 1, "\r\nabc\r\n0\r\n\r\n",
                   "POST /e abc\n");
        check_long(CHUNKED("3;"), "a", HTTP_EXTENSIONS_MAX, "\r\nabc\r\n0\r\n\r\n", "POST /e " BAD);
        check_long(CHUNKED(""), "1;abcdefg\r\nx\r\n", HTTP_EXTENSIONS_MAX / 8 + 1, "0\r\n\r\n",
                   "*x" BAD);
}

static void refuses_bodies_beyond_the_limit(void **state)
{
        (void)state;
        check_long(POST("Content-Length: 65537\r\n"), "a", 3, "", "POST /e 413 body_too_large");
        check_long(POST("Content-Length: 9999999999999999999\r\n"), "a", 3, "",
                   "POST /e 413 body_too_large");
        check_long(CHUNKED("10001\r\n"), "a", 3, "", "POST /e 413 body_too_large");
}

/* Reads one request and leaves the reader with its head. */
static void read_head(struct http_reader *reader, const char *input)
{
        const char *at = input, *body;
        size_t count = strlen(input), bytes;

        http_reader_init(reader, BODY_LIMIT);
        assert_int_equal(http_reader_next(reader, &at, &count, &body, &bytes), HTTP_READER_HEAD);
}

static void decodes_queries(void **state)
{
        struct http_reader reader;
        const char *value;

        (void)state;
        read_head(&reader, "GET /x?a=1&b&c=%26+%C3%A4&a=2&=z&d= HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_string_equal(http_reader_path(&reader), "/x");
        assert_true(http_reader_query(&reader, "a", &value));
        assert_string_equal(value, "1");
        assert_true(http_reader_query(&reader, "b", &value));
        assert_string_equal(value, "");
        assert_true(http_reader_query(&reader, "c", &value));
        assert_string_equal(value, "& \xc3\xa4");
        assert_true(http_reader_query(&reader, "", &value));
        assert_string_equal(value, "z");
        assert_true(http_reader_query(&reader, "d", &value));
        assert_string_equal(value, "");
        assert_false(http_reader_query(&reader, "1", &value));
        assert_false(http_reader_query(&reader, "e", &value));
        http_reader_reset(&reader, 0);
}

static void finds_headers_in_any_case(void **state)
{
        struct http_reader reader;

        (void)state;
        read_head(&reader, "GET /x HTTP/1.1\r\nHost: h\r\nX-a: \t 1 2 \t\r\nx-A: 3\r\n\r\n");
        assert_string_equal(http_reader_header(&reader, "x-a"), "1 2");
        assert_null(http_reader_header(&reader, "x"));
        http_reader_reset(&reader, 0);
}

static void keeps_a_connection_only_if_the_client_wants_it(void **state)
{
        static const struct {
                const char *input;
                bool keeps;
        } cases[] = {
                { "GET / HTTP/1.1\r\nHost: h\r\n\r\n", true },
                { "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false },
                { "GET / HTTP/1.1\r\nHost: h\r\nConnection: x,\tCLOSE ,y\r\n\r\n", false },
                { "GET / HTTP/1.1\r\nHost: h\r\nConnection: closed\r\n\r\n", true },
                { "GET / HTTP/1.1\r\nHost: h\r\nConnection: a\r\nConnection: close\r\n\r\n",
                  false },
                { "GET / HTTP/1.0\r\n\r\n", false },
                { "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true },
                { "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false },
        };
        struct http_reader reader;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                read_head(&reader, cases[i].input);
                assert_int_equal(reader.keeps_alive, cases[i].keeps);
                http_reader_reset(&reader, 0);
        }
}

static void knows_names_that_lead_to_this_machine(void **state)
{
        static const struct {
                const char *text;
                bool loopback;
        } cases[] = {
                { "localhost", true },
                { "LOCALHOST:80", true },
                { "a.localhost", true },
                { "localhost.", true },
                { "127.0.0.1:1", true },
                { "127.255.0.9", true },
                { "[::1]", true },
                { "[0:0:0:0:0:0:0:1]:5", true },
                { "localhost.evil", false },
                { "xlocalhost", false },
                { "127.0.0.1.evil", false },
                { "127.1", false },
                { "128.0.0.1", false },
                { "0.0.0.0", false },
                { "[::]", false },
                { "[::2]", false },
                { "0177.0.0.1", false },
                { "2130706433", false },
                { "[::ffff:127.0.0.1]", false },
        };
        struct http_authority authority;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                assert_true(http_authority_read(cases[i].text, strlen(cases[i].text), &authority));
                assert_int_equal(http_authority_is_loopback(&authority), cases[i].loopback);
        }
        assert_false(http_authority_read(".", 1, &authority));
        assert_false(http_authority_read(":80", 3, &authority));
        assert_false(http_authority_read("[localhost]", 11, &authority));
        assert_false(http_authority_read("h:-1", 4, &authority));
}

static void path_of_refused(const char *input, const char *path)
{
        struct http_reader reader;
        struct outcome outcome = { 0 };

        http_reader_init(&reader, BODY_LIMIT);
        feed(&reader, &outcome, input, strlen(input));
        assert_true(outcome.ended);
        assert_string_equal(http_reader_path(&reader), path);
        http_reader_reset(&reader, BODY_LIMIT);
}

static void knows_the_path_of_a_request_whose_head_is_refused(void **state)
{
        (void)state;
        path_of_refused("POST /v1/messages?beta=%00 HTTP/1.1\r\n", "/v1/messages");
        path_of_refused("POST /v1/messages HTTP/1.1\r\nHost : a\r\n", "/v1/messages");
        path_of_refused("POST http://a?b=%00 HTTP/1.1\r\n", "/");
        path_of_refused("POST /api/%00 HTTP/1.1\r\n", "/api/");
        path_of_refused("POST /api/a%fg HTTP/1.1\r\n", "/api/a");
        path_of_refused("POST /api/%ff/%fg HTTP/1.1\r\n", "/api/");
        path_of_refused("BREW /v1/messages HTTP/1.1\r\n", "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_requests_with_and_without_bodies),
                cmocka_unit_test(refuses_every_doubt_about_the_length_of_a_body),
                cmocka_unit_test(refuses_damaged_headers),
                cmocka_unit_test(refuses_damaged_chunks),
                cmocka_unit_test(refuses_a_request_without_one_host),
                cmocka_unit_test(refuses_damaged_request_lines),
                cmocka_unit_test(refuses_other_expectations_and_repeated_headers),
                cmocka_unit_test(reads_pipelined_requests_in_order),
                cmocka_unit_test(refuses_requests_beyond_the_limits),
                cmocka_unit_test(refuses_bodies_beyond_the_limit),
                cmocka_unit_test(decodes_queries),
                cmocka_unit_test(knows_the_path_of_a_request_whose_head_is_refused),
                cmocka_unit_test(finds_headers_in_any_case),
                cmocka_unit_test(keeps_a_connection_only_if_the_client_wants_it),
                cmocka_unit_test(knows_names_that_lead_to_this_machine),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
