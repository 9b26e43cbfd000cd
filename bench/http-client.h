/*
 * A client of HTTP on 127.0.0.1 that does as little as it can, so that a server is measured and not
 * its client.  It looks for the end of an answer, and does not read what is in it.
 */
#ifndef BENCH_HTTP_CLIENT_H
#define BENCH_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int http_connect(uint16_t port); /* ends the program if it cannot */

/* "POST /v1/completions"; body "": none. */
void http_send(int fd, const char *what, const char *body);
/*
 * Waits for a whole answer with a Content-Length, head and body, which is valid until the next one
 * comes; the connection stays.  NULL: it has ended.
 */
const char *http_receive(int fd);
/* All three, on a connection of its own: the status; 0: there is no server. */
unsigned http_ask(uint16_t port, const char *what, const char *body);
/* A streamed answer. */
struct http_stream {
        int fd;
        char tail[5]; /* the last bytes that have come */
        bool ended;
};

/* Waits for these words.  Sets `ended` if the end has come with them. */
void http_await(struct http_stream *stream, const char *words);
/* Reads all of them to their ends. */
void http_drain(struct http_stream *streams, uint32_t count);

#endif
