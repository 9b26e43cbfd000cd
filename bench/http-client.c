#include "bench/http-client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 65536u
#define EVENTS       64

static void fail(const char *what)
{
        perror(what);
        exit(1);
}

static int reach(uint16_t port)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), now = 1;

        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at))) {
                close(fd);
                return -1;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &now, sizeof(now));
        return fd;
}

int http_connect(uint16_t port)
{
        int fd = reach(port);

        if (fd < 0)
                fail("connect");
        return fd;
}

void http_send(int fd, const char *what, const char *body)
{
        size_t body_bytes = strlen(body), size = body_bytes + 512;
        char *text = malloc(size);
        int count;

        if (!text)
                fail("malloc");
        count = snprintf(text, size,
                         "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         what, body_bytes, body);
        for (size_t sent = 0; sent < (size_t)count;) {
                ssize_t n = send(fd, text + sent, (size_t)count - sent, MSG_NOSIGNAL);

                if (n <= 0)
                        fail("send");
                sent += (size_t)n;
        }
        free(text);
}

/* The bytes of a whole answer, if its head is there; 0: not yet. */
static size_t answer_bytes(const char *text)
{
        const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "content-length:");

        if (!end)
                return 0;
        return (size_t)(end + 4 - text) + (length ? (size_t)atoi(length + 15) : 0);
}

const char *http_receive(int fd)
{
        static char text[ANSWER_BYTES];
        size_t count = 0, want = 0;

        while (!want || count < want) {
                ssize_t n = recv(fd, text + count, sizeof(text) - 1 - count, 0);

                if (n <= 0)
                        return NULL;
                count += (size_t)n;
                text[count] = '\0';
                want = answer_bytes(text);
        }
        return text;
}

unsigned http_ask(uint16_t port, const char *what, const char *body)
{
        int fd = reach(port);
        const char *answer;
        unsigned status = 0;

        if (fd < 0)
                return 0;
        http_send(fd, what, body);
        answer = http_receive(fd);
        if (answer && sscanf(answer, "HTTP/1.1 %u", &status) != 1)
                status = 0;
        close(fd);
        return status;
}

static void note(struct http_stream *stream, const char *bytes, size_t count)
{
        size_t keep = sizeof(stream->tail);

        if (count < keep)
                memmove(stream->tail, stream->tail + count, keep - count);
        else
                bytes += count - keep;
        count = count < keep ? count : keep;
        memcpy(stream->tail + keep - count, bytes, count);
        stream->ended = !memcmp(stream->tail, "0\r\n\r\n", keep);
}

void http_await(struct http_stream *stream, const char *words)
{
        static char text[ANSWER_BYTES];
        size_t count = 0;

        text[0] = '\0';
        while (!strstr(text, words)) {
                ssize_t n;

                if (count > sizeof(text) / 2)
                        count = 0;
                n = recv(stream->fd, text + count, sizeof(text) - 1 - count, 0);
                if (n <= 0)
                        fail("recv");
                note(stream, text + count, (size_t)n);
                count += (size_t)n;
                text[count] = '\0';
        }
}

static void take(struct http_stream *stream)
{
        static char bytes[ANSWER_BYTES];
        ssize_t n = recv(stream->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

        if (n <= 0)
                fail("an answer ended too early");
        note(stream, bytes, (size_t)n);
}

void http_drain(struct http_stream *streams, uint32_t all)
{
        struct epoll_event events[EVENTS];
        int epoll = epoll_create1(EPOLL_CLOEXEC), n;
        uint32_t left = 0;

        for (uint32_t i = 0; i < all; i++) {
                if (streams[i].ended)
                        continue;
                left++;
                events[0] = (struct epoll_event){ .events = EPOLLIN, .data.ptr = &streams[i] };
                if (epoll_ctl(epoll, EPOLL_CTL_ADD, streams[i].fd, &events[0]))
                        fail("epoll_ctl");
        }
        while (left) {
                n = epoll_wait(epoll, events, EVENTS, -1);
                for (int i = 0; i < n; i++) {
                        struct http_stream *stream = events[i].data.ptr;

                        take(stream);
                        left -= stream->ended;
                }
        }
        close(epoll);
}
