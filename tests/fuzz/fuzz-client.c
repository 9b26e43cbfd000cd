/*
 * libsamovar with a hostile daemon.
 *
 * The input is a script.  Its steps ask requests, send replies of any shape, frames of records, raw
 * bytes, and damaged lengths; with a ring they also put records there, write over any of its bytes,
 * and publish.  The program reads events between them.  It looks at each byte that an event points
 * at, and keeps a list of its own: an event belongs to a request that was asked, or to a stream
 * that has begun and has not ended.  At the end the daemon hangs up.  Then each stream has had
 * exactly one END, unless it was detached, and each request exactly one REPLY.
 */
#include <assert.h>
#include <fcntl.h>
#include <samovar/client.h>
#include <samovar/ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shm/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);

#define IDS        64u   /* of requests and streams that are followed */
#define DATA       4096u /* bytes of the ring */
#define FRAME_MAX  4096u
#define STEPS_MAX  300u
#define EVENTS_MAX 3000u
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The events that the program expects under an id. */
enum expects {
        NOTHING,
        A_REPLY,  /* of a request */
        AN_END,   /* of a stream that has begun */
        ANYTHING, /* a detach crosses the events of the stream */
};

static struct {
        struct smv_client *client;
        int daemon; /* the other end of the socket */
        const uint8_t *at, *end;
        uint8_t frame[FRAME_MAX];
        size_t bytes; /* of the frame */
        enum expects expects[IDS];
        uint8_t begins[IDS];    /* streams that the request begins */
        uint8_t detaches[IDS];  /* the stream that the request detaches */
        uint32_t sequence[IDS]; /* of records that were sent */
        uint8_t *d, *c;         /* the segments, with the right to write; NULL: there is no ring */
        struct ring_writer writer;
        uint64_t seen; /* so that reading is not left out */
} w;

static uint8_t next(void)
{
        return w.at < w.end ? *w.at++ : 0;
}

/* ---- what the daemon sends ---- */

static void put(const void *bytes, size_t count)
{
        if (count > FRAME_MAX - w.bytes)
                count = FRAME_MAX - w.bytes;
        memcpy(w.frame + w.bytes, bytes, count);
        w.bytes += count;
}

static void put_byte(unsigned value)
{
        put(&(uint8_t){ (uint8_t)value }, 1);
}

static void put_text(const char *text)
{
        put_byte(0xd9);
        put_byte((unsigned)strlen(text));
        put(text, strlen(text));
}

static void put_number(uint64_t value)
{
        put_byte(0xcf);
        for (unsigned shift = 64; shift; shift -= 8)
                put_byte(value >> (shift - 8) & 0xff);
}

static void begin_frame(void)
{
        w.bytes = 0;
        put("\0\0\0", 4);
}

/* A socket that is full loses the rest, as if the daemon had stopped there. */
static void send_all(const void *bytes, size_t count)
{
        (void)!send(w.daemon, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_frame(uint32_t too_much)
{
        uint32_t length = (uint32_t)(w.bytes - 4) + too_much;

        memcpy(w.frame, &length, 4);
        send_all(w.frame, w.bytes);
}

static uint64_t any_number(void)
{
        static const uint64_t numbers[] = {
                0, 1, 2, 255, 4096, UINT32_MAX, UINT32_MAX + 1ull, INT64_MAX, UINT64_MAX
        };
        uint8_t kind = next();

        return kind < 64 ? kind : numbers[kind % (sizeof(numbers) / sizeof(*numbers))];
}

static void put_any(unsigned depth)
{
        uint8_t kind = next(), count;

        switch (kind % 8) {
        case 0:
                put_number(any_number());
                break;
        case 1:
                put_byte(0xa0 | (kind >> 3));
                for (count = kind >> 3; count; count--)
                        put_byte(next());
                break;
        case 2: /* ids or numbers */
                put_byte(0x90 | (kind >> 3 & 15));
                for (count = kind >> 3 & 15; count; count--)
                        put_number(any_number());
                break;
        case 3:
                put_byte(kind & 8 ? 0xc3 : 0xc2);
                break;
        case 4: /* bytes, as those of pieces */
                put_byte(0xc4);
                put_byte(kind >> 3);
                for (count = kind >> 3; count; count--)
                        put_byte(next());
                break;
        case 5:
                put_byte(0x90 | (kind >> 3 & 3));
                for (count = kind >> 3 & 3; count && depth < 6; count--)
                        put_any(depth + 1);
                break;
        case 6:
                put_byte(0x80 | (kind >> 3 & 3));
                for (count = kind >> 3 & 3; count && depth < 6; count--) {
                        put_text("name");
                        put_any(depth + 1);
                }
                break;
        default:
                put_byte(next());
        }
}

static void put_field(void)
{
        static const char *const names[] = {
                "tokens",   "text",       "pieces",      "kinds",   "vocab",   "handle",
                "handles",  "length",     "resume_id",   "numbers", "status",  "prompt_tokens",
                "wait_ms",  "max_tokens", "temperature", "seed",    "top_p",   "queue_position",
                "retry_ms", "message",    "field",       "error",   "code",    "sequence",
                "id",       "ok",         "records",     "models",  "version", "list",
        };

        put_text(names[next() % (sizeof(names) / sizeof(*names))]);
        put_any(0);
}

static void send_reply(bool ok)
{
        uint32_t id = next() % IDS;
        uint8_t fields = next() % 6, more = next();

        begin_frame();
        put_byte(0x80u | (2u + fields));
        put_text("id");
        put_number(id);
        put_text(ok ? "ok" : "code");
        if (ok)
                put_byte(0xc3);
        else
                put_number(any_number());
        for (uint8_t i = 0; i < fields; i++)
                put_field();
        send_frame(more == 255);
}

static void send_any_frame(void)
{
        uint8_t count = next();

        begin_frame();
        for (; count; count--)
                put_byte(next());
        send_frame(0);
}

/* A head that is right as far as the script does not change it. */
static struct smv_record make_head(uint32_t *ret_payload)
{
        uint8_t stream = next() % IDS, type = next(), wrong = next();
        struct smv_record head = {
                .stream = stream,
                .type = type % 9,
                .flags = type & 128 ? SMV_RECORD_CRITICAL : 0,
                .head_bytes = sizeof(head),
                .sequence = w.sequence[stream],
        };

        *ret_payload = next();
        head.size = (uint32_t)sizeof(head) + *ret_payload;
        if (wrong == 255)
                head.size = (uint32_t)any_number();
        else if (wrong == 254)
                head.sequence = (uint32_t)any_number();
        else if (wrong == 253)
                head.head_bytes = (uint16_t)any_number();
        else
                w.sequence[stream]++;
        return head;
}

/* Small numbers are likely to be counts that fit. */
static void fill_payload(uint8_t *payload, uint32_t count)
{
        memset(payload, 0, count);
        for (uint32_t i = 0; i < count && w.at < w.end; i++) {
                uint8_t byte = next();

                if (byte == 254) /* leaves out some zeros */
                        i += next();
                else
                        payload[i] = byte;
        }
}

static void send_records(void)
{
        uint8_t count = 1 + next() % 4, payload[256];
        size_t bin, length;
        uint32_t bytes;

        begin_frame();
        put_byte(0x81);
        put_text("records");
        put_byte(0xc6);
        bin = w.bytes;
        put("\0\0\0", 4);
        for (; count; count--) {
                struct smv_record head = make_head(&bytes);

                while ((w.bytes - bin - 4) % 8 && w.bytes < FRAME_MAX)
                        put_byte(0);
                put(&head, sizeof(head));
                fill_payload(payload, bytes);
                put(payload, bytes);
        }
        length = w.bytes - bin - 4;
        w.frame[bin + 2] = (uint8_t)(length >> 8);
        w.frame[bin + 3] = (uint8_t)length;
        send_frame(0);
}

/* ---- what it writes into the ring ---- */

static void put_record(void)
{
        uint32_t bytes;
        struct smv_record head = make_head(&bytes);
        void *payload;

        /* Its own head, which is good, is then written over. */
        if (!w.d || ring_put(&w.writer, SMV_RECORD_TOKENS, 0, 1, 0, bytes, &payload))
                return;
        memcpy((uint8_t *)payload - sizeof(head), &head, sizeof(head));
        fill_payload(payload, bytes);
}

static void damage_ring(void)
{
        uint32_t at = next() | (uint32_t)next() << 8;
        uint8_t count = 1 + next() % 8;

        for (; w.d && count; count--, at++)
                w.d[at % ring_segment_bytes(DATA)] = next();
}

static void publish(void)
{
        if (w.d)
                ring_publish(&w.writer);
        send_all("\0\0\0", 4);
}

/* ---- the program ---- */

static void note_request(int r, uint32_t id, uint8_t streams)
{
        if (r || id >= IDS)
                return;
        assert(w.expects[id] == NOTHING);
        w.expects[id] = A_REPLY;
        w.begins[id] = streams;
        w.detaches[id] = 0;
        w.sequence[id] = 0;
}

static void ask_generate(void)
{
        static const char *const stops[] = { "stop" };
        uint8_t kind = next();
        struct smv_generate o = { SMV_SIZE(smv_generate), .prompt = "Once" };
        uint32_t id = 0;

        o.n = kind % 4;
        o.keep_ms = kind & 4 && o.n < 2 ? 1000 : 0;
        o.parts = kind >> 3 & 1;
        o.logprobs = kind >> 4 & 3;
        o.stops = stops;
        o.stop_count = kind >> 6 & 1;
        note_request(smv_ask_generate(w.client, &o, &id), id, o.n ? o.n : 1);
}

static void ask_detach(uint8_t stream)
{
        uint32_t id = 0;
        int r = smv_ask_detach(w.client, stream, &id);

        note_request(r, id, 0);
        if (!r && id < IDS && stream < IDS)
                w.detaches[id] = stream;
}

static void ask_other(void)
{
        static const uint32_t ids[] = { 1, 2, 3 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 2 };
        uint8_t what = next(), which = next();
        uint32_t id = 0, forks[2] = { 0 };

        switch (what % 14) {
        case 0:
                note_request(smv_ask_tokenize(w.client, NULL, "text", 4, &id), id, 0);
                break;
        case 1:
                note_request(smv_ask_detokenize(w.client, NULL, ids, 3, &id), id, 0);
                break;
        case 2:
                note_request(smv_ask_pieces(w.client, NULL, ids, 1 + which % 3, &id), id, 0);
                break;
        case 3:
                note_request(smv_ask_vocabulary(w.client, NULL, which, 0, &id), id, 0);
                break;
        case 4:
                note_request(smv_ask_status(w.client, &id), id, 0);
                break;
        case 5:
                note_request(smv_ask_list(w.client, &id), id, 0);
                break;
        case 6:
                note_request(smv_ask_attach(w.client, 1 + which, 0, &id), id, 1);
                break;
        case 7:
                ask_detach(which % IDS);
                break;
        case 8:
                note_request(smv_ask_fork(w.client, which % IDS, &fork, forks), forks[0], 2);
                break;
        case 9:
                note_request(smv_ask_handle_append(w.client, 1 + which, ids, 3, &id), id, 0);
                break;
        case 10:
                note_request(smv_ask_handle_fork(w.client, 1 + which, 0, &id), id, 0);
                break;
        case 11:
                note_request(smv_ask_handle_pin(w.client, 1 + which, 0, SMV_PRIORITY_NORMAL, &id),
                             id, 0);
                break;
        case 12:
                note_request(smv_ask_drop(w.client, 1 + which, &id), id, 0);
                break;
        default:
                smv_cancel(w.client, which % IDS);
        }
}

static void look_at(const void *bytes, size_t count)
{
        for (size_t i = 0; i < count; i++)
                w.seen += ((const uint8_t *)bytes)[i];
}

/* Each byte that it points at must be there. */
static void look(const struct smv_event *e)
{
        if (e->tokens)
                look_at(e->tokens, e->token_count * sizeof(*e->tokens));
        if (e->text)
                look_at(e->text, e->text_bytes);
        if (e->logprobs)
                look_at(e->logprobs, e->token_count * (1 + e->top_count) * sizeof(*e->logprobs));
        if (e->parts)
                look_at(e->parts, e->part_count * sizeof(*e->parts));
        for (size_t i = 0; e->pieces && i < e->piece_count; i++)
                look_at(e->pieces[i].bytes, e->pieces[i].count);
}

static void take_reply(const struct smv_event *e)
{
        uint32_t id = e->stream;

        if (id >= IDS)
                return;
        assert(w.expects[id] == A_REPLY);
        w.expects[id] = NOTHING;
        if (e->code == SMV_OK && w.expects[w.detaches[id]] == AN_END)
                w.expects[w.detaches[id]] = ANYTHING;
        for (uint32_t i = id; e->code == SMV_OK && i < id + w.begins[id] && i < IDS; i++)
                w.expects[i] = AN_END;
}

static void take_event(const struct smv_event *e)
{
        look(e);
        if (e->kind == SMV_EVENT_REPLY) {
                take_reply(e);
                return;
        }
        if (e->stream >= IDS)
                return;
        assert(w.expects[e->stream] == AN_END || w.expects[e->stream] == ANYTHING);
        if (e->kind == SMV_EVENT_END)
                w.expects[e->stream] = NOTHING;
}

static int read_event(void)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        int r = smv_next(w.client, &e, 0);

        if (r > 0)
                take_event(&e);
        return r;
}

/* ---- a run ---- */

static int segment(size_t bytes, void **ret_at)
{
        int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert(fd >= 0 && !ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, SEALS));
        *ret_at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert(*ret_at != MAP_FAILED);
        return fd;
}

/* The client wants a descriptor of the ring with which it cannot write. */
static int read_only(int fd)
{
        char path[64];
        int again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDONLY | O_CLOEXEC);
        assert(again >= 0);
        close(fd);
        return again;
}

static void send_with(const int fds[2])
{
        union {
                struct cmsghdr first;
                char bytes[CMSG_SPACE(2 * sizeof(int))];
        } control = { 0 };
        struct iovec part = { w.frame, w.bytes };
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof(control) };

        control.first.cmsg_level = SOL_SOCKET;
        control.first.cmsg_type = SCM_RIGHTS;
        control.first.cmsg_len = CMSG_LEN(2 * sizeof(int));
        memcpy(CMSG_DATA(&control.first), fds, 2 * sizeof(int));
        assert(sendmsg(w.daemon, &message, MSG_NOSIGNAL) == (ssize_t)w.bytes);
}

static void put_segment(const char *kind, unsigned at, uint64_t bytes)
{
        put_byte(0x83);
        put_text("kind");
        put_text(kind);
        put_text("fd");
        put_number(at);
        put_text("bytes");
        put_number(bytes);
}

static void welcome_with_ring(void)
{
        int fds[2];

        fds[0] = read_only(segment(ring_segment_bytes(DATA), (void **)&w.d));
        fds[1] = segment(sizeof(struct smv_ring_control), (void **)&w.c);
        ring_writer_init(&w.writer, w.d, (void *)w.c, DATA);
        put_text("transport");
        put_text("ring");
        put_text("segments");
        put_byte(0x92);
        put_segment("ring", 0, ring_segment_bytes(DATA));
        put_segment("control", 1, sizeof(struct smv_ring_control));
        memcpy(w.frame, &(uint32_t){ (uint32_t)(w.bytes - 4) }, 4);
        send_with(fds);
        close(fds[0]);
        close(fds[1]);
}

/* The answer to hello is good, or any fields; then the daemon says nothing more. */
static void welcome(uint8_t how)
{
        uint8_t fields = how & 2 ? next() % 8 : 0;

        begin_frame();
        put_byte(0x84u + (how & 1 ? 2 : 0) + fields);
        put_text("id");
        put_number(1);
        put_text("ok");
        put_byte(0xc3);
        put_text("version");
        put_number(0);
        put_text("frame_bytes");
        put_number(8u << 20);
        for (uint8_t i = 0; i < fields; i++)
                put_field();
        if (how & 1)
                welcome_with_ring();
        else
                send_frame(0);
}

static bool start(uint8_t how)
{
        struct smv_connect o = { SMV_SIZE(smv_connect), .use_fd = 1, .timeout_ms = 1000 };
        int pair[2];

        assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
        w.daemon = pair[0];
        o.fd = pair[1];
        o.doorbell = SMV_DOORBELL_KICK;
        welcome(how);
        if (how & 2)
                shutdown(w.daemon, SHUT_WR); /* it must not wait for more */
        return !smv_connect(&o, &w.client);
}

static void step(void)
{
        uint8_t what = next();

        switch (what % 12) {
        case 0:
                ask_generate();
                break;
        case 1:
                ask_other();
                break;
        case 2:
        case 3:
                send_reply(true);
                break;
        case 4:
                send_reply(false);
                break;
        case 5:
                send_any_frame();
                break;
        case 6:
        case 7:
                send_records();
                break;
        case 8:
                put_record();
                break;
        case 9:
                damage_ring();
                break;
        case 10:
                publish();
                break;
        default:
                for (uint8_t i = 0; i <= what / 12 && read_event() > 0; i++)
                        ;
        }
}

/* The daemon hangs up.  Everything gets its end. */
static void finish(void)
{
        uint32_t events = 0;

        close(w.daemon);
        w.daemon = -1;
        while (read_event() > 0)
                assert(++events < EVENTS_MAX);
        for (uint32_t id = 0; id < IDS; id++)
                assert(w.expects[id] == NOTHING || w.expects[id] == ANYTHING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count)
{
        uint8_t how;

        memset(&w, 0, sizeof(w));
        w.at = data;
        w.end = data + count;
        how = next();
        if (start(how)) {
                for (unsigned i = 0; i < STEPS_MAX && w.at < w.end; i++)
                        step();
                finish();
        }
        smv_close(w.client);
        if (w.daemon >= 0)
                close(w.daemon);
        if (w.d)
                munmap(w.d, ring_segment_bytes(DATA));
        if (w.c)
                munmap(w.c, sizeof(struct smv_ring_control));
        return 0;
}
