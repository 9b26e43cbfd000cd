/* Makes and closes a client: finds the socket, connects, and sends hello. */
#include <errno.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon-address.h"
#include "client/request.h"

#define CONNECT_MS 10000
/* The longest that connecting waits before it tries again, unless the daemon asks for more. */
#define WAIT_MS_MAX 1000u

/* ---- the socket ---- */

static int refuse_uid(struct smv_client *client, const char *path, int64_t uid)
{
        if (uid < 0)
                return client_fail(client, (int)uid,
                                   "%s: cannot find out which user runs the daemon: %s", path,
                                   strerror((int)-uid));
        return client_fail(client, -EPERM,
                           "%s: the daemon runs as uid %lld, which is neither root nor our uid "
                           "%lld; root can trust it in " SMV_CLIENT_CONF
                           ", or any_uid (--any-uid) accepts it",
                           path, (long long)uid, (long long)geteuid());
}

/* The group's number helps the user to find out which group to join. */
static int refuse_access(struct smv_client *client, const char *path)
{
        struct stat file;
        char owner[32] = "", group[48] = "";
        bool shared;

        if (stat(path, &file))
                return client_fail(client, -EACCES, "%s: %s", path, strerror(EACCES));
        shared = file.st_mode & S_IWGRP;
        if (file.st_uid)
                snprintf(owner, sizeof(owner), "%s user %u", shared ? "," : " and",
                         (unsigned)file.st_uid);
        if (shared)
                snprintf(group, sizeof(group), " and members of the group %u",
                         (unsigned)file.st_gid);
        return client_fail(client, -EACCES, "%s: %s: only root%s%s may connect%s", path,
                           strerror(EACCES), owner, group,
                           shared ? "; ask root to add you to it" : "");
}

/* No daemon is at any of the paths.  The message names all of them. */
static int refuse_paths(struct smv_client *client, const struct daemon_paths *paths, int r)
{
        if (r == -EACCES)
                return refuse_access(client, paths->at[paths->count - 1]);
        if (paths->count == 2)
                return client_fail(client, r, "no daemon is at %s or %s: %s", paths->at[0],
                                   paths->at[1], strerror(-r));
        return client_fail(client, r, "%s: %s", paths->at[0], strerror(-r));
}

/* A daemon that stops may have left its socket to the next one, and be at its control socket. */
static int dial(const struct smv_connect *options, const char *path, uint64_t deadline)
{
        char control[DAEMON_PATH_BYTES + sizeof(SMV_CONTROL_SUFFIX)];
        int fd = -ENOENT;

        if (options->while_stopping) {
                snprintf(control, sizeof(control), "%s%s", path, SMV_CONTROL_SUFFIX);
                fd = connection_dial(control, deadline);
        }
        return fd >= 0 ? fd : connection_dial(path, deadline);
}

static int open_connection(struct smv_client *client, const struct smv_connect *options,
                           uint64_t deadline)
{
        struct daemon_paths paths;
        int64_t uid;
        int fd = -ENAMETOOLONG;

        if (options->use_fd) {
                connection_init(&client->connection, options->fd);
                return 0;
        }
        daemon_paths_find(options->socket, &paths);
        if (!paths.count)
                return client_fail(client, -ENAMETOOLONG, "the socket's path is too long");
        for (size_t i = 0; i < paths.count; i++) {
                fd = dial(options, paths.at[i], deadline);
                if (fd >= 0) {
                        connection_init(&client->connection, fd);
                        memcpy(client->socket, paths.at[i], sizeof(client->socket));
                        uid = connection_peer_uid(&client->connection);
                        if (options->any_uid ||
                            (uid >= 0 && daemon_is_trusted(paths.at[i], (uint32_t)uid)))
                                return 0;
                        return refuse_uid(client, paths.at[i], uid);
                }
                if (fd != -ENOENT && fd != -ECONNREFUSED && fd != -ENOTDIR) {
                        paths.count = 1;
                        memmove(paths.at[0], paths.at[i], sizeof(paths.at[i]));
                }
        }
        return refuse_paths(client, &paths, fd);
}

/* ---- hello ---- */

static void put_hello(struct codec_writer *writer, const struct smv_connect *options)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        static const char *const transports[] = { "auto", "ring", "socket" };
        static const char *const doorbells[] = { "kick", "futex", "none" };
        const char *transport = transports[options->transport];
        const char *doorbell = doorbells[options->doorbell];

        codec_put_ids(writer, "versions", versions, 2);
        if (options->while_stopping)
                codec_put_bool(writer, "while_stopping", true);
        codec_put_text(writer, "transport", transport, strlen(transport));
        if (options->transport == SMV_TRANSPORT_SOCKET)
                return;
        codec_put_text(writer, "doorbell", doorbell, strlen(doorbell));
        if (options->ring_bytes)
                codec_put_uint(writer, "ring_bytes", options->ring_bytes);
}

/* Finds the segment of this kind, and the descriptor that came for it. */
static int find_segment(struct smv_client *client, const struct codec_frame *frame,
                        const char *kind, struct ring_segment *ret_segment)
{
        uint64_t index;
        int r;

        r = codec_get_segment(frame, kind, &index, &ret_segment->bytes);
        if (!r && index >= client->connection.fd_count)
                r = -EBADF;
        if (!r)
                ret_segment->fd = client->connection.fds[index];
        return r;
}

static int take_ring(struct smv_client *client, const struct codec_frame *frame,
                     enum smv_doorbell doorbell)
{
        struct ring_segment ring, control;
        const char *why;
        int r;

        r = find_segment(client, frame, "ring", &ring);
        if (!r)
                r = find_segment(client, frame, "control", &control);
        if (r == -EBADF)
                why = "its file descriptors did not arrive";
        else if (r)
                why = "the reply does not describe its segments";
        else
                r = shared_ring_open(&client->ring, &ring, &control, doorbell, &why);
        if (!r)
                return 0;
        client->ring_failed = true;
        return client_fail(client, r, "the daemon's ring cannot be used: %s", why);
}

static int take_transport(struct smv_client *client, const struct codec_frame *frame,
                          const struct smv_connect *options)
{
        struct codec_text text;
        bool ring;

        ring = !codec_get_text(frame, "transport", &text) && text.count == 4 &&
               !memcmp(text.bytes, "ring", 4);
        if (ring && options->transport == SMV_TRANSPORT_SOCKET)
                return client_fail(client, -EPROTO,
                                   "the daemon gave a ring, but the client asked for the socket");
        if (!ring && options->transport == SMV_TRANSPORT_RING)
                return client_fail(client, -EPROTO, "the daemon gave no ring");
        return ring ? take_ring(client, frame, options->doorbell) : 0;
}

static int take_limits(struct smv_client *client, const struct codec_frame *frame)
{
        uint64_t version, frame_bytes;
        int r;

        r = codec_get_uint(frame, "version", &version);
        if (r)
                return client_bad_reply(client, r, "version");
        if (version != SMV_PROTOCOL_VERSION)
                return client_fail(client, -EPROTO,
                                   "the daemon chose version %llu, which is not ours",
                                   (unsigned long long)version);
        r = codec_get_uint(frame, "frame_bytes", &frame_bytes);
        if (r)
                return client_bad_reply(client, r, "frame_bytes");

        client->request_max = frame_bytes < UINT32_MAX ? frame_bytes : UINT32_MAX;
        /* A daemon that accepts longer requests also sends longer replies. */
        if (client->request_max > client->connection.frame_max)
                client->connection.frame_max = client->request_max < CONNECTION_IN_MAX
                                                       ? client->request_max
                                                       : CONNECTION_IN_MAX;
        return 0;
}

/*
 * Skips models with too long a name or too many end tokens, and all models beyond
 * CLIENT_MODELS_MAX.
 */
static int take_models(struct smv_client *client, const struct codec_frame *frame)
{
        struct client_model *model = client->models;
        struct codec_text name;
        size_t bytes;

        client->model_count = 0;
        for (size_t i = 0; client->model_count < CLIENT_MODELS_MAX; i++) {
                uint64_t context;
                int r = codec_get_model(frame, i, &name, &model->is_default, &context,
                                        &client->ids);

                if (r == -ENOENT)
                        break;
                if (r)
                        return client_bad_reply(client, r, "models");
                bytes = client->ids.count;
                if (name.count > SMV_NAME_BYTES_MAX || bytes > sizeof(model->ends))
                        continue;
                memcpy(model->name, name.bytes, name.count);
                model->name[name.count] = '\0';
                model->context = context < UINT32_MAX ? (uint32_t)context : UINT32_MAX;
                model->end_count = (uint32_t)(bytes / sizeof(*model->ends));
                if (bytes)
                        memcpy(model->ends, client->ids.at, bytes);
                model = &client->models[++client->model_count];
        }
        return 0;
}

/* Sends hello on the new connection, waits for the reply, and maps the ring if it brought one. */
static int say_hello(struct smv_client *client, const struct smv_connect *options,
                     uint64_t deadline)
{
        struct codec_writer writer;
        struct codec_frame frame;
        uint32_t id;
        int r;

        client_request_begin(client, &writer, "hello", &id);
        put_hello(&writer, options);
        if (options->transport != SMV_TRANSPORT_SOCKET)
                connection_accept_fds(&client->connection);
        r = client_request_call_until(client, &writer, id, deadline, &frame);
        if (!r)
                r = take_limits(client, &frame);
        if (!r)
                r = take_models(client, &frame);
        if (!r)
                r = take_transport(client, &frame, options);
        connection_close_fds(&client->connection);
        return r;
}

/* ---- connecting ---- */

/* One connection, from the socket to hello's reply. */
static int connect_once(struct smv_client *client, const struct smv_connect *options,
                        uint64_t deadline)
{
        int r;

        r = open_connection(client, options, deadline);
        if (!r &&
            (options->transport > SMV_TRANSPORT_SOCKET || options->doorbell > SMV_DOORBELL_NONE))
                r = client_fail(client, -EINVAL,
                                "struct smv_connect has an unknown transport or doorbell");
        return r ? r : say_hello(client, options, deadline);
}

/* The client is as it was before it connected. */
static void undo_connection(struct smv_client *client)
{
        connection_deinit(&client->connection);
        connection_init(&client->connection, -1);
        client->ring_failed = client->connection_refused = false;
        client->last_id = 0;
        client_clear_failure(client);
}

/* If the ring cannot be used, connects again, and asks for records through the socket. */
static int connect_with_fallback(struct smv_client *client, struct smv_connect *options,
                                 uint64_t deadline)
{
        int r;

        r = connect_once(client, options, deadline);
        if (!client->ring_failed || options->transport != SMV_TRANSPORT_AUTO || options->use_fd)
                return r;

        undo_connection(client);
        options->transport = SMV_TRANSPORT_SOCKET;
        return connect_once(client, options, deadline);
}

/*
 * If the daemon refuses the connection only for now, waits for as long as the daemon says, and each
 * time at least twice as long as before, and connects again.
 */
static int connect_patiently(struct smv_client *client, struct smv_connect *options,
                             uint64_t deadline)
{
        uint32_t wait_ms = 0;
        int r;

        for (;;) {
                r = connect_with_fallback(client, options, deadline);
                if (!r || !client->failure.retry_ms || options->use_fd)
                        return r;
                wait_ms = 2 * wait_ms < WAIT_MS_MAX ? 2 * wait_ms : WAIT_MS_MAX;
                if (wait_ms < client->failure.retry_ms)
                        wait_ms = client->failure.retry_ms;
                if (!sleep_before(wait_ms, deadline))
                        return r;
                undo_connection(client);
        }
}

int smv_connect(const struct smv_connect *options, struct smv_client **ret_client)
{
        struct smv_connect o = { 0 };
        struct smv_client *client;
        uint64_t deadline;
        int r;

        r = options ? client_copy_in(&o, sizeof(o), options) : 0;
        if (r)
                return r;
        deadline = deadline_after(o.timeout_ms ? o.timeout_ms : CONNECT_MS);

        client = calloc(1, sizeof(*client));
        if (!client) {
                if (o.use_fd)
                        close(o.fd);
                return -ENOMEM;
        }
        connection_init(&client->connection, -1);
        client->request_max = SMV_FRAME_BYTES_MAX;
        client->reply_ms = CLIENT_REPLY_MS;
        client->spin_ns = (uint64_t)o.spin_us * 1000u;

        r = codec_init(&client->codec);
        if (r && o.use_fd)
                close(o.fd);
        if (!r)
                r = connect_patiently(client, &o, deadline);
        if (r) {
                if (o.message && o.message_bytes)
                        snprintf(o.message, o.message_bytes, "%s",
                                 *client->failure.message ? client->failure.message : strerror(-r));
                smv_close(client);
                return r;
        }
        *ret_client = client;
        return 0;
}

enum smv_transport smv_transport_used(const struct smv_client *client)
{
        return client->ring.segment ? SMV_TRANSPORT_RING : SMV_TRANSPORT_SOCKET;
}

const char *smv_socket_used(const struct smv_client *client)
{
        return *client->socket ? client->socket : NULL;
}

struct smv_client *smv_close(struct smv_client *client)
{
        if (!client)
                return NULL;
        connection_deinit(&client->connection);
        shared_ring_close(&client->ring);
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
