#include "tests/unit/http-rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

#define TICK_NS   1000000u
#define TICKS_MAX 20000u

static void hold(struct rig *rig, struct http_exchange *x)
{
        assert_true(rig->held_count < RIG_HELD_MAX);
        rig->held[rig->held_count++] = x;
}

static bool is_path(const struct http_exchange *x, const char *path)
{
        return !strcmp(http_path(x), path);
}

static void on_headers(void *arg, struct http_exchange *x)
{
        struct rig *rig = arg;

        rig->headers++;
        rig->principal = http_principal(x);
        http_set(x, rig);
        if (is_path(x, "/now"))
                http_reply(x, 200, "text/plain", "now", 3);
        else if (is_path(x, "/spool"))
                http_spool_body(x);
        else if (is_path(x, "/small"))
                http_limit_body(x, 10);
}

static void reply_spooled(struct http_exchange *x)
{
        char text[256] = { 0 };
        uint64_t bytes;
        int fd = http_body_fd(x, &bytes);
        int count = snprintf(text, sizeof(text), "%llu:", (unsigned long long)bytes);

        assert_true(fd >= 0);
        assert_true(pread(fd, text + count, sizeof(text) - (size_t)count - 1, 0) >= 0);
        http_reply(x, 200, "text/plain", text, strlen(text));
}

static void on_request(void *arg, struct http_exchange *x)
{
        struct rig *rig = arg;
        size_t bytes;
        const char *body = http_body(x, &bytes);

        rig->requests++;
        assert_ptr_equal(http_get(x), rig);
        assert_int_equal(body[bytes], 0);
        if (is_path(x, "/echo") || is_path(x, "/small")) {
                http_add_header(x, "X-Echo", "a\r\nb");
                http_reply(x, 200, "text/plain", body, bytes);
        } else if (is_path(x, "/spool")) {
                reply_spooled(x);
        } else if (is_path(x, "/hold")) {
                hold(rig, x);
        } else if (is_path(x, "/stream")) {
                http_stream(x, 200, "text/event-stream");
                hold(rig, x);
        } else {
                http_reply(x, 404, NULL, NULL, 0);
        }
}

static void on_gone(void *arg, struct http_exchange *x)
{
        struct rig *rig = arg;

        rig->gone++;
        for (uint32_t i = 0; i < rig->held_count; i++)
                if (rig->held[i] == x)
                        rig->held[i] = NULL;
}

static void on_drained(void *arg, struct http_exchange *x)
{
        struct rig *rig = arg;

        (void)x;
        rig->drained++;
}

static const char *on_refusal(void *arg, const char *path, const char *request_id, unsigned status,
                              const char *code, const char *message, struct bytes *to)
{
        struct rig *rig = arg;

        (void)path;
        (void)request_id;
        (void)status;
        rig->refused++;
        snprintf(rig->refusal, sizeof(rig->refusal), "%s %s", code, message);
        (void)bytes_add(to, rig->refusal, strlen(rig->refusal));
        return "text/plain";
}

static void on_idle(void *arg)
{
        struct rig *rig = arg;

        rig->idle = true;
}

static void on_tick(void *arg)
{
        struct rig *rig = arg;

        if (rig->pause)
                rig->pause(true);
        rig->came = rig->wanted && rig->wanted(rig, rig->arg);
        if (rig->came || !rig->ticks_left--)
                loop_stop(rig->loop);
        else
                loop_timer_set(rig->tick, TICK_NS);
        if (rig->pause)
                rig->pause(false);
}

static bool run(struct rig *rig, bool (*wanted)(struct rig *rig, void *arg), void *arg,
                uint32_t ticks)
{
        rig->wanted = wanted;
        rig->arg = arg;
        rig->ticks_left = ticks;
        assert_int_equal(loop_timer_set(rig->tick, 0), 0);
        if (rig->pause)
                rig->pause(false);
        assert_int_equal(loop_run(rig->loop), 0);
        if (rig->pause)
                rig->pause(true);
        return rig->came;
}

void rig_until(struct rig *rig, bool (*wanted)(struct rig *rig, void *arg), void *arg)
{
        assert_true(run(rig, wanted, arg, TICKS_MAX));
}

void rig_turns(struct rig *rig, uint32_t count)
{
        run(rig, NULL, NULL, count);
}

struct count {
        const uint32_t *at;
        uint32_t wanted;
};

static bool has_count(struct rig *rig, void *arg)
{
        const struct count *count = arg;

        (void)rig;
        return *count->at >= count->wanted;
}

void rig_until_count(struct rig *rig, const uint32_t *at, uint32_t wanted)
{
        struct count count = { at, wanted };

        rig_until(rig, has_count, &count);
}

static bool has_open(struct rig *rig, void *arg)
{
        return rig_counts(rig).connections_open == *(uint32_t *)arg;
}

void rig_until_open(struct rig *rig, uint32_t count)
{
        rig_until(rig, has_open, &count);
}

struct http_counts rig_counts(const struct rig *rig)
{
        struct http_counts counts;

        http_server_counts(rig->server, &counts);
        return counts;
}

void rig_init(struct rig *rig)
{
        *rig = (struct rig){ .conf = http_conf_default() };
        log_open(LOG_ERROR);
}

void rig_make_loop(struct rig *rig)
{
        assert_int_equal(loop_new(&rig->loop), 0);
        assert_int_equal(loop_timer_new(rig->loop, on_tick, rig, &rig->tick), 0);
}

int rig_make(struct rig *rig, char *why, size_t why_bytes)
{
        const struct http_handlers handlers = { .on_headers = on_headers,
                                                .on_request = on_request,
                                                .on_gone = on_gone,
                                                .on_drained = on_drained,
                                                .on_refusal = on_refusal,
                                                .on_idle = on_idle,
                                                .arg = rig };

        if (!rig->loop)
                rig_make_loop(rig);
        return http_server_new(&rig->conf, rig->loop, &handlers, &rig->server, why, why_bytes);
}

void rig_start(struct rig *rig)
{
        char why[300] = "";

        if (rig_make(rig, why, sizeof(why)) ||
            http_server_listen_tcp(rig->server, "127.0.0.1:0", &rig->port, why, sizeof(why)))
                fail_msg("%s", why);
}

void rig_end(struct rig *rig)
{
        rig->server = http_server_free(rig->server);
        loop_timer_free(rig->tick);
        loop_free(rig->loop);
}

void client_connect(struct rig *rig, struct client *client)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(rig->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

        *client = (struct client){ .rig = rig };
        client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(client->fd >= 0);
        assert_int_equal(connect(client->fd, (struct sockaddr *)&to, sizeof(to)), 0);
        assert_true(fcntl(client->fd, F_SETFL, O_NONBLOCK) >= 0);
}

void client_collect(struct client *client)
{
        while (!client->paused && !client->ended && !client->failed) {
                ssize_t n;

                client->got = realloc(client->got, client->count + 65537);
                n = recv(client->fd, client->got + client->count, 65536, 0);
                if (n < 0 && errno == EAGAIN)
                        break;
                client->failed = n < 0;
                client->ended = !n;
                client->count += n > 0 ? (size_t)n : 0;
                client->got[client->count] = '\0';
        }
}

/* A server that has closed takes nothing more. */
void client_send_bytes(struct client *client, const char *bytes, size_t count)
{
        while (count) {
                ssize_t n = send(client->fd, bytes, count, MSG_NOSIGNAL);

                if (n < 0 && errno != EAGAIN) {
                        assert_true(errno == EPIPE || errno == ECONNRESET);
                        return;
                }
                if (n < 0)
                        rig_turns(client->rig, 1);
                else
                        client_collect(client);
                bytes += n > 0 ? n : 0;
                count -= n > 0 ? (size_t)n : 0;
        }
}

void client_send(struct client *client, const char *text)
{
        client_send_bytes(client, text, strlen(text));
}

void client_half_close(struct client *client)
{
        assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
}

void client_close(struct client *client)
{
        close(client->fd);
        client->fd = -1;
        free(client->got);
        client->got = NULL;
}

bool client_has(const struct client *client, const char *text)
{
        return client->count && memmem(client->got, client->count, text, strlen(text));
}

uint32_t client_count(const struct client *client, const char *text)
{
        uint32_t times = 0;
        const char *at = client->got;

        while (at && (at = strstr(at, text))) {
                times++;
                at += strlen(text);
        }
        return times;
}

void client_forget(struct client *client)
{
        client->count = 0;
        if (client->got)
                client->got[0] = '\0';
}

struct wish {
        struct client *client;
        const char *text;
};

static bool has_come(struct rig *rig, void *arg)
{
        struct wish *wish = arg;

        (void)rig;
        client_collect(wish->client);
        return client_has(wish->client, wish->text);
}

void client_until(struct client *client, const char *text)
{
        struct wish wish = { client, text };

        if (!run(client->rig, has_come, &wish, TICKS_MAX))
                fail_msg("no \"%s\" in: %s", text, client->got ? client->got : "");
}

static bool has_ended(struct rig *rig, void *arg)
{
        struct client *client = arg;

        (void)rig;
        client_collect(client);
        return client->ended || client->failed;
}

void client_until_end(struct client *client)
{
        rig_until(client->rig, has_ended, client);
        assert_false(client->failed);
}

void client_ask(struct rig *rig, const char *request, const char *expected)
{
        struct client client;

        client_connect(rig, &client);
        client_send(&client, request);
        client_until(&client, "\r\n\r\n");
        if (strncmp(client.got, expected, strlen(expected)))
                fail_msg("not \"%s\": %s", expected, client.got);
        client_close(&client);
}
