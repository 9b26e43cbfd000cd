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

#define PATIENCE_MS 60000 /* sanitizers and a busy machine are slow; a hang is longer */
#define TALKS_MAX   64

static struct stream *stream_for(struct talk *talk, uint32_t id)
{
        struct stream *stream = talk_stream(talk, id);

        if (stream && !stream->ended)
                return stream;
        stream = calloc(1, sizeof(*stream));
        talk->streams = realloc(talk->streams, (talk->stream_count + 1) * sizeof(stream));
        assert(stream && talk->streams);
        stream->id = id;
        talk->streams[talk->stream_count++] = stream;
        return stream;
}

static void take_tokens(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_tokens head;
        size_t ids;

        assert_true(bytes >= sizeof(head));
        memcpy(&head, payload, sizeof(head));
        ids = head.token_count * sizeof(uint32_t);
        assert_int_equal(bytes, sizeof(head) + ids + head.text_bytes);
        assert_true(head.token_count || head.text_bytes);
        if (stream->positioned)
                assert_int_equal(head.position, stream->position);
        stream->positioned = true;
        stream->position = head.position + head.token_count;

        stream->tokens = realloc(stream->tokens, stream->token_count * sizeof(uint32_t) + ids + 1);
        stream->text = realloc(stream->text, stream->text_bytes + head.text_bytes + 1);
        assert(stream->tokens && stream->text);
        memcpy(stream->tokens + stream->token_count, payload + sizeof(head), ids);
        memcpy(stream->text + stream->text_bytes, payload + sizeof(head) + ids, head.text_bytes);
        stream->token_count += head.token_count;
        stream->text_bytes += head.text_bytes;
        stream->text[stream->text_bytes] = '\0';
}

static void take_end(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_end *end = &stream->end;

        assert_int_equal(bytes, sizeof(*end));
        memcpy(end, payload, sizeof(*end));
        assert_in_range(end->reason, SMV_END_EOS, SMV_END_ERROR);
        assert_true((end->reason == SMV_END_ERROR) == (end->code != SMV_OK));
        assert_int_equal(end->output_tokens, stream->token_count);
        assert_int_equal(end->cached_tokens, 0);
        assert_int_equal(end->pad2, 0);
        if (stream->token_count)
                assert_int_equal(stream->position, end->prompt_tokens + stream->token_count);
        stream->ended = true;
}

/* Whole records, each at a multiple of 8, and no PAD on a socket. */
static void take_records(struct talk *talk, const uint8_t *at, size_t count)
{
        assert_true(count > 0);
        while (count) {
                struct smv_record head;
                struct stream *stream;
                size_t step;

                assert_true(count >= sizeof(head));
                memcpy(&head, at, sizeof(head));
                assert_int_equal(head.head_bytes, sizeof(head));
                assert_in_range(head.size, sizeof(head), count);
                stream = stream_for(talk, head.stream);
                assert_int_equal(head.sequence, stream->sequence);
                stream->sequence++;
                if (head.type == SMV_RECORD_END) {
                        take_end(stream, at + sizeof(head), head.size - sizeof(head));
                } else {
                        assert_int_equal(head.type, SMV_RECORD_TOKENS);
                        take_tokens(stream, at + sizeof(head), head.size - sizeof(head));
                }
                step = (head.size + 7u) & ~(size_t)7;
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

/* {id, ok: true, ...} or {id, error, code, message, field?}, and nothing between. */
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

bool talk_turn(struct talk *talk, int timeout_ms)
{
        struct pollfd poll_fd = { .fd = talk->fd, .events = POLLIN };
        ssize_t n;

        if (talk->hung_up || poll(&poll_fd, 1, timeout_ms) <= 0)
                return false;
        if (talk->in_size - talk->in_count < 65536) {
                talk->in_size = (talk->in_size + 65536) * 2;
                talk->in = realloc(talk->in, talk->in_size);
                assert(talk->in);
        }
        n = recv(talk->fd, talk->in + talk->in_count, talk->in_size - talk->in_count, MSG_DONTWAIT);
        if (n > 0) {
                talk->in_count += (size_t)n;
                take_frames(talk);
        } else if (!n || (errno != EAGAIN && errno != EINTR)) {
                talk->hung_up = true;
        }
        return true;
}

void talks_turn(struct talk *const *talks, size_t count, int timeout_ms)
{
        struct pollfd fds[TALKS_MAX];

        assert(count <= TALKS_MAX);
        for (size_t i = 0; i < count; i++)
                fds[i] = (struct pollfd){ .fd = talks[i]->hung_up ? -1 : talks[i]->fd,
                                          .events = POLLIN };
        poll(fds, count, timeout_ms);
        for (size_t i = 0; i < count; i++)
                if (fds[i].revents)
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

struct talk *talk_greet(const struct house *house)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        struct talk *talk = talk_open(house);
        struct reply *reply = talk_ask(talk, "op=s versions=I", "hello", versions, (size_t)2);

        if (!reply->ok)
                fail_msg("hello was refused: %s", reply->message);
        return talk;
}

struct talk *talk_close(struct talk *talk)
{
        if (!talk)
                return NULL;
        close(talk->fd);
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

        while (count && !talk->hung_up) {
                struct pollfd poll_fd = { .fd = talk->fd, .events = POLLIN | POLLOUT };
                ssize_t n = send(talk->fd, at, count, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n >= 0) {
                        at += n;
                        count -= (size_t)n;
                } else if (errno != EAGAIN && errno != EINTR) {
                        while (talk_turn(talk, PATIENCE_MS))
                                ; /* what it said before it hung up */
                        return false;
                } else {
                        assert_true(poll(&poll_fd, 1, PATIENCE_MS) > 0);
                        talk_turn(talk, 0);
                }
        }
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
        frame.at[4]++; /* one pair more; a fixmap's count is its low half */
        bytes_put(&frame, "\xa2id\xce", 4);
        bytes_put(&frame, (uint8_t[]){ id >> 24, id >> 16 & 255, id >> 8 & 255, id & 255 }, 4);
        for (size_t i = 0; i < 4; i++)
                frame.at[i] = (uint8_t)((frame.count - 4) >> 8 * i);
        talk_send(talk, frame.at, frame.count);
        free(frame.at);
        return talk_reply(talk, id);
}

struct stream *talk_stream(const struct talk *talk, uint32_t id)
{
        for (size_t i = talk->stream_count; i-- > 0;)
                if (talk->streams[i]->id == id)
                        return talk->streams[i];
        return NULL;
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
