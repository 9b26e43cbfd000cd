#include "tests/e2e/talk.h"

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

#include "tests/e2e/talk-ring.h"

#define TALKS_MAX 64

/* Whole records, each at a multiple of 8, and no PAD on a socket. */
static void take_records(struct talk *talk, const uint8_t *at, size_t count)
{
        assert_true(count > 0);
        assert_null(talk->ring);
        while (count) {
                size_t step = talk_record(talk, at, count);

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
        assert_int_equal(pairs, reply->field[0] ? 5 : 4);
}

static void drop_descriptors(struct talk *talk)
{
        if (!talk->passed)
                return;
        close(talk->fds[0]);
        close(talk->fds[1]);
        talk->passed = false;
}

static void take_frame(struct talk *talk, const uint8_t *body, size_t count)
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
                take_records(talk, (const uint8_t *)records->via.bin.ptr, records->via.bin.size);
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
        if (talk->leaves_ring)
                drop_descriptors(talk);
        else if (reply_at(reply, "segments") && reply_at(reply, "segments")->via.array.size)
                talk_ring_open(talk, reply);
        talk->replies = realloc(talk->replies, (talk->reply_count + 1) * sizeof(reply));
        assert(talk->replies);
        talk->replies[talk->reply_count++] = reply;
}

static void take_frames(struct talk *talk)
{
        size_t at = 0;

        while (talk->in_count - at >= 4) {
                const uint8_t *word = talk->in + at;
                size_t bytes = word[0] | (size_t)word[1] << 8 | (size_t)word[2] << 16 |
                               (size_t)word[3] << 24;

                assert_true(bytes <= SMV_FRAME_BYTES_MAX);
                if (talk->in_count - at - 4 < bytes)
                        break;
                if (bytes)
                        take_frame(talk, word + 4, bytes);
                else
                        talk->doorbells++;
                at += 4 + bytes;
        }
        talk->in_count -= at;
        memmove(talk->in, talk->in + at, talk->in_count);
}

/* Descriptors may come once: the two of a ring, with the first byte of the first reply. */
static void take_descriptors(struct talk *talk, struct msghdr *message)
{
        const struct cmsghdr *rights = CMSG_FIRSTHDR(message);

        if (!rights)
                return;
        assert_int_equal(rights->cmsg_level, SOL_SOCKET);
        assert_int_equal(rights->cmsg_type, SCM_RIGHTS);
        assert_int_equal(rights->cmsg_len, CMSG_LEN(sizeof(talk->fds)));
        assert_int_equal(talk->in_count + talk->reply_count, 0);
        memcpy(talk->fds, CMSG_DATA(rights), sizeof(talk->fds));
        talk->passed = true;
}

static bool take_socket(struct talk *talk)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(talk->fds))];
        } rights;
        struct iovec part;
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &rights,
                                  .msg_controllen = sizeof(rights) };
        ssize_t n;

        if (talk->in_size - talk->in_count < 65536) {
                talk->in_size = (talk->in_size + 65536) * 2;
                talk->in = realloc(talk->in, talk->in_size);
                assert(talk->in);
        }
        part = (struct iovec){ talk->in + talk->in_count, talk->in_size - talk->in_count };
        n = recvmsg(talk->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                talk->hung_up = true;
                return true;
        }
        take_descriptors(talk, &message);
        talk->in_count += (size_t)n;
        take_frames(talk);
        return true;
}

/* All talks announce that they sleep; the one that is woken wakes the others.  A thread can sleep
 * on one futex, and not on several. */
static void wait_for(struct talk *const *talks, size_t count, int timeout_ms)
{
        struct pollfd fds[TALKS_MAX];
        bool by_futex = false;

        assert(count <= TALKS_MAX);
        for (size_t i = 0; i < count; i++) {
                fds[i] = (struct pollfd){ .fd = talks[i]->hung_up ? -1 : talks[i]->fd,
                                          .events = POLLIN };
                by_futex = by_futex || (talks[i]->ring && talks[i]->transport == TALK_FUTEX);
                if (!talk_ring_lie_down(talks[i]))
                        timeout_ms = 0;
        }
        if (by_futex && count == 1 && !poll(fds, 1, 0))
                talk_ring_sleep(talks[0], timeout_ms);
        else
                poll(fds, count, by_futex && timeout_ms > 1 ? 1 : timeout_ms);
        for (size_t i = 0; i < count; i++)
                talk_ring_get_up(talks[i]);
}

bool talk_turn(struct talk *talk, int timeout_ms)
{
        bool some = talk_ring_take(talk);

        if (talk->hung_up)
                return some;
        if (timeout_ms && !some)
                wait_for(&talk, 1, timeout_ms);
        some = take_socket(talk) || some;
        return talk_ring_take(talk) || some;
}

void talks_turn(struct talk *const *talks, size_t count, int timeout_ms)
{
        wait_for(talks, count, timeout_ms);
        for (size_t i = 0; i < count; i++)
                talk_turn(talks[i], 0);
}

/* ---- a talk ---- */

int connect_raw(const struct house *house)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", house->socket);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
                close(fd);
                fd = -1;
        }
        return fd;
}

struct talk *talk_take(int fd)
{
        struct talk *talk = calloc(1, sizeof(*talk));

        assert(talk);
        talk->fd = fd;
        return talk;
}

struct talk *talk_open(const struct house *house)
{
        int fd = connect_raw(house);

        if (fd < 0)
                fail_msg("%s: %s", house->socket, strerror(errno));
        return talk_take(fd);
}

enum talk_transport talk_transport(void)
{
        static const char *const words[] = { "socket", "ring", "futex" };
        const char *asked = getenv("SMV_TEST_TRANSPORT");
        size_t i = 0;

        while (asked && *asked && i < 3 && strcmp(asked, words[i]))
                i++;
        if (i == 3)
                fail_msg("SMV_TEST_TRANSPORT is %s", asked);
        return (enum talk_transport)i;
}

struct reply *talk_hello(struct talk *talk, enum talk_transport transport)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        struct reply *reply;

        talk->transport = transport;
        talk->bells_must_ring = true;
        if (transport == TALK_SOCKET)
                reply = talk_ask(talk, "op=s versions=I", "hello", versions, (size_t)2);
        else
                reply = talk_ask(talk, "op=s versions=I transport=s doorbell=s", "hello", versions,
                                 (size_t)2, "ring", transport == TALK_KICK ? "kick" : "futex");
        assert_true(!talk->ring == (transport == TALK_SOCKET || !reply->ok));
        return reply;
}

struct talk *talk_greet_by(const struct house *house, enum talk_transport transport)
{
        struct talk *talk = talk_open(house);
        struct reply *reply = talk_hello(talk, transport);

        if (!reply->ok)
                fail_msg("hello was refused: %s", reply->message);
        return talk;
}

struct talk *talk_greet(const struct house *house)
{
        return talk_greet_by(house, talk_transport());
}

struct talk *talk_close(struct talk *talk)
{
        if (!talk)
                return NULL;
        close(talk->fd);
        talk_ring_close(talk);
        for (size_t i = 0; i < talk->reply_count; i++) {
                msgpack_unpacked_destroy(&talk->replies[i]->map);
                free(talk->replies[i]->body);
                free(talk->replies[i]);
        }
        for (size_t i = 0; i < talk->stream_count; i++)
                stream_free(talk->streams[i]);
        free(talk->replies);
        free(talk->streams);
        free(talk->in);
        free(talk);
        return NULL;
}

bool talk_send(struct talk *talk, const void *bytes, size_t count)
{
        const char *at = bytes;

        talk->in_frame = true;
        while (count && !talk->hung_up) {
                struct pollfd poll_fd = { .fd = talk->fd, .events = POLLIN | POLLOUT };
                ssize_t n = send(talk->fd, at, count, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n >= 0) {
                        at += n;
                        count -= (size_t)n;
                } else if (errno != EAGAIN && errno != EINTR) {
                        /* the bytes that the daemon sent before it hung up */
                        while (talk_turn(talk, PATIENCE_MS))
                                ;
                        break;
                } else {
                        assert_true(poll(&poll_fd, 1, PATIENCE_MS) > 0);
                        talk_turn(talk, 0);
                }
        }
        talk->in_frame = false;
        talk_ring_resume(talk);
        return !count;
}

bool talk_say(struct talk *talk, const char *format, ...)
{
        struct bytes_out frame = { 0 };
        va_list values;
        bool sent;

        va_start(values, format);
        frame_vput(&frame, format, values);
        va_end(values);
        sent = talk_send(talk, frame.at, frame.count);
        free(frame.at);
        return sent;
}

struct reply *talk_replied(const struct talk *talk, uint64_t id)
{
        for (size_t i = 0; i < talk->reply_count; i++)
                if (talk->replies[i]->id == id && !talk->replies[i]->taken)
                        return talk->replies[i];
        return NULL;
}

struct reply *talk_reply(struct talk *talk, uint64_t id)
{
        uint64_t end = now_ms() + PATIENCE_MS;
        struct reply *reply;

        while (!(reply = talk_replied(talk, id))) {
                if (talk->hung_up || now_ms() > end)
                        fail_msg("no reply to %u: %s", (unsigned)id,
                                 talk->hung_up ? "hung up" : "nothing comes");
                talk_turn(talk, 100);
        }
        reply->taken = true;
        return reply;
}

struct reply *talk_ask(struct talk *talk, const char *format, ...)
{
        struct bytes_out frame = { 0 };
        uint32_t id = ++talk->last_id;
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
        talk_send(talk, frame.at, frame.count);
        free(frame.at);
        return talk_reply(talk, id);
}

struct stream *talk_end(struct talk *talk, uint32_t id)
{
        uint64_t end = now_ms() + PATIENCE_MS;
        struct stream *stream;

        while (!(stream = talk_stream(talk, id)) || !stream->ended) {
                if (talk->hung_up || now_ms() > end)
                        fail_msg("no END of %u: %s", id,
                                 talk->hung_up ? "hung up" : "nothing comes");
                talk_turn(talk, 100);
        }
        return stream;
}

void talk_hangup(struct talk *talk)
{
        uint64_t end = now_ms() + PATIENCE_MS;

        while (!talk->hung_up) {
                if (now_ms() > end)
                        fail_msg("%s", "the daemon does not hang up");
                talk_turn(talk, 100);
        }
}
