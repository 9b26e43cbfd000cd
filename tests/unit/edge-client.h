/* A client of the house, written by hand: frames out, replies and records in. */
#ifndef TESTS_UNIT_EDGE_CLIENT_H
#define TESTS_UNIT_EDGE_CLIENT_H

#include "tests/unit/edge-fixture.h"

#include <msgpack.h>

#include "daemon/edge/wire.h"

struct client {
        struct edge_fixture *fixture;
        int fd;
        struct buffer in;
        struct buffer records; /* records that came and were not looked at */
};

static inline void client_open(struct edge_fixture *fixture, struct client *client)
{
        int fds[2];
        uint64_t theirs;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        sys_set_nonblocking(fds[1]);
        client->fixture = fixture;
        client->fd = fds[0];
        buffer_init(&client->in, 64 << 20);
        buffer_init(&client->records, 64 << 20);
        theirs = (uint64_t)fds[1];
        assert_int_equal(write(fixture->arrive_bell, &theirs, sizeof(theirs)), sizeof(theirs));
        /* An eventfd adds up, so wait until the value before is taken. */
        while (poll(&(struct pollfd){ .fd = fixture->arrive_bell, .events = POLLIN }, 1, 0) == 1)
                usleep(100);
}

static inline void client_close(struct client *client)
{
        if (client->fd >= 0)
                close(client->fd);
        client->fd = -1;
        buffer_deinit(&client->in);
        buffer_deinit(&client->records);
}

static inline void send_all(struct client *client, struct buffer *frame)
{
        while (buffer_count(frame)) {
                ssize_t n = send(client->fd, frame->bytes + frame->start, buffer_count(frame),
                                 MSG_NOSIGNAL);

                /* refused meanwhile: the reply says why */
                if (n < 0)
                        break;
                buffer_take(frame, (size_t)n);
        }
        buffer_deinit(frame);
}

#define OPEN_FRAME(writer, frame, pairs)                                                           \
        buffer_init(&(frame), 64 << 20);                                                           \
        wire_begin(&(writer), &(frame));                                                           \
        wire_put_map(&(writer), pairs)

static inline void put_head(struct wire_writer *writer, const char *op, uint32_t id)
{
        wire_put_text(writer, "op");
        wire_put_text(writer, op);
        wire_put_text(writer, "id");
        wire_put_uint(writer, id);
}

static inline void ask_hello(struct client *client, uint32_t id, uint32_t low, uint32_t high)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 3);
        put_head(&writer, "hello", id);
        wire_put_text(&writer, "versions");
        wire_put_array(&writer, 2);
        wire_put_uint(&writer, low);
        wire_put_uint(&writer, high);
        wire_end(&writer);
        send_all(client, &frame);
}

static inline void ask_plain(struct client *client, const char *op, uint32_t id)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 2);
        put_head(&writer, op, id);
        wire_end(&writer);
        send_all(client, &frame);
}

static inline void ask_cancel(struct client *client, uint32_t id, uint32_t stream)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 3);
        put_head(&writer, "cancel", id);
        wire_put_text(&writer, "stream");
        wire_put_uint(&writer, stream);
        wire_end(&writer);
        send_all(client, &frame);
}

static inline void ask_tokens(struct client *client, const char *op, uint32_t id,
                              const uint32_t *tokens, uint32_t count)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 3);
        put_head(&writer, op, id);
        wire_put_text(&writer, "tokens");
        wire_put_array(&writer, count);
        for (uint32_t i = 0; i < count; i++)
                wire_put_uint(&writer, tokens[i]);
        wire_end(&writer);
        send_all(client, &frame);
}

static inline void ask_generate(struct client *client, uint32_t id)
{
        ask_tokens(client, "generate", id, (uint32_t[]){ 1, 2, 3 }, 3);
}

static inline void ask_text(struct client *client, const char *op, uint32_t id, const char *field,
                            const char *text, size_t bytes)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 3);
        put_head(&writer, op, id);
        wire_put_text(&writer, field);
        wire_put_bytes(&writer, text, bytes);
        wire_end(&writer);
        send_all(client, &frame);
}

/* Reads the available bytes, and waits if there are none; false at the end of the stream. */
static inline bool fill(struct client *client)
{
        struct pollfd ask = { .fd = client->fd, .events = POLLIN };
        ssize_t n;

        assert_int_equal(poll(&ask, 1, WAIT_MS), 1);
        assert_int_equal(buffer_reserve(&client->in, 65536), 0);
        n = read(client->fd, client->in.bytes + client->in.end, 65536);
        if (n <= 0)
                return false;
        client->in.end += (size_t)n;
        return true;
}

static inline const msgpack_object *get(const msgpack_object *map, const char *name)
{
        for (uint32_t i = 0; i < map->via.map.size; i++) {
                const msgpack_object_kv *kv = &map->via.map.ptr[i];

                if (kv->key.via.str.size == strlen(name) &&
                    !memcmp(kv->key.via.str.ptr, name, strlen(name)))
                        return &kv->val;
        }
        return NULL;
}

static inline uint64_t get_uint(const msgpack_object *map, const char *name)
{
        const msgpack_object *value = get(map, name);

        assert_non_null(value);
        assert_int_equal(value->type, MSGPACK_OBJECT_POSITIVE_INTEGER);
        return value->via.u64;
}

/* The next frame of any kind; false at the end of the stream. */
static inline bool next_frame(struct client *client, msgpack_unpacked *ret_frame)
{
        struct wire_problem problem;
        const uint8_t *body;
        size_t bytes;

        while (!buffer_count(&client->in) ||
               wire_frame(client->in.bytes + client->in.start, buffer_count(&client->in), 64 << 20,
                          &bytes, &body, &problem))
                if (!fill(client))
                        return false;
        msgpack_unpacked_init(ret_frame);
        assert_int_equal(msgpack_unpack_next(ret_frame, (const char *)body, bytes - 4, NULL),
                         MSGPACK_UNPACK_SUCCESS);
        assert_int_equal(ret_frame->data.type, MSGPACK_OBJECT_MAP);
        return true;
}

static inline void drop_frame(struct client *client, msgpack_unpacked *frame)
{
        uint32_t length;

        memcpy(&length, client->in.bytes + client->in.start, 4);
        msgpack_unpacked_destroy(frame);
        buffer_take(&client->in, length + 4);
}

/* The next reply; records before it are kept.  False at the end of the stream. */
static inline bool next_reply(struct client *client, msgpack_unpacked *ret_reply)
{
        while (next_frame(client, ret_reply)) {
                const msgpack_object *records = get(&ret_reply->data, "records");

                if (!records)
                        return true;
                buffer_append(&client->records, records->via.bin.ptr, records->via.bin.size);
                drop_frame(client, ret_reply);
        }
        return false;
}

/* The code of the next reply, which must be to this id; OK if the request succeeded. */
static inline enum smv_code reply_code(struct client *client, uint32_t id)
{
        msgpack_unpacked reply;
        enum smv_code code = SMV_OK;

        assert_true(next_reply(client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), id);
        if (!get(&reply.data, "ok"))
                code = (enum smv_code)get_uint(&reply.data, "code");
        drop_frame(client, &reply);
        return code;
}

static inline bool is_closed(struct client *client)
{
        msgpack_unpacked frame;

        while (next_frame(client, &frame))
                drop_frame(client, &frame);
        return true;
}

static inline void say_hello(struct edge_fixture *fixture, struct client *client)
{
        client_open(fixture, client);
        ask_hello(client, 1, 0, 0);
        assert_int_equal(reply_code(client, 1), SMV_OK);
}

/* The next record of this client; valid until the next call. */
static inline struct smv_record *next_record(struct client *client)
{
        static struct smv_record *record;

        while (!buffer_count(&client->records)) {
                msgpack_unpacked frame;
                const msgpack_object *records;

                assert_true(next_frame(client, &frame));
                records = get(&frame.data, "records");
                assert_non_null(records);
                assert_int_equal(records->via.bin.size % 8, 0);
                buffer_append(&client->records, records->via.bin.ptr, records->via.bin.size);
                drop_frame(client, &frame);
        }
        free(record);
        record = malloc(4096);
        {
                uint32_t size;

                memcpy(&size, client->records.bytes + client->records.start, 4);
                assert_in_range(size, 16, 4096);
                memcpy(record, client->records.bytes + client->records.start, size);
                buffer_take(&client->records, (size + 7) & ~7u);
        }
        return record;
}

static inline struct smv_record_end *expect_end(struct client *client, uint32_t stream)
{
        struct smv_record *record = next_record(client);

        assert_int_equal(record->type, SMV_RECORD_END);
        assert_int_equal(record->stream, stream);
        return (struct smv_record_end *)(record + 1);
}

/* This uid's usage of one kind, of {connections, requests, prompt_bytes, ring_bytes}. */
static inline uint64_t charge_of(struct client *client, const char *kind)
{
        msgpack_unpacked reply;
        const msgpack_object *charges;
        uint64_t held = 0;

        ask_plain(client, "status", 999);
        assert_true(next_reply(client, &reply));
        charges = get(get(&reply.data, "status"), "users");
        if (charges->via.array.size)
                held = get_uint(&charges->via.array.ptr[0], kind);
        drop_frame(client, &reply);
        return held;
}

#endif
