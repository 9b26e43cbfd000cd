/*
 * The client: made, read, ended.
 *
 * A connection that is lost is not an error of one call but a state: what came
 * whole before is still read, then each living stream gets its one END, and from
 * then on every call says -ENOTCONN at once.
 */
#include "client/private.h"

#include <errno.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/record.h"

#define CONNECT_MS 10000

int client_take(void *ours, size_t our_bytes, const void *theirs)
{
        size_t size;

        memcpy(&size, theirs, sizeof(size));
        if (size < sizeof(size))
                return -EINVAL;
        for (size_t i = our_bytes; i < size; i++)
                if (((const char *)theirs)[i])
                        return -E2BIG;

        memset(ours, 0, our_bytes);
        memcpy(ours, theirs, size < our_bytes ? size : our_bytes);
        return 0;
}

/* The other way round: `size` is the caller's and stays; what only he knows is zero. */
static void give(void *theirs, void *ours, size_t our_bytes)
{
        size_t size;

        memcpy(&size, theirs, sizeof(size));
        memcpy(ours, &size, sizeof(size));
        memcpy(theirs, ours, size < our_bytes ? size : our_bytes);
        if (size > our_bytes)
                memset((char *)theirs + our_bytes, 0, size - our_bytes);
}

int client_fail(struct smv_client *client, int error, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(client->message, sizeof(client->message), format, args);
        va_end(args);
        client->name[0] = client->field[0] = '\0';
        client->code = SMV_OK;
        return error;
}

static void copy_text(char *to, size_t size, const struct codec_frame *frame, const char *name,
                      const char *otherwise)
{
        struct codec_text text = { otherwise, strlen(otherwise) };

        codec_get_text(frame, name, &text);
        snprintf(to, size, "%.*s", (int)(text.count < size ? text.count : size), text.bytes);
}

void client_refused(struct smv_client *client, const struct codec_frame *frame)
{
        enum smv_code code = frame->code <= INT32_MAX ? (enum smv_code)frame->code : SMV_INTERNAL;

        client->code = code;
        copy_text(client->name, sizeof(client->name), frame, "error", smv_code_name(code));
        copy_text(client->field, sizeof(client->field), frame, "field", "");
        copy_text(client->message, sizeof(client->message), frame, "message", smv_code_text(code));
}

void client_stray(struct smv_client *client, const struct codec_frame *frame)
{
        if (frame->ok || frame->id)
                return;
        client_refused(client, frame);
        client->condemned = true;
}

int client_lost(struct smv_client *client)
{
        const char *why = "the daemon hung up";

        /* What the daemon said before it hung up says more. */
        if (client->code == SMV_OK) {
                if (client->link.lost == -EPROTO)
                        why = "the daemon sent something that is not the protocol";
                else if (client->link.lost == -ENOBUFS)
                        why = "the daemon sent too much before its answer";
                else if (client->link.lost == -ETIMEDOUT)
                        why = "the daemon did not answer in time";
                client_fail(client, 0, "%s", why);
                client->code = SMV_LOST;
                snprintf(client->name, sizeof(client->name), "%s", smv_code_name(SMV_LOST));
        }
        return -ENOTCONN;
}

static void client_forget(struct smv_client *client)
{
        if (!client->link.lost && !client->condemned)
                client_fail(client, 0, "%s", smv_code_text(SMV_OK));
}

int client_begin(struct smv_client *client)
{
        if (client->link.lost)
                return client_lost(client);

        client_forget(client);
        if (!client->records_ahead)
                link_drop(&client->link, client->link.scan);
        return 0;
}

uint32_t client_new_id(struct smv_client *client)
{
        do
                client->last_id++;
        while (!client->last_id || client_stream(client, client->last_id));
        return client->last_id;
}

struct client_stream *client_stream(struct smv_client *client, uint32_t id)
{
        for (size_t i = 0; i < client->stream_count; i++)
                if (client->streams[i].id == id)
                        return &client->streams[i];
        return NULL;
}

/* The order of the others does not matter. */
static void forget_stream(struct smv_client *client, struct client_stream *stream)
{
        *stream = client->streams[--client->stream_count];
}

/* One record to at most one event: 1, 0, -EPROTO or -ENOMEM. */
static int read_record(struct smv_client *client, const struct record *record,
                       struct smv_event *ret_event)
{
        struct client_stream *stream;
        int r;

        if (record->head.type == SMV_RECORD_PAD)
                return 0;
        stream = client_stream(client, record->head.stream);
        if (!stream || record->head.sequence != stream->sequence)
                return -EPROTO;

        switch (record->head.type) {
        case SMV_RECORD_TOKENS:
                r = record_tokens(record, &client->ids, ret_event);
                break;
        case SMV_RECORD_END:
                r = record_end(record, ret_event);
                break;
        default:
                if (record->head.flags & SMV_RECORD_MUST)
                        return -EPROTO;
                stream->sequence++;
                return 0;
        }
        if (r)
                return r;

        stream->sequence++;
        if (ret_event->kind == SMV_EVENT_END)
                forget_stream(client, stream);
        return 1;
}

/*
 * Walks the records frame at the front: 1: an event; 0: it has no more; -ENOMEM.
 * It is dropped with its last record, not a call later, because there may be no
 * later smv_next(); the bytes stay readable until something new is received.
 */
static int walk_frame(struct smv_client *client, struct smv_event *ret_event)
{
        struct link *link = &client->link;
        const char *frame = link->in.at + link->start;
        struct record record;
        int r = 0;

        while (!r && client->record_at < client->record_end) {
                r = record_read(frame + client->record_at, client->record_end - client->record_at,
                                &record);
                if (!r)
                        r = read_record(client, &record, ret_event);
                if (r >= 0)
                        client->record_at += record.step;
        }
        if (r == -ENOMEM || (r > 0 && client->record_at < client->record_end))
                return r;

        if (r < 0) {
                link_lose(link, r, link->start);
                r = 0;
        } else {
                if (link->start < link->scan)
                        client->records_ahead--;
                link_drop(link, link->start + client->frame_bytes);
        }
        client->frame_bytes = 0;
        return r;
}

/*
 * The frame at the front: begins a walk, or is over with.  1: it was whole.
 * Replies here are those that nobody waits for (to a cancel), or were read by
 * looking ahead; only a refusal of the connection itself, with no id, matters.
 */
static int take_frame(struct smv_client *client)
{
        struct link *link = &client->link;
        struct codec_frame frame = { 0 };
        const char *body;
        size_t bytes;
        int r;

        if (!link_frame(link, link->start, &body, &bytes))
                return 0;

        if (bytes) {
                r = codec_decode(&client->codec, body, bytes, &frame);
                if (r == -EPROTO)
                        link_lose(link, r, link->start);
                if (r)
                        return r == -EPROTO ? 0 : r;
        }
        if (frame.records) {
                client->frame_bytes = 4 + bytes;
                client->record_at = (size_t)(frame.records - (link->in.at + link->start));
                client->record_end = client->record_at + frame.records_bytes;
                return 1;
        }
        if (bytes)
                client_stray(client, &frame);
        link_drop(link, link->start + 4 + bytes);
        return 1;
}

/* The next event of what has come in: 1, 0 or -ENOMEM. */
static int next_event(struct smv_client *client, struct smv_event *ret_event)
{
        int r;

        do {
                if (client->frame_bytes) {
                        r = walk_frame(client, ret_event);
                        if (r)
                                return r;
                }
                r = take_frame(client);
        } while (r > 0);

        return r;
}

/* The END that a daemon which is gone owes: 1, or -ENOTCONN when it owes none. */
static int end_lost(struct smv_client *client, struct smv_event *ret_event)
{
        if (!client->stream_count)
                return client_lost(client);

        *ret_event = (struct smv_event){
                .kind = SMV_EVENT_END,
                .stream = client->streams[0].id,
                .reason = SMV_END_ERROR,
                .code = SMV_LOST,
        };
        forget_stream(client, &client->streams[0]);
        return 1;
}

static int wait_event(struct smv_client *client, struct smv_event *ret_event, uint64_t deadline)
{
        int r;

        for (;;) {
                r = next_event(client, ret_event);
                if (r)
                        return r;
                if (client->link.lost)
                        return end_lost(client, ret_event);
                /* With no stream there is nothing to wait for, but something to read. */
                r = link_turn(&client->link, client->stream_count ? deadline : 0);
                if (r < 0)
                        return r;
                if (!r)
                        return client->stream_count ? 0 : -ENODATA;
        }
}

int smv_next(struct smv_client *client, struct smv_event *ret_event, int timeout_ms)
{
        struct smv_event event = { 0 };
        int r;

        /* Checked before anything is taken: an event that cannot be given is not lost. */
        if (ret_event->size < sizeof(ret_event->size))
                return client_fail(client, -EINVAL, "struct smv_event has no size");
        client_forget(client);

        r = wait_event(client, &event, link_deadline(timeout_ms));
        if (r == -ENOMEM)
                client_fail(client, r, "out of memory");
        else if (r == -ENODATA)
                client_fail(client, r, "no stream is alive");
        else if (r > 0)
                give(ret_event, &event, sizeof(event));
        return r;
}

int smv_fd(const struct smv_client *client)
{
        return client->link.fd;
}

void smv_error(const struct smv_client *client, struct smv_problem *ret_problem)
{
        struct smv_problem problem = {
                .code = client->code,
                .name = client->name,
                .field = client->field,
                .message = client->message,
        };

        give(ret_problem, &problem, sizeof(problem));
}

/* The usual place, or -ENAMETOOLONG. */
static int usual_path(char *path, size_t size)
{
        const char *named = getenv("SAMOVAR_SOCKET");
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        int n;

        if (named && *named)
                n = snprintf(path, size, "%s", named);
        else
                n = snprintf(path, size, "%s/" SMV_SOCKET_PATH,
                             runtime && *runtime ? runtime : "/run");
        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/*
 * Whoever can bind the path sees every prompt, so the daemon has to run as us or
 * as root, unless the caller says that it may be anybody.
 */
static int check_uid(struct smv_client *client, const char *path)
{
        int64_t uid = link_peer_uid(&client->link);

        if (uid < 0)
                return client_fail(client, (int)uid, "%s: cannot tell who serves it: %s", path,
                                   strerror((int)-uid));
        if (uid == 0 || uid == (int64_t)geteuid())
                return 0;
        return client_fail(client, -EPERM,
                           "%s is served by uid %lld, which is neither root nor us (uid %lld)",
                           path, (long long)uid, (long long)geteuid());
}

static int open_link(struct smv_client *client, const struct smv_connect *options,
                     uint64_t deadline)
{
        char usual[512];
        const char *path = options->socket;
        int fd;

        if (options->use_fd) {
                link_init(&client->link, options->fd);
                return 0;
        }

        if (!path) {
                if (usual_path(usual, sizeof(usual)) < 0)
                        return client_fail(client, -ENAMETOOLONG, "the socket's path is too long");
                path = usual;
        }
        fd = link_connect(path, deadline);
        if (fd < 0)
                return client_fail(client, fd, "%s: %s", path, strerror(-fd));
        link_init(&client->link, fd);
        return options->any_uid ? 0 : check_uid(client, path);
}

int smv_connect(const struct smv_connect *options, struct smv_client **ret_client)
{
        struct smv_connect o = { 0 };
        struct smv_client *client;
        uint64_t deadline;
        int r;

        r = options ? client_take(&o, sizeof(o), options) : 0;
        if (r)
                return r;
        deadline = link_deadline(o.timeout_ms ? o.timeout_ms : CONNECT_MS);

        client = calloc(1, sizeof(*client));
        if (!client) {
                if (o.use_fd)
                        close(o.fd);
                return -ENOMEM;
        }
        link_init(&client->link, -1);
        client->request_max = SMV_FRAME_BYTES_MAX;
        client->reply_ms = CLIENT_REPLY_MS;

        r = open_link(client, &o, deadline);
        if (!r)
                r = codec_init(&client->codec);
        if (!r)
                r = client_hello(client, deadline);
        if (r) {
                if (o.message && o.message_bytes)
                        snprintf(o.message, o.message_bytes, "%s",
                                 *client->message ? client->message : strerror(-r));
                smv_close(client);
                return r;
        }
        *ret_client = client;
        return 0;
}

struct smv_client *smv_close(struct smv_client *client)
{
        if (!client)
                return NULL;
        link_deinit(&client->link);
        codec_deinit(&client->codec);
        bytes_deinit(&client->ids);
        bytes_deinit(&client->text);
        free(client->streams);
        free(client);
        return NULL;
}
