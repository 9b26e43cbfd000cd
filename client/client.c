/*
 * Makes and closes a client, and keeps its last failure.
 *
 * A lost connection is not an error of one call but a state.  Complete records that came
 * before are still read.  Then each living stream gets its END, and from then on every
 * call returns -ENOTCONN at once.
 */
#include "client/private.h"

#include <errno.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void client_give(void *theirs, void *ours, size_t our_bytes)
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

        /* If the daemon gave a reason before it hung up, that reason is better. */
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

struct client_failure client_failure(const struct smv_client *client)
{
        struct client_failure failure = { .code = client->code };

        memcpy(failure.name, client->name, sizeof(failure.name));
        memcpy(failure.field, client->field, sizeof(failure.field));
        memcpy(failure.message, client->message, sizeof(failure.message));
        return failure;
}

void client_set_failure(struct smv_client *client, const struct client_failure *failure)
{
        client->code = failure->code;
        memcpy(client->name, failure->name, sizeof(client->name));
        memcpy(client->field, failure->field, sizeof(client->field));
        memcpy(client->message, failure->message, sizeof(client->message));
}

void client_forget(struct smv_client *client)
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

uint32_t client_new_ids(struct smv_client *client, uint32_t count)
{
        uint32_t run = 0;

        while (run < count) {
                client->last_id++;
                run = !client->last_id || client_stream(client, client->last_id) ? 0 : run + 1;
        }
        return client->last_id - count + 1;
}

struct client_stream *client_stream(struct smv_client *client, uint32_t id)
{
        for (size_t i = 0; i < client->stream_count; i++)
                if (client->streams[i].id == id)
                        return &client->streams[i];
        return NULL;
}

void smv_error(const struct smv_client *client, struct smv_problem *ret_problem)
{
        struct smv_problem problem = {
                .code = client->code,
                .name = client->name,
                .field = client->field,
                .message = client->message,
        };

        client_give(ret_problem, &problem, sizeof(problem));
}

/* The path of the socket if the caller gives none; or -ENAMETOOLONG. */
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
 * The process that binds the path sees every prompt.  So the daemon must run as our user
 * or as root, unless the caller allows any user.
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

/* One connection, from the socket to hello's reply. */
static int meet(struct smv_client *client, const struct smv_connect *options, uint64_t deadline)
{
        int r;

        r = open_link(client, options, deadline);
        if (!r &&
            (options->transport > SMV_TRANSPORT_SOCKET || options->doorbell > SMV_DOORBELL_NONE))
                r = client_fail(client, -EINVAL,
                                "struct smv_connect names a transport or a doorbell that is none");
        return r ? r : client_hello(client, options, deadline);
}

/* If the ring cannot be used, connects again, and asks for records through the socket. */
static int meet_somehow(struct smv_client *client, struct smv_connect *options, uint64_t deadline)
{
        int r;

        r = meet(client, options, deadline);
        if (!client->ring_failed || options->transport != SMV_TRANSPORT_AUTO || options->use_fd)
                return r;

        link_deinit(&client->link);
        client->ring_failed = false;
        client->last_id = 0;
        client_forget(client);
        options->transport = SMV_TRANSPORT_SOCKET;
        return meet(client, options, deadline);
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
        client->spin_ns = (uint64_t)o.spin_us * 1000u;

        r = codec_init(&client->codec);
        if (r && o.use_fd)
                close(o.fd);
        if (!r)
                r = meet_somehow(client, &o, deadline);
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

enum smv_transport smv_transport_used(const struct smv_client *client)
{
        return client->shared.ring ? SMV_TRANSPORT_RING : SMV_TRANSPORT_SOCKET;
}

struct smv_client *smv_close(struct smv_client *client)
{
        if (!client)
                return NULL;
        link_deinit(&client->link);
        shared_close(&client->shared);
        codec_deinit(&client->codec);
        bytes_deinit(&client->ids);
        bytes_deinit(&client->logprobs[0].at);
        bytes_deinit(&client->logprobs[1].at);
        bytes_deinit(&client->text);
        bytes_deinit(&client->beam);
        free(client->streams);
        free(client);
        return NULL;
}
