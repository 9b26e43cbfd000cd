/*
 * The clients of fuzz-conn: the frames that they may send, and their checks of everything that they
 * read: frames that the scan takes, and records in sequence.
 */
#include "tests/fuzz/conn-rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/edge/wire.h"
#include "base/sys.h"

/* ---- frames a client may send ---- */

static void open_frame(struct wire_writer *writer, uint32_t pairs, const char *op, uint32_t id)
{
        struct buffer *frame = &world.frames[world.frame_count++];

        assert(world.frame_count <= FRAMES_MAX);
        buffer_init(frame, PENDING_MAX);
        wire_begin(writer, frame);
        wire_put_map(writer, pairs + 2);
        wire_put_text(writer, "op");
        wire_put_text(writer, op);
        wire_put_text(writer, "id");
        wire_put_uint(writer, id);
}

static void close_frame(struct wire_writer *writer)
{
        int r = wire_end(writer);

        assert(!r);
}

static void make_plain(const char *op, uint32_t id)
{
        struct wire_writer writer;

        open_frame(&writer, 0, op, id);
        close_frame(&writer);
}

/* transport NULL: hello does not say how records are to come.  Descriptors that come are lost when
 * the client reads. */
static void make_hello(uint32_t id, uint32_t low, uint32_t high, const char *transport)
{
        struct wire_writer writer;

        open_frame(&writer, transport ? 2 : 1, "hello", id);
        if (transport) {
                wire_put_text(&writer, "transport");
                wire_put_text(&writer, transport);
        }
        wire_put_text(&writer, "versions");
        wire_put_array(&writer, 2);
        wire_put_uint(&writer, low);
        wire_put_uint(&writer, high);
        close_frame(&writer);
}

static void make_ids(const char *op, uint32_t id, uint32_t first)
{
        struct wire_writer writer;

        open_frame(&writer, 1, op, id);
        wire_put_text(&writer, "tokens");
        wire_put_array(&writer, 3);
        for (uint32_t i = 0; i < 3; i++)
                wire_put_uint(&writer, first + i);
        close_frame(&writer);
}

static void make_text(const char *op, uint32_t id, const char *field, const char *text)
{
        struct wire_writer writer;

        open_frame(&writer, 1, op, id);
        wire_put_text(&writer, field);
        wire_put_bytes(&writer, text, strlen(text));
        close_frame(&writer);
}

/* A conversation of one message, whose content is nil if the template is to refuse it. */
static void make_message(const char *op, uint32_t id, const char *content)
{
        struct wire_writer writer;

        open_frame(&writer, 1, op, id);
        wire_put_text(&writer, "messages");
        wire_put_array(&writer, 1);
        wire_put_map(&writer, 2);
        wire_put_text(&writer, "role");
        wire_put_text(&writer, "user");
        wire_put_text(&writer, "content");
        if (content)
                wire_put_text(&writer, content);
        else
                wire_put_array(&writer, 0);
        close_frame(&writer);
}

static void make_stops(uint32_t id)
{
        struct wire_writer writer;

        open_frame(&writer, 3, "generate", id);
        wire_put_text(&writer, "prompt");
        wire_put_bytes(&writer, "until", 5);
        wire_put_text(&writer, "max_tokens");
        wire_put_uint(&writer, 2000);
        wire_put_text(&writer, "stop");
        wire_put_array(&writer, 2);
        wire_put_text(&writer, "AB");
        wire_put_text(&writer, "\xc3\xa9");
        close_frame(&writer);
}

static void make_cancel(uint32_t id, uint32_t stream)
{
        struct wire_writer writer;

        open_frame(&writer, 1, "cancel", id);
        wire_put_text(&writer, "stream");
        wire_put_uint(&writer, stream);
        close_frame(&writer);
}

static void make_raw(const void *bytes, size_t count)
{
        struct buffer *frame = &world.frames[world.frame_count++];

        assert(world.frame_count <= FRAMES_MAX);
        buffer_init(frame, PENDING_MAX);
        assert(!buffer_append(frame, bytes, count));
}

/* `times` requests whose replies do not fit into the socket; FLOODS_MAX floods do not fit into the
 * daemon either. */
static void make_flood(const char *op, uint32_t id, uint32_t times)
{
        struct buffer *one = &world.frames[world.frame_count], *flood = one + 1;

        make_plain(op, id);
        make_raw("", 0);
        for (uint32_t i = 0; i < times; i++)
                assert(!buffer_append(flood, one->bytes + one->start, buffer_count(one)));
        world.flood = flood;
}

/* A frame about a handle; `value` belongs to `field`; field NULL: there is none. */
static void make_held(const char *op, uint32_t id, uint64_t handle, const char *field,
                      uint32_t value)
{
        struct wire_writer writer;

        open_frame(&writer, field ? 2 : 1, op, id);
        wire_put_text(&writer, "handle");
        wire_put_uint(&writer, handle);
        if (field) {
                wire_put_text(&writer, field);
                wire_put_uint(&writer, value);
        }
        close_frame(&writer);
}

static void make_append(uint32_t id, uint64_t handle, bool text)
{
        struct wire_writer writer;

        open_frame(&writer, 2, "append", id);
        wire_put_text(&writer, "handle");
        wire_put_uint(&writer, handle);
        wire_put_text(&writer, text ? "text" : "tokens");
        if (text)
                wire_put_text(&writer, "and on");
        else
                wire_put_array(&writer, 1);
        if (!text)
                wire_put_uint(&writer, 'b');
        close_frame(&writer);
}

static void make_fork(uint32_t id, uint32_t stream, uint32_t max_tokens)
{
        struct wire_writer writer;

        open_frame(&writer, max_tokens ? 3 : 2, "fork", id);
        wire_put_text(&writer, "stream");
        wire_put_uint(&writer, stream);
        wire_put_text(&writer, "count");
        wire_put_uint(&writer, 2);
        if (max_tokens) {
                wire_put_text(&writer, "max_tokens");
                wire_put_uint(&writer, max_tokens);
        }
        close_frame(&writer);
}

static void make_many(uint32_t id, uint32_t n)
{
        struct wire_writer writer;

        open_frame(&writer, 2, "generate", id);
        wire_put_text(&writer, "prompt");
        wire_put_bytes(&writer, "many", 4);
        wire_put_text(&writer, "n");
        wire_put_uint(&writer, n);
        close_frame(&writer);
}

/* The numbers of streams differ in their lowest four bits, so a client can follow each. */
static void make_fork_frames(void)
{
        make_fork(10, 4, 0);
        make_fork(12, 9, 30);
        make_fork(14, 11, 0);
        make_many(16, 3);
        make_fork(19, 17, 0);
        make_cancel(110, 11);
        make_cancel(116, 17);
}

static void make_handle_frames(void)
{
        world.handle_frames = world.frame_count;
        make_ids("open", 12, 'a');
        make_text("open", 13, "prompt", "thirteen");
        make_message("open", 14, "fourteen");
        make_message("open", 14, NULL);
        for (uint64_t handle = 1; handle < 4; handle++) {
                make_held("generate", (uint32_t)handle + 3, handle, "max_tokens", 1000);
                make_append(15, handle, false);
                make_append(16, handle, true);
                make_held("truncate", 17, handle, "length", 2);
                make_held("fork", 18, handle, "count", 2);
                make_held("close", 19, handle, NULL, 0);
        }
}

static void make_publish(uint32_t id, uint64_t handle)
{
        struct wire_writer writer;

        open_frame(&writer, 2, "publish", id);
        wire_put_text(&writer, "handle");
        wire_put_uint(&writer, handle);
        wire_put_text(&writer, "to");
        wire_put_text(&writer, "all");
        close_frame(&writer);
}

static void make_hold_frames(void)
{
        for (uint64_t handle = 1; handle < 4; handle++) {
                make_held("pin", (uint32_t)handle + 3, handle, "pin_ms", 60000);
                make_held("pin", 20, handle, "pin_ms", 0);
                make_publish((uint32_t)handle + 6, handle);
                make_held("revoke", 22, handle, NULL, 0);
        }
}

/* A frame with two fields beside the id; `other` may be NULL. */
static void make_two(const char *op, uint32_t id, const char *field, uint64_t value,
                     const char *other, uint64_t other_value)
{
        struct wire_writer writer;

        open_frame(&writer, other ? 2 : 1, op, id);
        wire_put_text(&writer, field);
        wire_put_uint(&writer, value);
        if (other)
                wire_put_text(&writer, other);
        if (other)
                wire_put_uint(&writer, other_value);
        close_frame(&writer);
}

/* Ids of these streams are beyond those whose sequence is followed, because a stream may be
 * attached anywhere. */
static void make_kept(uint32_t id)
{
        struct wire_writer writer;

        open_frame(&writer, 2, "generate", id);
        wire_put_text(&writer, "prompt");
        wire_put_bytes(&writer, "keep", 4);
        wire_put_text(&writer, "keep_ms");
        wire_put_uint(&writer, 1);
        close_frame(&writer);
}

/* With keep_ms if it is not 0. */
static void make_parts(uint32_t id, uint32_t keep_ms)
{
        struct wire_writer writer;

        open_frame(&writer, keep_ms ? 3 : 2, "generate", id);
        wire_put_text(&writer, "prompt");
        wire_put_bytes(&writer, "<think>", 7);
        wire_put_text(&writer, "parts");
        wire_put_bool(&writer, true);
        if (keep_ms) {
                wire_put_text(&writer, "keep_ms");
                wire_put_uint(&writer, keep_ms);
        }
        close_frame(&writer);
}

/* A prompt, and one more field with a text. */
static void make_form(uint32_t id, const char *field, const char *text)
{
        struct wire_writer writer;

        open_frame(&writer, 3, "generate", id);
        wire_put_text(&writer, "prompt");
        wire_put_text(&writer, "form");
        wire_put_text(&writer, "max_tokens");
        wire_put_uint(&writer, 20);
        wire_put_text(&writer, field);
        wire_put_text(&writer, text);
        close_frame(&writer);
}

/* The client is asked for a mask or for a token. */
static void make_asking(uint32_t id, const char *kind, bool whole_row)
{
        struct wire_writer writer;

        open_frame(&writer, 4, "generate", id);
        wire_put_text(&writer, "prompt");
        wire_put_text(&writer, "asked");
        wire_put_text(&writer, "ask");
        wire_put_text(&writer, kind);
        wire_put_text(&writer, "row_top");
        wire_put_uint(&writer, 3);
        wire_put_text(&writer, "whole_row");
        wire_put_bool(&writer, whole_row);
        close_frame(&writer);
}

static void make_hello_with_slots(uint32_t id, const char *transport, uint32_t slots)
{
        struct wire_writer writer;

        open_frame(&writer, 4, "hello", id);
        wire_put_text(&writer, "versions");
        wire_put_array(&writer, 2);
        wire_put_uint(&writer, 0);
        wire_put_uint(&writer, 0);
        wire_put_text(&writer, "transport");
        wire_put_text(&writer, transport);
        wire_put_text(&writer, "ask_slots");
        wire_put_uint(&writer, slots);
        wire_put_text(&writer, "whole_rows");
        wire_put_bool(&writer, true);
        close_frame(&writer);
}

static void make_form_frames(void)
{
        make_form(4, "constraint", "{\"choices\":[\"a\",\"bc\"]}");
        make_form(5, "constraint", "{\"schema\":{\"type\":\"boolean\"}}");
        make_form(6, "constraint", "{\"regex\":\"(\"}");
        make_hello_with_slots(1, "ring", 2);
        make_hello_with_slots(2, "auto", 1);
        make_asking(7, "mask", false);
        make_asking(8, "token", true);
        make_asking(9, "token", false);
}

static void make_kept_frames(void)
{
        world.kept_frames = world.frame_count;
        for (uint32_t id = STREAMS; id < STREAMS + 3; id++)
                make_kept(id);
        for (uint64_t kept = 1; kept < 4; kept++) {
                make_two("attach", STREAMS + 2, "resume_id", kept, NULL, 0);
                make_two("attach", STREAMS + 3, "resume_id", kept, "from", kept);
                make_two("drop", 120, "resume_id", kept, NULL, 0);
        }
        for (uint32_t id = STREAMS; id < STREAMS + 4; id++)
                make_two("detach", 121, "stream", id, NULL, 0);
        make_two("cancel", 122, "stream", STREAMS, NULL, 0);
        make_two("fork", 123, "handle", 1, "count", 1);
}

void make_frames(void)
{
        make_hello(1, 0, 0, NULL); /* script bytes name these by their order: append only */
        for (uint32_t id = 4; id < 7; id++)
                make_ids("generate", id, 'a');
        make_text("generate", 7, "prompt", "seven");
        make_text("generate", 8, "prompt", "");
        make_stops(9);
        make_stops(4);
        for (uint32_t id = 4; id < 10; id++)
                make_cancel(id + 100, id);
        make_text("tokenize", 10, "text", "caf\xc3\xa9");
        make_ids("detokenize", 11, 'A');
        make_flood("status", 12, 8);
        make_raw("\0\0\0\0", 4);
        make_raw("\0\x80\x01\0\x81", 5); /* it announces 96 KiB */
        make_hello(2, 4, 9, NULL);
        make_ids("detokenize", 4, VOCAB - 1);
        make_plain("nonsense", 3);
        make_text("generate", 3, "model", "another");
        make_raw("\xff\xff\xff\x7f", 4);
        make_text("tokenize", 4, "text", "");
        make_hello(1, 0, 0, "ring");
        make_hello(2, 0, 0, "auto");
        make_message("generate", 7, "seven");
        make_message("generate", 8, NULL);
        make_message("template", 11, "eleven");
        make_handle_frames();
        make_hold_frames();
        make_fork_frames();
        make_kept_frames();
        make_flood("list", 124, 1);
        for (uint64_t number = 1; number < 4; number++)
                make_two("end", 125, "number", number, NULL, 0);
        make_two("pieces", 126, "from", VOCAB - 2, "length", 9);
        make_ids("pieces", 127, 'a');
        make_parts(5, 0);
        make_parts(STREAMS + 1, 1);
        make_form_frames();
}

/* ---- clients ---- */

void connect_client(struct client *client)
{
        const int least = 1; /* the kernel raises it to its minimum */
        int fds[2];

        if (client->fd >= 0)
                return;
        assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
        assert(!setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)));
        client->fd = fds[0];
        client->ring = false;
        buffer_init(&client->out, PENDING_MAX);
        buffer_init(&client->in, 1u << 20);
        memset(client->sequences, 0, sizeof(client->sequences));
        accept_peer(world.edge, fds[1]);
}

void close_client(struct client *client)
{
        if (client->fd < 0)
                return;
        client->fd = sys_close(client->fd);
        buffer_deinit(&client->out);
        buffer_deinit(&client->in);
}

void push(struct client *client, size_t most)
{
        size_t count = buffer_count(&client->out);
        ssize_t n;

        if (client->fd < 0 || !count)
                return;
        n = sys_send(client->fd, client->out.bytes + client->out.start,
                     count < most ? count : most);
        if (n > 0)
                buffer_take(&client->out, (size_t)n);
}

void say(struct client *client, const void *bytes, size_t count)
{
        /* if it does not fit, the client says no more */
        if (client->fd >= 0 && count)
                (void)buffer_append(&client->out, bytes, count);
}

static void check_record(struct client *client, const struct smv_record *record)
{
        uint32_t *next = &client->sequences[record->stream % STREAMS];

        assert(record->type == SMV_RECORD_TOKENS || record->type == SMV_RECORD_PARTS ||
               record->type == SMV_RECORD_ROW || record->type == SMV_RECORD_ASK ||
               record->type == SMV_RECORD_END);
        if (record->stream >= STREAMS)
                return;
        assert(record->sequence == *next);
        *next = record->type == SMV_RECORD_END ? 0 : *next + 1;
}

/* {records: bin} must hold whole records; other frames are replies. */
static void check_frame(struct client *client, const uint8_t *body, size_t count)
{
        static const uint8_t head[] = "\x81\xa7records";
        static const uint8_t ring[] = "\xa9transport\xa4ring";
        size_t at = sizeof(head) - 1;

        if (!count) {
                assert(client->ring); /* only a client with a ring gets a kick */
                return;
        }
        assert(wire_scan(body, count));
        if (memmem(body, count, ring, sizeof(ring) - 1))
                client->ring = true;
        if (count < at || memcmp(body, head, at))
                return;
        assert(count > at + 2 && body[at] >= 0xc4 && body[at] <= 0xc6);
        at += 1 + (1u << (body[at] - 0xc4));
        assert(at < count);
        while (at < count) {
                struct smv_record record;

                assert(count - at >= sizeof(record));
                memcpy(&record, body + at, sizeof(record));
                assert(record.size >= sizeof(record) && record.size <= count - at);
                check_record(client, &record);
                at += (record.size + SMV_RING_ALIGN - 1) & ~(SMV_RING_ALIGN - 1);
        }
        assert(at == count);
}

void listen_to_edge(struct client *client, size_t most)
{
        /* read here first, so that `in` grows only by the bytes that there are */
        static uint8_t read[READ_MAX];
        struct buffer *in = &client->in;
        struct wire_problem problem;
        const uint8_t *body;
        size_t bytes;
        ssize_t n;
        int r;

        assert(most <= sizeof(read));
        if (client->fd < 0)
                return;
        n = sys_read(client->fd, read, most);
        if (n <= 0)
                return;
        r = buffer_append(in, read, (size_t)n);
        assert(!r);
        while (buffer_count(in)) {
                r = wire_frame(in->bytes + in->start, buffer_count(in), 1u << 20, &bytes, &body,
                               &problem);
                if (r == WIRE_E_PARTIAL)
                        return;
                assert(!r);
                check_frame(client, body, bytes - 4);
                buffer_take(in, bytes);
        }
}
