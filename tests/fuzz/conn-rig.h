/*
 * The world of fuzz-conn: its clients, and short versions of the scribe, the
 * engine and the waker that keep the daemon's rules without a thread and move
 * when the script lets them.
 */
#ifndef TESTS_FUZZ_CONN_RIG_H
#define TESTS_FUZZ_CONN_RIG_H

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/channel.h"
#include "daemon/edge/edge.h"
#include "daemon/edge/peer.h"
#include "daemon/engine/publish.h"
#include "daemon/log.h"
#include "daemon/sys.h"
#include "daemon/text/scribe.h"

#define CLIENTS      3u
#define REQUESTS     16u
#define CHANNELS     8u
#define VOCAB        300u
#define BOS          256u
#define MAILS        128u
#define FRAMES_MAX   32u
#define PENDING_MAX  (16u << 10)
#define STREAMS      16u   /* ids whose sequence a client follows */
#define SCRIPT_MAX   192u  /* bytes: what a script can say in so many is enough */
#define TOKENS_MAX   1400u /* of a script: two halves of a ring */
#define TURNS_MAX    256u  /* until it is quiet */
#define QUIET_TURNS  3u
#define RUNS_A_COUNT 1000u /* scripts between two looks at the descriptors */

struct script {
        const uint8_t *at, *end;
};

struct client {
        int fd;
        struct buffer out, in;
        uint32_t sequences[STREAMS];
};

struct world {
        /* for all scripts */
        struct config config;
        struct stats stats;
        struct served served;
        int bell;
        struct mailbox *to_engine, *to_waker, *from_waker, *to_scribe, *from_scribe;
        struct buffer frames[FRAMES_MAX];
        uint32_t frame_count, runs, descriptors;

        /* for one */
        struct edge *edge;
        struct loop_timer *tick;
        struct script script;
        struct client clients[CLIENTS];
        bool cleaning, drained, failed;
        uint32_t turns, quiet, tokens;

        /* the engine */
        struct publish *publish;
        struct request *live[REQUESTS]; /* by number */
        struct mail ends[REQUESTS];     /* of those that are ending: how */
        uint32_t outputs[REQUESTS];
};

static struct world world;

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

static void make_hello(uint32_t id, uint32_t low, uint32_t high)
{
        struct wire_writer writer;

        open_frame(&writer, 1, "hello", id);
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

/* So many that their replies do not fit into the socket. */
static void make_many(const char *op, uint32_t id, uint32_t times)
{
        struct buffer *one = &world.frames[world.frame_count], *many = one + 1;

        make_plain(op, id);
        make_raw("", 0);
        for (uint32_t i = 0; i < times; i++)
                assert(!buffer_append(many, one->bytes + one->start, buffer_count(one)));
}

static void make_frames(void)
{
        make_hello(1, 0, 0); /* script bytes name these by their order: append only */
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
        make_many("status", 12, 24);
        make_raw("\0\0\0\0", 4);
        make_raw("\0\x80\x01\0\x81", 5); /* 96 KiB are announced */
        make_hello(2, 4, 9);
        make_ids("detokenize", 4, VOCAB - 1);
        make_plain("nonsense", 3);
        make_text("generate", 3, "model", "another");
        make_raw("\xff\xff\xff\x7f", 4);
        make_text("tokenize", 4, "text", "");
}

/* ---- clients ---- */

static void connect_client(struct client *client)
{
        const int least = 1; /* the kernel makes its minimum of it */
        int fds[2];

        if (client->fd >= 0)
                return;
        assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
        assert(!setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)));
        client->fd = fds[0];
        buffer_init(&client->out, PENDING_MAX);
        buffer_init(&client->in, 1u << 20);
        memset(client->sequences, 0, sizeof(client->sequences));
        edge_arrive(world.edge, fds[1]);
}

static void close_client(struct client *client)
{
        if (client->fd < 0)
                return;
        client->fd = sys_close(client->fd);
        buffer_deinit(&client->out);
        buffer_deinit(&client->in);
}

static void push(struct client *client, size_t most)
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

static void say(struct client *client, const void *bytes, size_t count)
{
        if (client->fd >= 0 && count)
                (void)buffer_append(&client->out, bytes, count); /* or he says no more */
}

static void check_record(struct client *client, const struct smv_record *record)
{
        uint32_t *next = &client->sequences[record->stream % STREAMS];

        assert(record->type == SMV_RECORD_TOKENS || record->type == SMV_RECORD_END);
        if (record->stream >= STREAMS)
                return;
        assert(record->sequence == *next);
        *next = record->type == SMV_RECORD_END ? 0 : *next + 1;
}

/* {records: bin}, which is whole records; other frames are replies. */
static void check_frame(struct client *client, const uint8_t *body, size_t count)
{
        static const uint8_t head[] = "\x81\xa7records";
        size_t at = sizeof(head) - 1;

        assert(wire_scan(body, count));
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

static void listen_to_edge(struct client *client, size_t most)
{
        struct buffer *in = &client->in;
        struct wire_problem problem;
        const uint8_t *body;
        size_t bytes;
        ssize_t n;
        int r;

        if (client->fd < 0)
                return;
        r = buffer_reserve(in, most);
        assert(!r);
        n = sys_read(client->fd, in->bytes + in->end, most);
        if (n <= 0)
                return;
        in->end += (size_t)n;
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

/* ---- the scribe ---- */

static int encode(struct scribe_job *job)
{
        size_t most = tokenizer_ids_max(job->tokenizer, job->text_bytes) + 1;

        job->ids = malloc(most * sizeof(*job->ids));
        assert(job->ids);
        if (job->first_id != UINT32_MAX)
                job->ids[job->id_count++] = job->first_id;
        job->id_count += tokenizer_encode(job->tokenizer, job->text, job->text_bytes,
                                          job->ids + job->id_count);
        return 0;
}

static int decode(struct scribe_job *job)
{
        job->text = malloc(job->id_count * tokenizer_piece_max(job->tokenizer) + 1);
        assert(job->text);
        for (size_t i = 0; i < job->id_count; i++) {
                size_t bytes;
                const char *piece = tokenizer_piece(job->tokenizer, job->ids[i], &bytes);

                memcpy(job->text + job->text_bytes, piece, bytes);
                job->text_bytes += bytes;
        }
        return 0;
}

static bool scribe(void)
{
        struct scribe_job *job;
        struct mail mail;

        if (!mailbox_take(world.to_scribe, &mail, 1, 0))
                return false;
        if (mail.kind == MAIL_STOP)
                return true;
        assert(mail.kind == MAIL_JOB);
        job = mail.what;
        if (atomic_load(&job->cancelled))
                job->result = -ECANCELED;
        else
                job->result = job->work == SCRIBE_ENCODE ? encode(job) : decode(job);
        mailbox_post(world.from_scribe, &(struct mail){ .kind = MAIL_JOB_DONE, .what = job });
        return true;
}

/* ---- the engine ---- */

static void post(enum mail_kind kind, void *what, int result)
{
        mailbox_post(world.to_waker,
                     &(struct mail){ .kind = kind, .what = what, .result = result });
}

static void end_so(struct request *request, enum smv_reason reason, enum smv_code code)
{
        if (request->state == REQUEST_ENDING)
                return;
        request_move(request, REQUEST_ENDING);
        world.ends[request->number] = (struct mail){ .reason = reason, .code = code };
}

/* As the engine's step does: END, RETIRED, then both are shown, then the channel goes. */
static void retire(struct request *request, enum smv_reason reason, enum smv_code code)
{
        struct channel *channel = request->channel;

        end_so(request, reason, code);
        publish_end(world.publish, request, world.ends[request->number].reason,
                    world.ends[request->number].code);
        request_move(request, REQUEST_RETIRED);
        world.live[request->number] = NULL;
        channel->live_count--;
        post(MAIL_RETIRED, request, 0);
        publish_flush(world.publish);
        if (!channel->live_count && channel->hung_up)
                post(MAIL_CHANNEL_GONE, channel, 0);
}

static void on_submit(struct request *request)
{
        assert(request->number < REQUESTS && !world.live[request->number]);
        assert(request->state == REQUEST_WAITING && !request->channel->hung_up);
        assert(request->prompt_count && request->max_tokens);
        world.live[request->number] = request;
        world.outputs[request->number] = 0;
        request->channel->live_count++;
        publish_begin(world.publish, request);
        if (world.failed)
                end_so(request, SMV_END_ERROR, SMV_INTERNAL);
}

static void on_cancel(const struct mail *mail)
{
        struct request *request = mail->what;

        if (request->state == REQUEST_RETIRED) {
                post(MAIL_RETIRED, request, 0);
                return;
        }
        request->cancel_taken = true;
        end_so(request, mail->reason, mail->code);
}

static void on_room(struct channel *channel)
{
        channel_lower(&channel->nudging);
        if (channel->stalled)
                ring_resume(&channel->writer);
        channel->stalled = false;
}

static void on_hangup(struct channel *channel)
{
        assert(!channel->hung_up);
        channel->shut = channel->hung_up = true;
        if (!channel->live_count)
                post(MAIL_CHANNEL_GONE, channel, 0);
}

static bool engine(void)
{
        struct mail mail;

        if (!mailbox_take(world.to_engine, &mail, 1, 0))
                return false;
        if (mail.kind == MAIL_SUBMIT)
                on_submit(mail.what);
        else if (mail.kind == MAIL_CANCEL)
                on_cancel(&mail);
        else if (mail.kind == MAIL_ROOM)
                on_room(mail.what);
        else if (mail.kind == MAIL_HANGUP)
                on_hangup(mail.what);
        else if (mail.kind == MAIL_STOP)
                post(MAIL_STOPPED, NULL, 0);
        else
                assert(!"mail that is not for the engine");
        return true;
}

static struct request *nth_live(uint32_t n)
{
        for (uint32_t i = 0; i < REQUESTS; i++)
                if (world.live[(n + i) % REQUESTS])
                        return world.live[(n + i) % REQUESTS];
        return NULL;
}

/* What TOKENS may take; without enough of it, the ring is stalled, unless it was read just now. */
static bool has_room(const struct request *request)
{
        struct channel *channel = request->channel;
        uint64_t room;
        int r;

        if (channel->shut)
                return true;
        r = publish_room(channel, &room);
        assert(!r);
        if (room >= request->record_bytes_max)
                return true;
        if (!channel->stalled)
                channel->stalled = !ring_stall(&channel->writer);
        return false;
}

static void emit(uint32_t n, uint32_t token, uint32_t times)
{
        struct request *request = nth_live(n);
        enum sched_verdict verdict = SCHED_GO_ON;

        if (!request || request->state == REQUEST_ENDING)
                return;
        while (times-- && verdict == SCHED_GO_ON && world.tokens < TOKENS_MAX &&
               has_room(request)) {
                world.tokens++;
                uint32_t *outputs = &world.outputs[request->number];

                verdict = publish_token(world.publish, request, token,
                                        request->prompt_count + *outputs, SCHED_GO_ON);
                if (++*outputs == request->max_tokens)
                        break;
        }
        publish_flush(world.publish);
        if (verdict == SCHED_STOP)
                end_so(request, SMV_END_STOP, SMV_OK);
        else if (world.outputs[request->number] == request->max_tokens)
                end_so(request, SMV_END_LENGTH, SMV_OK);
}

/* Only work fails: an engine that has none is never lost. */
static void fail(void)
{
        if (world.failed || !nth_live(0))
                return;
        world.failed = true;
        for (uint32_t i = 0; i < REQUESTS; i++)
                if (world.live[i])
                        end_so(world.live[i], SMV_END_ERROR, SMV_INTERNAL);
        post(MAIL_FAILED, NULL, -EIO);
}

/* ---- the waker ---- */

static bool waker(void)
{
        struct mail mail;

        if (!mailbox_take(world.to_waker, &mail, 1, 0))
                return false;
        if (mail.kind == MAIL_WAKE) {
                struct channel *channel = mail.what;

                channel_lower(&channel->waking);
                if (!channel_raise(&channel->draining))
                        return true;
        }
        mailbox_post(world.from_waker, &mail);
        return true;
}

#endif
