#include "tests/e2e/raw-client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/e2e/raw-client-ring.h"

#define CLIENTS_MAX 64

/* Whole records, each at a multiple of 8, and no PAD on a socket. */
static void take_records(struct raw_client *client, const uint8_t *at, size_t count)
{
        assert_true(count > 0);
        assert_null(client->ring);
        while (count) {
                size_t step = raw_client_take_record(client, at, count);

                assert_true(step <= count);
                at += step;
                count -= step;
        }
}

static const msgpack_object *map_at(const msgpack_object *map, const char *key, size_t bytes)
{
        if (map->type == MSGPACK_OBJECT_ARRAY) {
                size_t index = strtoul(key, NULL, 10);

                return index < map->via.array.size ? &map->via.array.ptr[index] : NULL;
        }
        for (uint32_t i = 0; map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++) {
                const msgpack_object_kv *pair = &map->via.map.ptr[i];

                if (pair->key.type == MSGPACK_OBJECT_STR && pair->key.via.str.size == bytes &&
                    !memcmp(pair->key.via.str.ptr, key, bytes))
                        return &pair->val;
        }
        return NULL;
}

const msgpack_object *reply_at(const struct reply *reply, const char *path)
{
        const msgpack_object *at = &reply->map.data;

        while (at) {
                size_t bytes = strcspn(path, ".");

                at = map_at(at, path, bytes);
                path += bytes;
                if (!*path++)
                        break;
        }
        return at;
}

uint64_t reply_uint(const struct reply *reply, const char *path)
{
        const msgpack_object *at = reply_at(reply, path);

        if (!at || at->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
                fail_msg("the reply has no number %s", path);
        return at->via.u64;
}

static void copy_text(char *to, size_t size, const msgpack_object *from)
{
        if (from && from->type == MSGPACK_OBJECT_STR)
                snprintf(to, size, "%.*s", (int)from->via.str.size, from->via.str.ptr);
}

/* {id, ok: true, ...} or {id, error, code, message, field?}, and nothing else. */
static void check_reply(const struct reply *reply)
{
        const msgpack_object *ok = reply_at(reply, "ok");
        uint32_t pairs = reply->map.data.via.map.size;

        assert_non_null(reply_at(reply, "id"));
        if (reply->ok) {
                assert_true(ok->via.boolean);
                assert_null(reply_at(reply, "error"));
                return;
        }
        assert_null(ok);
        assert_true(reply->error[0] && reply->message[0]);
        assert_true(reply->code > 0 && reply->code != SMV_LOST);
        assert_int_equal(pairs, 4 + !!reply->field[0] + !!reply_at(reply, "retry_ms"));
}

static void drop_descriptors(struct raw_client *client)
{
        while (client->passed)
                close(client->fds[--client->passed]);
}

static void take_frame(struct raw_client *client, const uint8_t *body, size_t count)
{
        struct reply *reply = calloc(1, sizeof(*reply));
        const msgpack_object *records;
        size_t offset = 0;

        assert(reply);
        reply->body = malloc(count);
        assert(reply->body);
        memcpy(reply->body, body, count);
        msgpack_unpacked_init(&reply->map);
        assert_int_equal(
                msgpack_unpack_next(&reply->map, (const char *)reply->body, count, &offset),
                MSGPACK_UNPACK_SUCCESS);
        assert_int_equal(offset, count);
        assert_int_equal(reply->map.data.type, MSGPACK_OBJECT_MAP);

        records = reply_at(reply, "records");
        if (records) {
                assert_int_equal(records->type, MSGPACK_OBJECT_BIN);
                assert_int_equal(reply->map.data.via.map.size, 1);
                take_records(client, (const uint8_t *)records->via.bin.ptr, records->via.bin.size);
                msgpack_unpacked_destroy(&reply->map);
                free(reply->body);
                free(reply);
                return;
        }
        reply->id = reply_uint(reply, "id");
        reply->ok = reply_at(reply, "ok");
        reply->code = reply->ok ? 0 : reply_uint(reply, "code");
        copy_text(reply->error, sizeof(reply->error), reply_at(reply, "error"));
        copy_text(reply->field, sizeof(reply->field), reply_at(reply, "field"));
        copy_text(reply->message, sizeof(reply->message), reply_at(reply, "message"));
        check_reply(reply);
        if (client->leaves_ring)
                drop_descriptors(client);
        else if (reply_at(reply, "segments") && reply_at(reply, "segments")->via.array.size)
                raw_client_ring_open(client, reply);
        client->replies = realloc(client->replies, (client->reply_count + 1) * sizeof(reply));
        assert(client->replies);
        client->replies[client->reply_count++] = reply;
}

static void take_frames(struct raw_client *client)
{
        size_t at = 0;

        while (client->in_count - at >= 4) {
                const uint8_t *word = client->in + at;
                size_t bytes = word[0] | (size_t)word[1] << 8 | (size_t)word[2] << 16 |
                               (size_t)word[3] << 24;

                assert_true(bytes <= SMV_FRAME_BYTES_MAX);
                if (client->in_count - at - 4 < bytes)
                        break;
                if (bytes)
                        take_frame(client, word + 4, bytes);
                else
                        client->doorbells++;
                at += 4 + bytes;
        }
        client->in_count -= at;
        memmove(client->in, client->in + at, client->in_count);
}

/* Descriptors may come once: two of a ring and two of slots, with the first byte of the first
 * reply. */
static void take_descriptors(struct raw_client *client, struct msghdr *message)
{
        const struct cmsghdr *rights = CMSG_FIRSTHDR(message);
        uint32_t count;

        if (!rights)
                return;
        count = (uint32_t)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        assert_int_equal(rights->cmsg_level, SOL_SOCKET);
        assert_int_equal(rights->cmsg_type, SCM_RIGHTS);
        assert_int_equal(rights->cmsg_len, CMSG_LEN(count * sizeof(int)));
        assert_in_range(count, 2, sizeof(client->fds) / sizeof(*client->fds));
        assert_int_equal(client->in_count + client->reply_count, 0);
        memcpy(client->fds, CMSG_DATA(rights), count * sizeof(int));
        client->passed = count;
}

static bool take_socket(struct raw_client *client)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(client->fds))];
        } rights;
        struct iovec part;
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &rights,
                                  .msg_controllen = sizeof(rights) };
        ssize_t n;

        if (client->in_size - client->in_count < 65536) {
                client->in_size = (client->in_size + 65536) * 2;
                client->in = realloc(client->in, client->in_size);
                assert(client->in);
        }
        part = (struct iovec){ client->in + client->in_count, client->in_size - client->in_count };
        n = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                client->hung_up = true;
                return true;
        }
        take_descriptors(client, &message);
        client->in_count += (size_t)n;
        take_frames(client);
        return true;
}

/* All clients announce that they sleep; the one that is woken wakes the others.  A thread can sleep
 * on one futex, and not on several. */
static void wait_for(struct raw_client *const *clients, size_t count, int timeout_ms)
{
        struct pollfd fds[CLIENTS_MAX];
        bool by_futex = false;

        assert(count <= CLIENTS_MAX);
        for (size_t i = 0; i < count; i++) {
                fds[i] = (struct pollfd){ .fd = clients[i]->hung_up ? -1 : clients[i]->fd,
                                          .events = POLLIN };
                by_futex =
                        by_futex || (clients[i]->ring && clients[i]->transport == RAW_CLIENT_FUTEX);
                if (!raw_client_ring_announce_sleep(clients[i]))
                        timeout_ms = 0;
        }
        if (by_futex && count == 1 && !poll(fds, 1, 0))
                raw_client_ring_sleep(clients[0], timeout_ms);
        else
                poll(fds, count, by_futex && timeout_ms > 1 ? 1 : timeout_ms);
        for (size_t i = 0; i < count; i++)
                raw_client_ring_wake(clients[i]);
}

bool raw_client_poll(struct raw_client *client, int timeout_ms)
{
        bool some = raw_client_ring_take(client);

        if (client->hung_up)
                return some;
        if (timeout_ms && !some)
                wait_for(&client, 1, timeout_ms);
        some = take_socket(client) || some;
        return raw_client_ring_take(client) || some;
}

void raw_clients_poll(struct raw_client *const *clients, size_t count, int timeout_ms)
{
        wait_for(clients, count, timeout_ms);
        for (size_t i = 0; i < count; i++)
                raw_client_poll(clients[i], 0);
}

/* ---- the client ---- */

int fixture_connect(const struct daemon_fixture *fixture)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", fixture->socket);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
                close(fd);
                fd = -1;
        }
        return fd;
}

struct raw_client *raw_client_adopt(int fd)
{
        struct raw_client *client = calloc(1, sizeof(*client));

        assert(client);
        client->fd = fd;
        return client;
}

struct raw_client *raw_client_connect(const struct daemon_fixture *fixture)
{
        int fd = fixture_connect(fixture);

        if (fd < 0)
                fail_msg("%s: %s", fixture->socket, strerror(errno));
        return raw_client_adopt(fd);
}

enum raw_client_transport raw_client_transport(void)
{
        static const char *const words[] = { "socket", "ring", "futex" };
        const char *asked = getenv("SMV_TEST_TRANSPORT");
        size_t i = 0;

        while (asked && *asked && i < 3 && strcmp(asked, words[i]))
                i++;
        if (i == 3)
                fail_msg("SMV_TEST_TRANSPORT is %s", asked);
        return (enum raw_client_transport)i;
}

struct reply *raw_client_hello(struct raw_client *client, enum raw_client_transport transport)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        struct reply *reply;

        client->transport = transport;
        client->bells_must_ring = true;
        if (transport == RAW_CLIENT_SOCKET)
                reply = raw_client_call(client, "op=s versions=I", "hello", versions, (size_t)2);
        else
                reply = raw_client_call(client, "op=s versions=I transport=s doorbell=s", "hello",
                                        versions, (size_t)2, "ring",
                                        transport == RAW_CLIENT_KICK ? "kick" : "futex");
        assert_true(!client->ring == (transport == RAW_CLIENT_SOCKET || !reply->ok));
        return reply;
}

struct raw_client *raw_client_greet_over(const struct daemon_fixture *fixture,
                                         enum raw_client_transport transport)
{
        struct raw_client *client = raw_client_connect(fixture);
        struct reply *reply = raw_client_hello(client, transport);

        if (!reply->ok)
                fail_msg("hello was refused: %s", reply->message);
        return client;
}

struct raw_client *raw_client_greet(const struct daemon_fixture *fixture)
{
        return raw_client_greet_over(fixture, raw_client_transport());
}

struct raw_client *raw_client_close(struct raw_client *client)
{
        if (!client)
                return NULL;
        close(client->fd);
        raw_client_ring_close(client);
        for (size_t i = 0; i < client->reply_count; i++) {
                msgpack_unpacked_destroy(&client->replies[i]->map);
                free(client->replies[i]->body);
                free(client->replies[i]);
        }
        for (size_t i = 0; i < client->stream_count; i++)
                stream_free(client->streams[i]);
        free(client->replies);
        free(client->streams);
        free(client->in);
        free(client);
        return NULL;
}

bool raw_client_send(struct raw_client *client, const void *bytes, size_t count)
{
        const char *at = bytes;

        client->in_frame = true;
        while (count && !client->hung_up) {
                struct pollfd poll_fd = { .fd = client->fd, .events = POLLIN | POLLOUT };
                ssize_t n = send(client->fd, at, count, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n >= 0) {
                        at += n;
                        count -= (size_t)n;
                } else if (errno != EAGAIN && errno != EINTR) {
                        /* the bytes that the daemon sent before it hung up */
                        while (raw_client_poll(client, TIMEOUT_MS))
                                ;
                        break;
                } else {
                        assert_true(poll(&poll_fd, 1, TIMEOUT_MS) > 0);
                        raw_client_poll(client, 0);
                }
        }
        client->in_frame = false;
        raw_client_ring_resume(client);
        return !count;
}

bool raw_client_send_frame(struct raw_client *client, const char *format, ...)
{
        struct bytes_out frame = { 0 };
        va_list values;
        bool sent;

        va_start(values, format);
        frame_vput(&frame, format, values);
        va_end(values);
        sent = raw_client_send(client, frame.at, frame.count);
        free(frame.at);
        return sent;
}

struct reply *raw_client_find_reply(const struct raw_client *client, uint64_t id)
{
        for (size_t i = 0; i < client->reply_count; i++)
                if (client->replies[i]->id == id && !client->replies[i]->taken)
                        return client->replies[i];
        return NULL;
}

struct reply *raw_client_await_reply(struct raw_client *client, uint64_t id)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        struct reply *reply;

        while (!(reply = raw_client_find_reply(client, id))) {
                if (client->hung_up || now_ms() > end)
                        fail_msg("no reply to %u: %s", (unsigned)id,
                                 client->hung_up ? "hung up" : "nothing comes");
                raw_client_poll(client, 100);
        }
        reply->taken = true;
        return reply;
}

struct reply *raw_client_call(struct raw_client *client, const char *format, ...)
{
        struct bytes_out frame = { 0 };
        uint32_t id = ++client->last_id;
        char whole[256];
        va_list values;

        /* The id goes last, where a va_list cannot reach: it is packed by hand. */
        snprintf(whole, sizeof(whole), "%s", format);
        va_start(values, format);
        frame_vput(&frame, whole, values);
        va_end(values);
        frame.at[4]++; /* one more pair; a fixmap's count is its low half */
        bytes_put(&frame, "\xa2id\xce", 4);
        bytes_put(&frame, (uint8_t[]){ id >> 24, id >> 16 & 255, id >> 8 & 255, id & 255 }, 4);
        for (size_t i = 0; i < 4; i++)
                frame.at[i] = (uint8_t)((frame.count - 4) >> 8 * i);
        raw_client_send(client, frame.at, frame.count);
        free(frame.at);
        return raw_client_await_reply(client, id);
}

struct stream *raw_client_await_end(struct raw_client *client, uint32_t id)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        struct stream *stream;

        while (!(stream = raw_client_stream(client, id)) || !stream->ended) {
                if (client->hung_up || now_ms() > end)
                        fail_msg("no END of %u: %s", id,
                                 client->hung_up ? "hung up" : "nothing comes");
                raw_client_poll(client, 100);
        }
        return stream;
}

void raw_client_await_hangup(struct raw_client *client)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (!client->hung_up) {
                if (now_ms() > end)
                        fail_msg("%s", "the daemon does not hang up");
                raw_client_poll(client, 100);
        }
}
